# SPDX-License-Identifier: Apache-2.0
"""Certified low-rank covariance alignment under the Bures-Wasserstein distance.

>>> import numpy as np, itspace
>>> X = np.random.default_rng(0).standard_normal((100, 20))
>>> result = itspace.align(itspace.Target.from_features(X), rank=4, steps=3)
>>> result.certified
True

`itspace.sklearn` (an estimator), `itspace.cluster` (k-means of covariances), `itspace.torch` (a loss and a layer),
`itspace.mpi` (samples spread over processes) and `itspace.dask` (rows on a cluster) are imported when asked for.
"""
from ._align import align
from ._barycenter import BarycenterResult, barycenter
from ._batch import BatchResult, align_batch
from ._core import version as _version
from ._covariance import covariance
from ._distance import (
    FrechetAccumulator,
    bures_wasserstein,
    frechet_distance,
    frechet_distance_from_features,
    gap,
    gaussian_w2,
    geodesic,
    leading_eigenvalues,
    truncate,
    truncate_factor,
)
from ._follow import FollowGate
from ._gradient import objective_and_features_gradient, objective_and_gradient
from ._map import TransportMap
from ._models import LowRankGaussian, model_of, model_of_features
from ._online import Drift, Observation, OnlineAligner
from ._result import AlignResult, ResolutionWarning
from ._seen import Kept, Seen, SeenShift, seen_shift
from ._shift import MovedDirection, ShiftOutcome, ShiftTest, shift_test
from ._starts import auto_rank, random_start, start_from
from ._target import Target
from ._threads import set_threads, thread_limit, threads
from ._types import CovarianceOperator
from ._verify import verify

__version__: str = _version()

__all__ = [
    "AlignResult",
    "BarycenterResult",
    "BatchResult",
    "CovarianceOperator",
    "Drift",
    "FollowGate",
    "FrechetAccumulator",
    "Kept",
    "LowRankGaussian",
    "MovedDirection",
    "Observation",
    "OnlineAligner",
    "ResolutionWarning",
    "Seen",
    "SeenShift",
    "ShiftOutcome",
    "ShiftTest",
    "Target",
    "TransportMap",
    "align",
    "align_batch",
    "auto_rank",
    "barycenter",
    "bures_wasserstein",
    "covariance",
    "frechet_distance",
    "frechet_distance_from_features",
    "gap",
    "gaussian_w2",
    "geodesic",
    "leading_eigenvalues",
    "model_of",
    "model_of_features",
    "objective_and_features_gradient",
    "objective_and_gradient",
    "random_start",
    "seen_shift",
    "set_threads",
    "shift_test",
    "start_from",
    "thread_limit",
    "threads",
    "truncate",
    "truncate_factor",
    "verify",
]
