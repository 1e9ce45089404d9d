# SPDX-License-Identifier: Apache-2.0
"""What the public functions take, in the words of a type checker."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Protocol, Sequence, Union

import numpy as np


class CovarianceOperator(Protocol):
    """A target of your own: what `align` and all functions of a target need to know of a covariance.

    ``dim`` and ``trace`` may be attributes or methods without arguments.
    """

    @property
    def dim(self) -> Any:
        """The dimension d, an integer."""

    @property
    def trace(self) -> Any:
        """The trace of Sigma, asked for after the first ``apply``."""

    def apply(self, Y: Any, /) -> Any:
        """The product Sigma @ Y for a (d, k) array, any k."""


class _HasArray(Protocol):
    def __array__(self, *args: Any, **kwargs: Any) -> Any: ...


class _HasDlpack(Protocol):
    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...


if TYPE_CHECKING:
    from ._target import Target

# Narrower than NumPy's ArrayLike, for which a plain number is an array.
Array = Union["np.ndarray[Any, Any]", _HasArray, _HasDlpack, Sequence[float], Sequence[Sequence[float]]]
Covariance = Union["Target", Array, CovarianceOperator]
Rank = Union[int, Literal["auto"]]
Solver = Literal["paper", "ritz"]
Route = Literal["auto", "qr", "gram", "factor", "root"]
Precision = Literal["float32", "mixed", "float64"]
MapKind = Literal["monge", "whiten", "mean", "scale", "scale+monge"]
Shrink = Literal["none", "noise", "halves"]
