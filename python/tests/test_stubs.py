# SPDX-License-Identifier: Apache-2.0
"""The stub of the extension names what the extension has, and the package passes mypy."""
import ast
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import itspace
from itspace import _core

PACKAGE = pathlib.Path(itspace.__file__).parent


def names_of(tree):
    return {node.name for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}


def test_the_stub_names_what_the_module_has():
    tree = ast.parse((PACKAGE / "_core.pyi").read_text())
    there = {name for name in vars(_core) if not name.startswith("__")}
    assert names_of(tree) == there
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            real = {name for name in vars(getattr(_core, node.name)) if not name.startswith("__")}
            assert {n for n in names_of(node) if not n.startswith("__")} == real, node.name


def test_the_package_says_it_is_typed():
    assert (PACKAGE / "py.typed").exists()


def mypy(folder, *arguments):
    environment = dict(os.environ)
    if PACKAGE.parent.name != "site-packages":  # a package that is used in place is not found by itself
        environment["MYPYPATH"] = str(PACKAGE.parent)
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(folder / "cache"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment, cwd=folder)


def test_a_users_program_is_checked(tmp_path):
    pytest.importorskip("mypy")
    user = tmp_path / "user.py"
    user.write_text(
        "import numpy as np\n"
        "import itspace\n"
        "result: itspace.AlignResult = itspace.align(np.eye(3), rank=2)\n"
        "value: float = result.objective\n"
        "distance: float = itspace.frechet_distance(np.zeros(3), np.eye(3), np.zeros(3), np.eye(3))\n"
    )
    done = mypy(tmp_path, str(user))
    assert done.returncode == 0, done.stdout + done.stderr
    user.write_text("import itspace\nvalue: int = itspace.gap(1.0, 2.0, 0.0)\nitspace.align(3)\n")
    done = mypy(tmp_path, str(user))
    assert "user.py:2" in done.stdout and 'Missing named argument "rank"' in done.stdout, done.stdout + done.stderr


def test_the_package_passes_mypy(tmp_path):
    pytest.importorskip("mypy")
    if int(np.__version__.split(".")[0]) < 2:
        pytest.skip("before NumPy 2 a plain ndarray is an incomplete type under --strict")
    done = mypy(tmp_path, "--ignore-missing-imports", "-p", "itspace")
    assert done.returncode == 0, done.stdout + done.stderr
