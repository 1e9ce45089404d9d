# SPDX-License-Identifier: Apache-2.0
"""The examples in the docstrings of the scikit-learn, PyTorch and Dask faces."""

import doctest
import importlib

import pytest


MODULES = [
    ("sklearn", "sklearn", 3),
    ("cluster", "sklearn", 4),
    ("_domains", "sklearn", 2),
    ("torch", "torch", 12),
    ("_torch_loss", "torch", 7),
    ("dask", "dask", 6),
    ("_dask_aligner", "dask", 6),
]


@pytest.mark.parametrize(("module", "needs", "examples"), MODULES)
def test_docstrings(module, needs, examples):
    pytest.importorskip(needs, reason=f"{needs} is not installed")
    results = doctest.testmod(importlib.import_module(f"itspace.{module}"))
    assert results.failed == 0 and results.attempted >= examples
