# SPDX-License-Identifier: Apache-2.0
"""Low-rank models of covariances: a factor, a remainder, a mean, and how many samples are behind them."""
from __future__ import annotations

from typing import Any, Literal, NamedTuple, Optional, Tuple, Union

import numpy as np

from . import _core, _gpu
from ._arrays import give, number, take, vector
from ._as_target import as_target, with_blocks
from ._gpu import host_copy, on_gpu
from ._target import Target
from ._types import Array, Covariance


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


def mean_of(mean: Any, target: Target, name: str) -> np.ndarray:
    if mean is not None:
        return vector(mean, name)
    known = target.mean
    return np.zeros(target.dim) if known is None else known


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
    return model_from(target, factor, mean, floor, "", shrinkage, samples)


def model_from(
    target: Any, factor: Any, mean: Any, floor: float, side: str, shrinkage: Any = 0.0, samples: Any = None
) -> LowRankGaussian:
    if on_gpu(target, factor):
        return _model_on_gpu(target, factor, mean, floor, side, shrinkage, samples)
    array, wrap = take(factor, f"{side}factor", 2)
    core = with_blocks(as_target(target, f"{side}target", array.dtype)[0], array.dtype)
    centre = mean_of(mean, core, f"{side}mean")
    if centre.size != core.dim:
        raise ValueError(f"{side}mean has {centre.size} values and the covariance has dimension {core.dim}; they must agree")
    stored = array.astype(core.dtype, copy=False)
    count_known = core.effective_samples if samples is None else number(samples, "samples")
    rho = _shrinkage_of(shrinkage, core, count_known)
    remainder = _core.remainder_of(core._core, stored, centre, number(floor, "floor"), rho)
    scaled = factor if rho == 0 else give(array * array.dtype.type(np.sqrt(1 - rho)), wrap)
    return LowRankGaussian(scaled, centre, remainder, core.deviations, core.is_standardised, count_known)


def _model_on_gpu(
    target: Any, factor: Any, mean: Any, floor: float, side: str, shrinkage: Any, samples: Any
) -> LowRankGaussian:
    from ._gpu_target import as_gpu_target, remainder_of

    _gpu.same_device(**{f"{side}target": target, f"{side}factor": factor})
    made = as_gpu_target(target, f"{side}target")
    remainder = remainder_of(made, factor, number(floor, "floor"), shrinkage)
    rho = number(shrinkage, "shrinkage")
    centre = mean if mean is not None else made.mean if made.kind == "features" else np.zeros(made.dim)
    count_known = made.effective_samples if samples is None else number(samples, "samples")
    shrunk = factor if rho == 0 else _gpu.scaled(factor, float(np.sqrt(1 - rho)))
    return LowRankGaussian(shrunk, centre, remainder, None, False, count_known)


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
    return plain_model(from_features, from_features.mean)


def plain_model(target: Target, mean: Any) -> LowRankGaussian:
    deviations = target.deviations
    if deviations is None:
        raise ValueError(
            "the deviations of an object of yours are not known; pass itspace.Target.from_features(X), or a covariance"
        )
    variance = float(deviations @ deviations) / target.dim
    factor = np.zeros((target.dim, 0))
    return LowRankGaussian(factor, mean, variance if variance > 0 else 1.0, deviations, False, target.effective_samples)


def model_arrays(model: Any, name: str) -> Tuple[np.ndarray, np.ndarray, float, Optional[np.ndarray], bool, float]:
    if not isinstance(model, LowRankGaussian):
        raise TypeError(f"{name} is a {type(model).__name__}; it must be a LowRankGaussian: see itspace.model_of")
    return (
        take(host_copy(model.factor), f"{name}.factor", 2, np.float64)[0],  # a map is made on the host
        vector(host_copy(model.mean), f"{name}.mean"),
        number(model.remainder, f"{name}.remainder"),
        None if model.deviations is None else vector(model.deviations, f"{name}.deviations"),
        bool(model.standardised),
        0.0 if model.samples is None else number(model.samples, f"{name}.samples"),
    )
