# SPDX-License-Identifier: Apache-2.0
"""Barycenters: the definition with NumPy, every kind of target, and what is refused."""
import inspect
import pickle
import warnings

import numpy as np
import pytest
from oracle import covariance, objective, psd_root

import itspace
from itspace import _core

DEFAULTS = _core._default_barycenter_options()


def full_rank_barycenter(sigmas, weights):
    """S <- S^(-1/2) (sum_i w_i (S^(1/2) S_i S^(1/2))^(1/2))^2 S^(-1/2) until it stands still."""
    S = np.eye(len(sigmas[0]))
    for _ in range(500):
        root = psd_root(S)
        inverse = np.linalg.inv(root)
        mean = sum(w * psd_root(root @ sigma @ root) for w, sigma in zip(weights, sigmas))
        new = inverse @ mean @ mean @ inverse
        moved = np.linalg.norm(new - S)
        S = (new + new.T) / 2
        if moved <= 1e-15 * np.linalg.norm(S):
            break
    return S


def test_full_rank_is_the_fixed_point(rng):
    sigmas = [covariance(rng, 8) for _ in range(5)]
    weights = np.array([0.1, 0.3, 0.2, 0.25, 0.15])
    result = itspace.barycenter(np.stack(sigmas), weights, rank=8, steps=500, tolerance=0, alpha=1.0, keep_iterates=True)
    Y = result.iterates[-1]
    expected = full_rank_barycenter(sigmas, weights)
    assert np.linalg.norm(Y @ Y.T - expected) < 1e-10 * np.linalg.norm(expected)
    assert result.certified


def test_every_kind_of_target_side_by_side(rng):
    X = rng.standard_normal((30, 10))
    T = rng.standard_normal((10, 3))
    U = np.linalg.qr(rng.standard_normal((10, 2)))[0]
    S = covariance(rng, 10)

    class Own:
        dim, trace = 10, 10.0

        def apply(self, Y):
            return Y.copy()

    targets = [
        S,
        itspace.Target.from_features(X),
        itspace.Target.from_factor(T),
        itspace.Target.low_rank_plus_diagonal(U, [2.0, 1.0], 0.5),
        Own(),
    ]
    dense = [S, np.cov(X.T), T @ T.T, U @ np.diag([2.0, 1.0]) @ U.T + 0.5 * np.eye(10), np.eye(10)]
    weights = np.array([0.3, 0.2, 0.2, 0.2, 0.1])
    result = itspace.barycenter(targets, weights, rank=4)
    expected = [objective(result.factor, sigma) for sigma in dense]
    # The root of a singular T T' is good to the root of rounding.
    np.testing.assert_allclose(result.objectives, expected, rtol=1e-6)
    assert result.objective == pytest.approx(weights @ result.objectives, rel=1e-12)
    assert result.certified and np.all(np.diff(result.trace["objective"]) <= 1e-12)
    assert result.trace["solver"] == "barycenter"


def test_one_target_is_align(rng):
    S = covariance(rng, 7)
    start = rng.standard_normal((7, 3))
    alone = itspace.align(S, start, steps=6, alpha=1.2, route="qr")
    found = itspace.barycenter([S], start=start, steps=6, alpha=1.2, tolerance=0)
    # align puts few columns into the lanes of vectors, and a barycenter does not: alike to rounding.
    unit = 6 * 3 * np.finfo(float).eps * np.linalg.norm(alone.factor)
    assert np.linalg.norm(found.factor - alone.factor) < 30 * unit


def test_subsets_and_starts(rng):
    sigmas = np.stack([covariance(rng, 6) for _ in range(12)])
    plain = itspace.barycenter(sigmas, rank=6, steps=300, tolerance=0)
    subsets = itspace.barycenter(sigmas, rank=6, steps=300, tolerance=0, subset=4)
    assert subsets.certified and subsets.objective == pytest.approx(plain.objective, rel=1e-6)
    several = itspace.barycenter(sigmas, rank=2, starts=4, steps=10)
    assert several.start_objectives.shape == (4,)
    assert several.objective == several.start_objectives.min() == several.start_objectives[several.best_start]


def test_dtypes(rng):
    sigmas = np.stack([covariance(rng, 6) for _ in range(3)])
    assert itspace.barycenter(sigmas.astype(np.float32), rank=2).factor.dtype == np.float32
    mixed = itspace.barycenter([sigmas[0].astype(np.float32), sigmas[1]], rank=2)
    assert mixed.factor.dtype == np.float64 and mixed.trace["precision"] == "mixed"
    assert itspace.barycenter(sigmas.astype(np.float32), rank=2, precision="mixed").factor.dtype == np.float64


def test_weights_are_divided_by_their_sum_with_a_notice(rng):
    sigmas = np.stack([covariance(rng, 5) for _ in range(3)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        quiet = itspace.barycenter(sigmas, [0.5, 0.25, 0.25], rank=2)
    with pytest.warns(UserWarning, match="sum to 4"):
        loud = itspace.barycenter(sigmas, [2, 1, 1], rank=2)
    np.testing.assert_array_equal(quiet.factor, loud.factor)
    np.testing.assert_array_equal(loud.weights, [0.5, 0.25, 0.25])
    assert np.isnan(itspace.barycenter(sigmas, [0, 0.5, 0.5], rank=2).objectives[0])


def test_callback_stops_and_results_are_pickled(rng):
    sigmas = np.stack([covariance(rng, 5) for _ in range(3)])
    rows = []

    def callback(step, factor):
        rows.append((step["objective"], factor.shape))
        return len(rows) == 3

    result = itspace.barycenter(sigmas, rank=2, callback=callback, tolerance=0)
    assert result.status == "stopped" and len(rows) == 3 and rows[0][1] == (5, 2)
    again = pickle.loads(pickle.dumps(result))
    np.testing.assert_array_equal(again.objectives, result.objectives)
    assert repr(again) == repr(result) and "BarycenterResult of 3 targets" in repr(result)


def test_a_bad_target_is_an_outcome(rng):
    sigmas = np.stack([covariance(rng, 4), -np.eye(4) + 2 * np.diag([1, 1, 1, 0])])
    with pytest.raises(ValueError, match=r"targets\[1\]"):
        itspace.barycenter(sigmas, rank=2)  # a negative variance is seen at the door
    crossed = np.eye(4)
    crossed[0, 1] = crossed[1, 0] = 3
    with pytest.warns(RuntimeWarning, match="target 1 .*"):
        result = itspace.barycenter([np.eye(4), crossed], rank=4)
    assert result.status == "not_a_covariance" and not result.certified


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        ({"targets": []}, ValueError, "no target"),
        ({"targets": np.eye(3)}, ValueError, r"\(m, d, d\)"),
        ({"targets": 3}, TypeError, "int"),
        ({"targets": [np.eye(3), np.eye(2)]}, ValueError, "dimension 2"),
        ({"targets": [np.eye(3), np.ones((4, 3))]}, ValueError, r"targets\[1\]"),
        ({"weights": [1.0]}, ValueError, "1 weights and 2 targets"),
        ({"weights": []}, ValueError, "0 weights"),
        ({"weights": [1.0, -1.0]}, ValueError, "-1"),
        ({"weights": [0.0, 0.0]}, ValueError, "are 0"),
        ({"weights": [np.nan, 1.0]}, ValueError, "nan"),
        ({"rank": 4}, ValueError, "4"),
        ({"rank": 0}, ValueError, "0"),
        ({"rank": None}, TypeError, "neither rank nor start"),
        ({"rank": 2.5}, TypeError, "2.5"),
        ({"steps": -1}, ValueError, "steps is -1"),
        ({"alpha": 2.0}, ValueError, "alpha is 2"),
        ({"tolerance": -1.0}, ValueError, "tolerance is -1"),
        ({"subset": -1}, ValueError, "subset is -1"),
        ({"starts": 0}, ValueError, "starts is 0"),
        ({"start": np.ones((3, 1))}, ValueError, "rank is 2 and the start has 1"),
        ({"start": np.ones((2, 2))}, ValueError, "2 rows"),
        ({"start": np.full((3, 2), np.nan)}, ValueError, "nan"),
        ({"callback": 3}, TypeError, "callback"),
        ({"precision": "half"}, ValueError, "half"),
    ],
)
def test_misuse_is_refused_by_name(change, error, text):
    arguments = {"targets": [np.eye(3), 2 * np.eye(3)], "rank": 2, **change}
    with pytest.raises(error, match=text):
        itspace.barycenter(**arguments)


def test_defaults_are_those_of_the_library():
    found = {name: p.default for name, p in inspect.signature(itspace.barycenter).parameters.items()}
    assert {name: found[name] for name in DEFAULTS} == DEFAULTS
