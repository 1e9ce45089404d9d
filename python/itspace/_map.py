# SPDX-License-Identifier: Apache-2.0
"""Transport maps: moving samples from one Gaussian to another in O(dr) per sample."""
from __future__ import annotations

import os
from typing import Any, Dict, NamedTuple, Optional, Tuple, Union

import numpy as np

from . import _core
from ._arrays import count, give, number, take, vector
from ._core import TransportMap as _CoreMap
from ._target import Target, as_target, with_blocks
from ._types import Array, Covariance, MapKind

_MATRICES = ("basis", "core", "from_root", "to_root")
_VECTORS = ("mean_from", "mean_to")
_NUMBERS = ("scalar", "from_remainder", "to_remainder")


def _mean_of(mean: Any, target: Target, name: str) -> np.ndarray:
    if mean is not None:
        return vector(mean, name)
    known = target.mean
    return np.zeros(target.dim) if known is None else known


class LowRankGaussian(NamedTuple):
    """The model N(mean, factor factor' + remainder I)."""

    factor: Any
    mean: Any
    remainder: float


def model_of(target: Covariance, factor: Array, mean: Optional[Array] = None, *, floor: float = 1e-6) -> LowRankGaussian:
    """The low-rank model of a covariance with factor Y: what Y leaves out, spread evenly over the other directions.

    Parameters
    ----------
    target : covariance, Target, or object with dim, trace, apply
    factor : array (d, r)
        Such as `AlignResult.factor`.
    mean : array (d,), optional
        None: the mean of the features where the covariance is one of features, else 0.
    floor : float
        The least remainder, as a share of the mean variance.

    Examples
    --------
    >>> import numpy as np, itspace
    >>> S = np.diag([9.0, 1.0, 3.0])
    >>> itspace.model_of(S, itspace.start_from(S, 1)).remainder
    2.0
    """
    return _model_of(target, factor, mean, floor, "")


def _model_of(target: Any, factor: Any, mean: Any, floor: float, side: str) -> LowRankGaussian:
    array = take(factor, f"{side}factor", 2)[0]
    core = with_blocks(as_target(target, f"{side}target", array.dtype)[0], array.dtype)
    centre = _mean_of(mean, core, f"{side}mean")
    if centre.size != core.dim:
        raise ValueError(f"{side}mean has {centre.size} values and the covariance has dimension {core.dim}; they must agree")
    stored = array.astype(core.dtype, copy=False)
    return LowRankGaussian(factor, centre, _core.remainder_of(core._core, stored, centre, number(floor, "floor")))


def _model_arrays(model: Any, name: str) -> Tuple[np.ndarray, np.ndarray, float]:
    if not isinstance(model, LowRankGaussian):
        raise TypeError(f"{name} is a {type(model).__name__}; it must be a LowRankGaussian: see itspace.model_of")
    return (
        take(model.factor, f"{name}.factor", 2, np.float64)[0],
        vector(model.mean, f"{name}.mean"),
        number(model.remainder, f"{name}.remainder"),
    )


class TransportMap:
    """The linear map between two low-rank Gaussian models, x -> mean_to + A (x - mean_from).

    A is a scalar times the identity plus low rank: built in O(d r^2), applied in O(n d r), never d x d. Adaptation helps
    where the shift between two domains is of second order; where it is not, or where there are few samples, it can hurt:
    look at `diagnose`.
    """

    __slots__ = ("_core", "__weakref__")

    _core: "_CoreMap"

    def __init__(self) -> None:
        raise TypeError("TransportMap() makes nothing; use TransportMap.between, .from_models or .load")

    @classmethod
    def _make(cls, core: "_CoreMap") -> "TransportMap":
        self = object.__new__(cls)
        self._core = core
        return self

    @classmethod
    def between(
        cls,
        source_target: Covariance,
        source_factor: Array,
        source_mean: Optional[Array],
        target_target: Covariance,
        target_factor: Array,
        target_mean: Optional[Array],
        kind: MapKind = "monge",
        *,
        floor: float = 1e-6,
    ) -> "TransportMap":
        """The map that takes samples of the target domain into the frame of the source domain.

        Each side is modelled as N(mean, Y Y' + delta I), delta being the mean variance that its factor Y leaves out.

        Parameters
        ----------
        source_target, target_target : covariance, Target, or object with dim, trace, apply
            The covariances of the two domains.
        source_factor, target_factor : arrays (d, r) and (d, s)
            Their factors, such as `AlignResult.factor` and `start_from(...)`.
        source_mean, target_mean : arrays (d,) or None
            None: the mean of the features where the covariance is one of features, else 0.
        kind : 'monge' or 'whiten'
            The optimal transport itself, or whitening and recoloring.
        floor : float
            The least delta, as a share of the mean variance.

        Examples
        --------
        >>> import numpy as np, itspace
        >>> rng = np.random.default_rng(0)
        >>> Xs, Xt = rng.standard_normal((300, 6)), 2 * rng.standard_normal((300, 6)) + 5
        >>> S, T = itspace.Target.from_features(Xs), itspace.Target.from_features(Xt)
        >>> Ys = itspace.start_from(S, 3)
        >>> Yt = itspace.align(T, Ys, rank=3).factor
        >>> tmap = itspace.TransportMap.between(S, Ys, None, T, Yt, None)
        >>> moved = tmap.apply(Xt)
        >>> bool(abs(moved.mean(0) - Xs.mean(0)).max() < 1e-9), bool(moved.std() < 1.2)
        (True, True)
        """
        target_model = _model_of(target_target, target_factor, target_mean, floor, "target_")
        source_model = _model_of(source_target, source_factor, source_mean, floor, "source_")
        return cls.from_models(target_model, source_model, kind)

    @classmethod
    def from_models(cls, from_model: LowRankGaussian, to_model: LowRankGaussian, kind: MapKind = "monge") -> "TransportMap":
        """The map that takes samples of one model to the other.

        Parameters
        ----------
        from_model, to_model : LowRankGaussian
            Where the samples come from and the frame they should fit; see `model_of`.
        kind : 'monge' or 'whiten'

        Examples
        --------
        >>> import numpy as np, itspace
        >>> wide = itspace.LowRankGaussian(np.array([[3.0], [0.0]]), np.zeros(2), 1.0)
        >>> unit = itspace.LowRankGaussian(np.array([[0.0], [0.0]]), np.ones(2), 1.0)
        >>> itspace.TransportMap.from_models(wide, unit).matrix().round(6).tolist()
        [[0.316228, 0.0], [0.0, 1.0]]
        """
        if not isinstance(kind, str):
            raise TypeError(f"kind is {kind!r}; it must be 'monge' or 'whiten'")
        first, second = _model_arrays(from_model, "from_model"), _model_arrays(to_model, "to_model")
        return cls._make(_core.TransportMap.from_models(*first, *second, kind))

    @property
    def dim(self) -> int:
        return self._core.dim

    @property
    def kind(self) -> str:
        return self._core.kind

    def apply(self, X: Array) -> Any:
        """The rows of X (n, d), or one sample (d,), moved; in the dtype and library of X, which is left as it is.

        A value that is not finite is refused.
        """
        array, wrap = take(X, "X")
        if array.ndim not in (1, 2):
            raise ValueError(f"X has shape {array.shape}; it must be (n, d), one sample per row, or (d,)")
        out = np.array(array.reshape((1, -1)) if array.ndim == 1 else array, order="C", copy=True)
        self._core.apply_in_place(out)
        return give(out.reshape(array.shape), wrap)

    def inverse(self) -> "TransportMap":
        """The map back."""
        return self._make(self._core.inverse())

    def matrix(self) -> np.ndarray:
        """A spelled out, (d, d): for small d."""
        return self._core.matrix()

    @property
    def displacement(self) -> float:
        """E||T(x) - x||^2 under the model: W2^2 between the two models for kind 'monge'."""
        return self._core.displacement()

    def diagnose(self, samples_from: Optional[int] = None, samples_to: Optional[int] = None) -> Dict[str, Any]:
        """How far the map moves samples and what it leans on.

        Parameters
        ----------
        samples_from, samples_to : int, optional
            The sample counts behind the two models (`from`: the target domain's), to warn where they are too few.

        Returns
        -------
        dict
            'displacement', 'relative_displacement', 'mean_share', 'touched_variance', 'condition', 'warnings'.
        """
        counts = [
            None if samples is None else count(samples, name)
            for samples, name in ((samples_from, "samples_from"), (samples_to, "samples_to"))
        ]
        return self._core.diagnose(counts[0], counts[1])

    def parts(self) -> Dict[str, Any]:
        """What the map is made of: A = scalar I + basis (core - scalar I) basis'."""
        return self._core.parts()

    def save(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Write an .npz of format 'itspace.map/1', as the program does: whole or not at all.

        Symbolic links, pipes and devices are written through, an old file keeps its mode, and one that is read-only stays.
        What cannot be written is an OSError.
        """
        self._core.save(os.fsdecode(path))

    @classmethod
    def load(cls, path: Union[str, "os.PathLike[str]"]) -> "TransportMap":
        """Read what `save`, or the program's `itspace map`, wrote; a ValueError names what is wrong with a file."""
        name = os.fsdecode(path)
        os.close(os.open(name, os.O_RDONLY | os.O_NONBLOCK))  # an OSError of its own kind where there is nothing to read
        return cls._make(_core.TransportMap.load(name))

    @classmethod
    def _from_parts(cls, parts: Dict[str, Any]) -> "TransportMap":
        given: Dict[str, Any] = {"kind": str(parts["kind"])}
        for key in _MATRICES:
            given[key] = take(parts[key], key, 2, np.float64)[0]
        for key in _VECTORS:
            given[key] = vector(parts[key], key)
        for key in _NUMBERS:
            given[key] = number(parts[key], key)
        return cls._make(_core.TransportMap.from_parts(**given))

    def __reduce__(self) -> Any:
        return _restore, (self.parts(),)

    def __copy__(self) -> "TransportMap":
        return self  # immutable

    def __repr__(self) -> str:
        return f"<itspace.TransportMap {self.kind}, dim {self.dim}>"


def _restore(parts: Dict[str, Any]) -> TransportMap:
    return TransportMap._from_parts(parts)
