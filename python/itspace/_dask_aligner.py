# SPDX-License-Identifier: Apache-2.0
# Dask and scikit-learn come without types, or with few.
# mypy: disallow-untyped-calls=False, disallow-subclassing-any=False, warn-return-any=False
"""itspace.dask.CovarianceAligner: fit sweeps over the chunks, transform is lazy."""
from __future__ import annotations

import copy
from typing import Any, Optional, Sequence, Tuple

import numpy as np

import itspace
from itspace import _compare
from itspace._dask_rows import Change, Rows, is_collection
from itspace._dask_sums import Moments, summed
from itspace._result import remedy_of_float32
from itspace.dask import DaskTarget

try:
    from sklearn.utils.validation import check_is_fitted

    from itspace import sklearn as _sklearn
    from itspace._aligner_learning import FLOAT64_SAMPLES
except ImportError as missing:
    raise ImportError(
        f"itspace.dask.CovarianceAligner needs scikit-learn ({missing}); install it with: pip install 'itspace[dask,sklearn]'"
    ) from missing

_MOST_EXACT_DIM = 1024  # as of rank="auto": up to here a d x d matrix is cheap
_START_STEPS = 6
_MOST_ASKED_ROWS, _MOST_ASKED_VALUES = 1 << 16, 1 << 27  # of what is brought here for a classifier to look at


class CovarianceAligner(_sklearn.CovarianceAligner):
    """`itspace.sklearn.CovarianceAligner` for dask arrays and dataframes; arrays in memory go on as there.

    ``fit`` and ``adapt`` reduce: they sweep over the chunks, where they are, a few dozen times (``persist()`` them first
    where the workers' memory holds them). ``transform`` and ``inverse_transform`` of a dask collection return a dask array
    and compute nothing. Parameters, attributes and results are those of the estimator in memory, with these differences:

    - source and target are two collections, ``fit(Xs, Xt)``: rows of two domains in one are not told apart
      (``sample_domain``);
    - above 1024 features the source's factor comes from steps of the solver "ritz", not from all eigenvectors;
    - a `head` is asked about at most 65536 rows, fewer of very many features, drawn by ``random_state``.

    Examples
    --------
    >>> import dask.array as da, numpy as np
    >>> from itspace.dask import CovarianceAligner
    >>> rng = np.random.default_rng(0)
    >>> Xs = da.from_array(rng.normal(size=(500, 6)) * [3, 2, 1, 1, 1, 1], chunks=(100, 6))
    >>> Xt = da.from_array(rng.normal(size=(400, 6)) * [1, 2, 3, 1, 1, 1] + 1, chunks=(100, 6))
    >>> aligner = CovarianceAligner(rank=3).fit(Xs, Xt)
    >>> aligner.choice_, aligner.transform(Xt).chunks
    ('scale', ((100, 100, 100, 100), (6,)))
    """

    # A signature of its own would ask for the same again.
    __metadata_request__fit = {"sample_domain": True}
    __metadata_request__transform = {"sample_domain": True}

    def fit(
        self,
        X: Any = None,
        y: Any = None,
        *,
        Xs: Any = None,
        Xt: Any = None,
        sample_domain: Any = None,
        head: Any = None,
    ) -> CovarianceAligner:
        """Learn the source and, where there is one, the target: as in memory, in sweeps over the chunks."""
        source = Xs if X is None else X
        if is_collection(source):
            _refuse_domains(sample_domain)
            if is_collection(y) or Xt is not None:  # labels are ignored, and must not be loaded to see that they are labels
                if Xt is None and getattr(y, "ndim", 1) == 2 and y.shape[1] == source.shape[1]:
                    Xt = y
                y = None
        super().fit(X, y, Xs=Xs, Xt=Xt, sample_domain=sample_domain, head=head)
        return self

    def fit_transform(
        self, X: Any = None, y: Any = None, *, Xs: Any = None, Xt: Any = None, sample_domain: Any = None
    ) -> Any:
        """Fit, and give the rows of the source, which already are in its frame."""
        source = Xs if X is None else X
        if not is_collection(source):
            return super().fit_transform(X, y, Xs=Xs, Xt=Xt, sample_domain=sample_domain)
        self.fit(X, y, Xs=Xs, Xt=Xt, sample_domain=sample_domain)
        return source

    def _check(self, X: Any, name: str, *, reset: bool, min_samples: int = 2) -> Any:
        if not is_collection(X):
            return super()._check(X, name, reset=reset, min_samples=min_samples)
        rows = SpreadArray(X, name)
        if reset:
            self.n_features_in_ = rows.dim
            if rows.frame and all(isinstance(column, str) for column in X.columns):
                self.feature_names_in_ = np.asarray(X.columns, dtype=object)
            elif hasattr(self, "feature_names_in_"):
                del self.feature_names_in_
        elif rows.dim != self.n_features_in_:
            raise ValueError(
                f"{name} has {rows.dim} features, but {type(self).__name__} is expecting {self.n_features_in_} features as input"
            )
        elif rows.frame and hasattr(self, "feature_names_in_") and list(X.columns) != list(self.feature_names_in_):
            raise ValueError(f"the columns of {name} are not those of fit, in their order: {list(self.feature_names_in_)}")
        return rows

    def _target_of(self, X: Any) -> itspace.Target:
        return X.target() if isinstance(X, SpreadArray) else super()._target_of(X)

    @remedy_of_float32(FLOAT64_SAMPLES)
    def _best_start(self, target: itspace.Target, rank: Any) -> Any:
        if not isinstance(target, DaskTarget) or target.dim <= _MOST_EXACT_DIM:
            return super()._best_start(target, rank)
        return itspace.align(target, rank=rank, solver="ritz", steps=_START_STEPS, seed=self._seed()).factor

    def _rows_to_ask_about(self, X: Any) -> Any:
        if not isinstance(X, SpreadArray):
            return super()._rows_to_ask_about(X)
        most = min(_MOST_ASKED_ROWS, max(1000, _MOST_ASKED_VALUES // X.dim))
        if len(X) <= most:
            return X.taken(None)
        return X.taken(np.sort(np.random.default_rng(self._seed()).choice(len(X), most, replace=False)))

    def _squared_moves(self, map: itspace.TransportMap, X: Any) -> float:
        if not isinstance(X, SpreadArray):
            return super()._squared_moves(map, X)
        return float(X.sweep(_squared_moves_of, sum, map))

    def _move(self, X: Any, sample_domain: Any, *, forward: bool) -> Any:
        if not is_collection(X):
            return super()._move(X, sample_domain, forward=forward)
        check_is_fitted(self)
        _refuse_domains(sample_domain)
        rows = self._check(X, "X", reset=False, min_samples=1)
        array = X.to_dask_array() if rows.frame else X
        array = array if array.dtype == rows.dtype else array.astype(rows.dtype)
        if self.map_ is None:
            return array
        map = self.map_ if forward else self.map_.inverse()
        return array.map_blocks(_mapped, map, dtype=rows.dtype, meta=np.empty((0, 0), dtype=rows.dtype))


def _refuse_domains(sample_domain: Any) -> None:
    if sample_domain is not None:
        raise ValueError("sample_domain was given with a dask collection, whose rows are of one domain here; pass two: fit(Xs, Xt)")


def _mapped(chunk: Any, map: itspace.TransportMap) -> Any:
    return map.apply(chunk) if len(chunk) else chunk


class SpreadArray(Rows, _compare.SpreadRows):
    """Rows of a collection as the comparison of two domains asks for them."""

    known: Optional[Moments] = None
    chunk_sizes: Optional[Sequence[int]] = None

    @property
    def shape(self) -> Tuple[int, int]:  # type: ignore[override]
        return len(self), self.dim

    def __len__(self) -> int:
        return self.gathered().samples

    def gathered(self) -> Moments:
        if self.known is None:
            self.known = self.moments()
        return self.known

    def target(self) -> DaskTarget:
        return DaskTarget._of(self, self.gathered(), self.dtype)

    def mean_of_rows(self) -> Any:
        return self.gathered().mean

    def powers(self, mean: Any) -> Tuple[Any, Any]:
        return self.sweep(_powers_of, _each_summed, mean)

    def scaled(self, mean: Any, factors: Any) -> SpreadArray:
        return self._with(_Scaled(mean, factors), self.sizes)

    def halves(self, seed: int) -> Sequence[SpreadArray]:
        if len(self) > _compare.MOST_SHUFFLED:
            return [self._with(_DrawnHalf(seed, first)) for first in (True, False)]
        chosen = np.split(_compare.first_half(len(self), seed), np.cumsum(self._sizes())[:-1])
        return [
            self._with(_ChosenRows([part == first for part in chosen]), [int((part == first).sum()) for part in chosen])
            for first in (True, False)
        ]

    def taken(self, chosen: Any) -> Any:
        return self._chosen(chosen).sweep(_rows_themselves, np.concatenate)

    def _chosen(self, chosen: Any) -> SpreadArray:
        if chosen is None:
            return self
        ends = np.cumsum(self._sizes())
        parts = np.split(chosen, np.searchsorted(chosen, ends[:-1]))
        return self._with(_ChosenRows([part - first for part, first in zip(parts, [0, *ends[:-1]])]))

    def _sizes(self) -> Sequence[int]:
        if self.sizes is not None:
            return self.sizes
        if self.chunk_sizes is None:
            self.chunk_sizes = self.sweep(_size_of, _listed)
        assert self.chunk_sizes is not None
        return self.chunk_sizes

    def _with(self, change: Change, sizes: Any = None) -> SpreadArray:
        other = copy.copy(self)
        other.changes, other.sizes = (*self.changes, change), sizes
        other.known = other.chunk_sizes = None
        return other


# Changes of the rows of a chunk, and what tasks return; classes and functions of a module, so that they can be sent.


class _Scaled:
    def __init__(self, mean: Any, factors: Any) -> None:
        self.mean, self.factors = mean, factors

    def __call__(self, number: int, rows: Any) -> Any:
        return _compare.scaled_rows(rows, self.mean, self.factors)


class _ChosenRows:
    def __init__(self, chosen: Sequence[Any]) -> None:
        self.chosen = chosen

    def __call__(self, number: int, rows: Any) -> Any:
        return rows[self.chosen[number]]


class _DrawnHalf:
    def __init__(self, seed: int, first: bool) -> None:
        self.seed, self.first = seed, first

    def __call__(self, number: int, rows: Any) -> Any:
        return rows[(np.random.default_rng((self.seed, number)).random(len(rows)) < 0.5) == self.first]


def _size_of(rows: Any, number: int) -> Any:
    return [len(rows)]


def _listed(parts: Sequence[Any]) -> Any:
    return [size for part in parts for size in part]


def _powers_of(rows: Any, number: int, mean: Any) -> Any:
    return _compare.powers_about(rows, mean)


def _each_summed(parts: Sequence[Any]) -> Any:
    return tuple(summed(column) for column in zip(*parts))


def _rows_themselves(rows: Any, number: int) -> Any:
    return rows


def _squared_moves_of(rows: Any, number: int, map: itspace.TransportMap) -> float:
    if len(rows) == 0:
        return 0.0
    return float(((map.apply(rows) - rows).astype(np.float64) ** 2).sum())
