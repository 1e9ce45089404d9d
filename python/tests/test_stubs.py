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

PACKAGE = pathlib.Path(itspace.__file__).parent


def names_of(tree):
    return {node.name for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}


@pytest.mark.parametrize("module", ["_core", "_cuda"])
def test_the_stub_names_what_the_module_has(module):
    extension = pytest.importorskip(f"itspace.{module}", reason="itspace was built without CUDA", exc_type=ImportError)
    tree = ast.parse((PACKAGE / f"{module}.pyi").read_text())
    there = {name for name in vars(extension) if not name.startswith("__")}
    assert names_of(tree) == there
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            real = {name for name in vars(getattr(extension, node.name)) if not name.startswith("__")}
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


USER = """\
import numpy as np
import itspace
class Attributes:
    dim = 3
    trace = 6.0
    def apply(self, block: np.ndarray) -> np.ndarray: return 2 * block
class Methods:
    def dim(self) -> int: return 3
    def trace(self) -> float: return 6.0
    def apply(self, Y: np.ndarray) -> np.ndarray: return 2 * Y
S = np.eye(3)
itspace.align(Attributes(), rank=2)
itspace.align(Methods(), rank="auto")
itspace.align([[1.0, 0.0], [0.0, 1.0]], np.eye(2))
itspace.align(itspace.Target.from_factor(S), rank=2, solver="ritz", route="qr", alpha="line-search")
operator: itspace.CovarianceOperator = Attributes()
"""
WRONG = [
    ("value: int = itspace.gap(1.0, 2.0, 0.0)", "assignment"),
    ("itspace.align(3, rank=2)", "arg-type"),
    ("itspace.align(object(), rank=2)", "arg-type"),
    ('itspace.align(S, rank=2, solver="Ritz")', "arg-type"),
    ('itspace.align(S, rank=2, route="fast")', "arg-type"),
    ('itspace.align(S, rank="all")', "arg-type"),
    ("itspace.align(S, rank=2.5)", "arg-type"),
    ('itspace.align(S, rank=2, alpha="big")', "arg-type"),
    ('itspace.TransportMap.between(S, S, None, S, S, None, kind="coral")', "arg-type"),
    ("itspace.truncate(3, 1)", "arg-type"),
]


def test_mistakes_of_a_user_are_found(tmp_path):
    pytest.importorskip("mypy")
    user = tmp_path / "user.py"
    user.write_text(USER + "".join(line + "\n" for line, _ in WRONG))
    # A plain ndarray is an incomplete type under --strict before NumPy 2.
    done = mypy(tmp_path, "--allow-any-generics", str(user))
    first = USER.count("\n") + 1
    found = [tuple(line.split(":")[1:2]) + (line.rsplit("[", 1)[-1].rstrip("]"),) for line in done.stdout.splitlines()[:-1]]
    errors = [(int(number), kind) for number, kind in found]
    assert errors == [(first + k, kind) for k, (_, kind) in enumerate(WRONG)], done.stdout + done.stderr


def test_the_package_passes_mypy(tmp_path):
    pytest.importorskip("mypy")
    if int(np.__version__.split(".")[0]) < 2:
        pytest.skip("before NumPy 2 a plain ndarray is an incomplete type under --strict")
    done = mypy(tmp_path, "--ignore-missing-imports", "-p", "itspace")
    assert done.returncode == 0, done.stdout + done.stderr
