# SPDX-License-Identifier: Apache-2.0
"""The objective and its gradients, for descent by other means than `align`."""
from __future__ import annotations

from typing import Any, Optional

import numpy as np

from . import _core
from ._arrays import give, take
from ._as_target import as_target, with_blocks
from ._gpu import on_gpu
from ._result import remedy_of_float32, warn_unresolved
from ._types import Array, Covariance


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
    value, gradient, unresolved = _core.objective_and_gradient(array.astype(core.dtype, copy=False), core._core)
    if unresolved is not None and core.dtype == np.float32:
        with remedy_of_float32("Pass Y as float64 (the products with float32 data are then made in mixed precision)"):
            warn_unresolved(unresolved, "W2^2", ": it is not known to 1 %, and its gradient is as doubtful")
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
