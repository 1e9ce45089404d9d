# SPDX-License-Identifier: Apache-2.0
"""Following a sensor array that drifts for three years: what helps, what hurts, and when the classes decide.

A classifier is trained on the first two months of gas_drift_128 (UCI's gas sensor array drift) and never touched again.
The samples of the other months arrive in batches of 64 without labels. Each batch is judged after the aligner has seen
it: with no adaptation, with the running mean alone, with the scale of each feature followed (all of the past, or with a
half-life), balanced by the classes that the classifier predicts, and behind the gate.

The order in which samples come within a month decides more than the drift: the table has the order of the files, the
samples of each month shuffled, half of them sorted by class, and all sorted by class.

    python examples/following_a_stream.py --out following_a_stream.png [--data FOLDER] [--patience N] [--program PATH]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

import itspace

MONTHS = (2, 3, 4, 5, 6, 8, 9)
ORDERS = ("as recorded", "shuffled", "half sorted", "sorted by class")
BATCH = 64


def read(folder, month):
    X, y = (np.load(folder / f"batch{month}_{part}.npy") for part in "xy")
    return X.astype(np.float64), y.astype(int)


def ordered(labels, order, rng):
    """Row numbers of one month in the order they come."""
    rows = np.arange(len(labels))
    if order == "as recorded":
        return rows
    rng.shuffle(rows)
    if order == "shuffled":
        return rows
    count = len(rows) if order == "sorted by class" else len(rows) // 2
    chosen = np.sort(rng.permutation(len(rows))[:count])
    rows[chosen] = rows[chosen][np.argsort(labels[rows[chosen]], kind="stable")]
    return rows


class Follower:
    """An aligner, the map it is asked for, and what it makes of a batch."""

    def __init__(self, source, kind, *, half_life=np.inf, balance=None, head=None, gated=False, patience=1):
        self.aligner = itspace.OnlineAligner(16, half_life=half_life, balance=balance)
        self.source, self.kind, self.head, self.balanced = source, kind, head, balance is not None
        self.gate = itspace.FollowGate(source, head, kinds=(kind,), patience=patience) if gated else None

    def judged(self, batch):
        predicted = None
        if self.balanced:  # what the classifier made of the batch under the map so far
            before = batch if self.aligner.batches == 0 else self.aligner.map(self.source, self.kind).apply(batch)
            predicted = self.head.predict(before)
        self.aligner.observe(batch, predicted=predicted)
        if self.gate is not None:
            self.gate.ask(self.aligner, batch)
            return self.gate.apply(batch)
        return self.aligner.map(self.source, self.kind).apply(batch)


class ByTheProgram:
    """The same by `itspace follow`, which runs no classifier: it is given predictions, and leaves maps."""

    def __init__(self, program, source, head, half_life, patience):
        self.program, self.head = program, head
        self.folder = tempfile.TemporaryDirectory()
        self.options = ["--rank", "16", "--half-life", str(half_life), "--patience", str(patience)]
        np.save(self.file("source.npy"), source)

    def file(self, name):
        return os.path.join(self.folder.name, name)

    def run(self, *arguments):
        subprocess.run([self.program, *arguments], check=True, stdout=subprocess.DEVNULL)

    def mapped(self, name):
        self.run("transform", "--quiet", "--map", self.file(name), "--in", self.file("x.npy"), "--out", self.file("mapped.npy"))
        return np.load(self.file("mapped.npy"))

    def judged(self, batch):
        np.save(self.file("x.npy"), batch)
        asked = []
        if os.path.exists(self.file("candidate.npz")):  # of the batches before this one
            np.save(self.file("p.npy"), self.head.predict_proba(batch))
            np.save(self.file("q.npy"), self.head.predict_proba(self.mapped("candidate.npz")))
            asked = ["--predictions", f"{self.file('p.npy')},{self.file('q.npy')}"]
        outputs = ["--candidate-out", self.file("candidate.npz"), "--map-out", self.file("map.npz")]
        source = ["--source", self.file("source.npy"), "--state", self.file("state.npz")]
        self.run("follow", "--quiet", *self.options, *source, *asked, *outputs, self.file("x.npy"))
        return self.mapped("map.npz")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", default="following_a_stream.png", help="the picture to write")
    here = Path(__file__).resolve().parents[1]
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("ITSPACE_DATA", here.parent / "shared" / "data")))
    parser.add_argument("--half-life", type=float, default=10, help="in batches of 64")
    parser.add_argument("--patience", type=int, default=1, help="batches in a row that open or close the gate")
    parser.add_argument("--program", help="follow with this `itspace`, too")
    arguments = parser.parse_args()
    folder = arguments.data / "gas_drift_128"
    if not folder.is_dir():
        sys.exit(f"following_a_stream: {folder} is absent; give --data the folder that holds it")

    X, y = read(folder, 1)
    scaler = StandardScaler().fit(X)
    X = scaler.transform(X)
    head = LogisticRegression(C=0.1, max_iter=2000).fit(X, y)
    target = itspace.Target.from_features(X)
    source = itspace.model_of(target, itspace.start_from(target, 16))

    def followers():
        short = {"half_life": arguments.half_life}
        found = {
            "no adaptation": None,
            "mean alone": Follower(source, "mean", **short),
            "scale, nothing forgotten": Follower(source, "scale"),
            "scale, with half-life": Follower(source, "scale", **short),
            "scale, half-life, balanced": Follower(source, "scale", balance=y, head=head, **short),
            "scale, half-life, gated": Follower(source, "scale", head=head, gated=True, patience=arguments.patience, **short),
        }
        if arguments.program:
            name = "scale, half-life, gated, by the program"
            found[name] = ByTheProgram(arguments.program, X, head, arguments.half_life, arguments.patience)
        return found

    months = {month: read(folder, month) for month in MONTHS}
    curves = {}
    table = {}
    for order in ORDERS:
        rng = np.random.default_rng(0)
        methods = followers()
        right = {name: [] for name in methods}
        starts = []
        for month, (values, labels) in months.items():
            rows = ordered(labels, order, rng)
            starts.append(len(right["no adaptation"]))
            for first in range(0, len(rows), BATCH):
                some = rows[first : first + BATCH]
                if len(some) < 2:
                    continue
                batch, answers = scaler.transform(values[some]), labels[some]
                for name, method in methods.items():
                    moved = batch if method is None else method.judged(batch)
                    right[name].append((head.predict(moved) == answers, month))
        curves[order] = {name: np.array([hits.mean() for hits, _ in all_]) for name, all_ in right.items()}
        table[order] = {name: np.concatenate([hits for hits, _ in all_]).mean() for name, all_ in right.items()}

    names = list(table[ORDERS[0]])
    print(f"gas_drift_128: trained on month 1 ({len(X)} samples), {len(curves[ORDERS[0]][names[0]])} batches of {BATCH}")
    print("| accuracy, % | " + " | ".join(ORDERS) + " |\n|---|" + "---|" * len(ORDERS))
    for name in names:
        print(f"| {name} | " + " | ".join(f"{100 * table[order][name]:.1f}" for order in ORDERS) + " |")
    draw(arguments.out, curves, table, starts)
    print(f"The picture is in {arguments.out}")


def draw(path, curves, table, starts):
    colors = ("0.55", "tab:orange", "tab:green", "tab:blue", "tab:purple", "black")
    figure, panels = plt.subplots(len(ORDERS), 1, figsize=(9, 10.5), sharex=True, layout="constrained")
    window = np.ones(5) / 5
    for axes, order in zip(panels, ORDERS):
        for (name, values), color in zip(curves[order].items(), colors):
            smooth = np.convolve(np.pad(100 * values, 2, mode="edge"), window, mode="valid")
            axes.plot(
                np.arange(1, len(values) + 1), smooth, color=color, linewidth=1.5,
                linestyle=":" if color in ("0.55", "black") else "-", label=f"{name}: {100 * table[order][name]:.0f} %",
            )
        for start in starts:
            axes.axvline(start + 0.5, color="0.85", linewidth=0.8, zorder=0)
        axes.set_title(f"samples of a month {order}" if order != "as recorded" else "as recorded", fontsize=10)
        axes.set_ylim(0, 100)
        axes.set_ylabel("accuracy, %")
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize=8)
    panels[-1].set_xlabel("batch of 64 (mean of five; grey lines: a new month)")
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    main()
