# SPDX-License-Identifier: Apache-2.0
# mypy: warn-return-any=False
"""What the rows of one chunk add to a sweep, and how such parts are put together: moments, products, values that are not finite.

Nothing here knows of Dask: these run in its tasks.
"""
from __future__ import annotations

import functools
from typing import Any, NamedTuple, Optional, Sequence, Union

import numpy as np

from . import _core

_SLAB_VALUES = 1 << 20  # of a chunk, that are widened to float64 at a time


class Bad(NamedTuple):
    """A value that is not finite, where a result should be; the first of them, in the order of chunks, is reported."""

    chunk: int
    row: int
    column: int
    value: float


class Moments(NamedTuple):
    """Of rows: their number, their mean, and the sums of squares about it, column by column, in float64.

    The mean is kept as one of the rows and what is to be added to it, so that a large mean takes no digits.
    """

    samples: int
    pivot: np.ndarray
    offset: np.ndarray
    squares: np.ndarray

    @property
    def mean(self) -> np.ndarray:
        return self.pivot + self.offset


def slabs(rows: np.ndarray) -> Any:
    """Runs of rows in float64, each small beside a chunk."""
    step = max(1, _SLAB_VALUES // max(1, rows.shape[1]))
    for first in range(0, len(rows), step):
        yield first, rows[first : first + step].astype(np.float64)


def first_bad(rows: np.ndarray, number: int) -> Optional[Bad]:
    for first, slab in slabs(rows):
        finite = np.isfinite(slab)
        if not finite.all():
            row, column = (int(i) for i in np.argwhere(~finite)[0])
            return Bad(number, first + row, column, float(slab[row, column]))
    return None


def moments_of(rows: np.ndarray, number: int) -> Union[Moments, Bad]:
    total = Moments(0, *(np.zeros(rows.shape[1]) for _ in range(3)))
    with np.errstate(over="ignore", invalid="ignore"):
        for _, slab in slabs(rows):
            pivot = slab[0].copy()  # about a row: a constant leaves exactly 0
            slab -= pivot
            mean = slab.mean(axis=0)
            slab -= mean
            squares = np.einsum("ij,ij->j", slab, slab)
            total = _both(total, Moments(len(slab), pivot, mean, squares))
        if not np.isfinite(total.squares).all():
            bad = first_bad(rows, number)
            if bad is not None:
                return bad
    return total


def joined_moments(parts: Sequence[Moments]) -> Moments:
    return functools.reduce(_both, parts)


def _both(a: Moments, b: Moments) -> Moments:
    if a.samples == 0 or b.samples == 0:
        return b if a.samples == 0 else a
    count = a.samples + b.samples
    share = b.samples / count
    with np.errstate(over="ignore", invalid="ignore"):  # seen, and told of, in the end
        move = (b.pivot - a.pivot) + (b.offset - a.offset)
        return Moments(count, a.pivot, a.offset + share * move, a.squares + b.squares + (a.samples * share) * move**2)


def product_of(rows: np.ndarray, number: int, shift: np.ndarray, Y: np.ndarray, limits: "Limits") -> np.ndarray:
    """sum_i (x_i - shift)(x_i - shift)' Y over the rows of a chunk, in parts that can be added up in any order."""
    return in_exact_parts(_core.rows_product(rows, shift, Y), limits)


class Limits(NamedTuple):
    """Exponents of powers of two: no entry (a, b) of a product, over whichever rows, is beyond 2**(rows[a] + columns[b])."""

    rows: np.ndarray
    columns: np.ndarray

    @classmethod
    def of(cls, squares: np.ndarray, Y: np.ndarray) -> "Limits":
        """|sum_i z_ia (z_i'y_b)| <= ||z_a|| ||Z y_b|| <= ||z_a|| ||Z|| ||y_b||, by the squares of the columns of Z."""
        lengths = np.frexp(np.sqrt(squares))[1] + np.frexp(np.sqrt(squares.sum()))[1]
        return cls(lengths + 1, np.frexp(np.linalg.norm(Y.astype(np.float64), axis=0))[1])  # 1: for what rounding adds


def in_exact_parts(values: np.ndarray, limits: Limits) -> np.ndarray:
    """Values as one float64 part (float32) or two, whose sums with others' are exact: each part is a multiple of a unit.

    Such units that all sums stay below 2**53 of them: 2**-50 of the limit, and 2**-32 of that for what it leaves, in which
    4 million chunks can be added up. Adding 1.5 * 2**52 units rounds to whole ones.
    """
    half = np.ldexp(1.5, limits.rows + 2)[:, None] * np.ldexp(1.0, limits.columns)
    parts = np.empty((1 if values.dtype == np.float32 else 2, *values.shape))
    np.add(values, half, out=parts[0])
    parts[0] -= half
    if len(parts) > 1:
        half *= 2.0**-32
        np.subtract(values, parts[0], out=parts[1])
        parts[1] += half
        parts[1] -= half
    return parts


def summed(parts: Sequence[np.ndarray]) -> np.ndarray:
    total = parts[0] + parts[1]
    for part in parts[2:]:
        total += part
    return total


# What is asked of a collection before anything runs.
