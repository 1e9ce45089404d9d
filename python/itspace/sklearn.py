# SPDX-License-Identifier: Apache-2.0
# scikit-learn comes without types.
# mypy: disallow-subclassing-any=False, warn-return-any=False
"""itspace for scikit-learn: target samples in the source's frame, inside a Pipeline.

A classifier was trained on a source domain and must judge samples of a target domain. Where the two differ by mean and
covariance, :class:`CovarianceAligner` learns the linear map that takes target samples to where the classifier expects
them: each side is modelled as ``N(mean, Y Y' + delta I)`` with a factor ``Y`` of at most ``rank`` columns, and a sample
costs ``O(d rank)``.

Adapting can help much and hurt much, and no label of the target says which. With ``map="auto"``, the default, the
aligner compares several maps by how the classifier's predictions look before and after (``adapt(Xt, head=clf)``), and
leaves samples alone where nothing speaks for a map: docs/should-i-adapt.md has the rule and what it is worth.
"""

from __future__ import annotations

import numbers
from typing import Any, Literal

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import Bunch, check_random_state
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

import itspace
from itspace import _compare, _gate, _witness
from itspace._arrays import refuse_masked, seed_of
from itspace._domains import check_integer, is_target, labels_of, source_rows, target_folds
from itspace._follow import Followed, FollowGate
from itspace._heads import answers_of
from itspace._sources import into_barycenter

__all__ = ["CovarianceAligner", "target_folds"]

_MAPS = ("auto", "none", "mean", "scale", "scale+monge", "monge", "whiten")
_NO_TARGET = (
    "no target domain was given: transform returns its input; call adapt(Xt), or fit with Xt= or sample_domain="
)


class CovarianceAligner(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Map target samples into the source's frame, where that helps, by what the two domains' moments say.

    The source's factor is its rank-r truncation; the target's is aligned from it in ``steps`` certified steps; the map
    between the two models takes target samples to the source. Every map is shrunk by the noise of what it undoes, so
    that between two samples of one domain it is next to the identity.

    Parameters
    ----------
    rank : int or "auto", default=16
        Rank budget of both models; a default is there because an estimator is made without arguments. More than the number of features counts as that number. ``"auto"`` is the
        explained-variance rule of :func:`itspace.align`, applied to the source.
    steps : int, default=2
        Steps of the target's factor from the source's; the default is that of :func:`itspace.align`. 0 keeps the source's directions.
    solver : {"paper", "ritz"}, default="paper"
        The damped steps of the paper, or Rayleigh-Ritz steps straight to the best factor.
    map : {"auto", "none", "mean", "scale", "scale+monge", "monge", "whiten"}, default="auto"
        ``"auto"`` decides between the next five by the predictions of `head` (see :meth:`adapt`), or by the moments
        alone where there is no head. ``"none"`` leaves samples alone, ``"mean"`` shifts by the means, ``"scale"``
        also scales each feature, ``"scale+monge"`` then applies the optimal transport between the standardised
        domains, ``"monge"`` is the optimal transport, which moves samples least, and ``"whiten"`` whitens and
        recolors.
    shrink : bool, default=True
        Whether a map keeps only the share of a shift that is beyond the noise of the two samples. ``"whiten"`` has no
        shrunk form.
    alpha : float or "line-search", optional
        How far each step of the solver "paper" goes, in (0, 2). By default it follows from ``steps``.
    guard : int, optional
        Extra columns that the solver "ritz" carries. By default 8, or 16 for one or two steps.
    floor : float, default=1e-6
        Smallest remainder ``delta`` of a model, as a share of the mean variance. Raise it where ``harm_report_`` shows
        a large condition number.
    warm_start : bool, default=False
        Let :meth:`adapt` start from the factor of the last target instead of the source's: for targets that drift.
    half_life : float, default=inf
        Of :meth:`partial_fit`: batches after which a sample of the target weighs half. Infinite: nothing is forgotten.
    sources : {"barycenter", "pool"}, default="barycenter"
        What becomes of several source domains.
    random_state : int, RandomState instance or None, default=0
        Seed of the random directions (guard columns, completion of singular cases). The default repeats itself.

    Attributes
    ----------
    factor_ : ndarray of shape (n_features, rank_)
        The target's factor.
    source_factor_ : ndarray of shape (n_features, rank_)
        The source's factor.
    source_mean_, target_mean_ : ndarray of shape (n_features,)
        The means the map shifts by.
    map_ : itspace.TransportMap or None
        The map; None where samples are left alone.
    choice_ : str
        The map in use, by its name: what ``"auto"`` decided, else ``map``.
    report_ : Bunch
        How ``"auto"`` decided: ``decision``, ``sentence`` (the reason in words), ``evidence`` (``"probabilities"``,
        ``"labels"`` or ``"moments"``), ``shift`` (the numbers of the moments) and ``candidates`` (of each map: the
        spread of the predicted classes and, with probabilities, the mutual information, as shares of log K; beside them
        how a second classifier, which the head taught on up to 1000 source samples that are kept for it, agrees).
    trace_ : dict of arrays or None
        The record of the alignment, one entry per iterate: objective, promised and actual descent, ...
    certified_ : bool
        Whether every step kept its promise.
    harm_report_ : Bunch
        What is known: ``noise_share`` (of the squared shift, what two samples of one domain would show as well),
        ``mean_share`` (of the shift, what is the mean's), ``unexplained_mean`` (of the mean's move, what no other mix of the
        source's clusters explains), ``samples`` (source, target), ``features``, ``displacement`` (mean squared distance
        a target sample is moved), ``relative_displacement`` (its root in units of the target's spread), ``gate`` (the
        map in use and why), ``label_shift`` (what can be said of it) and ``warnings`` (sentences). Numbers are NaN before a
        target was given.
    source_maps_ : dict
        Of several sources: the map of each, by its value of ``sample_domain``, into the frame of their barycenter.
    rank_ : int
        The rank in use.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Where the samples came with column names.

    Notes
    -----
    **What** ``fit`` **takes.** Two arrays, ``fit(Xs, Xt)`` or by name, ``fit(Xs=..., Xt=...)``; one array with a
    domain per row, ``fit(X, y, sample_domain=d)``, positive for source and negative for target; or one array alone,
    ``fit(X, y)``, which is then the source. In the last case transform is the identity (the source already is in its
    own frame), until ``adapt(Xt)`` brings a target. So a pipeline can be trained on the source alone, and adapted
    when the target arrives: ``pipe.fit(Xs, ys); pipe[:-1][-1].adapt(Xt)``.

    **What** ``transform`` **takes** is target samples. Rows that ``sample_domain`` marks as source come back as they
    are, and so does the source in ``fit_transform``: in a Pipeline, the next step is trained on samples that all are
    in the source's frame. With ``sklearn.set_config(enable_metadata_routing=True)``, ``sample_domain`` reaches the
    aligner inside Pipeline and GridSearchCV without further requests; labels of target rows are kept from the
    classifier with ``sample_weight=(sample_domain > 0)``.

    **Grid search and cross-validation** need target rows with labels, and nothing else, in their test folds
    (:func:`target_folds`): a scorer calls ``predict(X)`` without ``sample_domain``, so that source rows would go
    through the map as if they were target, and pull the score down. The weights, which are 0 for target rows, must not
    reach the scorer, and without ``set_score_request(sample_weight=False)`` on it every score is NaN.

    **Several sources** (different positive values of ``sample_domain``) are moved into one frame first, that of their
    barycenter, each by a map of its own; `fit_transform` and `transform` give their rows in that frame. With
    ``sources="pool"`` they are taken as one domain, as they are.

    **Streams.** :meth:`partial_fit` follows a target batch by batch with :class:`itspace.OnlineAligner`: ``half_life``
    says after how many batches a sample weighs half.

    ``y`` is ignored, but for the shares of the source's classes, which ``partial_fit(..., predicted=...)`` needs.

    Examples
    --------
    >>> import numpy as np
    >>> from itspace.sklearn import CovarianceAligner
    >>> rng = np.random.default_rng(0)
    >>> Xs = rng.normal(size=(500, 6)) * [3, 2, 1, 1, 1, 1]
    >>> Xt = rng.normal(size=(400, 6)) * [1, 2, 3, 1, 1, 1] + 1
    >>> aligner = CovarianceAligner(rank=3).fit(Xs, Xt)
    >>> aligner.choice_
    'scale'
    >>> mapped = aligner.transform(Xt)
    >>> bool(abs(mapped.mean(axis=0) - Xs.mean(axis=0)).max() < 0.1)
    True
    >>> aligner.harm_report_.warnings
    []
    """

    _source: _compare.Source
    _source_remainder: float
    _stream: itspace.OnlineAligner | None
    _asked: FollowGate | None
    _labels: np.ndarray[Any, Any] | None
    source_factor_: Any
    source_mean_: Any
    source_maps_: dict[float, itspace.TransportMap]
    trace_: dict[str, Any] | None
    map_: itspace.TransportMap | None

    # Routed without a call of set_fit_request: the aligner has no use without a second domain.
    __metadata_request__fit = {"sample_domain": True}
    __metadata_request__transform = {"sample_domain": True}

    def __init__(
        self,
        rank: int | Literal["auto"] = 16,
        steps: int = 2,
        *,
        solver: Literal["paper", "ritz"] = "paper",
        map: Literal["auto", "none", "mean", "scale", "scale+monge", "monge", "whiten"] = "auto",
        shrink: bool = True,
        alpha: float | Literal["line-search"] | None = None,
        guard: int | None = None,
        floor: float = 1e-6,
        warm_start: bool = False,
        half_life: float = np.inf,
        sources: Literal["barycenter", "pool"] = "barycenter",
        random_state: Any = 0,
    ) -> None:
        self.rank = rank
        self.steps = steps
        self.solver = solver
        self.map = map
        self.shrink = shrink
        self.alpha = alpha
        self.guard = guard
        self.floor = floor
        self.warm_start = warm_start
        self.half_life = half_life
        self.sources = sources
        self.random_state = random_state

    def fit(
        self,
        X: Any = None,
        y: Any = None,
        *,
        Xs: Any = None,
        Xt: Any = None,
        sample_domain: Any = None,
        head: Any = None,
    ) -> CovarianceAligner:
        """Learn the source and, where there is one, the target.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Source samples; with `sample_domain`, samples of both domains.
        y : ignored, or array-like of shape (n_target, n_features)
            A second positional array with the columns of X (two or more) is the target, as in ``fit(Xs, Xt)``. Where y
            are labels of that very shape, name the target (`Xt` or `sample_domain`) and y is ignored. One of several
            columns that can be neither is refused, and one of floats that looks like samples of another width is warned
            of.
        Xs : array-like of shape (n_samples, n_features), optional
            X under POT's name.
        Xt : array-like of shape (n_target, n_features), optional
            Target samples.
        sample_domain : array-like of shape (n_samples,), optional
            The domain of each row of X: positive is source, negative is target. Several sources are moved into the frame
            of their barycenter (see `sources`); several targets are pooled.
        head : object with ``predict`` or callable, optional
            As in :meth:`adapt`; of use with a target alone.

        Returns
        -------
        self : CovarianceAligner
        """
        if X is not None and Xs is not None:
            raise ValueError("the source was given twice, as X and as Xs; pass one of them")
        X, name = (Xs, "Xs") if X is None else (X, "X")
        if X is None:
            raise ValueError("no source samples: call fit(Xs, Xt), or fit(X, sample_domain=...)")
        if Xt is not None and sample_domain is not None:
            raise ValueError("the target was given twice, as Xt and as rows of sample_domain; pass one of them")
        X = self._check(X, name, reset=True)
        if Xt is None and sample_domain is None and is_target(y, X.shape):
            Xt, y = y, None
        self._check_parameters()
        labels = labels_of(y, len(X))
        self.source_maps_ = {}
        if sample_domain is not None:
            is_source = source_rows(sample_domain, len(X))
            if is_source.all() or not is_source.any():
                side, sign = ("target", "negative") if is_source.all() else ("source", "positive")
                raise ValueError(
                    f"sample_domain has no {side} rows ({sign} values) among {len(X)}; "
                    "fit needs both domains: leave sample_domain out to fit the source alone"
                )
            domains = np.asarray(sample_domain)[is_source]
            labels = None if labels is None else labels[is_source]
            X, Xt = X[is_source], X[~is_source]
            if self.sources == "barycenter" and len(np.unique(domains)) > 1:
                rank = itspace.auto_rank(itspace.Target.from_features(X)) if self.rank == "auto" else int(self.rank)
                X, self.source_maps_ = into_barycenter(
                    X, domains, rank=min(rank, X.shape[1]), floor=self.floor, seed=self._seed()
                )
        elif Xt is not None:
            Xt = self._check(Xt, "Xt", reset=False)
        self._check_head(head)
        if head is not None and Xt is None:
            raise ValueError(
                "head was given without a target, and there is nothing to decide; pass it to adapt(Xt, head=...)"
            )
        self._fit_source(X)
        self._labels = labels
        if Xt is not None:
            self._fit_target(Xt, self.source_factor_, head)
        return self

    def adapt(self, Xt: Any, *, head: Any = None) -> CovarianceAligner:
        """Learn a new target; the source stays.

        Parameters
        ----------
        Xt : array-like of shape (n_target, n_features)
            Target samples. The result is that of ``fit(Xs, Xt)`` with the same source, unless ``warm_start`` lets the
            factor start where the last target left it.
        head : object with ``predict`` or callable, optional
            For ``map="auto"``: the frozen classifier that the samples go to, an estimator (``predict_proba`` is used
            where it has it) or a function of samples that returns labels (n,) or class probabilities (n, K). It is
            asked about `Xt` under each candidate map, and about up to 1000 source samples. In a pipeline: ``pipe[k].adapt(Xt, head=pipe[k + 1:])``.

        Returns
        -------
        self : CovarianceAligner
        """
        check_is_fitted(self)
        Xt = self._check(Xt, "Xt", reset=False)
        self._check_parameters()
        self._check_head(head)
        warm = self.warm_start and self.trace_ is not None
        self._fit_target(Xt, self.factor_ if warm else self.source_factor_, head)
        return self

    def partial_fit(self, X: Any, y: Any = None, *, head: Any = None, predicted: Any = None) -> CovarianceAligner:
        """Follow a target batch by batch; the source stays.

        Each batch moves the covariance of the stream, `steps` certified steps follow it, and the map is made anew. Of an
        aligner that was not fitted the first batch is the source. `fit` and `adapt` end the stream: the next batch begins
        another.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The next batch of target samples.
        y : ignored
        head : object with ``predict`` or callable, optional
            As in :meth:`adapt`. It is asked with each batch about the last 512 samples, as they are and under each map;
            where nothing speaks for a map samples are left alone until a later batch.
        predicted : array-like of shape (n_samples,) or (n_samples, n_classes), optional
            What the classifier makes of the batch, labels or probabilities (columns in the order of sorted labels). Each
            class then counts as much as among the labels that ``fit(X, y)`` had, however much of it comes: for streams
            that come class by class. All batches of a stream, or none.

        Returns
        -------
        self : CovarianceAligner
        """
        if not self.__sklearn_is_fitted__():
            return self.fit(X, y)
        X = self._check(X, "X", reset=False, min_samples=1)
        self._check_parameters()
        self._check_head(head)
        if self.map == "scale+monge":
            raise ValueError(
                "map is 'scale+monge', which needs the target's samples at once; use adapt(Xt), or map='scale' or 'monge'"
            )
        if self._stream is None:
            self._stream = self._new_stream(predicted is not None, X.dtype)
        stream = self._stream
        seen = stream.observe(X.astype(stream.dtype, copy=False), predicted=predicted)
        if seen.result is None:  # fewer than two samples that differ: no covariance yet
            return self
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
        return self

    def transform(self, X: Any, *, sample_domain: Any = None) -> Any:
        """Move target samples into the source's frame.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        sample_domain : array-like of shape (n_samples,), optional
            Rows with a positive value are source samples and come back unchanged, or in the frame of the barycenter where
            there were several sources. By default all are target.

        Returns
        -------
        ndarray of shape (n_samples, n_features), float32 where X is
        """
        return self._move(X, sample_domain, forward=True)

    def fit_transform(
        self,
        X: Any = None,
        y: Any = None,
        *,
        Xs: Any = None,
        Xt: Any = None,
        sample_domain: Any = None,
    ) -> Any:
        """Fit, and give all rows of X in the source's frame.

        With `sample_domain` that is ``transform(X, sample_domain=sample_domain)``. Otherwise X is the source and comes
        back unchanged; the target is what ``transform(Xt)`` moves.
        """
        self.fit(X, y, Xs=Xs, Xt=Xt, sample_domain=sample_domain)
        X = Xs if X is None else X
        if sample_domain is None:
            return self._check(X, "X", reset=False).copy()
        return self._move(X, sample_domain, forward=True)

    def inverse_transform(self, X: Any) -> Any:
        """Move samples from the source's frame back to the target's: undoes transform.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_features), float32 where X is
        """
        return self._move(X, None, forward=False)

    # What the steps above are made of.

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

    def _fit_source(self, Xs: np.ndarray[Any, Any]) -> None:
        self.rank_ = 0  # of the first factor, which the others follow
        self._stream = None
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
        self.report_ = Bunch(decision="none", sentence=_NO_TARGET, evidence=None, shift=None, candidates={})
        self.harm_report_ = Bunch(
            noise_share=np.nan,
            mean_share=np.nan,
            unexplained_mean=np.nan,
            samples=(len(Xs), 0),
            features=Xs.shape[1],
            displacement=np.nan,
            relative_displacement=np.nan,
            gate=_NO_TARGET,
            label_shift="",
            warnings=[_NO_TARGET],
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

    # What depends on where the samples are.

    def _target_of(self, X: Any) -> itspace.Target:
        return itspace.Target.from_features(X)

    def _best_start(self, target: itspace.Target, rank: Any) -> Any:
        return itspace.start_from(target, rank)

    def _rows_to_ask_about(self, X: Any) -> Any:
        return X

    def _squared_moves(self, map: itspace.TransportMap, X: Any) -> float:
        return float(((map.apply(X) - X).astype(np.float64) ** 2).sum())

    def _align(self, target: itspace.Target, start: Any) -> itspace.AlignResult:
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
            raise ValueError("a product with the covariance of Xt is not finite; scale the samples down")
        return result

    def _fit_target(self, Xt: np.ndarray[Any, Any], start: Any, head: Any) -> None:
        self._stream = None
        target = self._target_of(Xt)
        result = self._align(target, start)
        model = itspace.model_of(target, result.factor, floor=self.floor)
        varies = min(model.remainder, self._source_remainder) > 0
        if not varies and self.map in ("scale+monge", "monge", "whiten"):
            side = "target" if model.remainder == 0 else "source"
            raise ValueError(
                f"the {side}'s samples are all equal (variance 0); a map needs samples that differ: "
                "give more of them, or use map='mean'"
            )
        compared = _compare.Comparison(self._source, Xt, self._fit_model, (result.factor, model.remainder))
        self.report_ = self._decide(compared, Xt, head)
        self.choice_ = self.report_.decision
        self.factor_ = result.factor
        self.target_mean_ = compared.target.mean
        self.trace_ = result.trace
        self.certified_ = bool(result.certified)
        self.map_ = self._map_of(self.choice_, compared)
        self.harm_report_ = self._harm(compared.shift, Xt, len(Xt), compared.target.trace, compared.noise_share)

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
        candidates: dict[str, Any] = {}
        if self.map != "auto":
            decision = _gate.Decision(self.map, "the map was asked for")
        elif head is None:
            decision = _gate.decide(followed.shift)
        else:
            if self._asked is None:
                self._asked = FollowGate(source, head, kinds=("scale", "monge"), shrink=self.shrink)
            self._asked.head = head
            decision = self._asked.ask_about(followed, X)
            candidates = self._asked.predictions
        known = "none" in candidates and candidates["none"].information is not None
        return Bunch(
            decision=decision.choice,
            sentence=decision.sentence,
            evidence=None if self.map != "auto" else "moments" if head is None else "probabilities" if known else "labels",
            shift=followed.shift._asdict(),
            candidates={name: p._asdict() for name, p in candidates.items()},
        )

    def _decide(self, compared: _compare.Comparison, Xt: np.ndarray[Any, Any], head: Any) -> Bunch:
        shift = compared.shift
        if self.map != "auto":
            return Bunch(
                decision=self.map, sentence="the map was asked for", evidence=None, shift=shift._asdict(), candidates={}
            )
        predictions = None
        if head is not None:
            asked = self._rows_to_ask_about(Xt)
            moved: dict[str, Any] = {"none": asked}
            for name in _gate.MAPS:
                moved[name] = compared.map(name, self.shrink).apply(asked)
            teach = None if self._witness_rows is None else self._witness_of
            predictions = answers_of(head, moved, teach, self._witness_rows)
        decision = _gate.decide(shift, predictions)
        known = predictions is not None and predictions["none"].information is not None
        return Bunch(
            decision=decision.choice,
            sentence=decision.sentence,
            evidence="moments" if predictions is None else "probabilities" if known else "labels",
            shift=shift._asdict(),
            candidates={} if predictions is None else {name: p._asdict() for name, p in predictions.items()},
        )

    def _witness_of(self, labels: Any) -> _witness.Witness | None:
        return _witness.taught_by(labels, self._witness_rows, self._source.mean, self._source.plain[0])

    def _map_of(self, kind: Any, compared: _compare.Comparison) -> itspace.TransportMap | None:
        if kind == "none":
            return None
        return compared.map(kind, self.shrink and kind != "whiten")

    def _harm(
        self, shift: _gate.Shift, Xt: np.ndarray[Any, Any], samples: float, spread: float, noise_share: float = np.nan
    ) -> Bunch:
        moved = 0.0
        if self.map_ is not None:
            moved = self._squared_moves(self.map_, Xt) / len(Xt)
        warnings = []
        if not self.certified_:
            warnings.append("a step of the alignment broke its promise; see trace_")
        if self.choice_ == "whiten" and noise_share > 0.5:
            warnings.append(f"{100 * noise_share:.0f} % of the shift is noise, and whiten is not shrunk by it")
        return Bunch(
            noise_share=noise_share,
            mean_share=shift.mean_share,
            unexplained_mean=shift.unexplained,
            samples=(self._source.samples, samples),
            features=Xt.shape[1],
            displacement=moved,
            relative_displacement=float(np.sqrt(moved / spread)) if spread > 0 else (np.inf if moved > 0 else 0.0),
            gate=f"{self.choice_}: {self.report_.sentence}",
            label_shift=_gate.about_label_shift(shift),
            warnings=warnings,
        )

    def _move(self, X: Any, sample_domain: Any, *, forward: bool) -> np.ndarray[Any, Any]:
        check_is_fitted(self)
        X = self._check(X, "X", reset=False, min_samples=1)
        rows = slice(None) if sample_domain is None else ~source_rows(sample_domain, len(X))
        moved = X.copy()
        for value, to_common in self.source_maps_.items() if sample_domain is not None else ():
            of_domain = np.asarray(sample_domain) == value
            moved[of_domain] = to_common.apply(X[of_domain])
        if self.map_ is not None:
            moved[rows] = (self.map_ if forward else self.map_.inverse()).apply(X[rows])
        return moved

    def _seed(self) -> int:
        if isinstance(self.random_state, numbers.Integral):
            return seed_of(int(self.random_state), "random_state")
        return int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "source_factor_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
