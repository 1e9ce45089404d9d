# SPDX-License-Identifier: Apache-2.0
"""Misuse: the right exception, which names the value, the limit and the remedy."""
import numpy as np
import pytest

import itspace

S = np.diag([3.0, 2.0, 1.0])
Y = np.ones((3, 2))
X = np.arange(12.0).reshape(4, 3)
NAN = np.full((3, 3), np.nan)
MU = np.zeros(3)


def lopsided():
    out = S.copy()
    out[0, 1] = 1.0
    return out


def masked():
    return np.ma.masked_array(X, mask=(X == 4) | (X == 7))


class Operator:
    def __init__(self, dim, trace):
        self.dim, self.trace = dim, trace

    def apply(self, block):
        return S @ block


CASES = [
    (ValueError, r"rank is 0.*at least one|1 <= rank", lambda: itspace.align(S, rank=0)),
    (ValueError, r"rank is 4 and the dimension is 3", lambda: itspace.align(S, rank=4)),
    (ValueError, r"rank is 'all'.*'auto'", lambda: itspace.align(S, rank="all")),
    (TypeError, r"rank is 2.5; it must be an integer", lambda: itspace.align(S, rank=2.5)),
    (TypeError, r"rank", lambda: itspace.align(S)),
    (ValueError, r"rank is 3 and the start has 2 columns.*rank=2", lambda: itspace.align(S, Y, rank=3)),
    (ValueError, r"rank is 'auto' and start has 2 columns", lambda: itspace.align(S, Y, rank="auto")),
    (ValueError, r"start has 4 rows.*dimension 3", lambda: itspace.align(S, np.ones((4, 2)), rank=2)),
    (ValueError, r"start has 1 dimension.*reshape\(-1, 1\)", lambda: itspace.align(S, np.ones(3), rank=1)),
    (ValueError, r"X has 1 dimension.*reshape\(-1, 1\)", lambda: itspace.Target.from_features(X[0])),
    (TypeError, r"files is a ndarray.*from_features", lambda: itspace.covariance(X)),
    (TypeError, r"files is a int.*a path", lambda: itspace.Target.from_files(3)),
    (ValueError, r"steps is -1", lambda: itspace.align(S, rank=1, steps=-1)),
    (TypeError, r"steps is 1.5", lambda: itspace.align(S, rank=1, steps=1.5)),
    (ValueError, r"alpha is 2;.*between 0 and 2", lambda: itspace.align(S, rank=1, alpha=2)),
    (ValueError, r"alpha is 'big'.*line-search", lambda: itspace.align(S, rank=1, alpha="big")),
    (TypeError, r"alpha is \[1\]", lambda: itspace.align(S, rank=1, alpha=[1])),
    (ValueError, r"lambda is -1", lambda: itspace.align(S, rank=1, lam=-1)),
    (ValueError, r"alpha and lam are both given", lambda: itspace.align(S, rank=1, lam=1, alpha=1)),
    (ValueError, r"solver is 'magic'.*'paper' or 'ritz'", lambda: itspace.align(S, rank=1, solver="magic")),
    (ValueError, r"route is 'magic'", lambda: itspace.align(S, rank=1, route="magic")),
    (TypeError, r"solver is 3", lambda: itspace.align(S, rank=1, solver=3)),
    (ValueError, r"route factor needs", lambda: itspace.align(S, rank=1, route="factor")),
    (ValueError, r"guard is 4.*solver='ritz'", lambda: itspace.align(S, rank=1, guard=4)),
    (TypeError, r"start is 2, a number.*rank=2", lambda: itspace.align(S, 2)),
    (TypeError, r"Target\(\) makes nothing; use .*from_features", lambda: itspace.Target(S)),
    (TypeError, r"Target\(\) makes nothing; use .*from_features", lambda: itspace.Target(features=S)),
    (TypeError, r"trace is a str.*json\.load", lambda: itspace.verify(Y, S, "run.json")),
    (ValueError, r"guard is -2", lambda: itspace.align(S, rank=1, solver="ritz", guard=-2)),
    (ValueError, r"solver ritz", lambda: itspace.align(S, rank=1, solver="ritz", alpha=1.0)),
    (ValueError, r"seed is -1", lambda: itspace.align(S, rank=1, seed=-1)),
    (TypeError, r"callback is a int", lambda: itspace.align(S, rank=1, callback=3)),
    (ValueError, r"target\[0, 0\] is nan", lambda: itspace.align(NAN, rank=1)),
    (TypeError, r"neither rank nor start", lambda: itspace.align(S)),
    (ValueError, r"start\[1, 0\] is nan", lambda: itspace.align(S, np.array([[1.0], [np.nan], [0.0]]))),
    (ValueError, r"start\[2, 1\] is -inf", lambda: itspace.align(S, np.array([[1.0, 1], [1, 0], [0, -np.inf]]))),
    (ValueError, r"target is indefinite: target\[0, 0\] = -3", lambda: itspace.align(-S, rank=1)),
    (TypeError, r"S is a Target; it must be an array", lambda: itspace.truncate(itspace.Target.from_factor(Y), 1)),
    (TypeError, r"S is a Target", lambda: itspace.leading_eigenvalues(itspace.Target.from_factor(Y), 1)),
    (TypeError, r"start is a Target.*start_from", lambda: itspace.align(S, itspace.Target.from_factor(Y), rank=1)),
    (TypeError, r"the target's dim is 3\.0; it must be an integer", lambda: itspace.align(Operator(3.0, 6.0), rank=1)),
    (TypeError, r"the target's trace is 'six'; it must be a number", lambda: itspace.align(Operator(3, "six"), rank=1)),
    (ValueError, r"^the factor has 2 rows", lambda: itspace.verify(np.ones((2, 1)), S)),
    (ValueError, r"^the factor has 2 rows", lambda: itspace.objective_and_gradient(np.ones((2, 1)), S)),
    (ValueError, r"factor\[0, 0\] is nan", lambda: itspace.verify(Y * np.nan, S)),
    (ValueError, r"Y\[0, 0\] is nan", lambda: itspace.objective_and_gradient(Y * np.nan, S)),
    (ValueError, r"X has 2 masked value\(s\).*filled.*compress_rows", lambda: itspace.Target.from_features(masked())),
    (ValueError, r"targets\[1\] has 2 masked value\(s\)", lambda: itspace.align_batch([X, masked()], rank=1, features=True)),
    (ValueError, r"count is 1000 and the dimension is 3", lambda: itspace.leading_eigenvalues(S, 1000)),
    (ValueError, r"count is 0", lambda: itspace.leading_eigenvalues(S, 0)),
    (ValueError, r"not symmetric.*features", lambda: itspace.align(lopsided(), rank=1)),
    (ValueError, r"shape \(4, 3\).*from_features", lambda: itspace.align(X, rank=1)),
    (ValueError, r"0 x 0|not empty", lambda: itspace.align(np.zeros((0, 0)), rank=1)),
    (TypeError, r"target is a object", lambda: itspace.align(object(), rank=1)),
    (TypeError, r"complex", lambda: itspace.align(S.astype(complex), rank=1)),
    (TypeError, r"dtype", lambda: itspace.align(S.astype(np.longdouble), rank=1)),
    (TypeError, r"dtype", lambda: itspace.align(np.array([["a", "b"], ["c", "d"]]), rank=1)),
    (TypeError, r"start is 'here'", lambda: itspace.align(S, "here", rank=1)),
    (ValueError, r"indefinite.*-1.*ridge", lambda: itspace.Target.from_covariance(np.diag([1.0, -1.0]))),
    (ValueError, r"1 row\(s\) in X; .*at least 2", lambda: itspace.Target.from_features(np.ones((1, 3)))),
    (ValueError, r"^X\[2, 1\] is inf", lambda: itspace.Target.from_features(np.where(X == 7, np.inf, X))),
    (ValueError, r"3 values in sample_weight for 4 rows", lambda: itspace.Target.from_features(X, np.ones(3))),
    (ValueError, r"^sample_weight\[0\] is -1", lambda: itspace.Target.from_features(X, [-1, 1, 1, 1])),
    (ValueError, r"1 of the values in sample_weight", lambda: itspace.Target.from_features(X, [1, 0, 0, 0])),
    (ValueError, r"no columns in X", lambda: itspace.Target.from_features(X[:, :0])),
    (ValueError, r"^T\[0, 0\]", lambda: itspace.Target.from_factor(NAN)),
    (ValueError, r"", lambda: itspace.Target.low_rank_plus_diagonal(Y, [1.0], 1.0)),
    (ValueError, r"", lambda: itspace.Target.low_rank_plus_diagonal(Y, [1.0, -1.0], 1.0)),
    (ValueError, r"", lambda: itspace.Target.low_rank_plus_diagonal(Y, [1.0, 1.0], -1.0)),
    (ValueError, r"4 rows.*dimension 3", lambda: itspace.Target.from_covariance(S).apply(np.ones((4, 1)))),
    (ValueError, r"share of variance to explain is 2", lambda: itspace.auto_rank(S, 2)),
    (ValueError, r"A holds 3 x 3 and B 2 x 2", lambda: itspace.bures_wasserstein(S, np.eye(2))),
    (ValueError, r"\(4, 3\).*\(\.\.\., d, d\)", lambda: itspace.bures_wasserstein(X, S)),
    (ValueError, r"to pair them", lambda: itspace.bures_wasserstein(np.stack([S]), np.stack([S, S]), paired=True)),
    (ValueError, r"is nan", lambda: itspace.bures_wasserstein(NAN, S)),
    (ValueError, r"indefinite.*ridge", lambda: itspace.bures_wasserstein(np.diag([1.0, 1.0, -1.0]), S)),
    (ValueError, r"indefinite", lambda: itspace.frechet_distance(MU, S, MU, np.diag([1.0, 1.0, -1.0]))),
    (ValueError, r"not symmetric", lambda: itspace.frechet_distance(MU, lopsided(), MU, S)),
    (ValueError, r"sigma1 has shape \(2, 2\) and mu1 has 3", lambda: itspace.frechet_distance(MU, np.eye(2), MU, S)),
    (ValueError, r"mu2 has a value that is not finite", lambda: itspace.frechet_distance(MU, S, MU + np.nan, S)),
    (ValueError, r"3 columns and X2 has 2", lambda: itspace.frechet_distance_from_features(X, X[:, :2])),
    (ValueError, r"X2\[0, 0\] is nan", lambda: itspace.frechet_distance_from_features(X, X * np.nan)),
    (ValueError, r"1 row\(s\) in X1; .*at least 2", lambda: itspace.frechet_distance_from_features(X[:1], X)),
    (ValueError, r"0 row\(s\) in X2; .*at least 2", lambda: itspace.frechet_distance_from_features(X, X[:0])),
    (ValueError, r"t is 2", lambda: itspace.geodesic(S, S, 2)),
    (TypeError, r"t is 'x'", lambda: itspace.geodesic(S, S, "x")),
    (ValueError, r"rank is 9", lambda: itspace.truncate(S, 9)),
    (ValueError, r"2 rows.*3", lambda: itspace.objective_and_gradient(np.ones((2, 1)), S)),
    (ValueError, r"Y\[0, 0\] is nan", lambda: itspace.objective_and_features_gradient(Y * np.nan, X)),
    (ValueError, r"^Y\[0, 0\] is nan", lambda: itspace.truncate_factor(Y * np.nan, 1)),
    (ValueError, r"1 row\(s\) in X; .*at least 2", lambda: itspace.objective_and_features_gradient(Y, X[:1])),
    (ValueError, r"^Y has 2 rows and X has 3 columns", lambda: itspace.objective_and_features_gradient(np.ones((2, 1)), X)),
    (ValueError, r"in sample_weight for 4", lambda: itspace.objective_and_features_gradient(Y, X, np.ones(3))),
    (TypeError, r"trace is a list", lambda: itspace.verify(Y, S, [])),
    (ValueError, r"no entry 'dim'", lambda: itspace.verify(Y, S, {})),
]


@pytest.mark.parametrize("kind, message, call", CASES, ids=[f"{k.__name__}: {m}" for k, m, _ in CASES])
def test_misuse(kind, message, call):
    with pytest.raises(kind, match=f"(?s){message}"):
        call()


def test_overflow_is_an_outcome_that_is_said():
    huge = np.full((3, 3), 3e38, dtype=np.float32)
    said = r"not_finite .*the squares overflow.*largest value is S\[0, 0\] = 3e\+38. Scale.*precision='mixed'"
    with pytest.warns(RuntimeWarning, match=said):
        result = itspace.align(huge, np.ones((3, 1), dtype=np.float32), rank=1)
    assert result.status == "not_finite" and not result.certified
    assert np.isfinite(result.factor).all()
    found = itspace.verify(result.factor, huge, result)
    assert found["certified"] is False and found["holds"]  # the trace owns up


def test_features_whose_squares_overflow_are_named():
    X = np.random.default_rng(0).standard_normal((40, 6))
    X[17, 4] = -3e38
    said = r"float32 ends at 3.4.*the squares overflow.*largest value is X\[17, 4\] = -3e\+38. Scale.*precision='mixed'"
    with pytest.warns(RuntimeWarning, match=said):
        itspace.align(itspace.Target.from_features(X.astype(np.float32)), rank=2)
    assert itspace.align(itspace.Target.from_features(X.astype(np.float32)), rank=2, precision="mixed").status == "step_limit"
    X[17, 4] = 1e200
    with pytest.warns(RuntimeWarning, match=r"float64 ends at 1.7.*X\[17, 4\] = 1e\+200. Scale the data down$"):
        itspace.align(itspace.Target.from_features(X), rank=2)


def test_an_operators_trace_is_suspected_too():
    with pytest.warns(RuntimeWarning, match="not_a_covariance.*trace.. says 0.001"):
        assert not itspace.align(Operator(3, 1e-3), Y, steps=1).certified


def test_sparse_matrices_are_named():
    sparse = pytest.importorskip("scipy.sparse", reason="SciPy is not installed")
    for made in (sparse.csr_matrix(S), sparse.csr_array(S)):
        with pytest.raises(TypeError, match=rf"S is a {type(made).__name__}.*toarray"):
            itspace.truncate(made, 1)
        with pytest.raises(TypeError, match=rf"target is a {type(made).__name__}.*toarray"):
            itspace.align(made, rank=1)
        with pytest.raises(TypeError, match=rf"A is a {type(made).__name__}.*toarray"):
            itspace.bures_wasserstein(made, S)
