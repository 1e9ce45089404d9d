# SPDX-License-Identifier: Apache-2.0
"""What PyTorch gives on the same GPU: the step as an expert would write it.

    python3 bench/gpu_reference.py            # needs a GPU and PyTorch; prints a table

A step is the one-pass form: W = Sigma Y, the inverse root of Y'W in float64, the blend, and the objective. Eager with an
eigendecomposition; captured in a CUDA graph with 12 Newton-Schulz iterations; the graph of the bare products.
The covariance is that of tests/cuda/cuda_check.cpp: eigenvalues 1/i,
turned by a reflection.
"""

import statistics
import time

import torch

RANK, STEPS, ALPHA = 16, 20, 0.9


def covariance(dim, dtype):
    generator = torch.Generator(device="cuda").manual_seed(3)
    v = torch.randn(dim, device="cuda", dtype=torch.float64, generator=generator)
    v /= v.norm()
    values = 1 / torch.arange(1, dim + 1, device="cuda", dtype=torch.float64)
    inner = (v * v * values).sum()
    sigma = torch.empty(dim, dim, device="cuda", dtype=dtype)
    for first in range(0, dim, 1024):
        rows = slice(first, min(dim, first + 1024))
        sigma[rows] = (v[rows, None] * v * (4 * inner - 2 * (values[rows, None] + values))).to(dtype)
    sigma.diagonal().add_(values.to(dtype))
    return sigma, values


def blend(y, w, root, alpha):
    return (1 - alpha) * y + alpha * (w @ root.to(w.dtype))


def eigen_step(sigma, y):
    w = sigma @ y
    g = (y.T @ w).double()
    values, vectors = torch.linalg.eigh((g + g.T) / 2)
    root = (vectors * values.clamp_min(1e-30).rsqrt()) @ vectors.T
    return blend(y, w, root, ALPHA), (y * y).sum() - 2 * values.clamp_min(0).sqrt().sum()


def iterated_step(sigma, y, rounds=12):
    w = sigma @ y
    g = (y.T @ w).double()
    g = (g + g.T) / 2
    size = torch.linalg.matrix_norm(g)
    identity = torch.eye(g.shape[0], device="cuda", dtype=torch.float64)
    a, z = g / size, identity
    for _ in range(rounds):
        t = 1.5 * identity - 0.5 * z @ a
        a, z = a @ t, t @ z
    return blend(y, w, z / size.sqrt(), ALPHA), (y * y).sum() - 2 * torch.trace(a) * size.sqrt()


def median_us(call, repeats=15):
    for _ in range(3):
        call()
    torch.cuda.synchronize()
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        call()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - begin)
    return statistics.median(times) * 1e6


def graph_of(call):
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    return graph.replay


def steps_table():
    print("| d | type | eager, eigen | graph, Newton-Schulz | graph, bare products |\n|---|---|---|---|---|")
    for dim in (2048, 8192, 32768):
        for dtype in (torch.float32, torch.float64):
            if dim == 32768 and dtype == torch.float64:
                continue
            sigma, _ = covariance(dim, dtype)
            start = sigma @ torch.randn(dim, RANK, device="cuda", dtype=dtype)

            def run(step, sigma=sigma, start=start):
                y, record = start, []
                for _ in range(STEPS):
                    y, objective = step(sigma, y)
                    record.append(objective)
                return y, torch.stack(record)

            def products(sigma=sigma, start=start):
                for _ in range(STEPS):
                    sigma @ start

            eager = median_us(lambda run=run: run(eigen_step)) / STEPS
            graph = median_us(graph_of(lambda run=run: run(iterated_step))) / STEPS
            bare = median_us(graph_of(products)) / STEPS
            print(f"| {dim} | {str(dtype)[6:]} | {eager:.1f} us | {graph:.1f} us | {bare:.1f} us |", flush=True)
            del sigma
            torch.cuda.empty_cache()


def main():
    torch.backends.cuda.matmul.allow_tf32 = False
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, r = {RANK}, K = {STEPS}: microseconds a step")
    steps_table()


if __name__ == "__main__":
    main()
