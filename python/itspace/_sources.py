# SPDX-License-Identifier: Apache-2.0
"""Several source domains in one frame: that of their barycenter.

Each domain is modelled as N(mean, Y Y' + delta I). The common frame is the mean of their means and the Bures-Wasserstein
barycenter of their covariances, of the same rank, and each domain has a Monge map into it.
"""

from __future__ import annotations

from typing import Any, Dict, Tuple

import numpy as np

import itspace

Array = np.ndarray[Any, Any]


def into_barycenter(
    X: Array, domains: Array, *, rank: int, floor: float, seed: int, steps: int = 50
) -> Tuple[Array, Dict[float, itspace.TransportMap]]:
    """All rows in the common frame, and the map of each domain by its value; domains count by their rows."""
    values, counts = np.unique(domains, return_counts=True)
    for value, count in zip(values.tolist(), counts.tolist()):
        if count < 2:
            raise ValueError(f"the source domain {value:g} has {count} row(s); a model needs at least 2: leave it out or add rows")
    targets = [itspace.Target.from_features(np.ascontiguousarray(X[domains == value])) for value in values]
    models = [itspace.model_of(target, itspace.start_from(target, rank), floor=floor) for target in targets]
    weights = counts / counts.sum()
    bary = itspace.barycenter(targets, weights, rank=rank, steps=steps, seed=seed)
    mean = sum(weight * model.mean for weight, model in zip(weights, models))
    remainder = float(sum(weight * np.sqrt(model.remainder) for weight, model in zip(weights, models))) ** 2
    frame = itspace.LowRankGaussian(bary.factor, mean, remainder)
    moved, maps = X.copy(), {}
    for value, model in zip(values.tolist(), models):
        maps[value] = itspace.TransportMap.from_models(model, frame, "monge")
        moved[domains == value] = maps[value].apply(np.ascontiguousarray(X[domains == value]))
    return moved, maps
