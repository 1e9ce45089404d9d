# SPDX-License-Identifier: Apache-2.0
"""barycenter: one low-rank covariance for many targets."""
from __future__ import annotations

import warnings
from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

import numpy as np

from . import _core
from ._align import Callback, in_library
from ._arrays import Wrap, integer, number, seed_of, take, vector
from ._as_target import as_target, in_precision, with_blocks
from ._result import STATUS_WARNING, AlignResult, record_of, warn_unresolved
from ._target import Target
from ._types import Array, Covariance, Precision

Targets = Union[Sequence[Covariance], Array]


class BarycenterResult(AlignResult):
    """What `barycenter` returns: an `AlignResult` whose objective is the weighted mean of W2^2, and

    Attributes
    ----------
    weights : array (m,)
        As used: divided by their sum.
    objectives : array (m,)
        W2^2 of the factor to each target; NaN for a weight of 0.
    start_objectives : array
        The objective at the end of the run from each start.
    best_start : int
        Which of them the factor and the trace are of.
    """

    __slots__ = ("weights", "objectives", "start_objectives", "best_start")

    weights: np.ndarray
    objectives: np.ndarray
    start_objectives: np.ndarray
    best_start: int

    def __init__(self, factor: Any, record: _core.Trace, iterates: List[Any], *more: Any) -> None:
        super().__init__(factor, record, iterates)
        self.weights, self.objectives, self.start_objectives, self.best_start = more

    def __reduce__(self) -> Any:
        return _restore, (
            self.factor, self.trace, self.iterates, self.weights, self.objectives, self.start_objectives, self.best_start,
        )  # fmt: skip

    def __repr__(self) -> str:
        return super().__repr__().replace("AlignResult", f"BarycenterResult of {len(self.weights)} targets:", 1)


def _restore(factor: Any, trace: Dict[str, Any], iterates: List[Any], *more: Any) -> BarycenterResult:
    return BarycenterResult(factor, record_of(trace), iterates, *more)


def _each(targets: Any) -> List[Any]:
    """The targets of a list, or the matrices of a stack."""
    if isinstance(targets, Target) or (hasattr(targets, "apply") and hasattr(targets, "dim") and not hasattr(targets, "shape")):
        raise TypeError("targets is one target; a barycenter is that of several: pass them in a list")
    shape = getattr(targets, "shape", None)
    if shape is not None:
        if len(shape) != 3:
            raise ValueError(
                f"targets is an array of shape {tuple(shape)}; a stack of covariances is (m, d, d). Pass targets of other "
                "kinds, such as itspace.Target.from_features(X), in a list"
            )
        return [targets[i] for i in range(shape[0])]
    try:
        return list(targets)
    except TypeError:
        raise TypeError(f"targets is a {type(targets).__name__}; it must be a list of targets, or an array (m, d, d)") from None


def as_targets(targets: Any, precision: Optional[Precision] = None) -> Tuple[List[Target], Any, Wrap]:
    """All of them with blocks of one dtype: float32 where all are, else float64."""
    made: List[Target] = []
    wrap: Wrap = None
    for i, value in enumerate(_each(targets)):
        target, its = as_target(value, f"targets[{i}]")
        wrap = wrap if i else its
        made.append(in_precision(target, precision))
    dtype = np.dtype(np.float32 if all(target.dtype == np.float32 for target in made) else np.float64)
    made = [with_blocks(target, dtype) for target in made]
    for i, target in enumerate(made):
        if target.dtype != dtype:
            raise ValueError(
                f"targets[{i}] is an object of yours that runs in {target.dtype}, and the others run in {dtype}; give it an "
                f"attribute dtype of {dtype}"
            )
    return made, dtype, wrap


def barycenter(
    targets: Targets,
    weights: Optional[Array] = None,
    *,
    rank: Optional[int] = None,
    start: Optional[Array] = None,
    steps: int = 50,
    alpha: Optional[float] = None,
    tolerance: float = 1e-6,
    subset: int = 0,
    starts: int = 1,
    seed: int = 0,
    precision: Optional[Precision] = None,
    callback: Optional[Callback] = None,
    keep_iterates: bool = False,
) -> BarycenterResult:
    """The Bures-Wasserstein barycenter of many covariances, of rank <= r: min over Y of sum_i w_i W2^2(Y Y', Sigma_i).

    Parameters
    ----------
    targets : list, or array (m, d, d)
        Covariances, `Target`s and objects with dim, trace and apply, of any kinds and ranks and of one dimension.
    weights : array (m,), optional
        0 or more each, not all 0; they are divided by their sum, with a warning where that is not 1. None: equal.
    rank : int, optional
        The rank budget r, 1 to d. None: that of the start.
    start : array (d, r), optional
        None: a seeded random start.
    steps : int
        At most; one pass over each target each.
    alpha : float, optional
        How far to go in each step, 0 < alpha < 2. None: 1 for one step, 1.1 for 2 to 4, 1.3 from five on.
    tolerance : float
        Stop when a step gains less than this share of the objective; 0: never.
    subset : int
        For many targets: move after every so many of them, in random order, and evaluate all at the end of the step, a
        second pass. Such a step is promised nothing; it is certified where the objective did not rise, and replaced by a
        plain one where it did. 0: plain steps.
    starts : int
        Runs from so many starts, of which the one that ends lowest counts: for rank < d the problem is not convex.
    seed : int
    precision : 'float32', 'mixed', 'float64' or None
        As in `align`. None: float32 where all targets are, else float64 arithmetic, over float32 data where they are that.
    callback : callable, optional
        ``callback(step, factor)`` for each iterate; a true answer stops the run.
    keep_iterates : bool

    Returns
    -------
    BarycenterResult

    Examples
    --------
    >>> import numpy as np, itspace
    >>> S = [np.diag([4.0, 1.0, 0.0]), np.diag([16.0, 1.0, 0.0])]
    >>> result = itspace.barycenter(S, rank=2)
    >>> np.round(result.factor @ result.factor.T, 6).tolist()
    [[9.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.0]]
    >>> result.certified, np.round(result.objectives, 6).tolist()
    (True, [1.0, 1.0])
    """
    made, dtype, wrap = as_targets(targets, precision)
    first: Any = None
    if start is not None:
        first = take(start, "start", 2, dtype)[0]
    if rank is None:
        if first is None:
            raise TypeError("neither rank nor start is given; pass rank=r, or a start of r columns")
        rank = first.shape[1]
    if callback is not None and not callable(callback):
        raise TypeError(f"callback is a {type(callback).__name__}; it must be callable as callback(step, factor)")
    if callback is not None and wrap is not None:
        callback = in_library(callback, wrap)
    given = None if weights is None else vector(weights, "weights")
    factor, record, iterates, shares, normalised, *more = _core.barycenter(
        [target._core for target in made], given, first, integer(rank, "rank"), integer(steps, "steps"),
        None if alpha is None else number(alpha, "alpha"), number(tolerance, "tolerance"), integer(subset, "subset"),
        integer(starts, "starts"), seed_of(seed), callback, bool(keep_iterates),
    )  # fmt: skip
    if wrap is not None:
        factor, iterates = wrap(factor), [wrap(iterate) for iterate in iterates]
    if normalised and given is not None:
        warnings.warn(f"the weights sum to {given.sum():.6g}; each was divided by that", UserWarning, stacklevel=2)
    if record.status in STATUS_WARNING:
        reason = f" ({record.reason})" if record.reason else ""
        warnings.warn(f"barycenter ended as {record.status}{reason}: {STATUS_WARNING[record.status]}", RuntimeWarning, stacklevel=2)
    unresolved = record.unresolved if dtype == np.float32 else None
    if unresolved is not None:
        warn_unresolved(unresolved, "the objective", "")
    return BarycenterResult(factor, record, iterates, shares, *more)


__all__ = ["BarycenterResult", "barycenter"]
