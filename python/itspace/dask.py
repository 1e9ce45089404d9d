# SPDX-License-Identifier: Apache-2.0
# Dask's functions are not all typed.
# mypy: disallow-untyped-calls=False, warn-return-any=False
"""itspace for Dask: samples that are spread over workers.

:func:`target` is the covariance of the rows of a dask array or dataframe, for :func:`itspace.align` and everything else
that takes a target. The chunks stay on the workers: a step sends a block of d x r values to them, and adds up blocks of
that size. ``persist()`` the collection first where the workers' memory holds it, or each step loads it anew.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional, Sequence, Union

import numpy as np

from . import _core, _distance
from ._dask_rows import Rows, is_collection
from ._dask_sums import Bad, Limits, Moments, first_bad, product_of, summed
from ._target import Target

if TYPE_CHECKING:
    from ._dask_aligner import CovarianceAligner

__all__ = ["CovarianceAligner", "DaskTarget", "FrechetAccumulator", "target"]


def target(X: Any, *, client: Any = None) -> "DaskTarget":
    """The covariance of the rows of a dask collection; the same as ``Target.from_dask(X)``.

    One sweep is made at once, for the mean, the trace and whether all values are finite; each product is one more.

    Parameters
    ----------
    X : dask array (n, d) or dataframe
        One sample per row, whole rows in each chunk; chunk sizes may be unknown. float32 where all of it is, else
        float64.
    client : distributed.Client, optional
        None: the client that X was persisted with, else the default one, else Dask's scheduler in this process.

    Examples
    --------
    >>> import dask.array as da, numpy as np, itspace.dask
    >>> X = da.from_array(np.random.default_rng(0).standard_normal((100, 8)), chunks=(30, 8))
    >>> result = itspace.align(itspace.dask.target(X), rank=2)
    >>> result.certified, result.factor.shape
    (True, (8, 2))
    """
    rows = Rows(X, "X", client)
    return DaskTarget._of(rows, rows.moments(), rows.dtype)


class DaskTarget(Target):
    """A target whose rows are on the workers of a cluster: what `itspace.dask.target` makes."""

    __slots__ = ("_rows", "_moments", "_shift", "_error")

    _rows: Rows
    _moments: Moments
    _shift: np.ndarray  # the mean, as the blocks of a run can hold it
    _error: np.ndarray  # and what that leaves of the mean

    @classmethod
    def _of(cls, rows: Rows, moments: Moments, blocks: Any) -> "DaskTarget":
        trace = float(moments.squares.sum()) / (moments.samples - 1)
        # The functions must not hold the target, which holds them: the two would keep each other, and the chunks, alive.
        shift = moments.mean.astype(blocks)
        error = (moments.pivot - shift.astype(np.float64)) + moments.offset

        def apply(Y: np.ndarray) -> np.ndarray:
            return _product(rows, moments, shift, error, Y)

        core = _core.Target.from_functions(rows.dim, np.dtype(blocks) == np.float32, lambda: trace, apply)
        self = cls._make(core, None)
        assert isinstance(self, DaskTarget)
        self._rows, self._moments, self._shift, self._error = rows, moments, shift, error
        return self

    @property
    def kind(self) -> str:
        return "dask"

    @property
    def mean(self) -> Optional[np.ndarray]:
        """The mean of all rows, in float64."""
        return self._moments.mean

    @property
    def samples(self) -> Optional[int]:
        """The number of rows."""
        return self._moments.samples

    @property
    def effective_samples(self) -> Optional[float]:
        return float(self._moments.samples)

    @property
    def deviations(self) -> Optional[np.ndarray]:
        """The standard deviation of every feature, 0 for a constant one."""
        roots: np.ndarray = np.sqrt(self._moments.squares / (self._moments.samples - 1))
        return roots

    def _widened(self) -> "DaskTarget":
        return DaskTarget._of(self._rows, self._moments, np.float64)

    def _stored_as(self, dtype: Any) -> "DaskTarget":
        rows = self._rows.stored_as(dtype)
        return DaskTarget._of(rows, rows.moments(), dtype)

    def __reduce__(self) -> Any:
        raise TypeError(
            "a target of dask rows is not pickled: the cluster it runs on is no part of it. Pickle the dask collection, and "
            "make the target anew with itspace.dask.target(X)"
        )


def _product(rows: Rows, moments: Moments, shift: np.ndarray, error: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Sigma Y = (sum_i (x_i - s)(x_i - s)' Y - n e e'Y)/(n - 1), s the rounded mean and e what rounding left of it."""
    count = moments.samples
    limits = Limits.of(moments.squares + count * error**2, Y)
    total: np.ndarray = rows.sweep_in_any_order(product_of, summed, shift, Y, limits).sum(axis=0)
    correction = count * np.outer(error, error @ Y)
    return ((total - correction) / (count - 1)).astype(Y.dtype, copy=False)


class FrechetAccumulator(_distance.FrechetAccumulator):
    """`itspace.FrechetAccumulator`, whose `update` also takes a dask array or dataframe: all of its rows, at once.

    Each task accumulates one chunk, and a tree merges: d x d values travel, not rows. The order of merging is that of
    the chunks, whichever worker is done first.

    Examples
    --------
    >>> import dask.array as da, numpy as np, itspace.dask
    >>> X = da.from_array(np.random.default_rng(0).standard_normal((100, 8)), chunks=(30, 8))
    >>> real, moved = itspace.dask.FrechetAccumulator().update(X), itspace.dask.FrechetAccumulator().update(X + 1)
    >>> real.count, round(real.compute(moved), 9)
    (100, 8.0)
    """

    __slots__ = ()

    def update(self, batch: Any) -> "FrechetAccumulator":
        """Add the rows of `batch` (n, d), an array or a dask collection. A batch that is refused changes nothing."""
        if is_collection(batch):
            rows = Rows(batch, "batch")
            _distance._check_room(rows.dim)
            self.merge(rows.sweep(_accumulated, _merged))
        else:
            super().update(batch)
        return self


def _accumulated(rows: np.ndarray, number: int) -> Union[_distance.FrechetAccumulator, Bad]:
    bad = first_bad(rows, number)
    if bad is not None:
        return bad
    seen = _distance.FrechetAccumulator(rows.shape[1])
    return seen.update(rows) if len(rows) else seen


def _merged(parts: Sequence[_distance.FrechetAccumulator]) -> _distance.FrechetAccumulator:
    total = _distance.FrechetAccumulator()
    for part in parts:
        total.merge(part)
    return total


def __getattr__(name: str) -> Any:
    # scikit-learn is asked for by the estimator alone.
    if name == "CovarianceAligner":
        from ._dask_aligner import CovarianceAligner

        return CovarianceAligner
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
