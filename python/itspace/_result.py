# SPDX-License-Identifier: Apache-2.0
"""The result of a run: its factor, the record of how that was reached, and what is to be said of a run that went wrong."""
from __future__ import annotations

import json
import warnings
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Dict, Iterator, List, Optional, Tuple

import numpy as np

from . import _core, _gpu
from ._arrays import take

STATUS_WARNING = {
    "not_a_covariance": "the products show that the target is not a covariance with that trace; the factor is the start. "
    "Check it with itspace.Target.from_covariance(S, check=True), or, where it is an object of yours, its apply and trace",
    "not_finite": "a product with the target was not finite; the factor is the best iterate before it. Check the target "
    "for NaN and Inf, and the target and the start for values too large or too small for the dtype (scale both)",
    "certificate_failed": "a step broke its promise beyond rounding; the factor is the best iterate. The target may not be "
    "symmetric positive semidefinite (see itspace.Target.from_covariance(S, check=True)), or its trace, where it is an "
    "object of yours, not that of its apply",
}


# Where the reason is known, which is then stated: of the target's values, too large.
OVERFLOW = "a product with the target was not finite; the factor is the best iterate before it. "


class ResolutionWarning(UserWarning):
    """float32 does not know the objective of a run to 1 % of itself; ``precision="mixed"`` does, and so do float64 data."""


_remedy: "ContextVar[str]" = ContextVar(
    "remedy", default="Pass precision='mixed' (float32 data, float64 arithmetic and factor), or float64 data"
)


@contextmanager
def remedy_of_float32(text: str) -> Iterator[None]:
    """For a face whose callers cannot pass precision=: what a `ResolutionWarning` of its runs tells them to do instead."""
    before = _remedy.set(text)
    try:
        yield
    finally:
        _remedy.reset(before)


def status_text(record: _core.Trace, float32: bool, data: Dict[str, Any]) -> str:
    """What is to be said of a run that went wrong. `data`: the arrays that the target was made of, by name."""
    status = record.status
    if status != "not_finite" or not record.reason:
        reason = f" ({record.reason})" if record.reason else ""
        return f"{status}{reason}: {STATUS_WARNING[status]}"
    largest = ""
    for name in ("X", "S", "T", "U"):
        values = data.get(name)
        if isinstance(values, np.ndarray) and values.ndim == 2:
            i, j = np.unravel_index(np.abs(values).argmax(), values.shape)
            largest = f"The largest value is {name}[{i}, {j}] = {values[i, j]:g}. "
    remedy = f"Scale the data down, or: {_remedy.get()}" if float32 else "Scale the data down"
    return f"{status} ({record.reason}): {OVERFLOW}{largest}{remedy}"


def warn_unresolved(unresolved: "Tuple[float, float]", what: str, doubt: str) -> None:
    """That float32 knows `what`, which is reported as unresolved[1], to unresolved[0] only; for the caller's caller."""
    warnings.warn(
        f"float32 resolves {what} only to {unresolved[0]:.2g} here, where it is reported as {unresolved[1]:.4g}{doubt}. "
        f"{_remedy.get()}",
        ResolutionWarning,
        stacklevel=3,
    )


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


def record_of(trace: Dict[str, Any]) -> _core.Trace:
    """From the columns of AlignResult.trace, or the rows of a file."""
    if "steps" in trace:
        try:
            rows = json.dumps(trace, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise type(error)(f"the trace has rows ('steps') and is not what json.load gives of a file: {error}") from None
        return _core.Trace.from_json(rows)
    return _core.Trace.from_dict(_plain(trace))


def _restore(factor: Any, trace: Dict[str, Any], iterates: List[Any]) -> AlignResult:
    return AlignResult(factor, record_of(trace), iterates)


_restore.__module__ = "itspace._align"  # where pickles of all versions look for it
