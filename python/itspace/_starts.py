# SPDX-License-Identifier: Apache-2.0
"""What a run begins with: a rank, and a factor of that many columns."""
from __future__ import annotations

from typing import Any

from . import _core
from ._arrays import give, integer, number, seed_of
from ._as_target import as_target
from ._gpu import on_gpu
from ._target import Target
from ._types import Covariance, Rank


def auto_rank(target: Covariance, threshold: float = 0.95, *, seed: int = 0) -> int:
    """The least rank that explains a share of the variance: what ``rank="auto"`` takes.

    Up to dimension 1024 it is exact, from all eigenvalues (O(d^3) once). Above that it comes from Ritz values of random
    blocks that double until they explain enough; these are lower bounds, so the rank is enough and may be a little more
    than the least.

    Parameters
    ----------
    target : covariance, Target, or object with dim, trace, apply
    threshold : float
        The share of tr Sigma that the leading eigenvalues must reach, more than 0 and at most 1.
    seed : int

    Examples
    --------
    >>> import numpy as np, itspace
    >>> itspace.auto_rank(np.diag([60.0, 30.0, 6.0, 4.0]))
    3
    """
    core = as_target(target)[0]._core
    return _core.auto_rank(core, number(threshold, "threshold"), seed_of(seed))


def resolve_rank(rank: Any, target: Target, seed: int = 0) -> int:
    if isinstance(rank, str):
        if rank != "auto":
            raise ValueError(f"rank is {rank!r}; it must be an integer or 'auto'")
        return auto_rank(target, seed=seed)
    return integer(rank, "rank")


def start_from(source: Covariance, rank: Rank, *, seed: int = 0) -> Any:
    """A start factor from what you have: the rank-r truncation of a covariance.

    Parameters
    ----------
    source : covariance, Target, or object with dim, trace, apply
        For samples pass ``Target.from_features(X)``; the usual start is the covariance of the source domain.
    rank : int or 'auto'

    Returns
    -------
    array (d, rank)
        U_r diag(lambda_r)^(1/2), in the dtype and library of the source. Of a source on a GPU it is made on the host, from a
        copy, and sent back.

    Examples
    --------
    >>> import numpy as np, itspace
    >>> Y = itspace.start_from(np.diag([4.0, 1.0, 0.25]), 1)
    >>> np.round(Y @ Y.T, 12).tolist()
    [[4.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    """
    if on_gpu(source):
        from ._gpu_target import on_host

        target, wrap = on_host(source, "source")
    else:
        target, wrap = as_target(source, "source")
    return give(_core.start_from(target._core, resolve_rank(rank, target, seed_of(seed))), wrap)


def random_start(target: Covariance, rank: Rank, *, seed: int = 0) -> Any:
    """Sigma @ Omega with seeded Gaussian Omega, scaled to the trace of Sigma: what `align` starts from by default.

    Examples
    --------
    >>> import numpy as np, itspace
    >>> Y = itspace.random_start(np.diag([3.0, 2.0, 1.0]), 2)
    >>> Y.shape, round(float((Y**2).sum()), 12)
    ((3, 2), 6.0)
    """
    core, wrap = as_target(target)
    seed = seed_of(seed)
    return give(_core.random_start(core._core, resolve_rank(rank, core, seed), seed), wrap)
