# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest

import itspace
from oracle import certificate_factor, covariance, objective


@pytest.mark.parametrize(
    "status", ["step_limit", "converged", "stopped", "certificate_failed", "not_finite", "not_a_covariance"]
)
def test_certified_is_what_the_library_says_of_the_trace(status):
    S = np.diag([3.0, 2.0, 1.0])
    result = itspace.align(S, rank=2)
    assert result.certified and itspace.verify(result.factor, S)["certified"] is None
    trace = {**result.trace, "status": status}
    ended = itspace._align._restore(result.factor, trace, [])
    assert ended.certified == (status in ("step_limit", "converged", "stopped"))
    assert itspace.verify(result.factor, S, trace)["certified"] is ended.certified
    assert ("NOT certified" in repr(ended)) is not ended.certified


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_step_is_that_of_the_paper(rng, dtype):
    S = covariance(rng, 12).astype(dtype)
    Y = rng.standard_normal((12, 3)).astype(dtype)
    result = itspace.align(S, Y, rank=3, steps=1, alpha=0.9, keep_iterates=True)
    expected = 0.1 * Y + 0.9 * certificate_factor(S, Y)
    assert result.factor.dtype == dtype and len(result.iterates) == 2
    np.testing.assert_allclose(result.iterates[1], expected, atol=20 * np.finfo(dtype).eps * np.abs(expected).max() * 12)


def test_the_trace_tells_the_objective_of_every_iterate(rng):
    S = covariance(rng, 10)
    result = itspace.align(S, rank=4, steps=6, keep_iterates=True)
    expected = [objective(Y, S) for Y in result.iterates]
    np.testing.assert_allclose(result.trace["objective"], expected, rtol=1e-12)
    assert result.status == "step_limit" and result.certified
    assert np.all(np.diff(result.trace["objective"]) <= 0)
    assert result.objective == result.trace["objective"][result.trace["best"]]
    for key in ("objective", "certificate_gap", "passes", "seconds", "step_route", "certified", "step_squared"):
        assert isinstance(result.trace[key], np.ndarray) and result.trace[key].shape == (7,), key
    assert result.trace["certified"][0] is None and all(result.trace["certified"][1:])
    assert result.trace["schema"] == "itspace.trace/1" and result.trace["rank"] == 4
    # The finite-length promise, from the iterates themselves.
    alpha = result.trace["alpha"]
    length = sum(np.sum((b - a) ** 2) for a, b in zip(result.iterates, result.iterates[1:]))
    assert length <= alpha / (2 - alpha) * (expected[0] - expected[-1]) + 1e-9


def test_ritz_reaches_the_floor(rng):
    S = covariance(rng, 40)
    floor = np.sort(np.linalg.eigvalsh(S))[:-5].sum()
    result = itspace.align(S, rank=5, steps=12, solver="ritz")
    assert result.certified
    assert result.objective == pytest.approx(floor, rel=1e-8)


@pytest.mark.parametrize("steps, alpha", [(1, 1.0), (2, 1.1), (5, 1.3)])
def test_default_step_sizes(rng, steps, alpha):
    assert itspace.align(covariance(rng, 6), rank=2, steps=steps).trace["alpha"] == alpha


def test_lambda_is_another_name_for_alpha(rng):
    S = covariance(rng, 8)
    by_lam = itspace.align(S, rank=2, lam=4.5).factor
    by_alpha = itspace.align(S, rank=2, alpha=0.9).factor
    np.testing.assert_allclose(by_lam, by_alpha, rtol=1e-13, atol=1e-15)


def test_line_search_is_at_least_as_good_as_one_full_step(rng):
    S = covariance(rng, 15)
    search = itspace.align(S, rank=3, steps=1, alpha="line-search")
    assert search.trace["alpha"] == "line-search"
    assert search.objective <= itspace.align(S, rank=3, steps=1, alpha=1.0).objective + 1e-12


@pytest.mark.parametrize("route", ["auto", "qr", "gram", "factor", "root"])
def test_routes_agree(rng, route):
    X = rng.standard_normal((40, 9))
    target = itspace.Target.from_features(X) if route == "factor" else np.cov(X.T)
    start = rng.standard_normal((9, 3))
    factor = itspace.align(target, start, rank=3, steps=2, route=route).factor
    reference = itspace.align(np.cov(X.T), start, rank=3, steps=2, route="qr").factor
    np.testing.assert_allclose(factor @ factor.T, reference @ reference.T, atol=1e-11)


def test_same_seed_same_bits_other_seed_other_start(rng):
    S = covariance(rng, 9)
    a, b, c = (itspace.align(S, rank=2, seed=seed).factor for seed in (3, 3, 4))
    assert np.array_equal(a, b) and not np.array_equal(a, c)
    np.testing.assert_array_equal(
        itspace.align(S, itspace.random_start(S, 2, seed=3), rank=2).factor, a
    )


def test_zero_steps_evaluate_the_start(rng):
    S, Y = covariance(rng, 7), rng.standard_normal((7, 2))
    result = itspace.align(S, Y, rank=2, steps=0)
    np.testing.assert_array_equal(result.factor, Y)
    assert result.objective == pytest.approx(objective(Y, S), rel=1e-12)


def test_callback_sees_every_iterate_and_can_stop(rng):
    S = covariance(rng, 8)
    seen = []

    def callback(step, factor):
        seen.append((step["index"], step["objective"], factor))
        return step["index"] == 2

    result = itspace.align(S, rank=3, steps=9, callback=callback)
    assert result.status == "stopped" and [k for k, _, _ in seen] == [0, 1, 2]
    for _, reported, factor in seen:  # copies: they live after the run
        assert reported == pytest.approx(objective(factor, S), rel=1e-12)
    np.testing.assert_array_equal(result.factor, seen[-1][2])


def test_what_a_callback_raises_comes_out(rng):
    class Own(Exception):
        pass

    raised = Own("mine")

    def callback(step, factor):
        raise raised

    with pytest.raises(Own) as caught:
        itspace.align(covariance(rng, 5), rank=1, callback=callback)
    assert caught.value is raised


def test_verbose_shows_progress(rng, capsys, monkeypatch):
    S = covariance(rng, 5)
    pytest.importorskip("tqdm")
    assert itspace.align(S, rank=1, steps=3, verbose=True).status == "step_limit"
    assert "3/3" in capsys.readouterr().err
    import builtins

    real_import = builtins.__import__

    def without_tqdm(name, *args, **kwargs):
        if name.startswith("tqdm"):
            raise ImportError(name)
        return real_import(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without_tqdm)
    itspace.align(S, rank=1, steps=2, verbose=True)
    assert "step 2 of 2" in capsys.readouterr().out


def test_auto_rank_is_the_explained_variance_rule(rng):
    S = covariance(rng, 20)
    values = np.sort(np.linalg.eigvalsh(S))[::-1]
    for threshold in (0.5, 0.9, 0.95, 0.999):
        expected = int(np.argmax(np.cumsum(values) >= threshold * values.sum())) + 1
        assert itspace.auto_rank(S, threshold) == expected
    assert itspace.align(S, rank="auto").factor.shape[1] == itspace.auto_rank(S)
    assert itspace.start_from(S, "auto").shape[1] == itspace.auto_rank(S)


def test_start_from_is_the_truncation(rng):
    X = rng.standard_normal((30, 8)) * np.linspace(2, 0.3, 8)
    S = np.cov(X.T)
    values, vectors = np.linalg.eigh(S)
    best = (vectors[:, -3:] * values[-3:]) @ vectors[:, -3:].T
    weights = np.ones(30)
    for source in (S, itspace.Target.from_features(X), itspace.Target.from_features(X, weights)):
        Y = itspace.start_from(source, 3)
        np.testing.assert_allclose(Y @ Y.T, best, atol=1e-12)
    np.testing.assert_allclose(np.abs(itspace.truncate(S, 3)), np.abs(itspace.start_from(S, 3)), atol=1e-12)
    Z = itspace.truncate_factor(np.linalg.cholesky(S), 3)
    np.testing.assert_allclose(Z @ Z.T, best, atol=1e-12)


def test_verify_finds_the_truth_and_a_lie(rng):
    S = covariance(rng, 10)
    result = itspace.align(S, rank=3)
    report = itspace.verify(result.factor, S, result)
    assert report["holds"] and report["objective"] == pytest.approx(result.objective, rel=1e-9)
    assert report == itspace.verify(result.factor, S, result.trace)
    lie = dict(result.trace)
    lie["objective"] = lie["objective"] * 0.5
    report = itspace.verify(result.factor, S, lie)
    assert not report["holds"] and any(not claim["holds"] for claim in report["claims"])
    assert itspace.verify(result.factor, S)["claims"] == []


def test_objective_and_gradient_against_differences(rng):
    X = rng.standard_normal((14, 6)) * np.linspace(2, 0.5, 6)
    Y = rng.standard_normal((6, 2))
    weights = rng.random(14) + 0.1

    def F(Y, X, w):
        centred = (X - np.average(X, axis=0, weights=w)) * np.sqrt(w / (w.sum() - (w**2).sum() / w.sum()))[:, None]
        return np.sum(Y**2) + np.sum(centred**2) - 2 * np.linalg.svd(centred @ Y, compute_uv=False).sum()

    def differences(f, x, h=1e-6):
        out = np.empty_like(x)
        for at in np.ndindex(*x.shape):
            up, down = x.copy(), x.copy()
            up[at] += h
            down[at] -= h
            out[at] = (f(up) - f(down)) / (2 * h)
        return out

    value, by_y = itspace.objective_and_gradient(Y, itspace.Target.from_features(X, weights))
    again, by_y2, by_x = itspace.objective_and_features_gradient(Y, X, weights)
    expected = F(Y, X, weights)
    assert value == pytest.approx(expected, rel=1e-12) and again == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(by_y, differences(lambda y: F(y, X, weights), Y), atol=1e-7)
    np.testing.assert_allclose(by_y2, by_y, atol=1e-11)
    np.testing.assert_allclose(by_x, differences(lambda x: F(Y, x, weights), X), atol=1e-7)


def test_gradient_is_finite_at_singular_covariances(rng):
    X = np.zeros((5, 4))
    X[0, 0], X[1, 0] = 1.0, -1.0
    for Y in (np.eye(4)[:, :3], np.zeros((4, 2)), rng.standard_normal((4, 4))):
        value, dY, dX = itspace.objective_and_features_gradient(Y, X)
        assert np.isfinite(value) and np.isfinite(dY).all() and np.isfinite(dX).all()


def test_a_result_shows_itself(rng):
    result = itspace.align(covariance(rng, 6), rank=2, steps=3)
    html = result._repr_html_()
    assert "<svg" in html and html.count("<circle") == 4 and "certified" in html
    assert "3 steps" in repr(result)
    import xml.etree.ElementTree as ElementTree

    ElementTree.fromstring(html[html.index("<svg") : html.index("</svg>") + 6])


def test_gap_and_eigenvalues(rng):
    S = covariance(rng, 9)
    values = np.sort(np.linalg.eigvalsh(S))[::-1]
    np.testing.assert_allclose(itspace.leading_eigenvalues(S, 4), values[:4], rtol=1e-12)
    assert itspace.gap(2.0, 5.0, 1.0) == 0.25


def test_a_result_pickles(rng):
    import copy
    import pickle

    result = itspace.align(covariance(rng, 6), rank=2, steps=3, alpha="line-search", keep_iterates=True)
    for again in (pickle.loads(pickle.dumps(result)), copy.deepcopy(result)):
        np.testing.assert_array_equal(again.factor, result.factor)
        assert len(again.iterates) == 4
        assert (again.status, again.objective, again.certified) == (result.status, result.objective, result.certified)
        for key, value in result.trace.items():
            np.testing.assert_array_equal(again.trace[key], value, err_msg=key)


def test_a_step_of_the_callback_has_the_columns_of_the_trace(rng):
    seen = []
    result = itspace.align(covariance(rng, 6), rank=2, steps=3, callback=lambda step, factor: seen.append(step))
    columns = {key for key, value in result.trace.items() if isinstance(value, np.ndarray)}
    for k, step in enumerate(seen):
        assert set(step) == columns
        np.testing.assert_equal(step["step_alpha"], result.trace["step_alpha"][k])
        assert (step["step_route"] or "") == result.trace["step_route"][k]


def test_the_rank_is_that_of_the_start_where_none_is_given(rng):
    S, Y = covariance(rng, 6), rng.standard_normal((6, 3))
    np.testing.assert_array_equal(itspace.align(S, Y).factor, itspace.align(S, Y, rank=3).factor)
    np.testing.assert_array_equal(itspace.align(S, Y, rank=None).factor, itspace.align(S, Y, rank=3).factor)
