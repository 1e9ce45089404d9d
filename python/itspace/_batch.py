# SPDX-License-Identifier: Apache-2.0
"""align_batch: many small problems in one call."""
from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Dict, List, Literal, Optional, Union

import numpy as np

from . import _core, _gpu
from ._align import step_options
from ._arrays import give, integer, seed_of, take
from ._gpu import on_gpu
from ._result import AlignResult, ResolutionWarning
from ._types import Array, Precision, Route, Solver

_FAILED = ("certificate_failed", "not_finite", "not_a_covariance", "not_run")


@dataclass(repr=False, eq=False)
class BatchResult:
    """What `align_batch` returns: one entry for each problem, in order.

    Attributes
    ----------
    factors : array (B, d, r)
        The best iterates. In the dtype of the run and the library of the targets.
    objectives : array (B, steps + 1)
        W2^2 of each iterate; NaN where the run ended before it.
    status : array (B,) of str
        As in `AlignResult`, and 'not_run' where there was no run because memory ran out.
    certified : array (B,) of bool
    best : array (B,) of int
        Which iterate the factor is.
    reasons : dict
        ``{i: sentence}`` for the problems whose status does not say all.
    traces : list of dicts
        As ``AlignResult.trace``, where keep_traces was given; else empty.
    """

    factors: Any
    objectives: "np.ndarray[Any, Any]"
    status: "np.ndarray[Any, Any]"
    certified: "np.ndarray[Any, Any]"
    best: "np.ndarray[Any, Any]"
    reasons: Dict[int, str]
    traces: List[Dict[str, Any]]

    @property
    def objective(self) -> "np.ndarray[Any, Any]":
        """W2^2 at the factors, (B,)."""
        return np.take_along_axis(self.objectives, self.best[:, None], axis=1)[:, 0]

    def __len__(self) -> int:
        return len(self.status)

    def __repr__(self) -> str:
        names, counts = np.unique(self.status, return_counts=True)
        ends = ", ".join(f"{count} {name}" for name, count in zip(names, counts)) or "none"
        return f"<itspace.BatchResult of {len(self)} problems: {ends}; {int(self.certified.sum())} certified>"


def _warn_of_failures(result: BatchResult) -> None:
    bad = np.flatnonzero(np.isin(result.status, _FAILED))
    if bad.size == 0:
        return
    first = int(bad[0])
    reason = f" ({result.reasons[first]})" if first in result.reasons else ""
    more = "" if bad.size == 1 else f", the first of {bad.size} of {len(result)} that failed"
    warnings.warn(
        f"targets[{first}] ended as {result.status[first]}{reason}{more}; the factor of such a problem is the best iterate "
        "before that, mostly its start. The others are not affected; see status and reasons",
        RuntimeWarning,
        stacklevel=3,
    )


def align_batch(
    targets: Array,
    starts: Optional[Array] = None,
    rank: Optional[int] = None,
    *,
    features: bool = False,
    steps: int = 2,
    alpha: Union[float, Literal["line-search"], None] = None,
    lam: Optional[float] = None,
    solver: Solver = "paper",
    route: Route = "auto",
    guard: Optional[int] = None,
    seed: int = 0,
    precision: Optional[Precision] = None,
    keep_traces: bool = False,
) -> BatchResult:
    """Align many small covariances at once: each problem as `align` would on one thread, bit for bit, on all threads.

    Parameters
    ----------
    targets : array (B, d, d), or (B, n, d) with features=True
        Covariances, or samples (one per row) whose covariances are never formed.
    starts : array (B, d, r), optional
        The factors to start from. None: the seeded random start of `align`, for each target.
    rank : int, optional
        The rank r; needed without starts.
    features : bool
        Whether the last two axes of `targets` are samples x features.
    steps, alpha, lam, solver, route, guard, seed, precision
        As in `align`, the same for all problems.
    keep_traces : bool
        Fill ``result.traces``.

    Returns
    -------
    BatchResult

    Notes
    -----
    What is wrong with one problem is its own outcome and does not stop the others: a covariance that is not finite, not
    symmetric or has a negative variance, which `align` refuses, gets the status 'not_finite' or 'not_a_covariance', its
    start for a factor (NaN without starts) and an entry in ``reasons``; a warning names the first. C-contiguous float32
    and float64 are read where they lie. The interpreter's lock is released, and Ctrl-C stops the call. Tensors of a GPU are
    solved there, and the factors stay there (docs/gpu.md): objectives and YY' are then the host's to rounding.

    Examples
    --------
    >>> import numpy as np, itspace
    >>> X = np.random.default_rng(0).standard_normal((100, 50, 8)) * np.linspace(3, 1, 8)
    >>> result = itspace.align_batch(X, rank=2, features=True, steps=3)
    >>> result.factors.shape, result.objectives.shape
    ((100, 8, 2), (100, 4))
    >>> bool(result.certified.all()), bool((np.diff(result.objectives) < 0).all())
    (True, True)
    """
    if precision not in (None, "float32", "mixed", "float64"):
        raise ValueError(f"precision is {precision!r}; it must be 'float32', 'mixed', 'float64' or None")
    there = on_gpu(targets, starts)
    mixed = precision == "mixed" and not there
    stack: Any
    first: Any = None
    wrap: Any = None
    if there:
        taken, first = _gpu.take_stacks(targets, starts, precision)
        stack = taken.array
    else:
        stack, wrap = take(targets, "targets", 3)
        if precision is not None:
            stack = stack.astype(np.float64 if precision == "float64" else np.float32, copy=False)
        if starts is not None:
            first, _ = take(starts, "starts", 3, np.float64 if mixed else stack.dtype)
    if not features and stack.shape[1] != stack.shape[2]:
        raise ValueError(
            f"targets has shape {tuple(stack.shape)}; a stack of covariances is (B, d, d). If their rows are samples, pass "
            "features=True"
        )
    if first is not None:
        columns = int(first.shape[2])
        if rank is not None and integer(rank, "rank") != columns:
            raise ValueError(
                f"rank is {rank} and starts has {columns} columns; starts are (B, d, rank): pass rank={columns}, or leave it out"
            )
    elif rank is None:
        raise TypeError("neither rank nor starts is given; pass rank=r, or starts of shape (B, d, r)")
    elif isinstance(rank, str) and rank == "auto":
        raise ValueError(
            f"rank is {rank!r}; the problems of a batch share one rank, an integer: itspace.auto_rank(target) finds that of one"
        )
    else:
        columns = integer(rank, "rank")
    steps, seed = integer(steps, "steps"), seed_of(seed)
    fixed, lam, line_search, guard = step_options(alpha, lam, solver, route, guard)
    options: List[Any] = [steps, fixed, lam, line_search, solver, route, guard, seed, bool(keep_traces)]
    if there:
        outcome = _gpu.align_batch(taken, first, columns, bool(features), options)
    else:
        outcome = _core.align_batch(stack, first, columns, bool(features), mixed, *options)
    factors, objectives, status, reasons, best, certified, unresolved, records = outcome
    factors = factors.reshape((stack.shape[0], stack.shape[2], columns))
    result = BatchResult(
        give(factors, wrap),
        objectives,
        np.array(status, dtype=str),
        certified.view(np.bool_),
        best,
        reasons,
        [AlignResult(factor, record, []).trace for factor, record in zip(factors, records)],
    )
    _warn_of_failures(result)
    if unresolved and (taken.float32 if there else factors.dtype == np.float32):
        mixing = "" if there else "precision='mixed' (float32 data, float64 arithmetic and factors), or "
        warnings.warn(
            f"float32 does not know W2^2 to 1 % in {unresolved} of {len(result)} problems. Pass {mixing}float64 data",
            ResolutionWarning,
            stacklevel=2,
        )
    return result


__all__ = ["BatchResult", "align_batch"]
