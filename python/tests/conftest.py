# SPDX-License-Identifier: Apache-2.0
import os
import shutil

import numpy as np
import pytest


@pytest.fixture
def rng():
    return np.random.default_rng(20240)


@pytest.fixture
def program():
    """The program `itspace`, for tests that hold the package against it."""
    found = os.environ.get("ITSPACE_PROGRAM") or shutil.which("itspace")
    if not found:
        pytest.skip("no itspace program here (set ITSPACE_PROGRAM)")
    return found
