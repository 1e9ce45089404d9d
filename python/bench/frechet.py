# SPDX-License-Identifier: Apache-2.0
"""The Frechet distance against the route of FID packages (scipy.linalg.sqrtm of the product), both in this run.

    python python/bench/frechet.py [--dim 2048] [--samples 10000] [--repeat 3] [--skip-sqrtm]

Prints seconds, the ratio and both values, then singular cases (fewer samples than features).
"""
import argparse
import time
import warnings

import numpy as np

import itspace


def by_sqrtm(mu1, sigma1, mu2, sigma2):
    from scipy.linalg import sqrtm

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        root = sqrtm(sigma1 @ sigma2)
    return float(np.sum((mu1 - mu2) ** 2) + np.trace(sigma1) + np.trace(sigma2) - 2 * np.trace(np.real(root)))


def seconds(call, repeat):
    best, value = np.inf, None
    for _ in range(repeat):
        begin = time.perf_counter()
        value = call()
        best = min(best, time.perf_counter() - begin)
    return best, value


def features(rng, samples, dim, decay, shift):
    basis = np.linalg.qr(rng.standard_normal((dim, dim)))[0]
    scale = np.arange(1, dim + 1) ** -decay
    return (rng.standard_normal((samples, dim)) * scale) @ basis.T + shift


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--dim", type=int, default=2048)
    arguments.add_argument("--samples", type=int, default=10000)
    arguments.add_argument("--repeat", type=int, default=3)
    arguments.add_argument("--skip-sqrtm", action="store_true")
    given = arguments.parse_args()
    rng = np.random.default_rng(0)
    print(f"d = {given.dim}")
    for name, samples in (("full rank", given.samples), ("n < d", given.dim // 4)):
        a = features(rng, samples, given.dim, 0.5, 0.0)
        b = features(rng, samples, given.dim, 0.7, 0.1)
        moments = a.mean(0), np.cov(a.T), b.mean(0), np.cov(b.T)
        ours, value = seconds(lambda: itspace.frechet_distance(*moments), given.repeat)
        print(f"{name}, {samples} samples: itspace {ours:.2f} s, value {value!r}")
        begin = time.perf_counter()
        exact = itspace.frechet_distance_from_features(a, b)
        print(f"  from features {time.perf_counter() - begin:.2f} s, value {exact!r}, difference {abs(value - exact) / exact:.1e}")
        if not given.skip_sqrtm:
            theirs, other = seconds(lambda: by_sqrtm(*moments), 1)
            print(f"  scipy.linalg.sqrtm {theirs:.2f} s, value {other!r}, difference {abs(other - exact) / exact:.1e}; ratio {theirs / ours:.1f}")


if __name__ == "__main__":
    main()
