# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C, and other threads, while a run is on."""
import signal
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest

import itspace

# The handler's own alarm plays the user: it fires while a run that would take minutes is under way.
SCRIPT = """
import signal, sys
import numpy as np, itspace

signal.signal(signal.SIGALRM, signal.default_int_handler)
S = np.eye(300)
try:
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    {call}
except KeyboardInterrupt:
    print("interrupted")
result = itspace.align(S, rank=2, steps=3)
print(result.status)
"""
LONG = {
    "align": "itspace.align(S, rank=8, steps=10**8, alpha=0.1)",
    # It ends by itself at rounding level, so the target is one that takes it seconds.
    "ritz": "itspace.align(np.diag(1 / np.arange(1.0, 2001.0)), rank=64, steps=10**8, solver='ritz')",
    "callback": "itspace.align(S, rank=8, steps=10**8, alpha=0.1, callback=lambda step, Y: None)",
    "batch": "itspace.align_batch(np.stack([S] * 4), rank=8, steps=10**7, alpha=0.1)",
    "many": "itspace.align_batch(np.broadcast_to(np.eye(16), (10**5, 16, 16)).copy(), rank=4, steps=100, alpha=0.1)",
    "shift": "itspace.shift_test(*np.random.default_rng(0).normal(size=(2, 500, 200)), permutations=10**6)",
    "stack": "itspace.bures_wasserstein(np.stack([S] * 200), np.stack([S] * 200))",
}


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs signal.setitimer")
@pytest.mark.parametrize("what", LONG)
def test_ctrl_c_stops_a_long_run_and_leaves_python_usable(what):
    code = textwrap.dedent(SCRIPT).format(call=LONG[what])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stdout.split() == ["interrupted", "step_limit"], done.stderr


@pytest.fixture
def no_switching():
    """Threads change only where the lock is given up, not because time has passed."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e6)
    yield
    sys.setswitchinterval(before)


def test_the_lock_is_released(no_switching):
    """Another thread stops the run: it could not, were the lock held between the calls of the callback."""
    started, stop = threading.Event(), threading.Event()

    def callback(step, factor):
        started.set()
        return stop.is_set()

    def other():
        started.wait()
        stop.set()

    thread = threading.Thread(target=other)
    thread.start()
    result = itspace.align(np.eye(200), rank=2, steps=20000, alpha=0.1, callback=callback)
    thread.join()
    assert result.status == "stopped"


def test_runs_side_by_side_give_the_same_bits():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((300, 60))
    target = itspace.Target.from_features(X)
    expected = itspace.align(target, rank=5, steps=20).factor
    found = [None] * 4

    def work(k):
        found[k] = itspace.align(target, rank=5, steps=20).factor

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for factor in found:
        np.testing.assert_array_equal(factor, expected)
