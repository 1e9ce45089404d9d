# SPDX-License-Identifier: Apache-2.0
"""Following in the faces: partial_fit, the gate that is asked with each batch, and several sources."""

import os
import pickle

import numpy as np
import pytest

sklearn = pytest.importorskip("sklearn", reason="scikit-learn is not installed")

import itspace  # noqa: E402
from itspace import _compare, _gate  # noqa: E402
from itspace._follow import Followed  # noqa: E402
from itspace._heads import numbers_of  # noqa: E402
from itspace.sklearn import CovarianceAligner  # noqa: E402
from sklearn.linear_model import LogisticRegression  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402

CENTRES = 4 * np.array([[1.0, 0, 0, 0, 0], [0, 1, 0, 0, 0], [0, 0, 1, 0, 0], [-1, -1, -1, 0, 0]])


def samples(rng, count):
    labels = rng.integers(4, size=count)
    return CENTRES[labels] + rng.standard_normal((count, 5)), labels


def moved_away(X):
    return 3 * X + np.array([40.0, -10, 5, 0, 0])


@pytest.fixture
def source(rng):
    X, y = samples(rng, 600)
    return X, y, LogisticRegression(max_iter=300).fit(X, y)


def test_partial_fit_is_the_online_aligner_from_the_sources_factor(rng, source):
    X, y, _ = source
    aligner = CovarianceAligner(rank=3, map="monge", half_life=4, shrink=False).fit(X, y)
    follower = itspace.OnlineAligner(3, half_life=4, start=aligner.source_factor_)
    for _ in range(5):
        batch = moved_away(samples(rng, 80)[0])
        aligner.partial_fit(batch)
        seen = follower.observe(batch)
    assert np.array_equal(aligner.factor_, follower.factor)
    assert np.array_equal(aligner.target_mean_, follower.mean)
    target = itspace.Target.from_features(X)
    expected = follower.map(itspace.model_of(target, aligner.source_factor_), "monge")
    np.testing.assert_allclose(aligner.transform(batch), expected.apply(batch), rtol=1e-10, atol=1e-10)
    assert aligner.certified_ == seen.result.certified
    assert aligner.harm_report_.samples[1] == follower.effective_samples
    # Another fit or adapt ends the stream.
    aligner.adapt(batch).partial_fit(batch)
    assert aligner.harm_report_.samples[1] == pytest.approx(len(batch))


def test_the_first_batch_of_an_unfitted_aligner_is_its_source(rng):
    X, _ = samples(rng, 100)
    first = CovarianceAligner(rank=2).partial_fit(X)
    assert np.array_equal(first.source_factor_, CovarianceAligner(rank=2).fit(X).source_factor_)
    assert first.map_ is None
    first.partial_fit(moved_away(X))
    assert first.trace_ is not None


@pytest.mark.parametrize("kind", ["mean", "scale", "monge", "whiten"])
def test_following_brings_the_stream_into_the_sources_frame(rng, source, kind):
    X, y, head = source
    aligner = CovarianceAligner(rank=3, map=kind, half_life=5).fit(X, y)
    for _ in range(12):
        batch, labels = samples(rng, 100)
        aligner.partial_fit(moved_away(batch))
    moved = aligner.transform(moved_away(batch))
    assert np.abs(moved.mean(axis=0) - X.mean(axis=0)).max() < 1
    if kind != "mean":
        assert head.score(moved, labels) > head.score(moved_away(batch), labels) + 0.4


def test_the_gate_opens_and_closes_with_the_stream(rng, source):
    X, y, head = source
    aligner = CovarianceAligner(rank=3, half_life=1).fit(X, y)
    choices = []
    for k in range(16):
        away = 4 <= k < 10
        batch, labels = samples(rng, 300)
        batch = moved_away(batch) if away else batch
        aligner.partial_fit(batch, head=head)
        choices.append(aligner.choice_)
        if aligner.choice_ == "none":
            assert np.array_equal(aligner.transform(batch), batch)
    # Samples that the classifier judges well are left alone; where it collapses the map is applied; and back.
    assert choices[3] == "none" and aligner.report_.evidence == "probabilities"
    assert set(choices[6:10]) <= {"scale", "monge"}, choices
    assert choices[15] == "none", choices


def test_a_gate_beside_a_plain_aligner(rng, source):
    X, _, head = source
    target = itspace.Target.from_features(X)
    model = itspace.model_of(target, itspace.start_from(target, 3))
    follower, gate = itspace.OnlineAligner(3), itspace.FollowGate(model, head, buffer=250)
    for _ in range(4):
        batch, labels = samples(rng, 100)
        follower.observe(moved_away(batch))
        decision = gate.ask(follower, moved_away(batch))
    assert decision.choice == "scale" and gate.is_open
    assert head.score(gate.apply(moved_away(batch)), labels) > 0.9
    assert gate.predictions["scale"].spread > gate.predictions["none"].spread
    closed = itspace.FollowGate(model, head)
    follower = itspace.OnlineAligner(3)
    follower.observe(batch)
    assert closed.ask(follower, batch).choice == "none"
    assert closed.apply(batch) is batch
    for options, words in (({"kinds": ("cubic",)}, "cubic"), ({"kinds": ("mean", "monge")}, "one map"), ({"buffer": 0}, "buffer is 0")):
        with pytest.raises(ValueError, match=words):
            itspace.FollowGate(model, head, **options)


def test_the_buffer_holds_the_last_samples(rng, source):
    X, _, head = source
    target = itspace.Target.from_features(X)
    model = itspace.model_of(target, itspace.start_from(target, 3))
    asked = []

    def spy(samples_):
        asked.append(len(samples_))
        return head.predict(samples_)

    follower, gate = itspace.OnlineAligner(3), itspace.FollowGate(model, spy, buffer=100)
    for rows in (60, 60, 60, 300):
        batch = samples(rng, rows)[0]
        follower.observe(batch)
        gate.ask(follower, batch)
    assert asked[::2] == [60, 120, 120, 100]  # whole batches, at least as many as asked for


def test_what_moved_is_measured_as_between_two_models(rng):
    # By what _compare says of two models, and the formulas of normal samples.
    source, stream = (
        itspace.LowRankGaussian(rng.standard_normal((6, 2)), rng.standard_normal(6), 0.4, rng.uniform(1, 3, 6), False, n)
        for n in (300.0, 40.5)
    )
    clusters = _compare.Clusters(source.mean + rng.standard_normal((3, 6)) / 4, np.full(3, 0.01))
    followed = Followed(source, stream, clusters)
    move = float(((source.mean - stream.mean) ** 2).sum())
    models = [(model.factor, model.remainder) for model in (stream, source)]
    covariance = _compare.displacement(*models)
    traces = [float((model.deviations**2).sum()) for model in (source, stream)]
    error = traces[1] / 40.5
    kept = _compare.kept(_compare.expected_displacement(*models[1], 40.5, 300.0), covariance)
    expected = _gate.Shift(
        move / (move + covariance),
        _compare.kept(traces[0] / 300 + error, move),
        covariance / traces[0],
        kept,
        kept,
        itspace._core.unexplained_move(*clusters, source.mean, stream.mean, error),
    )
    np.testing.assert_allclose(followed.shift, expected, rtol=1e-12)
    squared = np.log(source.deviations / stream.deviations) ** 2
    each = np.maximum(0, 1 - (0.5 / 300 + 0.5 / 40.5) / squared)
    np.testing.assert_allclose(followed.map("scale").kept.deviations, each, rtol=1e-12, atol=1e-15)
    assert followed.map("monge").kept[:2] == (followed.shift.mean_kept, followed.shift.covariance_kept)
    assert followed.map("monge", False).kept[:2] == followed.map("whiten").kept[:2] == (1.0, 1.0)
    assert Followed(source, stream).shift.unexplained is None


class Told:
    """A classifier that says what it is told of samples as they are, and under maps, which move them."""

    classes_ = ("a", "b", "c")

    def __init__(self):
        self.answers = []

    def predict(self, samples_):
        return self.answers.pop(0)


@pytest.mark.parametrize("kinds", [("scale",), ("monge",), ("monge", "scale")])
@pytest.mark.parametrize("probabilities", [False, True])
def test_decides_as_the_rule_of_the_package(rng, source, kinds, probabilities):
    X, _, _ = source
    target = itspace.Target.from_features(X)
    model = itspace.model_of(target, itspace.start_from(target, 3))
    head = Told()
    gate = itspace.FollowGate(model, head, kinds=kinds, buffer=50)
    chosen = set()
    for _ in range(30):
        stream = itspace.LowRankGaussian(*model[:1], model.mean + rng.standard_normal(), *model[2:])
        shares = [rng.dirichlet(rng.uniform(0.05, 2) * np.array([rng.uniform(1, 9), 1, 1]), 50) for _ in range(1 + len(kinds))]
        answers = shares if probabilities else [np.array(head.classes_)[share.argmax(axis=1)] for share in shares]
        head.answers = list(answers)
        followed = Followed(model, stream)
        decision = gate.ask_about(followed, X[:50])
        expected = numbers_of(dict(zip(("none", *kinds), answers)), 3)
        for name, numbers in expected.items():
            np.testing.assert_allclose(gate.predictions[name].spread, numbers.spread, rtol=0, atol=1e-14)
            if probabilities:
                np.testing.assert_allclose(gate.predictions[name].information, numbers.information, rtol=0, atol=1e-14)
        assert decision.choice == _gate.decide(followed.shift, expected).choice
        assert gate.is_open == (decision.choice != "none")
        chosen.add(decision.choice)
    assert len(chosen) > 1, chosen


def test_patience_and_a_gate_that_was_pickled(rng, source):
    X, _, head = source
    target = itspace.Target.from_features(X)
    model = itspace.model_of(target, itspace.start_from(target, 3))
    follower, gate = itspace.OnlineAligner(3), itspace.FollowGate(model, head, patience=3)
    choices = []
    for _ in range(4):
        batch = moved_away(samples(rng, 200)[0])
        follower.observe(batch)
        gate = pickle.loads(pickle.dumps(gate))
        decision = gate.ask(follower, batch)
        choices.append(decision.choice)
        if decision.choice == "none":
            assert "in a row" in decision.sentence and gate.apply(batch) is batch
    assert choices == ["none", "none", "scale", "scale"]
    with pytest.raises(ValueError, match="patience is 0"):
        itspace.FollowGate(model, head, patience=0)


def test_balanced_following_forgets_no_class(rng, source):
    X, y, head = source
    batch, labels = samples(rng, 400)
    order = np.argsort(labels, kind="stable")
    plain, balanced = (CovarianceAligner(rank=3, map="scale", half_life=1).fit(X, y) for _ in range(2))
    for rows in np.array_split(order, 16):
        plain.partial_fit(batch[rows])
        balanced.partial_fit(batch[rows], predicted=labels[rows])
    # The stream ends with one class alone: its mean is that of the class, unless each counts as in the source.
    away = {name: np.linalg.norm(a.target_mean_ - X.mean(axis=0)) for name, a in (("plain", plain), ("balanced", balanced))}
    assert away["plain"] > 3 and away["balanced"] < 0.5, away
    assert head.score(balanced.transform(batch), labels) > head.score(plain.transform(batch), labels) + 0.2
    with pytest.raises(ValueError, match="9, which the source does not have"):
        balanced.partial_fit(batch, predicted=np.where(labels == 1, 9, labels))
    with pytest.raises(ValueError, match="no labels"):
        CovarianceAligner().fit(X).partial_fit(batch, predicted=labels)


# Several sources.


def test_several_sources_are_moved_into_the_frame_of_their_barycenter(rng):
    mixes = [np.diag([1.0, 2, 3, 1]), np.diag([3.0, 1, 1, 1])]
    X = np.concatenate([rng.standard_normal((500, 4)) @ mix + 5 * k for k, mix in enumerate(mixes)])
    Xt = 2 * rng.standard_normal((300, 4)) - 3
    domain = np.repeat([1, 2, -1], [500, 500, 300])
    both = np.concatenate([X, Xt])
    aligner = CovarianceAligner(rank=4, map="monge", shrink=False)
    moved = aligner.fit_transform(both, sample_domain=domain)
    assert sorted(aligner.source_maps_) == [1, 2]
    covariances = [np.cov(X[:500].T), np.cov(X[500:].T)]
    expected = itspace.barycenter(covariances, rank=4, steps=500, tolerance=0)
    barycenter = expected.factor @ expected.factor.T
    for value in (1, 2, -1):
        np.testing.assert_allclose(np.cov(moved[domain == value].T), barycenter, atol=0.05)
        np.testing.assert_allclose(moved[domain == value].mean(axis=0), X.mean(axis=0), atol=1e-6)
    np.testing.assert_allclose(aligner.transform(both, sample_domain=domain), moved)
    # Of one source, and of a pool of them, rows come back as they are.
    pooled = CovarianceAligner(rank=4, sources="pool").fit_transform(both, sample_domain=domain)
    assert np.array_equal(pooled[domain > 0], X)
    with pytest.raises(ValueError, match="sources is 'mean'"):
        CovarianceAligner(sources="mean").fit(both, sample_domain=domain)
    lonely = np.r_[3, domain[1:]]
    with pytest.raises(ValueError, match="source domain 3 has 1 row"):
        CovarianceAligner().fit(both, sample_domain=lonely)


DATA = os.environ.get("ITSPACE_DATA", os.path.join(os.path.dirname(__file__), "..", "..", "..", "shared", "data"))


def test_four_recordings_of_music_as_sources_of_the_fifth():
    folder = os.path.join(DATA, "music_genre_mgr58")
    if not os.path.isdir(folder):
        pytest.skip(f"no real data in {folder}; set ITSPACE_DATA")
    X = [np.load(os.path.join(folder, f"dom{k}_x.npy")).astype(float) for k in range(5)]
    domain = np.repeat([1, 2, 3, 4, -1], [len(part) for part in X])
    X = np.concatenate(X)
    X = StandardScaler().fit(X[domain > 0]).transform(X)
    aligner = CovarianceAligner(rank=16, map="monge")
    moved = aligner.fit_transform(X, sample_domain=domain)
    before = itspace.frechet_distance_from_features(X[domain == 1], X[domain == 4])
    after = itspace.frechet_distance_from_features(moved[domain == 1], moved[domain == 4])
    assert after < 0.3 * before, (before, after)
