# SPDX-License-Identifier: Apache-2.0
"""Following a stream, held against NumPy's weighted covariance and against itself."""
import json
import math
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
