# SPDX-License-Identifier: Apache-2.0
"""What moved between two domains and how much of it is noise; and the maps that undo it, each shrunk by that noise.

A map keeps the share t = max(0, 1 - noise/observed) of a shift (positive-part James-Stein), separately for the mean,
for each feature's scale and for the low-rank part: the displacement interpolation x + t (T(x) - x), which is the
identity where nothing is seen beyond noise.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any, Callable, NamedTuple, Optional, Sequence, Tuple, Union

import numpy as np

import itspace
from itspace import _core
from itspace._gate import Shift
from itspace._types import MapKind

Array = np.ndarray[Any, Any]
# Samples and a factor to start from (None: the best of the samples), to the model's factor and remainder.
FitModel = Callable[[Any, Optional[Array]], Tuple[Array, float]]

_SAME_DEVIATION = 1e-3
MOST_SHUFFLED = 1 << 26  # rows whose numbers are listed to be shuffled
_CLUSTERED_HERE = 2000  # rows of a cluster of machines that are brought here


class SpreadRows(ABC):
    """Samples that are not an array in this process, such as those of a cluster: what is asked of them where they are."""

    shape: Tuple[int, int]
    dtype: Any

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def mean_of_rows(self) -> Array: ...

    @abstractmethod
    def powers(self, mean: Array) -> Tuple[Array, Array]:
        """As `powers_about`."""

    @abstractmethod
    def scaled(self, mean: Array, factors: Array) -> "SpreadRows":
        """As `scaled_rows`."""

    @abstractmethod
    def halves(self, seed: int) -> Sequence["SpreadRows"]:
        """Two random halves, with the rows of `first_half` in the first."""

    @abstractmethod
    def taken(self, chosen: Optional[Array]) -> Array:
        """The rows of those numbers, in ascending order, here; None: all."""


Samples = Union[Array, SpreadRows]


class Side:
    """One domain: its moments, and how sure they are."""

    def __init__(self, X: Samples) -> None:
        self.samples = len(X)
        if isinstance(X, SpreadRows):
            self.mean = X.mean_of_rows()
            squares, fourths = X.powers(self.mean)
        else:
            self.mean = X.mean(axis=0, dtype=np.float64)
            squares, fourths = powers_about(X, self.mean)
        self.deviations = np.zeros(X.shape[1])
        self.log_deviation_noise = np.zeros(X.shape[1])  # variance of the logarithm of each estimated deviation
        variance = squares / max(1, self.samples - 1)
        # What rounding of the mean leaves of a constant is no variance.
        constant = variance <= (10 * np.finfo(X.dtype).eps * np.abs(self.mean)) ** 2
        variance[constant] = 0
        self.deviations = np.sqrt(variance)
        kurtosis = np.where(constant, 1, fourths / self.samples / np.where(constant, 1, variance**2))
        self.log_deviation_noise = np.maximum(kurtosis - 1, 0) / (4 * self.samples)

    @property
    def trace(self) -> float:
        return float((self.deviations**2).sum())

    def standardised(self, X: Samples) -> Any:
        varies = self.deviations > 0
        factors = np.where(varies, 1 / np.where(varies, self.deviations, 1), 0)
        return X.scaled(self.mean, factors) if isinstance(X, SpreadRows) else scaled_rows(X, self.mean, factors)


class Clusters(NamedTuple):
    """The source as a mix of a few clusters; a change of class shares is another mix of them."""

    means: Array  # k x d
    noise: Array  # k: the squared error of each mean


class Source(Side):
    """The source: a side, its two models (plain and standardised), its noise and its clusters."""

    def __init__(self, X: Samples, fit: FitModel, seed: int) -> None:
        super().__init__(X)
        self.seed = seed
        self.plain = fit(X, None)
        self.plain_noise = halves_displacement(X, self.plain[0], fit, seed)
        unit = self._common_deviation()
        if unit is not None:  # users standardise by the source, most often: then the two models are one
            self.scaled = self.plain[0] / unit, self.plain[1] / unit**2
            self.scaled_noise = self.plain_noise / unit**2
        else:
            Z = self.standardised(X)
            self.scaled = fit(Z, None)
            self.scaled_noise = halves_displacement(Z, self.scaled[0], fit, seed)
        self.clusters, self.cluster_shares = clusters_of(X, self.mean, self.plain[0], seed)

    def _common_deviation(self) -> Optional[float]:
        varying = self.deviations[self.deviations > 0]
        if len(varying) == 0 or np.ptp(varying) > _SAME_DEVIATION * varying.max():
            return None
        return float(varying.mean())


class Comparison:
    """A target beside its source: what moved, what is kept of it, and the maps."""

    def __init__(self, source: Source, X: Samples, fit: FitModel, plain: Optional[Tuple[Array, float]] = None) -> None:
        self.source, self.target = source, Side(X)
        target = self.target
        self.move = source.mean - target.mean
        squared_move = float(self.move @ self.move)
        mean_noise = source.trace / source.samples + target.trace / target.samples
        self.mean_kept = kept(mean_noise, squared_move)
        self.plain = fit(X, source.plain[0]) if plain is None else plain
        Z = target.standardised(X)
        self.scaled = fit(Z, source.scaled[0])
        covariance = displacement(self.plain, source.plain)
        scaled_covariance = displacement(self.scaled, source.scaled)
        noise = (source.plain_noise + halves_displacement(X, source.plain[0], fit, source.seed)) / 4
        scaled_noise = (source.scaled_noise + halves_displacement(Z, source.scaled[0], fit, source.seed)) / 4
        self.covariance_kept = kept(noise, covariance)
        self.scaled_kept = kept(scaled_noise, scaled_covariance)
        self.deviations_kept = self._kept_of_deviations()
        self.noise_share = min(1.0, (mean_noise + noise) / max(squared_move + covariance, 1e-300))
        total = squared_move + covariance
        self.shift = Shift(
            mean_share=squared_move / total if total > 0 else 0.0,
            mean_kept=self.mean_kept,
            covariance=covariance / source.trace if source.trace > 0 else np.inf,
            covariance_kept=self.covariance_kept,
            covariance_kept_scaled=self.scaled_kept,
            unexplained=unexplained_move(source.clusters, source.mean, target) if self.mean_kept > 0 else 0.0,
        )

    def _ratios(self) -> Array:
        """sigma_source/sigma_target of each feature; 1 where one side has nothing to scale by."""
        both = (self.source.deviations > 0) & (self.target.deviations > 0)
        return np.where(both, self.source.deviations / np.where(both, self.target.deviations, 1), 1.0)

    def _kept_of_deviations(self) -> Array:
        """Of each feature by itself, and of all together: of many that did not move some seem to."""
        squared = np.log(self._ratios()) ** 2
        noise = self.source.log_deviation_noise + self.target.log_deviation_noise
        each = np.where(squared > 0, np.maximum(0, 1 - noise / np.where(squared > 0, squared, 1)), 0.0)
        known = noise > 0
        return each * (kept(1.0, float((squared[known] / noise[known]).mean())) if known.any() else 1.0)

    @cached_property
    def remixed_mean(self) -> Array:
        """The source's mean, with the shares of its clusters that the target's mean makes likely."""
        source = self.source
        return _core.remixed_mean(source.clusters.means, source.cluster_shares, source.mean, self.target.mean)

    def map(self, kind: MapKind, shrink: bool = True, remixed: bool = False) -> itspace.TransportMap:
        """The map of a kind, from the target to the source, shrunk by noise or not; to the source's mean, or the remixed."""
        kept = itspace.Kept()
        if shrink:
            # Of the two frames the one with less noise: a few rare large values make most of it in one of them.
            covariance = max(self.covariance_kept, self.scaled_kept) if kind == "monge" else self.scaled_kept
            kept = itspace.Kept(self.mean_kept, covariance, self.deviations_kept if kind.startswith("scale") else None)
        if kind == "monge" and min(self.plain[1], self.source.plain[1]) <= 0:
            kind, kept = "mean", kept._replace(covariance=1.0)  # samples that do not vary: there is no more to map
        to = self._model(kind, True)
        if remixed:
            to = to._replace(mean=self.remixed_mean)
        return itspace.TransportMap.from_models(self._model(kind, False), to, kind, kept=kept)

    def _model(self, kind: MapKind, of_source: bool) -> itspace.LowRankGaussian:
        side: Side = self.source if of_source else self.target
        if kind in ("mean", "scale"):
            mean_variance = side.trace / len(side.mean)
            factor, remainder = np.zeros((len(side.mean), 0)), mean_variance if mean_variance > 0 else 1.0
        elif kind == "scale+monge":
            factor, remainder = self.source.scaled if of_source else self.scaled
        else:
            factor, remainder = self.source.plain if of_source else self.plain
        return itspace.LowRankGaussian(
            factor, side.mean, remainder, side.deviations, kind == "scale+monge", float(side.samples)
        )


def halves_displacement(X: Samples, start: Array, fit: FitModel, seed: int) -> float:
    """Squared displacement of the map between two random halves: four times the noise of a shift seen from all of X."""
    if len(X) < 4:
        return np.inf
    halves: Sequence[Samples]
    if isinstance(X, SpreadRows):
        halves = X.halves(seed)
    else:
        chosen = first_half(len(X), seed)
        halves = [np.ascontiguousarray(X[chosen]), np.ascontiguousarray(X[~chosen])]
    first = fit(halves[0], start)
    return displacement(fit(halves[1], first[0]), first)


def first_half(samples: int, seed: int) -> Array:
    """Which rows are in the first of two random halves."""
    chosen: Array = np.zeros(samples, dtype=bool)
    chosen[np.array_split(np.random.default_rng(seed).permutation(samples), 2)[0]] = True
    return chosen


def expected_displacement(factor: Array, remainder: float, samples_from: float, samples_to: float) -> float:
    """The average of W2^2 between the covariances of two samples of the model's normal distribution, to first order.

    (c/2) [sum_ij l_i l_j/(l_i + l_j) + sum_i l_i/2] over the eigenvalues l, with c = 1/n + 1/n'; those outside the
    factor are all the remainder, so that the double sum is r x r and closed terms.
    """
    inside = np.linalg.svd(factor, compute_uv=False) ** 2 + remainder
    outside = len(factor) - len(inside)
    pairs = float((np.outer(inside, inside) / np.add.outer(inside, inside)).sum())
    pairs += 2 * outside * float((inside * remainder / (inside + remainder)).sum()) + outside**2 * remainder / 2
    total = float(inside.sum()) + outside * remainder
    return (1 / samples_from + 1 / samples_to) / 2 * (pairs + total / 2)


def clusters_of(X: Samples, mean: Array, factor: Array, seed: int) -> Tuple[Clusters, Array]:
    """The source's clusters, in the span of the factor, with means in all features; and the share of the rows in each.

    Of rows elsewhere a sample is brought here.
    """
    if isinstance(X, SpreadRows):
        X = rows_here(X, _CLUSTERED_HERE, seed)
    directions = np.ascontiguousarray(factor, dtype=np.float64)
    means, noise, shares = _core.cluster_means(np.ascontiguousarray(X), mean, directions, seed)
    return Clusters(means, noise), shares


def powers_about(X: Array, mean: Array) -> Tuple[Array, Array]:
    """The sums of second and fourth powers about the mean, column by column."""
    squares, fourths = np.zeros(X.shape[1]), np.zeros(X.shape[1])
    for rows in _chunks(X):
        centred = (rows - mean) ** 2
        squares += centred.sum(axis=0)
        fourths += (centred**2).sum(axis=0)
    return squares, fourths


def scaled_rows(X: Array, mean: Array, factors: Array) -> Array:
    return np.ascontiguousarray((X - mean.astype(X.dtype)) * factors.astype(X.dtype))


def rows_here(X: Samples, most: int, seed: int) -> Array:
    """All rows, or so many of them, drawn and in their order."""
    chosen = None if len(X) <= most else np.sort(_drawn(np.random.default_rng(seed), len(X), most))
    if isinstance(X, SpreadRows):
        return X.taken(chosen)
    return X if chosen is None else X[chosen]


def _drawn(random: np.random.Generator, samples: int, count: int) -> Array:
    """Row numbers, none twice; without a list of all of them where there are very many."""
    return random.permutation(samples)[:count] if samples <= MOST_SHUFFLED else random.choice(samples, count, replace=False)




def unexplained_move(clusters: Clusters, source_mean: Array, target: Side) -> float:
    """The share of the mean's squared move that is left when the source's clusters may be mixed anew, beyond noise."""
    return _core.unexplained_move(*clusters, source_mean, target.mean, target.trace / target.samples)


def kept(noise: float, observed: float) -> float:
    """The share of an observed square that is beyond its noise."""
    return max(0.0, 1 - noise / observed) if observed > 0 else 0.0


def displacement(model: Tuple[Array, float], to: Tuple[Array, float]) -> float:
    """W2^2 between two centred models, each a factor and a remainder."""
    if min(model[1], to[1]) <= 0:  # samples that do not vary: there is nothing to map
        return 0.0
    zeros = np.zeros(len(model[0]))
    first, second = (itspace.LowRankGaussian(factor, zeros, remainder) for factor, remainder in (model, to))
    return max(0.0, float(itspace.TransportMap.from_models(first, second).displacement))


def _chunks(X: Array, rows: int = 4096) -> Any:
    for begin in range(0, len(X), rows):
        yield X[begin : begin + rows].astype(np.float64)
