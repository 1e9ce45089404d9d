# SPDX-License-Identifier: Apache-2.0
"""verify: a factor and its trace, held against the target anew."""
from __future__ import annotations

from typing import Any, Dict, Union

import numpy as np

from . import _core
from ._arrays import take
from ._as_target import as_target, with_blocks
from ._result import AlignResult, record_of
from ._types import Array, Covariance


def verify(factor: Array, target: Covariance, trace: "Union[Dict[str, Any], AlignResult, None]" = None) -> Dict[str, Any]:
    """What a factor is worth, computed anew, and whether the trace that came with it tells the truth.

    Parameters
    ----------
    factor : array (d, r)
    target : covariance, Target, or object with dim, trace, apply
    trace : dict or AlignResult, optional
        The claims to check. A file of the program is read with ``json.load``.

    Returns
    -------
    dict
        'objective', 'target_trace', 'certificate_gap', 'feasibility', 'orthogonality', 'gram_rank', 'route', 'claims' (a
        list of dicts with 'name', 'holds', 'claimed', 'found'), 'holds': nothing is false, and 'certified': what the trace
        says of its run, None without one. A trace may own up to a run that was not certified, and its claims hold.

    Examples
    --------
    >>> import numpy as np, itspace
    >>> S = np.diag([3.0, 2.0, 1.0])
    >>> result = itspace.align(S, rank=2)
    >>> itspace.verify(result.factor, S, result.trace)["holds"]
    True
    """
    record = None
    if isinstance(trace, AlignResult):
        record = trace._record
    elif isinstance(trace, dict):
        record = record_of(trace)
    elif trace is not None:
        raise TypeError(f"trace is a {type(trace).__name__}; it must be the AlignResult, its trace, or json.load of a file")
    given, _ = take(factor, "factor", 2)
    core = with_blocks(as_target(target, dtype=given.dtype)[0], np.float64)  # a check is finer than what it checks
    return _core.verify(core._core, given.astype(core.dtype, copy=False), given, record)
