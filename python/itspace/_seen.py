# SPDX-License-Identifier: Apache-2.0
"""How much of a shift is more than noise, and so what a map keeps of it."""
from __future__ import annotations

from typing import Any, Literal, NamedTuple, Optional

import numpy as np

from . import _core
from ._arrays import integer, number, seed_of
from ._as_target import as_target, with_blocks
from ._models import LowRankGaussian, model_arrays
from ._target import Target
from ._types import Covariance, MapKind

KINDS = "'monge', 'whiten', 'mean', 'scale' or 'scale+monge'"
PLAIN = ("mean", "scale")  # kinds without a low-rank part


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
        raise TypeError(f"kind is {kind!r}; it must be {KINDS}")
    models = model_arrays(from_model, "from_model"), model_arrays(to_model, "to_model")
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
    covariance = None if kind in PLAIN else Seen(*found["covariance"])
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
