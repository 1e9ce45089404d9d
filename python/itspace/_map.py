# SPDX-License-Identifier: Apache-2.0
"""Transport maps: moving samples from one Gaussian to another in O(dr) per sample."""
from __future__ import annotations

import os
from typing import Any, Dict, Literal, NamedTuple, Optional, Tuple, Union

import numpy as np

from . import _core
from ._arrays import count, give, integer, number, seed_of, take, vector
from ._core import TransportMap as _CoreMap
from ._target import Target, as_target, with_blocks
from ._types import Array, Covariance, MapKind, Shrink

_MATRICES = ("basis", "core", "from_root", "to_root")
_VECTORS = ("mean_from", "mean_to")
_NUMBERS = ("scalar", "from_remainder", "to_remainder")
# What `itspace.map/1`, and pickles of its time, did not have.
_LATER_VECTORS = ("scale_from", "scale_to", "kept_deviations")
_LATER_NUMBERS = {"samples_from": 0.0, "samples_to": 0.0, "kept_mean": 1.0, "kept_covariance": 1.0}
_KINDS = "'monge', 'whiten', 'mean', 'scale' or 'scale+monge'"
_PLAIN = ("mean", "scale")  # kinds without a low-rank part


def _mean_of(mean: Any, target: Target, name: str) -> np.ndarray:
    if mean is not None:
        return vector(mean, name)
    known = target.mean
    return np.zeros(target.dim) if known is None else known


class LowRankGaussian(NamedTuple):
    """The model N(mean, factor factor' + remainder I).

    `deviations` are the standard deviations of the features (0: constant), `samples` how many samples are behind it, both
    None where they are not known. Of a standardised model the covariance is D (factor factor' + remainder I) D with
    D = diag(deviations): factor and remainder are those of the correlation matrix.
    """

    factor: Any
    mean: Any
    remainder: float
    deviations: Any = None
    standardised: bool = False
    samples: Optional[float] = None


class Kept(NamedTuple):
    """What is kept of a shift, from 0 (nothing) to 1 (all): of the means, of the low-rank part, of each feature's scale."""

    mean: float = 1.0
    covariance: float = 1.0
    deviations: Any = None


class Seen(NamedTuple):
    """The squared size of a shift, and what noise alone gives on average."""

    observed: float
    noise: float

    @property
    def kept(self) -> float:
        """max(0, 1 - noise/observed)."""
        return max(0.0, 1 - self.noise / self.observed) if self.observed > 0 else 0.0


class SeenShift(NamedTuple):
    """How much of a shift is more than noise; see `seen_shift`."""

    mean: Seen
    covariance: Optional[Seen]
    deviations_observed: Optional[np.ndarray]
    deviations_noise: Optional[np.ndarray]

    @property
    def kept(self) -> Kept:
        """For `TransportMap.from_models`."""
        deviations = None
        if self.deviations_observed is not None and self.deviations_noise is not None:
            pairs = list(zip(self.deviations_observed.tolist(), self.deviations_noise.tolist()))
            known = [observed / noise for observed, noise in pairs if noise > 0]
            # Of many features that did not move some seem to: each by itself, and all together.
            together = Seen(sum(known), len(known)).kept if known else 1.0
            deviations = np.array([Seen(*pair).kept for pair in pairs]) * together
        return Kept(self.mean.kept, 1.0 if self.covariance is None else self.covariance.kept, deviations)


def model_of(
    target: Covariance,
    factor: Array,
    mean: Optional[Array] = None,
    *,
    floor: float = 1e-6,
    shrinkage: Union[float, Literal["ledoit-wolf", "oas"]] = 0.0,
    samples: Optional[float] = None,
) -> LowRankGaussian:
    """The low-rank model of a covariance with factor Y: what Y leaves out, spread evenly over the other directions.

    Parameters
    ----------
    target : covariance, Target, or object with dim, trace, apply
        `Target.standardised()` makes the standardised model that maps of kind ``'scale+monge'`` need.
    factor : array (d, r)
        Such as `AlignResult.factor`.
    mean : array (d,), optional
        None: the mean of the features where the covariance is one of features, else 0.
    floor : float
        The least remainder, as a share of the mean variance.
    shrinkage : float, 'ledoit-wolf' or 'oas'
        The model is that of (1 - rho) Sigma + rho (tr Sigma/d) I, with rho given or found from the samples: by Ledoit and
        Wolf (features without weights; one sweep, and the entries of the covariance through the smaller of n and d), or by
        the oracle approximating shrinkage (any covariance whose `samples` are known; one sweep with d columns).
    samples : float, optional
        How many samples are behind the covariance. None: the effective count of features, else not known.

    Examples
    --------
    >>> import numpy as np, itspace
    >>> S = np.diag([9.0, 1.0, 3.0])
    >>> itspace.model_of(S, itspace.start_from(S, 1)).remainder
    2.0
    >>> itspace.model_of(S, itspace.start_from(S, 1), shrinkage=0.5, samples=40).remainder
    3.1666666666666665
    """
    return _model_of(target, factor, mean, floor, "", shrinkage, samples)


def _model_of(
    target: Any, factor: Any, mean: Any, floor: float, side: str, shrinkage: Any = 0.0, samples: Any = None
) -> LowRankGaussian:
    array, wrap = take(factor, f"{side}factor", 2)
    core = with_blocks(as_target(target, f"{side}target", array.dtype)[0], array.dtype)
    centre = _mean_of(mean, core, f"{side}mean")
    if centre.size != core.dim:
        raise ValueError(f"{side}mean has {centre.size} values and the covariance has dimension {core.dim}; they must agree")
    stored = array.astype(core.dtype, copy=False)
    count_known = core.effective_samples if samples is None else number(samples, "samples")
    rho = _shrinkage_of(shrinkage, core, count_known)
    remainder = _core.remainder_of(core._core, stored, centre, number(floor, "floor"), rho)
    scaled = factor if rho == 0 else give(array * array.dtype.type(np.sqrt(1 - rho)), wrap)
    return LowRankGaussian(scaled, centre, remainder, core.deviations, core.is_standardised, count_known)


def _shrinkage_of(shrinkage: Any, target: Target, samples: Optional[float]) -> float:
    if not isinstance(shrinkage, str):
        return number(shrinkage, "shrinkage")
    if shrinkage == "ledoit-wolf":
        if target.kind != "features" or target._data["sample_weight"] is not None:
            raise ValueError(
                "shrinkage is 'ledoit-wolf', which needs features without weights; pass itspace.Target.from_features(X), "
                "or shrinkage='oas'"
            )
        X = target._data["X"]
        if target._frame is not None:
            X = _core.standardised(X, target._frame.mean, target._frame.deviations)
        return _core.ledoit_wolf(X)
    if shrinkage == "oas":
        if samples is None:
            raise ValueError("shrinkage is 'oas', and how many samples are behind the covariance is not known; give samples")
        return _core.oas(target._core, samples)
    raise ValueError(f"shrinkage is {shrinkage!r}; it must be a number in [0, 1], 'ledoit-wolf' or 'oas'")


def model_of_features(X: Array, sample_weight: Optional[Array] = None) -> LowRankGaussian:
    """Mean, deviations and effective count of samples, which maps of kind ``'mean'`` and ``'scale'`` need; no factor.

    Examples
    --------
    >>> import numpy as np, itspace
    >>> rng = np.random.default_rng(0)
    >>> Xs, Xt = rng.standard_normal((300, 6)), 2 * rng.standard_normal((200, 6)) + 5
    >>> models = itspace.model_of_features(Xt), itspace.model_of_features(Xs)
    >>> moved = itspace.TransportMap.from_models(*models, kind="scale").apply(Xt)
    >>> bool(np.allclose(moved.std(axis=0, ddof=1), Xs.std(axis=0, ddof=1)))
    True
    """
    from_features = Target.from_features(X, sample_weight)
    return _plain_model(from_features, from_features.mean)


def _plain_model(target: Target, mean: Any) -> LowRankGaussian:
    deviations = target.deviations
    if deviations is None:
        raise ValueError(
            "the deviations of an object of yours are not known; pass itspace.Target.from_features(X), or a covariance"
        )
    variance = float(deviations @ deviations) / target.dim
    factor = np.zeros((target.dim, 0))
    return LowRankGaussian(factor, mean, variance if variance > 0 else 1.0, deviations, False, target.effective_samples)


def _model_arrays(model: Any, name: str) -> Tuple[np.ndarray, np.ndarray, float, Optional[np.ndarray], bool, float]:
    if not isinstance(model, LowRankGaussian):
        raise TypeError(f"{name} is a {type(model).__name__}; it must be a LowRankGaussian: see itspace.model_of")
    return (
        take(model.factor, f"{name}.factor", 2, np.float64)[0],
        vector(model.mean, f"{name}.mean"),
        number(model.remainder, f"{name}.remainder"),
        None if model.deviations is None else vector(model.deviations, f"{name}.deviations"),
        bool(model.standardised),
        0.0 if model.samples is None else number(model.samples, f"{name}.samples"),
    )


def seen_shift(
    from_target: Covariance,
    from_model: LowRankGaussian,
    to_target: Covariance,
    to_model: LowRankGaussian,
    kind: MapKind = "monge",
    *,
    method: Literal["noise", "halves"] = "noise",
    steps: int = 2,
    floor: float = 1e-6,
    seed: int = 0,
) -> SeenShift:
    """How much of the shift between two domains is more than noise, and so what a map between them should keep.

    Two sample sets of one distribution differ too. Each part of the shift stands here beside what noise alone gives:
    the means (squared distance), the covariances (W2^2; for 'scale+monge' those of the standardised features), the
    deviation of every feature. `SeenShift.kept` is max(0, 1 - noise/observed) of each.

    Parameters
    ----------
    from_target, to_target : covariances or Targets, as in the models
    from_model, to_model : LowRankGaussian
        With `samples`.
    kind : {'monge', 'whiten', 'mean', 'scale', 'scale+monge'}
    method : 'noise' or 'halves'
        'noise': the formulas of normal samples, the covariances compared inside the leading directions of both together
        (5 sweeps over each). 'halves': each feature set is split at random and its halves are compared as the domains
        are, which knows of no normality (a truncation and steps + 2 sweeps over half of each); features without weights.
    steps, floor
        Of the alignment of the halves, and of their models.
    seed : int

    Examples
    --------
    >>> import numpy as np, itspace
    >>> rng = np.random.default_rng(0)
    >>> S, T = (itspace.Target.from_features(rng.standard_normal((200, 60))) for _ in range(2))  # no shift
    >>> Ys = itspace.start_from(S, 8)
    >>> Yt = itspace.align(T, Ys, rank=8).factor
    >>> seen = itspace.seen_shift(T, itspace.model_of(T, Yt), S, itspace.model_of(S, Ys))
    >>> seen.kept.covariance < 0.3
    True
    """
    if not isinstance(kind, str):
        raise TypeError(f"kind is {kind!r}; it must be {_KINDS}")
    models = _model_arrays(from_model, "from_model"), _model_arrays(to_model, "to_model")
    targets = as_target(from_target, "from_target")[0], as_target(to_target, "to_target")[0]
    if method == "noise":
        if targets[0].dtype != targets[1].dtype:
            targets = with_blocks(targets[0], np.float64), with_blocks(targets[1], np.float64)
        cores = targets[0]._core, targets[1]._core
        found = _core.seen_by_noise(cores[0], models[0], cores[1], models[1], kind, seed_of(seed))
    elif method == "halves":
        rows = [_rows_of(target, name) for target, name in zip(targets, ("from_target", "to_target"))]
        found = _core.seen_by_halves(
            rows[0], models[0], rows[1], models[1], kind, integer(steps, "steps"), seed_of(seed), number(floor, "floor")
        )
    else:
        raise ValueError(f"method is {method!r}; it must be 'noise' or 'halves'")
    covariance = None if kind in _PLAIN else Seen(*found["covariance"])
    return SeenShift(Seen(*found["mean"]), covariance, found["deviations_observed"], found["deviations_noise"])


def _rows_of(target: Target, name: str) -> np.ndarray:
    if target.kind != "features" or target._data["sample_weight"] is not None:
        raise ValueError(
            f"{name} is one of {target.kind}; halves are those of features without weights: pass "
            "itspace.Target.from_features(X), or shrink by 'noise'"
        )
    X: np.ndarray = target._data["X"]
    if target._frame is not None:
        X = _core.standardised(X, target._frame.mean, target._frame.deviations)
    return X.astype(np.float64, copy=False)


class TransportMap:
    """The linear map between two low-rank Gaussian models, x -> mean_to + A (x - mean_from).

    A is a scalar times the identity plus low rank, between two diagonals for kinds that scale features: built in
    O(d r^2), applied in O(n d r), never d x d. Adaptation helps
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
        if kind in _PLAIN:
            plain = [as_target(target_target, "target_target")[0], as_target(source_target, "source_target")[0]]
            means = (target_mean, "target_mean"), (source_mean, "source_mean")
            models = [_plain_model(one, _mean_of(mean, one, name)) for one, (mean, name) in zip(plain, means)]
        else:
            for factor, name in ((source_factor, "source_factor"), (target_factor, "target_factor")):
                if factor is None:
                    raise TypeError(f"{name} is None; a map of kind {kind!r} needs the factor of both sides: see start_from")
            models = [
                _model_of(target_target, target_factor, target_mean, floor, "target_"),
                _model_of(source_target, source_factor, source_mean, floor, "source_"),
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
            raise TypeError(f"kind is {kind!r}; it must be {_KINDS}")
        first, second = _model_arrays(from_model, "from_model"), _model_arrays(to_model, "to_model")
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
