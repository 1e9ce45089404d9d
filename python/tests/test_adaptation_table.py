# SPDX-License-Identifier: Apache-2.0
"""The program behind the tables of docs/should-i-adapt.md measures what the estimator does."""
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="scikit-learn is not installed")

BENCH = Path(__file__).resolve().parents[1] / "bench"


@pytest.fixture
def measuring(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCH))
    import adaptation_measure

    yield adaptation_measure
    for name in [name for name in sys.modules if name.startswith("adaptation_")]:
        del sys.modules[name]


def test_a_case_has_the_decisions_of_the_estimator(measuring, rng):
    from itspace.sklearn import CovarianceAligner

    def samples(n, d=6):
        labels = np.arange(n) % 3
        return np.eye(3, d)[labels] * 4 + rng.standard_normal((n, d)), labels

    (Xs, ys), (Xt, yt) = samples(240), samples(180)
    away = Xt * np.linspace(0.5, 2, 6) + 3
    scale = lambda X: (X - Xs.mean(axis=0)) / Xs.std(axis=0)  # noqa: E731: as the program standardises
    chosen = {}
    for name, target in (("moved", away), ("as it was", Xt)):
        case = measuring.Case("pairs", "made up", name, "made up", Xs, ys, target, yt, heads=("logistic",))
        heads = measuring.Heads()
        row = measuring.measure(case, heads)["heads"]["logistic"]
        head = heads.of(case, "logistic", scale(Xs))
        assert set(row["accuracy"]) == {"none", *measuring.SHOWN, *measuring.GATED}
        asked = {"auto, no head": None, "auto, labels": measuring.LabelsOnly(head), "auto, probabilities": head}
        for way, classifier in asked.items():
            aligner = CovarianceAligner().fit(scale(Xs), scale(target), head=classifier)
            assert row["choices"][way] == aligner.choice_, way
            assert row["accuracy"][way] == 100 * head.score(aligner.transform(scale(target)), yt), way
        chosen[name] = row["choices"]["auto, probabilities"]
    assert chosen["as it was"] == "none" and chosen["moved"] != "none", chosen
