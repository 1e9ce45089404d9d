# SPDX-License-Identifier: Apache-2.0
# scikit-learn comes without types.
# mypy: disallow-subclassing-any=False, warn-return-any=False
"""k-means of covariances, for scikit-learn: clusters around low-rank Bures-Wasserstein barycenters.

The samples are covariances (of EEG trials, of windows of a sensor, of domains), the distance is W2 of the centred Gaussians,
and a centre is a factor of at most ``rank`` columns, so that thousands of channels need no d x d matrix for a centre.
"""

from __future__ import annotations

import numbers
import warnings
from typing import Any, List, Optional

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

import itspace
from itspace._barycenter import as_targets
from itspace._domains import check_integer
from itspace._result import remedy_of_float32

__all__ = ["BuresWassersteinKMeans"]

# It has no precision: it computes in the dtype of the covariances.
_FLOAT64_COVARIANCES = "Pass the covariances as float64: astype(numpy.float64)"


class BuresWassersteinKMeans(ClusterMixin, TransformerMixin, BaseEstimator):
    """k-means of covariances in the Bures-Wasserstein distance, with centres of low rank.

    Each round assigns every covariance to its nearest centre and moves the centre by certified steps toward the
    barycenter of its own, from where it is: neither can raise the inertia.

    Parameters
    ----------
    n_clusters : int, default=8
    rank : int or None, default=None
        Columns of a centre; more than d counts as d. None: d, the full rank.
    steps : int, default=10
        Steps of each centre in a round, at most.
    max_iter : int, default=50
        Rounds, at most.
    n_init : int, default=1
        Runs from so many seedings (k-means++), of which the one of least inertia counts.
    tol : float, default=1e-6
        Stop when a round lowers the inertia by no more than this share of it.
    random_state : int, RandomState instance or None, default=None

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, d, rank)
        Factors: the covariance of centre c is ``cluster_centers_[c] @ cluster_centers_[c].T``.
    labels_ : ndarray of shape (n,)
    inertia_ : float
        Sum of the squared distances of all covariances to their centres, weighted by ``sample_weight``. With a rank below
        that of the data no choice of centres makes it 0.
    n_iter_ : int
    n_features_in_ : int
        The dimension d.

    Examples
    --------
    >>> import numpy as np
    >>> from itspace.cluster import BuresWassersteinKMeans
    >>> X = np.array([np.diag([a, b]) for a, b in [(9, 1), (8, 1), (1, 9), (1, 8)]], dtype=float)
    >>> model = BuresWassersteinKMeans(2, rank=1, random_state=0).fit(X)
    >>> bool(model.labels_[0] == model.labels_[1] != model.labels_[2] == model.labels_[3])
    True
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        rank: Optional[int] = None,
        steps: int = 10,
        max_iter: int = 50,
        n_init: int = 1,
        tol: float = 1e-6,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.rank = rank
        self.steps = steps
        self.max_iter = max_iter
        self.n_init = n_init
        self.tol = tol
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> "BuresWassersteinKMeans":
        """Cluster covariances.

        Parameters
        ----------
        X : array of shape (n, d, d), or list of covariances and itspace.Target
        y : ignored
        sample_weight : array of shape (n,), optional
        """
        for name, least in (("n_clusters", 1), ("steps", 1), ("max_iter", 1), ("n_init", 1)):
            check_integer(name, getattr(self, name), least)
        if self.rank is not None:
            check_integer("rank", self.rank, 1)
        tol: Any = self.tol
        if isinstance(tol, (bool, np.bool_)) or not isinstance(tol, numbers.Real):
            raise TypeError(f"tol is {tol!r}; it must be a number")
        if not 0 <= float(tol) < np.inf:
            raise ValueError(f"tol is {self.tol!r}; it must be a number of 0 or more")
        targets = self._targets_of(X)
        if len(targets) < self.n_clusters:
            raise ValueError(f"X holds {len(targets)} covariances, fewer than n_clusters={self.n_clusters}")
        weights = np.ones(len(targets))
        if sample_weight is not None:
            weights = np.asarray(sample_weight, dtype=np.float64)
            if weights.shape != (len(targets),):
                raise ValueError(f"sample_weight has shape {weights.shape}, and X holds {len(targets)} covariances")
            if not np.all(np.isfinite(weights)) or np.any(weights < 0) or np.count_nonzero(weights) < self.n_clusters:
                raise ValueError(
                    f"sample_weight must be finite, 0 or more, and more than 0 for at least n_clusters={self.n_clusters} of X"
                )
        d = targets[0].dim
        rank = d if self.rank is None else min(self.rank, d)
        random = check_random_state(self.random_state)
        best: Any = None
        for _ in range(self.n_init):
            found = self._run(targets, weights, rank, random)
            if best is None or found[0] < best[0]:
                best = found
        self.inertia_, self.labels_, centers, self.n_iter_, converged = best
        self.cluster_centers_ = np.stack(centers)
        self.n_features_in_ = d
        if not converged:
            warnings.warn(
                f"k-means was still moving after max_iter={self.max_iter} rounds; raise max_iter, or tol", ConvergenceWarning, stacklevel=2
            )
        return self

    def _targets_of(self, X: Any) -> "List[itspace.Target]":
        targets = as_targets(X)[0]
        if not targets:
            raise ValueError("X holds no covariance")
        dims = {target.dim for target in targets}
        if len(dims) > 1:
            raise ValueError(f"the covariances of X have dimensions {sorted(dims)}; they must have one")
        return targets

    @remedy_of_float32(_FLOAT64_COVARIANCES)
    def _run(self, targets: "List[itspace.Target]", weights: np.ndarray, rank: int, random: Any) -> Any:
        centers = self._seed_centers(targets, weights, rank, random)
        distances = np.stack([_distances(targets, center) for center in centers], axis=1)
        labels, inertia = _assign(distances, weights)
        for iteration in range(1, self.max_iter + 1):
            self._fill_empty(targets, weights, rank, labels, centers, distances)
            for c in range(self.n_clusters):
                own = np.flatnonzero((labels == c) & (weights > 0))
                if own.size == 0:
                    continue
                moved = itspace.barycenter(
                    [targets[i] for i in own], weights[own] / weights[own].sum(), start=centers[c], steps=self.steps, tolerance=0
                )
                centers[c] = moved.factor
                distances[:, c] = _distances(targets, centers[c])
            before = inertia
            labels, inertia = _assign(distances, weights)
            if before - inertia <= self.tol * before:
                return inertia, labels, centers, iteration, True
        return inertia, labels, centers, self.max_iter, False

    def _seed_centers(self, targets: "List[itspace.Target]", weights: np.ndarray, rank: int, random: Any) -> List[np.ndarray]:
        """k-means++: the next centre is the leading part of a covariance drawn by its squared distance to those there are.

        The tail that a centre of low rank cannot reach is taken off, or every draw would be nearly uniform.
        """
        first = random.choice(len(targets), p=weights / weights.sum())
        centers = [itspace.start_from(targets[first], rank)]
        nearest = _distances(targets, centers[0])
        floors = None
        while len(centers) < self.n_clusters:
            if floors is None:
                floors = np.array([_distances([target], itspace.start_from(target, rank))[0] for target in targets])
            chances = weights * np.maximum(nearest - floors, 0)
            if not chances.sum() > 0:
                chances = weights.copy()
            pick = random.choice(len(targets), p=chances / chances.sum())
            centers.append(itspace.start_from(targets[pick], rank))
            nearest = np.minimum(nearest, _distances(targets, centers[-1]))
        return centers

    def _fill_empty(
        self, targets: "List[itspace.Target]", weights: np.ndarray, rank: int, labels: np.ndarray, centers: List[Any], distances: np.ndarray
    ) -> None:
        """A centre without a covariance takes the one that is farthest from its own, where that leaves none alone."""
        for c in range(self.n_clusters):
            if np.any((labels == c) & (weights > 0)):
                continue
            counts = np.bincount(labels[weights > 0], minlength=self.n_clusters)
            own = np.where((weights > 0) & (counts[labels] > 1), distances[np.arange(len(labels)), labels], -np.inf)
            taken = int(np.argmax(own))
            if own[taken] == -np.inf:
                return
            labels[taken] = c
            centers[c] = itspace.start_from(targets[taken], rank)
            distances[:, c] = _distances(targets, centers[c])

    @remedy_of_float32(_FLOAT64_COVARIANCES)
    def _squared(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        targets = self._targets_of(X)
        if targets[0].dim != self.n_features_in_:
            raise ValueError(f"X has covariances of dimension {targets[0].dim}, and the model was fitted on {self.n_features_in_}")
        return np.stack([_distances(targets, center) for center in self.cluster_centers_], axis=1)

    def predict(self, X: Any) -> np.ndarray:
        """The nearest centre of each covariance."""
        return np.argmin(self._squared(X), axis=1)

    def transform(self, X: Any) -> np.ndarray:
        """The distance (W2) of each covariance to each centre, of shape (n, n_clusters)."""
        return np.sqrt(self._squared(X))

    def score(self, X: Any, y: Any = None) -> float:
        """Minus the inertia of X."""
        return -float(self._squared(X).min(axis=1).sum())


def _distances(targets: "List[itspace.Target]", factor: np.ndarray) -> np.ndarray:
    """W2^2 of the factor to each target: one pass over each."""
    return np.asarray(itspace.barycenter(targets, start=factor, steps=0).objectives)


def _assign(distances: np.ndarray, weights: np.ndarray) -> Any:
    labels = np.argmin(distances, axis=1)
    return labels, float(weights @ distances[np.arange(len(labels)), labels])
