# SPDX-License-Identifier: Apache-2.0
"""Tensors of a GPU at the door: torch's and CuPy's, taken where they lie and worked on in the caller's current stream.

Nothing goes to a GPU unless the caller's data are there, and everything that is given together must be on one device.
"""
from __future__ import annotations

import atexit
import collections
import sys
import threading
from typing import TYPE_CHECKING, Any, Dict, List, NamedTuple, Optional, Tuple

import numpy as np

from ._arrays import dimensions_text

if TYPE_CHECKING:
    from ._cuda import Device

_DLPACK_CUDA = (2, 13)  # device memory, and managed memory


class _Torch:
    """What is asked of the caller's library. Tensors are torch's here."""

    @staticmethod
    def place(value: Any) -> Optional[int]:
        if value.device.type != "cuda":
            return None
        return int(value.device.index)

    @staticmethod
    def stream(ordinal: int) -> Any:
        return sys.modules["torch"].cuda.current_stream(ordinal)

    @staticmethod
    def address(stream: Any) -> int:
        return int(stream.cuda_stream)

    @staticmethod
    def dtype_name(value: Any) -> str:
        return str(value.dtype).rpartition(".")[2]

    @staticmethod
    def plain(value: Any, name: str) -> Any:
        """Without a graph behind it, and dense."""
        if value.layout != sys.modules["torch"].strided:
            raise TypeError(f"{name} is a tensor of layout {value.layout}; spell it out first: {name}.to_dense()")
        return value.detach()

    @staticmethod
    def row_strides(value: Any) -> Tuple[int, ...]:
        return tuple(value.stride())

    @staticmethod
    def contiguous(value: Any) -> Any:
        return value.contiguous()

    @staticmethod
    def clone(value: Any) -> Any:
        torch = sys.modules["torch"]
        return value.clone(memory_format=torch.contiguous_format)

    @staticmethod
    def as_dtype(value: Any, float32: bool) -> Any:
        torch = sys.modules["torch"]
        return value.to(torch.float32 if float32 else torch.float64)

    @staticmethod
    def empty(like: Any, rows: int, cols: int) -> Any:
        return sys.modules["torch"].empty((rows, cols), dtype=like.dtype, device=like.device)

    @staticmethod
    def averaged(value: Any) -> Any:
        """With its transpose."""
        return ((value + value.T) / 2).contiguous()

    @staticmethod
    def scaled(value: Any, factor: float) -> Any:
        return value * factor

    @staticmethod
    def used_in(value: Any, stream: Any) -> None:
        """Its memory is another tensor's only after what that stream has to do with it."""
        value.record_stream(stream)

    @staticmethod
    def sent(array: np.ndarray, like: Any) -> Any:
        return sys.modules["torch"].from_dlpack(array).to(like.device)

    @staticmethod
    def fetched(value: Any) -> np.ndarray:
        fetched: np.ndarray = np.from_dlpack(value.detach().cpu().contiguous())
        return fetched


class _CuPy:
    """The same for CuPy's arrays. CuPy computes on the current device, which need not be the one that an array is on."""

    @staticmethod
    def place(value: Any) -> Optional[int]:
        return int(value.device.id)

    @staticmethod
    def stream(ordinal: int) -> Any:
        cupy = sys.modules["cupy"]
        with cupy.cuda.Device(ordinal):
            return cupy.cuda.get_current_stream()

    @staticmethod
    def address(stream: Any) -> int:
        return int(stream.ptr)

    @staticmethod
    def dtype_name(value: Any) -> str:
        return str(value.dtype)

    @staticmethod
    def plain(value: Any, name: str) -> Any:
        return value

    @staticmethod
    def row_strides(value: Any) -> Tuple[int, ...]:
        return tuple(stride // value.itemsize for stride in value.strides)

    @staticmethod
    def contiguous(value: Any) -> Any:
        with value.device:
            return sys.modules["cupy"].ascontiguousarray(value)

    @staticmethod
    def clone(value: Any) -> Any:
        with value.device:
            return value.copy(order="C")

    @staticmethod
    def as_dtype(value: Any, float32: bool) -> Any:
        with value.device:
            return value.astype(np.float32 if float32 else np.float64)

    @staticmethod
    def averaged(value: Any) -> Any:
        with value.device:
            return sys.modules["cupy"].ascontiguousarray((value + value.T) / 2)

    @staticmethod
    def scaled(value: Any, factor: float) -> Any:
        with value.device:
            return value * factor

    @staticmethod
    def used_in(value: Any, stream: Any) -> None:
        """CuPy's pools do not ask who else reads their memory: that is for whoever uses several streams."""

    @staticmethod
    def empty(like: Any, rows: int, cols: int) -> Any:
        cupy = sys.modules["cupy"]
        with like.device:
            return cupy.empty((rows, cols), dtype=like.dtype)

    @staticmethod
    def sent(array: np.ndarray, like: Any) -> Any:
        with like.device:
            return sys.modules["cupy"].asarray(array)

    @staticmethod
    def fetched(value: Any) -> np.ndarray:
        fetched: np.ndarray = sys.modules["cupy"].asnumpy(value)
        return fetched


def _library(value: Any) -> Any:
    torch, cupy = sys.modules.get("torch"), sys.modules.get("cupy")
    if torch is not None and isinstance(value, torch.Tensor):
        return _Torch
    if cupy is not None and isinstance(value, cupy.ndarray):
        return _CuPy
    return None


def place_of(value: Any) -> Optional[int]:
    """The number of the GPU that a tensor or a target is on; None for everything of the host."""
    if value is None or isinstance(value, (np.ndarray, list, tuple)):
        return None
    library = _library(value)
    if library is not None:
        place: Optional[int] = library.place(value)
        return place
    if hasattr(type(value), "_itspace_gpu"):
        ordinal: Optional[int] = value._itspace_gpu
        return ordinal
    asked = getattr(type(value), "__dlpack_device__", None)
    # Other libraries' arrays that NumPy can fetch, JAX's for one, are the host's, as NumPy makes them.
    if asked is None or hasattr(type(value), "__array__"):
        return None
    try:
        kind, ordinal_of = asked(value)
    except Exception:  # it cannot say where it is; whoever takes it will
        return None
    return int(ordinal_of) if int(kind) in _DLPACK_CUDA else None


def on_gpu(*values: Any) -> bool:
    return any(place_of(value) is not None for value in values)


def device_name(place: Optional[int]) -> str:
    return "the CPU" if place is None else f"cuda:{place}"


def same_device(**named: Any) -> int:
    """The GPU that all of them are on (None is left out); a ValueError that says what to move where they are not."""
    places = {name: place_of(value) for name, value in named.items() if value is not None}
    first = next(name for name, place in places.items() if place is not None)
    for name, place in places.items():
        if place != places[first]:
            raise ValueError(
                f"{first} is on {device_name(places[first])} and {name} on {device_name(place)}; nothing is moved from one "
                f"device to another here: move one of them, as {name}.to('{device_name(places[first])}') does in torch"
            )
    ordinal = places[first]
    assert ordinal is not None
    return ordinal


def extension(name: str, place: Optional[int]) -> Any:
    """itspace._cuda, which is built only where CUDA is found."""
    from . import _core  # noqa: F401  (its types come back from there)

    try:
        from . import _cuda
    except ImportError as error:
        why = "was built without CUDA" if "itspace._cuda" in str(error) or "'_cuda'" in str(error) else f"cannot load it ({error})"
        raise TypeError(
            f"{name} is a tensor on device '{device_name(place)}', and this itspace {why}: build it where nvcc is found "
            f"(see docs/gpu.md), or move it to the host first: {name}.cpu()"
        ) from error
    return _cuda


class Taken(NamedTuple):
    """A tensor as the extension takes it: float32 or float64, the values of a row side by side."""

    array: Any
    library: Any
    ordinal: int
    float32: bool
    name: str

    def empty(self, rows: int, cols: int) -> Any:
        return self.library.empty(self.array, rows, cols)


def take(value: Any, name: str, ndim: Optional[int] = 2) -> Taken:
    """A tensor of a GPU. It is borrowed where rows are contiguous, and copied on the device otherwise."""
    ordinal = place_of(value)
    if ordinal is None:
        raise TypeError(f"{name} is on the CPU; a tensor of a GPU is needed here")
    extension(name, ordinal)
    library = _library(value)
    if library is None:
        raise TypeError(
            f"{name} is a {type(value).__name__} on device 'cuda:{ordinal}'; tensors of torch and CuPy are taken there: "
            f"pass torch.from_dlpack({name}), which copies nothing"
        )
    dtype = library.dtype_name(value)
    if dtype not in ("float32", "float64"):
        raise TypeError(f"{name} is a tensor of {dtype} on device 'cuda:{ordinal}'; a GPU computes in float32 and float64: "
                        f"convert it, as {name}.float() does in torch")  # fmt: skip
    array = library.plain(value, name)
    if ndim is not None and array.ndim != ndim:
        raise ValueError(dimensions_text(name, array.shape, ndim))
    if array.ndim == 3:
        array = library.contiguous(array)
    if array.ndim == 2:
        row, within = library.row_strides(array)
        lies = (array.shape[1] <= 1 or within == 1) and (array.shape[0] <= 1 or row >= array.shape[1])
        if not lies or 0 in array.shape:
            array = library.contiguous(array)
    return Taken(array, library, ordinal, dtype == "float32", name)


class Room(NamedTuple):
    """A stream of a GPU, and the extension's device that works on it.

    The caller's stream must not go before what works on it: whoever keeps something of the device keeps the room. In this
    order, since a tuple lets go of its last item first.
    """

    stream: Any
    device: "Device"


_ROOMS_KEPT = 8
_of_thread = threading.local()
atexit.register(lambda: _of_thread.__dict__.clear())  # while the driver is still there


def room(taken: Taken) -> Room:
    """The caller's current stream of that GPU, with the scratch memory that goes with it, for this thread."""
    stream = taken.library.stream(taken.ordinal)
    key = (taken.ordinal, taken.library.address(stream))
    rooms: "collections.OrderedDict[Tuple[int, int], Room]"
    rooms = _of_thread.__dict__.setdefault("rooms", collections.OrderedDict())
    if key not in rooms:
        rooms[key] = Room(stream, extension(taken.name, taken.ordinal).Device(taken.ordinal, key[1]))
        while len(rooms) > _ROOMS_KEPT:
            rooms.popitem(last=False)
    rooms.move_to_end(key)
    return rooms[key]


def in_dtype(taken: Taken, float32: bool) -> Taken:
    if taken.float32 == float32:
        return taken
    return taken._replace(array=taken.library.as_dtype(taken.array, float32), float32=float32)


def scaled(value: Any, factor: float) -> Any:
    """A tensor of a GPU, times a number."""
    return _library(value).scaled(value, factor)


def host_copy(value: Any) -> Any:
    """For what is small, and made or checked on the host: a tensor of a GPU as NumPy's array, all else as it is."""
    return _library(value).fetched(value) if place_of(value) is not None and _library(value) is not None else value


class MapCache:
    """The small parts of a transport map on the GPUs where it was applied."""

    def __init__(self) -> None:
        self._maps: Dict[Tuple[int, bool], Tuple[Room, Any]] = {}

    def apply(self, core: Any, X: Any) -> Any:
        taken = take(X, "X", None)
        if taken.array.ndim not in (1, 2):
            raise ValueError(f"X has shape {tuple(taken.array.shape)}; it must be (n, d), one sample per row, or (d,)")
        where = room(taken)
        key = (id(where), taken.float32)
        kept = self._maps.get(key)  # other threads may empty it at any time
        if kept is None:
            if len(self._maps) >= _ROOMS_KEPT:
                self._maps.clear()
            module = extension("X", taken.ordinal)
            kept = (where, (module.Map32 if taken.float32 else module.Map64)(where.device, core))
            self._maps[key] = kept
        out = taken.library.clone(taken.array)
        kept[1].apply_in_place(out.reshape((1, -1)) if out.ndim == 1 else out)
        return out


def align(target: Any, arguments: List[Any]) -> Any:
    taken: Taken = target._taken
    return extension(taken.name, taken.ordinal).align(target.here(), *arguments, taken.empty)


def take_stacks(targets: Any, starts: Any, precision: Optional[str]) -> Tuple[Taken, Any]:
    """What `align_batch` works on: the targets, and the starts as a tensor of their dtype."""
    same_device(targets=targets, starts=starts)
    taken = take(targets, "targets", 3)
    dtype = "float32" if taken.float32 else "float64"
    if precision is not None and precision != dtype:
        raise ValueError(
            f"precision is {precision!r} and targets is {dtype} on {device_name(taken.ordinal)}; there a run has the precision "
            "of its tensor: convert that, as targets.double() does in torch"
        )
    return taken, None if starts is None else in_dtype(take(starts, "starts", 3), taken.float32).array


def align_batch(taken: Taken, starts: Any, rank: int, features: bool, options: List[Any]) -> Any:
    from . import _core

    module = extension(taken.name, taken.ordinal)
    return module.align_batch(
        room(taken).device, taken.array, starts, rank, features, *options, _core.threads(), taken.empty
    )  # fmt: skip
