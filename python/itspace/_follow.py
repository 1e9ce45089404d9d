# SPDX-License-Identifier: Apache-2.0
"""A followed stream beside its source: what moved, the maps that undo it, and the gate that is asked with each batch.

What `_compare` measures of two sample sets is known here from models alone: a stream keeps no samples. The library
measures and decides (itspace/followed_shift.hpp, itspace/follow_gate.hpp); here the samples are kept and the classifier
is asked.
"""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Sequence, Tuple

import numpy as np

from . import _compare, _core, _gate
from ._arrays import count
from ._heads import asked
from ._map import TransportMap
from ._models import LowRankGaussian, model_arrays
from ._online import OnlineAligner
from ._seen import Kept
from ._types import Array, MapKind

KINDS: Tuple[MapKind, ...] = ("mean", "scale", "monge", "whiten")


class Followed:
    """A stream as it is now, and its source; both models with their counts, and deviations where maps are to scale."""

    def __init__(
        self, source: LowRankGaussian, stream: LowRankGaussian, clusters: Optional[_compare.Clusters] = None
    ) -> None:
        self.source, self.stream = source, stream
        models = model_arrays(source, "source"), model_arrays(stream, "stream")
        moments, self._deviations_kept = _core.followed_shift(*models, clusters)
        self.shift = _gate.Shift(*moments)

    def map(self, kind: MapKind, shrink: bool = True) -> TransportMap:
        """The map of a kind, from the stream to the source, shrunk by noise or not."""
        kept = Kept()
        if shrink and kind != "whiten":
            deviations = self._deviations_kept if kind == "scale" else None
            kept = Kept(self.shift.mean_kept, self.shift.covariance_kept, deviations)
        return TransportMap.from_models(self.stream, self.source, kind, kept=kept)


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
    patience : int
        So many batches in a row must speak for another choice before it is made.

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
        patience: int = 1,
    ) -> None:
        self._kinds = tuple(kinds)
        for kind in self._kinds:
            if kind not in KINDS:
                raise ValueError(f"kinds has {kind!r}; each must be one of {', '.join(map(repr, KINDS))}")
        if count(buffer, "buffer") < 1:
            raise ValueError(f"buffer is {buffer}; it must be at least 1 sample")
        self._source, self.head, self._shrink, self._clusters = source, head, shrink, clusters
        self._buffer: List[Any] = []
        self._size = int(buffer)
        self._patience = count(patience, "patience")
        self._gate = _core.FollowGate.make(list(self._kinds), self._size, self._patience)
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
        answers, classes = asked(self.head, moved)
        choice, sentence, numbers = self._gate.judge(_sides(list(answers.values())), followed.shift, classes)
        self.predictions = {name: _gate.Predictions(*each) for name, each in zip(answers, numbers)}
        self.map = maps.get(choice)  # type: ignore[call-overload]
        return _gate.Decision(choice, sentence)

    def apply(self, samples: Array) -> Any:
        """The samples in the source's frame, or as they are while the gate is closed."""
        return samples if self.map is None else self.map.apply(samples)

    def _remember(self, batch: Any) -> None:
        self._buffer.append(np.array(batch[-self._size :]))
        while sum(map(len, self._buffer)) - len(self._buffer[0]) >= self._size:
            self._buffer.pop(0)

    def __getstate__(self) -> Dict[str, Any]:
        return {**self.__dict__, "_gate": self._gate.state()}

    def __setstate__(self, state: Dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._gate = _core.FollowGate.make(list(self._kinds), self._size, self._patience, *state["_gate"])


def _sides(answers: List[Any]) -> List[Any]:
    """Answers for the library: probabilities, or labels, whatever they are, as their numbers in a column."""
    if any(answer.ndim == 2 for answer in answers):
        blocks = [answer if answer.ndim == 2 else answer[:, np.newaxis] for answer in answers]
    else:
        numbers = np.unique(np.concatenate(answers), return_inverse=True)[1].reshape(len(answers), -1, 1)
        blocks = list(numbers)
    return [np.ascontiguousarray(block, dtype=np.float64) for block in blocks]
