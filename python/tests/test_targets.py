# SPDX-License-Identifier: Apache-2.0
import copy
import pickle

import numpy as np
import pytest

import itspace
from oracle import covariance


def weighted_covariance(X, w):
    mean = np.average(X, axis=0, weights=w)
    return mean, (X - mean).T @ ((X - mean) * w[:, None]) / (w.sum() - (w**2).sum() / w.sum())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_target_is_its_covariance(rng, dtype):
    X = rng.standard_normal((12, 5)).astype(dtype)
    w = rng.random(12)
    T = rng.standard_normal((5, 3)).astype(dtype)
    U, s, diagonal = rng.standard_normal((5, 2)).astype(dtype), np.array([2.0, 0.5]), rng.random(5)
    S = covariance(rng, 5).astype(dtype)
    cases = [
        (itspace.Target.from_covariance(S), S, False),
        (itspace.Target.from_features(X), np.cov(X.T.astype(float)), True),
        (itspace.Target.from_features(X, sample_weight=w), weighted_covariance(X.astype(float), w)[1], True),
        (itspace.Target.from_factor(T), T @ T.T, True),
        (itspace.Target.low_rank_plus_diagonal(U, s, 0.25), (U * s) @ U.T + 0.25 * np.eye(5), False),
        (itspace.Target.low_rank_plus_diagonal(U, s, diagonal), (U * s) @ U.T + np.diag(diagonal), False),
    ]
    Y = rng.standard_normal((5, 4)).astype(dtype)
    for target, sigma, has_factor in cases:
        tolerance = 50 * float(np.finfo(dtype).eps)
        assert target.dim == 5 and target.dtype == dtype and target.has_factor == has_factor
        assert target.trace == pytest.approx(np.trace(sigma), rel=tolerance)
        product = target.apply(Y)
        assert product.dtype == dtype
        np.testing.assert_allclose(product, sigma @ Y, atol=tolerance * np.abs(sigma).sum())
        assert str(target.dim) in repr(target)


def test_features_know_their_mean_and_count(rng):
    X, w = rng.standard_normal((9, 3)) + 5, rng.random(9)
    np.testing.assert_allclose(itspace.Target.from_features(X, w).mean, np.average(X, axis=0, weights=w))
    assert itspace.Target.from_features(X).samples == 9
    assert itspace.Target.from_covariance(np.eye(3)).mean is None
    assert itspace.Target.from_covariance(np.eye(3)).samples is None


class Diagonal:
    """A target of the user's own, with attributes."""

    def __init__(self, entries):
        self.entries = np.asarray(entries)
        self.dim = len(entries)
        self.trace = float(np.sum(entries))
        self.calls = 0

    def apply(self, Y):
        self.calls += 1
        return self.entries[:, None] * Y


class DiagonalByMethods:
    def __init__(self, entries):
        self.entries = entries

    def dim(self):
        return len(self.entries)

    def trace(self):
        return np.float32(np.sum(self.entries))

    def apply(self, Y):
        return (self.entries[:, None] * Y).tolist()  # anything that becomes an array


def test_objects_of_ones_own():
    entries = np.array([5.0, 4.0, 3.0, 1.0, 0.5])
    start = np.eye(5)[:, :2] + 0.1
    expected = itspace.align(np.diag(entries), start, rank=2).factor
    own = Diagonal(entries)
    result = itspace.align(own, start, rank=2)
    np.testing.assert_allclose(result.factor, expected, atol=1e-13)
    assert own.calls == result.trace["passes_total"]
    np.testing.assert_allclose(itspace.align(DiagonalByMethods(entries), start, rank=2).factor, expected, atol=1e-13)
    assert itspace.verify(result.factor, own, result)["holds"]
    # The dtype: the object's own, else the start's, else float64.
    assert itspace.align(own, start.astype(np.float32), rank=2).factor.dtype == np.float32
    own.dtype = np.float32
    assert itspace.align(own, start, rank=2).factor.dtype == np.float32
    assert itspace.align(DiagonalByMethods(entries), rank=2).factor.dtype == np.float64


def test_what_an_object_raises_comes_out():
    class Broken(Diagonal):
        def apply(self, Y):
            raise LookupError("no such row")

    with pytest.raises(LookupError, match="no such row"):
        itspace.align(Broken(np.ones(3)), rank=1)


def test_an_object_that_answers_nonsense():
    class WrongShape(Diagonal):
        def apply(self, Y):
            return np.ones((2, 2))

    class NotNumbers(Diagonal):
        def apply(self, Y):
            return np.full(Y.shape, "x")

    class NoTrace(Diagonal):
        def __init__(self):
            super().__init__(np.ones(3))
            self.trace = float("nan")

    with pytest.raises(ValueError, match=r"shape \(2, 2\).*Sigma @ Y"):
        itspace.align(WrongShape(np.ones(3)), rank=1)
    with pytest.raises(TypeError, match="apply has dtype"):
        itspace.align(NotNumbers(np.ones(3)), rank=1)
    with pytest.raises(ValueError, match="trace is nan"):
        itspace.align(NoTrace(), rank=1)

    class Infinite(Diagonal):
        def apply(self, Y):
            return np.full(Y.shape, np.inf)

    with pytest.warns(RuntimeWarning, match="not_finite: .*target and the start.*too large or too small"):
        result = itspace.align(Infinite(np.ones(3)), np.ones((3, 1)), rank=1)
    assert result.status == "not_finite" and not result.certified
    assert np.isfinite(result.factor).all()


def test_target_is_made_by_its_constructors():
    with pytest.raises(TypeError, match="from_covariance"):
        itspace.Target()


def made_in_every_way(rng):
    X, w = rng.standard_normal((12, 5)), rng.random(12)
    U = rng.standard_normal((5, 2)).astype(np.float32)
    return [
        itspace.Target.from_covariance(covariance(rng, 5)),
        itspace.Target.from_factor(U),
        itspace.Target.from_features(X),
        itspace.Target.from_features(X, sample_weight=w),
        itspace.Target.low_rank_plus_diagonal(U, [2.0, 0.5], 0.25),
        itspace.Target.low_rank_plus_diagonal(U, [2.0, 0.5], rng.random(5)),
    ]


@pytest.mark.parametrize("again", [lambda t: pickle.loads(pickle.dumps(t)), copy.deepcopy, copy.copy])
def test_targets_pickle_and_copy(rng, again):
    Y = rng.standard_normal((5, 3))
    for target in made_in_every_way(rng):
        other = again(target)
        assert (other.kind, other.dim, other.dtype, other.samples) == (
            target.kind, target.dim, target.dtype, target.samples
        )  # fmt: skip
        assert other.trace == target.trace
        np.testing.assert_array_equal(other.apply(Y), target.apply(Y))


def test_a_deep_copy_has_data_of_its_own(rng):
    S = covariance(rng, 5)
    target = itspace.Target.from_covariance(S)
    other = copy.deepcopy(target)
    expected = S.copy()
    S[:] = 0  # what one must not do: the target reads this memory
    np.testing.assert_array_equal(other.apply(np.eye(5)), expected)
    np.testing.assert_array_equal(target.apply(np.eye(5)), S)


@pytest.mark.parametrize(("data", "blocks"), [(np.float32, np.float32), (np.float64, np.float64), (np.float32, np.float64)])
@pytest.mark.parametrize("n", [0, 1, 70])
def test_the_product_of_some_rows(rng, data, blocks, n):
    """What a worker of a cluster adds to a step."""
    X, Y = rng.standard_normal((n, 12)).astype(data), rng.standard_normal((12, 3)).astype(blocks)
    shift = rng.standard_normal(12).astype(blocks)
    Z = X.astype(np.float64) - shift
    found = itspace._core.rows_product(X, shift, Y)
    assert found.dtype == blocks
    bound = (n + 12) * np.finfo(blocks).eps * np.linalg.norm(Z) ** 2 * np.linalg.norm(Y)
    assert np.linalg.norm(found - Z.T @ (Z @ Y)) <= bound
    with pytest.raises(ValueError, match="12 columns, the block 11 rows"):
        itspace._core.rows_product(X, shift, Y[:11])
