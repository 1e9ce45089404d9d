# SPDX-License-Identifier: Apache-2.0
"""10,000 alignments of 64 x 64 covariances at rank 8, two steps: a loop of NumPy, a loop of align, align_batch.

The loop of NumPy is the paper's Gram route as one would write it: W = S Y, G = Y'W, eigh of the r x r matrix G,
B = W G^(-1/2), Y <- (1 - alpha) Y + alpha B, with the objective of every iterate. It certifies nothing.
"""
import argparse
import statistics
import time

import numpy as np

import itspace


def gram_route(S, Y, steps, alpha):
    trace = np.trace(S)
    objectives = np.empty(steps + 1)
    for k in range(steps + 1):
        W = S @ Y
        values, vectors = np.linalg.eigh(Y.T @ W)
        roots = np.sqrt(np.maximum(values, 0))
        objectives[k] = np.sum(Y * Y) + trace - 2 * roots.sum()
        if k < steps:
            B = W @ ((vectors / roots) @ vectors.T)
            Y = (1 - alpha) * Y + alpha * B
    return Y, objectives


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    count, d, r, steps, alpha = arguments.problems, 64, 8, 2, 1.1
    rng = np.random.default_rng(0)
    S = np.empty((count, d, d))
    for i in range(count):
        X = rng.standard_normal((2 * d, d)) * (3 / np.arange(1, d + 1))
        S[i] = X.T @ X / len(X)
    S = (S + S.transpose(0, 2, 1)) / 2
    starts = rng.standard_normal((count, d, r))

    def numpy_loop():
        return [gram_route(S[i], starts[i], steps, alpha)[1] for i in range(count)]

    def align_loop():
        return [itspace.align(S[i], starts[i], alpha=alpha).trace["objective"] for i in range(count)]

    def on(threads):
        def call():
            with itspace.thread_limit(threads):
                return itspace.align_batch(S, starts, alpha=alpha).objectives

        return call

    ways = {"NumPy, one by one": numpy_loop, "align, one by one": align_loop}
    ways.update({f"align_batch, {n} thread(s)": on(n) for n in range(1, itspace.threads() + 1)})
    seconds = {name: [] for name in ways}
    expected = np.array(numpy_loop())
    for _ in range(arguments.repeats):
        for name, way in ways.items():
            begin = time.perf_counter()
            found = way()
            seconds[name].append(time.perf_counter() - begin)
            np.testing.assert_allclose(found, expected, rtol=1e-6)
    slowest = statistics.median(seconds["NumPy, one by one"])
    for name, values in seconds.items():
        median = statistics.median(values)
        print(f"{name:26} {median / count * 1e6:8.1f} us per problem (fastest {min(values) / count * 1e6:.1f}), {slowest / median:6.2f}x")


if __name__ == "__main__":
    main()
