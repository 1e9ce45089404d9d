# SPDX-License-Identifier: Apache-2.0
"""The second classifier: linear discriminant analysis by its definition, and what its agreement says."""

import numpy as np
import pytest
from itspace import _gate, _heads, _witness
from itspace._gate import Predictions, Shift, decide

QUIET = Shift(
    mean_share=0.3, mean_kept=0.9, covariance=0.2, covariance_kept=0.9, covariance_kept_scaled=0.9, unexplained=0.15
)


def entropy(weights):
    shares = np.asarray(weights, dtype=float).ravel() / np.sum(weights)
    return -sum(p * np.log(p) for p in shares if p > 0)


# The numbers.


def test_agreement_and_shared_information_are_those_of_the_joint_histogram(rng):
    first = rng.choice(["a", "b", "c"], size=500)
    second = np.where(rng.random(500) < 0.7, first, rng.choice(["a", "b"], size=500))
    numbers = _gate.beside(Predictions(0.5, None), first, second, classes=4)
    joint = [[np.sum((first == a) & (second == b)) for b in "abc"] for a in "abc"]
    expected = entropy(np.sum(joint, axis=0)) + entropy(np.sum(joint, axis=1)) - entropy(joint)
    assert numbers.agreement == np.mean(first == second)
    assert np.isclose(numbers.shared, expected / np.log(4))
    assert numbers[:2] == (0.5, None)


def test_the_ends_of_shared_information():
    labels = np.arange(40) % 4
    assert np.isclose(_gate.beside(Predictions(1, None), labels, 3 - labels, 4).shared, 1)  # one tells the other
    assert _gate.beside(Predictions(1, None), labels, np.zeros(40), 4).shared == 0


# The classifier.


def classes(rng, samples, features=12, count=4):
    centres = 3 * rng.normal(size=(count, features))
    labels = rng.integers(count, size=samples)
    return centres[labels] + rng.normal(size=(samples, features)), labels


def test_it_is_the_linear_discriminant_inside_the_span_of_the_factor(rng):
    X, labels = classes(rng, 300)
    mean, factor = X.mean(axis=0), np.linalg.svd(X - X.mean(axis=0), full_matrices=False)[2][:5].T * 2.0
    found = _witness.taught_by(labels, X, mean, factor).predict(X)
    basis = np.linalg.qr(factor)[0]
    low = (X - mean) @ basis
    low /= low.std(axis=0)
    means = np.array([low[labels == k].mean(axis=0) for k in range(4)])
    within = (low - means[labels]).T @ (low - means[labels]) / len(low)
    within += 0.1 * np.trace(within) / 5 * np.eye(5)
    distances = [np.einsum("ij,jk,ik->i", low - m, np.linalg.inv(within), low - m) for m in means]
    assert np.array_equal(found, np.argmin(distances, axis=0))


def test_labels_may_be_words_and_samples_float32(rng):
    X, labels = classes(rng, 200)
    names = np.array(["ant", "bee", "cat", "dog"])[labels]
    factor = np.eye(12)
    found = _witness.taught_by(names, X, X.mean(axis=0), factor).predict(X.astype(np.float32))
    assert np.mean(found == names) > 0.95


@pytest.mark.parametrize(
    "labels, X", [(np.zeros(9), np.arange(18.0).reshape(9, 2)), (np.arange(9) % 2, np.ones((9, 2)))]
)
def test_one_class_or_no_variance_teaches_nothing(labels, X):
    assert _witness.taught_by(labels, X, X.mean(axis=0), np.eye(2)) is None


def test_the_rows_kept_are_a_seeded_share():
    X = np.arange(4000.0).reshape(2000, 2)
    kept = _witness.some_rows(X, 3)
    assert len(kept) == _witness.ROWS and np.array_equal(kept, _witness.some_rows(X, 3))
    assert set(map(tuple, kept)) <= set(map(tuple, X))
    few = _witness.some_rows(X[:10], 3)
    assert np.array_equal(few, X[:10]) and few.base is None


def test_the_head_is_asked_about_the_source_once(rng):
    X, labels = classes(rng, 100)
    asked = []

    def head(samples):
        asked.append(len(samples))
        return labels[: len(samples)]

    def teach(answers):
        return _witness.taught_by(answers, X[:60], X.mean(axis=0), np.eye(12))

    numbers = _heads.answers_of(head, {"none": X, "scale": X + 5}, teach, X[:60])
    assert sorted(asked) == [60, 100, 100]
    assert numbers["none"].agreement > 0.9 > numbers["scale"].agreement


# The decision with it.


@pytest.mark.parametrize(
    "why, unexplained, before, after, choice",
    [
        ("agreement is lost", 0.15, (0.5, 0.5, 0.8, 0.5), (0.7, 0.6, 0.64, 0.5), "none"),
        ("a little is", 0.15, (0.5, 0.5, 0.8, 0.5), (0.7, 0.6, 0.66, 0.5), "scale"),
        ("they share less", 0.15, (0.5, 0.5, 0.8, 0.5), (0.7, 0.6, 0.8, 0.49), "none"),
        ("they share more", 0.15, (0.5, 0.5, 0.5, 0.4), (0.5, 0.5, 0.5, 0.51), "scale"),
        ("they share more, by class shares", 0.04, (0.5, 0.5, 0.5, 0.4), (0.5, 0.5, 0.5, 0.6), "none"),
        ("they share more of less", 0.15, (0.5, 0.5, 0.5, 0.4), (0.49, 0.5, 0.5, 0.6), "none"),
        ("a move, and they share as much", 0.5, (0.5, 0.5, 0.5, 0.4), (0.5, 0.5, 0.5, 0.4), "scale"),
        ("a move, and they share less", 0.5, (0.5, 0.5, 0.5, 0.4), (0.55, 0.55, 0.5, 0.39), "none"),
        ("labels lose agreement", 0.15, (0.5, None, 0.8, 0.5), (0.7, None, 0.5, 0.5), "scale"),
        ("labels share less", 0.15, (0.5, None, 0.8, 0.5), (0.7, None, 0.8, 0.4), "scale"),
        ("labels share more", 0.15, (0.5, None, 0.8, 0.3), (0.55, None, 0.8, 0.6), "none"),
    ],
)
def test_decision_with_two_classifiers(why, unexplained, before, after, choice):
    first, second = Predictions(*before), Predictions(*after)
    seen = {"none": first, "scale": second, "scale+monge": second}
    decision = decide(QUIET._replace(unexplained=unexplained), seen)
    assert decision.choice == choice, f"{why}: {decision.sentence}"
    assert decision.sentence.startswith("left alone" if choice == "none" else "adapted")


@pytest.mark.parametrize(
    "further, choice",
    [
        ((0.80, 0.70, 0.8, 0.61), "scale+monge"),
        ((0.80, 0.70, 0.8, 0.60), "scale"),
        ((0.80, 0.64, 0.8, 0.70), "scale"),
        ((0.74, 0.70, 0.8, 0.70), "scale"),
        ((0.80, None, 0.8, 0.66), "scale+monge"),
        ((0.80, None, 0.8, 0.64), "scale"),
    ],
)
def test_going_further_with_two_classifiers(further, choice):
    known = further[1] is not None
    numbers = [(0.5, 0.5, 0.8, 0.5), (0.7, 0.6, 0.8, 0.6), further]
    none, scale, more = (Predictions(p[0], p[1] if known else None, *p[2:]) for p in numbers)
    assert decide(QUIET, {"none": none, "scale": scale, "scale+monge": more}).choice == choice
