# SPDX-License-Identifier: Apache-2.0
"""The defaults are those of the C++ library."""
import inspect

import numpy as np
import pytest

import itspace
from itspace import _core

# Where Python goes its own way, and on purpose: one call in a notebook should come near the end of the road.
OWN = {"steps": 5}


def test_the_defaults_of_align_are_those_of_the_library():
    parameters = inspect.signature(itspace.align).parameters
    for name, value in _core._default_options().items():
        assert parameters[name].default == OWN.get(name, value), name


@pytest.mark.parametrize("steps, guard", [(1, 16), (2, 16), (3, 8), (5, 8)])
def test_guard_follows_from_the_steps_as_in_the_library(rng, steps, guard):
    features = rng.normal(size=(300, 60)) * np.linspace(3, 0.5, 60)
    target = itspace.Target.from_features(features)
    start = itspace.start_from(itspace.Target.from_features(features[:40]), 4)

    def factor(**options):
        return itspace.align(target, start, steps=steps, solver="ritz", **options).factor

    core = _core.align(
        target._core, start, 4, steps, None, None, False, "ritz", "auto", None, 0, None, False
    )[0]  # fmt: skip
    assert np.array_equal(factor(), core)
    assert np.array_equal(factor(), factor(guard=guard))
    assert not np.array_equal(factor(), factor(guard=24 - guard))


def test_guard_follows_from_the_steps_in_the_faces(rng):
    aligner = pytest.importorskip("itspace.sklearn", reason="scikit-learn is not installed").CovarianceAligner
    Xs, Xt = rng.normal(size=(200, 40)), rng.normal(size=(150, 40)) * np.linspace(2, 0.5, 40)

    def factor(**options):
        return aligner(rank=3, steps=2, solver="ritz", **options).fit(Xs, Xt).factor_

    assert np.array_equal(factor(), factor(guard=16))
    assert not np.array_equal(factor(), factor(guard=8))
