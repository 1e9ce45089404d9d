# SPDX-License-Identifier: Apache-2.0
"""A second classifier beside the head: does another way of drawing the lines between the classes see the same?

The head teaches it: it is asked about some samples of the source, and a linear discriminant in the span of the source's
factor is fitted to its answers. Where a map is right both say the same about the target more often, and share more
information; where it spreads the head's predictions at random they do not.
"""

from __future__ import annotations

from typing import Any, Optional

import numpy as np

from itspace._compare import Samples, rows_here

Array = np.ndarray[Any, Any]

ROWS = 1000  # of the source, that the head is asked about
_SHRINKAGE = 0.1  # of the covariance within the classes, towards its mean variance


def some_rows(X: Samples, seed: int) -> Array:
    """Those that the head will be asked about; a copy, so that the rest of X can go."""
    return rows_here(X, ROWS, seed).copy()


class Witness:
    """Linear discriminant analysis with equal priors, folded into one matrix over all features."""

    def __init__(self, labels: Array, weights: Array, offsets: Array) -> None:
        self._labels, self._weights, self._offsets = labels, weights, offsets

    def predict(self, X: Array) -> Array:
        scores = X @ self._weights.astype(X.dtype) + self._offsets.astype(X.dtype)
        said: Array = self._labels[scores.argmax(axis=1)]
        return said


def taught_by(answers: Array, rows: Array, mean: Array, factor: Array) -> Optional[Witness]:
    """The witness of the head's labels for these rows; None where it knows one class alone or the rows do not vary."""
    labels, member = np.unique(answers, return_inverse=True)
    basis = np.linalg.qr(np.asarray(factor, dtype=np.float64))[0]
    low = (rows - mean) @ basis
    deviations = low.std(axis=0)
    basis, low = basis[:, deviations > 0], low[:, deviations > 0]
    if len(labels) < 2 or low.shape[1] == 0:
        return None
    basis = basis / deviations[deviations > 0]
    low = (rows - mean) @ basis
    indicator = (member.reshape(-1, 1) == np.arange(len(labels))).astype(np.float64)
    means = indicator.T @ low / indicator.sum(axis=0)[:, None]
    within = low - indicator @ means
    covariance = within.T @ within / len(low)
    shift = _SHRINKAGE * np.trace(covariance) / len(covariance)
    covariance += max(shift, np.finfo(float).tiny) * np.eye(len(covariance))
    directions = np.linalg.solve(covariance, means.T)
    weights = basis @ directions
    offsets = -0.5 * (means.T * directions).sum(axis=0) - mean @ weights
    return Witness(labels, weights, offsets)
