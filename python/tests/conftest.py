# SPDX-License-Identifier: Apache-2.0
import os
import shutil

import numpy as np
import pytest


@pytest.fixture
def rng():
    return np.random.default_rng(20240)


@pytest.fixture
def domains():
    """A source of 300 samples and a target of 250, of another mean and covariance."""
    rng = np.random.default_rng(7)
    mix = rng.normal(size=(8, 8))
    Xs = rng.normal(size=(300, 8)) @ mix
    Xt = rng.normal(size=(250, 8)) @ (mix @ np.diag([3, 0.5, 1, 1, 2, 1, 1, 0.3])) + rng.normal(size=8)
    return Xs, Xt


@pytest.fixture
def program():
    """The program `itspace`, for tests that hold the package against it."""
    found = os.environ.get("ITSPACE_PROGRAM") or shutil.which("itspace")
    if not found:
        pytest.skip("no itspace program here (set ITSPACE_PROGRAM)")
    return found
