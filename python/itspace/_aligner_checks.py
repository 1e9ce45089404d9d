# SPDX-License-Identifier: Apache-2.0
# scikit-learn comes without types.
# mypy: disallow-subclassing-any=False, warn-return-any=False
"""The parameters of `itspace.sklearn.CovarianceAligner` and the arrays it is given, checked; nothing is learned here."""

from __future__ import annotations

import numbers
from typing import Any, Literal

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_array, validate_data

from itspace._arrays import refuse_masked, seed_of
from itspace._domains import check_integer

_MAPS = ("auto", "none", "mean", "scale", "scale+monge", "monge", "whiten")


class CheckedAligner(BaseEstimator):
    """The parameters, which the constructor of `itspace.sklearn.CovarianceAligner` takes and documents."""

    rank: int | Literal["auto"]
    steps: int
    solver: Literal["paper", "ritz"]
    map: Literal["auto", "none", "mean", "scale", "scale+monge", "monge", "whiten"]
    shrink: bool
    alpha: float | Literal["line-search"] | None
    guard: int | None
    floor: float
    warm_start: bool
    half_life: float
    sources: Literal["barycenter", "pool"]
    random_state: Any

    def _check(self, X: Any, name: str, *, reset: bool, min_samples: int = 2) -> np.ndarray[Any, Any]:
        refuse_masked(X, name)
        # In two calls: validate_data alone would call every array X.
        checked = check_array(
            X,
            dtype=[np.float64, np.float32],
            order="C",
            ensure_min_samples=min_samples,
            estimator=self,
            input_name=name,
        )
        validate_data(self, X, reset=reset, skip_check_array=True)
        return checked

    def _check_parameters(self) -> None:
        check_integer("rank", self.rank, 1, or_text="auto")
        check_integer("steps", self.steps, 0)
        if self.sources not in ("barycenter", "pool"):
            raise ValueError(f"sources is {self.sources!r}; it must be 'barycenter' or 'pool'")
        if self.map not in _MAPS:
            raise ValueError(f"map is {self.map!r}; it must be one of {', '.join(map(repr, _MAPS))}")

    def _check_head(self, head: Any) -> None:
        if head is not None and self.map != "auto":
            raise ValueError(
                f"head was given and map is {self.map!r}, which asks no head; use map='auto', or leave it out"
            )

    def _seed(self) -> int:
        if isinstance(self.random_state, numbers.Integral):
            return seed_of(int(self.random_state), "random_state")
        return int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
