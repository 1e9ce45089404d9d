# SPDX-License-Identifier: Apache-2.0
"""Arrays at the door: anything with DLPack or ``__array__`` in, the caller's dtype and library out."""
from __future__ import annotations

import sys
from typing import Any, Callable, Optional, Tuple

import numpy as np

from . import _core

_FLOATS = (np.dtype(np.float32), np.dtype(np.float64))

Wrap = Optional[Callable[[Any], Any]]


def _is_torch(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def _foreign(value: Any, name: str) -> Tuple[np.ndarray, Wrap]:
    """An array of another library as NumPy's, without a copy where it can be, and the way back."""
    if _is_torch(value):
        torch = sys.modules["torch"]
        if value.device.type != "cpu":
            raise TypeError(f"{name} is a tensor on device '{value.device}'; move it to the host first: {name}.cpu()")
        if value.layout != torch.strided:
            raise TypeError(f"{name} is a tensor of layout {value.layout}; spell it out first: {name}.to_dense()")
        if value.is_floating_point() and value.dtype not in (torch.float16, torch.float32, torch.float64):
            raise TypeError(f"{name} is a tensor of dtype {value.dtype}, which NumPy has not; convert it: {name}.float()")
        # Through DLPack: Tensor.numpy() needs the NumPy that torch was built with.
        return np.from_dlpack(value.detach()), torch.from_dlpack
    namespace = getattr(value, "__array_namespace__", None)
    if hasattr(value, "__dlpack__"):
        try:
            array = np.from_dlpack(value)
        except (BufferError, TypeError, RuntimeError) as error:
            if not hasattr(value, "__array__"):
                raise TypeError(
                    f"{name} is a {type(value).__name__} that NumPy cannot look into ({error}); move it to the host, "
                    "or convert it with numpy.asarray"
                ) from error
            array = np.asarray(value)
    else:
        array = np.asarray(value)
    if array.dtype == object and not isinstance(value, (list, tuple)) and not array.size > 1:
        # NumPy wraps what it cannot look into as one object.
        raise TypeError(f"{name} is a {type(value).__name__}; it must be an array of numbers{_remedy(value)}")
    return array, namespace().asarray if namespace is not None else None


def _remedy(value: Any) -> str:
    if callable(getattr(value, "toarray", None)):
        return ": pass its toarray()"
    if hasattr(value, "apply") and hasattr(value, "dim"):
        return ". A covariance as a matrix is apply(numpy.eye(dim)); a factor of it is itspace.start_from(target, rank)"
    return ""


def refuse_masked(value: Any, name: str) -> None:
    """What lies under a mask is not data: to read on past it would be to use it."""
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        count = int(np.count_nonzero(value.mask))
        raise ValueError(
            f"{name} has {count} masked value(s); fill them ({name}.filled(...)), or drop their rows "
            "(numpy.ma.compress_rows), first"
        )


def dimensions_text(name: str, shape: Any, ndim: int) -> str:
    """Of an array whose number of dimensions is not `ndim`. One number a sample, or one sample? Only the caller knows."""
    remedy = ": reshape(-1, 1) makes each number a row, reshape(1, -1) all of them one" if (len(shape), ndim) == (1, 2) else ""
    return f"{name} has {len(shape)} dimension(s), shape {tuple(shape)}; it must have {ndim}{remedy}"


def take(value: Any, name: str, ndim: int | None = None, dtype: Any = None) -> Tuple[np.ndarray, Wrap]:
    """`value` as a C-contiguous float32 or float64 array, and what turns a result into the caller's library.

    float32 and float64 that are C-contiguous are not copied. Other orders are, integers, booleans and float16 become
    float64, and anything else is a TypeError.
    """
    wrap: Wrap = None
    if type(value) is np.ndarray:
        array = value
    elif isinstance(value, np.ndarray):
        refuse_masked(value, name)
        array = np.asarray(value)
    elif value is None or isinstance(value, (str, bytes, dict)):
        raise TypeError(f"{name} is {value!r}; it must be an array of numbers")
    else:
        if isinstance(value, (list, tuple)):
            for i, part in enumerate(value):
                refuse_masked(part, f"{name}[{i}]")
        array, wrap = _foreign(value, name)
    kind = array.dtype
    if kind not in _FLOATS or not kind.isnative:
        if kind.kind == "f" and kind.itemsize in (4, 8):
            array = array.astype(kind.newbyteorder("="))
        elif kind.kind in "iub" or kind == np.float16:
            array = array.astype(np.float64)
        elif kind.kind == "f":
            raise TypeError(f"{name} has dtype {kind}; float64 is the widest there is here: convert it with astype")
        else:
            raise TypeError(f"{name} has dtype {kind}; it must be an array of real numbers")
    if ndim is not None and array.ndim != ndim:
        raise ValueError(dimensions_text(name, array.shape, ndim))
    if dtype is not None and array.dtype != dtype:
        array = array.astype(dtype)
    if not array.flags.c_contiguous or not array.flags.aligned:
        array = np.array(array, order="C")
    return array, wrap


def matrix(value: Any, name: str, dtype: Any = None) -> np.ndarray:
    return take(value, name, 2, dtype)[0]


def covariance(array: np.ndarray, name: str) -> np.ndarray:
    """A (d, d) array that was taken, if it is one of a covariance: finite, symmetric, no negative variance.

    Asymmetry of the size of float32's rounding is averaged away, in a copy.
    """
    averaged = _core.symmetric(array, name)
    return array if averaged is None else averaged


def vector(value: Any, name: str) -> np.ndarray:
    return take(value, name, 1, np.float64)[0]


def common(*arrays: np.ndarray) -> Any:
    """float32 where all of them are, else float64."""
    return np.float32 if all(a.dtype == np.float32 for a in arrays) else np.float64


def give(result: Any, wrap: Wrap) -> Any:
    return result if wrap is None else wrap(result)


def shown(value: Any) -> str:
    """`value` as an error text shows it; Python does not spell out an integer of thousands of digits."""
    if isinstance(value, int) and value.bit_length() > 4096:
        return f"an integer of {value.bit_length()} bits"
    return repr(value)


def _whole(value: Any, name: str, least: int, end: int, limit: str) -> int:
    """`value` as an int, least <= value < end; True and False are not taken for numbers."""
    if type(value) is not int:
        try:
            if isinstance(value, (bool, np.bool_)):
                raise TypeError
            value = int(value.__index__())
        except (AttributeError, TypeError):
            raise TypeError(f"{name} is {value!r}; it must be an integer") from None
    if not least <= value < end:
        raise ValueError(f"{name} is {shown(value)}; it must be {limit}")
    return int(value)


def integer(value: Any, name: str) -> int:
    """An integer of 64 bits; what it means, and so the narrower limit, is for the library to say."""
    return _whole(value, name, -(2**63), 2**63, "at least -2**63 and less than 2**63")


def count(value: Any, name: str) -> int:
    return _whole(value, name, 0, 2**63, "0 or more and less than 2**63")


def seed_of(value: Any, name: str = "seed") -> int:
    return _whole(value, name, 0, 2**64, "0 or more and less than 2**64")


def number(value: Any, name: str) -> float:
    if isinstance(value, (str, bytes)):
        raise TypeError(f"{name} is {value!r}; it must be a number")
    try:
        return float(value)
    except OverflowError:
        raise ValueError(f"{name} is {shown(value)}; it must be a number that float64 can hold, below 1.8e308") from None
    except (TypeError, ValueError):
        raise TypeError(f"{name} is {value!r}; it must be a number") from None
