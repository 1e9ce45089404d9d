# SPDX-License-Identifier: Apache-2.0
"""Rows that go by: files larger than memory, and iterables of arrays that can be begun anew."""
from __future__ import annotations

import glob
import os
import re
from contextlib import contextmanager
from typing import Any, Callable, Iterator, List, Optional, Sequence, Tuple, Type, Union

import numpy as np

from . import _core
from ._arrays import dimensions_text, matrix
from ._core import Target as _CoreTarget

ARROW = (".parquet", ".pq", ".arrow", ".feather", ".ipc")
_UNITS = {"": 1, "B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}

Begin = Callable[[], Iterator[Any]]
Place = Callable[[int], str]


def memory_of(value: Any) -> int:
    """Bytes, from a number of them or from a text such as '256MiB'; None is the library's own choice."""
    if value is None:
        return _core._default_stream_memory()
    found = re.fullmatch(r"\s*(\d+(?:\.\d*)?)\s*([A-Za-z]*)\s*", str(value))
    if isinstance(value, bool) or found is None or found[2] not in _UNITS or float(found[1]) <= 0:
        raise ValueError(f"memory is {value!r}; give a number of bytes, or a text such as '256MiB'")
    return int(float(found[1]) * _UNITS[found[2]])


def dtype_of(value: Any) -> Optional[np.dtype[Any]]:
    if value is None:
        return None
    chosen: np.dtype[Any] = np.dtype(value)
    if chosen not in (np.dtype(np.float32), np.dtype(np.float64)):
        raise TypeError(f"dtype is {chosen}; a stream is read as float32 or float64")
    return chosen


def _is_table(source: Any) -> bool:
    """An array that need not be in memory: a memmap, a dataset of h5py or zarr."""
    return len(getattr(source, "shape", ())) == 2 and hasattr(source, "__getitem__")


def _slices(source: Any, memory: int) -> Begin:
    row = max(1, int(source.shape[1]) * np.dtype(source.dtype).itemsize)
    step = max(1, min(memory, 8 << 20) // row)

    def begin() -> Iterator[Any]:
        for first in range(0, source.shape[0], step):
            yield source[first : first + step]

    return begin


def _begin_of(source: Any, memory: int) -> Begin:
    if _is_table(source):
        return _slices(source, memory)
    shape = getattr(source, "shape", ())
    if len(shape) == 1 and getattr(source, "dtype", object) != object:  # one of objects may hold chunks
        raise ValueError(dimensions_text("the source of a stream", shape, 2))
    if callable(source) and not hasattr(source, "__iter__"):
        return lambda: iter(source())
    if not hasattr(source, "__iter__"):
        raise TypeError(
            f"the source of a stream is a {type(source).__name__}; give a list or another iterable of (k, d) arrays, a "
            "function that returns a fresh generator of them, or an array that is sliced by rows"
        )
    if iter(source) is source:
        raise TypeError(
            f"the source of a stream is a {type(source).__name__}, which can be gone through only once, and every step "
            "goes through all rows; give a function that returns a fresh one (the generator function itself, without "
            "calling it), or a class with __iter__"
        )
    return lambda: iter(source)


def _checked(begin: Begin, dim: int, dtype: np.dtype[Any]) -> Begin:
    def rows() -> Iterator[np.ndarray]:
        for number, chunk in enumerate(begin()):
            array = matrix(chunk, f"chunk {number} of the stream", dtype)
            if array.shape[1] != dim:
                raise ValueError(
                    f"chunk {number} of the stream has {array.shape[1]} columns and the first one {dim}; all rows have "
                    "the same length"
                )
            yield array

    return rows


def _rows(begin: Begin, place: Place, memory: int, dtype: Optional[np.dtype[Any]]) -> Tuple[_CoreTarget, Any]:
    first = next(begin(), None)
    if first is None:
        raise ValueError("the stream is empty; it must hold at least two rows")
    head = matrix(first, "chunk 0 of the stream")
    chosen = head.dtype if dtype is None else dtype
    dim = int(head.shape[1])
    return _core.stream_of_rows(dim, bool(chosen == np.float32), _checked(begin, dim, chosen), place, memory), chosen


def from_source(source: Any, memory: Any, dtype: Any) -> Tuple[_CoreTarget, Any]:
    given = memory_of(memory)
    return _rows(_begin_of(source, given), lambda row: f"row {row} of the stream", given, dtype_of(dtype))


def names_of(files: Any) -> List[str]:
    try:
        names = [os.fspath(name) for name in ([files] if isinstance(files, (str, os.PathLike)) else files)]
    except TypeError:
        raise TypeError(
            f"files is a {type(files).__name__}, and not a path, a pattern or a list of them. Rows in memory are for "
            "Target.from_features, and for Target.from_stream"
        ) from None
    if not names:
        raise ValueError("there is no file to read rows from; name at least one")
    return names


def from_names(names: List[str], memory: Any, dtype: Any, columns: Any) -> _CoreTarget:
    given, chosen = memory_of(memory), dtype_of(dtype)
    if any(name.lower().endswith(ARROW) for name in names):
        return _from_arrow(_expanded(names), given, chosen, columns)
    if columns is not None:
        raise ValueError("columns are those of Parquet and Arrow files; leave them out")
    if all(":/" in name and not os.path.exists(name) for name in names):
        return _from_datasets(names, given, chosen)
    streamed = _core.stream_of_files(names, "" if chosen is None else str(chosen), given)
    if streamed.dim == 1:
        for name in _expanded(names):
            shape = np.load(name, mmap_mode="r").shape
            if len(shape) != 2:  # labels by mistake, more often than features of one column
                raise ValueError(dimensions_text(name, shape, 2))
    return streamed


def _expanded(names: List[str]) -> List[str]:
    found: List[str] = []
    for name in names:
        matches = [name] if os.path.exists(name) else sorted(glob.glob(name))
        if not matches:
            raise RuntimeError(f"no file matches {name!r}; check the path or the pattern")
        found += matches
    return found


def refuse_to_overwrite(names: List[str], path: str, argument: str) -> None:
    """An output must not be a file that rows are read from, by whatever name or link it is reached."""
    if not os.path.exists(path):
        return
    for name in names:
        file = name if os.path.exists(name) else name.split(":/", 1)[0]
        for read in [file] if os.path.exists(file) else glob.glob(file):
            if os.path.samefile(read, path):
                raise ValueError(
                    f"{argument} is {path!r}, and rows are read from that file ({read!r}): the result would destroy "
                    f"them; give {argument} another name"
                )


def _state(path: str) -> Tuple[int, int, int]:
    status = os.stat(path)
    return status.st_ino, status.st_size, status.st_mtime_ns


def _of_files(
    names: List[str], chunks: Callable[[str], Iterator[np.ndarray]], memory: int, dtype: Optional[np.dtype[Any]]
) -> _CoreTarget:
    """The chunks of one file after the other; a file that is not the one it was ends the sweep."""
    paths = [name if os.path.exists(name) else name.split(":/", 1)[0] for name in names]
    states = [_state(path) for path in paths]
    starts: List[int] = [0]  # the first row of each file, as far as they were read

    def begin() -> Iterator[np.ndarray]:
        del starts[1:]
        row, shape = 0, None
        for name, path, state in zip(names, paths, states):
            if not os.path.exists(path):
                raise RuntimeError(f"{path!r} was there when the run began and is gone; put it back and begin again")
            for chunk in chunks(name):
                if shape is not None and (chunk.shape[1], chunk.dtype) != shape[:2]:
                    raise ValueError(
                        f"{path!r} has rows of {chunk.shape[1]} {chunk.dtype}, and {shape[2]!r} of {shape[0]} {shape[1]}; "
                        "files that are streamed together have the same columns and type"
                    )
                shape = shape or (chunk.shape[1], chunk.dtype, path)
                row += len(chunk)
                yield chunk
            if os.path.exists(path) and _state(path) != state:  # what is gone was read to its end
                raise RuntimeError(f"{path!r} has changed while it was read; begin again when nothing writes to it")
            starts.append(row)

    def place(row: int) -> str:
        number = max(i for i, first in enumerate(starts) if first <= row)
        return f"{paths[min(number, len(paths) - 1)]!r}: row {row - starts[number]}"

    return _rows(begin, place, memory, dtype)[0]


@contextmanager
def _named(path: str, kind: str, *errors: Type[Exception]) -> Iterator[None]:
    """What a reader says of a damaged file, with the name of the file, which it leaves out."""
    try:
        yield
    except (FileNotFoundError, PermissionError, MemoryError):
        raise  # no fault of its content
    except errors as error:
        raise RuntimeError(f"{path!r} cannot be read as {kind}: {error}; copy or save it again") from error


def _from_datasets(names: List[str], memory: int, dtype: Optional[np.dtype[Any]]) -> _CoreTarget:
    try:
        import h5py  # type: ignore[import-untyped,import-not-found,unused-ignore]
    except ImportError:
        raise ImportError("datasets of HDF5 files are read by h5py, which is not installed: pip install h5py") from None

    def chunks(name: str) -> Iterator[np.ndarray]:
        path, inside = name.split(":/", 1)
        with _named(path, "HDF5", OSError), h5py.File(path, "r") as file:
            if inside not in file:
                raise RuntimeError(f"{path!r} has no dataset '/{inside}'; it holds {', '.join(map(repr, file)) or 'nothing'}")
            dataset = file[inside]
            if isinstance(dataset, h5py.Dataset) and len(dataset.shape) != 2:
                raise ValueError(dimensions_text(repr(name), dataset.shape, 2))
            yield from _slices(dataset, memory)()

    return _of_files(names, chunks, memory, dtype)


def _from_arrow(paths: List[str], memory: int, dtype: Optional[np.dtype[Any]], columns: Any) -> _CoreTarget:
    try:
        import pyarrow  # type: ignore[import-untyped,import-not-found,unused-ignore]
        import pyarrow.parquet  # type: ignore[import-untyped,import-not-found,unused-ignore]
    except ImportError:
        raise ImportError("Parquet and Arrow files are read by pyarrow, which is not installed: pip install pyarrow") from None
    wanted = None if columns is None else [columns] if isinstance(columns, str) else list(columns)
    broken = (pyarrow.ArrowException, OSError)

    def names(path: str) -> List[str]:
        if path.lower().endswith((".parquet", ".pq")):
            with _named(path, "Parquet", *broken), pyarrow.parquet.ParquetFile(path) as file:
                return list(file.schema_arrow.names)
        with _named(path, "Arrow", *broken), pyarrow.memory_map(path) as mapped, pyarrow.ipc.open_file(mapped) as file:
            return list(file.schema.names)

    # The same columns in another order would be other features under the same numbers.
    expected = names(paths[0]) if wanted is None else []
    for path in paths[1:] if wanted is None else []:
        for number, (name, first) in enumerate(zip(names(path), expected)):
            if name != first:
                raise ValueError(
                    f"column {number} of {path!r} is {name!r}, and of {paths[0]!r} it is {first!r}; files that are "
                    "streamed together have the same columns: choose them with columns=[...]"
                )

    def batches(path: str) -> Iterator[Any]:
        if path.lower().endswith((".parquet", ".pq")):
            # Where pages have checksums they are verified, as in C++.
            with _named(path, "Parquet", *broken), pyarrow.parquet.ParquetFile(path, page_checksum_verification=True) as file:
                _require_columns(wanted, file.schema_arrow.names, path)
                yield from file.iter_batches(batch_size=8192, columns=wanted)
            return
        with _named(path, "Arrow", *broken), pyarrow.memory_map(path) as mapped, pyarrow.ipc.open_file(mapped) as file:
            _require_columns(wanted, file.schema.names, path)
            for number in range(file.num_record_batches):
                batch = file.get_batch(number)
                yield batch if wanted is None else batch.select(wanted)

    def chunks(path: str) -> Iterator[np.ndarray]:
        for batch in batches(path):
            if len(batch):
                yield _array_of(batch, path)

    return _of_files(paths, chunks, memory, dtype)


def _require_columns(wanted: Optional[List[Any]], names: List[str], path: str) -> None:
    """pyarrow leaves out of a Parquet file, without a word, what is not in it."""
    for name in wanted or ():
        if name not in names:
            some = ", ".join(map(repr, names[:8])) + (f", ... ({len(names)})" if len(names) > 8 else "")
            raise ValueError(f"{path!r} has no column {name!r}; its columns are {some}: choose among them with columns=[...]")


def _array_of(batch: Any, path: str) -> np.ndarray:
    """Columns of numbers side by side, or the one column that holds lists of a fixed length."""
    import pyarrow

    kinds = pyarrow.types
    if batch.num_columns == 1 and kinds.is_fixed_size_list(batch.column(0).type):
        values = batch.column(0)
        flat: np.ndarray = values.flatten().to_numpy(zero_copy_only=False)
        return flat.reshape(len(values), values.type.list_size)
    for name, kind in zip(batch.schema.names, batch.schema.types):
        if not (kinds.is_floating(kind) or kinds.is_integer(kind)):
            raise ValueError(
                f"column {name!r} of {path!r} holds {kind}; rows are made of columns of numbers, or of one column of "
                "lists of a fixed length: choose them with columns=[...]"
            )
    parts = [column.to_numpy(zero_copy_only=False) for column in batch.columns]
    return np.column_stack(parts)


Files = Union[str, "os.PathLike[str]", Sequence[Union[str, "os.PathLike[str]"]]]
