# SPDX-License-Identifier: Apache-2.0
"""k-means of covariances on EEG-like data: a few sources, mixed to many channels, whose power tells the classes apart."""
import warnings

import numpy as np
import pytest
from oracle import objective

pytest.importorskip("sklearn", reason="scikit-learn is not installed")

from sklearn.base import clone  # noqa: E402
from sklearn.exceptions import ConvergenceWarning, NotFittedError  # noqa: E402
from sklearn.metrics import adjusted_rand_score  # noqa: E402

import itspace  # noqa: E402
from itspace.cluster import BuresWassersteinKMeans  # noqa: E402


def eeg_like(rng, trials=20, channels=16, samples=150, classes=3):
    """Covariances of trials: class c has more power in source c (a rhythm over its own region), noise on all channels."""
    mixing = rng.standard_normal((channels, 6))
    covariances, labels = [], []
    for c in range(classes):
        power = np.ones(6)
        power[c] = 4
        for _ in range(trials):
            gain = np.exp(0.1 * rng.standard_normal(6))
            signal = rng.standard_normal((samples, 6)) * (power * gain) @ mixing.T
            covariances.append(np.cov((signal + rng.standard_normal((samples, channels))).T))
            labels.append(c)
    return np.stack(covariances), np.array(labels)


@pytest.fixture
def trials(rng):
    return eeg_like(rng)


@pytest.mark.parametrize("rank", [None, 6, 2])
def test_finds_the_classes(trials, rank):
    X, truth = trials
    model = BuresWassersteinKMeans(3, rank=rank, n_init=3, random_state=0).fit(X)
    assert adjusted_rand_score(truth, model.labels_) > 0.95
    assert model.cluster_centers_.shape == (3, 16, rank or 16)
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    expected = sum(objective(model.cluster_centers_[c], S) for S, c in zip(X, model.labels_))
    assert model.inertia_ == pytest.approx(expected, rel=1e-9)
    assert model.score(X) == pytest.approx(-model.inertia_, rel=1e-12)
    distances = model.transform(X)
    assert distances.shape == (len(X), 3)
    np.testing.assert_array_equal(np.argmin(distances, axis=1), model.labels_)


def test_new_trials_go_to_their_class(rng):
    X, truth = eeg_like(rng)
    order = rng.permutation(len(X))
    train, test = order[:40], order[40:]
    model = BuresWassersteinKMeans(3, rank=6, n_init=3, random_state=0).fit(X[train])
    names = {c: np.bincount(truth[train][model.labels_ == c]).argmax() for c in range(3)}
    found = np.array([names[c] for c in model.predict(X[test])])
    assert np.mean(found == truth[test]) > 0.9


def test_more_rounds_never_raise_the_inertia(trials):
    X, _ = trials
    inertia = []
    for rounds in (1, 2, 4, 8):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            inertia.append(BuresWassersteinKMeans(5, rank=3, max_iter=rounds, tol=0, random_state=1).fit(X).inertia_)
    assert np.all(np.diff(inertia) <= 1e-12 * inertia[0])


def test_one_cluster_is_the_barycenter(trials):
    X, _ = trials
    model = BuresWassersteinKMeans(1, rank=3, steps=200, random_state=0).fit(X)
    assert model.inertia_ == pytest.approx(len(X) * itspace.barycenter(X, rank=3, steps=2000, tolerance=1e-12).objective, rel=1e-4)


def test_weights_count_as_repetitions(trials):
    X, _ = trials
    weights = np.ones(len(X))
    weights[:5] = 2
    weighted = BuresWassersteinKMeans(1, rank=16, steps=300, random_state=0).fit(X, sample_weight=weights)
    repeated = BuresWassersteinKMeans(1, rank=16, steps=300, random_state=0).fit(np.concatenate([X, X[:5]]))
    assert weighted.inertia_ == pytest.approx(repeated.inertia_, rel=1e-9)


def test_repeats_itself_and_clones(trials):
    X, _ = trials
    model = BuresWassersteinKMeans(3, rank=4, random_state=7)
    first = model.fit(X).cluster_centers_
    np.testing.assert_array_equal(clone(model).fit(X).cluster_centers_, first)
    np.testing.assert_array_equal(clone(model).fit_predict(X), model.labels_)


def test_targets_of_features(rng):
    sets = [rng.standard_normal((30, 8)) * scale for scale in (1, 1, 5, 5)]
    model = BuresWassersteinKMeans(2, rank=2, random_state=0).fit([itspace.Target.from_features(X) for X in sets])
    assert model.labels_[0] == model.labels_[1] != model.labels_[2] == model.labels_[3]


def test_as_many_clusters_as_trials_and_equal_trials():
    X = np.stack([np.diag([1.0, 2.0]), np.diag([2.0, 1.0]), np.diag([5.0, 5.0])])
    assert BuresWassersteinKMeans(3, random_state=0).fit(X).inertia_ == pytest.approx(0, abs=1e-12)
    same = np.stack([np.eye(3)] * 4)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)  # an empty cluster that is filled and empties again is no movement
        BuresWassersteinKMeans(2, random_state=0).fit(same)
    assert BuresWassersteinKMeans(2, random_state=0).fit(same).inertia_ == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize(
    ("options", "data", "error", "text"),
    [
        ({"n_clusters": 0}, None, ValueError, "n_clusters is 0"),
        ({"n_clusters": 2.0}, None, TypeError, "n_clusters"),
        ({"n_clusters": 9}, None, ValueError, "fewer than n_clusters=9"),
        ({"rank": 0}, None, ValueError, "rank is 0"),
        ({"tol": -1.0}, None, ValueError, "tol"),
        ({"max_iter": 0}, None, ValueError, "max_iter"),
        ({}, np.eye(3), ValueError, r"\(m, d, d\)"),
        ({}, [], ValueError, "no covariance"),
        ({}, [np.eye(2), np.eye(3)], ValueError, "dimensions"),
        ({}, np.full((3, 2, 2), np.nan), ValueError, "nan"),
    ],
)
def test_misuse_is_refused_by_name(options, data, error, text):
    X = np.stack([np.eye(3)] * 4) if data is None else data
    with pytest.raises(error, match=text):
        BuresWassersteinKMeans(**{"n_clusters": 2, **options}).fit(X)


def test_misuse_of_a_fitted_model():
    X = np.stack([np.eye(3)] * 4)
    with pytest.raises(NotFittedError):
        BuresWassersteinKMeans(2).predict(X)
    model = BuresWassersteinKMeans(2, random_state=0).fit(X)
    with pytest.raises(ValueError, match="dimension 2"):
        model.predict(np.stack([np.eye(2)]))
    with pytest.raises(ValueError, match="sample_weight"):
        model.fit(X, sample_weight=[1.0])
    with pytest.raises(ValueError, match="sample_weight"):
        model.fit(X, sample_weight=[-1.0, 1, 1, 1])
