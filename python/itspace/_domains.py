# SPDX-License-Identifier: Apache-2.0
# scikit-learn comes without types.
# mypy: warn-return-any=False
"""Which rows are source and which are target: what `sample_domain` and a second array say, and folds of them.

The public names are those of `itspace.sklearn`.
"""

from __future__ import annotations

import numbers
import warnings
from typing import Any

import numpy as np
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.utils.validation import check_array

from itspace._arrays import shown


def target_folds(
    sample_domain: Any, y: Any = None, *, n_splits: int = 5, shuffle: bool = False, random_state: Any = None
) -> list[tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]]:
    """Folds for ``cv=`` whose test rows are target rows: the scores say what the map does for the target.

    Each target row is in one test fold. All source rows, and the target rows of the other folds, are training rows;
    weights of 0 keep the labels of the latter from the classifier.

    Parameters
    ----------
    sample_domain : array-like of shape (n_samples,)
        The domain of each row: positive is source, negative is target.
    y : array-like of shape (n_samples,), optional
        Class labels, to have the classes in each fold in the proportions of the target. None: folds without regard to
        them.
    n_splits : int, default=5
    shuffle : bool, default=False
        Whether to shuffle the target rows first, instead of taking them in their order.
    random_state : int, RandomState instance or None, default=None
        Seed of the shuffling.

    Returns
    -------
    list of (train, test)
        Pairs of row numbers.

    Examples
    --------
    >>> from itspace.sklearn import target_folds
    >>> for train, test in target_folds([1, 1, 1, -1, -1], n_splits=2):
    ...     print(train.tolist(), test.tolist())
    [0, 1, 2, 4] [3]
    [0, 1, 2, 3] [4]
    """
    is_source = source_rows(sample_domain, len(sample_domain))
    source, target = np.flatnonzero(is_source), np.flatnonzero(~is_source)
    check_integer("n_splits", n_splits, 2)
    if len(source) == 0 or len(target) < n_splits:
        raise ValueError(
            f"sample_domain has {len(source)} source rows (positive) and {len(target)} target rows (negative); "
            f"n_splits is {shown(n_splits)}, and {shown(n_splits)} folds need source rows, and as many target rows at least: "
            "give more rows, or fewer folds"
        )
    seed = random_state if shuffle else None
    if y is None:
        parts = KFold(n_splits, shuffle=shuffle, random_state=seed).split(target)
    else:
        labels = np.asarray(y)
        if labels.shape != is_source.shape:
            raise ValueError(f"y has shape {labels.shape}; it needs one label per value of sample_domain: {is_source.shape}")
        parts = StratifiedKFold(n_splits, shuffle=shuffle, random_state=seed).split(target, labels[target])
    return [(np.sort(np.r_[source, target[train]]), target[test]) for train, test in parts]


def is_target(y: Any, shape: tuple[int, ...]) -> bool:
    """Whether the second positional argument is a set of samples rather than labels."""
    if y is None or shape[1] < 2:
        return False
    second = np.asarray(y)
    if second.ndim != 2:
        return False
    if second.shape[1] == shape[1]:
        return True
    if second.shape[1] > 1:
        remedy = f"a target needs the {shape[1]} columns of X; pass it as Xt="
        if second.shape[0] != shape[0]:
            raise ValueError(
                f"X has shape {shape} and the second array has shape {second.shape}: it has too few or too many columns "
                f"for a target and another number of rows than labels would have; {remedy}"
            )
        if second.dtype.kind == "f":
            warnings.warn(
                f"X has shape {shape} and the second array has shape {second.shape} and dtype {second.dtype}; it is "
                f"taken for y, which is ignored. If it is the target: {remedy}",
                UserWarning,
                stacklevel=3,
            )
    return False


def labels_of(y: Any, n_samples: int) -> np.ndarray[Any, Any] | None:
    """Class labels, where y is such: one value for each sample, no fractions. Of anything else nothing is made."""
    if y is None:
        return None
    labels = np.asarray(y)
    if labels.shape != (n_samples,) or labels.dtype.kind not in "iubUf":
        return None
    if labels.dtype.kind == "f" and not np.array_equal(labels, np.trunc(labels)):
        return None
    return labels


def source_rows(sample_domain: Any, n_samples: int) -> np.ndarray[Any, Any]:
    domain = check_array(sample_domain, ensure_2d=False, dtype=None, input_name="sample_domain")
    if domain.shape != (n_samples,):
        raise ValueError(f"sample_domain has shape {domain.shape}; it needs one value per row of X: ({n_samples},)")
    if domain.dtype == bool or not np.issubdtype(domain.dtype, np.number):
        raise TypeError(f"sample_domain has dtype {domain.dtype}; it needs numbers, positive source, negative target")
    zeros = int((domain == 0).sum())
    if zeros:
        raise ValueError(f"sample_domain has {zeros} zeros; positive values are source, negative values are target")
    return domain > 0


def rows_of_both_domains(sample_domain: Any, n_samples: int) -> np.ndarray[Any, Any]:
    """Which rows are source, where there are rows of both domains."""
    is_source = source_rows(sample_domain, n_samples)
    if is_source.all() or not is_source.any():
        side, sign = ("target", "negative") if is_source.all() else ("source", "positive")
        raise ValueError(
            f"sample_domain has no {side} rows ({sign} values) among {n_samples}; "
            "fit needs both domains: leave sample_domain out to fit the source alone"
        )
    return is_source


def check_integer(name: str, value: Any, least: int, or_text: str | None = None) -> None:
    if or_text is not None and isinstance(value, str) and value == or_text:
        return
    alternative = "" if or_text is None else f" or {or_text!r}"
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{name} is {value!r} ({type(value).__name__}); it must be an integer{alternative}")
    if value < least:
        raise ValueError(f"{name} is {shown(value)}; it must be at least {least}")
