# SPDX-License-Identifier: Apache-2.0
"""The examples in the docstrings of the scikit-learn and PyTorch faces."""

import doctest
import importlib

import pytest


@pytest.mark.parametrize(("module", "needs", "examples"), [("sklearn", "sklearn", 3), ("cluster", "sklearn", 4), ("_domains", "sklearn", 2), ("torch", "torch", 10)])
def test_docstrings(module, needs, examples):
    pytest.importorskip(needs, reason=f"{needs} is not installed")
    results = doctest.testmod(importlib.import_module(f"itspace.{module}"))
    assert results.failed == 0 and results.attempted >= examples
