# SPDX-License-Identifier: Apache-2.0
"""The barycenter of rank r beside the full-rank ones of POT and pyRiemann, all in this run.

    python python/bench/barycenter.py [--count 100] [--dim 512] [--rank 16] [--steps 50] [--tolerance 1e-6] [--iterations N]

Prints seconds, iterations, and the rank-r objective sum_i w_i W2^2(YY', Sigma_i): of the result of `itspace.barycenter`,
and of the leading rank-r part of what the others return. A package that is not installed is left out. `--iterations` bounds
theirs (their own defaults otherwise).
"""
import argparse
import time
import warnings

import numpy as np

import itspace


def covariances(rng, count, dim):
    """Each of its own samples: a common spectrum 1/k whose scales and directions differ from one to the next."""
    basis = np.linalg.qr(rng.standard_normal((dim, dim)))[0]
    out = np.empty((count, dim, dim))
    for sigma in out:
        scales = np.arange(1, dim + 1) ** -0.5 * np.exp(0.3 * rng.standard_normal(dim))
        turned = np.linalg.qr(basis + 0.5 / np.sqrt(dim) * rng.standard_normal((dim, dim)))[0]
        samples = (rng.standard_normal((2 * dim, dim)) * scales) @ turned.T
        sigma[:] = np.cov(samples.T)
    return out


def pot(sigmas, iterations):
    from ot.gaussian import bures_wasserstein_barycenter

    options = {} if iterations is None else {"num_iter": iterations}
    found = bures_wasserstein_barycenter(np.zeros(sigmas.shape[:2]), sigmas, log=True, **options)
    return found[1]


def pyriemann(sigmas, iterations):
    from pyriemann.utils.mean import mean_wasserstein

    return mean_wasserstein(sigmas, **({} if iterations is None else {"maxiter": iterations}))


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--count", type=int, default=100)
    arguments.add_argument("--dim", type=int, default=512)
    arguments.add_argument("--rank", type=int, default=16)
    arguments.add_argument("--steps", type=int, default=50)
    arguments.add_argument("--tolerance", type=float, default=1e-6)
    arguments.add_argument("--iterations", type=int)
    given = arguments.parse_args()
    sigmas = covariances(np.random.default_rng(0), given.count, given.dim)
    targets = [itspace.Target.from_covariance(sigma, check=False) for sigma in sigmas]
    print(f"{given.count} covariances, d = {given.dim}, r = {given.rank}, {itspace.threads()} thread(s)", flush=True)

    def rank_objective(factor):
        return itspace.barycenter(targets, start=factor, steps=0).objective

    begin = time.perf_counter()
    result = itspace.barycenter(targets, rank=given.rank, steps=given.steps, tolerance=given.tolerance)
    ours = time.perf_counter() - begin
    steps = len(result.trace["objective"]) - 1
    print(f"itspace: {ours:.2f} s, {steps} steps ({result.status}), rank-r objective {result.objective:.8g}, certified {result.certified}", flush=True)
    for name, call in (("POT", pot), ("pyRiemann", pyriemann)):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # that it has not converged within --iterations
                begin = time.perf_counter()
                full = np.asarray(call(sigmas, given.iterations))
                theirs = time.perf_counter() - begin
        except ImportError:
            print(f"{name}: not installed")
            continue
        value = rank_objective(itspace.start_from(np.ascontiguousarray((full + full.T) / 2), given.rank))
        print(
            f"{name}: {theirs:.2f} s ({theirs / ours:.0f} x), of full rank; rank-r objective of its leading part {value:.8g} "
            f"({(value - result.objective) / result.objective:+.2e} of ours)",
            flush=True,
        )


if __name__ == "__main__":
    main()
