# SPDX-License-Identifier: Apache-2.0
"""Features and covariances divided by their deviations, and the frame that goes with that: what they were before."""
from __future__ import annotations

from typing import Any, Dict, NamedTuple, Optional, Tuple

import numpy as np

from . import _core
from ._core import Target as _CoreTarget


class Frame(NamedTuple):
    """What the features of a standardised target were before."""

    mean: Optional[np.ndarray]
    deviations: np.ndarray


def deviations_of(kind: str, data: Dict[str, Any]) -> Optional[np.ndarray]:
    """The standard deviation of every feature of a target of that kind, made of these data; None where they do not say."""
    if kind == "features":
        return _core.deviations(data["X"], data["sample_weight"])
    variances: np.ndarray
    if kind == "covariance":
        variances = np.diagonal(data["S"]).astype(np.float64)
    elif kind == "factor":
        variances = np.sum(data["T"].astype(np.float64) ** 2, axis=1)
    elif kind == "low_rank_plus_diagonal":
        variances = data["U"].astype(np.float64) ** 2 @ data["s"] + data["sigma2"]
    else:
        return None
    roots: np.ndarray = np.sqrt(np.maximum(variances, 0))
    return roots


def standardised_features(X: np.ndarray, sample_weight: Optional[np.ndarray]) -> Tuple[_CoreTarget, Frame]:
    mean, deviations = _core.Target.from_features(X, sample_weight).mean, _core.deviations(X, sample_weight)
    assert mean is not None
    core = _core.Target.from_features(_core.standardised(X, mean, deviations), sample_weight)
    return core, Frame(mean, deviations)


def standardised_covariance(S: np.ndarray, check: bool) -> Tuple[_CoreTarget, Frame]:
    deviations = np.sqrt(np.maximum(np.diagonal(S), 0).astype(np.float64))
    return _core.Target.from_covariance(_core.standardised(S, None, deviations), check), Frame(None, deviations)
