# SPDX-License-Identifier: Apache-2.0
"""Targets: a covariance as an operator."""
from __future__ import annotations

from typing import Any, Dict, Optional, Union

import numpy as np

from . import _core, _stream
from ._arrays import Wrap, covariance, give, number, take, vector
from ._core import Target as _CoreTarget
from ._gpu import on_gpu
from ._standardised import Frame, deviations_of, standardised_covariance, standardised_features
from ._types import Array


class Target:
    """A covariance, seen only through its products with tall blocks.

    Make one with `from_covariance`, `from_features`, `from_factor` or `low_rank_plus_diagonal`. The data are borrowed
    when they are C-contiguous float32 or float64, and copied otherwise. Do not modify a borrowed array while the target
    lives: it was checked, and its mean and trace were taken, when the target was made. Targets can be pickled and
    deep-copied, with their data.

    Wherever a target is asked for you may also pass a covariance matrix, or any object of your own with

    - ``dim``: the dimension d,
    - ``trace``: the trace of Sigma (asked for after the first ``apply``),
    - ``apply(Y)``: the product Sigma @ Y for a (d, k) array, any k,

    where ``dim`` and ``trace`` may be attributes or methods (`itspace.CovarianceOperator` says the same to a type
    checker). An attribute ``dtype`` chooses the precision of the run.

    A target of a tensor on a GPU stays there, and runs on it do (docs/gpu.md).
    """

    __slots__ = ("_core", "_wrap", "_made_by", "_data", "_frame", "__weakref__")

    _core: _CoreTarget
    _wrap: Wrap
    _made_by: Optional[str]  # the constructor, and what it was given: for pickle
    _data: Dict[str, Any]
    _frame: Optional[Frame]  # of a standardised target: what its features were before

    def __init__(self, *given: Any, **named: Any) -> None:
        raise TypeError(
            "Target() makes nothing; use Target.from_covariance, .from_features, .from_files, .from_stream, .from_factor "
            "or .low_rank_plus_diagonal"
        )

    @classmethod
    def _make(cls, core: _CoreTarget, wrap: Wrap, made_by: Optional[str] = None, **data: Any) -> "Target":
        self = object.__new__(cls)
        self._core = core
        self._wrap = wrap
        self._made_by = made_by
        self._data = data
        self._frame = None
        return self

    @classmethod
    def from_covariance(cls, S: Array, check: bool = True) -> "Target":
        """Sigma given by its entries.

        Parameters
        ----------
        S : array (d, d)
            Symmetric and positive semidefinite.
        check : bool
            Whether to check that it is positive semidefinite, which costs a Cholesky factorisation; eigenvalues from
            -d eps lambda_max on count as rounding, with the eps of float32. Always checked: that it is finite, without
            a negative variance, and symmetric up to d eps max|S_ij|. Asymmetry within that limit is averaged away in a
            copy.

        Examples
        --------
        >>> import numpy as np, itspace
        >>> itspace.Target.from_covariance(np.diag([3.0, 2.0, 1.0])).trace
        6.0
        """
        if on_gpu(S):
            from ._gpu_target import from_covariance

            return from_covariance(S, bool(check))
        array, wrap = take(S, "S", 2)
        array = covariance(array, "S")
        return cls._make(_core.Target.from_covariance(array, bool(check)), wrap, "from_covariance", S=array, check=False)

    @classmethod
    def from_features(cls, X: Array, sample_weight: Optional[Array] = None) -> "Target":
        """The covariance of features, which is never formed: a product costs two sweeps over X.

        Parameters
        ----------
        X : array (n, d)
            One sample per row, at least two.
        sample_weight : array (n,), optional
            0 or more each. Sigma is (1/c) sum_i w_i (x_i - mu)(x_i - mu)' with c = sum w - (sum w^2)/(sum w), which is
            n - 1 for equal weights.

        Examples
        --------
        >>> import numpy as np, itspace
        >>> X = np.array([[0.0, 1.0], [2.0, 1.0], [1.0, 4.0]])
        >>> target = itspace.Target.from_features(X)
        >>> target.mean.tolist(), round(target.trace, 12)
        ([1.0, 2.0], 4.0)
        """
        if on_gpu(X):
            from ._gpu_target import from_features

            return from_features(X, sample_weight)
        array, wrap = take(X, "X", 2)
        weights = None if sample_weight is None else vector(sample_weight, "sample_weight")
        core = _core.Target.from_features(array, weights)
        return cls._make(core, wrap, "from_features", X=array, sample_weight=weights)

    @classmethod
    def from_dask(cls, X: Any) -> "Target":
        """The covariance of the rows of a dask array or dataframe, which stay on the workers: see `itspace.dask.target`."""
        from .dask import target

        return target(X)

    @classmethod
    def from_files(
        cls, files: _stream.Files, *, memory: Any = None, columns: Any = None, dtype: Any = None
    ) -> "Target":
        """The covariance of the rows of files, which are read once for every product and never held.

        Parameters
        ----------
        files : path, pattern, or list of either
            ``.npy`` in C order, ``file.h5:/dataset`` (by h5py), Parquet and Arrow files (by pyarrow). All of one kind,
            with rows of the same length and type.
        memory : int or str, optional
            For the rows that are in memory at a time, 64 MiB by default, such as ``"256MiB"``. More is not faster.
        columns : str or list of str, optional
            Of Parquet and Arrow files: columns of numbers, or the one that holds lists of a fixed length.
        dtype : optional
            float32 or float64; by default that of the files.

        Examples
        --------
        >>> import numpy as np, itspace, tempfile, os
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     for i in range(3):
        ...         np.save(os.path.join(folder, f"part-{i}.npy"), np.array([[i, 1.0], [i, 2.0]]))
        ...     target = itspace.Target.from_files(os.path.join(folder, "part-*.npy"))
        ...     target.samples, target.mean.tolist(), round(target.trace, 12)
        (6, [1.0, 1.5], 1.1)
        """
        names = _stream.names_of(files)
        core = _stream.from_names(names, memory, dtype, columns)
        return cls._make(core, None, "from_files", files=names, memory=memory, columns=columns, dtype=dtype)

    @classmethod
    def from_stream(cls, source: Any, *, memory: Any = None, dtype: Any = None) -> "Target":
        """The covariance of rows that come in chunks, in as many sweeps as there are products.

        Parameters
        ----------
        source : iterable of (k, d) arrays that can be begun anew
            A list, an object with ``__iter__``, a function that returns a fresh generator, or an array that is sliced
            by rows (a memmap, a dataset of h5py). Each time it gives the same rows, in any order. A generator, which
            can be gone through once, is refused.
        memory : int or str, optional
            For the rows that are in memory at a time beside those of a chunk, 64 MiB by default.
        dtype : optional
            float32 or float64; by default that of the first chunk.

        Examples
        --------
        >>> import numpy as np, itspace
        >>> def chunks():
        ...     for i in range(3):
        ...         yield np.array([[i, 1.0], [i, 2.0]])
        >>> itspace.Target.from_stream(chunks).mean.tolist()
        [1.0, 1.5]
        """
        core, chosen = _stream.from_source(source, memory, dtype)
        return cls._make(core, None, "from_stream", source=source, memory=memory, dtype=chosen)

    @classmethod
    def from_factor(cls, T: Array) -> "Target":
        """Sigma = T T', such as the result of an earlier run.

        Examples
        --------
        >>> import numpy as np, itspace
        >>> itspace.Target.from_factor(np.array([[1.0], [2.0]])).apply(np.eye(2)).tolist()
        [[1.0, 2.0], [2.0, 4.0]]
        """
        if on_gpu(T):
            from ._gpu_target import from_factor

            return from_factor(T)
        array, wrap = take(T, "T", 2)
        return cls._make(_core.Target.from_factor(array), wrap, "from_factor", T=array)

    @classmethod
    def low_rank_plus_diagonal(cls, U: Array, s: Array, sigma2: Union[float, Array]) -> "Target":
        """Sigma = U diag(s) U' + diag(sigma2).

        Parameters
        ----------
        U : array (d, k)
            Its columns need not be orthonormal.
        s : array (k,)
            0 or more each.
        sigma2 : float or array (d,)
            0 or more; a number stands for a multiple of the identity.

        Examples
        --------
        >>> import numpy as np, itspace
        >>> itspace.Target.low_rank_plus_diagonal(np.eye(4)[:, :2], [3.0, 2.0], 0.5).trace
        7.0
        """
        if on_gpu(U):
            from ._gpu_target import low_rank_plus_diagonal

            return low_rank_plus_diagonal(U, s, sigma2)
        array, wrap = take(U, "U", 2)
        diagonal: Any
        given: Any = sigma2
        if np.ndim(given) == 0:
            diagonal = number(given, "sigma2")
        else:
            diagonal = vector(given, "sigma2")
        weights = vector(s, "s")
        core = _core.Target.low_rank_plus_diagonal(array, weights, diagonal)
        return cls._make(core, wrap, "low_rank_plus_diagonal", U=array, s=weights, sigma2=diagonal)

    @property
    def dim(self) -> int:
        """The dimension d."""
        return self._core.dim

    @property
    def trace(self) -> float:
        """tr Sigma."""
        return self._core.trace

    @property
    def dtype(self) -> np.dtype[Any]:
        """The precision that runs on this target have."""
        return np.dtype(np.float32 if self._core.float32 else np.float64)

    @property
    def device(self) -> str:
        """'cpu', or the GPU that its tensor is on, such as 'cuda:0'."""
        return "cpu"

    @property
    def kind(self) -> str:
        """'covariance', 'features', 'factor', 'low_rank_plus_diagonal', 'stream', 'operator' or 'dask'."""
        return self._core.kind

    @property
    def has_factor(self) -> bool:
        """Whether a T with Sigma = T T' is known, which the route 'factor' needs."""
        return self._core.has_factor

    @property
    def mean(self) -> Optional[np.ndarray]:
        """The mean of features, in float64, of a stream after one sweep; None for other targets. Of a standardised target: before it was."""
        return self._core.mean if self._frame is None else self._frame.mean

    @property
    def samples(self) -> Optional[int]:
        """The number of samples of features; None for other targets."""
        return self._core.samples or None

    @property
    def effective_samples(self) -> Optional[float]:
        """How many samples of one weight say as much: (sum w)^2/(sum w^2), n without weights; None where unknown."""
        if self.kind != "features":
            return None
        weights = self._data.get("sample_weight")
        return float(self._core.samples) if weights is None else _core.effective_samples(weights)

    @property
    def is_standardised(self) -> bool:
        """Whether this is a correlation matrix that `standardised` made."""
        return self._frame is not None

    @property
    def deviations(self) -> Optional[np.ndarray]:
        """The standard deviation of every feature, 0 for a constant one; None for an object of yours.

        Those of features take two sweeps each time they are asked for. Of a standardised target: before it was.
        """
        if self._frame is not None:
            return self._frame.deviations
        return deviations_of(self.kind, self._data)

    def standardised(self) -> "Target":
        """The correlation matrix as a target: every feature less its mean and divided by its standard deviation.

        The frame of maps of kind ``'scale+monge'``. Its `mean`, `deviations` and `samples` are those of the features as
        they were; a constant feature becomes 0. Features are copied.

        Examples
        --------
        >>> import numpy as np, itspace
        >>> S = itspace.Target.from_covariance(np.array([[4.0, 1.0], [1.0, 1.0]]))
        >>> S.standardised().apply(np.eye(2)).tolist(), S.standardised().deviations.tolist()
        ([[1.0, 0.5], [0.5, 1.0]], [2.0, 1.0])
        """
        if self._frame is not None:
            return self
        if self.kind not in ("features", "covariance"):
            raise ValueError(
                f"this target is one of {self.kind}, which is not standardised; features and covariances are: pass "
                "itspace.Target.from_features(X), or from_covariance(S)"
            )
        return _standardised(f"standardised_{self.kind}", self._data, self._wrap)

    def apply(self, Y: Any) -> Any:
        """Sigma @ Y for a (d, k) array, in the library of Y and the dtype of the target."""
        array, wrap = take(Y, "Y", 2, self.dtype)
        return give(self._core.apply(array), wrap)

    def _widened(self) -> "Target":
        """float64 blocks over these float32 data."""
        widened = Target._make(self._core.widened(), self._wrap, self._made_by, **self._data)
        widened._frame = self._frame
        return widened

    def _stored_as(self, dtype: Any) -> "Target":
        """The same target with its data converted."""
        data = dict(self._data)
        if self.kind == "stream":
            data["dtype"] = dtype
        else:
            main = next(iter(data))
            data[main] = data[main].astype(dtype)
        converted = _restore(str(self._made_by), data)
        converted._wrap = self._wrap
        return converted

    def __copy__(self) -> "Target":
        return self  # immutable

    def __reduce__(self) -> Any:
        if self._made_by is None:
            raise TypeError("this Target wraps an object of yours; pickle that object, and make the Target anew")
        data = dict(self._data)
        main = next(iter(data))
        if self._wrap is not None:  # back into the caller's library, which the new target's results will be in too
            data[main] = self._wrap(np.array(data[main]))
        return _restore, (self._made_by, data)

    def __repr__(self) -> str:
        return f"<itspace.Target {self.kind}, dim {self.dim}, {self.dtype}>"


def _standardised(made_by: str, data: Dict[str, Any], wrap: Wrap) -> Target:
    core, frame = (standardised_features if made_by == "standardised_features" else standardised_covariance)(**data)
    made = Target._make(core, wrap, made_by, **data)
    made._frame = frame
    return made


def _restore(made_by: str, data: Dict[str, Any]) -> Target:
    if made_by in ("standardised_features", "standardised_covariance"):
        main = next(iter(data))
        array, wrap = take(data[main], main, 2)
        return _standardised(made_by, {**data, main: array}, wrap)
    if made_by not in (
        "from_covariance", "from_features", "from_files", "from_stream", "from_factor", "low_rank_plus_diagonal"
    ):
        raise ValueError(f"a pickled Target names the constructor {made_by!r}, which is unknown here")
    made: Target = getattr(Target, made_by)(**data)
    return made
