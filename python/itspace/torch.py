# SPDX-License-Identifier: Apache-2.0
# Where PyTorch is not installed its types are unknown.
# mypy: disallow-subclassing-any=False, disallow-untyped-decorators=False, disallow-untyped-calls=False
# mypy: warn-return-any=False
"""itspace for PyTorch: the Bures-Wasserstein loss with a root-free gradient, and a layer that follows its batches.

Tensors cross through DLPack without a copy (contiguous tensors of float32 or float64; others are copied once). Tensors on
a GPU stay there, where itspace was built with CUDA: docs/gpu.md.
"""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

import itspace
from itspace import _compare, _core, _gate, _heads
from itspace._arrays import integer, matrix
from itspace._torch_loss import bures_wasserstein_loss
from itspace._torch_tensors import check_tensor, on_host, scalar_like, tensor_like

__all__ = ["AlignLayer", "bures_wasserstein_loss"]


class AlignLayer(nn.Module):
    """Follows the covariance of its inputs and moves them into a reference frame, in the manner of batch norm.

    The running state is the covariance of the batches so far, which forgets (:class:`itspace.OnlineAligner`), and of it
    a mean, a factor of rank `rank` and a remainder: the model ``N(mean, Y Y' + delta I)``. In training each batch moves the
    covariance, and one certified step moves the factor toward it, which never increases the distance to it. The first
    batch sets the state.

    The output is the input, until :meth:`keep_reference` (or :meth:`set_reference`) fixes the reference; from then on
    it is the input moved by the transport map from the running model to the reference. So: train a network on the
    source with the layer inside, call ``keep_reference()`` and, where the target is not the source that drifts on but
    another stream, ``reset_running_stats()``, let the layer alone follow the target
    (``layer.train()`` and forward passes under ``no_grad``), and in ``eval`` target samples arrive at the next layer in
    the source's frame. Gradients flow through the map to the input; the state itself is not differentiated.

    Adapting can hurt: ask the layers above with :meth:`gate`, which compares their predictions with and without the map
    and closes the layer (its output is its input) where nothing speaks for the map.

    Parameters
    ----------
    dim : int
        Features of a sample: the last dimension of the input. All others count as samples.
    rank : int
        Columns of the factor, at most `dim`.
    momentum : float or None, default=0.1
        Share of a batch in the state of a long stream, in (0, 1]: what is older counts ``1 - momentum`` times as much after
        each batch; the default is batch norm's. Samples count alike, so that the first batches are averaged and not
        outweighed by the very first. None: nothing is forgotten, the plain average.
    map : {"monge", "whiten"}, default="monge"
        The optimal transport, or whitening and recoloring.
    floor : float, default=1e-6
        Smallest remainder, as a share of the mean variance.
    dtype : torch.dtype, optional
        float32 or float64.

    Notes
    -----
    On a GPU the map is applied there, and the buffers are there; what follows the stream is the host's, as on the CPU: in
    training every batch is copied to the host, and mean, factor and remainder are sent back. Under ``torch.autocast`` the
    layer works in the dtype of its state.

    Buffers: ``mean``, ``factor``, ``remainder``, ``samples`` (the effective number behind the state),
    ``num_batches_tracked``, ``reference_mean``, ``reference_factor``, ``reference_remainder``, ``reference_samples``,
    ``has_reference``, ``is_open``; all are in ``state_dict``, and so is the covariance behind them (the extra state, a
    tensor of bytes: the last batch and ``4 rank`` rows). Changed by hand, call :meth:`refresh`; the next batch writes
    those of the running state again.

    Examples
    --------
    >>> import torch
    >>> from itspace.torch import AlignLayer
    >>> generator = torch.Generator().manual_seed(0)
    >>> layer = AlignLayer(dim=5, rank=2, dtype=torch.float64)
    >>> source = torch.randn(200, 5, generator=generator, dtype=torch.float64)
    >>> _ = layer.train()(source)
    >>> layer.keep_reference()
    >>> layer.reset_running_stats()  # the target is another stream: its jump is no variance
    >>> target = 3 * source + 7
    >>> with torch.no_grad():
    ...     for _ in range(100):
    ...         _ = layer(target)
    >>> moved = layer.eval()(target)
    >>> bool((moved - source).abs().max() < 0.02)
    True
    """

    mean: Tensor
    factor: Tensor
    remainder: Tensor
    num_batches_tracked: Tensor
    reference_mean: Tensor
    reference_factor: Tensor
    reference_remainder: Tensor
    samples: Tensor
    reference_samples: Tensor
    has_reference: Tensor
    is_open: Tensor

    def __init__(
        self,
        dim: int,
        rank: int,
        *,
        momentum: float | None = 0.1,
        map: Literal["monge", "whiten"] = "monge",
        floor: float = 1e-6,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        dim, rank = integer(dim, "dim"), integer(rank, "rank")
        if dim < 1:
            raise ValueError(f"dim is {dim}; it must be at least 1")
        if not 1 <= rank <= dim:
            raise ValueError(f"rank is {rank}; it must be between 1 and dim = {dim}")
        if momentum is not None and not 0 < momentum <= 1:
            raise ValueError(f"momentum is {momentum}; it must be in (0, 1], or None for the plain average")
        if map not in ("monge", "whiten"):
            raise ValueError(f"map is {map!r}; it must be 'monge' or 'whiten'")
        if not floor > 0:
            raise ValueError(f"floor is {floor}; it must be positive")
        self.dim, self.rank, self.momentum, self.map, self.floor = dim, rank, momentum, map, floor
        for prefix in ("", "reference_"):
            self.register_buffer(prefix + "mean", torch.zeros(dim, dtype=dtype))
            self.register_buffer(prefix + "factor", torch.zeros(dim, rank, dtype=dtype))
            self.register_buffer(prefix + "remainder", torch.ones((), dtype=dtype))
            self.register_buffer(prefix + "samples", torch.zeros((), dtype=torch.float64))
        self.register_buffer("num_batches_tracked", torch.tensor(0, dtype=torch.long))
        self.register_buffer("has_reference", torch.tensor(False))
        self.register_buffer("is_open", torch.tensor(True))
        self.certified = True  # whether the last step kept its promise
        self._stream: itspace.OnlineAligner | None = None
        self._map: tuple[Tensor, ...] | None = None

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[-1:] != (self.dim,):
            raise ValueError(f"the input has shape {tuple(x.shape)}; its last dimension must be dim = {self.dim}")
        if x.is_cuda and torch.is_autocast_enabled():
            with torch.amp.autocast_mode.autocast("cuda", enabled=False):
                return self._follow_and_move(x.to(self.factor.dtype))
        return self._follow_and_move(x)

    def _follow_and_move(self, x: Tensor) -> Tensor:
        if self.training:
            self._follow(x.detach().reshape(-1, self.dim))
        return self._moved(x) if self.has_reference and self.is_open else x

    @torch.no_grad()
    def gate(self, x: Tensor, head: Any) -> dict[str, Any]:
        """Ask the layers above whether the map helps, and open or close the layer; the state stays.

        Parameters
        ----------
        x : Tensor of shape (..., dim)
            Inputs of the target, some hundreds of samples: what is read off them is a histogram of classes.
        head : callable
            The layers above: from the output of this layer to logits or probabilities of shape (n, K), or labels (n,).

        Returns
        -------
        dict
            ``decision`` (the map's name, or "none"), ``sentence``, ``shift`` and ``candidates``; as `report_` of
            :class:`itspace.sklearn.CovarianceAligner`.
        """
        if not self.has_reference or self.num_batches_tracked == 0:
            raise ValueError("the layer has no reference or has seen no batch: there is no map to decide about yet")
        answers = {"none": _answers(head(x)), self.map: _answers(head(self._moved(x)))}
        predictions = _heads.numbers_of(answers)
        shift = self._shift()
        decision = _gate.decide(shift, predictions)
        self.is_open.fill_(decision.choice != "none")
        return {
            "decision": decision.choice,
            "sentence": decision.sentence,
            "shift": shift._asdict(),
            "candidates": {name: p._asdict() for name, p in predictions.items()},
        }

    def _shift(self) -> _gate.Shift:
        """What the two models say. Noise is that of normal samples; what clusters the source has is not known here."""
        running = on_host(self.factor), float(self.remainder)
        reference = on_host(self.reference_factor), float(self.reference_remainder)
        squared_move = float(((self.mean - self.reference_mean).double() ** 2).sum())
        covariance = _compare.displacement(running, reference)
        variance = float((reference[0] ** 2).sum()) + self.dim * reference[1]
        counts = max(float(self.samples), 1.0), max(float(self.reference_samples), 1.0)
        total = squared_move + covariance
        seen = _compare.kept(_compare.expected_displacement(*reference, *counts), covariance)
        return _gate.Shift(
            mean_share=squared_move / total if total > 0 else 0.0,
            mean_kept=_compare.kept(variance * (1 / counts[0] + 1 / counts[1]), squared_move),
            covariance=covariance / variance,
            covariance_kept=seen,
            covariance_kept_scaled=seen,
            unexplained=None,
        )

    def _moved(self, x: Tensor) -> Tensor:
        scalar, basis, update, mean_from, mean_to = self._current_map()
        # A = c I + Q (core - c I) Q', applied to rows: two skinny products that autograd sees.
        centred = x - mean_from
        return mean_to + scalar * centred + (centred @ basis) @ update

    def keep_reference(self) -> None:
        """Take the running state as the reference frame that inputs are moved into."""
        if self.num_batches_tracked == 0:
            raise ValueError("the layer has seen no batch; run the source through it in training first")
        for name in ("mean", "factor", "remainder", "samples"):
            getattr(self, "reference_" + name).copy_(getattr(self, name))
        self.has_reference.fill_(True)
        self.is_open.fill_(True)
        self.refresh()

    def set_reference(self, features: Tensor) -> None:
        """Take the mean and covariance of features, one sample per row, as the reference frame."""
        rows = features.detach().reshape(-1, self.dim)
        mean, factor, remainder = self._model(rows, "features")
        self.reference_mean.copy_(mean)
        self.reference_factor.copy_(factor)
        self.reference_remainder.fill_(remainder)
        self.reference_samples.fill_(len(rows))
        self.has_reference.fill_(True)
        self.is_open.fill_(True)
        self.refresh()

    def reset_running_stats(self) -> None:
        """Forget all batches; the next one sets the state. The reference stays."""
        self.mean.zero_()
        self.factor.zero_()
        self.remainder.fill_(1)
        self.samples.zero_()
        self.num_batches_tracked.zero_()
        self._stream = None
        self.refresh()

    def refresh(self) -> None:
        """Make the map again at the next use: for buffers that were changed by hand."""
        self._map = None

    def extra_repr(self) -> str:
        return f"dim={self.dim}, rank={self.rank}, momentum={self.momentum}, map={self.map!r}, floor={self.floor}"

    @torch.no_grad()
    def _follow(self, batch: Tensor) -> None:
        if getattr(self, "_is_replica", False):  # the replicas have one stream, and would move it at the same time
            raise ValueError(
                "the layer is in training in a replica of nn.DataParallel, and a stream is followed in one place: set the "
                "layer to eval() there and follow the batches with the layer itself, or use DistributedDataParallel"
            )
        rows = self._as_state(batch, "the input")
        if self._stream is None:
            self._stream = self._new_stream(rows)
        seen = self._stream.observe(rows.astype(self._stream.dtype, copy=False))
        if seen.result is not None:  # None: no two samples that differ so far
            _check_outcome(seen.result)
            self.certified = bool(seen.result.certified)
            self.factor.copy_(tensor_like(self._stream.factor, self.factor))
            self.remainder.fill_(self._stream.model(floor=self.floor).remainder)
        self.mean.copy_(tensor_like(self._stream.mean, self.mean))
        self.samples.fill_(self._stream.effective_samples)
        self.num_batches_tracked.add_(1)
        self.refresh()

    def _new_stream(self, first: Any) -> itspace.OnlineAligner:
        """That of a first batch, whose steps begin at the best factor of it."""
        forgetting: dict[str, Any] = {}
        if self.momentum is not None:
            forgets_all = self.momentum == 1
            forgetting = {"window": 1} if forgets_all else {"half_life": -1 / math.log2(1 - self.momentum)}
        start = itspace.start_from(itspace.Target.from_features(first), self.rank)
        return itspace.OnlineAligner(self.rank, steps=1, start=start, dtype=first.dtype, **forgetting)

    def _model(self, features: Tensor, name: str) -> tuple[Tensor, Tensor, float]:
        target = itspace.Target.from_features(self._as_state(features, name))
        factor = itspace.start_from(target, self.rank)
        remainder = itspace.model_of(target, factor, floor=self.floor).remainder
        return tensor_like(target.mean, self.mean), tensor_like(factor, self.factor), remainder

    def _as_state(self, features: Tensor, name: str) -> Any:
        """On the host, where the state is made, and in its dtype."""
        check_tensor(name, features)
        if features.device != self.factor.device:
            raise ValueError(
                f"{name} is on {features.device} and the state of the layer on {self.factor.device}; move one of them: "
                f"layer.to('{features.device}')"
            )
        if not bool(torch.isfinite(features).all()):
            raise ValueError(f"{name} has a value that is NaN or Inf; the state of the layer was left as it is")
        rows = features.detach().cpu()
        _core.check_samples(matrix(np.from_dlpack(rows), name), name)
        return np.from_dlpack(rows.to(self.factor.dtype))

    def _current_map(self) -> tuple[Tensor, ...]:
        # A replica of DataParallel comes with the map of the device that it was copied from.
        if self._map is None or self._map[1].device != self.factor.device:
            if self.num_batches_tracked == 0:
                raise ValueError("the layer has a reference but has seen no batch; run the target through it first")
            running, reference = (
                itspace.LowRankGaussian(on_host(factor), on_host(mean), float(remainder))
                for factor, mean, remainder in (
                    (self.factor, self.mean, self.remainder),
                    (self.reference_factor, self.reference_mean, self.reference_remainder),
                )
            )
            parts = itspace.TransportMap.from_models(running, reference, kind=self.map).parts()
            scalar, basis = float(parts["scalar"]), tensor_like(parts["basis"], self.factor)
            core = tensor_like(parts["core"], self.factor)
            update = (core - torch.eye(len(core), dtype=core.dtype, device=core.device).mul(scalar)).T @ basis.T
            self._map = (scalar_like(scalar, core), basis, update, self.mean, self.reference_mean)
        return self._map

    def get_extra_state(self) -> Tensor:
        """The stream as the bytes of its file; none before the first batch."""
        if self._stream is None:
            return torch.zeros(0, dtype=torch.uint8)
        return torch.frombuffer(bytearray(self._stream.to_bytes()), dtype=torch.uint8)

    def set_extra_state(self, state: Tensor) -> None:
        held = bytes(np.from_dlpack(state.cpu()))
        self._stream = itspace.OnlineAligner.from_bytes(held) if held else None

    def _apply(self, fn: Any, *args: Any, **kwargs: Any) -> Any:
        self.refresh()
        return super()._apply(fn, *args, **kwargs)

    def _load_from_state_dict(self, *args: Any, **kwargs: Any) -> None:
        super()._load_from_state_dict(*args, **kwargs)
        self.refresh()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_map": None}


def _answers(answer: Any) -> np.ndarray[Any, Any]:
    """Labels or probabilities; rows of a float tensor that are no probabilities are logits."""
    values = answer.detach().cpu() if isinstance(answer, Tensor) else torch.as_tensor(answer)
    if values.ndim > 1:
        values = values.reshape(-1, values.shape[-1])
        if values.is_floating_point() and values.shape[1] > 1:
            values = values.double()
            shares = bool((values >= 0).all()) and bool(((values.sum(dim=1) - 1).abs() < 1e-3).all())
            values = values if shares else values.softmax(dim=1)
    answers: np.ndarray[Any, Any] = np.from_dlpack(values)
    return answers


def _check_outcome(result: Any) -> None:
    if result.status == "not_finite":
        raise ValueError("a product with the batch's covariance is not finite; scale the input down")
