# SPDX-License-Identifier: Apache-2.0
"""Is there a shift between two sample sets at all?"""
from __future__ import annotations

from typing import Any, NamedTuple, Tuple

import numpy as np

from . import _core
from ._arrays import common, integer, number, seed_of, take
from ._types import Array


class ShiftOutcome(NamedTuple):
    """One part of a shift beside what noise alone gives."""

    observed: float
    noise: float
    noise_deviation: float
    z: float
    p_normal: float
    p_permutation: float


class MovedDirection(NamedTuple):
    """A direction along which the mean or the standard deviation changed."""

    number: int
    direction: np.ndarray[Any, Any]
    mean_shift: float
    mean_z: float
    mean_p: float
    deviation_source: float
    deviation_target: float
    deviation_z: float
    deviation_p: float


class ShiftTest(NamedTuple):
    """What `shift_test` found."""

    samples_source: int
    samples_target: int
    dim: int
    rank: int
    explained: float
    permutations: int
    mean: ShiftOutcome
    covariance: ShiftOutcome
    directions: Tuple[MovedDirection, ...]


def shift_test(
    source: Array, target: Array, *, rank: int = 64, permutations: int = 199, level: float = 0.05, seed: int = 0
) -> ShiftTest:
    """Is there a shift between two sample sets: of the means, of the covariances, and along which directions?

    Two sets of one distribution differ too. The squared distance of the means and W2^2 of the covariances stand beside
    what noise alone gives, by the theory of normal samples (`p_normal`) and by permutation (`p_permutation`). Believe the
    permutations: theory does not know the tails of the distribution, and calls heavy ones a shift.

    Parameters
    ----------
    source, target : arrays (n, d) and (m, d)
        One sample per row, at least 3 each.
    rank : int
        The covariances are compared inside that many leading directions of all samples together; in all of them where d,
        or the number of samples, is no more. The means are compared in all directions.
    permutations : int
        For the means of the samples as they are, for the covariances of the samples about their own means. 0: theory
        alone, and `p_permutation` is nan.
    level : float
        Of the list of directions as a whole: where nothing moved it is empty but with about that probability (4 to 6 %
        were measured for 5 %).
    seed : int

    Returns
    -------
    ShiftTest
        `mean` and `covariance` (observed, noise, noise_deviation, z, p_normal, p_permutation), `directions` (sorted, each
        with its unit vector, the change of mean and deviation along it, z and p), `rank`, `explained` (the share of the
        variance in the directions compared), `samples_source`, `samples_target`, `dim`, `permutations`.

    Examples
    --------
    >>> import numpy as np, itspace
    >>> rng = np.random.default_rng(0)
    >>> source, target = rng.standard_normal((200, 5)), rng.standard_normal((150, 5))
    >>> target[:, 2] *= 3
    >>> found = itspace.shift_test(source, target)
    >>> found.mean.p_permutation > 0.05, found.covariance.p_permutation
    (True, 0.005)
    >>> [int(abs(moved.direction).argmax()) for moved in found.directions]
    [2]
    """
    first, second = take(source, "source", 2)[0], take(target, "target", 2)[0]
    dtype = common(first, second)
    found = _core.shift_test(
        first.astype(dtype, copy=False),
        second.astype(dtype, copy=False),
        integer(rank, "rank"),
        integer(permutations, "permutations"),
        number(level, "level"),
        seed_of(seed),
    )
    mean, covariance = ShiftOutcome(*found[6]), ShiftOutcome(*found[7])
    return ShiftTest(*found[:6], mean, covariance, tuple(MovedDirection(*moved) for moved in found[8]))
