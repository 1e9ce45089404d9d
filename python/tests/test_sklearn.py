# SPDX-License-Identifier: Apache-2.0
"""The scikit-learn face: against the dense formulas, when it adapts, and what it takes in POT's and skada's habits."""

import os
import warnings

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="scikit-learn is not installed")

import itspace  # noqa: E402
from itspace.sklearn import CovarianceAligner  # noqa: E402
from sklearn.exceptions import NotFittedError  # noqa: E402
from sklearn.linear_model import LogisticRegression  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402


def power(matrix, exponent):
    values, vectors = np.linalg.eigh(matrix)
    return (vectors * values**exponent) @ vectors.T


def dense_map(kind, model, source):
    """The d x d map between N(., model) and N(., source), from the definitions."""
    if kind == "whiten":
        return power(source, 0.5) @ power(model, -0.5)
    root, inverse_root = power(model, 0.5), power(model, -0.5)
    return inverse_root @ power(root @ source @ root, 0.5) @ inverse_root


def truncation(covariance, rank):
    values, vectors = np.linalg.eigh(covariance)
    leading = vectors[:, -rank:] * np.sqrt(values[-rank:])
    return leading @ leading.T, values[:-rank].sum() / max(1, len(values) - rank)


# The map is the one of the formulas.


@pytest.mark.parametrize("kind", ["monge", "whiten"])
@pytest.mark.parametrize("rank", [3, 8])
def test_map_is_that_of_the_dense_formulas_between_the_models(domains, kind, rank):
    Xs, Xt = domains
    aligner = CovarianceAligner(rank=rank, steps=60, solver="ritz", map=kind, shrink=False).fit(Xs, Xt)
    # At the floor both factors are the rank-r truncations, so both models are known from eigendecompositions.
    models = []
    for X in (Xt, Xs):
        covariance = np.cov(X.T)
        low_rank, remainder = truncation(covariance, rank)
        floor = 1e-6 * np.trace(covariance) / 8
        models.append(low_rank + max(remainder, floor) * np.eye(8))
    expected = Xs.mean(axis=0) + (Xt - Xt.mean(axis=0)) @ dense_map(kind, *models).T
    assert np.abs(aligner.transform(Xt) - expected).max() < 1e-6 * np.abs(expected).max()


def test_full_rank_map_gives_target_samples_the_source_mean_and_covariance(domains):
    Xs, Xt = domains
    exact = {"map": "monge", "shrink": False, "solver": "ritz", "floor": 1e-12}
    mapped = CovarianceAligner(rank=8, steps=30, **exact).fit(Xs, Xt).transform(Xt)
    assert np.allclose(mapped.mean(axis=0), Xs.mean(axis=0), atol=1e-9)
    assert np.abs(np.cov(mapped.T) - np.cov(Xs.T)).max() < 1e-6 * np.abs(np.cov(Xs.T)).max()


def test_mean_map_shifts_and_does_nothing_else(domains):
    Xs, Xt = domains
    aligner = CovarianceAligner(map="mean", shrink=False).fit(Xs, Xt)
    shift = Xs.mean(axis=0) - Xt.mean(axis=0)
    assert np.allclose(aligner.transform(Xt), Xt + shift, atol=1e-12)
    assert np.allclose(aligner.inverse_transform(aligner.transform(Xt)), Xt, atol=1e-12)
    assert np.isclose(aligner.harm_report_.displacement, shift @ shift)
    assert np.isclose(aligner.harm_report_.relative_displacement**2, shift @ shift / np.trace(np.cov(Xt.T)))
    constant = np.ones((5, 8))
    assert np.allclose(CovarianceAligner(map="mean", shrink=False).fit(Xs, constant).transform(constant), Xs.mean(axis=0))


@pytest.mark.parametrize("kind", ["auto", "none", "mean", "scale", "scale+monge", "monge", "whiten"])
def test_inverse_transform_undoes_transform(domains, kind):
    Xs, Xt = domains
    aligner = CovarianceAligner(rank=3, map=kind).fit(Xs, Xt)
    assert np.abs(aligner.inverse_transform(aligner.transform(Xt)) - Xt).max() < 1e-9 * np.abs(Xt).max()


def test_trace_and_report_tell_what_happened(domains):
    Xs, Xt = domains
    aligner = CovarianceAligner(rank=3, steps=4).fit(Xs, Xt)
    objective = np.asarray(aligner.trace_["objective"])
    assert len(objective) == 5 and (np.diff(objective) < 0).all() and aligner.certified_
    factor, covariance = aligner.factor_, np.cov(Xt.T)
    root = power(covariance, 0.5)
    definition = (factor**2).sum() + np.trace(covariance) - 2 * np.linalg.svd(root @ factor, compute_uv=False).sum()
    assert np.isclose(objective[-1], definition, rtol=1e-9)
    # The shares are those of the map that is not shrunk; at full rank the samples are the model.
    full = CovarianceAligner(rank=8, steps=40, solver="ritz", floor=1e-12, map="monge", shrink=False).fit(Xs, Xt)
    moved = full.transform(Xt) - Xt
    mean_square = (moved**2).sum(axis=1).mean()
    report = full.harm_report_
    assert np.isclose(report.displacement, mean_square)
    assert np.isclose(report.relative_displacement**2, mean_square / np.trace(np.cov(Xt.T)))
    of_mean, of_covariance = (moved.mean(axis=0) ** 2).sum(), moved.var(axis=0, ddof=1).sum()
    assert np.isclose(report.mean_share, of_mean / (of_mean + of_covariance), rtol=1e-5)
    assert report.samples == (300, 250) and report.features == 8


def test_report_says_what_is_noise_and_warns_of_nothing_else(domains):
    Xs, Xt = domains
    few, many = (CovarianceAligner(rank=3).fit(Xs, X).harm_report_ for X in (Xt[:12], Xt))
    assert many.noise_share < few.noise_share <= 1
    assert CovarianceAligner(rank=3).fit(Xs[::2], Xs[1::2]).harm_report_.noise_share > 0.5
    assert few.warnings == many.warnings == []
    unshrunk = CovarianceAligner(rank=3, map="whiten").fit(Xs[::2], Xs[1::2]).harm_report_
    assert "whiten is not shrunk" in unshrunk.warnings[0]


# Whether to adapt.


def classes(rng, count=5, samples=1500, features=10):
    """Labelled samples of a few classes, and a classifier of them."""
    centres = 3 * rng.normal(size=(count, features))
    labels = rng.integers(count, size=samples)
    X = centres[labels] + rng.normal(size=(samples, features))
    return X, labels, LogisticRegression().fit(X[::2], labels[::2])


def test_auto_adapts_where_the_classifier_collapses(rng):
    X, labels, head = classes(rng)
    Xs, Xt, yt = X[::2], 4 * X[1::2] + 25, labels[1::2]
    before = head.score(Xt, yt)
    aligner = CovarianceAligner().fit(Xs).adapt(Xt, head=head)
    assert aligner.choice_ == "scale" and aligner.report_.evidence == "probabilities"
    assert head.score(aligner.transform(Xt), yt) > 0.95 > 0.5 > before
    assert set(aligner.report_.candidates) == {"none", "mean", "scale", "scale+monge", "monge"}
    assert aligner.report_.candidates["none"]["spread"] < aligner.report_.candidates["scale"]["spread"]
    same = CovarianceAligner().fit(Xs, Xt, head=head.predict_proba)
    assert same.report_ == aligner.report_ and np.array_equal(same.transform(Xt), aligner.transform(Xt))


def test_auto_asks_a_classifier_without_probabilities_for_labels(rng):
    X, labels, head = classes(rng)
    aligner = CovarianceAligner().fit(X[::2], 4 * X[1::2] + 25, head=head.predict)
    assert aligner.choice_ == "scale" and aligner.report_.evidence == "labels"
    assert all(numbers["information"] is None for numbers in aligner.report_.candidates.values())


@pytest.mark.parametrize("with_head", [True, False])
def test_auto_leaves_halves_of_one_domain_alone(rng, with_head):
    X, _, head = classes(rng)
    aligner = CovarianceAligner().fit(X[::2], X[1::2], head=head if with_head else None)
    assert aligner.choice_ == "none" and aligner.map_ is None
    assert np.array_equal(aligner.transform(X), X) and np.array_equal(aligner.inverse_transform(X), X)
    assert aligner.harm_report_.displacement == 0 and aligner.harm_report_.gate.startswith("none: left alone")


@pytest.mark.parametrize("with_head", [True, False])
def test_auto_leaves_thinned_classes_alone(rng, with_head):
    X, labels, head = classes(rng, samples=3000)
    rows = np.flatnonzero((labels > 2) | (np.arange(len(X)) % 20 == 1))
    Xt = X[rows[rows % 2 == 1]]
    aligner = CovarianceAligner().fit(X[::2], Xt, head=head if with_head else None)
    assert aligner.choice_ == "none", aligner.report_
    assert "other class shares alone explain" in aligner.harm_report_.label_shift
    # A map would have cost something here.
    mapped = CovarianceAligner(map="monge").fit(X[::2], Xt).transform(Xt)
    yt = labels[rows[rows % 2 == 1]]
    assert head.score(mapped, yt) < head.score(Xt, yt) - 0.03


def test_auto_leaves_of_a_move_what_thinned_classes_did(rng):
    X, labels, head = classes(rng, samples=4000)
    rows = np.flatnonzero(((labels > 1) | (np.arange(len(X)) % 10 == 1)) & (np.arange(len(X)) % 2 == 1))
    shift = np.full(X.shape[1], 6.0)
    Xt = X[rows] + shift  # moved, and two classes are rare
    aligner = CovarianceAligner().fit(X[::2], Xt, head=head)
    plain = CovarianceAligner(map=aligner.choice_).fit(X[::2], Xt)
    assert aligner.choice_ != "none"
    error, plain_error = (np.linalg.norm(a.transform(Xt).mean(axis=0) - X[rows].mean(axis=0)) for a in (aligner, plain))
    assert error < 0.9 * plain_error  # nearer to where they came from
    unshrunk = CovarianceAligner(shrink=False).fit(X[::2], Xt, head=head)
    np.testing.assert_allclose(unshrunk.transform(Xt).mean(axis=0), X[::2].mean(axis=0), atol=1e-9)
    no_head = CovarianceAligner().fit(X[::2], Xt)
    assert no_head.choice_ != "none"
    np.testing.assert_array_equal(no_head.transform(Xt), CovarianceAligner(map=no_head.choice_).fit(X[::2], Xt).transform(Xt))


@pytest.mark.parametrize("with_head", [True, False])
def test_auto_undoes_a_drift_of_the_covariance_alone(rng, with_head):
    X, _, head = classes(rng, features=30)
    X -= X.mean(axis=0)
    directions = np.linalg.eigh(np.cov(X.T))[1][:, -3:]
    drifted = X[1::2] + (X[1::2] @ directions * 5) @ directions.T
    aligner = CovarianceAligner(rank=6).fit(X[::2], drifted, head=head if with_head else None)
    assert aligner.choice_ == "monge", aligner.report_


def test_a_map_that_was_asked_for_is_used(domains):
    Xs, Xt = domains
    for kind in ("none", "mean", "scale", "scale+monge", "monge", "whiten"):
        aligner = CovarianceAligner(rank=3, map=kind).fit(Xs, Xt)
        assert aligner.choice_ == aligner.report_.decision == kind
    assert np.array_equal(CovarianceAligner(map="none").fit(Xs, Xt).transform(Xt), Xt)


def test_samples_that_do_not_vary_are_left_alone(domains):
    Xs, _ = domains
    constant = np.ones((5, 8))
    assert CovarianceAligner().fit(constant, constant).choice_ == "none"
    assert np.isfinite(CovarianceAligner().fit(Xs, constant).transform(constant)).all()


# What fit takes.


def test_all_spellings_of_two_domains_agree(domains):
    Xs, Xt = domains
    X, domain = np.vstack([Xt[:100], Xs, Xt[100:]]), np.r_[-np.ones(100), np.ones(300), -2 * np.ones(150)]
    expected = CovarianceAligner(rank=3).fit(Xs, Xt).transform(Xt)
    y = np.zeros(300)
    for other in (
        CovarianceAligner(rank=3).fit(Xs=Xs, Xt=Xt),
        CovarianceAligner(rank=3).fit(Xs, y, Xt=Xt),
        CovarianceAligner(rank=3).fit(X, sample_domain=domain),
        CovarianceAligner(rank=3).fit(X, np.zeros(550), sample_domain=domain.tolist()),
        CovarianceAligner(rank=3).fit(Xs).adapt(Xt),
        CovarianceAligner(rank=3).fit(Xs, Xt[::-1]).adapt(Xt),
    ):
        assert np.array_equal(other.transform(Xt), expected)


def test_source_alone_is_the_identity_until_a_target_comes(domains):
    Xs, Xt = domains
    aligner = CovarianceAligner(rank=3).fit(Xs, np.arange(300) % 2)
    assert np.array_equal(aligner.transform(Xt), Xt) and aligner.map_ is None
    assert "no target domain" in aligner.harm_report_.warnings[0]
    assert not np.allclose(aligner.adapt(Xt).transform(Xt), Xt)


def test_labels_in_the_shape_of_samples_are_labels_when_the_target_is_named(domains):
    Xs, Xt = domains
    labels = np.ones_like(Xs)
    assert np.array_equal(
        CovarianceAligner(rank=3).fit(Xs, labels, Xt=Xt).transform(Xt),
        CovarianceAligner(rank=3).fit(Xs, Xt).transform(Xt),
    )


def test_a_second_array_that_is_neither_target_nor_labels(domains):
    Xs, Xt = domains
    with pytest.raises(ValueError, match=r"X has shape \(300, 8\) and the second array has shape \(250, 5\).*Xt="):
        CovarianceAligner(rank=4).fit(Xs, Xt[:, :5])
    with pytest.warns(UserWarning, match=r"\(250, 8\).*\(250, 5\).*taken for y.*Xt="):
        aligner = CovarianceAligner(rank=4).fit(Xs[:250], Xt[:, :5])
    assert aligner.map_ is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        CovarianceAligner(rank=4).fit(Xs, np.zeros((300, 3), dtype=int))  # labels of several outputs
        CovarianceAligner(rank=4).fit(Xs, np.zeros((300, 1)))
        CovarianceAligner(rank=4).fit(Xs, np.zeros((300, 3)), Xt=Xt)


def test_masked_samples_are_refused(domains):
    Xs, Xt = domains
    with pytest.raises(ValueError, match="Xt has .* masked value"):
        CovarianceAligner(rank=4).fit(Xs, Xt=np.ma.masked_greater(Xt, 3))


def test_source_rows_come_back_unchanged(domains):
    Xs, Xt = domains
    X, domain = np.vstack([Xs, Xt]), np.r_[np.ones(300), -np.ones(250)]
    aligner = CovarianceAligner(rank=3)
    both = aligner.fit_transform(X, sample_domain=domain)
    assert np.array_equal(both[:300], Xs)
    assert np.array_equal(both[300:], aligner.transform(Xt))
    assert np.array_equal(both, aligner.transform(X, sample_domain=domain))
    assert np.array_equal(CovarianceAligner(rank=3).fit_transform(Xs, Xt=Xt), Xs)
    assert np.array_equal(aligner.transform(Xs, sample_domain=np.ones(300)), Xs)


@pytest.mark.parametrize("kind", ["auto", "mean", "scale", "scale+monge", "monge", "whiten"])
@pytest.mark.parametrize("samples", [2, 3, 7])
def test_fewer_samples_than_rank_stay_finite(kind, samples):
    rng = np.random.default_rng(0)
    Xs, Xt = rng.normal(size=(10, 100)), rng.normal(size=(samples, 100))
    for shrink in (True, False):
        aligner = CovarianceAligner(rank=16, map=kind, shrink=shrink).fit(Xs, Xt)
        assert np.isfinite(aligner.transform(Xt)).all()


def test_warm_start_goes_on_where_the_last_target_left(domains):
    Xs, Xt = domains
    cold = CovarianceAligner(rank=3, steps=1, alpha=0.5).fit(Xs, Xt)
    warm = CovarianceAligner(rank=3, steps=1, alpha=0.5, warm_start=True).fit(Xs, Xt)
    assert np.array_equal(cold.factor_, warm.factor_)
    ended = cold.trace_["objective"][-1]
    assert np.isclose(warm.adapt(Xt).trace_["objective"][0], ended)
    assert warm.trace_["objective"][-1] < ended
    assert np.isclose(cold.adapt(Xt).trace_["objective"][-1], ended)


def test_rank_is_a_budget(domains):
    Xs, Xt = domains
    assert CovarianceAligner(rank=16).fit(Xs, Xt).rank_ == 8
    automatic = CovarianceAligner(rank="auto").fit(Xs, Xt)
    assert 1 <= automatic.rank_ <= 8 and automatic.factor_.shape == (8, automatic.rank_)


def test_random_state_repeats(domains):
    Xs, Xt = domains
    runs = [
        CovarianceAligner(rank=2, solver="ritz", guard=2, random_state=seed).fit(Xs, Xt).factor_ for seed in (3, 3, 4)
    ]
    assert np.array_equal(runs[0], runs[1])
    assert not np.array_equal(runs[0], runs[2])
    CovarianceAligner(random_state=None).fit(Xs, Xt)
    CovarianceAligner(random_state=np.random.RandomState(0)).fit(Xs, Xt)


@pytest.mark.parametrize(
    ("error", "words", "call"),
    [
        (ValueError, "no target rows", lambda a, s, t: a.fit(s, sample_domain=np.ones(300))),
        (ValueError, "no source rows", lambda a, s, t: a.fit(s, sample_domain=-np.ones(300))),
        (ValueError, "7 zeros", lambda a, s, t: a.fit(s, sample_domain=np.r_[np.zeros(7), np.ones(293)])),
        (ValueError, "one value per row", lambda a, s, t: a.fit(s, sample_domain=np.ones(7))),
        (TypeError, "needs numbers", lambda a, s, t: a.fit(s, sample_domain=np.ones(300, bool))),
        (ValueError, "twice", lambda a, s, t: a.fit(s, Xs=s, Xt=t)),
        (ValueError, "twice", lambda a, s, t: a.fit(s, Xt=t, sample_domain=np.ones(300))),
        (ValueError, "no source samples", lambda a, s, t: a.fit(Xt=t)),
        (ValueError, "7 features", lambda a, s, t: a.fit(s, Xt=t[:, :7])),
        (ValueError, "1 sample", lambda a, s, t: a.fit(s, Xt=t[:1])),
        (ValueError, "Input Xt contains NaN", lambda a, s, t: a.fit(s, Xt=np.where(t > 3, np.nan, t))),
        (ValueError, "Input Xt contains NaN", lambda a, s, t: a.fit(s).adapt(t * np.nan)),
        (ValueError, "Input Xs contains NaN", lambda a, s, t: a.fit(Xs=s * np.nan, Xt=t)),
        (ValueError, "NaN", lambda a, s, t: a.fit(s, t).transform(t * np.nan)),
        (ValueError, "'optimal'", lambda a, s, t: a.set_params(map="optimal").fit(s, t)),
        (ValueError, "rank is 0", lambda a, s, t: a.set_params(rank=0).fit(s, t)),
        (TypeError, "rank is 2.5", lambda a, s, t: a.set_params(rank=2.5).fit(s, t)),
        (ValueError, "steps is -1", lambda a, s, t: a.set_params(steps=-1).fit(s, t)),
        (ValueError, "cubic", lambda a, s, t: a.set_params(solver="cubic").fit(s, t)),
        (ValueError, "alpha", lambda a, s, t: a.set_params(alpha=2.5).fit(s, t)),
        (ValueError, "floor", lambda a, s, t: a.set_params(floor=0).fit(s, t)),
        (ValueError, "target's samples are all equal", lambda a, s, t: a.set_params(map="monge").fit(s, np.ones_like(t))),
        (ValueError, "source's samples are all equal", lambda a, s, t: a.set_params(map="monge").fit(np.ones_like(s), t)),
        (ValueError, "head was given without a target", lambda a, s, t: a.fit(s, head=len)),
        (ValueError, "asks no head", lambda a, s, t: a.set_params(map="mean").fit(s, t, head=len)),
        (TypeError, "head is int", lambda a, s, t: a.fit(s, t, head=3)),
        (NotFittedError, "not fitted", lambda a, s, t: a.transform(t)),
        (NotFittedError, "not fitted", lambda a, s, t: a.adapt(t)),
    ],
)
def test_misuse_is_named(domains, error, words, call):
    with pytest.raises(error, match=words):
        call(CovarianceAligner(), *domains)


# Real features.

DATA = os.environ.get("ITSPACE_DATA", os.path.join(os.path.dirname(__file__), "..", "..", "..", "shared", "data"))


def test_music_under_noise_gains_from_the_map():
    folder = os.path.join(DATA, "music_genre_mgr58")
    if not os.path.isdir(folder):
        pytest.skip(f"no real data in {folder}; set ITSPACE_DATA")
    Xs, Xt = (np.load(os.path.join(folder, f"dom{i}_x.npy")).astype(float) for i in (0, 4))
    y = np.load(os.path.join(folder, "dom0_y.npy"))
    train = np.arange(len(Xs)) % 2 == 0  # the same songs in every domain: split by song
    scaler = StandardScaler().fit(Xs[train])
    Xs, Xt = scaler.transform(Xs), scaler.transform(Xt)
    head = LogisticRegression(max_iter=300).fit(Xs[train], y[train])
    scores = {"none": head.score(Xt[~train], y[~train])}
    for kind in ("mean", "monge"):
        aligner = CovarianceAligner(map=kind).fit(Xs[train], Xt[train])
        scores[kind] = head.score(aligner.transform(Xt[~train]), y[~train])
    assert scores["monge"] > scores["none"] + 0.1, scores
    assert itspace.frechet_distance_from_features(aligner.transform(Xt), Xs) < 0.2 * (
        itspace.frechet_distance_from_features(Xt, Xs)
    )
