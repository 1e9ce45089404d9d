# SPDX-License-Identifier: Apache-2.0
"""align: move a low-rank covariance toward a target, with a certificate at every step."""
from __future__ import annotations

import numbers
import os
import warnings
from typing import Any, Callable, Dict, Literal, Optional, Union

import numpy as np

from . import _checkpoint, _gpu
from ._arrays import integer, number, seed_of, shown, take
from ._as_target import as_target, in_precision
from ._gpu import on_gpu
from ._result import STATUS_WARNING, AlignResult, status_text, warn_unresolved
from ._result import _restore as _restore  # pickles look for it here
from ._starts import resolve_rank
from ._types import Array, Covariance, Precision, Rank, Route, Solver

Callback = Callable[[Dict[str, Any], Any], Any]


def in_library(callback: Callback, wrap: Callable[[Any], Any]) -> Callback:
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
        callback = in_library(callback, wrap)
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
            factor, record, iterates = _checkpoint.run(*keeping, core, *arguments)
    finally:
        if close is not None:
            close()
    if wrap is not None:
        factor, iterates = wrap(factor), [wrap(iterate) for iterate in iterates]
    status = record.status
    if status in STATUS_WARNING:
        said = status_text(record, dtype == np.float32, getattr(core, "_data", {}))
        warnings.warn(f"align ended as {said}", RuntimeWarning, stacklevel=2)
    unresolved = record.unresolved if dtype == np.float32 else None
    if unresolved is not None:
        warn_unresolved(unresolved, "W2^2", ": the objectives of this run are not known to 1 %")
    return AlignResult(factor, record, iterates)
