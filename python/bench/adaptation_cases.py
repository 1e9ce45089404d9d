# SPDX-License-Identifier: Apache-2.0
"""The cases of the adaptation table: pairs of domains, halves of one, thinned classes, and the paper's drifts.

- pairs: every ordered pair of domains of a set. Music has the same songs in each domain: even ones are the source's,
  odd ones the target's.
- halves: two random halves of one domain, where nothing moved and every map should do nothing; Fashion-MNIST too.
- thinned: the same pairs and halves, with half of the target's classes (drawn by seed 0) left with a share of their
  samples. Class shares moved, and a map can mistake that for a shift.
- drifts: the paper's drifts `scale` and `mix` on Fashion-MNIST and on synthetic classes, of which the Monge map
  recovers a part: moments from one half of the drifted target, accuracy on the other.
"""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.preprocessing import StandardScaler

HEADS = ("logistic", "3-nn", "forest")  # the classifiers that are trained on the source; see adaptation_measure
SHORT = {
    "music_genre_mgr58": "music",
    "office_caltech_googlenet1024": "GoogLeNet",
    "office_caltech_surf800": "SURF",
    "gas_drift_128": "gas",
}
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
    heads: tuple = HEADS


def map_name(choice: str, way: str) -> str:
    """The map of a choice under a way of deciding: with a head maps are shrunk and remixed, without one shrunk."""
    if choice == "none":
        return choice
    return f"{choice}, {'shrunk' if way == 'auto, no head' else 'remixed'}"


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


def all_cases(data: Path):
    yield from natural_cases(read_sets(data))
    yield from fashion_mnist_halves()
    yield from drift_cases()
