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

from typing import Any, Literal

import numpy as np
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

import itspace
from itspace._aligner_stream import FollowingAligner
from itspace._domains import is_target, labels_of, rows_of_both_domains, source_rows, target_folds

__all__ = ["CovarianceAligner", "target_folds"]


class CovarianceAligner(OneToOneFeatureMixin, TransformerMixin, FollowingAligner):
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
        alone where there is no head. With a head, and `shrink`, its maps leave of the mean's move what other class shares
        are likely to have done: they go to the mean that the source would have with these. ``"none"`` leaves samples alone, ``"mean"`` shifts by the means, ``"scale"``
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

    source_maps_: dict[float, itspace.TransportMap]

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
            is_source = rows_of_both_domains(sample_domain, len(X))
            labels = None if labels is None else labels[is_source]
            X, Xt = X[is_source], X[~is_source]
            X, self.source_maps_ = self._into_one_frame(X, np.asarray(sample_domain)[is_source])
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
            As in :meth:`adapt`. It is asked with each batch about the last 512 samples, as they are and under the maps
            ``"scale"`` and ``"monge"``; where nothing speaks for one samples are left alone until a later batch.
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
        self._follow(X, head, predicted)
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

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "source_factor_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
