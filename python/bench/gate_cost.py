# SPDX-License-Identifier: Apache-2.0
"""What asking a classifier costs: the bare steps to one Monge map, the aligner with one map, and map="auto".

CPU time of one thread, the least of several runs, in milliseconds: the table of docs/should-i-adapt.md.

    build/venv/bin/python python/bench/gate_cost.py
"""

from __future__ import annotations

import os
import time

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np  # noqa: E402
from sklearn.linear_model import LogisticRegression  # noqa: E402

import itspace  # noqa: E402
from itspace.sklearn import CovarianceAligner  # noqa: E402

SHAPES = ((300, 30, 15), (300, 60, 15), (3000, 128, 6), (900, 800, 3), (900, 1024, 3))  # samples, features, runs
RANK, STEPS, CLASSES = 16, 2, 5


def bare_steps(Xs, Xt):
    source, target = (itspace.Target.from_features(X) for X in (Xs, Xt))
    factor = itspace.start_from(source, RANK)
    aligned = itspace.align(target, factor, rank=RANK, steps=STEPS).factor
    models = itspace.model_of(target, aligned, Xt.mean(axis=0)), itspace.model_of(source, factor, Xs.mean(axis=0))
    return itspace.TransportMap.from_models(*models).apply(Xt)


def least_time(work, runs: int) -> float:
    work()
    times = []
    for _ in range(runs):
        begin = time.process_time()
        work()
        times.append(time.process_time() - begin)
    return 1e3 * min(times)


def main() -> None:
    random = np.random.default_rng(0)
    for samples, features, runs in SHAPES:
        labels = random.integers(CLASSES, size=2 * samples)
        centres = 3 * random.normal(size=(CLASSES, features))
        X = random.normal(size=(2 * samples, features)) + centres[labels]
        Xs, Xt = X[:samples], 1.2 * X[samples:] + 0.5
        head = LogisticRegression(C=0.1).fit(Xs, labels[:samples])
        bare = least_time(lambda: bare_steps(Xs, Xt), runs)
        one = least_time(lambda: CovarianceAligner(map="monge").fit(Xs, Xt).transform(Xt), runs)
        gated = least_time(lambda: CovarianceAligner().fit(Xs, Xt, head=head).transform(Xt), runs)
        print(f"{samples}, {features}: bare steps {bare:.1f}, one map {one:.1f}, auto {gated:.1f} ms", flush=True)


if __name__ == "__main__":
    main()
