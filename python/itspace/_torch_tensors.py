# SPDX-License-Identifier: Apache-2.0
# Where PyTorch is not installed its types are unknown.
# mypy: disallow-untyped-calls=False, warn-return-any=False
"""Tensors on their way into the package and back: what is taken, whose memory it is, and where the results lie."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.dlpack import from_dlpack

from itspace import _core
from itspace._arrays import matrix


def check_tensor(name: str, tensor: Any) -> None:
    if not isinstance(tensor, Tensor):
        raise TypeError(f"{name} is {type(tensor).__name__}; it must be a torch.Tensor")
    if tensor.device.type not in ("cpu", "cuda"):
        raise ValueError(f"{name} is on {tensor.device}; itspace.torch works on the CPU and on CUDA devices: call .cpu()")
    if tensor.dtype not in (torch.float32, torch.float64):
        raise TypeError(f"{name} is {tensor.dtype}; it must be float32 or float64: call .float() or .double()")
    if tensor.layout != torch.strided:
        raise TypeError(f"{name} is of layout {tensor.layout}; it must be dense: call .to_dense()")
    if tensor.ndim != 2:
        raise ValueError(f"{name} has shape {tuple(tensor.shape)}; it must have two dimensions")


def check_samples(features: Tensor, name: str) -> None:
    """Those of a GPU are looked at there, when a target is made of them."""
    if not features.is_cuda:
        _core.check_samples(matrix(array_of(features), name), name)


def array_of(tensor: Tensor) -> Any:
    """What the package takes: the tensor's own memory as a NumPy array (tensor.numpy() would ask for the NumPy that
    PyTorch was built with), or the tensor itself where it is on a GPU."""
    return tensor.detach() if tensor.is_cuda else np.from_dlpack(tensor.detach())


def on_host(tensor: Tensor) -> Any:
    """A small tensor in float64, for what is made on the host."""
    return np.from_dlpack(tensor.detach().double().cpu())


def tensor_like(array: Any, like: Tensor) -> Tensor:
    tensor = array if isinstance(array, Tensor) else from_dlpack(array)
    return tensor.to(like)


def scalar_like(value: Any, like: Tensor) -> Tensor:
    return torch.tensor(float(value), dtype=like.dtype, device=like.device)
