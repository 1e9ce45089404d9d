# SPDX-License-Identifier: Apache-2.0
"""The Frechet distance of two covariances on a GPU against what PyTorch gives there, all in this run.

    python python/bench/gpu_frechet.py [--dim 2048] [--repeat 7]      # needs a GPU, PyTorch, and itspace built with CUDA

PyTorch: Cholesky and eigvalsh of L'BL. Medians in milliseconds, from the call to the number on the host. The truth is the
sum of squares on the host (accuracy=0), which takes its time; --skip-truth leaves it out. Spectra: i^-1 and i^-0.7 turned
at random (condition numbers 2e3 and 2e2 at d = 2048), samples (4 d of them), and i^-2 (4e6).
"""
import argparse
import statistics
import time

import torch

import itspace
from itspace import _cuda


def turned(values, seed):
    generator = torch.Generator(device="cuda").manual_seed(seed)
    d = len(values)
    q = torch.linalg.qr(torch.randn(d, d, device="cuda", dtype=torch.float64, generator=generator))[0]
    sigma = (q * values) @ q.T
    return (sigma + sigma.T) / 2


def of_samples(d, seed):
    generator = torch.Generator(device="cuda").manual_seed(seed)
    X = torch.randn(4 * d, d, device="cuda", dtype=torch.float64, generator=generator)
    sigma = X.T @ X / (4 * d - 1)
    return (sigma + sigma.T) / 2


def by_eigenvalues(A, B):
    L = torch.linalg.cholesky(A)
    values = torch.linalg.eigvalsh(L.T @ B @ L)
    return float(A.trace() + B.trace() - 2 * values.clamp_min(0).sqrt().sum())


def median_ms(call, repeat):
    call()
    call()
    times = []
    for _ in range(repeat):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        value = call()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - begin)
    return 1e3 * statistics.median(times), value


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dim", type=int, default=2048)
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--skip-truth", action="store_true")
    given = parser.parse_args()
    index = torch.arange(1, given.dim + 1, device="cuda", dtype=torch.float64)
    cases = {
        "i^-1 and i^-0.7": (turned(index**-1.0, 1), turned(index**-0.7, 2)),
        "samples": (of_samples(given.dim, 3), 2 * of_samples(given.dim, 4)),
        "i^-2 and i^-1": (turned(index**-2.0, 5), turned(index**-1.0, 6)),
    }
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, d = {given.dim}, float64")
    for name, (A, B) in cases.items():
        ours, value = median_ms(lambda: itspace.bures_wasserstein(A, B, squared=True, accuracy=1e-9), given.repeat)
        theirs, other = median_ms(lambda: by_eigenvalues(A, B), given.repeat)
        stream = torch.cuda.current_stream().cuda_stream
        _, error, on_host, products = _cuda.dense_distance(_cuda.Device(0, stream), A, B, 1e-9)
        print(f"{name}: itspace {ours:.1f} ms ({products} products{', ON THE HOST' if on_host else ''}, bound {error / value:.1e}), "
              f"PyTorch {theirs:.1f} ms, ratio {theirs / ours:.2f}")  # fmt: skip
        if not given.skip_truth:
            truth = itspace.bures_wasserstein(A.cpu(), B.cpu(), squared=True, accuracy=0)
            print(f"  off by {abs(value - truth) / truth:.1e}, PyTorch by {abs(other - truth) / truth:.1e}")


if __name__ == "__main__":
    main()
