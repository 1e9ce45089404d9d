# SPDX-License-Identifier: Apache-2.0
"""precision=: float32, mixed (data float32, arithmetic float64), float64; and the warning where float32 does not do."""
import pickle
import warnings

import numpy as np
import pytest

import itspace
from itspace import _core


@pytest.fixture
def raw():
    """Features whose first coordinates carry nearly all of the variance, and a start that has their directions."""
    X = np.random.default_rng(0).standard_normal((80, 12))
    X[:, :2] *= (1e5, 3e4)
    X = X.astype(np.float32)
    return X, itspace.start_from(itspace.Target.from_features(1.0001 * X), 3)


def targets_of(X):
    S = np.cov(X.T).astype(X.dtype)
    S = (S + S.T) / 2
    U = np.ascontiguousarray(X[:12].T)
    return {
        "covariance": itspace.Target.from_covariance(S, check=False),
        "features": itspace.Target.from_features(X),
        "weighted": itspace.Target.from_features(X, np.linspace(0.5, 2, len(X))),
        "factor": itspace.Target.from_factor(U),
        "low rank": itspace.Target.low_rank_plus_diagonal(U, np.linspace(1, 0.1, 12), 0.5),
        "low rank, diagonal": itspace.Target.low_rank_plus_diagonal(U, np.linspace(1, 0.1, 12), np.linspace(0, 1, 12)),
    }


def test_gradients_warn_where_float32_does_not_resolve(raw):
    X, Y = raw
    exact, _ = itspace.objective_and_gradient(Y.astype(np.float64), itspace.Target.from_features(X.astype(np.float64)))
    target = itspace.Target.from_features(X)
    with pytest.warns(itspace.ResolutionWarning, match="float32 resolves W2.2 only to .*Pass Y as float64"):
        itspace.objective_and_gradient(Y.astype(np.float32), target)
    with warnings.catch_warnings():
        warnings.simplefilter("error", itspace.ResolutionWarning)
        mixed, _ = itspace.objective_and_gradient(Y.astype(np.float64), target)
    assert mixed == pytest.approx(exact, rel=1e-2)


def test_mixed_is_float64_on_the_same_values(raw):
    X, start = raw
    wide = targets_of(X.astype(np.float64))
    for name, target in targets_of(X).items():
        if name == "covariance":  # its entries were rounded: the oracle is the float64 run on the rounded ones
            S = target.apply(np.eye(12, dtype=np.float32))
            wide[name] = itspace.Target.from_covariance(S.astype(np.float64), check=False)
        mixed = itspace.align(target, start, steps=3, precision="mixed")
        exact = itspace.align(wide[name], start, steps=3)
        assert mixed.factor.dtype == np.float64, name
        assert mixed.trace["precision"] == "mixed" and exact.trace["precision"] == "float64"
        known = exact.trace["resolution"].max()
        np.testing.assert_allclose(mixed.trace["objective"], exact.trace["objective"], rtol=1e-9, atol=known, err_msg=name)
        assert itspace.verify(mixed.factor, target, mixed)["holds"], name


def test_float32_warns_where_it_does_not_resolve(raw):
    X, start = raw
    target = itspace.Target.from_features(X)
    for precision in (None, "float32"):
        with pytest.warns(itspace.ResolutionWarning, match="float32 resolves W2.2 only to .*precision='mixed'"):
            result = itspace.align(target, start, precision=precision)
        assert result.factor.dtype == np.float32 and result.trace["precision"] == "float32"
        assert np.any(result.trace["resolution"] > 0.01 * result.trace["objective"])
    with warnings.catch_warnings():
        warnings.simplefilter("error", itspace.ResolutionWarning)
        itspace.align(target, start, precision="mixed")
        itspace.align(target, start, precision="float64")
        tame = itspace.Target.from_features(np.random.default_rng(1).standard_normal((50, 12)).astype(np.float32))
        assert itspace.align(tame, start).factor.dtype == np.float32


@pytest.mark.parametrize("face", ["two domains", "several sources", "clusters"])
def test_a_face_without_precision_names_the_remedy_that_it_has(raw, face):
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    from itspace.cluster import BuresWassersteinKMeans
    from itspace.sklearn import CovarianceAligner

    X, _ = raw

    def fit(dtype):
        Z = X.astype(dtype)
        if face == "clusters":
            S = [np.cov(part.T).astype(dtype) for part in (Z, Z + Z[::-1])]
            BuresWassersteinKMeans(2, rank=3, random_state=0).fit(np.stack([(each + each.T) / 2 for each in S]))
        elif face == "several sources":
            CovarianceAligner(rank=3, map="none").fit(Z, sample_domain=np.repeat([1, 2, -1], [30, 30, 20]))
        else:
            CovarianceAligner(rank=3, map="none").fit(Z, 1.0001 * Z)

    with pytest.warns(itspace.ResolutionWarning, match=r"float32 resolves .* as float64: astype\(numpy.float64\)") as seen:
        fit(np.float32)
    assert not [str(warning.message) for warning in seen if "precision=" in str(warning.message)]
    with warnings.catch_warnings():
        warnings.simplefilter("error", itspace.ResolutionWarning)
        fit(np.float64)


def test_data_are_converted_to_what_the_precision_says(raw):
    X, start = raw
    wide = itspace.Target.from_features(X.astype(np.float64))
    narrow = itspace.Target.from_features(X)
    reference = itspace.align(narrow, start, precision="mixed")
    again = itspace.align(wide, start, precision="mixed")  # the values fit float32, so nothing is lost
    np.testing.assert_array_equal(again.factor, reference.factor)
    np.testing.assert_array_equal(
        itspace.align(narrow, start, precision="float64").factor, itspace.align(wide, start).factor
    )
    tame = np.random.default_rng(2).standard_normal((50, 12))
    assert itspace.align(itspace.Target.from_features(tame), start, precision="float32").factor.dtype == np.float32
    assert itspace.align(np.cov(tame.T), start, precision="float32").factor.dtype == np.float32


def test_mixed_borrows_the_array(raw):
    X, _ = raw
    target = itspace.Target.from_features(X)
    assert _core._address_of(target._core.widened()) == X.ctypes.data


def test_a_float64_factor_is_worth_what_it_is(raw):
    """On a float32 target it is looked at in mixed precision: the model's remainder and the gradient are float64's."""
    X, start = raw
    target, wide = itspace.Target.from_features(X), itspace.Target.from_features(X.astype(np.float64))
    Y = itspace.align(target, start, precision="mixed").factor
    known = 1e-14 * wide.trace
    assert itspace.verify(Y, target)["objective"] == pytest.approx(itspace.verify(Y, wide)["objective"], abs=known)
    assert itspace.model_of(target, Y).remainder == pytest.approx(itspace.model_of(wide, Y).remainder, abs=known)
    (value, gradient), (exact, expected) = (itspace.objective_and_gradient(Y, t) for t in (target, wide))
    assert value == pytest.approx(exact, abs=known)
    np.testing.assert_allclose(gradient, expected, atol=1e-9 * np.abs(Y).max())


def test_result_travels(raw):
    X, start = raw
    result = itspace.align(itspace.Target.from_features(X), start, precision="mixed")
    again = pickle.loads(pickle.dumps(result))
    assert again.trace["precision"] == "mixed"
    np.testing.assert_array_equal(again.factor, result.factor)


def test_misuse(raw):
    X, start = raw

    class Own:
        dim, trace, dtype = 12, 12.0, np.float32

        def apply(self, Y):
            return Y

    with pytest.raises(ValueError, match="precision is 'half'"):
        itspace.align(itspace.Target.from_features(X), start, precision="half")
    with pytest.raises(ValueError, match="object of yours"):
        itspace.align(Own(), start, precision="mixed")
    assert itspace.align(Own(), start, precision="float32").factor.dtype == np.float32
