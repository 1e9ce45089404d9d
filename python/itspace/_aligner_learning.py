# SPDX-License-Identifier: Apache-2.0
# scikit-learn comes without types.
# mypy: disallow-subclassing-any=False, warn-return-any=False
"""How `itspace.sklearn.CovarianceAligner` learns: from samples that are all there to models, a decision and a map."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import Bunch

import itspace
from itspace import _compare, _gate, _witness
from itspace._aligner_checks import CheckedAligner
from itspace._heads import answers_of
from itspace._reports import harm_of, harm_without_target, report_of, report_without_target
from itspace._result import remedy_of_float32
from itspace._sources import into_barycenter
from itspace._types import Covariance

# An estimator has no precision: it computes in the dtype of its samples.
FLOAT64_SAMPLES = "Pass the samples as float64: astype(numpy.float64)"


class LearningAligner(CheckedAligner):
    """A source, and one target beside it; the attributes are those of `itspace.sklearn.CovarianceAligner`."""

    _source: _compare.Source
    _source_remainder: float
    source_factor_: Any
    source_mean_: Any
    factor_: Any
    target_mean_: Any
    trace_: dict[str, Any] | None
    certified_: bool
    map_: itspace.TransportMap | None
    choice_: Any  # a name of `map`, never "auto"
    report_: Bunch
    harm_report_: Bunch

    @remedy_of_float32(FLOAT64_SAMPLES)
    def _into_one_frame(
        self, X: np.ndarray[Any, Any], domains: np.ndarray[Any, Any]
    ) -> tuple[np.ndarray[Any, Any], dict[float, itspace.TransportMap]]:
        """The rows of all sources where `sources` wants them, and the map of each that was moved."""
        if self.sources != "barycenter" or len(np.unique(domains)) < 2:
            return X, {}
        rank = itspace.auto_rank(itspace.Target.from_features(X)) if self.rank == "auto" else int(self.rank)
        return into_barycenter(X, domains, rank=min(rank, X.shape[1]), floor=self.floor, seed=self._seed())

    def _fit_source(self, Xs: np.ndarray[Any, Any]) -> None:
        self.rank_ = 0  # of the first factor, which the others follow
        self._source = _compare.Source(Xs, self._fit_model, self._seed())
        # What the head is asked about the source, once there is one.
        self._witness_rows: Any = _witness.some_rows(Xs, self._source.seed) if self.map == "auto" else None
        self.source_factor_, self._source_remainder = self._source.plain
        self.source_mean_ = self._source.mean
        self.factor_ = self.source_factor_
        self.target_mean_ = self.source_mean_
        self.trace_ = None
        self.certified_ = True
        self.map_ = None
        self.choice_ = "none"
        self.report_ = report_without_target()
        self.harm_report_ = harm_without_target(len(Xs), Xs.shape[1])

    def _fit_target(self, Xt: np.ndarray[Any, Any], start: Any, head: Any) -> None:
        target = self._target_of(Xt)
        result = self._align(target, start)
        model = itspace.model_of(target, result.factor, floor=self.floor)
        self._refuse_equal_samples(model.remainder)
        compared = _compare.Comparison(self._source, Xt, self._fit_model, (result.factor, model.remainder))
        self.report_ = self._decide(compared, Xt, head)
        self.choice_ = self.report_.decision
        self.factor_ = result.factor
        self.target_mean_ = compared.target.mean
        self.trace_ = result.trace
        self.certified_ = bool(result.certified)
        self.map_ = None
        if self.choice_ != "none":
            shrink = self.shrink and self.choice_ != "whiten"
            self.map_ = compared.map(self.choice_, shrink, self._remixes(head))
        self.harm_report_ = self._harm(compared.shift, Xt, len(Xt), compared.target.trace, compared.noise_share)

    def _refuse_equal_samples(self, target_remainder: float) -> None:
        if min(target_remainder, self._source_remainder) > 0 or self.map not in ("scale+monge", "monge", "whiten"):
            return
        side = "target" if target_remainder == 0 else "source"
        raise ValueError(
            f"the {side}'s samples are all equal (variance 0); a map needs samples that differ: "
            "give more of them, or use map='mean'"
        )

    def _fit_model(self, X: np.ndarray[Any, Any], start: Any) -> tuple[Any, float]:
        """The factor and remainder of a model of samples, as itspace._compare asks for them."""
        target = self._target_of(X)
        if start is None:
            rank = self.rank if self.rank == "auto" else min(int(self.rank), X.shape[1])
            factor = self._best_start(target, self.rank_ or rank)
            self.rank_ = self.rank_ or int(factor.shape[1])
        else:
            factor = self._align(target, start).factor
        return factor, itspace.model_of(target, factor, floor=self.floor).remainder

    @remedy_of_float32(FLOAT64_SAMPLES)
    def _align(self, target: Covariance, start: Any) -> itspace.AlignResult:
        result = itspace.align(
            target,
            start,
            rank=self.rank_,
            steps=self.steps,
            alpha=self.alpha,
            solver=self.solver,
            guard=self.guard,
            seed=self._seed(),
        )
        if result.status == "not_finite":
            reason = result.trace["reason"]
            raise ValueError(
                f"a product with the covariance of Xt is not finite{f' ({reason})' if reason else ''}; scale the samples "
                "down, or pass them as float64"
            )
        return result

    def _decide(self, compared: _compare.Comparison, Xt: np.ndarray[Any, Any], head: Any) -> Bunch:
        if self.map != "auto":
            return report_of(_gate.Decision(self.map, "the map was asked for"), compared.shift, asked_for=True)
        predictions = None
        if head is not None:
            asked = self._rows_to_ask_about(Xt)
            moved: dict[str, Any] = {"none": asked}
            for name in _gate.MAPS:
                moved[name] = compared.map(name, self.shrink, self._remixes(head)).apply(asked)
            teach = None if self._witness_rows is None else self._witness_of
            predictions = answers_of(head, moved, teach, self._witness_rows)
        return report_of(_gate.decide(compared.shift, predictions), compared.shift, predictions)

    def _remixes(self, head: Any) -> bool:
        """Whether maps leave of the mean's move what other class shares are likely to have done."""
        return self.map == "auto" and self.shrink and head is not None

    def _witness_of(self, labels: Any) -> _witness.Witness | None:
        return _witness.taught_by(labels, self._witness_rows, self._source.mean, self._source.plain[0])

    def _harm(
        self, shift: _gate.Shift, Xt: np.ndarray[Any, Any], samples: float, spread: float, noise_share: float = np.nan
    ) -> Bunch:
        return harm_of(
            self.report_,
            shift,
            samples=(self._source.samples, samples),
            features=Xt.shape[1],
            displacement=0.0 if self.map_ is None else self._squared_moves(self.map_, Xt) / len(Xt),
            spread=spread,
            certified=self.certified_,
            noise_share=noise_share,
        )

    # What depends on where the samples are.

    def _target_of(self, X: Any) -> itspace.Target:
        return itspace.Target.from_features(X)

    def _best_start(self, target: itspace.Target, rank: Any) -> Any:
        return itspace.start_from(target, rank)

    def _rows_to_ask_about(self, X: Any) -> Any:
        return X

    def _squared_moves(self, map: itspace.TransportMap, X: Any) -> float:
        return float(((map.apply(X) - X).astype(np.float64) ** 2).sum())
