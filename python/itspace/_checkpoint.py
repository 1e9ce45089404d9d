# SPDX-License-Identifier: Apache-2.0
"""Runs that keep what they need to go on after a kill, in the files of ``itspace align --checkpoint``."""
from __future__ import annotations

import os
from typing import Any, Optional

from . import _core
from ._arrays import integer
from ._stream import refuse_to_overwrite
from ._target import Target


def run(checkpoint: Any, every: Any, resume: Any, precision: Optional[str], target: Target, *rest: Any) -> Any:
    """`_core.align` with these arguments, with checkpoints where a file is named for them."""
    arguments: Any = (target._core, *rest)
    every = integer(every, "checkpoint_every")
    if every < 1:
        raise ValueError(f"checkpoint_every is {every}; it must be 1 or more")
    if checkpoint is None:
        if resume:
            raise ValueError("resume is set and checkpoint is None; name the file to go on from, such as checkpoint='run.npz'")
        return _core.align(*arguments)
    if not isinstance(checkpoint, (str, os.PathLike)):
        raise TypeError(f"checkpoint is a {type(checkpoint).__name__}; it must be the path of a file, such as 'run.npz'")
    refuse_to_overwrite(target._data.get("files", []), os.fspath(checkpoint), "checkpoint")
    given: Any = (*arguments, os.fspath(checkpoint), every, bool(resume), precision or "auto")
    return _core.align_with_checkpoints(*given)


def refuse_on_gpu(checkpoint: Any, resume: Any) -> None:
    if checkpoint is not None or resume:
        raise ValueError("checkpoint and resume are for runs on the CPU, and the target is on a GPU; pass a host copy of it, or leave them out")
