# SPDX-License-Identifier: Apache-2.0
"""The loop that someone writes in NumPy for many small problems: a line of the table of itspace_batch.

The step of the paper by its r x r form, W = Sigma Y, G = Y'W, B = W G^(-1/2), Y <- Y + alpha (B - Y), with the objective
of every iterate and nothing else: no certificate, no care for null directions.
"""

from __future__ import annotations

import statistics
import time

import numpy as np


def run(sigma: np.ndarray, y: np.ndarray, steps: int, alpha: float = 1.1) -> tuple[np.ndarray, list[float]]:
    trace = np.trace(sigma)
    objectives = []
    for k in range(steps + 1):
        w = sigma @ y
        values, vectors = np.linalg.eigh(y.T @ w)
        roots = np.sqrt(np.maximum(values, 0))
        objectives.append(float(np.sum(y * y) + trace - 2 * roots.sum()))
        if k < steps:
            b = w @ ((vectors / roots) @ vectors.T)
            y = y + alpha * (b - y)
    return y, objectives


def main() -> None:
    rng = np.random.default_rng(1)
    for dtype, name in ((np.float64, 'f64'), (np.float32, 'f32')):
        count, d, r, steps = 1000, 64, 8, 2
        x = rng.normal(size=(64, 2 * d, d)) * 8.0 ** (-np.arange(d) / d)
        sigmas = (np.einsum('bni,bnj->bij', x, x) / (2 * d)).astype(dtype)
        starts = rng.normal(size=(count, d, r)).astype(dtype)
        seconds = []
        for _ in range(5):
            begin = time.perf_counter()
            for i in range(count):
                run(sigmas[i % len(sigmas)], starts[i], steps)
            seconds.append(time.perf_counter() - begin)
        print(f'| {name} {count} x ({d}, {r}), K={steps} | a loop in NumPy {np.__version__} | as BLAS has them '
              f'| {1e6 * statistics.median(seconds) / count:.2f} | |')


if __name__ == '__main__':
    main()
