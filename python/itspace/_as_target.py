# SPDX-License-Identifier: Apache-2.0
"""Whatever stands for a target, as a Target, and that in the precision which is asked for."""
from __future__ import annotations

from typing import Any, Optional, Tuple

import numpy as np

from . import _core
from ._arrays import Wrap, count, covariance, matrix, number, take
from ._target import Target
from ._types import Precision


def _from_object(value: Any, dtype: Any) -> Target:
    own = getattr(value, "dtype", None)
    chosen = np.dtype(np.float64 if own is None and dtype is None else own if own is not None else dtype)
    if chosen not in (np.dtype(np.float32), np.dtype(np.float64)):
        raise TypeError(f"the target's dtype is {chosen}; it must be float32 or float64")

    def asked(name: str) -> Any:  # an attribute, or a method without arguments
        answer = getattr(value, name)
        return answer() if callable(answer) else answer

    def trace() -> float:
        return number(asked("trace"), "the target's trace")

    def apply(block: np.ndarray) -> np.ndarray:
        return matrix(value.apply(block), "the result of the target's apply", chosen)

    dim = count(asked("dim"), "the target's dim")
    return Target._make(_core.Target.from_functions(dim, chosen == np.float32, trace, apply), None)


def with_blocks(target: Target, dtype: Any) -> Target:
    """The same target with blocks of that dtype, where it has one: float64 blocks over float32 data, not copied, are
    mixed precision. Another target is returned as it is, and blocks follow its dtype."""
    if np.dtype(dtype) != np.float64 or not target._core.float32 or target.kind == "operator":
        return target
    return target._widened()


def in_precision(target: Target, precision: Optional[Precision]) -> Target:
    """The target for a run in that precision; None is that of its data."""
    if precision is None:
        return target
    if precision not in ("float32", "mixed", "float64"):
        raise ValueError(f"precision is {precision!r}; it must be 'float32', 'mixed', 'float64' or None")
    if target.kind == "operator":
        if precision != str(target.dtype):
            raise ValueError(
                f"precision is {precision!r} and the target is an object of yours, which runs in {target.dtype}; an "
                "attribute dtype of float32 or float64 on the object chooses, and its data are its own business"
            )
        return target
    wanted = np.dtype(np.float64 if precision == "float64" else np.float32)
    if target.dtype != wanted:
        target = target._stored_as(wanted)
    return with_blocks(target, np.float64) if precision == "mixed" else target


def as_target(value: Any, name: str = "target", dtype: Any = None) -> Tuple[Target, Wrap]:
    """A Target, a covariance matrix, or an object with dim, trace and apply. `dtype` is for an object that has none."""
    if isinstance(value, Target):
        if value.device != "cpu":
            raise TypeError(
                f"{name} is a target on {value.device}, and this is computed on the host; make it of a tensor there, as "
                "X.cpu() is in torch"
            )
        return value, value._wrap
    if callable(getattr(value, "apply", None)) and hasattr(value, "dim") and hasattr(value, "trace"):
        # A torch tensor has apply, dim and trace of its own.
        if not hasattr(value, "__array__") and not hasattr(value, "__dlpack__"):
            return _from_object(value, dtype), None
    if not (hasattr(value, "__array__") or hasattr(value, "__dlpack__") or isinstance(value, (list, tuple))):
        raise TypeError(
            f"{name} is a {type(value).__name__}; it must be a covariance matrix, an itspace.Target (from_features, "
            "from_factor, ...), or an object with dim, trace and apply(Y)"
            + (": for a sparse matrix such an object, or its toarray()" if hasattr(value, "toarray") else "")
        )
    array, wrap = take(value, name)
    if array.ndim != 2 or array.shape[0] != array.shape[1]:
        raise ValueError(
            f"{name} is an array of shape {array.shape}; a covariance is square. If its rows are samples, pass "
            "itspace.Target.from_features(X)"
        )
    array = covariance(array, name)
    return Target._make(_core.Target.from_covariance(array, False), wrap, "from_covariance", S=array, check=False), wrap
