# SPDX-License-Identifier: Apache-2.0
"""A followed stream beside its source: what moved, the maps that undo it, and the gate that is asked with each batch.

What `_compare` measures of two sample sets is known here from models alone: a stream keeps no samples. Noise is that of
normal samples of the effective counts.
"""

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from . import _compare, _gate
from ._arrays import count
from ._heads import answers_of
from ._map import TransportMap
from ._models import LowRankGaussian
from ._online import OnlineAligner
from ._seen import Kept
from ._types import Array, MapKind

KINDS: Tuple[MapKind, ...] = ("mean", "scale", "monge", "whiten")


class _Moments(NamedTuple):
    mean: Any
    trace: float
    samples: float


class Followed:
    """A stream as it is now, and its source; both models with their counts, and deviations where maps are to scale."""

    def __init__(
        self, source: LowRankGaussian, stream: LowRankGaussian, clusters: Optional[_compare.Clusters] = None
    ) -> None:
        self.source, self.stream = source, stream
        first, second = _moments(source), _moments(stream)
        move = np.asarray(source.mean, dtype=np.float64) - stream.mean
        squared_move = float(move @ move)
        models = [(np.asarray(model.factor, dtype=np.float64), float(model.remainder)) for model in (stream, source)]
        covariance = _compare.displacement(*models)
        counts = max(second.samples, 1.0), max(first.samples, 1.0)
        noise = _compare.expected_displacement(*models[1], *counts)
        self.mean_kept = _compare.kept(first.trace / counts[1] + second.trace / counts[0], squared_move)
        self.covariance_kept = _compare.kept(noise, covariance)
        total = squared_move + covariance
        unexplained = None
        if clusters is not None:
            unexplained = _compare.unexplained_move(clusters, source.mean, second) if self.mean_kept > 0 else 0.0  # type: ignore[arg-type]
        self.shift = _gate.Shift(
            mean_share=squared_move / total if total > 0 else 0.0,
            mean_kept=self.mean_kept,
            covariance=covariance / first.trace if first.trace > 0 else np.inf,
            covariance_kept=self.covariance_kept,
            covariance_kept_scaled=self.covariance_kept,
            unexplained=unexplained,
        )

    def map(self, kind: MapKind, shrink: bool = True) -> TransportMap:
        """The map of a kind, from the stream to the source, shrunk by noise or not."""
        kept = Kept()
        if shrink and kind != "whiten":
            kept = Kept(self.mean_kept, self.covariance_kept, self._deviations_kept() if kind == "scale" else None)
        return TransportMap.from_models(self.stream, self.source, kind, kept=kept)

    def _deviations_kept(self) -> Any:
        source, stream = np.asarray(self.source.deviations), np.asarray(self.stream.deviations)
        both = (source > 0) & (stream > 0)
        squared = np.log(np.where(both, source, 1) / np.where(both, stream, 1)) ** 2
        noise = 0.5 / max(_count(self.source), 1.0) + 0.5 / max(_count(self.stream), 1.0)  # of a logarithm, normal samples
        return np.where(squared > 0, np.maximum(0, 1 - noise / np.where(squared > 0, squared, 1)), 0.0)


class FollowGate:
    """Whether the map from a followed stream to its source is applied, asked anew with each batch.

    A frozen classifier is asked about the last samples as they are and under each map, and the rule of
    docs/should-i-adapt.md decides by how its predictions look; no label is used. While it is closed samples are left
    alone.

    Parameters
    ----------
    source : LowRankGaussian
        The source's model, with `deviations` and `samples`, as `model_of` gives it.
    head : object with ``predict_proba`` or ``predict``, or a function of samples
        The classifier: labels (n,) or class probabilities (n, K).
    kinds : sequence of {'mean', 'scale', 'monge', 'whiten'}
        The maps that it decides between; the rule knows 'scale' and 'monge' beside each other, others alone.
    buffer : int
        Samples that it is asked about: the last so many, of however many batches. A histogram of classes is read off
        them, and some hundreds are needed for that.
    shrink : bool
        Whether a map keeps only what is beyond noise.

    Examples
    --------
    >>> import numpy as np, itspace
    >>> rng = np.random.default_rng(0)
    >>> source = np.repeat([[-3.0, 0.0], [3.0, 0.0]], 200, axis=0) + rng.standard_normal((400, 2))
    >>> target = itspace.Target.from_features(source)
    >>> model = itspace.model_of(target, itspace.start_from(target, 1))
    >>> gate = itspace.FollowGate(model, lambda x: (x[:, 0] > 0).astype(int))
    >>> aligner = itspace.OnlineAligner(rank=1)
    >>> for _ in range(4):
    ...     batch = source[rng.permutation(400)[:100]] + 8
    ...     seen = aligner.observe(batch)
    ...     decision = gate.ask(aligner, batch)
    >>> decision.choice, gate.is_open, bool(abs(gate.apply(batch).mean()) < 1)
    ('scale', True, True)
    """

    def __init__(
        self,
        source: LowRankGaussian,
        head: Any,
        *,
        kinds: Sequence[MapKind] = ("scale",),
        buffer: int = 512,
        shrink: bool = True,
        clusters: Optional[_compare.Clusters] = None,
    ) -> None:
        self._kinds = tuple(kinds)
        for kind in self._kinds:
            if kind not in KINDS:
                raise ValueError(f"kinds has {kind!r}; each must be one of {', '.join(map(repr, KINDS))}")
        if not self._kinds or (len(self._kinds) > 1 and "scale" not in self._kinds):
            raise ValueError(f"kinds is {self._kinds!r}; it must be one map, or 'scale' and others beside it")
        if count(buffer, "buffer") < 1:
            raise ValueError(f"buffer is {buffer}; it must be at least 1 sample")
        self._source, self.head, self._shrink, self._clusters = source, head, shrink, clusters
        self._buffer: List[Any] = []
        self._size = int(buffer)
        self.map: Optional[TransportMap] = None
        self.predictions: Dict[str, _gate.Predictions] = {}

    @property
    def is_open(self) -> bool:
        return self.map is not None

    def ask(self, aligner: OnlineAligner, batch: Array) -> _gate.Decision:
        """Decide by the last samples, the batch's among them, and the stream as it is now; `choice` and why."""
        return self.ask_about(Followed(self._source, aligner.model(), self._clusters), batch)

    def ask_about(self, followed: Followed, batch: Array) -> _gate.Decision:
        self._remember(np.asarray(batch))
        samples = np.concatenate(self._buffer)
        maps = {kind: followed.map(kind, self._shrink) for kind in self._kinds}
        moved: Dict[str, Any] = {"none": samples}
        moved.update((kind, made.apply(samples)) for kind, made in maps.items())
        self.predictions = answers_of(self.head, moved)
        decision = _gate.decide(followed.shift, self.predictions)
        self.map = maps.get(decision.choice)  # type: ignore[call-overload]
        return decision

    def apply(self, samples: Array) -> Any:
        """The samples in the source's frame, or as they are while the gate is closed."""
        return samples if self.map is None else self.map.apply(samples)

    def _remember(self, batch: Any) -> None:
        self._buffer.append(np.array(batch[-self._size :]))
        while sum(map(len, self._buffer)) - len(self._buffer[0]) >= self._size:
            self._buffer.pop(0)


def _count(model: LowRankGaussian) -> float:
    return np.inf if model.samples is None else float(model.samples)


def _moments(model: LowRankGaussian) -> _Moments:
    factor = np.asarray(model.factor, dtype=np.float64)
    if model.deviations is None:
        trace = float((factor**2).sum()) + len(factor) * float(model.remainder)
    else:
        trace = float((np.asarray(model.deviations) ** 2).sum())
    return _Moments(np.asarray(model.mean, dtype=np.float64), trace, _count(model))
