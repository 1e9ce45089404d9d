# SPDX-License-Identifier: Apache-2.0
"""Targets whose samples are spread over the processes of an MPI job, through mpi4py's communicator.

    from mpi4py import MPI
    import itspace, itspace.mpi

    target = itspace.mpi.FeatureRows(my_rows, MPI.COMM_WORLD)     # on every rank, each with its own rows
    result = itspace.align(target, rank=16, steps=5)              # on every rank, with the same bits

``mpirun -n 8 python program.py`` runs it. Every rank makes the same calls. A product costs one exchange of a (d, k) block,
summed in the order of the ranks, so that all of them hold the same bits; each rank multiplies by its own rows with the
library's kernels. The exchange itself is mpi4py's: the C++ room `itspace::mpi` is not part of the Python module.
"""
from __future__ import annotations

from typing import Any, Callable, List, Optional

import numpy as np

import itspace

__all__ = ["FeatureRows", "agreed"]


def _shares(comm: Any, rows: int) -> List[int]:
    return [rows * p // comm.size for p in range(comm.size + 1)]


def _sum(comm: Any, part: np.ndarray) -> np.ndarray:
    """The sum of a block over the ranks: rank p adds up its share of the rows in double, in the order of the ranks, and
    tells the others. The same bits on every rank, whatever MPI does underneath."""
    part = np.ascontiguousarray(part)
    ends, width = _shares(comm, part.shape[0]), part.shape[1]
    counts = [(b - a) * width for a, b in zip(ends, ends[1:])]
    places = [a * width for a in ends[:-1]]
    mine = counts[comm.rank]
    came = np.empty((comm.size, mine), part.dtype)
    comm.Alltoallv([part, (counts, places)], [came, ([mine] * comm.size, [mine * p for p in range(comm.size)])])
    total = np.zeros(mine)
    for piece in came:
        total += piece
    out = np.empty_like(part)
    comm.Allgatherv(total.astype(part.dtype), [out, (counts, places)])
    return out


def _agree(comm: Any, work: Callable[[], Any]) -> Any:
    """The work of this rank; where it fails on one of them, all raise."""
    outcome, problem = None, None
    try:
        outcome = work()
    except (TypeError, ValueError) as error:
        problem = f"{error}"
    problems = comm.allgather(problem)
    for rank, found in enumerate(problems):
        if found is not None:
            alike = all(other == found for other in problems)
            raise ValueError(found if alike else f"on rank {rank} of {comm.size}: {found}")
    return outcome


class FeatureRows:
    """The covariance of the rows of all ranks (divided by n - 1), as a target for `itspace.align` and its like.

    Parameters
    ----------
    X : array (n_p, d)
        The samples of this rank, float32 or float64; none (0, d) is allowed on some ranks.
    comm : mpi4py communicator, optional
        ``MPI.COMM_WORLD`` by default.

    With n_p rows, mean mu_p and covariance Sigma_p on rank p, (n - 1) Sigma is the sum over p of (n_p - 1) Sigma_p and
    n_p (mu_p - mu)(mu_p - mu)'. Means are taken about one row, in double. Where the blocks of the ranks differ (another
    kind of processor, another number of threads) `apply` raises on all of them.
    """

    def __init__(self, X: Any, comm: Optional[Any] = None) -> None:
        if comm is None:
            from mpi4py import MPI

            comm = MPI.COMM_WORLD
        self.comm = comm

        def checked() -> np.ndarray:
            rows = np.asarray(X)
            if rows.ndim != 2 or rows.shape[1] < 1:
                raise ValueError(f"X is an array of shape {rows.shape}; give samples in rows, (n, d) with d >= 1")
            if rows.dtype not in (np.float32, np.float64):
                rows = rows.astype(np.float64)
            if not np.isfinite(rows).all():
                i, j = np.argwhere(~np.isfinite(rows))[0]
                raise ValueError(f"X[{i}, {j}] is {rows[i, j]}; all values must be finite. Remove or replace such rows first")
            return np.ascontiguousarray(rows)

        rows = _agree(comm, checked)
        seen = comm.allgather((rows.shape, rows.dtype.str))
        for rank, (shape, kind) in enumerate(seen):
            if shape[1] != seen[0][0][1] or kind != seen[0][1]:
                raise ValueError(
                    f"rank {rank} has rows of {shape[1]} values ({kind}) and rank 0 of {seen[0][0][1]} ({seen[0][1]}); "
                    "all ranks must have the same"
                )
        counts = [shape[0] for shape, _ in seen]
        n, own = sum(counts), rows.shape[0]
        if n < 2:
            raise ValueError(f"there are {n} row(s) on all ranks together; a covariance needs at least 2 samples")
        first = next(p for p, count in enumerate(counts) if count > 0)
        origin = comm.bcast(rows[0].astype(np.float64) if comm.rank == first else None, root=first)
        about = np.zeros(rows.shape[1])
        for start in range(0, own, 1024):  # no double copy of the rows
            about += (rows[start : start + 1024].astype(np.float64) - origin).sum(axis=0)
        mean = _sum(comm, about[:, None])[:, 0] / n
        self.samples = n
        self.dim = rows.shape[1]
        self.dtype = rows.dtype
        self._share = max(0, own - 1) / (n - 1)
        self._mean_share = own / (n - 1)
        self._difference = about / own - mean if own > 0 else None
        self._own = itspace.Target.from_features(rows) if own > 1 else None
        trace = self._share * self._own.trace if self._own is not None else 0.0
        if self._difference is not None:
            trace += self._mean_share * float(self._difference @ self._difference)
        self.trace = float(_sum(comm, np.array([[trace]]))[0, 0])

    def apply(self, Y: Any) -> np.ndarray:
        """The product Sigma @ Y, the same bits on every rank."""
        Y = np.ascontiguousarray(Y, dtype=self.dtype)
        stamps = self.comm.allgather(_fingerprint(Y))
        if any(stamp != stamps[0] for stamp in stamps):
            raise RuntimeError(
                "the ranks have different blocks where all must have the same bits: they must be machines of one kind, "
                "with the same number of threads, and make the same calls"
            )
        part = np.zeros(Y.shape) if self._own is None else self._share * np.asarray(self._own.apply(Y), dtype=np.float64)
        if self._difference is not None:
            part += np.outer(self._difference, self._mean_share * (self._difference @ Y.astype(np.float64)))
        return _sum(self.comm, part.astype(self.dtype))


def _fingerprint(Y: np.ndarray) -> int:
    words = np.frombuffer(Y.tobytes().ljust(-(-Y.nbytes // 8) * 8, b"\0"), dtype=np.uint64)
    weights = np.arange(1, 2 * len(words) + 1, 2, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    return int((words * weights).sum(dtype=np.uint64))


def agreed(callback: Callable[[Any, Any], Any], comm: Optional[Any] = None) -> Callable[[Any, Any], bool]:
    """A callback for `itspace.align` that stops the run on all ranks where that of one of them returns true."""
    if comm is None:
        from mpi4py import MPI

        comm = MPI.COMM_WORLD
    ranks = comm
    return lambda step, factor: any(ranks.allgather(bool(callback(step, factor))))
