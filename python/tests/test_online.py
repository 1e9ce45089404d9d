# SPDX-License-Identifier: Apache-2.0
"""Following a stream, held against NumPy's weighted covariance and against itself."""
import json
import math
import pickle
import subprocess

import numpy as np
import pytest

import itspace


def batches(rng, count, rows=20, cols=7, dtype=np.float64):
    basis = rng.standard_normal((cols, cols))
    return [(rng.standard_normal((rows, cols)) @ basis + 3).astype(dtype) for _ in range(count)]


@pytest.mark.parametrize("unit, half_life", [("batches", 3.0), ("samples", 50.0), ("batches", math.inf)])
def test_the_covariance_is_the_weighted_one(rng, unit, half_life):
    stream = batches(rng, 6)
    aligner = itspace.OnlineAligner(2, half_life=half_life, half_life_unit=unit, keep=7)
    for batch in stream:
        seen = aligner.observe(batch)
    ages = np.arange(5, -1, -1) * (20 if unit == "samples" else 1)
    weights = np.repeat(0.5 ** (ages / half_life), 20)
    everything = np.concatenate(stream)
    expected = np.cov(everything.T, aweights=weights)
    np.testing.assert_allclose(aligner.apply(np.eye(7)), expected, atol=1e-12 * np.abs(expected).max())
    np.testing.assert_allclose(aligner.mean, np.average(everything, axis=0, weights=weights), rtol=1e-13)
    np.testing.assert_allclose(aligner.deviations, np.sqrt(np.diag(expected)), rtol=1e-12)
    assert aligner.effective_samples == pytest.approx(weights.sum() ** 2 / (weights**2).sum())
    assert seen.effective_samples == aligner.effective_samples
    assert aligner.objective == pytest.approx(itspace.bures_wasserstein(aligner.factor @ aligner.factor.T, expected) ** 2)
    assert seen.result.certified and seen.result.objective == aligner.objective
    assert (aligner.dim, aligner.rank, aligner.batches) == (7, 2, 6)


def test_weights_and_window(rng):
    stream = batches(rng, 5)
    weights = rng.uniform(0.1, 2, size=(5, 20))
    aligner = itspace.OnlineAligner(2, window=2)
    for batch, weight in zip(stream, weights):
        aligner.observe(batch, weight)
    expected = np.cov(np.concatenate(stream[3:]).T, aweights=np.concatenate(weights[3:]))
    np.testing.assert_allclose(aligner.apply(np.eye(7)), expected, atol=1e-12 * np.abs(expected).max())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_resumed_stream_has_the_same_bits(rng, tmp_path, dtype):
    stream = batches(rng, 8, dtype=dtype)
    straight = itspace.OnlineAligner(2, half_life=3, keep=3, run_length=50, reference_batches=4)
    halted = itspace.OnlineAligner(2, half_life=3, keep=3, run_length=50, reference_batches=4)
    for batch in stream:
        straight.observe(batch)
    for batch in stream[:5]:
        halted.observe(batch)
    halted.save(tmp_path / "state.npz")
    resumed = itspace.OnlineAligner.load(tmp_path / "state.npz")
    for batch in stream[5:]:
        resumed.observe(batch)
    assert resumed.factor.dtype == dtype
    assert np.array_equal(resumed.factor, straight.factor)
    assert resumed.objective == straight.objective
    assert str(np.load(tmp_path / "state.npz")["format"]) == "itspace.online/1"


def test_maps_and_drift(rng):
    source = rng.standard_normal((400, 5))
    target = itspace.Target.from_features(source)
    model = itspace.model_of(target, itspace.start_from(target, 2))
    aligner = itspace.OnlineAligner(2, run_length=200, reference_batches=10)
    for _ in range(10):
        seen = aligner.observe(2 * rng.standard_normal((50, 5)) + 4)
    assert not seen.drift.watching
    moved = aligner.map(model, "scale").apply(2 * rng.standard_normal((500, 5)) + 4)
    assert np.abs(moved.mean(axis=0) - source.mean(axis=0)).max() < 0.3
    assert any(aligner.observe(2 * rng.standard_normal((50, 5)) + 7).drift.alarm for _ in range(3))
    aligner.relearn_drift()
    assert not aligner.observe(2 * rng.standard_normal((50, 5)) + 7).drift.watching


def test_bad_batches_change_nothing(rng):
    first, other = batches(rng, 2, dtype=np.float32)
    aligner = itspace.OnlineAligner(2)
    with pytest.raises(ValueError, match="no batch yet"):
        aligner.factor
    with pytest.warns(RuntimeWarning, match="no rows"):
        assert aligner.observe(np.zeros((0, 7))).skipped
    aligner.observe(first)
    factor = aligner.factor
    with pytest.raises(TypeError, match="float64.*float32"):
        aligner.observe(other.astype(np.float64))
    with pytest.raises(ValueError, match="6 columns.*dimension 7"):
        aligner.observe(other[:, :6].copy())
    bad = other.copy()
    bad[3, 2] = np.nan
    with pytest.raises(ValueError, match=r"batch\[3, 2\]"):
        aligner.observe(bad)
    with pytest.raises(ValueError, match="3 weights for 20"):
        aligner.observe(other, np.ones(3))
    with pytest.warns(RuntimeWarning, match="skipped"):
        assert aligner.observe(other[:0]).skipped
    assert aligner.batches == 1 and np.array_equal(aligner.factor, factor)


@pytest.mark.parametrize(
    "options, text",
    [
        ({"rank": 0}, "rank is 0"),
        ({"half_life": 0}, "half_life is 0"),
        ({"half_life": -1.0}, "half_life is -1"),
        ({"window": 0}, "window is 0"),
        ({"window": 3, "half_life": 2}, "one of the two"),
        ({"half_life_unit": "days"}, "days"),
        ({"keep": 0}, "keep is 0"),
        ({"run_length": 1}, "run_length is 1"),
        ({"dtype": "float16"}, "float16"),
        ({"alpha": 3.0}, "3"),
    ],
)
def test_bad_options_are_named(options, text):
    with pytest.raises(ValueError, match=text):
        itspace.OnlineAligner(**{"rank": 2, **options})


def test_other_files_are_refused(tmp_path):
    np.save(tmp_path / "plain.npy", np.eye(2))
    with pytest.raises(RuntimeError, match="itspace.online/1"):
        itspace.OnlineAligner.load(tmp_path / "plain.npy")


def test_the_program_goes_on_from_pythons_state(rng, tmp_path, program):
    stream = batches(rng, 4)
    aligner = itspace.OnlineAligner(2, half_life=3)
    aligner.observe(stream[0])
    aligner.save(tmp_path / "state.npz")
    for i, batch in enumerate(stream[1:]):
        aligner.observe(batch)
        np.save(tmp_path / f"{i}.npy", batch)
    command = [program, "follow", "--quiet", "--state", "state.npz", "0.npy", "1.npy", "2.npy"]
    lines = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True).stdout.splitlines()
    assert json.loads(lines[-1])["objective"] == pytest.approx(aligner.objective, rel=1e-12)
    assert itspace.OnlineAligner.load(tmp_path / "state.npz").batches == 4


# Balanced by class.


def flowers(rng, count):
    """Samples of three classes in shares that the source does not have, sorted by class."""
    labels = np.repeat(["lily", "rose", "tulip"], [count // 6, count // 2, count - count // 6 - count // 2])
    means = {"lily": 0.0, "rose": 9.0, "tulip": -9.0}
    return rng.standard_normal((count, 5)) + np.array([means[label] for label in labels])[:, None], labels


def balanced_weights(labels, shares, weights):
    out = np.zeros(len(labels))
    for label, share in shares.items():
        out[labels == label] = share * weights[labels == label] / weights[labels == label].sum()
    return out


@pytest.mark.parametrize("half_life", [math.inf, 3.0])
def test_a_balanced_stream_has_each_class_at_its_share(rng, half_life):
    X, labels = flowers(rng, 120)
    shares = {"rose": 0.2, "tulip": 0.3, "lily": 0.5}
    aligner = itspace.OnlineAligner(2, half_life=half_life, keep=5, balance=shares)
    assert aligner.classes == ("rose", "tulip", "lily")
    for first in range(0, 120, 20):
        seen = aligner.observe(X[first : first + 20], predicted=labels[first : first + 20])
    ages = np.repeat(np.arange(5, -1, -1), 20)
    weights = balanced_weights(labels, shares, 0.5 ** (ages / half_life))
    expected = np.cov(X.T, aweights=weights)
    np.testing.assert_allclose(aligner.apply(np.eye(5)), expected, atol=1e-12 * np.abs(expected).max())
    np.testing.assert_allclose(aligner.mean, np.average(X, axis=0, weights=weights), atol=1e-12)
    raw = 0.5 ** (ages / half_life)
    for label in shares:
        assert seen.class_shares[label] == pytest.approx(raw[labels == label].sum() / raw.sum())
        np.testing.assert_allclose(
            aligner.class_means[label], np.average(X[labels == label], axis=0, weights=raw[labels == label]), atol=1e-12
        )


def test_balance_by_the_labels_of_the_source_and_by_probabilities(rng, tmp_path):
    X, labels = flowers(rng, 60)
    source_labels = np.array(["rose"] * 5 + ["lily"] * 3 + ["tulip"] * 2)
    aligner = itspace.OnlineAligner(2, balance=source_labels)
    assert aligner.classes == ("lily", "rose", "tulip")  # sorted, as a classifier has them
    soft = itspace.OnlineAligner(2, balance={"lily": 3, "rose": 5, "tulip": 2})
    probabilities = (labels[:, None] == np.array(aligner.classes)).astype(float)
    aligner.observe(X, predicted=labels)
    soft.observe(X, predicted=probabilities)
    np.testing.assert_allclose(aligner.apply(np.eye(5)), soft.apply(np.eye(5)), rtol=1e-12, atol=1e-12)
    aligner.save(tmp_path / "state.npz")
    loaded = itspace.OnlineAligner.load(tmp_path / "state.npz")
    assert loaded.classes == aligner.classes
    loaded.observe(X[:7], predicted=labels[:7])
    aligner.observe(X[:7], predicted=labels[:7])
    assert np.array_equal(loaded.factor, aligner.factor)
    copied = pickle.loads(pickle.dumps(aligner))
    copied.observe(X[7:], predicted=labels[7:])
    aligner.observe(X[7:], predicted=labels[7:])
    assert np.array_equal(copied.factor, aligner.factor)


def test_classes_never_seen_in_the_source_are_refused_by_name(rng):
    X, labels = flowers(rng, 12)
    aligner = itspace.OnlineAligner(2, balance={"lily": 1, "rose": 1, "tulip": 1})
    aligner.observe(X, predicted=labels)
    factor = aligner.factor
    strange = labels.astype(object)
    strange[5] = "cactus"
    with pytest.raises(ValueError, match=r"predicted\[5\] is 'cactus'.*'lily', 'rose', 'tulip'"):
        aligner.observe(X, predicted=strange)
    with pytest.raises(ValueError, match="11 predicted classes for 12"):
        aligner.observe(X, predicted=labels[:11])
    with pytest.raises(ValueError, match="no predicted classes"):
        aligner.observe(X)
    with pytest.raises(ValueError, match=r"shape \(1, 1, 12\)"):
        aligner.observe(X, predicted=labels[None, None])
    with pytest.raises(ValueError, match="12 x 2"):
        aligner.observe(X, predicted=np.ones((12, 2)))
    assert aligner.batches == 1 and np.array_equal(aligner.factor, factor)
    with pytest.raises(ValueError, match="not balanced"):
        itspace.OnlineAligner(2).observe(X, predicted=labels)
    with pytest.raises(ValueError, match="share of class 1 is 0"):
        itspace.OnlineAligner(2, balance={1: 0, 2: 1})
    with pytest.raises(TypeError, match="NoneType"):
        itspace.OnlineAligner(2, balance={None: 1})


def test_the_program_balances_as_python_does(rng, tmp_path, program):
    X, names = flowers(rng, 60)
    labels = np.unique(names, return_inverse=True)[1] * 10  # 0, 10, 20
    source_labels = np.repeat([0, 10, 20], [5, 3, 2])
    aligner = itspace.OnlineAligner(2, half_life=3, balance=source_labels)
    for first in range(0, 60, 20):
        aligner.observe(X[first : first + 20], predicted=labels[first : first + 20])
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "predicted.npy", labels)
    np.save(tmp_path / "source.npy", source_labels)
    np.save(tmp_path / "strange.npy", np.where(np.arange(60) == 33, 7, labels))

    def follow(*arguments):
        command = [program, "follow", "--quiet", *arguments, "x.npy"]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)

    options = ["--rank", "2", "--half-life", "3", "--batch", "20", "--source-labels", "source.npy"]
    done = follow(*options, "--predicted", "predicted.npy", "--state", "state.npz")
    assert done.returncode == 0, done.stderr
    last = json.loads(done.stdout.splitlines()[-1])
    assert last["objective"] == pytest.approx(aligner.objective, rel=1e-12)
    assert list(last["class_shares"]) == ["0", "10", "20"]
    assert itspace.OnlineAligner.load(tmp_path / "state.npz").classes == (0, 10, 20)
    refused = follow(*options, "--predicted", "strange.npy")
    assert refused.returncode == 2 and "class 7" in refused.stderr and "0, 10, 20" in refused.stderr
    refused = follow("--batch", "20", "--state", "state.npz")
    assert refused.returncode == 2 and "--predicted" in refused.stderr
    refused = follow("--rank", "2", "--predicted", "predicted.npy")
    assert refused.returncode == 2 and "--source-labels" in refused.stderr
    refused = follow(*options)
    assert refused.returncode == 2 and "--predicted" in refused.stderr


def test_begins_where_it_is_told(rng):
    stream = batches(rng, 2)
    start = rng.standard_normal((7, 2))
    aligner = itspace.OnlineAligner(2, start=start)
    seen = aligner.observe(stream[0])
    assert seen.result.trace["objective"][0] == pytest.approx(
        itspace.bures_wasserstein(start @ start.T, np.cov(stream[0].T)) ** 2
    )
    with pytest.raises(ValueError, match="7 x 3.*rank = 2"):
        itspace.OnlineAligner(2, start=np.ones((7, 3)))
