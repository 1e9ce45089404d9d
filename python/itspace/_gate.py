# SPDX-License-Identifier: Apache-2.0
"""When to adapt, and with which map: the rule alone, from numbers to a decision and a sentence.

Two kinds of evidence go in. What the two domains' moments say (:class:`Shift`), and, where a classifier is there, how
its predictions on the target look before and after each candidate map (:class:`Predictions`). No label is used.

The constants were chosen on real source-target pairs, family by family left out; docs/should-i-adapt.md has the table,
the reasons and the rules that did not work.
"""

from __future__ import annotations

import math
from typing import Any, Mapping, NamedTuple, Optional, Tuple

import numpy as np

from itspace._types import MapKind

MAPS: Tuple[MapKind, ...] = ("mean", "scale", "scale+monge", "monge")
CANDIDATES = ("none", *MAPS)

# Shares of log K, K the number of classes.
CLEAR_RISE = 0.10  # of the spread of the predicted classes: the classifier had collapsed onto few classes
LOST_INFORMATION = -0.10  # more than this lost in mutual information, and the rise is no better order but more noise
SECOND_RISE = 0.05  # the same for the low-rank part on top of the scale
SECOND_INFORMATION = 0.10
# The same where a second classifier was asked too (itspace._witness).
LOST_AGREEMENT = -0.15  # they agree on so many samples less, and the rise is noise
CLEAR_SHARED = 0.10  # their labels tell so much more about each other: as good as a clear rise
SECOND_SHARED = 0.05  # the low-rank part on top, of labels, which know no information
SECOND_INFORMATION_SEEN = 0.05  # and of probabilities, if what is shared rises
# Shares of the mean's move that no other mix of the source's own clusters explains.
SOME_MOVE = 0.05  # below it the target is the source with other class shares, as far as one can see
MUCH_MOVE = 0.30  # above it no change of class shares alone can be behind the move
# A drift of the covariance alone: a change of class shares would have moved the mean.
STILL_MEAN = 0.05  # at most this share of the displacement is the mean's
CLEAR_COVARIANCE = 0.70  # at least this share of the covariance's displacement is beyond noise, standardised
MORE_THAN_NOISE = 0.50  # and this share as the features are, where a few rare large values can be most of the noise
LARGE_COVARIANCE = 0.30  # and it is at least this large, in units of the source's variance

_OPEN_QUESTION = "a change of class shares cannot be excluded"


class Predictions(NamedTuple):
    """What is read off a classifier's predictions for one set of samples; entropies as shares of log K."""

    spread: float  # entropy of the histogram of the predicted classes: 1 if all are predicted equally often
    information: Optional[float]  # mutual information of sample and class; None without probabilities
    # Beside those of a second classifier, where one was asked.
    agreement: Optional[float] = None  # share of the samples of which both say the same
    shared: Optional[float] = None  # mutual information of the two labels


class Shift(NamedTuple):
    """What the moments of the two domains say; measured by itspace._compare."""

    mean_share: float  # of the mean in the squared displacement
    mean_kept: float  # share of the mean's move that is beyond noise
    covariance: float  # squared displacement of the covariance part, in units of the source's variance
    covariance_kept: float  # share of it that is beyond noise
    covariance_kept_scaled: float  # the same between the standardised domains
    unexplained: Optional[float]  # share of the mean's move that no mix of the source's clusters explains


class Changes(NamedTuple):
    """What a map does to the numbers of :class:`Predictions`; None where one of the two is not known."""

    rise: float  # of the spread
    gain: Optional[float]  # of the information
    agreement: Optional[float]
    shared: Optional[float]


class Decision(NamedTuple):
    choice: str
    sentence: str


def predictions_of(answers: Any, classes: Optional[int] = None) -> Predictions:
    """The numbers of one set of answers: labels (n,) or class probabilities (n, K).

    `classes` is K for labels; by default the number of labels that occur.
    """
    values = np.asarray(answers)
    if values.ndim == 2:
        shares = values.astype(np.float64)
        log_classes = math.log(max(values.shape[1], 2))
        counts = np.bincount(shares.argmax(axis=1), minlength=shares.shape[1])
        own = -np.sum(np.where(shares > 0, shares * np.log(np.where(shares > 0, shares, 1)), 0), axis=1).mean()
        return Predictions(
            _entropy(counts) / log_classes, max(0.0, (_entropy(shares.mean(axis=0)) - own) / log_classes)
        )
    counts = np.unique(values, return_counts=True)[1]
    return Predictions(_entropy(counts) / math.log(max(classes or len(counts), len(counts), 2)), None)


def beside(numbers: Predictions, labels: Any, second: Any, classes: int) -> Predictions:
    """The numbers with those of a second classifier's labels for the same samples; `classes` is K."""
    first, others = (np.unique(values, return_inverse=True)[1].ravel() for values in (labels, second))
    width = int(others.max()) + 1
    joint = np.bincount(first * width + others, minlength=(int(first.max()) + 1) * width).reshape(-1, width)
    shared = _entropy(joint.sum(axis=0)) + _entropy(joint.sum(axis=1)) - _entropy(joint.ravel())
    agreement = float(np.mean(np.asarray(labels) == np.asarray(second)))
    return numbers._replace(agreement=agreement, shared=max(0.0, shared) / math.log(max(classes, 2)))


def decide(shift: Shift, predictions: Optional[Mapping[str, Predictions]] = None) -> Decision:
    """Which candidate to apply. `predictions` are those of the candidates by name; None: there is no classifier."""
    if predictions is None:
        return _decide_by_moments(shift)
    before = predictions["none"]
    drift = _is_covariance_drift(shift)
    if drift and "monge" in predictions and predictions["monge"].spread >= before.spread:
        return Decision("monge", f"{drift}, and with the Monge map the predicted classes are spread no worse")
    if "scale" not in predictions:  # one map alone, as a layer has it
        (name,) = set(predictions) - {"none"}
        return _decide_about(name, before, predictions[name], shift.unexplained)
    decision = _decide_about("scale", before, predictions["scale"], shift.unexplained)
    if decision.choice == "none" or "scale+monge" not in predictions:
        return decision
    change = changes(predictions["scale"], predictions["scale+monge"])
    if _goes_further(change):
        more = f"the low-rank map on top adds {change.rise:+.2f} (limit {SECOND_RISE:+.2f})"
        if change.gain is not None:
            least = SECOND_INFORMATION if change.shared is None else SECOND_INFORMATION_SEEN
            more += f" and {change.gain:+.2f} of mutual information (limit {least:+.2f})"
        return Decision("scale+monge", f"{decision.sentence}; {more}")
    return decision


def about_label_shift(shift: Shift) -> str:
    """What the moments say of a change of class shares: it can be made likely or unlikely, never excluded."""
    if shift.mean_kept == 0 or shift.unexplained is None:
        return "the means differ by no more than noise; class shares that changed and left the mean cannot be excluded"
    limit = SOME_MOVE if shift.unexplained <= SOME_MOVE else MUCH_MOVE
    left = f"{100 * shift.unexplained:.0f} % of the mean's move is left over, limit {100 * limit:.0f} %"
    if shift.unexplained <= SOME_MOVE:
        return f"other class shares alone explain how the mean moved ({left}): adapting would undo them"
    if shift.unexplained <= MUCH_MOVE:
        return f"other class shares explain most of how the mean moved ({left}); they cannot be excluded"
    return f"other class shares alone do not explain how the mean moved ({left}), but cannot be excluded"


def _goes_further(change: Changes) -> bool:
    if change.rise <= SECOND_RISE:
        return False
    if change.shared is None:
        return change.gain is not None and change.gain > SECOND_INFORMATION
    if change.gain is None:
        return change.shared > SECOND_SHARED
    return change.gain > SECOND_INFORMATION_SEEN and change.shared > 0


def _decide_about(name: str, before: Predictions, after: Predictions, unexplained: Optional[float]) -> Decision:
    change = changes(before, after)
    rise, gain, agreement, shared = change
    if gain is None:  # labels alone: the spread is all there is
        clear = rise > CLEAR_RISE
    else:
        clear = rise > CLEAR_RISE and gain > LOST_INFORMATION
        clear = clear and (agreement is None or agreement > LOST_AGREEMENT) and (shared is None or shared >= 0)
    seen = _seen(name, change, CLEAR_RISE, LOST_INFORMATION)
    if not clear and gain is not None and shared is not None and shared > CLEAR_SHARED and min(rise, gain) >= 0:
        clear = True
        more = f"they tell {shared:+.2f} more about what a second classifier says (limit {CLEAR_SHARED:+.2f})"
        seen = f"{_seen(name, change, 0, 0)}; {more}"
    if clear:
        if unexplained is None or unexplained > SOME_MOVE:
            return Decision(name, f"adapted: {seen}")
        left = f"{100 * unexplained:.0f} % of the move is left over (limit {100 * SOME_MOVE:.0f} %)"
        return Decision("none", f"left alone: {seen}, but other class shares alone explain how the mean moved: {left}")
    no_worse = gain is not None and min(rise, gain, 0 if shared is None else shared) >= 0
    if unexplained is not None and unexplained > MUCH_MOVE and no_worse:
        return Decision(name, f"adapted: {_moved(unexplained)}, and {_seen(name, change, 0, 0)}")
    if agreement is not None and gain is not None and agreement <= LOST_AGREEMENT and rise > CLEAR_RISE:
        less = f"a second classifier agrees {agreement:+.2f} less often (limit {LOST_AGREEMENT:+.2f})"
        return Decision("none", f"left alone: {seen}, but {less}")
    if shared is not None and gain is not None and shared < 0 and rise > CLEAR_RISE:
        less = f"{shared:+.2f} about what a second classifier says (limit {0:+.2f})"
        return Decision("none", f"left alone: {seen}, but {less}")
    return Decision("none", f"left alone: {seen}, which is no clear gain")


def _seen(name: str, change: Changes, least_rise: float, least_gain: float) -> str:
    """What a map does to the predictions, beside the limits that it is held against."""
    text = f"with the map '{name}' the predicted classes spread {change.rise:+.2f} (limit {least_rise:+.2f})"
    if change.gain is None:
        return text
    return f"{text} and tell {change.gain:+.2f} more about a sample (limit {least_gain:+.2f}; both as shares of log K)"


def _moved(unexplained: float) -> str:
    share = f"{100 * unexplained:.0f} % of the mean's move is none that other class shares could make"
    return f"{share} (limit {100 * MUCH_MOVE:.0f} %)"


def _decide_by_moments(shift: Shift) -> Decision:
    drift = _is_covariance_drift(shift)
    if drift:
        return Decision("monge", drift)
    if shift.unexplained is not None and shift.unexplained > MUCH_MOVE and shift.mean_kept > 0:
        return Decision("scale", f"adapted without a classifier to ask: {_moved(shift.unexplained)}; {_OPEN_QUESTION}")
    return Decision(
        "none",
        "left alone without a classifier to ask: what moved is within noise, or other class shares alone explain it",
    )


def _is_covariance_drift(shift: Shift) -> str:
    if (
        shift.mean_share < STILL_MEAN
        and shift.covariance_kept_scaled > CLEAR_COVARIANCE
        and shift.covariance_kept > MORE_THAN_NOISE
        and shift.covariance > LARGE_COVARIANCE
    ):
        return (
            "adapted: the covariance drifted far beyond noise while the mean stayed, "
            "which a change of class shares does not do"
        )
    return ""


def changes(before: Predictions, after: Predictions) -> Changes:
    pairs = zip(before, after)
    return Changes(*(None if None in pair else pair[1] - pair[0] for pair in pairs))  # type: ignore[arg-type, operator]


def _entropy(weights: Any) -> float:
    shares = np.asarray(weights, dtype=np.float64)
    shares = shares[shares > 0] / shares.sum()
    return float(max(0.0, -(shares * np.log(shares)).sum()))
