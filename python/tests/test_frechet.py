# SPDX-License-Identifier: Apache-2.0
import pickle

import numpy as np
import pytest

import itspace
from oracle import w2_squared


def features(rng, n, d, shift=0.0, scale=1.0):
    return rng.standard_normal((n, d)) * np.linspace(1, 0.1, d) * scale + shift


def test_against_the_definition_and_sqrtm(rng):
    linalg = pytest.importorskip("scipy.linalg")
    a, b = features(rng, 300, 20), features(rng, 200, 20, 0.3, 1.4)
    args = a.mean(0), np.cov(a.T), b.mean(0), np.cov(b.T)
    found = itspace.frechet_distance(*args)
    mean_part = np.sum((args[0] - args[2]) ** 2)
    assert found == pytest.approx(mean_part + w2_squared(args[1], args[3]), rel=1e-8)
    root = np.real(linalg.sqrtm(args[1] @ args[3]))
    assert found == pytest.approx(mean_part + np.trace(args[1] + args[3] - 2 * root), rel=1e-8)
    assert itspace.frechet_distance_from_features(a, b) == pytest.approx(found, rel=1e-9)


@pytest.mark.parametrize("n, m", [(10, 15), (10, 200), (2, 2), (40, 41)])
def test_fewer_samples_than_features(rng, n, m):
    d = 40
    a, b = features(rng, n, d), features(rng, m, d, 0.2)
    args = a.mean(0), np.cov(a.T), b.mean(0), np.cov(b.T)
    found = itspace.frechet_distance(*args)
    # The truth from factors, where singular covariances lose nothing.
    ca, cb = ((x - x.mean(0)) / np.sqrt(len(x) - 1) for x in (a, b))
    nuclear = np.linalg.svd(ca @ cb.T, compute_uv=False).sum()
    expected = np.sum((args[0] - args[2]) ** 2) + np.sum(ca**2) + np.sum(cb**2) - 2 * nuclear
    assert isinstance(found, float) and np.isfinite(found) and found >= 0
    assert found == pytest.approx(expected, rel=1e-6)
    assert itspace.frechet_distance_from_features(a, b) == pytest.approx(expected, rel=1e-11)


def test_degenerate_inputs():
    zero, one = np.zeros((3, 3)), np.eye(3)
    mu = np.zeros(3)
    assert itspace.frechet_distance(mu, zero, mu, zero) == 0
    assert itspace.frechet_distance(mu, zero, mu, one) == pytest.approx(3)
    assert itspace.frechet_distance(mu, one, mu, one) == pytest.approx(0, abs=1e-9)
    constant = np.ones((5, 3))
    assert itspace.frechet_distance_from_features(constant, constant + 1) == pytest.approx(3)


def test_covariances_rounded_to_float32(rng):
    a, b = features(rng, 30, 60), features(rng, 25, 60)
    sigma1, sigma2 = (np.cov(x.T).astype(np.float32).astype(np.float64) for x in (a, b))
    assert np.linalg.eigvalsh(sigma1).min() < 0
    found = itspace.frechet_distance(a.mean(0), sigma1, b.mean(0), sigma2)
    assert found == pytest.approx(itspace.frechet_distance_from_features(a, b), rel=1e-2)


def test_accumulator_is_the_moments_of_all_batches(rng):
    X = features(rng, 101, 7, shift=1e4)
    accumulator = itspace.FrechetAccumulator()
    assert accumulator.dim is None and accumulator.count == 0
    for batch in np.array_split(X, [1, 10, 10, 60]):
        accumulator.update(batch)
    assert accumulator.count == 101 and accumulator.dim == 7
    np.testing.assert_allclose(accumulator.mean, X.mean(0), rtol=1e-14)
    np.testing.assert_allclose(accumulator.covariance, np.cov(X.T), atol=1e-9)


def test_accumulators_merge_pickle_and_compute(rng):
    X, Z = features(rng, 80, 6), features(rng, 90, 6, 0.5)
    parts = [itspace.FrechetAccumulator(6).update(part) for part in np.array_split(X, 3)]
    whole = parts[0] + parts[1] + pickle.loads(pickle.dumps(parts[2]))
    assert [part.count for part in parts] == [27, 27, 26]  # + leaves its terms alone
    other = itspace.FrechetAccumulator().update(Z.astype(np.float32))
    expected = itspace.frechet_distance_from_features(X, Z)
    assert whole.compute(other) == pytest.approx(expected, rel=1e-5)
    assert other.compute(whole) == pytest.approx(whole.compute(other), rel=1e-9)
    parts[0].merge(parts[1]).merge(parts[2])
    np.testing.assert_array_equal(parts[0].covariance, whole.covariance)
    whole.reset()
    assert whole.count == 0 and whole.dim == 6
    with pytest.raises(ValueError, match="0 samples"):
        whole.compute(other)


def test_accumulator_misuse(rng):
    accumulator = itspace.FrechetAccumulator().update(features(rng, 5, 3))
    before = accumulator.covariance
    with pytest.raises(ValueError, match="4 columns"):
        accumulator.update(np.zeros((2, 4)))
    with pytest.raises(ValueError, match=r"batch\[0, 1\] is nan"):
        accumulator.update(np.array([[0.0, np.nan, 0.0]]))
    with pytest.raises(TypeError, match="FrechetAccumulator"):
        accumulator.compute(3)
    with pytest.raises(ValueError, match="dim is -1"):
        itspace.FrechetAccumulator(-1)
    np.testing.assert_array_equal(accumulator.covariance, before)
