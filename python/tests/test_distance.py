# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest

import itspace
from oracle import covariance, psd_root, w2_squared


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("d", [1, 2, 7, 30])
def test_two_matrices(rng, d, dtype):
    A, B = covariance(rng, d).astype(dtype), covariance(rng, d).astype(dtype)
    found = itspace.bures_wasserstein(A, B)
    assert type(found) is float
    expected = w2_squared(A.astype(float), B.astype(float))
    assert found**2 == pytest.approx(expected, rel=1e-8)
    assert itspace.bures_wasserstein(A, B, squared=True) == pytest.approx(expected, rel=1e-8)


def test_stacks(rng):
    A = np.stack([covariance(rng, 4) for _ in range(3)])
    B = np.stack([covariance(rng, 4) for _ in range(5)])
    expected = np.array([[np.sqrt(w2_squared(a, b)) for b in B] for a in A])
    np.testing.assert_allclose(itspace.bures_wasserstein(A, B), expected, rtol=1e-7)
    np.testing.assert_allclose(itspace.bures_wasserstein(A, B, squared=True), expected**2, rtol=1e-7)
    np.testing.assert_allclose(itspace.bures_wasserstein(A, B[0]), expected[:, 0], rtol=1e-7)
    np.testing.assert_allclose(itspace.bures_wasserstein(A[1], B), expected[1], rtol=1e-7)
    np.testing.assert_allclose(itspace.bures_wasserstein(A, B[:3], paired=True), np.diag(expected), rtol=1e-7)
    deep = itspace.bures_wasserstein(np.stack([A, A]), B)
    assert deep.shape == (2, 3, 5)
    np.testing.assert_allclose(deep[1], expected, rtol=1e-7)
    assert itspace.bures_wasserstein(A[:0], B).shape == (0, 5)
    assert itspace.bures_wasserstein(A.astype(np.float32), B.astype(np.float32)).dtype == np.float32


def test_a_metric(rng):
    A, B, C = (covariance(rng, 6, rank) for rank in (6, 3, 12))
    d = itspace.bures_wasserstein
    assert d(A, A) < 1e-12 and d(B, B) < 1e-7  # B is singular: its entries show no more
    assert d(A, B) == pytest.approx(d(B, A), rel=1e-9)
    assert d(A, C) <= d(A, B) + d(B, C)


def test_keeps_its_digits_where_the_two_nearly_agree(rng):
    factor = rng.standard_normal((10, 10))
    near = factor + 1e-6 * rng.standard_normal((10, 10))
    u, _, vt = np.linalg.svd(near.T @ factor)
    expected = np.linalg.norm(factor - near @ (u @ vt))  # Procrustes: a sum of squares
    found = itspace.bures_wasserstein(factor @ factor.T, near @ near.T)
    assert found == pytest.approx(expected, rel=1e-6)


def test_gaussian_w2(rng):
    mu1, mu2 = rng.standard_normal(5), rng.standard_normal(5)
    A, B = covariance(rng, 5), covariance(rng, 5)
    expected = np.sum((mu1 - mu2) ** 2) + w2_squared(A, B)
    assert itspace.gaussian_w2(mu1, A, mu2, B, squared=True) == pytest.approx(expected, rel=1e-9)
    assert itspace.gaussian_w2(mu1, A, mu2, B) == pytest.approx(np.sqrt(expected), rel=1e-9)
    assert itspace.gaussian_w2(1.0, 4.0, 4.0, 4.0) == 3.0  # one dimension


@pytest.mark.parametrize("t", [0.0, 0.3, 1.0])
def test_geodesic(rng, t):
    A, B = covariance(rng, 5), covariance(rng, 5)
    root = psd_root(A)
    inverse = np.linalg.inv(root)
    M = inverse @ psd_root(root @ B @ root) @ inverse
    path = (1 - t) * np.eye(5) + t * M
    np.testing.assert_allclose(itspace.geodesic(A, B, t), path @ A @ path, atol=1e-12)


def test_geodesic_has_constant_speed(rng):
    A, B = covariance(rng, 4, 2), covariance(rng, 4, 3)
    C = itspace.geodesic(A, B, 0.25)
    full = itspace.bures_wasserstein(A, B)
    assert itspace.bures_wasserstein(A, C) == pytest.approx(0.25 * full, rel=1e-6)
    assert itspace.bures_wasserstein(C, B) == pytest.approx(0.75 * full, rel=1e-6)


@pytest.mark.parametrize("n", [12, 40])
def test_one_pair_has_one_distance(n):
    """Whichever function is asked: not two numbers that agree to rounding."""
    rng = np.random.default_rng(3)
    A, B = np.cov(rng.standard_normal((n, 20)).T), np.cov(rng.standard_normal((60, 20)).T)
    zero = np.zeros(20)
    for accuracy in ({}, {"accuracy": 1e-10}, {"accuracy": 0}):
        found = itspace.bures_wasserstein(A, B, squared=True, **accuracy)
        assert itspace.gaussian_w2(zero, A, zero, B, squared=True, **accuracy) == found
        assert itspace.frechet_distance(zero, A, zero, B, **accuracy) == found
        stacks = itspace.bures_wasserstein(np.stack([A]), np.stack([B]), squared=True, **accuracy)
        assert stacks[0, 0] == found


def test_accuracy_keeps_small_distances():
    """A distance far below the rounding of tr A + tr B, in every function."""
    rng = np.random.default_rng(4)
    L = np.eye(15) + 0.1 * rng.standard_normal((15, 15))
    A, B = L @ L.T, (1 + 1e-9) ** 2 * (L @ L.T)
    zero = np.zeros(15)
    expected = 1e-18 * np.trace(A)  # (1e-9)^2 tr A
    for found in (itspace.bures_wasserstein(A, B, squared=True), itspace.frechet_distance(zero, A, zero, B)):
        assert found == pytest.approx(expected, rel=1e-4)  # entries are rounded to 1e-16: 1e-7 of W2


@pytest.mark.parametrize("wrong", [-1.0, float("nan"), float("inf")])
def test_accuracy_is_a_share(wrong):
    with pytest.raises(ValueError, match="accuracy"):
        itspace.bures_wasserstein(np.eye(3), 2 * np.eye(3), accuracy=wrong)
    with pytest.raises(ValueError, match="accuracy"):
        itspace.frechet_distance_from_features(np.eye(4), 2 * np.eye(4), accuracy=wrong)
