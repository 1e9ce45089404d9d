# SPDX-License-Identifier: Apache-2.0
"""OnlineAligner: follow a stream of feature batches, a few certified steps for each."""
from __future__ import annotations

import json
import math
import os
import tempfile
import warnings
from typing import Any, Dict, List, Literal, Mapping, NamedTuple, Optional, Tuple, Union

import numpy as np

from . import _core
from ._align import step_options
from ._arrays import integer, number, seed_of, take, vector
from ._map import TransportMap
from ._models import LowRankGaussian
from ._result import AlignResult
from ._seen import Kept
from ._types import Array, MapKind


def _balance_of(balance: Any) -> Tuple[Optional[Dict[Any, int]], Any]:
    """The classes of a source with their numbers, and their shares."""
    if balance is None:
        return None, None
    if isinstance(balance, Mapping):
        labels = list(balance)
        shares = np.array([number(balance[label], f"balance[{label!r}]") for label in labels], dtype=np.float64)
    else:
        values = np.asarray(balance)
        if values.ndim != 1:
            raise ValueError(f"balance has shape {values.shape}; it must be a mapping of classes to shares, or labels (n,)")
        found, counts = np.unique(values, return_counts=True)
        labels, shares = found.tolist(), counts / max(len(values), 1)
    labels = [label.item() if isinstance(label, np.generic) else label for label in labels]
    # Whole numbers are integers in files, of whatever type they came: the program reads no others.
    labels = [int(label) if isinstance(label, float) and label.is_integer() else label for label in labels]
    for label in labels:
        if not isinstance(label, (int, str, float)):
            raise TypeError(f"balance has the class {label!r} ({type(label).__name__}); classes are numbers or texts")
    return {label: k for k, label in enumerate(labels)}, shares


class Drift(NamedTuple):
    """What the drift alarm makes of a batch.

    `watching` is False while the batches still go into the reference. The two z are the statistics of the batch in units
    of their spread without drift, the levels their sums over the threshold: an alarm from 1 on, after which they begin
    at 0 again.
    """

    watching: bool
    alarm: bool
    mean_z: float
    covariance_z: float
    mean_level: float
    covariance_level: float


class Observation(NamedTuple):
    """What came of one batch; `result` (the steps) is None while there are no two samples that differ.

    `class_shares`, of a balanced stream: what came of each class so far, as a share of all that came.
    """

    batch: int
    samples: int
    skipped: bool
    effective_samples: float
    target_trace: float
    result: Optional[AlignResult]
    drift: Optional[Drift]
    class_shares: Optional[Dict[Any, float]] = None


class OnlineAligner:
    """Follows a stream of feature batches: the covariance so far moves with each, and a few steps follow it.

    No d x d matrix exists, and memory does not grow with the stream: recent batches are kept as they came, older samples
    as `keep` leading directions and a diagonal. The mean, every variance, the trace and the effective count are those of
    all samples, exactly.

    Parameters
    ----------
    rank : int
        Columns of the factor.
    steps : int
        For each batch.
    alpha : float, 'line-search' or None
        As in `align`.
    half_life : float
        After so many batches (or samples, by `half_life_unit`) a sample weighs half. Infinite: nothing is forgotten.
    half_life_unit : 'batches' or 'samples'
    window : int, optional
        Instead of a half-life: the last so many batches, exactly, and nothing older.
    keep : int, optional
        Directions kept of older batches; None: four times the rank.
    run_length : float, optional
        Raise an alarm when the stream drifts, with so many batches between two false alarms on average.
    reference_batches : int
        The first batches, which the alarm takes for usual.
    balance : mapping or array, optional
        The source's classes: each with its share there, or the labels of the source's samples. Every class then counts as
        much as in the source, however much of it came: for streams that come class by class. Each batch must come with
        `predicted` classes. A class that has not come yet is left out, and the shares of the others scaled up. Costs a
        low-rank part for each class.
    start : array (d, rank), optional
        Where the steps of the first batch begin, such as the source's factor; None: at random.
    seed : int
    dtype : 'float32', 'float64' or None
        Of the stream; None: that of the first batch. A batch of the other one is refused.

    Examples
    --------
    >>> import numpy as np, itspace
    >>> rng = np.random.default_rng(0)
    >>> aligner = itspace.OnlineAligner(rank=3, half_life=10)
    >>> for _ in range(5):
    ...     seen = aligner.observe(rng.standard_normal((64, 20)))
    >>> seen.batch, seen.result.certified, aligner.factor.shape
    (5, True, (20, 3))
    """

    __slots__ = ("_stream", "_options", "_dtype", "_classes", "_start", "__weakref__")

    _stream: Optional[_core.Online]
    _options: Dict[str, Any]
    _dtype: Any
    _classes: Optional[Dict[Any, int]]  # each with its number
    _start: Any

    def __init__(
        self,
        rank: int,
        *,
        steps: int = 2,
        alpha: Union[float, Literal["line-search"], None] = None,
        half_life: float = math.inf,
        half_life_unit: Literal["batches", "samples"] = "batches",
        window: Optional[int] = None,
        keep: Optional[int] = None,
        run_length: Optional[float] = None,
        reference_batches: int = 20,
        balance: Union[Mapping[Any, float], Array, None] = None,
        start: Optional[Array] = None,
        seed: int = 0,
        dtype: Any = None,
    ) -> None:
        fixed, _, line_search, _ = step_options(alpha, None, "paper", "auto", None)
        if not isinstance(half_life_unit, str):
            raise TypeError(f"half_life_unit is {half_life_unit!r}; it must be 'batches' or 'samples'")
        if window is not None and integer(window, "window") < 1:
            raise ValueError(f"window is {window!r}; it must be at least 1, or None for no window")
        if keep is not None and integer(keep, "keep") < 1:
            raise ValueError(f"keep is {keep!r}; it must be at least 1, or None for four times the rank")
        self._options = {
            "rank": integer(rank, "rank"),
            "steps": integer(steps, "steps"),
            "alpha": fixed,
            "line_search": line_search,
            "half_life": number(half_life, "half_life"),
            "unit": half_life_unit,
            "window": 0 if window is None else integer(window, "window"),
            "keep": None if keep is None else integer(keep, "keep"),
            "run_length": None if run_length is None else number(run_length, "run_length"),
            "reference_batches": integer(reference_batches, "reference_batches"),
            "seed": seed_of(seed),
        }
        self._classes, self._options["shares"] = _balance_of(balance)
        self._options["classes"] = [json.dumps(label) for label in self._classes or ()]
        self._dtype = None if dtype is None else np.dtype(dtype)
        if self._dtype not in (None, np.dtype(np.float32), np.dtype(np.float64)):
            raise ValueError(f"dtype is {dtype!r}; it must be 'float32', 'float64' or None")
        made = _core.Online.make(float32=self._dtype == np.float32, **self._options)  # bad options are named here
        self._stream = None if self._dtype is None else made
        self._start = None if start is None else take(start, "start", 2)[0].copy()
        if self._start is not None:
            made = _core.Online.make(float32=self._start.dtype == np.float32, **self._options)
            made.begin_at(self._start)  # refused here where it is none

    def observe(
        self, batch: Array, sample_weight: Optional[Array] = None, *, predicted: Optional[Array] = None
    ) -> Observation:
        """Take in a batch (n, d), move the factor, and say what came of it.

        `predicted`, of a balanced stream: what a classifier makes of the samples, a class of the source for each (n,), or
        a row of class probabilities (n, K), whose columns are in the order of `classes`.

        A batch with nothing in it is skipped with a warning. One that is refused (ValueError: another number of columns,
        a value that is not finite, weights that do not fit, a class that the source does not have; TypeError: another
        dtype) leaves the state as it was.
        """
        array, _ = take(batch, "batch", 2)
        if self._dtype is not None and array.dtype != self._dtype:
            raise TypeError(f"batch has dtype {array.dtype} and the stream {self._dtype}; convert it: batch.astype('{self._dtype}')")
        weights = None if sample_weight is None else vector(sample_weight, "sample_weight")
        core = self._stream
        if core is None:
            core = _core.Online.make(float32=array.dtype == np.float32, **self._options)
        if self._start is not None and self.batches == 0:
            core.begin_at(self._start.astype(array.dtype, copy=False))
        seen = core.observe(array, weights, *self._predicted(predicted))
        if not seen["skipped"]:
            self._stream, self._dtype = core, array.dtype
        if seen["warning"]:
            warnings.warn(seen["warning"], RuntimeWarning, stacklevel=2)
        result = None if seen["trace"] is None else AlignResult(core.factor(), seen["trace"], [])
        drift = None if seen["drift"] is None else Drift(*seen["drift"])
        shares = seen["class_shares"]
        by_class = None if shares is None else dict(zip(self.classes, shares.tolist()))
        return Observation(
            seen["batch"],
            seen["samples"],
            seen["skipped"],
            seen["effective_samples"],
            seen["target_trace"],
            result,
            drift,
            by_class,
        )

    def _predicted(self, predicted: Optional[Array]) -> Tuple[Optional[List[int]], Any]:
        """As numbers of classes, or as probabilities."""
        if predicted is None:
            return None, None
        if self._classes is None:
            raise ValueError(
                "predicted was given, and the stream is not balanced; give balance= (the source's classes and shares) when it begins"
            )
        values = np.asarray(predicted)
        if values.ndim == 2:
            return None, take(values, "predicted", 2, np.float64)[0]
        if values.ndim != 1:
            raise ValueError(f"predicted has shape {values.shape}; it must be (n,), classes, or (n, K), probabilities")
        numbers = []
        for i, label in enumerate(values.tolist()):
            if label not in self._classes:
                known = ", ".join(map(repr, self._classes))
                raise ValueError(
                    f"predicted[{i}] is {label!r}, which the source does not have: its classes are {known}; leave such samples out"
                )
            numbers.append(self._classes[label])
        return numbers, None

    def _started(self) -> _core.Online:
        if self._stream is None:
            raise ValueError("the stream has had no batch yet; observe one first")
        return self._stream

    @property
    def factor(self) -> Any:
        """The factor Y (d, rank), a copy; its covariance Y Y' is the state."""
        return self._started().factor()

    @property
    def mean(self) -> Any:
        return self._started().mean()

    @property
    def deviations(self) -> Any:
        """Standard deviations of the features."""
        return self._started().deviations()

    @property
    def dtype(self) -> Any:
        """Of the stream; None before its first batch where none was given."""
        return self._dtype

    @property
    def classes(self) -> Tuple[Any, ...]:
        """The classes of a balanced stream, in the order of columns of probabilities; empty where it is not."""
        return tuple(self._classes or ())

    @property
    def class_means(self) -> Dict[Any, Any]:
        """The mean of each class so far, of a balanced stream; 0 where nothing came of it."""
        return dict(zip(self.classes, self._started().class_means()))

    @property
    def dim(self) -> int:
        return self._started().numbers()[0]

    @property
    def rank(self) -> int:
        return int(self._options["rank"]) if self._stream is None else self._stream.numbers()[1]

    @property
    def batches(self) -> int:
        """How many there were."""
        return 0 if self._stream is None else self._stream.numbers()[2]

    @property
    def effective_samples(self) -> float:
        """(sum w)^2/(sum w^2) of all samples, with what is left of their weights."""
        return 0.0 if self._stream is None else self._stream.numbers()[3]

    @property
    def trace(self) -> float:
        """Of the covariance so far."""
        return self._started().numbers()[4]

    @property
    def objective(self) -> float:
        """W2^2(Y Y', Sigma) of the factor and the covariance so far."""
        return self._started().numbers()[5]

    def apply(self, y: Array) -> Any:
        """The covariance so far times a block (d, m)."""
        core = self._started()
        return core.apply(take(y, "y", 2, self._dtype)[0])

    def model(self, *, floor: float = 1e-6) -> LowRankGaussian:
        """The stream as a low-rank Gaussian, with its deviations and its effective count; for `TransportMap.from_models`."""
        core = self._started()
        remainder = core.remainder(number(floor, "floor"))
        return LowRankGaussian(core.factor(), core.mean(), remainder, core.deviations(), False, core.numbers()[3])

    def map(self, source: LowRankGaussian, kind: MapKind = "monge", *, kept: Optional[Kept] = None) -> TransportMap:
        """The map that takes samples of the stream as it is now into the frame of a source model."""
        return TransportMap.from_models(self.model(), source, kind, kept=kept)

    def relearn_drift(self) -> None:
        """A new reference for the drift alarm, from the next batch on."""
        self._started().relearn_drift()

    def save(self, path: "Union[str, os.PathLike[str]]") -> None:
        """To an .npz (`itspace.online/1`), whole or not at all. A stream that is loaded goes on with the same bits."""
        self._started().save(os.fspath(path))

    @classmethod
    def load(cls, path: "Union[str, os.PathLike[str]]") -> "OnlineAligner":
        self = object.__new__(cls)
        self._stream = _core.Online.load(os.fspath(path))
        self._options, self._start = {}, None
        self._dtype = np.dtype(np.float32 if self._stream.float32 else np.float64)
        balance = self._stream.balance()
        self._classes = None
        if balance is not None:
            names, shares = balance
            labels = [json.loads(name) for name in names] or list(range(len(shares)))
            self._classes = {label: number for number, label in enumerate(labels)}
        return self

    def to_bytes(self) -> bytes:
        """What `save` writes."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "state.npz")
            self._started().save(path)
            with open(path, "rb") as file:
                return file.read()

    @classmethod
    def from_bytes(cls, state: bytes) -> "OnlineAligner":
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "state.npz")
            with open(path, "wb") as file:
                file.write(state)
            return cls.load(path)

    def __getstate__(self) -> Dict[str, Any]:
        names = ("_options", "_dtype", "_classes", "_start")
        return {**{name: getattr(self, name) for name in names}, "_stream": None if self.batches == 0 else self.to_bytes()}

    def __setstate__(self, state: Dict[str, Any]) -> None:
        for name, value in state.items():
            setattr(self, name, value)
        if state["_stream"] is not None:
            self._stream = self.from_bytes(state["_stream"])._stream
        elif self._dtype is not None:
            self._stream = _core.Online.make(float32=self._dtype == np.float32, **self._options)

    def __repr__(self) -> str:
        if self._stream is None:
            return f"<itspace.OnlineAligner of rank {self.rank}, no batch yet>"
        dim, rank, batches, effective, _, objective = self._stream.numbers()
        return (
            f"<itspace.OnlineAligner of rank {rank} in {dim} dimensions, {batches} batches, {effective:.4g} effective samples, "
            f"objective {objective:.6g}>"
        )
