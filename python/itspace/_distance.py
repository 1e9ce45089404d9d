# SPDX-License-Identifier: Apache-2.0
"""Exact Gaussian optimal transport: distances between covariances, Gaussians and feature sets."""
from __future__ import annotations

import functools
import math
import os
import threading
from typing import Any, Dict, Optional

import numpy as np

from . import _core
from ._arrays import common, count as count_of, covariance, give, integer, matrix, number, shown, take, vector
from ._gpu import host_copy, on_gpu
from ._types import Array


def _stack(value: Any, name: str) -> "tuple[np.ndarray, Any]":
    array, wrap = take(value, name)
    if array.ndim < 2 or array.shape[-1] != array.shape[-2]:
        raise ValueError(f"{name} has shape {array.shape}; covariances are (..., d, d), square in the last two axes")
    checked = array
    for index in np.ndindex(array.shape[:-2]):
        # Named as the caller would write it: A, A[3], A[1, 2].
        one = array[index]
        averaged = covariance(one, name + (str(list(index)) if index else ""))
        if averaged is not one:
            checked = array.copy() if checked is array else checked
            checked[index] = averaged
    return checked, wrap


def bures_wasserstein(
    A: Array, B: Array, *, squared: bool = False, paired: bool = False, accuracy: float = 1e-8
) -> Any:
    """The Bures-Wasserstein distance between covariances: W2 of centred Gaussians.

    Parameters
    ----------
    A, B : arrays (..., d, d)
        Covariances, or stacks of them; they may be singular. On a GPU two matrices, not stacks. Tensors that require a
        gradient are read as constants: for a distance with a gradient see `itspace.torch.bures_wasserstein_loss`.
    squared : bool
        Return W2^2 instead of W2.
    paired : bool
        For two stacks of n: the n distances between A[i] and B[i], instead of all pairs.
    accuracy : float
        How good W2^2 must be, as a share of itself (1e-8). Each distance is computed by the cheapest way whose bound on its
        rounding is within that; 0 asks for the sum of squares, the most accurate one, which takes several times as long.
        All distances of this module have it.

    Returns
    -------
    float or array
        A float for two matrices. For stacks, all pairs: the leading axes of A, then those of B (n and m: (n, m); a single
        matrix counts as a stack without axes); paired: (n,). In the library of A; float32 where A and B both are, else
        float64.

    Examples
    --------
    >>> import numpy as np, itspace
    >>> itspace.bures_wasserstein(np.diag([4.0, 0.0]), np.diag([1.0, 0.0]))
    1.0
    >>> stack = np.stack([np.eye(2), 4 * np.eye(2), 9 * np.eye(2)])
    >>> itspace.bures_wasserstein(stack, stack, squared=True).round(9).tolist()
    [[0.0, 2.0, 8.0], [2.0, 0.0, 2.0], [8.0, 2.0, 0.0]]
    """
    if on_gpu(A, B):
        from ._gpu_distance import covariance_part

        value = covariance_part(A, B, ("A", "B"), accuracy)
        return value if squared else math.sqrt(value)
    first, wrap = _stack(A, "A")
    second, _ = _stack(B, "B")
    d = first.shape[-1]
    if second.shape[-1] != d:
        raise ValueError(f"A holds {d} x {d} and B {second.shape[-1]} x {second.shape[-1]} covariances; d must be equal")
    dtype = common(first, second)
    lead = first.shape[:-2] + second.shape[:-2]
    if paired:
        if first.shape != second.shape or first.ndim < 3:
            raise ValueError(f"A has shape {first.shape} and B {second.shape}; to pair them both must be (n, d, d), the same n")
        lead = first.shape[:-2]
    a = first.astype(dtype, copy=False).reshape((-1, d, d))
    b = second.astype(dtype, copy=False).reshape((-1, d, d))
    out = _core.distances_squared(a, b, bool(paired), number(accuracy, "accuracy")).reshape(lead)
    if not squared:
        out = np.sqrt(out)
    if not lead:
        return float(out)
    return give(out.astype(dtype, copy=False), wrap)


def _gpu_parts(means: "list[np.ndarray]", C1: Any, C2: Any, names: "tuple[str, str, str, str]", accuracy: float) -> float:
    from ._gpu_distance import covariance_part

    part = covariance_part(C1, C2, (names[1], names[3]), accuracy)
    for mean, name in zip(means, (names[0], names[2])):
        if mean.size != C1.shape[0]:
            raise ValueError(f"{name} has {mean.size} values and the covariances are of dimension {C1.shape[0]}; they must agree")
        if not np.isfinite(mean).all():
            raise ValueError(f"{name} has a value that is not finite; remove or replace such samples first")
    return part + _core.mean_distance_squared(means[0], means[1])


def _gaussian_parts(mu1: Any, C1: Any, mu2: Any, C2: Any, names: "tuple[str, str, str, str]", accuracy: float) -> float:
    there = on_gpu(C1, C2)  # means are compared on the host then too, and may come from either
    given = ((host_copy(mu) if there else mu, name) for mu, name in ((mu1, names[0]), (mu2, names[2])))
    means = [vector(np.atleast_1d(take(mu, name)[0]), name) for mu, name in given]
    if there:
        return _gpu_parts(means, C1, C2, names, accuracy)
    covariances = [np.atleast_2d(take(C, name)[0]) for C, name in ((C1, names[1]), (C2, names[3]))]
    covariances = [matrix(C, name) for C, name in zip(covariances, (names[1], names[3]))]
    for mean, C, mean_name, name in zip(means, covariances, (names[0], names[2]), (names[1], names[3])):
        if C.shape != (mean.size, mean.size):
            raise ValueError(
                f"{name} has shape {C.shape} and {mean_name} has {mean.size} values; the covariance must be "
                f"({mean.size}, {mean.size})"
            )
        if not np.isfinite(mean).all():
            raise ValueError(f"{mean_name} has a value that is not finite; remove or replace such samples first")
    covariances = [covariance(C, name) for C, name in zip(covariances, (names[1], names[3]))]
    dtype = common(*covariances)
    a, b = (C.astype(dtype, copy=False) for C in covariances)
    return _core.distance_squared(a, b, number(accuracy, "accuracy")) + _core.mean_distance_squared(means[0], means[1])


def gaussian_w2(
    mu1: Array, C1: Array, mu2: Array, C2: Array, *, squared: bool = False, accuracy: float = 1e-8
) -> float:
    """W2 between the Gaussians N(mu1, C1) and N(mu2, C2); `accuracy` as in `bures_wasserstein`.

    Examples
    --------
    >>> import numpy as np, itspace
    >>> itspace.gaussian_w2([0.0, 0.0], np.eye(2), [3.0, 4.0], np.eye(2))
    5.0
    """
    value = _gaussian_parts(mu1, C1, mu2, C2, ("mu1", "C1", "mu2", "C2"), accuracy)
    return value if squared else math.sqrt(value)


def frechet_distance(
    mu1: Array, sigma1: Array, mu2: Array, sigma2: Array, *, accuracy: float = 1e-8
) -> float:
    """The Frechet distance of FID, in its convention: squared, ||mu1 - mu2||^2 + tr(S1 + S2 - 2 (S1 S2)^(1/2)).

    No matrix root is taken. The result is real, finite and 0 or more for any covariances, singular ones (fewer samples
    than features) included, and its covariance part is good to `accuracy` (1e-8) of itself, as in `bures_wasserstein`.
    It is a plain float: a tensor's gradient ends here (`itspace.torch` has a loss that carries one).

    Examples
    --------
    >>> import numpy as np, itspace
    >>> itspace.frechet_distance([0.0, 0.0], np.eye(2), [3.0, 4.0], 4 * np.eye(2))
    27.0
    """
    return _gaussian_parts(mu1, sigma1, mu2, sigma2, ("mu1", "sigma1", "mu2", "sigma2"), accuracy)


def frechet_distance_from_features(X1: Array, X2: Array, *, accuracy: float = 1e-8) -> float:
    """The Frechet distance between two feature sets (n, d) and (m, d), to the accuracy of `frechet_distance`.

    Where a side has no more samples than features no d x d matrix is formed. The samples are not changed or copied whole.

    Examples
    --------
    >>> import numpy as np, itspace
    >>> X = np.random.default_rng(0).standard_normal((50, 8))
    >>> round(itspace.frechet_distance_from_features(X, X + 1.0), 9)
    8.0
    """
    if on_gpu(X1, X2):
        from ._gpu_distance import of_features

        return of_features(X1, X2, accuracy)
    first, second = matrix(X1, "X1"), matrix(X2, "X2")
    if first.shape[1] != second.shape[1]:
        raise ValueError(f"X1 has {first.shape[1]} columns and X2 has {second.shape[1]}; rows are samples of one dimension")
    dtype = common(first, second)
    covariance, means = _core.features_distance(
        first.astype(dtype, copy=False), second.astype(dtype, copy=False), number(accuracy, "accuracy")
    )
    return covariance + means


@functools.lru_cache(maxsize=None)
def _physical_memory() -> float:
    """In bytes; infinite where the system does not say."""
    try:
        return float(os.sysconf("SC_PHYS_PAGES")) * float(os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, OSError, ValueError):
        return math.inf


def _no_room(dim: int) -> MemoryError:
    return MemoryError(
        f"dim is {shown(dim)}: the covariance of so many features needs {8 * dim * dim / 1e9:.3g} GB ({shown(dim)} x "
        f"{shown(dim)} values of float64) and as much again to work with, more than there is; project the features to fewer "
        "first. Two sets with no more samples than features need no such matrix: frechet_distance_from_features(X1, X2)"
    )


def _check_room(dim: int) -> None:
    """More than the machine has is refused, not tried: Linux grants it, and kills the process when it is used."""
    if 8 * dim * dim > _physical_memory():
        raise _no_room(dim)


class FrechetAccumulator:
    """Mean and covariance of features, batch by batch, for the Frechet distance of sets that do not fit in memory.

    Sums are kept in float64 about the running mean. Accumulators of several workers can be merged, and pickled. One may be
    used from several threads: whatever is asked of it is answered for the updates that were complete at that moment.

    Parameters
    ----------
    dim : int, optional
        The number of features; taken from the first batch where it is not given.

    Examples
    --------
    >>> import numpy as np, itspace
    >>> rng = np.random.default_rng(0)
    >>> real, fake = itspace.FrechetAccumulator(), itspace.FrechetAccumulator()
    >>> for batch in range(4):
    ...     _ = real.update(rng.standard_normal((100, 8)))
    ...     _ = fake.update(rng.standard_normal((100, 8)) + 1.0)
    >>> real.count, bool(7.5 < real.compute(fake) < 8.5)
    (400, True)
    """

    __slots__ = ("_lock", "_moments", "__weakref__")

    def __init__(self, dim: Optional[int] = None) -> None:
        self._lock = threading.RLock()  # a signal handler may ask in the middle of an update
        if dim is not None:
            dim = count_of(dim, "dim")
            _check_room(dim)
        try:
            self._moments = _core.Moments(dim)
        except MemoryError:
            raise _no_room(dim or 0) from None

    def _snapshot(self) -> "_core.Moments":
        """What was seen so far, as an object of its own. Never two locks at once: no order of them can deadlock."""
        with self._lock:
            return self._moments.copy()

    def update(self, batch: Any) -> "FrechetAccumulator":
        """Add the rows of `batch` (n, d). A batch that is refused changes nothing."""
        rows = matrix(batch, "batch")
        _check_room(rows.shape[1])
        try:
            with self._lock:
                self._moments.update(rows)
        except MemoryError:
            raise _no_room(rows.shape[1]) from None
        return self

    def compute(self, other: "FrechetAccumulator") -> float:
        """The Frechet distance (squared, FID's convention) to what another accumulator has seen."""
        self._check(other)
        try:
            return self._snapshot().distance_squared(other._snapshot())
        except MemoryError:
            raise _no_room(other.dim or 0) from None

    def merge(self, other: "FrechetAccumulator") -> "FrechetAccumulator":
        """Add all that another accumulator has seen to this one."""
        self._check(other)
        seen = other._snapshot()
        with self._lock:
            self._moments.merge(seen)
        return self

    def reset(self) -> None:
        """Forget the samples, keep the dimension."""
        with self._lock:
            self._moments.reset()

    def __add__(self, other: "FrechetAccumulator") -> "FrechetAccumulator":
        if not isinstance(other, FrechetAccumulator):
            return NotImplemented
        return FrechetAccumulator().merge(self).merge(other)

    @property
    def dim(self) -> Optional[int]:
        with self._lock:
            return self._moments.dim or None

    @property
    def count(self) -> int:
        with self._lock:
            return self._moments.count

    @property
    def mean(self) -> np.ndarray:
        with self._lock:
            return self._moments.mean

    @property
    def covariance(self) -> np.ndarray:
        """sum (x - mean)(x - mean)'/(count - 1)."""
        with self._lock:
            return self._moments.covariance()

    @staticmethod
    def _check(other: Any) -> None:
        if not isinstance(other, FrechetAccumulator):
            raise TypeError(f"other is a {type(other).__name__}; it must be a FrechetAccumulator")

    def __getstate__(self) -> Dict[str, Any]:
        seen = self._snapshot()
        return {"count": seen.count, "mean": seen.mean, "scatter": seen.scatter}

    def __setstate__(self, state: Dict[str, Any]) -> None:
        self._lock = threading.RLock()  # a signal handler may ask in the middle of an update
        self._moments = _core.Moments.from_parts(state["count"], state["mean"], state["scatter"])

    def __repr__(self) -> str:
        seen = self._snapshot()
        return f"<itspace.FrechetAccumulator dim {seen.dim or None}, {seen.count} samples>"


def geodesic(A: Array, B: Array, t: float) -> Any:
    """The covariance at t in [0, 1] on a Bures-Wasserstein geodesic from A to B.

    There is one geodesic where A or B is positive definite. Where both are singular there may be many, all of the same
    length, and this is a point of one of them.

    Examples
    --------
    >>> import numpy as np, itspace
    >>> itspace.geodesic(np.eye(2), 9 * np.eye(2), 0.5).round(9).tolist()
    [[4.0, 0.0], [0.0, 4.0]]
    """
    first, wrap = take(A, "A", 2)
    first, second = covariance(first, "A"), covariance(matrix(B, "B"), "B")
    dtype = common(first, second)
    point = _core.geodesic(first.astype(dtype, copy=False), second.astype(dtype, copy=False), number(t, "t"))
    return give(point, wrap)


def truncate(S: Array, rank: int) -> Any:
    """A (d, rank) factor of the best covariance of that rank: U_r diag(lambda_r)^(1/2).

    Examples
    --------
    >>> import numpy as np, itspace
    >>> abs(itspace.truncate(np.diag([4.0, 1.0]), 1)).tolist()
    [[2.0], [0.0]]
    """
    array, wrap = take(S, "S", 2)
    return give(_core.truncate(covariance(array, "S"), integer(rank, "rank")), wrap)


def truncate_factor(Y: Array, rank: int) -> Any:
    """A (d, rank) factor of the best covariance of that rank to Y Y'.

    Examples
    --------
    >>> import numpy as np, itspace
    >>> abs(itspace.truncate_factor(np.diag([2.0, 1.0]), 1)).tolist()
    [[2.0], [0.0]]
    """
    array, wrap = take(Y, "Y", 2)
    return give(_core.truncate_factor(array, integer(rank, "rank")), wrap)


def leading_eigenvalues(S: Array, count: int) -> np.ndarray:
    """The `count` largest eigenvalues of a covariance, 1 <= count <= d, in descending order, in float64.

    Examples
    --------
    >>> import numpy as np, itspace
    >>> itspace.leading_eigenvalues(np.diag([1.0, 3.0, 2.0]), 2).tolist()
    [3.0, 2.0]
    """
    return _core.leading_eigenvalues(covariance(matrix(S, "S"), "S"), integer(count, "count"))


def gap(objective: float, start_objective: float, floor: float) -> float:
    """(F - floor)/(F_0 - floor): the share of the way to the least objective that is still ahead.

    `floor` is the sum of the eigenvalues that the rank leaves out. 0 where the start was already there.

    Examples
    --------
    >>> import itspace
    >>> itspace.gap(2.0, 5.0, 1.0)
    0.25
    """
    return _core.gap_r(number(objective, "objective"), number(start_objective, "start_objective"), number(floor, "floor"))
