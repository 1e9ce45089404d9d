# SPDX-License-Identifier: Apache-2.0
"""Oracles that nobody here wrote: POT, pyRiemann and SciPy, where they install; visibly skipped elsewhere."""

import warnings

import itspace
import numpy as np
import pytest


def samples(n, d, seed):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) / np.sqrt(d) + rng.normal(size=d)


def gaussian(d, seed):
    X = samples(5 * d + 5, d, seed)
    return X.mean(axis=0), np.atleast_2d(np.cov(X.T))


@pytest.fixture
def gaussian_ot():
    return pytest.importorskip("ot.gaussian", reason="POT is not installed")


@pytest.mark.parametrize("d", [1, 2, 17, 60])
def test_pot_bures_wasserstein_distance(gaussian_ot, d):
    (m1, C1), (m2, C2) = gaussian(d, 1), gaussian(d, 2)
    theirs = gaussian_ot.bures_wasserstein_distance(m1, m2, C1, C2)
    assert np.isclose(itspace.gaussian_w2(m1, C1, m2, C2), theirs, rtol=1e-9)
    assert np.isclose(itspace.gaussian_w2(m1, C1, m2, C2, squared=True), theirs**2, rtol=1e-9)
    centred = gaussian_ot.bures_wasserstein_distance(m1, m1, C1, C2)
    assert np.isclose(itspace.bures_wasserstein(C1, C2), centred, rtol=1e-7, atol=1e-9)


def test_pot_stacks(gaussian_ot):
    if not hasattr(gaussian_ot, "bures_distance"):
        pytest.skip("this POT has no bures_distance for stacks (needs 0.9.6)")
    A = np.stack([gaussian(6, seed)[1] for seed in range(4)])
    B = np.stack([gaussian(6, seed)[1] for seed in range(10, 13)])
    cross = itspace.bures_wasserstein(A, B)
    assert cross.shape == (4, 3)
    assert np.allclose(cross, gaussian_ot.bures_distance(A, B), rtol=1e-7)
    paired = itspace.bures_wasserstein(A[:3], B, paired=True)
    assert paired.shape == (3,)
    assert np.allclose(paired, gaussian_ot.bures_distance(A[:3], B, paired=True), rtol=1e-7)


@pytest.mark.parametrize("d", [2, 12])
def test_pot_mapping(gaussian_ot, d):
    """POT maps x to x A + b. Ours, at full rank, is the same map up to the floor of the remainder."""
    Xs, Xt = samples(300, d, 1), samples(200, d, 2)
    (ms, Cs), (mt, Ct) = [(X.mean(axis=0), np.cov(X.T)) for X in (Xs, Xt)]
    A, b = gaussian_ot.bures_wasserstein_mapping(ms, mt, Cs, Ct)
    targets = [itspace.Target.from_features(X) for X in (Xs, Xt)]
    models = [itspace.model_of(target, itspace.start_from(target, d), floor=1e-13) for target in targets]
    ours = itspace.TransportMap.from_models(*models)
    assert np.allclose(ours.matrix(), A, rtol=1e-6, atol=1e-8)
    assert np.allclose(ours.apply(Xs), Xs @ A + b, rtol=1e-6, atol=1e-6)


def test_pot_fails_where_samples_are_fewer_than_features_and_ours_does_not(gaussian_ot):
    """766 x 800 and 295 x 800 samples, reg = 1e-8: covariances of full rank on paper only."""
    rng = np.random.default_rng(0)
    Xs, Xt = rng.normal(size=(766, 800)), rng.normal(size=(295, 800))
    reg = 1e-8
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = gaussian_ot.empirical_bures_wasserstein_distance(Xs, Xt, reg=reg)
    print(f"POT {theirs}")  # nan with POT 0.9.7; not a promise of ours
    ms, mt = Xs.mean(axis=0), Xt.mean(axis=0)
    # The definition, through factors: C = T T' with T = [Z'/sqrt(n), sqrt(reg) I], and
    # W2^2 = |ms - mt|^2 + |Ts|^2 + |Tt|^2 - 2 |Ts' Tt|_*.
    Ts, Tt = (
        np.hstack([(X - X.mean(axis=0)).T / np.sqrt(len(X)), np.sqrt(reg) * np.eye(800)]) for X in (Xs, Xt)
    )
    nuclear = np.linalg.svd(Ts.T @ Tt, compute_uv=False).sum()
    definition = ((ms - mt) ** 2).sum() + (Ts**2).sum() + (Tt**2).sum() - 2 * nuclear
    ours = itspace.gaussian_w2(ms, Ts @ Ts.T, mt, Tt @ Tt.T, squared=True)
    assert np.isfinite(ours) and np.isclose(ours, definition, rtol=1e-9)
    # From the samples themselves (divided by n - 1, and no need of a reg).
    Zs, Zt = ((X - X.mean(axis=0)) / np.sqrt(len(X) - 1) for X in (Xs, Xt))
    nuclear = np.linalg.svd(Zs @ Zt.T, compute_uv=False).sum()
    definition = ((ms - mt) ** 2).sum() + (Zs**2).sum() + (Zt**2).sum() - 2 * nuclear
    assert np.isclose(itspace.frechet_distance_from_features(Xs, Xt), definition, rtol=1e-10)


@pytest.mark.parametrize("d", [2, 17])
def test_pyriemann_distance_and_mean(d):
    pytest.importorskip("pyriemann", reason="pyRiemann is not installed")
    if not hasattr(np.ndarray, "mT"):
        pytest.skip(f"pyRiemann needs NumPy 2; this is {np.__version__}")
    try:
        from pyriemann.geometry.distance import distance_wasserstein
        from pyriemann.geometry.mean import mean_wasserstein
    except ImportError:  # before 0.12
        from pyriemann.utils.distance import distance_wasserstein
        from pyriemann.utils.mean import mean_wasserstein

    A, B = gaussian(d, 1)[1], gaussian(d, 2)[1]
    assert np.isclose(itspace.bures_wasserstein(A, B), distance_wasserstein(A, B), rtol=1e-8)
    assert np.isclose(
        itspace.bures_wasserstein(A, B, squared=True), distance_wasserstein(A, B, squared=True), rtol=1e-8
    )
    # The barycenter of two covariances is the midpoint of the geodesic.
    middle = mean_wasserstein(np.stack([A, B]), tol=1e-12, maxiter=500)
    assert np.allclose(itspace.geodesic(A, B, 0.5), middle, rtol=1e-6, atol=1e-8)


def test_scipy_sqrtm_is_the_fid_of_the_packages():
    linalg = pytest.importorskip("scipy.linalg", reason="SciPy is not installed")
    (m1, C1), (m2, C2) = gaussian(40, 1), gaussian(40, 2)
    theirs = ((m1 - m2) ** 2).sum() + np.trace(C1 + C2 - 2 * linalg.sqrtm(C1 @ C2).real)
    assert np.isclose(itspace.frechet_distance(m1, C1, m2, C2), theirs, rtol=1e-9)


@pytest.mark.parametrize("rank", [1, 4, 9])
def test_scikit_learn_pca_is_the_factor_the_ritz_solver_reaches(rank):
    decomposition = pytest.importorskip("sklearn.decomposition", reason="scikit-learn is not installed")
    X = samples(200, 9, 3)
    pca = decomposition.PCA(rank, svd_solver="full").fit(X)
    result = itspace.align(itspace.Target.from_features(X), rank=rank, steps=30, solver="ritz")
    expected = (pca.components_.T * pca.explained_variance_) @ pca.components_
    assert np.allclose(result.factor @ result.factor.T, expected, atol=1e-7 * expected.max())
    rest = np.trace(np.cov(X.T)) - pca.explained_variance_.sum()
    assert np.isclose(result.objective, rest, rtol=1e-8, atol=1e-9)
