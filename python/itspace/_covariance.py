# SPDX-License-Identifier: Apache-2.0
"""covariance: the matrix itself, of rows that no memory holds."""
from __future__ import annotations

import os
from typing import Any, Optional, Union

import numpy as np

from ._as_target import with_blocks
from ._stream import Files, memory_of, refuse_to_overwrite
from ._target import Target

# A band of columns: those of the identity, their product, its sums, and what the kernels make of them.
_BLOCKS = 6


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
    target = with_blocks(source if isinstance(source, Target) else Target.from_files(source), np.dtype(np.float64))
    d = target.dim
    band = max(1, min(d, memory_of(memory) // (_BLOCKS * 8 * d)))
    if out is None:
        whole = np.empty((d, d))
        _fill(whole, target, band)
        return whole
    path = os.fspath(out)
    refuse_to_overwrite(target._data.get("files", []), path, "out")
    beside = f"{path}.{os.getpid()}.part"
    file: Optional[np.memmap[Any, Any]] = None
    try:
        file = np.lib.format.open_memmap(beside, mode="w+", dtype=np.float64, shape=(d, d))
        _fill(file, target, band)
        file.flush()
        os.replace(beside, path)
    except BaseException:
        del file
        if os.path.exists(beside):
            os.remove(beside)
        raise
    del file
    written: np.ndarray = np.load(path, mmap_mode="r")
    return written


def _fill(whole: np.ndarray, target: Target, band: int) -> None:
    for first in range(0, len(whole), band):
        count = min(band, len(whole) - first)
        chosen = np.zeros((len(whole), count), dtype=target.dtype)
        chosen[first : first + count] = np.eye(count)
        whole[first : first + count] = np.asarray(target.apply(chosen)).T  # rows are columns, by symmetry


__all__ = ["covariance"]
