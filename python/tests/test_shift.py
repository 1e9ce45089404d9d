# SPDX-License-Identifier: Apache-2.0
"""The test of shift, against NumPy."""
import numpy as np
import pytest

import itspace


def test_its_numbers_are_those_of_numpy(rng):
    source, target = rng.standard_normal((70, 6)), rng.standard_normal((50, 6)) * 1.5 + 0.5
    found = itspace.shift_test(source, target)
    assert found.mean.observed == pytest.approx(((source.mean(0) - target.mean(0)) ** 2).sum())
    S, T = np.cov(source.T), np.cov(target.T)
    assert found.covariance.observed == pytest.approx(itspace.bures_wasserstein(S, T, squared=True), rel=1e-5)
    pooled = (69 * S + 49 * T) / 118
    c = 1 / 70 + 1 / 50
    assert found.mean.noise == pytest.approx(c * np.trace(pooled))
    l = np.linalg.eigvalsh(pooled)
    a, mu = (l**2).sum() / 36, l.mean()
    rho = min(1, (a + mu**2) / (119 * (a - mu**2 / 6)))  # OAS
    l = (1 - rho) * l + rho * mu
    double = (np.multiply.outer(l, l) / np.add.outer(l, l)).sum() + l.sum() / 2
    assert found.covariance.noise == pytest.approx(c / 2 * double)
    assert found.mean.p_permutation <= 0.01 and found.covariance.p_permutation == 1 / 200
    assert found.rank == found.dim == 6 and found.explained == pytest.approx(1)
    for moved in found.directions:
        assert np.linalg.norm(moved.direction) == pytest.approx(1)


def test_samples_of_one_distribution_pass_most_of_the_time():
    false_alarms = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        source, target = (rng.standard_t(5, size=(n, 30)) for n in (40, 25))
        found = itspace.shift_test(source, target, permutations=39, seed=seed)
        false_alarms += found.mean.p_permutation <= 0.05
        false_alarms += found.covariance.p_permutation <= 0.05
    assert false_alarms <= 12  # 4 are expected of 80; more than 12 once in ten thousand times


def test_theory_alone_and_other_dtypes(rng):
    source, target = rng.standard_normal((40, 5)), rng.standard_normal((30, 5))
    alone = itspace.shift_test(source, target, permutations=0)
    assert np.isnan(alone.mean.p_permutation) and 0 <= alone.covariance.p_normal <= 1
    single = itspace.shift_test(source.astype(np.float32), target.astype(np.float32), permutations=0)
    assert single.covariance.observed == pytest.approx(alone.covariance.observed, rel=1e-3)


def test_misuse_is_named(rng):
    X = rng.standard_normal((10, 3))
    with pytest.raises(ValueError, match="3 columns and the target 4"):
        itspace.shift_test(X, rng.standard_normal((10, 4)))
    with pytest.raises(ValueError, match="at least 3"):
        itspace.shift_test(X, X[:2])
    with pytest.raises(ValueError, match=r"target\[1, 1\] is nan"):
        bad = X.copy()
        bad[1, 1] = np.nan
        itspace.shift_test(X, bad)
    with pytest.raises(ValueError, match="rank is 0"):
        itspace.shift_test(X, X, rank=0)
    with pytest.raises(ValueError, match="level is 2"):
        itspace.shift_test(X, X, level=2)
    with pytest.raises(TypeError, match="permutations"):
        itspace.shift_test(X, X, permutations=1.5)
