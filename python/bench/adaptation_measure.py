# SPDX-License-Identifier: Apache-2.0
"""One case of the adaptation table: the accuracy of frozen classifiers under every map, and what the gate decides."""

from __future__ import annotations

import time

from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler

import itspace._compare as compare
import itspace._gate as gate
from adaptation_cases import Case, map_name
from itspace import _heads
from itspace.sklearn import CovarianceAligner

MADE_BY = {
    "logistic": lambda: LogisticRegression(C=0.1, max_iter=1000),
    "3-nn": lambda: KNeighborsClassifier(3),
    "forest": lambda: RandomForestClassifier(100, random_state=0),
}
MAPS = ("mean", "scale", "scale+monge", "monge")
SHOWN = tuple(f"{name}{how}" for name in MAPS for how in ("", ", shrunk", ", remixed"))  # remixed: shrunk as well
GATED = ("auto, no head", "auto, labels", "auto, probabilities")


class Heads:
    """The frozen classifiers of the current source."""

    def __init__(self) -> None:
        self.source, self.heads = "", {}

    def of(self, case: Case, kind: str, Xs):
        if case.source != self.source:
            self.source, self.heads = case.source, {}
        if kind not in self.heads:
            self.heads[kind] = MADE_BY[kind]().fit(Xs, case.ys)
        return self.heads[kind]


class LabelsOnly:
    """A classifier that gives no probabilities."""

    def __init__(self, head) -> None:
        self.predict, self.classes_ = head.predict, head.classes_


def measure(case: Case, heads: Heads) -> dict:
    scaler = StandardScaler().fit(case.Xs)
    if case.kind.startswith("drift"):  # standardised before they drifted
        scaler = StandardScaler(with_mean=False, with_std=False).fit(case.Xs)
    Xs, Xt = scaler.transform(case.Xs), scaler.transform(case.Xt)
    judged, answers = (Xt, case.yt) if case.judged is None else case.judged
    begin = time.perf_counter()
    plain = CovarianceAligner().fit(Xs, Xt)
    seconds = time.perf_counter() - begin
    compared = compare.Comparison(plain._source, Xt, plain._fit_model)
    moved = {"none": judged}
    for name in MAPS:
        moved[name] = compared.map(name, shrink=False).apply(judged)
        moved[f"{name}, shrunk"] = compared.map(name).apply(judged)
        moved[f"{name}, remixed"] = compared.map(name, remixed=True).apply(judged)
    seen = {name: Xt if name == "none" else compared.map(name, remixed=True).apply(Xt) for name in gate.CANDIDATES}
    row = {
        "kind": case.kind,
        "family": case.family,
        "name": case.name,
        "samples": [len(Xs), len(Xt)],
        "features": Xs.shape[1],
        "noise_share": compared.noise_share,
        "shift": compared.shift._asdict(),
        "seconds": seconds,
        "heads": {},
    }
    for kind in case.heads:
        head = heads.of(case, kind, Xs)
        accuracy = {name: 100 * float(head.score(X, answers)) for name, X in moved.items()}
        ways = {
            "auto, no head": None,
            "auto, labels": _heads.answers_of(LabelsOnly(head), seen, plain._witness_of, plain._witness_rows),
            "auto, probabilities": _heads.answers_of(head, seen, plain._witness_of, plain._witness_rows),
        }
        decisions = {way: gate.decide(compared.shift, predictions) for way, predictions in ways.items()}
        for way, decision in decisions.items():
            accuracy[way] = accuracy[map_name(decision.choice, way)]
        row["heads"][kind] = {
            "accuracy": accuracy,
            "choices": {way: decision.choice for way, decision in decisions.items()},
            "predictions": {name: p._asdict() for name, p in ways["auto, probabilities"].items()},
        }
    return row
