# SPDX-License-Identifier: Apache-2.0
"""One rule for what is a covariance, whichever function is asked."""
import numpy as np
import pytest

import itspace
from itspace import _core
from oracle import covariance

D = 8
EPS32 = float(np.finfo(np.float32).eps)

TAKERS = {
    "align": lambda S: itspace.align(S, rank=2, steps=2).factor,
    "verify": lambda S: itspace.verify(np.eye(D)[:, :2], S)["objective"],
    "start_from": lambda S: itspace.start_from(S, 2),
    "auto_rank": lambda S: itspace.auto_rank(S),
    "from_covariance": lambda S: itspace.Target.from_covariance(S).apply(np.eye(D)),
    "truncate": lambda S: itspace.truncate(S, 2),
    "leading_eigenvalues": lambda S: itspace.leading_eigenvalues(S, 3),
    "geodesic": lambda S: itspace.geodesic(S, np.eye(D, dtype=S.dtype), 0.3),
    "bures_wasserstein": lambda S: itspace.bures_wasserstein(S, np.eye(D, dtype=S.dtype)),
    "stack": lambda S: itspace.bures_wasserstein(np.stack([S, S]), np.eye(D, dtype=S.dtype)),
    "gaussian_w2": lambda S: itspace.gaussian_w2(np.zeros(D), S, np.zeros(D), np.eye(D)),
    "frechet_distance": lambda S: itspace.frechet_distance(np.zeros(D), np.eye(D), np.zeros(D), S),
}
EIGENVALUES_ARE_LOOKED_AT = ("from_covariance", "bures_wasserstein", "stack", "gaussian_w2", "frechet_distance")


def asymmetric(S, share):
    out = S.copy()
    out[2, 5] += share * np.abs(S).max()
    return out


@pytest.mark.parametrize("taker", TAKERS)
@pytest.mark.parametrize("share", [1e-9, 0.9 * D * EPS32])
def test_asymmetry_of_rounding_is_averaged_away(rng, taker, share):
    S = asymmetric(covariance(rng, D), share)
    before = S.copy()
    np.testing.assert_array_equal(TAKERS[taker](S), TAKERS[taker]((S + S.T) / 2))
    np.testing.assert_array_equal(S, before)


@pytest.mark.parametrize("taker", TAKERS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_asymmetry_beyond_it_is_refused(rng, taker, dtype):
    S = asymmetric(covariance(rng, D), 1.2 * D * EPS32).astype(dtype)
    with pytest.raises(ValueError, match=r"not symmetric: entries \[5, 2\] = \S+ and \[2, 5\] = \S+ differ by") as caught:
        TAKERS[taker](S)
    # The two values are told apart by their digits.
    words = str(caught.value).split()
    first, second = (dtype(words[k + 1]) for k, word in enumerate(words) if word == "=")
    assert (first, second) == (S[5, 2], S[2, 5])


@pytest.mark.parametrize("taker", EIGENVALUES_ARE_LOOKED_AT)
def test_eigenvalues_of_rounding_and_beyond(taker):
    turn = np.linalg.qr(np.random.default_rng(0).standard_normal((D, D)))[0]

    def with_least(value):
        S = (turn * np.r_[120.0, 50, 20, 10, 5, 2, 1, value]) @ turn.T
        return (S + S.T) / 2

    TAKERS[taker](with_least(-0.9 * D * EPS32 * 120))
    with pytest.raises(ValueError, match="indefinite: its smallest eigenvalue is -0.*ridge"):
        TAKERS[taker](with_least(-1.2 * D * EPS32 * 120))


@pytest.mark.parametrize("taker", TAKERS)
def test_a_negative_variance_is_refused_by_all(taker):
    with pytest.raises(ValueError, match=r"indefinite.*-1"):
        TAKERS[taker](-np.eye(D))


def test_a_negative_trace_is_refused():
    S = np.ones((3, 3)) - (1 + 1e-9) * np.eye(3)
    with pytest.raises(ValueError, match="trace is -3e-09"):
        itspace.align(S, rank=1)


def test_a_covariance_accumulated_in_float32_is_taken_by_all(rng):
    X = rng.standard_normal((20, 57)).astype(np.float32) * np.geomspace(10, 0.1, 57, dtype=np.float32)
    total = np.zeros((57, 57), dtype=np.float32)
    for row in X:
        total += np.outer(row, row)
    S = total.astype(np.float64)
    assert np.linalg.eigvalsh(S)[0] < -1e-6  # n < d: the zeros are rounding in float32
    target = itspace.Target.from_covariance(S)
    assert itspace.align(target, rank=4).certified
    assert itspace.bures_wasserstein(S, S) < 1e-3 * np.sqrt(np.trace(S))
    itspace.geodesic(S, np.eye(57), 0.5)


def test_a_copy_is_made_for_averaging_only(rng):
    S = covariance(rng, D)
    S = (S + S.T) / 2
    assert _core._address_of(itspace.Target.from_covariance(S)._core) == S.ctypes.data
    assert _core._address_of(itspace.Target.from_covariance(asymmetric(S, 1e-9))._core) != S.ctypes.data


def test_a_stack_names_the_matrix_that_is_wrong():
    good = np.stack([np.eye(3)] * 4)
    bad = good.copy()
    bad[2, 0, 1] = np.nan
    with pytest.raises(ValueError, match=r"A\[2\]\[0, 1\] is nan"):
        itspace.bures_wasserstein(bad, good)
    with pytest.raises(ValueError, match=r"B\[2\]\[0, 1\] is nan"):
        itspace.bures_wasserstein(good, bad)
    with pytest.raises(ValueError, match=r"B\[1, 0\]\[0, 1\] is nan"):
        itspace.bures_wasserstein(good, bad.reshape(2, 2, 3, 3))
    bad[2] = asymmetric(np.eye(8), 0.1)[:3, :3] + np.triu(np.ones((3, 3)), 1)
    with pytest.raises(ValueError, match=r"A\[2\] is not symmetric"):
        itspace.bures_wasserstein(bad, good, paired=True)
