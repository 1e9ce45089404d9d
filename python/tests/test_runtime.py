# SPDX-License-Identifier: Apache-2.0
"""The module in a process with other C++ runtimes beside its own."""
import re
import shutil
import subprocess

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
