# SPDX-License-Identifier: Apache-2.0
"""covariance: the matrix itself, of rows that no memory holds."""
from __future__ import annotations

import os
from typing import Any, Union

import numpy as np

from . import _core
from ._as_target import as_target, with_blocks
from ._stream import Files, memory_of, refuse_to_overwrite
from ._target import Target


def covariance(
    source: "Union[Target, Files]", *, memory: Any = "1GiB", out: "Union[str, os.PathLike[str], None]" = None
) -> np.ndarray:
    """The covariance matrix of features larger than memory, in bands of its columns, one sweep over the rows for each.

    Parameters
    ----------
    source : Target, path, pattern, or list of either
        What `Target.from_files` takes, or a target: `Target.from_stream` for rows that come from a generator.
    memory : int or str
        For the bands. With d features a sweep makes ``memory / (48 d)`` columns.
    out : path, optional
        An ``.npy`` to write the matrix to, band by band; it appears when it is whole.

    Returns
    -------
    array (d, d), float64
        With `out` a read-only memory map of that file.

    Notes
    -----
    `align` needs no covariance and makes none: it costs 4 n d^2 operations, a step of `align` 4 n d r. This is
    ``itspace covariance`` of the program. Entries (i, j) and (j, i) come from different sums and agree up to rounding.

    Examples
    --------
    >>> import numpy as np, itspace
    >>> X = np.array([[1.0, 0.0], [2.0, 4.0], [3.0, 2.0]])
    >>> itspace.covariance(itspace.Target.from_stream([X[:2], X[2:]])).tolist()
    [[1.0, 1.0], [1.0, 4.0]]
    """
    target = as_target(source if isinstance(source, Target) else Target.from_files(source), "source")[0]
    target = with_blocks(target, np.dtype(np.float64))
    given = memory_of(memory)
    if out is None:
        return _core.covariance(target._core, given)
    path = os.fspath(out)
    refuse_to_overwrite(target._data.get("files", []), path, "out")
    # "-" would be standard output.
    _core.save_covariance(target._core, given, os.path.join(os.curdir, path) if path == "-" else path)
    written: np.ndarray = np.load(path, mmap_mode="r")
    return written


__all__ = ["covariance"]
