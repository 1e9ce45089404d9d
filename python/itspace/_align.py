# SPDX-License-Identifier: Apache-2.0
"""align: move a low-rank covariance toward a target, with a certificate at every step."""
from __future__ import annotations

import json
import numbers
import os
import warnings
from typing import Any, Callable, Dict, List, Literal, Optional, Union

import numpy as np

from . import _checkpoint, _core, _gpu
from ._arrays import give, integer, number, seed_of, shown, take
from ._as_target import as_target, in_precision, with_blocks
from ._gpu import on_gpu
from ._starts import resolve_rank
from ._types import Array, Covariance, Precision, Rank, Route, Solver

Callback = Callable[[Dict[str, Any], Any], Any]

STATUS_WARNING = {
    "not_a_covariance": "the products show that the target is not a covariance with that trace; the factor is the start. "
    "Check it with itspace.Target.from_covariance(S, check=True), or, where it is an object of yours, its apply and trace",
    "not_finite": "a product with the target was not finite; the factor is the best iterate before it. Check the target "
    "for NaN and Inf, and the target and the start for values too large or too small for the dtype (scale both)",
    "certificate_failed": "a step broke its promise beyond rounding; the factor is the best iterate. The target may not be "
    "symmetric positive semidefinite (see itspace.Target.from_covariance(S, check=True)), or its trace, where it is an "
    "object of yours, not that of its apply",
}


class ResolutionWarning(UserWarning):
    """float32 does not know the objective of a run to 1 % of itself; ``precision="mixed"`` does."""


class AlignResult:
    """What `align` returns.

    Attributes
    ----------
    factor : array (d, r)
        The best iterate Y; its covariance is Y Y'. In the dtype of the run and the library of the target.
    status : str
        'step_limit': all steps were made. 'converged': no further step can be seen to descend at the resolution of the
        objective, so the run ended before; ``trace["reason"]`` says how that was seen (there is no tolerance to set).
        'stopped': the callback asked for it. 'certificate_failed', 'not_finite' and 'not_a_covariance' come with a warning.
    objective : float
        W2^2(Y Y', Sigma) at the factor.
    certified : bool
        Every step that was made and evaluated kept its promised descent and did not move away, up to the allowance that
        its row states, and the run did not fail.
    trace : dict
        The record of the run, schema 'itspace.trace/1' by columns: scalars ('dim', 'rank', 'solver', 'route', 'alpha',
        'precision', 'status', 'reason', 'target_trace', 'passes_total', 'best', 'factor_checksum'), and arrays with one entry
        for each iterate ('objective', 'resolution', 'certificate_gap', 'promised_descent', 'actual_descent', 'allowance',
        'certified', 'passes', 'seconds', ...). The names are those of the program's files (`to_json`); 'step_route' and
        'step_alpha' are a row's own 'route' and 'alpha'. NaN, or None in 'certified', is what does not exist, such as the
        step before the start.
    iterates : list of arrays
        All of them, from the start on, where keep_iterates was given; else empty.
    """

    __slots__ = ("factor", "iterates", "_record", "_trace")

    factor: Any
    iterates: List[Any]
    _record: _core.Trace
    _trace: Optional[Dict[str, Any]]

    def __init__(self, factor: Any, record: _core.Trace, iterates: List[Any]) -> None:
        self.factor = factor
        self.iterates = iterates
        self._record = record
        self._trace = None

    @property
    def status(self) -> str:
        return self._record.status

    @property
    def objective(self) -> float:
        return self._record.objective

    @property
    def certified(self) -> bool:
        return self._record.certified

    @property
    def trace(self) -> Dict[str, Any]:
        if self._trace is None:
            trace = self._record.to_dict()
            trace["step_route"] = np.array(trace["step_route"], dtype=str)
            trace["certified"] = np.array(trace["certified"], dtype=object)
            self._trace = trace
        return self._trace

    def to_json(self) -> str:
        """The trace as the program writes it, in rows and with the checksum of the factor: for ``itspace verify --trace``."""
        return self._record.to_json(take(_gpu.host_copy(self.factor), "factor", 2)[0])

    def __reduce__(self) -> Any:
        return _restore, (self.factor, self.trace, self.iterates)

    def __repr__(self) -> str:
        objectives = self.trace["objective"]
        return (
            f"<itspace.AlignResult {self.status}, {len(objectives) - 1} steps, objective {objectives[0]:.6g} -> "
            f"{self.objective:.6g}, {'certified' if self.certified else 'NOT certified'}>"
        )

    def _repr_html_(self) -> str:
        from ._html import result_html

        return result_html(self)


def _plain(trace: Dict[str, Any]) -> Dict[str, Any]:
    """A trace with lists for arrays, as the extension reads it."""
    return {key: value.tolist() if isinstance(value, np.ndarray) else value for key, value in trace.items()}


def _record_of(trace: Dict[str, Any]) -> _core.Trace:
    """From the columns of AlignResult.trace, or the rows of a file."""
    if "steps" in trace:
        try:
            rows = json.dumps(trace, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise type(error)(f"the trace has rows ('steps') and is not what json.load gives of a file: {error}") from None
        return _core.Trace.from_json(rows)
    return _core.Trace.from_dict(_plain(trace))


def _restore(factor: Any, trace: Dict[str, Any], iterates: List[Any]) -> AlignResult:
    return AlignResult(factor, _record_of(trace), iterates)


def _in_library(callback: Callback, wrap: Callable[[Any], Any]) -> Callback:
    return lambda step, factor: callback(step, wrap(factor))


def _progress(steps: int, callback: Optional[Callback]) -> "tuple[Callback, Callable[[], None]]":
    try:
        from tqdm.auto import tqdm
    except ImportError:
        tqdm = None
    bar = tqdm(total=steps, desc="align", unit="step") if tqdm is not None else None

    def show(step: Dict[str, Any], factor: np.ndarray) -> Any:
        if bar is not None:
            bar.set_postfix_str(f"W2^2 = {step['objective']:.6g}")
            bar.update(int(step["index"] > 0))
        else:
            print(f"align: step {step['index']} of {steps}, W2^2 = {step['objective']:.6g}", flush=True)
        return callback(step, factor) if callback is not None else None

    def close() -> None:
        if bar is not None:
            bar.close()

    return show, close


def step_options(
    alpha: Any, lam: Any, solver: Any, route: Any, guard: Any
) -> "tuple[Optional[float], Optional[float], bool, Optional[int]]":
    """The options of a run as the extension takes them: alpha, lam, whether to search the line, guard."""
    line_search, fixed = False, None
    if isinstance(alpha, str):
        if alpha != "line-search":
            raise ValueError(f"alpha is {alpha!r}; it must be a number between 0 and 2, 'line-search' or None")
        line_search = True
    elif alpha is not None:
        fixed = number(alpha, "alpha")
    if lam is not None:
        lam = number(lam, "lam")
    if guard is not None:
        guard = integer(guard, "guard")
    if not isinstance(solver, str) or not isinstance(route, str):
        raise TypeError(f"solver is {solver!r} and route is {route!r}; both must be strings")
    if guard is not None and solver == "paper":
        raise ValueError(f"guard is {guard}, but solver 'paper' has no guard columns; pass solver='ritz', or leave guard out")
    return fixed, lam, line_search, guard


def align(
    target: Covariance,
    start: Optional[Array] = None,
    *,
    rank: Optional[Rank] = None,
    steps: int = 2,
    alpha: Union[float, Literal["line-search"], None] = None,
    lam: Optional[float] = None,
    solver: Solver = "paper",
    route: Route = "auto",
    guard: Optional[int] = None,
    seed: int = 0,
    precision: Optional[Precision] = None,
    callback: Optional[Callback] = None,
    keep_iterates: bool = False,
    verbose: bool = False,
    checkpoint: "Union[str, os.PathLike[str], None]" = None,
    checkpoint_every: int = 10,
    resume: bool = False,
) -> AlignResult:
    """Move a covariance of rank <= r toward a target in the Bures-Wasserstein distance, step by certified step.

    Parameters
    ----------
    target : array (d, d), Target, or object with dim, trace, apply
        The covariance to approach. For samples pass ``Target.from_features(X)``. A matrix must be symmetric and finite,
        without a negative variance, which is checked, and positive semidefinite, which `Target.from_covariance` checks.
    start : array (d, r), optional
        The factor Y_0 to start from (see `start_from`). None: a seeded random start.
    rank : int, 'auto' or None
        The rank budget r. 'auto': the least rank that explains 95 % of the target's variance (`auto_rank`). None: the
        number of columns of the start, which must then be given.
    steps : int
        One pass over the target each. The default is the library's: an update or two per batch. For one run that should
        come near the best of its rank, ask for 5 or more, or for solver 'ritz'.
    alpha : float, 'line-search' or None
        How far to go in each step, 0 < alpha < 2. None: 1 for one step, 1.1 for 2 to 4, 1.3 from five on. 'line-search':
        the best point on the line, at no extra pass.
    lam : float, optional
        The paper's proximal weight instead of alpha: alpha = 2 lam/(1 + 2 lam).
    solver : 'paper' or 'ritz'
        'ritz' goes to the best rank-r covariance in a handful of passes.
    route : 'auto', 'qr', 'gram', 'factor' or 'root'
        How the certificate is computed.
    guard : int or None
        Solver 'ritz': columns carried beside those of the factor. None: 8, or 16 for one or two steps.
    seed : int
    precision : 'float32', 'mixed', 'float64' or None
        None: that of the target's data. 'mixed': data in float32 (borrowed where they are), all arithmetic in float64, at
        the memory of float32; the factor is float64. Where float32 does not know W2^2 to 1 % of itself, as on raw
        features of very different scales, the run warns (`ResolutionWarning`) and 'mixed' is the remedy. Data of
        another type than the precision says are converted, in a copy.
    callback : callable, optional
        ``callback(step, factor)`` for each iterate, `step` a dict with one entry for each column of the trace and by
        the same names, `factor` a copy in the library of the target. A true answer stops the run. What it raises ends
        the run and comes out of `align`.
    keep_iterates : bool
    verbose : bool
        Show a progress bar (tqdm where it is installed).
    checkpoint : path, optional
        A file (``.npz``) that keeps what a killed run needs to go on. At each checkpoint the run goes on with nothing but
        what is in the file, which costs one pass.
    checkpoint_every : int
        Steps between two of them.
    resume : bool
        Go on from `checkpoint` where there is one, to the same bits as a run that was left alone; else begin. That of
        another target or other options is refused. `callback` and `iterates` see the steps that are new.

    Returns
    -------
    AlignResult

    Notes
    -----
    The run is in the target's dtype unless `precision` says otherwise, and so is the factor: its dtype never depends on
    the values. A start of another dtype is converted. Tensors on a GPU stay there: target and start on one device, and the
    factor too (docs/gpu.md). The interpreter's lock is released, and Ctrl-C stops the run after the step at hand; on a GPU
    it is heard after a step where there is a callback, and at the end of the run where there is none.

    Examples
    --------
    >>> import numpy as np, itspace
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 30)) * np.linspace(3, 0.1, 30)
    >>> result = itspace.align(itspace.Target.from_features(X), rank=5, steps=4)
    >>> result.status, result.certified, result.factor.shape
    ('step_limit', True, (30, 5))
    >>> bool(np.all(np.diff(result.trace["objective"]) < 0))
    True
    """
    first: Any = None
    if isinstance(start, numbers.Number):
        raise TypeError(f"start is {shown(start)}, a number; it must be a factor of d rows. To set the rank pass rank={shown(start)}")
    core: Any
    wrap: Any = None
    there = on_gpu(target, start)
    if there:
        from ._gpu_target import for_align

        core, first = for_align(target, start, precision)
    else:
        if start is not None:
            first, _ = take(start, "start", 2)
        core, wrap = as_target(target, dtype=None if first is None else first.dtype)
        core = in_precision(core, precision)
        if first is not None and first.dtype != core.dtype:
            first = first.astype(core.dtype)
    dtype = core.dtype
    if first is not None:
        if isinstance(rank, str):
            raise ValueError(
                f"rank is {rank!r} and start has {first.shape[1]} columns; pass rank={first.shape[1]}, or let "
                "start_from(source, 'auto') choose"
            )
    steps, seed = integer(steps, "steps"), seed_of(seed)
    columns: int
    if rank is None:
        if first is None:
            raise TypeError("neither rank nor start is given; pass rank=r, rank='auto', or a start of r columns")
        columns = first.shape[1]
    else:
        columns = resolve_rank(rank, core, seed)
    fixed, lam, line_search, guard = step_options(alpha, lam, solver, route, guard)
    if callback is not None and not callable(callback):
        raise TypeError(f"callback is a {type(callback).__name__}; it must be callable as callback(step, factor)")

    if callback is not None and wrap is not None:
        callback = _in_library(callback, wrap)
    close = None
    if verbose:
        callback, close = _progress(steps, callback)
    try:
        arguments = [
            first, columns, steps, fixed, lam, line_search, solver, route, guard, seed, callback, bool(keep_iterates),
        ]  # fmt: skip
        if there:
            _checkpoint.refuse_on_gpu(checkpoint, resume)
            factor, record, iterates = _gpu.align(core, arguments)
        else:
            keeping = (checkpoint, checkpoint_every, resume, precision)
            factor, record, iterates = _checkpoint.run(*keeping, core._core, *arguments)
    finally:
        if close is not None:
            close()
    if wrap is not None:
        factor, iterates = wrap(factor), [wrap(iterate) for iterate in iterates]
    status = record.status
    if status in STATUS_WARNING:
        reason = f" ({record.reason})" if record.reason else ""
        warnings.warn(f"align ended as {status}{reason}: {STATUS_WARNING[status]}", RuntimeWarning, stacklevel=2)
    unresolved = record.unresolved if dtype == np.float32 else None
    if unresolved is not None:
        warnings.warn(
            f"float32 resolves W2^2 only to {unresolved[0]:.2g} here, where it is reported as {unresolved[1]:.4g}: the "
            "objectives of this run are not known to 1 %. Pass precision='mixed' (float32 data, float64 arithmetic and "
            "factor), or float64 data",
            ResolutionWarning,
            stacklevel=2,
        )
    return AlignResult(factor, record, iterates)


def verify(factor: Array, target: Covariance, trace: "Union[Dict[str, Any], AlignResult, None]" = None) -> Dict[str, Any]:
    """What a factor is worth, computed anew, and whether the trace that came with it tells the truth.

    Parameters
    ----------
    factor : array (d, r)
    target : covariance, Target, or object with dim, trace, apply
    trace : dict or AlignResult, optional
        The claims to check. A file of the program is read with ``json.load``.

    Returns
    -------
    dict
        'objective', 'target_trace', 'certificate_gap', 'feasibility', 'orthogonality', 'gram_rank', 'route', 'claims' (a
        list of dicts with 'name', 'holds', 'claimed', 'found'), 'holds': nothing is false, and 'certified': what the trace
        says of its run, None without one. A trace may own up to a run that was not certified, and its claims hold.

    Examples
    --------
    >>> import numpy as np, itspace
    >>> S = np.diag([3.0, 2.0, 1.0])
    >>> result = itspace.align(S, rank=2)
    >>> itspace.verify(result.factor, S, result.trace)["holds"]
    True
    """
    record = None
    if isinstance(trace, AlignResult):
        record = trace._record
    elif isinstance(trace, dict):
        record = _record_of(trace)
    elif trace is not None:
        raise TypeError(f"trace is a {type(trace).__name__}; it must be the AlignResult, its trace, or json.load of a file")
    given, _ = take(factor, "factor", 2)
    core = with_blocks(as_target(target, dtype=given.dtype)[0], np.float64)  # a check is finer than what it checks
    return _core.verify(core._core, given.astype(core.dtype, copy=False), given, record)


def objective_and_gradient(Y: Array, target: Covariance) -> "tuple[float, Any]":
    """F(Y) = W2^2(Y Y', Sigma) and its gradient 2 (Y - B), by one pass over the target and without a matrix root.

    Finite everywhere: where Sigma or Y is singular it is the element of the subdifferential that leaves null directions
    alone. So it is 0 at Y = 0, which is no minimum: descent from there stays there. Start from `start_from` or
    `random_start`.

    Examples
    --------
    >>> import numpy as np, itspace
    >>> value, gradient = itspace.objective_and_gradient(np.array([[1.0], [0.0]]), np.diag([4.0, 0.0]))
    >>> value, gradient.tolist()
    (1.0, [[-2.0], [0.0]])
    """
    if on_gpu(Y, target):
        from . import _gpu_target

        return _gpu_target.objective_and_gradient(Y, target)
    array, wrap = take(Y, "Y", 2)
    dtype = array.dtype
    core = with_blocks(as_target(target, dtype=dtype)[0], dtype)
    value, gradient = _core.objective_and_gradient(array.astype(core.dtype, copy=False), core._core)
    return value, give(gradient.astype(dtype, copy=False), wrap)


def objective_and_features_gradient(Y: Array, X: Array, sample_weight: Optional[Array] = None) -> "tuple[float, Any, Any]":
    """F(Y) for the covariance of features, with its gradients with respect to Y and to X.

    Parameters
    ----------
    Y : array (d, r)
    X : array (n, d)
    sample_weight : array (n,), optional

    Returns
    -------
    objective : float
    gradient : array (d, r)
    features_gradient : array (n, d)

    Examples
    --------
    >>> import numpy as np, itspace
    >>> X = np.array([[0.0, 1.0], [2.0, 0.0], [1.0, 5.0]])
    >>> value, dY, dX = itspace.objective_and_features_gradient(np.array([[1.0], [1.0]]), X)
    >>> dY.shape, dX.shape, bool(abs(dX.sum(axis=0)).max() < 1e-12)
    ((2, 1), (3, 2), True)
    """
    if on_gpu(Y, X):
        from . import _gpu_target

        return _gpu_target.objective_and_features_gradient(Y, X, sample_weight)
    features, wrap_features = take(X, "X", 2)
    factor, wrap = take(Y, "Y", 2)
    dtype, own = features.dtype, factor.dtype
    weights = None if sample_weight is None else take(sample_weight, "sample_weight", 1, np.float64)[0]
    value, gradient, features_gradient = _core.objective_and_features_gradient(
        factor.astype(dtype, copy=False), features, weights
    )
    return value, give(gradient.astype(own, copy=False), wrap), give(features_gradient, wrap_features)


__all__ = ["AlignResult", "ResolutionWarning", "align", "objective_and_features_gradient", "objective_and_gradient", "verify"]
