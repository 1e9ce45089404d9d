# SPDX-License-Identifier: Apache-2.0
"""The scikit-learn face in scikit-learn's company: its own suite, clones and pickles, Pipeline, GridSearchCV, folds."""

import pickle

import numpy as np
import pytest

sklearn = pytest.importorskip("sklearn", reason="scikit-learn is not installed")

from itspace.sklearn import CovarianceAligner, target_folds  # noqa: E402
from sklearn.base import clone  # noqa: E402
from sklearn.linear_model import LogisticRegression  # noqa: E402
from sklearn.metrics import get_scorer  # noqa: E402
from sklearn.model_selection import GridSearchCV, cross_val_score  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402
from sklearn.utils.estimator_checks import check_estimator  # noqa: E402


@pytest.fixture
def routed():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def test_dtype_is_kept(domains):
    Xs, Xt = domains
    aligner = CovarianceAligner(rank=3).fit(Xs.astype(np.float32), Xt.astype(np.float32))
    assert aligner.factor_.dtype == np.float32
    assert aligner.transform(Xt.astype(np.float32)).dtype == np.float32
    assert aligner.transform(Xt).dtype == np.float64
    assert CovarianceAligner(rank=3).fit(np.arange(80).reshape(10, 8) % 7).transform(Xt).dtype == np.float64
    mixed = CovarianceAligner(rank=3).fit(Xs, Xt.astype(np.float32))
    assert np.allclose(mixed.transform(Xt), CovarianceAligner(rank=3).fit(Xs, Xt).transform(Xt), atol=1e-3)


def test_input_is_left_alone(domains):
    Xs, Xt = domains
    before = Xt.copy()
    CovarianceAligner(rank=3).fit(Xs, Xt).transform(Xt)
    assert np.array_equal(Xt, before)


def test_clone_and_pickle(domains):
    Xs, Xt = domains
    aligner = CovarianceAligner(rank=3, alpha=0.9).fit(Xs, Xt)
    copy = clone(aligner)
    assert copy.get_params() == aligner.get_params() and not hasattr(copy, "factor_")
    again = pickle.loads(pickle.dumps(aligner))
    assert np.array_equal(again.transform(Xt), aligner.transform(Xt))
    assert np.array_equal(again.inverse_transform(Xt), aligner.inverse_transform(Xt))
    assert again.harm_report_ == aligner.harm_report_
    assert np.array_equal(again.adapt(Xt[::2]).transform(Xt), aligner.adapt(Xt[::2]).transform(Xt))


def test_names_and_output_containers(domains):
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    Xs, Xt = domains
    names = [f"sensor{i}" for i in range(8)]
    aligner = CovarianceAligner(rank=3).set_output(transform="pandas")
    aligner.fit(pandas.DataFrame(Xs, columns=names), Xt=pandas.DataFrame(Xt, columns=names))
    assert list(aligner.get_feature_names_out()) == names
    mapped = aligner.transform(pandas.DataFrame(Xt, columns=names, index=np.arange(250) + 5))
    assert list(mapped.columns) == names and mapped.index[0] == 5
    assert np.array_equal(mapped.to_numpy(), CovarianceAligner(rank=3).fit(Xs, Xt).transform(Xt))
    with pytest.raises(ValueError, match="feature names"):
        aligner.transform(pandas.DataFrame(Xt, columns=names[::-1]))


# Checks that cannot hold for an estimator of two domains, with the reason. None: one array alone is the source.
SKIPPED_CHECKS: dict[str, str] = {}


def test_check_estimator():
    results = check_estimator(
        CovarianceAligner(rank=2), expected_failed_checks=SKIPPED_CHECKS, on_skip=None, on_fail=None
    )
    failed = [(r["check_name"], r["exception"]) for r in results if r["status"] == "failed"]
    assert failed == []
    assert {r["check_name"] for r in results if r["status"] == "xfail"} == set(SKIPPED_CHECKS)
    assert sum(r["status"] == "passed" for r in results) > 40


def labelled_domains():
    """Two classes; the target is the source under a linear drift, so that the map can undo it."""
    rng = np.random.default_rng(5)
    n, d = 400, 6
    y = np.arange(n) % 2
    Xs = rng.normal(size=(n, d)) + np.outer(2 * y - 1, [1, 1, 0, 0, 0, 0]) * 1.5
    drift = np.eye(d)
    drift[:2, :2] = [[0.3, 0], [0, 2.5]]
    Xt = (rng.normal(size=(n, d)) + np.outer(2 * y - 1, [1, 1, 0, 0, 0, 0]) * 1.5) @ drift + 4
    return Xs, y, Xt, y


def test_pipeline_trained_on_the_source_then_adapted():
    Xs, ys, Xt, yt = labelled_domains()
    pipe = make_pipeline(StandardScaler(), CovarianceAligner(rank=3, steps=5), LogisticRegression())
    pipe.fit(Xs, ys)
    before = pipe.score(Xt, yt)
    pipe[1].adapt(pipe[0].transform(Xt))
    after = pipe.score(Xt, yt)
    assert before < 0.7 and after > 0.9


def test_pipeline_with_routed_domains(routed):
    Xs, ys, Xt, yt = labelled_domains()
    X, y, domain = np.vstack([Xs, Xt]), np.r_[ys, yt], np.r_[np.ones(400), -np.ones(400)]
    pipe = make_pipeline(
        StandardScaler().set_fit_request(sample_weight=True),
        CovarianceAligner(rank=3, steps=5),
        LogisticRegression().set_fit_request(sample_weight=True),
    )
    pipe.fit(X, y, sample_domain=domain, sample_weight=(domain > 0).astype(float))
    assert pipe.score(Xt, yt) > 0.9
    # The target's labels were never seen: turned around, they change nothing.
    turned = clone(pipe).fit(X, np.r_[ys, 1 - yt], sample_domain=domain, sample_weight=(domain > 0).astype(float))
    assert np.array_equal(turned.predict(Xt), pipe.predict(Xt))


def test_grid_search_over_rank_and_map(routed):
    Xs, ys, Xt, yt = labelled_domains()
    X, y, domain = np.vstack([Xs, Xt]), np.r_[ys, yt], np.r_[np.ones(400), -np.ones(400)]
    pipe = make_pipeline(CovarianceAligner(steps=5), LogisticRegression().set_fit_request(sample_weight=True))
    folds = target_folds(domain, y, n_splits=4)
    search = GridSearchCV(
        pipe,
        {"covariancealigner__rank": [2], "covariancealigner__map": ["mean", "monge"]},
        cv=folds,
        scoring=get_scorer("accuracy").set_score_request(sample_weight=False),
        error_score="raise",
    )
    search.fit(X, y, sample_domain=domain, sample_weight=(domain > 0).astype(float))
    assert search.best_params_["covariancealigner__map"] == "monge"
    assert search.best_estimator_.score(Xt, yt) > 0.9
    scores = cross_val_score(
        pipe,
        X,
        y,
        cv=folds,
        scoring=get_scorer("accuracy").set_score_request(sample_weight=False),
        params={"sample_domain": domain, "sample_weight": (domain > 0).astype(float)},
    )
    assert len(scores) == 4 and scores.min() > 0.85


def test_target_folds_hold_each_target_row_once_and_no_source_row():
    domain = np.r_[1, -1, 2, -1, 1, -2, -1, 1, -1, -1]
    y = np.r_[0, 0, 1, 1, 0, 0, 1, 1, 0, 1]
    for folds in (
        target_folds(domain, n_splits=3),
        target_folds(domain, y, n_splits=3),
        target_folds(domain.tolist(), y, n_splits=3, shuffle=True, random_state=0),
    ):
        assert np.array_equal(np.sort(np.concatenate([test for _, test in folds])), np.flatnonzero(domain < 0))
        for train, test in folds:
            assert np.array_equal(np.sort(np.r_[train, test]), np.arange(10))
    assert all(sorted(y[test]) == [0, 1] for _, test in target_folds(domain, y, n_splits=3))
    for words, call in (
        ("3 source rows.*0 target rows", lambda: target_folds([1, 1, 1])),
        ("6 target rows.*7 folds", lambda: target_folds(domain, n_splits=7)),
        ("n_splits is 1", lambda: target_folds(domain, n_splits=1)),
        (r"y has shape \(3,\)", lambda: target_folds(domain, [0, 1, 0], n_splits=2)),
    ):
        with pytest.raises(ValueError, match=words):
            call()
