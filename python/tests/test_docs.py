# SPDX-License-Identifier: Apache-2.0
"""The Python of the documentation runs, and prints what the page says.

A block of ``python`` is executed, block after block of a page in one namespace. A line ``print(...)  # text`` must
print that text. A block under a comment ``<!-- needs: module -->`` is skipped, visibly, where the module is missing.
"""

import contextlib
import importlib.util
import io
import re
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "docs" / "python.md", ROOT / "docs" / "scaling.md", ROOT / "README.md"]
BLOCK = re.compile(r"(?:<!-- needs: ([\w, ]+) -->\n+)?```python\n(.*?)```", re.DOTALL)


def blocks():
    for page in PAGES:
        text = page.read_text(encoding="utf-8") if page.exists() else ""
        for match in BLOCK.finditer(text):
            line = text[: match.start(2)].count("\n")
            needs = [name.strip() for name in (match[1] or "").split(",") if name.strip()]
            yield pytest.param(page, line, needs, match[2], id=f"{page.name}:{line + 1}")


namespaces: dict[Path, dict] = {}


@pytest.mark.parametrize(("page", "line", "needs", "code"), list(blocks()))
def test_block(page, line, needs, code):
    for name in needs:
        if importlib.util.find_spec(name.split(".")[0]) is None:
            pytest.skip(f"{name} is not installed")
        if name == "pyriemann" and not hasattr(np.ndarray, "mT"):
            pytest.skip(f"pyRiemann needs NumPy 2; this is {np.__version__}")
    namespace = namespaces.setdefault(page, {})
    printed = io.StringIO()
    # The lines keep their numbers in the page, for tracebacks.
    program = compile("\n" * line + code, str(page), "exec")
    with contextlib.redirect_stdout(printed):
        exec(program, namespace)
    promised = [m[1].strip() for m in re.finditer(r"^\s*print\(.*\)  # (.*)$", code, re.MULTILINE)]
    if promised:
        assert printed.getvalue().splitlines() == promised


def test_there_is_something_to_test():
    assert len(list(blocks())) > 10
