# SPDX-License-Identifier: Apache-2.0
"""The module in a process with other C++ runtimes beside its own."""
import importlib.util
import itertools
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from itspace import _core


def test_no_stream_and_no_locale():
    """Texts are made without them: where the runtime is linked into the module, the first one would be a crash."""
    nm = shutil.which("nm")
    if nm is None:
        pytest.skip("needs nm (binutils)")
    out = subprocess.run([nm, "-D", "-C", "-u", _core.__file__], check=True, capture_output=True, text=True).stdout
    assert "Py" in out
    assert re.findall(r".*std::[a-z_0-9:]*(?:stream|locale|ios_base|basic_ios|facet).*", out) == []


# What is imported first brings its C++ runtime, its BLAS and its OpenMP into the process, and the others get along with them.
PROGRAM = """
import {imports}
import numpy
from oracle import objective

X = numpy.random.default_rng(0).standard_normal((60, 12))
sigma = numpy.cov(X, rowvar=False)
result = itspace.align(itspace.Target.from_features(X), rank=3)
assert result.certified
assert abs(result.trace["objective"][-1] - objective(result.factor, sigma)) <= 1e-12 * numpy.trace(sigma)
try:
    itspace.align(numpy.full((4, 4), numpy.nan), rank=2)
    raise AssertionError("what is not finite was not refused")
except ValueError:  # went through both runtimes
    pass
if {with_torch}:
    whole = numpy.random.default_rng(1).integers(-9, 9, (96, 96))  # products that no order of sums rounds
    tensor = torch.tensor(whole.tolist(), dtype=torch.float64)
    assert (tensor @ tensor).tolist() == (whole @ whole).tolist()
    assert itspace.align(itspace.Target.from_features(X), rank=3).factor.tobytes() == result.factor.tobytes()
"""
ORDERS = [*itertools.permutations(("numpy", "itspace")), *itertools.permutations(("numpy", "torch", "itspace"))]


@pytest.mark.parametrize("order", ORDERS, ids=" ".join)
def test_every_order_of_imports(order, tmp_path):
    if "torch" in order and importlib.util.find_spec("torch") is None:
        pytest.skip("torch is not installed")
    program = PROGRAM.format(imports=", ".join(order), with_torch="torch" in order)
    paths = [str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        cwd=tmp_path,  # not where a source tree could be taken for the package
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, f"exit status {done.returncode}: {done.stderr}"
