# SPDX-License-Identifier: Apache-2.0
"""Every public function has an example, and the examples run."""
import doctest
import importlib
import inspect

import pytest

import itspace


MODULES = ("", "._align", "._distance", "._gradient", "._map", "._models", "._seen", "._starts", "._target", "._verify")


@pytest.mark.parametrize("name", ["itspace" + module for module in MODULES])
def test_examples(name):
    failed, _ = doctest.testmod(importlib.import_module(name))
    assert failed == 0


@pytest.mark.parametrize("name", itspace.__all__)
def test_every_public_name_is_documented(name):
    value = getattr(itspace, name)
    assert value.__doc__
    if inspect.isfunction(value):
        assert ">>>" in value.__doc__, name
