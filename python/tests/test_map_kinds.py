# SPDX-License-Identifier: Apache-2.0
"""Kinds of maps, what noise leaves of them, and covariance shrinkage, against NumPy and scikit-learn."""
import pickle
import subprocess

import numpy as np
import pytest

import itspace
from oracle import psd_root

KINDS = ["monge", "whiten", "mean", "scale", "scale+monge"]


@pytest.fixture
def domains(rng):
    mix = rng.standard_normal((8, 8)) / 3 + np.eye(8)
    return rng.standard_normal((300, 8)) @ mix * np.linspace(1, 4, 8) + 1, rng.standard_normal((200, 8)) * 2 - 3


def between(domains, kind, rank=3, **options):
    S, T = (itspace.Target.from_features(x) for x in domains)
    if kind in ("mean", "scale"):
        return itspace.TransportMap.between(S, None, None, T, None, None, kind, **options)
    if kind == "scale+monge":
        S, T = S.standardised(), T.standardised()
    Ys = itspace.start_from(S, rank)
    return itspace.TransportMap.between(S, Ys, None, T, itspace.align(T, Ys, rank=rank).factor, None, kind, **options)


def monge(A, B):
    root = psd_root(A)
    inverse = np.linalg.inv(root)
    return inverse @ psd_root(root @ B @ root) @ inverse


def test_scale_gives_target_samples_the_moments_of_the_source(domains):
    source, target = domains
    moved = between(domains, "scale", shrink="none").apply(target)
    np.testing.assert_allclose(moved.mean(0), source.mean(0), rtol=1e-9)
    np.testing.assert_allclose(moved.std(0, ddof=1), source.std(0, ddof=1), rtol=1e-9)
    shifted = between(domains, "mean", shrink="none").apply(target)
    np.testing.assert_allclose(shifted, target - target.mean(0) + source.mean(0), rtol=1e-9)


def test_scale_monge_of_full_rank_gives_them_the_covariance(domains):
    source, target = domains
    tmap = between(domains, "scale+monge", rank=8, shrink="none", floor=1e-9)
    s, t = source.std(0, ddof=1), target.std(0, ddof=1)
    R, Q = np.corrcoef(source.T), np.corrcoef(target.T)
    expected = s[:, None] * monge(Q, R) / t
    Ys = itspace.start_from(itspace.Target.from_features(source).standardised(), 8)
    np.testing.assert_allclose(Ys @ Ys.T, R, atol=1e-9)
    # Two steps of the target's factor leave a gap; the frame and its scales are what is tested here.
    assert np.abs(tmap.matrix() - expected).max() < 0.1 * np.abs(expected).max()
    T = itspace.Target.from_features(target).standardised()
    exact = itspace.TransportMap.between(
        itspace.Target.from_features(source).standardised(), Ys, None, T, itspace.start_from(T, 8), None, "scale+monge",
        floor=1e-9, shrink="none",
    )  # fmt: skip
    np.testing.assert_allclose(exact.matrix(), expected, atol=1e-6)
    np.testing.assert_allclose(np.cov(exact.apply(target).T), np.cov(source.T), atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shrink", ["none", "noise", "halves"])
def test_every_kind_goes_there_and_back_and_into_files(domains, kind, shrink, tmp_path):
    tmap = between(domains, kind, shrink=shrink)
    assert tmap.kind == kind
    X = domains[1]
    moved = tmap.apply(X)
    np.testing.assert_allclose(moved, (X - X.mean(0)) @ tmap.matrix().T + tmap.parts()["mean_to"], atol=1e-9)
    np.testing.assert_allclose(tmap.inverse().apply(moved), X, atol=1e-9)
    np.testing.assert_allclose(tmap.apply(X.astype(np.float32)), moved, atol=1e-3)
    tmap.save(tmp_path / "map.npz")
    for again in (itspace.TransportMap.load(tmp_path / "map.npz"), pickle.loads(pickle.dumps(tmap))):
        np.testing.assert_array_equal(again.apply(X), moved)
        np.testing.assert_array_equal(again.kept.deviations, tmap.kept.deviations)
        assert again.kept[:2] == tmap.kept[:2]
        assert again.parts()["samples_from"] == 200 and again.parts()["samples_to"] == 300


def test_an_old_pickle_of_parts_is_still_read(domains):
    parts = between(domains, "monge", shrink="none").parts()
    for key in ("scale_from", "scale_to", "samples_from", "samples_to", "kept_mean", "kept_covariance", "kept_deviations"):
        del parts[key]
    old = itspace.TransportMap._from_parts(parts)
    np.testing.assert_array_equal(old.apply(domains[1]), between(domains, "monge", shrink="none").apply(domains[1]))


@pytest.mark.parametrize("kind", KINDS)
def test_the_program_makes_the_same_map(program, domains, kind, tmp_path):
    for name, rows in zip(("source", "target"), domains):
        np.save(tmp_path / f"{name}.npy", rows)
    line = [program, "map", "--source", "source.npy", "--target", "target.npy", "--map", kind, "--out", "map.npz"]
    rank = [] if kind in ("mean", "scale") else ["--rank", "3"]
    subprocess.run([*line, *rank, "--quiet"], cwd=tmp_path, check=True)
    theirs = itspace.TransportMap.load(tmp_path / "map.npz")
    ours = between(domains, kind)
    np.testing.assert_allclose(theirs.apply(domains[1]), ours.apply(domains[1]), atol=1e-8)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shrink", ["noise", "halves"])
@pytest.mark.parametrize("n, d", [(200, 10), (40, 80)])
def test_where_there_is_no_shift_samples_hardly_move(kind, shrink, n, d):
    whole = kept = 0.0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        pair = [rng.standard_normal((n, d)) / np.sqrt(np.arange(1, d + 1)) for _ in range(2)]
        whole += between(pair, kind, shrink="none").displacement
        kept += between(pair, kind, shrink=shrink).displacement
    assert kept < 0.3 * whole


def test_kept_moves_a_share_of_the_way(domains):
    T, S = (itspace.model_of_features(x) for x in reversed(domains))
    X = domains[1]
    whole = itspace.TransportMap.from_models(T, S, "scale").apply(X)
    for share in (0.0, 0.3, 1.0):
        kept = itspace.Kept(share, share, np.full(8, share))
        np.testing.assert_allclose(
            itspace.TransportMap.from_models(T, S, "scale", kept=kept).apply(X), X + share * (whole - X), atol=1e-9
        )


def test_counts_and_deviations_of_targets(rng):
    X = rng.standard_normal((30, 4))
    w = rng.uniform(size=30)
    plain, weighted = itspace.Target.from_features(X), itspace.Target.from_features(X, w)
    assert plain.effective_samples == 30
    assert weighted.effective_samples == pytest.approx(w.sum() ** 2 / (w**2).sum())
    np.testing.assert_allclose(plain.deviations, X.std(0, ddof=1))
    np.testing.assert_allclose(weighted.deviations, np.sqrt(np.diag(np.cov(X.T, aweights=w))))
    assert itspace.Target.from_covariance(np.eye(3)).effective_samples is None
    np.testing.assert_allclose(itspace.Target.from_factor(X).deviations, np.sqrt(np.diag(X @ X.T)))
    low = itspace.Target.low_rank_plus_diagonal(X[:6], [1.0, 2.0, 3.0, 4.0], 0.5)
    np.testing.assert_allclose(low.deviations**2, np.diag(low.apply(np.eye(6))))
    model = itspace.model_of(weighted, itspace.start_from(weighted, 2))
    assert model.samples == weighted.effective_samples and not model.standardised


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_standardised_targets(rng, dtype):
    X = (rng.standard_normal((50, 5)) * [1, 2, 3, 4, 0] + 7).astype(dtype)
    T = itspace.Target.from_features(X).standardised()
    R = np.zeros((5, 5))
    R[:4, :4] = np.corrcoef(X[:, :4].T)
    tolerance = 1e-9 if dtype == np.float64 else 1e-4
    for target in (
        T, T.standardised(), pickle.loads(pickle.dumps(T)), itspace.Target.from_covariance(np.cov(X.T)).standardised()
    ):  # fmt: skip
        assert target.is_standardised
        np.testing.assert_allclose(target.apply(np.eye(5)), R, atol=tolerance)
        np.testing.assert_allclose(target.deviations, X.std(0, ddof=1), rtol=1e-5)
    np.testing.assert_allclose(T.mean, X.mean(0), rtol=1e-5)
    assert T.samples == 50
    with pytest.raises(ValueError, match="from_features"):
        itspace.Target.from_factor(X.T).standardised()


def test_covariance_shrinkage_is_scikit_learns(rng):
    covariance = pytest.importorskip("sklearn.covariance")
    for n, d in ((10, 30), (200, 12)):
        X = rng.standard_normal((n, d)) * np.linspace(1, 3, d) + 5
        T = itspace.Target.from_features(X)
        Y = itspace.start_from(T, 3)
        plain, trace = itspace.model_of(T, Y), np.trace(np.cov(X.T))
        for name, rho in (
            ("ledoit-wolf", covariance.ledoit_wolf_shrinkage(X)),
            ("oas", covariance.OAS().fit(X).shrinkage_),
        ):
            model = itspace.model_of(T, Y, shrinkage=name)
            np.testing.assert_allclose(model.factor, np.sqrt(1 - rho) * Y, rtol=1e-8)
            assert model.remainder == pytest.approx((1 - rho) * plain.remainder + rho * trace / d, rel=1e-8)
        dense = itspace.model_of(np.cov(X.T), Y, shrinkage="oas", samples=n)
        assert dense.remainder == pytest.approx(model.remainder, rel=1e-8)


def test_misuse_is_named(domains):
    S, T = (itspace.Target.from_features(x) for x in domains)
    Y = itspace.start_from(S, 2)
    between = itspace.TransportMap.between
    with pytest.raises(ValueError, match="standardised"):
        between(S, Y, None, T, Y, None, "scale+monge")
    with pytest.raises(TypeError, match="source_factor is None"):
        between(S, None, None, T, Y, None)
    with pytest.raises(ValueError, match="shrink is 'some'"):
        between(S, Y, None, T, Y, None, shrink="some")
    with pytest.raises(ValueError, match="halves are those of features"):
        between(np.eye(8), Y, None, T, Y, None, shrink="halves")
    with pytest.raises(ValueError, match="'coral'.*scale"):
        itspace.TransportMap.from_models(itspace.model_of(T, Y), itspace.model_of(S, Y), "coral")
    with pytest.raises(ValueError, match="no deviations"):
        plain = itspace.LowRankGaussian(Y, np.zeros(8), 1.0)
        itspace.TransportMap.from_models(plain, plain, "scale")
    with pytest.raises(ValueError, match="samples"):
        itspace.seen_shift(T, itspace.LowRankGaussian(Y, np.zeros(8), 1.0), S, itspace.model_of(S, Y))
    with pytest.raises(ValueError, match="method is 'magic'"):
        itspace.seen_shift(T, itspace.model_of(T, Y), S, itspace.model_of(S, Y), method="magic")
    with pytest.raises(ValueError, match="features without weights"):
        itspace.model_of(np.eye(8), Y, shrinkage="ledoit-wolf")
    with pytest.raises(ValueError, match="give samples"):
        itspace.model_of(np.eye(8), Y, shrinkage="oas")
    with pytest.raises(ValueError, match="shrinkage is 'big'"):
        itspace.model_of(S, Y, shrinkage="big")
    with pytest.raises(ValueError, match=r"kept.mean is 2.*\[0, 1\]"):
        itspace.TransportMap.from_models(
            itspace.model_of(T, Y), itspace.model_of(S, Y), kept=itspace.Kept(mean=2.0)
        )
