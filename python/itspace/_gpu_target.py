# SPDX-License-Identifier: Apache-2.0
"""Targets on a GPU, and what is asked of them: the counterpart of `_target` for tensors that stay there."""
from __future__ import annotations

from typing import Any, Dict, Optional, Tuple

import numpy as np

from . import _core, _gpu
from ._arrays import Wrap, number, vector
from ._gpu import Room, Taken
from ._target import Target, _restore

_TARGETS_KEPT = 4


class GpuTarget(Target):
    """A covariance on a GPU. It works in the stream that is current when it is asked, and for each keeps what it needs."""

    __slots__ = ("_taken", "_cores", "_first")

    _taken: Taken
    _cores: Dict[int, Tuple[Room, Any]]
    _first: Tuple[Room, Any]

    @classmethod
    def _of(cls, made_by: str, taken: Taken, **data: Any) -> "GpuTarget":
        self: GpuTarget = object.__new__(cls)
        self._taken = taken
        self._made_by, self._data, self._wrap, self._frame = made_by, data, None, None
        self._cores = {}
        self._first = self._kept_here()
        return self

    def here(self) -> Any:
        """The extension's target, for the current stream and this thread."""
        return self._kept_here()[1]

    def _kept_here(self) -> "Tuple[Room, Any]":
        room = _gpu.room(self._taken)
        kept = self._cores.get(id(room))  # other threads may empty it at any time
        if kept is None:
            if len(self._cores) >= _TARGETS_KEPT:
                self._cores.clear()
            maker = getattr(_gpu.extension(self._taken.name, self._taken.ordinal).Target, self._made_by or "")
            rest = [value for key, value in list(self._data.items())[1:] if key != "check"]
            self._taken.library.used_in(self._taken.array, room.stream)
            kept = (room, maker(room.device, self._taken.array, *rest))
            self._cores[id(room)] = kept
        return kept

    @property
    def _core(self) -> Any:  # type: ignore[override]
        """For what is known of it on the host."""
        return self._first[1]

    @property
    def _itspace_gpu(self) -> int:
        return self._taken.ordinal

    @property
    def device(self) -> str:
        return f"cuda:{self._taken.ordinal}"

    @property
    def mean(self) -> Any:
        """The mean of features, a float64 tensor on their device; None for other targets."""
        mean = self._core.mean
        return None if mean is None else self._taken.library.sent(mean, self._taken.array)

    @property
    def deviations(self) -> Optional[np.ndarray]:
        """Not known on a GPU."""
        return None

    def standardised(self) -> "Target":
        raise TypeError(
            f"this target is on {self.device}, and targets are standardised on the host; make it of X.cpu()"
        )

    def apply(self, Y: Any) -> Any:
        """Sigma @ Y for a (d, k) tensor on the same device, in the dtype of the target."""
        block = self.block(Y, "Y")
        out = block.empty(*block.array.shape)
        self.here().apply(block.array, out)
        return out

    def block(self, value: Any, name: str) -> Taken:
        """A tensor that belongs with this target: on its device, and in its dtype."""
        _gpu.same_device(target=self, **{name: value})
        return _gpu.in_dtype(_gpu.take(value, name), self._taken.float32)

    def __reduce__(self) -> Any:
        return _restore, (self._made_by, dict(self._data))

    def __repr__(self) -> str:
        return f"<itspace.Target {self.kind}, dim {self.dim}, {self.dtype}, on {self.device}>"


def from_covariance(S: Any, check: bool, name: str = "S") -> GpuTarget:
    taken = _gpu.take(S, name)
    module = _gpu.extension(name, taken.ordinal)
    if module.check_symmetric(_gpu.room(taken).device, taken.array, name) > 0:
        taken = taken._replace(array=taken.library.averaged(taken.array))
    if check:
        _check_semidefinite(module, taken)
    return GpuTarget._of("from_covariance", taken, S=taken.array, check=False)


def _check_semidefinite(module: Any, taken: Taken) -> None:
    """By a Cholesky factor there; what has none, or where there is no library to make one, is judged by the host."""
    try:
        fine = module.is_semidefinite(_gpu.room(taken).device, taken.array)
    except RuntimeError as error:
        if not any(name in str(error) for name in ("libcublas", "libcusolver", "cuBLAS", "cuSOLVER")):
            raise
        fine = False
    if not fine:
        _core.Target.from_covariance(_gpu.host_copy(taken.array), True)


def from_features(X: Any, sample_weight: Any) -> GpuTarget:
    taken = _gpu.take(X, "X")
    weights = None if sample_weight is None else vector(_gpu.host_copy(sample_weight), "sample_weight")
    return GpuTarget._of("from_features", taken, X=taken.array, sample_weight=weights)


def from_factor(T: Any) -> GpuTarget:
    taken = _gpu.take(T, "T")
    return GpuTarget._of("from_factor", taken, T=taken.array)


def low_rank_plus_diagonal(U: Any, s: Any, sigma2: Any) -> GpuTarget:
    taken = _gpu.take(U, "U")
    weights, given = vector(_gpu.host_copy(s), "s"), _gpu.host_copy(sigma2)
    rows = int(taken.array.shape[0])
    diagonal = np.full(rows, number(given, "sigma2")) if np.ndim(given) == 0 else vector(given, "sigma2")
    return GpuTarget._of("low_rank_plus_diagonal", taken, U=taken.array, s=weights, sigma2=diagonal)


def as_gpu_target(value: Any, name: str = "target") -> GpuTarget:
    """A target on a GPU, or a covariance there."""
    if isinstance(value, GpuTarget):
        return value
    if isinstance(value, Target) or _gpu.place_of(value) is None:
        raise ValueError(f"{name} is on the CPU and what goes with it on a GPU; move one of them: nothing is moved here")
    taken = _gpu.take(value, name, None)
    if taken.array.ndim != 2 or taken.array.shape[0] != taken.array.shape[1]:
        raise ValueError(
            f"{name} is a tensor of shape {tuple(taken.array.shape)}; a covariance is square. If its rows are samples, pass "
            "itspace.Target.from_features(X)"
        )
    return from_covariance(value, False, name)


def in_precision(target: GpuTarget, precision: Optional[str]) -> None:
    if precision is not None and precision != str(target.dtype):
        raise ValueError(
            f"precision is {precision!r} and the target is {target.dtype} on {target.device}; there a run has the precision "
            "of its tensor: convert that, as X.double() does in torch"
        )


def for_align(target: Any, start: Any, precision: Optional[str]) -> "Tuple[GpuTarget, Any]":
    """What `align` works on: the target, and the start as a tensor of its dtype."""
    _gpu.same_device(target=target, start=start)
    made = as_gpu_target(target)
    in_precision(made, precision)
    return made, None if start is None else made.block(start, "start").array


def objective_and_gradient(Y: Any, target: Any) -> "Tuple[float, Any]":
    _gpu.same_device(Y=Y, target=target)
    made = as_gpu_target(target)
    given = _gpu.take(Y, "Y")
    block = made.block(Y, "Y")
    gradient = block.empty(*block.array.shape)
    module = _gpu.extension("Y", given.ordinal)
    value = module.objective_and_gradient(made.here(), block.array, gradient)
    return value, _gpu.in_dtype(block._replace(array=gradient), given.float32).array


def objective_and_features_gradient(Y: Any, X: Any, sample_weight: Any) -> "Tuple[float, Any, Any]":
    _gpu.same_device(Y=Y, X=X)
    if sample_weight is not None:
        raise ValueError("sample_weight is given and X is on a GPU, where the gradient knows no weights; use X.cpu()")
    made = from_features(X, None)
    given = _gpu.take(Y, "Y")
    block = made.block(Y, "Y")
    gradient, features_gradient = block.empty(*block.array.shape), block.empty(*made._taken.array.shape)
    module = _gpu.extension("Y", given.ordinal)
    value = module.objective_and_features_gradient(made.here(), block.array, gradient, features_gradient)
    return value, _gpu.in_dtype(block._replace(array=gradient), given.float32).array, features_gradient


def remainder_of(target: Any, factor: Any, floor: float, shrinkage: Any) -> float:
    made = as_gpu_target(target)
    if isinstance(shrinkage, str):
        raise ValueError(f"shrinkage is {shrinkage!r} and the target is on {made.device}, where it must be a number")
    block = made.block(factor, "factor")
    module = _gpu.extension("factor", block.ordinal)
    value: float = module.remainder_of(made.here(), block.array, floor, number(shrinkage, "shrinkage"))
    return value


def on_host(source: Any, name: str) -> "Tuple[Target, Wrap]":
    """The target made of a copy on the host, and what sends arrays back: for what needs a decomposition of the data."""
    made = as_gpu_target(source, name)
    data = {key: _gpu.host_copy(value) for key, value in made._data.items()}
    host: Target = getattr(Target, str(made._made_by))(**data)
    return host, lambda array: made._taken.library.sent(array, made._taken.array)
