# SPDX-License-Identifier: Apache-2.0
# scikit-learn comes without types.
# mypy: disallow-subclassing-any=False, warn-return-any=False
"""How `itspace.sklearn.CovarianceAligner` follows a target that comes batch by batch."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import Bunch

import itspace
from itspace import _compare, _gate
from itspace._aligner_learning import LearningAligner
from itspace._follow import Followed, FollowGate
from itspace._reports import report_of


class _Correlation:
    """The correlation matrix of a stream, as a target: its covariance between the reciprocals of the deviations."""

    def __init__(self, stream: itspace.OnlineAligner) -> None:
        self._stream, self.dim, self.dtype = stream, stream.dim, stream.dtype
        self.deviations = stream.deviations
        varies = self.deviations > 0
        self.trace = float(np.count_nonzero(varies))
        self._scales = np.where(varies, 1 / np.where(varies, self.deviations, 1), 0).astype(stream.dtype)[:, None]

    def apply(self, block: np.ndarray[Any, Any]) -> Any:
        return self._scales * self._stream.apply(self._scales * block)


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
        model = stream.model(floor=self.floor)
        self._refuse_equal_samples(model.remainder)
        followed = Followed(source, model, of_source.clusters)
        self.factor_, self.target_mean_ = stream.factor, stream.mean
        self.trace_, self.certified_ = seen.result.trace, bool(seen.result.certified)
        self.report_ = self._decide_following(followed, source, X, head)
        self.choice_ = self.report_.decision
        if self.choice_ == "scale+monge":
            self.map_ = self._standardised_map(followed, stream)
        else:
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

    def _standardised_map(self, followed: Followed, stream: itspace.OnlineAligner) -> itspace.TransportMap:
        """As `adapt` makes it of all samples so far: from the source's factor, so that it depends on no earlier batch."""
        of_source, correlation = self._source, _Correlation(stream)
        factor = self._align(correlation, of_source.scaled[0].astype(stream.dtype, copy=False)).factor
        remainder = itspace.model_of(correlation, factor, floor=self.floor).remainder
        count = stream.effective_samples
        target = itspace.LowRankGaussian(factor, stream.mean, remainder, correlation.deviations, True, count)
        source = itspace.LowRankGaussian(
            of_source.scaled[0], of_source.mean, of_source.scaled[1], of_source.deviations, True, of_source.samples
        )
        kept = itspace.Kept()
        if self.shrink:
            # Means and deviations as of the map 'scale'; the rest by the rule of itspace._follow, between correlations.
            observed = _compare.displacement((factor, remainder), of_source.scaled)
            noise = _compare.expected_displacement(*of_source.scaled, max(count, 1.0), of_source.samples)
            kept = followed.map("scale").kept._replace(covariance=_compare.kept(noise, observed))
        return itspace.TransportMap.from_models(target, source, "scale+monge", kept=kept)

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
