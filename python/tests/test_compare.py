# SPDX-License-Identifier: Apache-2.0
"""What moved between two domains: maps against their definitions, noise, and what another mix of clusters explains."""

import itspace
import numpy as np
import pytest
from itspace import _compare

EPS = np.finfo(float).eps


def fitted(rank, steps=2, solver="paper"):
    def fit(X, start):
        target = itspace.Target.from_features(X)
        if start is None:
            factor = itspace.start_from(target, rank)
        else:
            factor = itspace.align(target, start, steps=steps, solver=solver).factor
        return factor, itspace.model_of(target, factor, floor=1e-12).remainder

    return fit


def compared(Xs, Xt, rank=3, **options):
    fit = fitted(rank, **options)
    return _compare.Comparison(_compare.Source(Xs, fit, 0), Xt, fit)


@pytest.fixture
def domains(rng):
    mix = rng.normal(size=(6, 6))
    Xs = rng.normal(size=(400, 6)) @ mix
    Xt = rng.normal(size=(300, 6)) @ (mix * [3, 1, 0.5, 1, 2, 1]) + 2
    return Xs, Xt


# Maps.


def test_moments_are_those_of_the_definition(domains):
    side = _compare.Side(domains[0])
    assert np.allclose(side.mean, domains[0].mean(axis=0))
    assert np.allclose(side.deviations, domains[0].std(axis=0, ddof=1))
    centred = domains[0] - side.mean
    kurtosis = (centred**4).mean(axis=0) / side.deviations**4
    assert np.allclose(side.log_deviation_noise, (kurtosis - 1) / 1600)


def test_mean_and_scale_give_the_target_the_moments_of_the_source(domains):
    Xs, Xt = domains
    both = compared(Xs, Xt)
    tolerance = 100 * EPS * np.abs(Xs).max()
    shifted, scaled = (both.map(kind, shrink=False).apply(Xt) for kind in ("mean", "scale"))
    assert np.abs(shifted.mean(axis=0) - Xs.mean(axis=0)).max() < tolerance
    assert np.abs(np.cov(shifted.T) - np.cov(Xt.T)).max() < tolerance * np.abs(Xt).max()
    assert np.abs(scaled.mean(axis=0) - Xs.mean(axis=0)).max() < tolerance
    assert np.abs(scaled.std(axis=0, ddof=1) - Xs.std(axis=0, ddof=1)).max() < tolerance


@pytest.mark.parametrize("kind", ["monge", "scale+monge"])
def test_full_rank_maps_give_the_target_the_covariance_of_the_source(domains, kind):
    Xs, Xt = domains
    mapped = compared(Xs, Xt, rank=6, steps=30, solver="ritz").map(kind, shrink=False).apply(Xt)
    expected = np.cov(Xs.T)
    assert np.abs(mapped.mean(axis=0) - Xs.mean(axis=0)).max() < 1e-12
    assert np.abs(np.cov(mapped.T) - expected).max() < 1e-9 * np.abs(expected).max()


def test_monge_without_shrinkage_is_the_transport_map(domains):
    Xs, Xt = domains
    both = compared(Xs, Xt)
    models = [
        itspace.LowRankGaussian(factor, side.mean, remainder)
        for (factor, remainder), side in ((both.plain, both.target), (both.source.plain, both.source))
    ]
    expected = itspace.TransportMap.from_models(*models).apply(Xt)
    assert np.abs(both.map("monge", shrink=False).apply(Xt) - expected).max() < 1000 * EPS * np.abs(expected).max()


@pytest.mark.parametrize("kind", ["mean", "scale", "scale+monge", "monge"])
def test_shrunk_maps_move_samples_a_share_of_the_way_and_back(domains, kind):
    Xs, Xt = domains
    both = compared(Xs, Xt)
    both.mean_kept, both.covariance_kept, both.scaled_kept = 0.25, 0.25, 0.25
    both.deviations_kept[:] = 0.25
    full, part = both.map(kind, shrink=False), both.map(kind)
    if kind != "scale+monge":  # whose two parts are shrunk each, not their product
        moved = Xt + 0.25 * (full.apply(Xt) - Xt)
        assert np.abs(part.apply(Xt) - moved).max() < 1000 * EPS * np.abs(Xt).max()
    assert np.abs(part.inverse().apply(part.apply(Xt)) - Xt).max() < 1e4 * EPS * np.abs(Xt).max()
    assert part.apply(Xt.astype(np.float32)).dtype == np.float32


def test_features_that_do_not_vary_are_shifted_and_not_scaled(domains):
    Xs, Xt = (X.copy() for X in domains)
    Xs[:, 0], Xt[:, 1] = 5.0, -1.0
    for kind in ("scale", "scale+monge"):
        mapped = compared(Xs, Xt).map(kind, shrink=False).apply(Xt)
        assert np.isfinite(mapped).all()
        if kind == "scale":
            assert np.allclose(mapped[:, 0] - Xt[:, 0], 5 - Xt[:, 0].mean())
            assert np.allclose(mapped[:, 1], Xs[:, 1].mean())


# Noise.


@pytest.mark.parametrize("samples, features", [(60, 100), (400, 30)])
def test_two_samples_of_one_domain_are_hardly_moved(samples, features):
    shares = []
    for seed in range(8):
        X = np.random.default_rng(seed).normal(size=(2 * samples, features)) / np.arange(1, features + 1) ** 0.5
        both = compared(X[:samples], X[samples:], rank=8)
        moved = {shrink: both.map("monge", shrink).apply(X[samples:]) - X[samples:] for shrink in (True, False)}
        shares.append((moved[True] ** 2).sum() / (moved[False] ** 2).sum())
        assert both.mean_kept < 0.6
    assert np.mean(shares) < 0.1


def test_expected_displacement_is_that_of_simulated_halves():
    # d = 20, rank 3 and a remainder, normal samples: the formula is of first order in 1/n.
    rng = np.random.default_rng(0)
    factor, remainder, n = np.linalg.qr(rng.normal(size=(20, 3)))[0] * [3.0, 2.0, 1.5], 0.5, 2000
    root = np.linalg.cholesky(factor @ factor.T + remainder * np.eye(20))
    observed = [
        itspace.bures_wasserstein(*(np.cov(root @ rng.normal(size=(20, n))) for _ in range(2)), squared=True)
        for _ in range(40)
    ]
    expected = _compare.expected_displacement(factor, remainder, n, n)
    assert abs(np.mean(observed) - expected) < 4 * np.std(observed) / np.sqrt(40) + 0.01 * expected


# Another mix of the source's clusters.


def test_thinned_classes_are_explained_and_a_shift_is_not(rng):
    centres = 4 * rng.normal(size=(5, 12))
    labels = rng.integers(5, size=2000)
    X = centres[labels] + rng.normal(size=(2000, 12))
    thinned = np.flatnonzero((labels > 1) | (np.arange(2000) % 10 == 0))[::2]
    assert compared(X[::2], X[thinned], rank=8).shift.unexplained < 0.05
    aside = np.linalg.svd(centres)[2][-1] * 10  # a direction in which the classes do not differ
    assert compared(X[::2], X[1::2] + aside, rank=8).shift.unexplained > 0.9


def test_a_remixed_map_leaves_what_thinned_classes_did_and_undoes_a_shift(rng):
    centres = 4 * rng.normal(size=(5, 8))
    labels = np.repeat(np.arange(5), 200)
    Xs, again = (centres[labels] + rng.normal(size=(1000, 8)) for _ in range(2))
    thinned = again[np.r_[0:100, 200:300, 400:1000]]
    for Xt, least, most in ((thinned, 0, 0.5), (again + 10, 0.9, 1.1)):
        both = compared(Xs, Xt)
        plain, remixed = (both.map("scale", remixed=r).apply(Xt).mean(axis=0) - Xt.mean(axis=0) for r in (False, True))
        expected = both.mean_kept * (both.remixed_mean - Xt.mean(axis=0))
        np.testing.assert_allclose(remixed, expected, atol=1e-9)
        assert least <= np.linalg.norm(remixed) / np.linalg.norm(plain) < most


def test_the_same_data_give_the_same_comparison(domains):
    first, second = (compared(*domains).shift for _ in range(2))
    assert first == second


def test_samples_that_do_not_vary_have_nothing_to_map():
    both = compared(np.ones((10, 4)), np.zeros((8, 4)), rank=2)
    assert both.map("monge").apply(np.zeros((8, 4))).tolist() == np.ones((8, 4)).tolist()
    assert both.covariance_kept == 0
