# SPDX-License-Identifier: Apache-2.0
# Dask's functions are not all typed.
# mypy: disallow-untyped-calls=False, warn-return-any=False
"""Rows in a Dask collection, and sweeps over them: one task for each chunk, and a tree that adds up what they return.

A sweep is a graph of plain tasks, with what it needs (a block, a mean) as one node of it. So it runs on any scheduler;
and where a worker dies, Dask's scheduler knows how to make anew all that was lost with it. Each task costs Dask
milliseconds: sums that come out the same in any order are made by one task for each thread of the workers instead, of all
the chunks that lie there.
"""
from __future__ import annotations

import copy
import math
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import numpy as np

try:
    from dask import config
    from dask.base import compute, is_dask_collection
    from dask.delayed import delayed
except ImportError as missing:
    raise ImportError(
        f"itspace.dask needs Dask ({missing}); install it with: pip install 'itspace[dask]', which brings "
        "dask[array,dataframe] and distributed"
    ) from missing

from ._dask_sums import Bad, Moments, joined_moments, moments_of
from ._threads import thread_limit

# Partial results that one task adds up: few enough that it holds few, many enough that the tree is shallow.
FAN_IN = 16
_FLOATS = (np.dtype(np.float32), np.dtype(np.float64))
_MOST_SENT_ALONG = 1 << 20  # bytes that go with each task; more is a node of its own, which workers hand on to each other


Change = Callable[[int, np.ndarray], np.ndarray]  # of the rows of a chunk: its number, its rows


class Rows:
    """The rows of a dask array or dataframe, chunk by chunk, as float32 or float64.

    `changes` are applied to each chunk in turn where it is: nothing that is n x d comes here.
    """

    def __init__(self, X: Any, name: str = "X", client: Any = None) -> None:
        self.collection, self.name = X, name
        self.dim, self.dtype, self.frame = _layout(X, name)
        self.client = _client_of(X, name, client)
        self.chunks: List[Any] = list(np.ravel(np.asarray(X.to_delayed(), dtype=object)))
        sizes = () if self.frame else X.chunks[0]
        self.sizes: Optional[List[int]] = None if self.frame or any(math.isnan(n) for n in sizes) else list(sizes)
        self.changes: Tuple[Change, ...] = ()
        self.placed = _Placed.of(self.client, X, self.chunks)

    def stored_as(self, dtype: Any) -> "Rows":
        """The same rows, each chunk converted when it is read."""
        other = copy.copy(self)
        other.dtype = np.dtype(dtype)
        return other

    def sweep(self, leaf: Callable[..., Any], add: Callable[[Sequence[Any]], Any], *shared: Any) -> Any:
        """The sum, by `add` and in the order of the chunks, of leaf(rows, chunk number, *shared).

        The tree depends on the number of chunks alone, so that the bits of the result do not depend on which worker is
        done first. `add` takes two or more partial results and must not change them: where a worker dies, a sum is made
        again from those that are left.
        """
        node = delayed(self._common(leaf, shared), pure=False, traverse=False)
        task, join = delayed(_chunk_of_sweep, pure=False), delayed(_sum_of_sweep, pure=False)
        level = [task(number, chunk, node) for number, chunk in enumerate(self.chunks)]
        while len(level) > 1:
            level = [join(add, *level[i : i + FAN_IN]) for i in range(0, len(level), FAN_IN)]
        return self._found(self._compute(level[0]))

    def sweep_in_any_order(self, leaf: Callable[..., Any], add: Callable[[Sequence[Any]], Any], *shared: Any) -> Any:
        """The same where sums by `add` are exact, so that neither their order nor who made them is seen in the result."""
        if self.placed is None:
            return self.sweep(leaf, add, *shared)
        check_running(self.client, self.name)
        return self._found(self.placed.sweep(add, self._common(leaf, shared)))

    def _common(self, leaf: Callable[..., Any], shared: Sequence[Any]) -> "_Common":
        return _Common(leaf, self.dim, self.dtype, self.frame, self.changes, self.name, shared)

    def _found(self, result: Any) -> Any:
        if isinstance(result, Bad):
            raise ValueError(self._about(result))
        return result

    def moments(self) -> Moments:
        """Number, mean and squares in one sweep; at least two rows, all finite."""
        found: Moments = self.sweep(moments_of, joined_moments)
        if found.samples < 2:
            raise ValueError(f"{self.name} has {found.samples} row(s) in {len(self.chunks)} chunk(s); a covariance needs at least 2")
        if not np.isfinite(found.squares).all():
            raise ValueError(f"the variance of {self.name} is beyond what float64 can hold; scale the samples down")
        return found

    def _compute(self, value: Any) -> Any:
        if self.client is None:
            return compute(value)[0]
        check_running(self.client, self.name)
        # A block of a million rows is no mistake in the graph, which Dask would warn of.
        with config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):
            return self.client.compute(value).result()

    def _about(self, bad: Bad) -> str:
        place = f"chunk {bad.chunk}, row {bad.row} of it"
        if self.sizes is not None:
            place += f" (row {sum(self.sizes[: bad.chunk]) + bad.row} of all)"
        return f"{self.name} has {bad.value} in {place}, column {bad.column}; remove or replace such samples first"


class _Common:
    """What all tasks of a sweep need, as one object that Dask does not look into."""

    def __init__(self, leaf: Any, dim: int, dtype: Any, frame: bool, changes: Tuple[Change, ...], name: str, shared: Any) -> None:
        self.leaf, self.dim, self.dtype, self.frame, self.changes = leaf, dim, dtype, frame, changes
        self.name, self.shared = name, shared


class _Placed:
    """Chunks that workers hold, and which thread of which worker is to read which of them."""

    def __init__(self, client: Any, futures: List[Any]) -> None:
        self.client, self.futures = client, futures
        self.shares: Optional[List[Tuple[str, List[int]]]] = None  # an address, and chunks that lie there
        # Of the last sweep. To let go of them is a message, and one that goes ahead of a sweep delays it.
        self.kept: Any = None

    @classmethod
    def of(cls, client: Any, X: Any, chunks: Sequence[Any]) -> Optional["_Placed"]:
        """None where chunks are made anew for each sweep, or there is no cluster."""
        if client is None or not chunks:
            return None
        graph = {**chunks[0].__dask_graph__(), **X.__dask_graph__()}  # that of all chunks; arrays leave it out there
        futures = [_future_of(chunk.key, graph) for chunk in chunks]
        if any(future is None or future.client is not client for future in futures):
            return None
        return cls(client, futures)

    def sweep(self, add: Callable[[Sequence[Any]], Any], common: "_Common") -> Any:
        if self.shares is None:
            self.shares = self._look()
        client, kept = self.client, []
        sent: Any = common
        if sum(getattr(value, "nbytes", 0) for value in common.shared) > _MOST_SENT_ALONG:
            sent = client.submit(_itself, common, pure=False)  # a task, and not scattered: it can be made again
            kept.append(sent)
        homes, numbers = zip(*self.shares)
        chunks = [[self.futures[number] for number in share] for share in numbers]
        level = client.map(_share_of_sweep, homes, numbers, chunks, [sent] * len(homes), [add] * len(homes), pure=False)
        kept += level
        while len(level) > FAN_IN:
            runs = [level[i : i + FAN_IN] for i in range(0, len(level), FAN_IN)]
            level = client.map(_sum_of_shares, [add] * len(runs), runs, pure=False)
            kept += level
        self.kept = kept
        moved, found = _sum_of_shares(add, client.gather(level))
        if moved:
            self.shares = None  # a worker is gone, and its chunks are elsewhere
        return found

    def _look(self) -> List[Tuple[str, List[int]]]:
        keys = [future.key for future in self.futures]
        holders, threads = self.client.who_has(self.futures), self.client.nthreads()
        if not threads:
            return [("", list(range(len(keys))))]  # the task waits for a worker to come
        sizes = self.client.nbytes(keys, summary=False)
        of_worker: Dict[str, List[int]] = {address: [] for address in threads}
        bytes_there = dict.fromkeys(threads, 0)
        for number, key in enumerate(keys):  # of those that have it, if any has, the one with the least so far
            there = [address for address in holders.get(key, ()) if address in threads] or threads
            address = min(there, key=bytes_there.__getitem__)
            of_worker[address].append(number)
            bytes_there[address] += sizes.get(key, 0)
        shares = []
        for address, numbers in of_worker.items():
            heavy_first = sorted(numbers, key=lambda number: -sizes.get(keys[number], 0))
            of_thread: List[List[int]] = [[] for _ in range(min(len(numbers), threads[address]))]
            bytes_so_far = [0] * len(of_thread)
            for number in heavy_first:
                least = bytes_so_far.index(min(bytes_so_far))
                of_thread[least].append(number)
                bytes_so_far[least] += sizes.get(keys[number], 0) + 1
            shares += [(address, sorted(share)) for share in of_thread]
        return shares


def _future_of(key: Any, graph: Dict[Any, Any]) -> Any:
    """The future that stands in a graph under this key, or under one that this is another name for; None: no future."""
    from distributed import Future

    for _ in range(len(graph)):
        value = graph.get(key)
        held = _data_of(value)
        if isinstance(held, Future):
            return held
        key = getattr(value, "target", value)  # another name for a chunk
        if not isinstance(key, (str, tuple)) or key not in graph:
            return None
    return None


def _share_of_sweep(
    home: str, numbers: Sequence[int], chunks: Sequence[Any], common: _Common, add: Callable[[Sequence[Any]], Any]
) -> Any:
    """What the chunks of a share add up to, and whether this is another worker than the one that had them."""
    from distributed import get_worker

    total = None
    for number, chunk in zip(numbers, chunks):
        part = _chunk_of_sweep(number, chunk, common)
        total = part if total is None else _sum_of_sweep(add, total, part)
    return get_worker().address != home, total


def _sum_of_shares(add: Callable[[Sequence[Any]], Any], shares: Sequence[Any]) -> Any:
    return any(moved for moved, _ in shares), _sum_of_sweep(add, *(total for _, total in shares))


def _itself(value: Any) -> Any:
    return value


def _chunk_of_sweep(number: int, chunk: Any, common: _Common) -> Any:
    with thread_limit(1):  # a task is the work of one of a Dask worker's threads
        rows = _rows_of(chunk, number, common)
        for change in common.changes:
            rows = np.ascontiguousarray(change(number, rows))
        return common.leaf(rows, number, *common.shared)


def _sum_of_sweep(add: Callable[[Sequence[Any]], Any], *parts: Any) -> Any:
    bad = next((part for part in parts if isinstance(part, Bad)), None)
    if bad is not None or len(parts) == 1:
        return bad or parts[0]
    return add(parts)


def _rows_of(chunk: Any, number: int, common: _Common) -> np.ndarray:
    dim, dtype, name = common.dim, common.dtype, common.name
    if isinstance(chunk, np.ma.MaskedArray):
        raise TypeError(f"chunk {number} of {name} is a masked array; fill or remove what is masked first")
    if common.frame:
        chunk = chunk.to_numpy(dtype=dtype, na_value=np.nan)
    elif hasattr(chunk, "toarray") or not (hasattr(chunk, "__array__") or isinstance(chunk, (list, tuple))):
        raise TypeError(
            f"chunk {number} of {name} is a {type(chunk).__name__}; it must be a NumPy array: convert the chunks first, "
            "X.map_blocks(lambda chunk: chunk.toarray()) for sparse ones"
        )
    rows = np.asarray(chunk)
    if rows.ndim != 2 or rows.shape[1] != dim:
        raise ValueError(f"chunk {number} of {name} has shape {rows.shape}; its rows must have {dim} values, as {name} says")
    if rows.dtype.kind not in "fiub":
        raise TypeError(f"chunk {number} of {name} has dtype {rows.dtype}; it must hold real numbers")
    return np.ascontiguousarray(rows, dtype=dtype)


def is_collection(value: Any) -> bool:
    return bool(is_dask_collection(value))


def _layout(X: Any, name: str) -> Tuple[int, Any, bool]:
    """The number of columns, the dtype of a run, and whether it is a dataframe."""
    if not is_collection(X) or not hasattr(X, "to_delayed") or not (hasattr(X, "chunks") or hasattr(X, "columns")):
        raise TypeError(
            f"{name} is a {type(X).__name__}; it must be a dask array or a dask dataframe of rows. An array in memory goes "
            "to itspace.Target.from_features(X)"
        )
    if hasattr(X, "columns") and not hasattr(X, "chunks"):
        for column, kind in X.dtypes.items():
            if getattr(kind, "kind", "O") not in "fiub":
                raise TypeError(
                    f"column {column!r} of {name} has dtype {kind}; all must be real numbers: leave it out, or encode it"
                )
        same = all(kind == np.float32 for kind in X.dtypes)
        return len(X.columns), np.dtype(np.float32 if same else np.float64), True
    if X.ndim != 2:
        raise ValueError(f"{name} has {X.ndim} dimension(s); it must have 2, one sample per row")
    if math.isnan(X.shape[1]):
        raise ValueError(f"{name} does not know how many columns it has; call {name}.compute_chunk_sizes() first")
    if X.numblocks[1] != 1:
        raise ValueError(
            f"{name} has {X.numblocks[1]} chunks along its columns; a chunk must hold whole rows: "
            f"{name} = {name}.rechunk({{1: -1}}), and persist it, or every sweep moves all the data between the workers"
        )
    if X.dtype.kind not in "fiub":
        raise TypeError(f"{name} has dtype {X.dtype}; it must hold real numbers")
    if X.dtype.kind == "f" and X.dtype.itemsize > 8:
        raise TypeError(f"{name} has dtype {X.dtype}; float64 is the widest there is here: convert it with astype")
    kind = X.dtype.newbyteorder("=")
    return int(X.shape[1]), kind if kind in _FLOATS else np.dtype(np.float64), False


def _client_of(X: Any, name: str, client: Any) -> Any:
    """The client that runs X: the one given, the one that holds what was persisted, Dask's default; None: no cluster."""
    if client is None:
        try:
            from distributed import Client, Future
        except ImportError:
            return None
        held = next((value for value in dict(X.__dask_graph__()).values() if isinstance(_data_of(value), Future)), None)
        if held is not None:
            client = _data_of(held).client
        elif config.get("scheduler", None) in (None, "dask.distributed", "distributed"):
            try:
                client = Client.current()
            except ValueError:
                return None
    if client is None:
        return None
    if getattr(client, "asynchronous", False):
        raise TypeError("the client is asynchronous; a run here waits for its results: make a Client(asynchronous=False)")
    check_running(client, name)
    return client


def _data_of(value: Any) -> Any:
    """What a node of the graph holds, in the graphs of Dask before and since 2024.12."""
    return getattr(value, "value", value)


def check_running(client: Any, name: str) -> None:
    status = getattr(client, "status", None)
    if status != "running":
        raise RuntimeError(
            f"the Dask client of {name} is {status}, and what it held is gone; start a Client, load {name} with it, and "
            "make the target anew"
        )
