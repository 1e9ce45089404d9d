# SPDX-License-Identifier: Apache-2.0
"""From a covariance on the GPU to a factor of rank 16: this package beside what PyTorch gives there, in one run.

    python3 bench/gpu_ways.py [D ...]         # needs a GPU, PyTorch, and itspace built with CUDA; prints a table

Each method with the least effort (steps, iterations) that comes within the gap, and whole calls: nothing is prepared but
Sigma. The gap is (W2^2 - floor)/(tr Sigma - floor), measured in float64: 1 for no factor at all, 0 for the best of its rank.
Sigma is that of gpu_reference.py, in float32. Medians, in milliseconds, of calls that end with the device idle.
"""

import statistics
import sys
import time
from typing import Callable, Dict, Iterable, NamedTuple

import torch
from gpu_reference import RANK, covariance

import itspace

GAPS = (0.02, 1e-6)
EFFORTS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)


class Way(NamedTuple):
    run: Callable[[int], torch.Tensor]
    efforts: Iterable[int] = EFFORTS


def median_ms(call):
    """Of as many calls as fit into half a second, three at the least."""
    call()
    times = []
    while len(times) < 3 or (sum(times) < 0.5 and len(times) < 41):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        call()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - begin)
    return 1e3 * statistics.median(times)


def ways(sigma) -> Dict[str, Way]:
    dim = len(sigma)

    def ours(solver):
        def run(steps):
            target = itspace.Target.from_covariance(sigma, check=False)
            return itspace.align(target, rank=RANK, steps=steps, solver=solver).factor

        return run

    def by_svd(columns):
        def run(iterations):
            u, s, _ = torch.svd_lowrank(sigma, q=columns, niter=iterations)
            return u[:, :RANK] * s[:RANK].sqrt()

        return run

    def by_lobpcg(iterations):
        s, u = torch.lobpcg(sigma, k=RANK, niter=iterations)
        return u * s.clamp_min(0).sqrt()

    def by_eigh(_):
        s, u = torch.linalg.eigh(sigma)
        return u[:, -RANK:] * s[-RANK:].clamp_min(0).sqrt()

    def by_the_root(steps):
        s, u = torch.linalg.eigh(sigma)
        root = (u * s.clamp_min(0).sqrt()) @ u.T
        y = sigma @ torch.randn(dim, RANK, device="cuda")
        y *= (sigma.trace() / (y * y).sum()).sqrt()
        for _ in range(steps):
            left, _, right = torch.linalg.svd(root @ y, full_matrices=False)
            y = y + 1.3 * (root @ (left @ right) - y)
        return y

    return {
        "itspace, paper": Way(ours("paper")),
        "itspace, ritz": Way(ours("ritz"), EFFORTS[:10]),
        "svd_lowrank, q = 16": Way(by_svd(RANK), (0, *EFFORTS)),
        "svd_lowrank, q = 24": Way(by_svd(RANK + 8), (0, *EFFORTS)),
        "svd_lowrank, q = 32": Way(by_svd(2 * RANK), (0, *EFFORTS)),
        "lobpcg": Way(by_lobpcg, EFFORTS[:12]),
        "eigh, truncated": Way(by_eigh, (1,)),
        "the paper's root, in PyTorch": Way(by_the_root),
    }


def gap_of(factor, sigma, values):
    y = factor.double()
    g = y.T @ torch.cat([rows.double() @ y for rows in sigma.split(1024)])
    objective = (y * y).sum() + values.sum() - 2 * torch.linalg.eigvalsh((g + g.T) / 2).clamp_min(0).sqrt().sum()
    floor = values[RANK:].sum()
    return float((objective - floor) / (values.sum() - floor))


def least_effort(way, gap, within):
    """The least effort that comes within the gap, where more of it never does worse; None where none does."""
    missed = None
    for effort in way.efforts:
        if gap(way.run(effort)) <= within:
            break
        missed = effort
    else:
        return None
    while missed is not None and effort - missed > 1:
        middle = (missed + effort) // 2
        if gap(way.run(middle)) <= within:
            effort = middle
        else:
            missed = middle
    return effort


def main():
    torch.backends.cuda.matmul.allow_tf32 = False
    dims = [int(argument) for argument in sys.argv[1:]] or [2048, 4096, 8192]
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, itspace {itspace.__version__}, r = {RANK}, float32\n")
    print("| d | way | " + " | ".join(f"to {gap:g}, ms | effort" for gap in GAPS) + " |")
    print("|---|---|" + "---|---|" * len(GAPS))
    for dim in dims:
        torch.manual_seed(0)
        sigma, values = covariance(dim, torch.float32)
        for name, way in ways(sigma).items():
            cells = []
            for within in GAPS:
                effort = least_effort(way, lambda factor: gap_of(factor, sigma, values), within)
                cells.append("never |" if effort is None else f"{median_ms(lambda: way.run(effort)):.2f} | {effort}")
            print(f"| {dim} | {name} | " + " | ".join(cells) + " |", flush=True)
        del sigma
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
