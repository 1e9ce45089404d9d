# SPDX-License-Identifier: Apache-2.0
"""Should one adapt? Every pair of every set at hand, every map, three frozen classifiers: the table of the docs.

A classifier is trained on source features (standardised by the source) and frozen; the maps see the target without
labels; the gain is accuracy after minus accuracy before, in points, and a pair is hurt where it is below -1. Families
of data count alike. Four kinds of cases:

- pairs: every ordered pair of domains of a set. Music has the same songs in each domain: even ones are the source's,
  odd ones the target's.
- halves: two random halves of one domain, where nothing moved and every map should do nothing; Fashion-MNIST too.
- thinned: the same pairs and halves, with half of the target's classes (drawn by seed 0) left with a share of their
  samples. Class shares moved, and a map can mistake that for a shift.
- drifts: the paper's drifts `scale` and `mix` on Fashion-MNIST and on synthetic classes, of which the Monge map
  recovers a part: moments from one half of the drifted target, accuracy on the other.

    script/adaptation-table

With --cache a run that was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import itertools
import json
import os
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import numpy as np  # noqa: E402
from sklearn.ensemble import RandomForestClassifier  # noqa: E402
from sklearn.linear_model import LogisticRegression  # noqa: E402
from sklearn.neighbors import KNeighborsClassifier  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402

import itspace._gate as gate  # noqa: E402
import itspace._compare as compare  # noqa: E402
from itspace import _heads  # noqa: E402
from itspace.sklearn import CovarianceAligner  # noqa: E402

HEADS = {
    "logistic": lambda: LogisticRegression(C=0.1, max_iter=1000),
    "3-nn": lambda: KNeighborsClassifier(3),
    "forest": lambda: RandomForestClassifier(100, random_state=0),
}
SHORT = {
    "music_genre_mgr58": "music",
    "office_caltech_googlenet1024": "GoogLeNet",
    "office_caltech_surf800": "SURF",
    "gas_drift_128": "gas",
}
MAPS = ("mean", "scale", "scale+monge", "monge")
SHOWN = ("mean", "mean, shrunk", "scale", "scale, shrunk", "scale+monge", "scale+monge, shrunk", "monge", "monge, shrunk")
GATED = ("auto, no head", "auto, labels", "auto, probabilities")
HURT = -1.0
FASHION_MNIST = Path("/usr/share/datasets/fashion-mnist")
DRIFT_RANK, DRIFT_SEEDS = 16, range(5)


class Case(NamedTuple):
    kind: str
    family: str
    name: str
    source: str  # names the head: cases with one source share it
    Xs: Any
    ys: Any
    Xt: Any
    yt: Any
    judged: Any = None  # (X, y) where accuracy is taken on other rows than the map is learned on
    heads: tuple = tuple(HEADS)


# The cases.


def read_sets(data: Path) -> dict:
    sets: dict = {}
    for folder in sorted(path for path in data.iterdir() if path.is_dir()):
        names = sorted(path.name[: -len("_x.npy")] for path in folder.glob("*_x.npy"))
        domains = {
            name: (np.load(folder / f"{name}_x.npy").astype(float), np.load(folder / f"{name}_y.npy"))
            for name in names
            if (folder / f"{name}_y.npy").exists()
        }
        if len(domains) > 1:
            sets[SHORT.get(folder.name, folder.name)] = domains
    return sets


def is_paired(domains: dict) -> bool:
    """Whether row i is the same thing in every domain (a song with and without noise)."""
    labels = [y for _, y in domains.values()]
    return all(np.array_equal(labels[0], y) for y in labels[1:])


def natural_cases(sets: dict):
    for family, domains in sets.items():
        paired = is_paired(domains)
        for source, (Xs, ys) in domains.items():
            rows = slice(0, None, 2) if paired else slice(None)
            for target, (Xt, yt) in domains.items():
                if source == target:
                    continue
                other = slice(1, None, 2) if paired else slice(None)
                case = Case(
                    "pairs", family, f"{source} -> {target}", f"{family}:{source}", Xs[rows], ys[rows], Xt[other], yt[other]
                )
                yield case
                yield from thinned(case)
            yield from halves(family, source, Xs, ys)


def halves(family: str, name: str, X, y):
    for seed in (0, 1):
        first, second = np.array_split(np.random.default_rng(seed).permutation(len(X)), 2)
        named = f"{name}, halves by seed {seed}"
        case = Case("halves", family, named, f"{family}:{named}", X[first], y[first], X[second], y[second])
        yield case
        yield from thinned(case)


def fashion_mnist_halves():
    """Fashion-MNIST has one domain: halves of 3000 images, thinned or not."""
    if FASHION_MNIST.is_dir():
        X, y = fashion_mnist()[:2]
        yield from halves("Fashion-MNIST", "train", X, y)


def thinned(case: Case):
    """The case with half of the target's classes at a half, and at a tenth, of their samples."""
    random = np.random.default_rng(0)
    classes = np.unique(case.yt)
    thin = random.choice(classes, len(classes) // 2, replace=False)
    for share in (0.5, 0.1):
        kept = [np.flatnonzero(~np.isin(case.yt, thin))]
        for label in thin:
            rows = random.permutation(np.flatnonzero(case.yt == label))
            kept.append(rows[: round(share * len(rows))])
        rows = np.sort(np.concatenate(kept))
        yield case._replace(
            kind=f"{case.kind}, thinned to {share}", Xt=case.Xt[rows], yt=case.yt[rows], heads=("logistic",)
        )


def read_idx(name: str, header: int):
    with gzip.open(FASHION_MNIST / name) as file:
        return np.frombuffer(file.read(), dtype=np.uint8, offset=header)


def fashion_mnist():
    parts = []
    for name, count in (("train", 60000), ("t10k", 10000)):
        parts.append(read_idx(f"{name}-images-idx3-ubyte.gz", 16).reshape(count, -1) / 255.0)
        parts.append(read_idx(f"{name}-labels-idx1-ubyte.gz", 8))
    rows = np.random.default_rng(0).permutation(len(parts[0]))[:3000]
    return parts[0][rows], parts[1][rows], parts[2], parts[3]


def synthetic(dim: int = 512, count: int = 4096):
    """Ten classes in 16 directions of a decaying spectrum, the target's axes turned a little: as in the experiments."""
    scales = np.sqrt(np.maximum(np.arange(1, dim + 1) ** -1.2, 1e-4))
    means = 0.8 * np.random.default_rng(1).standard_normal((10, 16))
    parts = []
    for is_source in (True, False):
        X = np.random.default_rng(10 + is_source).standard_normal((count, dim))
        labels = (np.arange(count) + (not is_source)) % 10
        X[:, :16] += means[labels]
        X *= scales
        if not is_source:
            X = turned(X, 0.08, 5)
        parts += [turned(X, 2.0, 6), labels]
    return tuple(parts)


def turned(X, angle: float, seed: int):
    random = np.random.default_rng(seed)
    columns = X.T.copy()
    distance = 1
    while distance < len(columns):
        for i in range(len(columns) - distance):
            if i & distance:
                continue
            by = angle * random.standard_normal()
            first, second = columns[i].copy(), columns[i + distance].copy()
            columns[i] = np.cos(by) * first - np.sin(by) * second
            columns[i + distance] = np.sin(by) * first + np.cos(by) * second
        distance *= 2
    return columns.T.copy()


def drifted(X, directions, kind: str, severity: float, seed: int):
    into = directions
    if kind == "mix":
        into = np.linalg.qr(np.random.default_rng(1000 + seed).standard_normal(directions.shape))[0]
    return X + (X @ directions) * np.linspace(0, severity - 1, directions.shape[1]) @ into.T


def drift_cases():
    families = {"synthetic": synthetic}
    if FASHION_MNIST.is_dir():
        families["Fashion-MNIST"] = fashion_mnist
    for family, load in families.items():
        Xs, ys, Xt, yt = load()
        for seed in DRIFT_SEEDS:
            random = np.random.default_rng(seed)
            train = random.permutation(len(Xs))[: len(Xs) * 4 // 5][:2400]
            target = random.permutation(len(Xt))[:8000]
            scaler = StandardScaler().fit(Xs[train])
            S, U, J = (scaler.transform(part) for part in (Xs[train], Xt[target[::2]][:2000], Xt[target[1::2]]))
            labels = yt[target[::2]][:2000], yt[target[1::2]]
            directions = np.linalg.eigh(np.cov(S.T))[1][:, ::-1][:, :DRIFT_RANK]
            settings = [("none", 1.0)] + [(kind, severity) for kind in ("scale", "mix") for severity in (4.0, 8.0)]
            for kind, severity in settings:
                moved = [drifted(X, directions, kind, severity, seed) if kind != "none" else X for X in (U, J)]
                yield Case(
                    f"drift {kind} {severity:g}",
                    family,
                    f"seed {seed}",
                    f"{family}:drift:{seed}",
                    S,
                    ys[train],
                    moved[0],
                    labels[0],
                    (moved[1], labels[1]),
                    ("logistic",),
                )


# One case.


class Heads:
    """The frozen classifiers of the current source."""

    def __init__(self) -> None:
        self.source, self.heads = "", {}

    def of(self, case: Case, kind: str, Xs):
        if case.source != self.source:
            self.source, self.heads = case.source, {}
        if kind not in self.heads:
            self.heads[kind] = HEADS[kind]().fit(Xs, case.ys)
        return self.heads[kind]


class LabelsOnly:
    """A classifier that gives no probabilities."""

    def __init__(self, head) -> None:
        self.predict, self.classes_ = head.predict, head.classes_


def measure(case: Case, heads: Heads) -> dict:
    scaler = StandardScaler().fit(case.Xs)
    if case.kind.startswith("drift"):  # standardised before they drifted
        scaler = StandardScaler(with_mean=False, with_std=False).fit(case.Xs)
    Xs, Xt = scaler.transform(case.Xs), scaler.transform(case.Xt)
    judged, answers = (Xt, case.yt) if case.judged is None else case.judged
    begin = time.perf_counter()
    plain = CovarianceAligner().fit(Xs, Xt)
    seconds = time.perf_counter() - begin
    compared = compare.Comparison(plain._source, Xt, plain._fit_model)
    moved = {"none": judged}
    for name in MAPS:
        moved[name] = compared.map(name, shrink=False).apply(judged)
        moved[f"{name}, shrunk"] = compared.map(name).apply(judged)
    seen = {name: Xt if name == "none" else compared.map(name).apply(Xt) for name in gate.CANDIDATES}
    row = {
        "kind": case.kind,
        "family": case.family,
        "name": case.name,
        "samples": [len(Xs), len(Xt)],
        "features": Xs.shape[1],
        "noise_share": compared.noise_share,
        "shift": compared.shift._asdict(),
        "seconds": seconds,
        "heads": {},
    }
    for kind in case.heads:
        head = heads.of(case, kind, Xs)
        accuracy = {name: 100 * float(head.score(X, answers)) for name, X in moved.items()}
        ways = {
            "auto, no head": None,
            "auto, labels": _heads.answers_of(LabelsOnly(head), seen, plain._witness_of, plain._witness_rows),
            "auto, probabilities": _heads.answers_of(head, seen, plain._witness_of, plain._witness_rows),
        }
        decisions = {way: gate.decide(compared.shift, predictions) for way, predictions in ways.items()}
        for way, decision in decisions.items():
            accuracy[way] = accuracy["none" if decision.choice == "none" else f"{decision.choice}, shrunk"]
        row["heads"][kind] = {
            "accuracy": accuracy,
            "choices": {way: decision.choice for way, decision in decisions.items()},
            "predictions": {name: p._asdict() for name, p in ways["auto, probabilities"].items()},
        }
    return row


# The tables.


def rows_of(rows: list, kind: str, head: str) -> list:
    return [row for row in rows if row["kind"] == kind and head in row["heads"]]


def figures(rows: list, head: str, name: str) -> tuple[float, float, float]:
    """Mean gain with families weighted alike, share of cases hurt in percent, worst case."""
    gains: dict = {}
    for row in rows:
        accuracy = row["heads"][head]["accuracy"]
        gains.setdefault(row["family"], []).append(accuracy[name] - accuracy["none"])
    every = np.concatenate(list(gains.values()))
    return float(np.mean([np.mean(g) for g in gains.values()])), 100 * float((every < HURT).mean()), float(every.min())


def table(rows: list, kind: str, heads) -> list[str]:
    heads = [head for head in heads if rows_of(rows, kind, head)]
    lines = ["| | " + " | ".join(heads) + " |", "|---" * (len(heads) + 1) + "|"]
    for name in SHOWN + GATED:
        cells = ["%+.1f; %.0f %%; %+.1f" % figures(rows_of(rows, kind, head), head, name) for head in heads]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return lines


GRID = {
    "CLEAR_RISE": (0.075, 0.10, 0.125, 0.15),
    "LOST_INFORMATION": (-0.15, -0.10, -0.05),
    "MUCH_MOVE": (0.2, 0.3, 0.4, 0.5),
    "LOST_AGREEMENT": (-0.15, -0.10, -0.05),
    "CLEAR_SHARED": (0.08, 0.10, 0.12, 0.15),
    "SECOND_INFORMATION_SEEN": (0.05, 0.10),
}
COST_OF_HURT = 0.1  # points for each percent of pairs hurt
NEARLY_BEST = {"the best on the other families": 0.0, "the strictest that is nearly the best there": 0.1}  # points


def leave_one_family_out(rows: list, way: str) -> list[str]:
    """What the rule gains on a family when its constants are chosen, from a grid, on the other families alone.

    All heads count alike. Once the best setting on the others is taken, and once the strictest of those that are nearly
    as good: families on which nothing is hurt have no say in how careful to be.
    """
    largest = [max(abs(value) for value in values) for values in GRID.values()]
    settings = sorted(
        itertools.product(*GRID.values()), key=lambda v: -sum(value / unit for value, unit in zip(v, largest))
    )
    pairs = [row for row in rows if row["kind"] == "pairs"]
    families = sorted({row["family"] for row in pairs})
    gains = {head: np.zeros((len(settings), len(pairs))) for head in HEADS}
    kept = {name: getattr(gate, name) for name in GRID}
    for i, values in enumerate(settings):
        for name, value in zip(GRID, values):
            setattr(gate, name, value)
        for j, row in enumerate(pairs):
            for head, result in row["heads"].items():
                gains[head][i, j] = gain_by_rule(row, result, way)
    for name, value in kept.items():
        setattr(gate, name, value)
    member = np.array([families.index(row["family"]) for row in pairs])

    def worth(among):
        parts = [g[:, member == f] for g in gains.values() for f in among]
        return np.mean([p.mean(axis=1) - COST_OF_HURT * 100 * (p < HURT).mean(axis=1) for p in parts], axis=0)

    lines, notes = [], []
    for what, slack in NEARLY_BEST.items():
        chosen = {}
        for f in range(len(families)):
            of_others = worth([other for other in range(len(families)) if other != f])
            chosen[f] = int(np.flatnonzero(of_others >= of_others.max() - slack)[0])
        cells = []
        for head in HEADS:
            own = np.array([gains[head][chosen[member[j]], j] for j in range(len(pairs))])
            mean = np.mean([own[member == f].mean() for f in range(len(families))])
            cells.append(f"{mean:+.1f}; {100 * (own < HURT).mean():.0f} %; {own.min():+.1f}")
        lines.append(f"| {way}, constants: {what} | " + " | ".join(cells) + " |")
        taken = [f"without {families[f]} " + ", ".join(map(str, settings[i])) for f, i in chosen.items()]
        notes.append(f"{what}: " + "; ".join(taken) + ".")
    return lines + ["", "Constants (" + ", ".join(GRID) + "), " + " ".join(notes)]


def gain_by_rule(row: dict, result: dict, way: str) -> float:
    predictions = None
    if way != "auto, no head":
        predictions = {name: gate.Predictions(**p) for name, p in result["predictions"].items()}
        if way == "auto, labels":
            predictions = {name: p._replace(information=None) for name, p in predictions.items()}
    choice = gate.decide(gate.Shift(**row["shift"]), predictions).choice
    accuracy = result["accuracy"]
    return accuracy["none" if choice == "none" else f"{choice}, shrunk"] - accuracy["none"]


def recovery_table(rows: list) -> list[str]:
    lines = ["| | drop | Monge today | `auto`, probabilities | labels | no head |", "|---|---|---|---|---|---|"]
    clean = {
        (row["family"], row["name"]): row["heads"]["logistic"]["accuracy"]["none"]
        for row in rows_of(rows, "drift none 1", "logistic")
    }
    for kind in sorted({row["kind"] for row in rows if row["kind"].startswith("drift") and "none" not in row["kind"]}):
        for family in sorted({row["family"] for row in rows_of(rows, kind, "logistic")}):
            own = [row for row in rows_of(rows, kind, "logistic") if row["family"] == family]
            accuracy = [row["heads"]["logistic"]["accuracy"] for row in own]
            drop = np.mean([clean[row["family"], row["name"]] - a["none"] for row, a in zip(own, accuracy)])
            gains = [np.mean([a[name] - a["none"] for a in accuracy]) for name in ("monge", *GATED[::-1])]
            lines.append(f"| {family}, {kind[6:]} | {drop:.1f} | " + " | ".join(f"{gain:+.1f}" for gain in gains) + " |")
    return lines


def pair_table(rows: list) -> list[str]:
    lines = [
        "| source -> target | n, n', d | noise | mean | left over | none | mean | scale | scale+monge | monge | `auto` | chosen |",
        "|---" * 12 + "|",
    ]
    for row in rows_of(rows, "pairs", "logistic"):
        result = row["heads"]["logistic"]
        values = [result["accuracy"][n] for n in ("none", *(f"{m}, shrunk" for m in MAPS), "auto, probabilities")]
        numbers = [row["noise_share"], row["shift"]["mean_share"], row["shift"]["unexplained"]]
        lines.append(
            f"| {row['family']} {row['name']} | {row['samples'][0]}, {row['samples'][1]}, {row['features']} | "
            + " | ".join(f"{number:.2f}" for number in numbers)
            + " | "
            + " | ".join(f"{value:.1f}" for value in values)
            + f" | {result['choices']['auto, probabilities']} |"
        )
    return lines


def summary(rows: list) -> str:
    count = len(rows_of(rows, "pairs", "logistic"))
    parts = [f"**Pairs** ({count}): mean gain in points; share of pairs hurt; worst pair.", "", *table(rows, "pairs", HEADS)]
    parts += [*leave_one_family_out(rows, "auto, probabilities")]
    parts += ["", "**Halves of one domain**, where every gain or loss is noise:", "", *table(rows, "halves", HEADS)]
    for kind in sorted({row["kind"] for row in rows if "thinned" in row["kind"]}, reverse=True):
        what = kind.replace("thinned to 0.5", "half of the classes at half").replace("thinned to 0.1", "half of the classes at a tenth")
        parts += ["", f"**{what[0].upper()}{what[1:]} of their samples**:", "", *table(rows, kind, ["logistic"])]
    if rows_of(rows, "drift none 1", "logistic"):
        parts += ["", f"**The paper's drifts**, points recovered, {len(DRIFT_SEEDS)} seeds:", "", *recovery_table(rows)]
    return "\n".join(parts)


def write_between(page: Path, text: str) -> None:
    begin, end = "<!-- made by script/adaptation-table: begin -->", "<!-- end -->"
    before, _, rest = page.read_text().partition(begin)
    after = rest.partition(end)[2]
    if not rest or not after:
        raise SystemExit(f"{page} has no '{begin}' ... '{end}' to write between")
    page.write_text(f"{before}{begin}\n\n{text}\n\n{end}{after}")


def rounded(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 4)
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    return value


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("ITSPACE_DATA", "../shared/data")))
    parser.add_argument("--json", type=Path, help="every number of every case")
    parser.add_argument("--page", type=Path, help="the page whose tables are made anew; by default they are printed")
    parser.add_argument("--pairs", type=Path, help="a page of its own with a line for every pair")
    parser.add_argument("--cache", type=Path, help="folder of finished cases, of this very code")
    parser.add_argument("--only", default="", help="kinds that begin so: pairs, halves, drift")
    arguments = parser.parse_args()
    if not arguments.data.is_dir():
        print(f"no data in {arguments.data}; set ITSPACE_DATA", file=sys.stderr)
        return 3
    heads, rows = Heads(), []

    def all_cases():
        yield from natural_cases(read_sets(arguments.data))
        yield from fashion_mnist_halves()
        yield from drift_cases()

    for case in all_cases():
        if not case.kind.startswith(arguments.only):
            continue
        label = f"{case.kind}|{case.family}|{case.name}"
        kept = arguments.cache and arguments.cache / (hashlib.sha256(label.encode()).hexdigest()[:24] + ".json")
        if kept and kept.exists():
            rows.append(json.loads(kept.read_text()))
            continue
        rows.append(measure(case, heads))
        print(label, rows[-1]["heads"]["logistic"]["choices"]["auto, probabilities"], file=sys.stderr, flush=True)
        if kept:
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.write_text(json.dumps(rows[-1]))
    if arguments.json:
        lines = ",\n".join(json.dumps(rounded(row)) for row in rows)
        arguments.json.write_text('{"schema": "itspace.adaptation/1", "cases": [\n' + lines + "\n]}\n")
    if arguments.pairs:
        title = "# Every pair: accuracy of a frozen logistic regression, maps shrunk by noise\n\n"
        columns = "noise, mean, left over: shares of the shift (see [Should I adapt?](../should-i-adapt.md)). Made by `script/adaptation-table`.\n\n"
        arguments.pairs.write_text(title + columns + "\n".join(pair_table(rows)) + "\n")
    if arguments.page:
        write_between(arguments.page, summary(rows))
    else:
        print(summary(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
