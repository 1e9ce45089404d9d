# SPDX-License-Identifier: Apache-2.0
"""The rule that decides whether to adapt: its numbers against their definitions, and every branch of it."""

import numpy as np
import pytest
from itspace import _gate, _heads
from itspace._gate import Predictions, Shift, decide, predictions_of

QUIET = Shift(
    mean_share=0.3, mean_kept=0.9, covariance=0.2, covariance_kept=0.9, covariance_kept_scaled=0.9, unexplained=0.15
)
DRIFT = QUIET._replace(mean_share=0.01, covariance=2.0)


def entropy(weights):
    shares = np.asarray(weights, dtype=float) / np.sum(weights)
    return -sum(p * np.log(p) for p in shares if p > 0)


# The numbers.


def test_spread_is_the_entropy_of_the_histogram_of_labels(rng):
    labels = rng.choice(["a", "b", "c"], p=[0.7, 0.2, 0.1], size=1000)
    counts = [np.sum(labels == label) for label in "abc"]
    assert np.isclose(predictions_of(labels).spread, entropy(counts) / np.log(3))
    assert np.isclose(predictions_of(labels, classes=10).spread, entropy(counts) / np.log(10))
    assert predictions_of(labels).information is None


def test_information_is_the_entropy_of_the_mean_less_the_mean_entropy(rng):
    probabilities = rng.dirichlet([0.5, 1, 2, 1], size=300)
    numbers = predictions_of(probabilities)
    counts = np.bincount(probabilities.argmax(axis=1), minlength=4)
    expected = entropy(probabilities.mean(axis=0)) - np.mean([entropy(row) for row in probabilities])
    assert np.isclose(numbers.spread, entropy(counts) / np.log(4))
    assert np.isclose(numbers.information, expected / np.log(4))


@pytest.mark.parametrize(
    "probabilities, spread, information",
    [(np.eye(5), 1, 1), (np.full((7, 5), 0.2), 0, 0), (np.tile([1.0, 0, 0], (4, 1)), 0, 0)],
)
def test_numbers_at_their_ends(probabilities, spread, information):
    numbers = predictions_of(probabilities)
    assert np.isclose(numbers.spread, spread) and np.isclose(numbers.information, information, atol=1e-15)


# The decision with a classifier.


def predicted(none, scale, second=None, monge=None):
    """Candidates' predictions, given those of none and scale; the rest as bad as none where they are not given."""
    rest = {"mean": none, "scale+monge": second or none, "monge": monge or none}
    return {"none": Predictions(*none), "scale": Predictions(*scale), **{k: Predictions(*v) for k, v in rest.items()}}


@pytest.mark.parametrize(
    "why, shift, predictions, choice",
    [
        ("a clear rise", QUIET, predicted((0.5, 0.5), (0.61, 0.5)), "scale"),
        ("no clear rise", QUIET, predicted((0.5, 0.5), (0.59, 0.5)), "none"),
        ("a rise that costs information", QUIET, predicted((0.5, 0.5), (0.8, 0.39)), "none"),
        ("labels alone know no information", QUIET, predicted((0.5, None), (0.8, None)), "scale"),
        ("other class shares explain it", QUIET._replace(unexplained=0.04), predicted((0.5, 0.5), (0.8, 0.7)), "none"),
        ("they cannot", QUIET._replace(unexplained=0.5), predicted((0.9, 0.5), (0.91, 0.51)), "scale"),
        ("they cannot, but it falls", QUIET._replace(unexplained=0.5), predicted((0.9, 0.5), (0.89, 0.51)), "none"),
        ("they cannot, but it tells less", QUIET._replace(unexplained=0.5), predicted((0.9, 0.5), (0.91, 0.49)), "none"),
        ("they cannot, but who knows", QUIET._replace(unexplained=0.5), predicted((0.9, None), (0.91, None)), "none"),
        ("the second helps", QUIET, predicted((0.5, 0.5), (0.7, 0.6), (0.8, 0.75)), "scale+monge"),
        ("the second spreads alone", QUIET, predicted((0.5, 0.5), (0.7, 0.6), (0.8, 0.65)), "scale"),
        ("the second without the first", QUIET, predicted((0.5, 0.5), (0.5, 0.5), (0.9, 0.9)), "none"),
        ("a drift", DRIFT, predicted((0.9, 0.5), (0.8, 0.4), monge=(0.9, 0.4)), "monge"),
        ("a drift that the classes deny", DRIFT, predicted((0.9, 0.5), (0.8, 0.4), monge=(0.89, 0.6)), "none"),
    ],
)
def test_decision_with_a_classifier(why, shift, predictions, choice):
    decision = decide(shift, predictions)
    assert decision.choice == choice, f"{why}: {decision.sentence}"
    assert decision.sentence.startswith("left alone" if choice == "none" else "adapted")


@pytest.mark.parametrize("name", ["monge", "whiten"])
def test_decision_about_one_map_alone(name):
    shift = QUIET._replace(unexplained=None)
    assert decide(shift, {"none": Predictions(0.2, 0.2), name: Predictions(0.9, 0.6)}).choice == name
    assert decide(shift, {"none": Predictions(0.8, 0.6), name: Predictions(0.9, 0.6)}).choice == "none"


def two(none, scale):
    return {"none": Predictions(*none), "scale": Predictions(*scale)}


@pytest.mark.parametrize(
    "shift, predictions, parts",
    [
        (QUIET, two((0.5, 0.5), (0.61, 0.5)), ["spread +0.11 (limit +0.10)", "more about a sample (limit -0.10;"]),
        (QUIET, two((0.5, None), (0.55, None)), ["spread +0.05 (limit +0.10)", "no clear gain"]),
        (QUIET._replace(unexplained=0.04), two((0.5, 0.5), (0.8, 0.7)), ["4 % of the move is left over (limit 5 %)"]),
        (
            QUIET._replace(unexplained=0.5),
            two((0.9, 0.5), (0.91, 0.51)),
            ["50 % of the mean's move", "(limit 30 %)", "spread +0.01 (limit +0.00)"],
        ),
        (
            QUIET,
            predicted((0.5, 0.5), (0.7, 0.6), (0.8, 0.75)),
            ["adds +0.10 (limit +0.05)", "+0.15 of mutual information (limit +0.10)"],
        ),
        (
            QUIET,
            predicted((0.5, 0.5, 0.8, 0.5), (0.7, 0.6, 0.8, 0.6), (0.8, 0.7, 0.8, 0.61)),
            ["+0.10 of mutual information (limit +0.05)"],
        ),
        (QUIET, two((0.5, 0.5, 0.8, 0.5), (0.7, 0.6, 0.64, 0.5)), ["agrees -0.16 less often (limit -0.15)"]),
        (
            QUIET,
            two((0.5, 0.5, 0.8, 0.5), (0.7, 0.6, 0.8, 0.42)),
            ["-0.08 about what a second classifier says (limit +0.00)"],
        ),
        (
            QUIET,
            two((0.5, 0.5, 0.5, 0.4), (0.5, 0.5, 0.5, 0.51)),
            ["spread +0.00 (limit +0.00)", "+0.11 more about what a second classifier says (limit +0.10)"],
        ),
        (QUIET._replace(unexplained=0.31), None, ["31 % of the mean's move", "(limit 30 %)"]),
    ],
)
def test_sentences_state_their_limits(shift, predictions, parts):
    sentence = decide(shift, predictions).sentence
    for part in parts:
        assert part in sentence, sentence


def test_what_is_said_of_class_shares_states_its_limit():
    for unexplained, limit in ((0.04, 5), (0.2, 30), (0.5, 30)):
        words = _gate.about_label_shift(QUIET._replace(unexplained=unexplained))
        assert f"{100 * unexplained:.0f} % of the mean's move is left over, limit {limit} %" in words


# The decision without one.


@pytest.mark.parametrize(
    "shift, choice",
    [
        (QUIET, "none"),
        (QUIET._replace(unexplained=0.31), "scale"),
        (QUIET._replace(unexplained=0.31, mean_kept=0.0), "none"),
        (QUIET._replace(unexplained=None), "none"),
        (DRIFT, "monge"),
        (DRIFT._replace(covariance=0.2), "none"),
        (DRIFT._replace(covariance_kept=0.6), "monge"),
        (DRIFT._replace(covariance_kept=0.4), "none"),
        (DRIFT._replace(covariance_kept_scaled=0.6), "none"),
        (DRIFT._replace(mean_share=0.06), "none"),
    ],
)
def test_decision_by_moments(shift, choice):
    assert decide(shift).choice == choice


@pytest.mark.parametrize("unexplained", [0.0, 0.1, 0.5, None])
def test_label_shift_is_never_excluded(unexplained):
    words = _gate.about_label_shift(QUIET._replace(unexplained=unexplained))
    assert "cannot be excluded" in words or "explain how the mean moved" in words


# What a classifier may be.


class LabelsOnly:
    classes_ = np.array([0, 1, 2, 3])

    def predict(self, X):
        return np.zeros(len(X), dtype=int)


class Both(LabelsOnly):
    def predict_proba(self, X):
        return np.full((len(X), 4), 0.25)


def test_probabilities_are_asked_for_where_they_are_there():
    X = np.zeros((5, 2))
    assert _heads.answers_of(Both(), {"none": X})["none"].information == 0
    assert _heads.answers_of(LabelsOnly(), {"none": X})["none"] == Predictions(0, None)
    assert _heads.answers_of(lambda X: np.full((len(X), 2), 0.5), {"none": X})["none"].information == 0


def test_classes_are_those_of_the_classifier_or_of_all_answers():
    halves = {"none": np.array([0, 1]), "scale": np.array([0, 0])}
    by_function = _heads.answers_of(lambda X: X, {**halves, "mean": np.array([2, 3])})
    assert np.isclose(by_function["none"].spread, 0.5)

    class Known(LabelsOnly):
        def predict(self, X):
            return X

    assert np.isclose(_heads.answers_of(Known(), halves)["none"].spread, 0.5)


@pytest.mark.parametrize(
    "error, words, head",
    [
        (TypeError, "must have predict", 3),
        (ValueError, r"shape \(2,\) for 5 samples", lambda X: np.zeros(2)),
        (ValueError, "no probabilities", lambda X: np.full((5, 3), -0.1)),
        (ValueError, "sum to 0.6 to 0.6", lambda X: np.full((5, 3), 0.2)),
        (ValueError, "a value is not whole", lambda X: np.full(5, 0.5)),
    ],
)
def test_what_is_no_classifier_is_named(error, words, head):
    with pytest.raises(error, match=words):
        _heads.answers_of(head, {"none": np.zeros((5, 2))})
