# SPDX-License-Identifier: Apache-2.0
"""What a frozen classifier says about a set of samples under each candidate map."""

from __future__ import annotations

from typing import Any, Callable, Dict, Mapping, Optional, Tuple

import numpy as np

from itspace._gate import Predictions, beside, predictions_of
from itspace._witness import Witness


def answers_of(
    head: Any,
    samples: Mapping[str, Any],
    teach: Optional[Callable[[Any], Optional[Witness]]] = None,
    source: Any = None,
) -> Dict[str, Predictions]:
    """The numbers of `head`'s predictions for each of several sets of samples.

    `head` is a function of samples, or has `predict_proba` or `predict`; answers are labels (n,) or class
    probabilities (n, K). With `teach`, which makes a second classifier of the head's labels for the samples `source`,
    the numbers say how both agree.
    """
    answers, classes = asked(head, samples)
    witness = None if teach is None else teach(_labels(asked(head, {"source": source})[0]["source"]))
    if witness is None:
        return numbers_of(answers, classes)
    return numbers_of(answers, classes, {name: witness.predict(moved) for name, moved in samples.items()})


def asked(head: Any, samples: Mapping[str, Any]) -> Tuple[Dict[str, np.ndarray[Any, Any]], int]:
    """What `head` says of each of several sets of samples, checked, and how many classes it knows (0: it does not say)."""
    ask = _question(head)
    answers = {name: _checked(ask(moved), len(moved)) for name, moved in samples.items()}
    return answers, len(getattr(head, "classes_", ()))


def numbers_of(
    answers: Mapping[str, Any], classes: int = 0, second: Optional[Mapping[str, Any]] = None
) -> Dict[str, Predictions]:
    """The numbers of several sets of answers, labels all or probabilities all; `classes` is K where it is known.

    `second` are the labels of a second classifier for the same sets.
    """
    checked = {name: _checked(answer, len(answer)) for name, answer in answers.items()}
    if {answer.ndim for answer in checked.values()} == {1}:
        # Classes that only some map makes appear count for all of them.
        seen = np.unique(np.concatenate([np.unique(answer) for answer in checked.values()]))
        classes = max(classes, len(seen))
        numbers = {name: predictions_of(answer, classes) for name, answer in checked.items()}
    else:
        classes = max(answer.shape[1] for answer in checked.values())
        numbers = {name: predictions_of(answer) for name, answer in checked.items()}
    if second is None:
        return numbers
    return {name: beside(numbers[name], _labels(checked[name]), second[name], classes) for name in numbers}


def _labels(answer: Any) -> Any:
    return answer.argmax(axis=1) if answer.ndim == 2 else answer


def _question(head: Any) -> Callable[[Any], Any]:
    for name in ("predict_proba", "predict"):  # scikit-learn hides predict_proba where an estimator cannot give it
        if hasattr(head, name):
            return getattr(head, name)  # type: ignore[no-any-return]
    if callable(head):
        return head  # type: ignore[no-any-return]
    raise TypeError(
        f"head is {type(head).__name__}; it must have predict, or be a function of samples that returns labels (n,) or "
        "class probabilities (n, K)"
    )


def _checked(answer: Any, samples: int) -> np.ndarray[Any, Any]:
    values = np.asarray(answer)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim not in (1, 2) or len(values) != samples:
        raise ValueError(
            f"head returned shape {values.shape} for {samples} samples; it must return labels ({samples},) or class "
            f"probabilities ({samples}, K)"
        )
    if values.ndim == 2:
        if values.dtype.kind != "f" or not np.isfinite(values).all() or values.min() < 0:
            raise ValueError(
                "head returned two columns or more that are no probabilities (a value is negative or not finite); "
                "apply softmax, or return labels"
            )
        totals = values.sum(axis=1)
        if np.abs(totals - 1).max() > 1e-3:
            raise ValueError(
                f"head returned rows that sum to {totals.min():.3g} to {totals.max():.3g}; probabilities sum to 1"
            )
    elif values.dtype.kind == "f" and not np.array_equal(values, np.trunc(values)):
        raise ValueError("head returned numbers that are no labels (a value is not whole); the gate needs a classifier")
    return values
