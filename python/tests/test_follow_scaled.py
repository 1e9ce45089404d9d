# SPDX-License-Identifier: Apache-2.0
"""partial_fit with the map "scale+monge": the correlations of a stream, from its covariance and the diagonal of it."""
import numpy as np
import pytest

import itspace
from oracle import psd_root, w2_squared

pytest.importorskip("sklearn", reason="scikit-learn is not installed")

from itspace.sklearn import CovarianceAligner  # noqa: E402

DIM, BATCHES = 8, 7


def two_domains(rng, dtype=np.float64, n=300, m=250):
    mix = rng.standard_normal((DIM, DIM))
    source = rng.standard_normal((n, DIM)) @ mix * np.arange(1, DIM + 1) + 5
    target = rng.standard_normal((m, DIM)) @ (mix + rng.standard_normal((DIM, DIM))) * np.arange(DIM, 0, -1)
    return source.astype(dtype), target.astype(dtype)


def followed(aligner, X):
    for batch in np.array_split(X, BATCHES):
        aligner.partial_fit(batch)
    return aligner


def assert_same_map(first, second, eps):
    A, B = first.map_.matrix(), second.map_.matrix()
    assert np.linalg.norm(A - B) <= 100 * DIM * eps * np.linalg.norm(B)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("solver", ["paper", "ritz"])
def test_a_stream_that_forgets_nothing_has_the_map_of_all_its_samples(rng, dtype, solver):
    Xs, Xt = two_domains(rng, dtype)
    made = {"rank": 3, "map": "scale+monge", "shrink": False, "solver": solver}
    stream, whole = followed(CovarianceAligner(**made).fit(Xs), Xt), CovarianceAligner(**made).fit(Xs, Xt)
    assert stream.map_.kind == "scale+monge" == stream.choice_
    assert_same_map(stream, whole, np.finfo(dtype).eps)
    # However the stream is cut into batches.
    assert_same_map(stream, CovarianceAligner(**made).fit(Xs).partial_fit(Xt), np.finfo(dtype).eps)
    back = stream.inverse_transform(stream.transform(Xt))
    assert np.linalg.norm(back - Xt) <= 1000 * np.finfo(dtype).eps * np.linalg.norm(Xt)


def test_the_map_is_that_of_the_definition(rng):
    Xs, Xt = two_domains(rng)
    # All directions: the models are the correlation matrices themselves, but for the floor.
    aligner = CovarianceAligner(rank=DIM, map="scale+monge", shrink=False, solver="ritz", floor=1e-3).fit(Xs)
    followed(aligner, Xt)
    Cs, Ct = (np.corrcoef(X, rowvar=False) + 1e-3 * np.eye(DIM) for X in (Xs, Xt))
    root = psd_root(Ct)
    inverse = np.linalg.inv(root)
    monge = inverse @ psd_root(root @ Cs @ root) @ inverse
    expected = Xs.std(axis=0, ddof=1)[:, None] * monge / Xt.std(axis=0, ddof=1)
    condition = np.linalg.cond(Ct)
    error = np.linalg.norm(aligner.map_.matrix() - expected)
    assert error <= 100 * DIM * condition * np.finfo(np.float64).eps * np.linalg.norm(expected)


def test_what_is_kept_is_beyond_the_noise_of_normal_samples(rng):
    Xs, Xt = two_domains(rng)
    aligner = followed(CovarianceAligner(rank=DIM, map="scale+monge", solver="ritz", floor=1e-3).fit(Xs), Xt)
    Cs, Ct = (np.corrcoef(X, rowvar=False) + 1e-3 * np.eye(DIM) for X in (Xs, Xt))
    values = np.linalg.eigvalsh(Cs)
    pairs = (np.outer(values, values) / np.add.outer(values, values)).sum()
    noise = (1 / len(Xs) + 1 / len(Xt)) / 2 * (pairs + values.sum() / 2)
    observed = w2_squared(Ct, Cs)
    assert 0 < 1 - noise / observed < 1
    assert aligner.map_.kept.covariance == pytest.approx(1 - noise / observed, rel=1e-9)
    scale = followed(CovarianceAligner(rank=DIM, map="scale").fit(Xs), Xt).map_.kept
    assert aligner.map_.kept.mean == scale.mean
    assert np.array_equal(aligner.map_.kept.deviations, scale.deviations)
    # Between two samples of one domain next to nothing is left.
    other = two_domains(np.random.default_rng(1), n=600)[0]
    alike = followed(CovarianceAligner(rank=3, map="scale+monge").fit(other[::2]), other[1::2])
    assert alike.map_.kept.covariance < 0.3
    assert alike.harm_report_.relative_displacement < 0.2


def test_features_that_do_not_vary_and_samples_that_are_all_equal(rng):
    Xs, Xt = two_domains(rng)
    Xt[:, 2] = 1 / 3
    made = {"rank": 3, "map": "scale+monge", "shrink": False}
    stream = followed(CovarianceAligner(**made).fit(Xs), Xt)
    assert_same_map(stream, CovarianceAligner(**made).fit(Xs, Xt), np.finfo(np.float64).eps)
    for kind in ("scale+monge", "monge"):
        with pytest.raises(ValueError, match="source's samples are all equal"):
            CovarianceAligner(rank=3, map=kind).fit(np.ones((20, DIM))).partial_fit(Xt)


def test_a_balanced_stream_is_the_classes_in_the_shares_of_the_source(rng):
    Xs, Xt = two_domains(rng, n=400, m=400)
    labels = np.arange(400) % 2
    made = {"rank": 3, "map": "scale+monge", "shrink": False}
    aligner = CovarianceAligner(**made).fit(Xs, labels)
    Xt[labels == 1] += 4
    kept = np.r_[np.flatnonzero(labels == 0), np.flatnonzero(labels == 1)[:40]]  # the second class hardly comes
    for rows in np.array_split(kept, 4):
        aligner.partial_fit(Xt[rows], predicted=labels[rows])
    weights = np.where(labels[kept] == 0, 0.5 / 200, 0.5 / 40)
    target = itspace.Target.from_features(Xt[kept], weights)
    assert np.allclose(aligner.map_.parts()["mean_from"], target.mean, rtol=1e-12)
    assert np.allclose(aligner.map_.parts()["scale_from"], target.deviations, rtol=1e-12)
