# SPDX-License-Identifier: Apache-2.0
"""Transport maps: moving samples from one Gaussian to another in O(dr) per sample."""
from __future__ import annotations

import os
from typing import Any, Dict, Optional, Union

import numpy as np

from . import _core
from ._arrays import count, give, number, take, vector
from ._as_target import as_target
from ._core import TransportMap as _CoreMap
from ._gpu import MapCache, on_gpu
from ._models import LowRankGaussian, mean_of, model_arrays, model_from, plain_model
from ._seen import KINDS, PLAIN, Kept, seen_shift
from ._target import Target
from ._types import Array, Covariance, MapKind, Shrink

_MATRICES = ("basis", "core", "from_root", "to_root")
_VECTORS = ("mean_from", "mean_to")
_NUMBERS = ("scalar", "from_remainder", "to_remainder")
# What `itspace.map/1`, and pickles of its time, did not have.
_LATER_VECTORS = ("scale_from", "scale_to", "kept_deviations")
_LATER_NUMBERS = {"samples_from": 0.0, "samples_to": 0.0, "kept_mean": 1.0, "kept_covariance": 1.0}


class TransportMap:
    """The linear map between two low-rank Gaussian models, x -> mean_to + A (x - mean_from).

    A is a scalar times the identity plus low rank, between two diagonals for kinds that scale features: built in
    O(d r^2), applied in O(n d r), never d x d. Adaptation helps
    where the shift between two domains is of second order; where it is not, or where there are few samples, it can hurt:
    look at `diagnose`.
    """

    __slots__ = ("_core", "_on_gpu", "__weakref__")

    _core: "_CoreMap"
    _on_gpu: Optional[MapCache]

    def __init__(self) -> None:
        raise TypeError("TransportMap() makes nothing; use TransportMap.between, .from_models or .load")

    @classmethod
    def _make(cls, core: "_CoreMap") -> "TransportMap":
        self = object.__new__(cls)
        self._core = core
        self._on_gpu = None
        return self

    @classmethod
    def between(
        cls,
        source_target: Covariance,
        source_factor: Optional[Array],
        source_mean: Optional[Array],
        target_target: Covariance,
        target_factor: Optional[Array],
        target_mean: Optional[Array],
        kind: MapKind = "monge",
        *,
        floor: float = 1e-6,
        shrink: Shrink = "noise",
        seed: int = 0,
    ) -> "TransportMap":
        """The map that takes samples of the target domain into the frame of the source domain.

        Each side is modelled as N(mean, Y Y' + delta I), delta being the mean variance that its factor Y leaves out.

        Parameters
        ----------
        source_target, target_target : covariance, Target, or object with dim, trace, apply
            The covariances of the two domains; for kind 'scale+monge' `Target.standardised()` of them.
        source_factor, target_factor : arrays (d, r) and (d, s)
            Their factors, such as `AlignResult.factor` and `start_from(...)`; None for kinds 'mean' and 'scale'.
        source_mean, target_mean : arrays (d,) or None
            None: the mean of the features where the covariance is one of features, else 0.
        kind : {'monge', 'whiten', 'mean', 'scale', 'scale+monge'}
            The optimal transport itself; whitening and recoloring; the means alone; each feature by itself; the optimal
            transport between the standardised domains, scaled on both sides. A feature that is constant on one side
            keeps its scale.
        floor : float
            The least delta, as a share of the mean variance.
        shrink : 'noise', 'halves' or 'none'
            Keep of the shift what is more than noise, as `seen_shift` knows it by that method. 'noise' needs the sample
            counts of both sides, which features have: where one is a covariance, nothing is shrunk.
        seed : int
            Of `seen_shift`.

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
        >>> bool(abs(moved.mean(0) - Xs.mean(0)).max() < 0.02), bool(moved.std() < 1.2)
        (True, True)
        """
        if shrink not in ("none", "noise", "halves"):
            raise ValueError(f"shrink is {shrink!r}; it must be 'noise', 'halves' or 'none'")
        if kind in PLAIN:
            plain = [as_target(target_target, "target_target")[0], as_target(source_target, "source_target")[0]]
            means = (target_mean, "target_mean"), (source_mean, "source_mean")
            models = [plain_model(one, mean_of(mean, one, name)) for one, (mean, name) in zip(plain, means)]
        else:
            for factor, name in ((source_factor, "source_factor"), (target_factor, "target_factor")):
                if factor is None:
                    raise TypeError(f"{name} is None; a map of kind {kind!r} needs the factor of both sides: see start_from")
            models = [
                model_from(target_target, target_factor, target_mean, floor, "target_"),
                model_from(source_target, source_factor, source_mean, floor, "source_"),
            ]
            if kind == "scale+monge" and not all(model.standardised for model in models):
                raise ValueError(
                    "a map of kind 'scale+monge' is made in the frame of standardised features; pass "
                    "Target.from_features(X).standardised() and factors of it for both sides"
                )
        kept = Kept()
        if shrink == "halves" or (shrink == "noise" and all(model.samples is not None for model in models)):
            kept = seen_shift(
                target_target, models[0], source_target, models[1], kind, method=shrink, floor=floor, seed=seed
            ).kept
        return cls.from_models(models[0], models[1], kind, kept=kept)

    @classmethod
    def from_models(
        cls,
        from_model: LowRankGaussian,
        to_model: LowRankGaussian,
        kind: MapKind = "monge",
        *,
        kept: Optional[Kept] = None,
    ) -> "TransportMap":
        """The map that takes samples of one model to the other.

        Parameters
        ----------
        from_model, to_model : LowRankGaussian
            Where the samples come from and the frame they should fit; see `model_of` and `model_of_features`.
        kind : {'monge', 'whiten', 'mean', 'scale', 'scale+monge'}
        kept : Kept, optional
            What is kept of the shift, such as `seen_shift(...).kept`; None: all of it. The map goes to the point at that
            share of the way: x -> x + t (T(x) - x), mean and linear part each with its own t.

        Examples
        --------
        >>> import numpy as np, itspace
        >>> wide = itspace.LowRankGaussian(np.array([[3.0], [0.0]]), np.zeros(2), 1.0)
        >>> unit = itspace.LowRankGaussian(np.array([[0.0], [0.0]]), np.ones(2), 1.0)
        >>> itspace.TransportMap.from_models(wide, unit).matrix().round(6).tolist()
        [[0.316228, 0.0], [0.0, 1.0]]
        """
        if not isinstance(kind, str):
            raise TypeError(f"kind is {kind!r}; it must be {KINDS}")
        first, second = model_arrays(from_model, "from_model"), model_arrays(to_model, "to_model")
        mean, covariance, deviations = Kept() if kept is None else kept
        shares = number(mean, "kept.mean"), number(covariance, "kept.covariance")
        each = None if deviations is None else vector(deviations, "kept.deviations")
        return cls._make(_core.TransportMap.from_models(first, second, kind, *shares, each))

    @property
    def dim(self) -> int:
        return self._core.dim

    @property
    def kind(self) -> str:
        return self._core.kind

    @property
    def kept(self) -> Kept:
        """What is kept of the shift that was seen."""
        parts = self.parts()
        return Kept(parts["kept_mean"], parts["kept_covariance"], parts["kept_deviations"])

    def apply(self, X: Array) -> Any:
        """The rows of X (n, d), or one sample (d,), moved; in the dtype and library of X, which is left as it is.

        A value that is not finite is refused. A tensor on a GPU is moved there.
        """
        if on_gpu(X):
            if self._on_gpu is None:
                self._on_gpu = MapCache()
            return self._on_gpu.apply(self._core, X)
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
        """E||T(x) - x||^2 under the model: W2^2 between the two models for kind 'monge', of what is kept."""
        return self._core.displacement()

    def diagnose(self, samples_from: Optional[int] = None, samples_to: Optional[int] = None) -> Dict[str, Any]:
        """How far the map moves samples and what it leans on.

        Parameters
        ----------
        samples_from, samples_to : int, optional
            The sample counts behind the two models (`from`: the target domain's), to warn where they are too few; None:
            those of the models, where they are known.

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
        """What the map is made of: A = D_to (scalar I + basis (core - scalar I) basis') D_from^-1, D = diag(scale_...)."""
        return self._core.parts()

    def save(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Write an .npz of format 'itspace.map/2', as the program does: whole or not at all.

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
        for key in _LATER_VECTORS:
            given[key] = None if parts.get(key) is None else vector(parts[key], key)
        for key, default in _LATER_NUMBERS.items():
            given[key] = number(parts.get(key, default), key)
        return cls._make(_core.TransportMap.from_parts(**given))

    def __reduce__(self) -> Any:
        return _restore, (self.parts(),)

    def __copy__(self) -> "TransportMap":
        return self  # immutable

    def __repr__(self) -> str:
        return f"<itspace.TransportMap {self.kind}, dim {self.dim}>"


def _restore(parts: Dict[str, Any]) -> TransportMap:
    return TransportMap._from_parts(parts)
