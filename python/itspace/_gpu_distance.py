# SPDX-License-Identifier: Apache-2.0
"""Exact distances between tensors of a GPU: the counterpart of `_distance` there."""
from __future__ import annotations

from typing import Any, Tuple

from . import _core, _gpu
from ._arrays import number
from ._gpu import Taken


def _pair(first: Any, second: Any, names: Tuple[str, str]) -> Tuple[Taken, Taken]:
    """Both on one device, and in the wider dtype of the two."""
    _gpu.same_device(**{names[0]: first, names[1]: second})
    a, b = _gpu.take(first, names[0], None), _gpu.take(second, names[1], None)
    for taken in (a, b):
        if taken.array.ndim != 2:
            raise ValueError(
                f"{taken.name} has shape {tuple(taken.array.shape)} on device 'cuda:{taken.ordinal}'; there distances are "
                f"between two matrices: take them one by one, or move the stack to the host"
            )
    float32 = a.float32 and b.float32
    return _gpu.in_dtype(a, float32), _gpu.in_dtype(b, float32)


def covariance_part(A: Any, B: Any, names: Tuple[str, str], accuracy: Any) -> float:
    """W2^2 of the centred Gaussians."""
    a, b = _pair(A, B, names)
    for taken in (a, b):
        if taken.array.shape[0] != taken.array.shape[1]:
            raise ValueError(f"{taken.name} has shape {tuple(taken.array.shape)}; a covariance is square")
    if a.array.shape != b.array.shape:
        d, e = a.array.shape[0], b.array.shape[0]
        raise ValueError(f"{names[0]} is {d} x {d} and {names[1]} {e} x {e}; d must be equal")
    module = _gpu.extension(names[0], a.ordinal)
    accepted = number(accuracy, "accuracy")
    squared: float = module.dense_distance(_gpu.room(a).device, a.array, b.array, accepted, _core.threads())[0]
    return squared


def of_features(X1: Any, X2: Any, accuracy: Any) -> float:
    """The Frechet distance, squared, means included."""
    a, b = _pair(X1, X2, ("X1", "X2"))
    if a.array.shape[1] != b.array.shape[1]:
        raise ValueError(
            f"X1 has {a.array.shape[1]} columns and X2 has {b.array.shape[1]}; rows are samples of one dimension"
        )
    module = _gpu.extension("X1", a.ordinal)
    accepted = number(accuracy, "accuracy")
    covariance, means = module.features_distance(_gpu.room(a).device, a.array, b.array, accepted, _core.threads())
    return float(covariance + means)
