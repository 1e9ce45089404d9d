# SPDX-License-Identifier: Apache-2.0
# scikit-learn comes without types.
# mypy: disallow-subclassing-any=False, warn-return-any=False
"""How `itspace.sklearn.CovarianceAligner` follows a target that comes batch by batch."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import Bunch

import itspace
from itspace import _gate
from itspace._aligner_learning import LearningAligner
from itspace._follow import Followed, FollowGate
from itspace._reports import report_of


class FollowingAligner(LearningAligner):
    """A source, and a stream beside it; samples that are all there end the stream."""

    _stream: itspace.OnlineAligner | None
    _asked: FollowGate | None
    _labels: np.ndarray[Any, Any] | None  # of the source, where a balanced stream takes the shares of classes from

    def _fit_source(self, Xs: np.ndarray[Any, Any]) -> None:
        self._stream = None
        super()._fit_source(Xs)

    def _fit_target(self, Xt: np.ndarray[Any, Any], start: Any, head: Any) -> None:
        self._stream = None
        super()._fit_target(Xt, start, head)

    def _follow(self, X: np.ndarray[Any, Any], head: Any, predicted: Any) -> None:
        """Take in the next batch and make the map anew."""
        if self.map == "scale+monge":
            raise ValueError(
                "map is 'scale+monge', which needs the target's samples at once; use adapt(Xt), or map='scale' or 'monge'"
            )
        if self._stream is None:
            self._stream = self._new_stream(predicted is not None, X.dtype)
        stream = self._stream
        seen = stream.observe(X.astype(stream.dtype, copy=False), predicted=predicted)
        if seen.result is None:  # fewer than two samples that differ: no covariance yet
            return
        if seen.result.status == "not_finite":
            raise ValueError("a product with the covariance of the stream is not finite; scale the samples down")
        of_source = self._source
        source = itspace.LowRankGaussian(
            self.source_factor_, of_source.mean, self._source_remainder, of_source.deviations, False, of_source.samples
        )
        followed = Followed(source, stream.model(floor=self.floor), of_source.clusters)
        self.factor_, self.target_mean_ = stream.factor, stream.mean
        self.trace_, self.certified_ = seen.result.trace, bool(seen.result.certified)
        self.report_ = self._decide_following(followed, source, X, head)
        self.choice_ = self.report_.decision
        self.map_ = None if self.choice_ == "none" else followed.map(self.choice_, self.shrink)
        self.harm_report_ = self._harm(followed.shift, X, stream.effective_samples, stream.trace)

    def _new_stream(self, balanced: bool, dtype: Any) -> itspace.OnlineAligner:
        if balanced and self._labels is None:
            raise ValueError("predicted was given, and the source has no labels to take the shares of classes from: fit(X, y)")
        self._asked = None
        return itspace.OnlineAligner(
            self.rank_,
            steps=self.steps,
            alpha=self.alpha,
            half_life=self.half_life,
            balance=self._labels if balanced else None,
            start=self.source_factor_,
            seed=self._seed(),
            dtype=dtype,
        )

    def _decide_following(self, followed: Followed, source: itspace.LowRankGaussian, X: Any, head: Any) -> Bunch:
        if self.map != "auto":
            return report_of(_gate.Decision(self.map, "the map was asked for"), followed.shift, asked_for=True)
        if head is None:
            return report_of(_gate.decide(followed.shift), followed.shift)
        if self._asked is None:
            self._asked = FollowGate(source, head, kinds=("scale", "monge"), shrink=self.shrink)
        self._asked.head = head
        decision = self._asked.ask_about(followed, X)
        return report_of(decision, followed.shift, self._asked.predictions)
