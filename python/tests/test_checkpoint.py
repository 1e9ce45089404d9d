# SPDX-License-Identifier: Apache-2.0
"""A run that is killed goes on to the bits of one that was not; its file is the program's, and refused for another run."""
import signal
import subprocess
import sys

import numpy as np
import pytest

import itspace
from itspace import _core

OPTIONS = dict(rank=3, steps=12, alpha=0.3)


def rows(n=60, d=8, dtype=np.float64):
    return (np.random.default_rng(4).standard_normal((n, d)) / np.arange(1, d + 1)).astype(dtype)


def untimed(result):
    """Every digit of the trace but the seconds, as text: NaN is what it is."""
    lists = {key: value.tolist() if isinstance(value, np.ndarray) else value for key, value in result.trace.items()}
    return {key: repr(value) for key, value in lists.items() if key != "seconds"}


KILLED = """
import os, signal, sys
import numpy as np, itspace

def kill(step, factor):
    if step["index"] == 10:
        os.kill(os.getpid(), signal.SIGKILL)

X = np.load("X.npy")
itspace.align(itspace.Target.from_features(X), rank=3, steps=12, alpha=0.3, precision=sys.argv[1] or None,
              callback=kill, checkpoint="run.npz", checkpoint_every=4)
"""


@pytest.mark.parametrize("dtype, precision", [(np.float64, None), (np.float32, "mixed")])
def test_a_killed_run_ends_in_the_same_bits(tmp_path, dtype, precision):
    X = rows(dtype=dtype)
    np.save(tmp_path / "X.npy", X)
    command = [sys.executable, "-c", KILLED, precision or ""]
    assert subprocess.run(command, cwd=tmp_path, timeout=120).returncode == -signal.SIGKILL
    seen = []
    target, options = itspace.Target.from_features(X), dict(OPTIONS, precision=precision, checkpoint_every=4)
    resumed = itspace.align(
        target, **options, checkpoint=tmp_path / "run.npz", resume=True, callback=lambda step, Y: seen.append(step["index"])
    )
    alone = itspace.align(target, **options, checkpoint=tmp_path / "alone.npz", resume=True)
    assert seen and seen[0] == 9
    assert resumed.factor.tobytes() == alone.factor.tobytes()
    assert untimed(resumed) == untimed(alone)
    assert len(resumed.trace["objective"]) == 13


def test_the_program_and_python_go_on_with_each_others_checkpoints(program, tmp_path):
    X = rows()
    np.save(tmp_path / "X.npy", X)

    def by_program(file, out):
        command = "align --target X.npy --rank 3 --steps 12 --alpha 0.3 --checkpoint-every 5 --resume --quiet --threads 1"
        subprocess.run([program, *command.split(), "--checkpoint", file, "--out", out], cwd=tmp_path, check=True)

    def by_python(file):
        with itspace.thread_limit(1):
            target = itspace.Target.from_features(X)
            return itspace.align(target, **OPTIONS, checkpoint=tmp_path / file, checkpoint_every=5, resume=True).factor

    by_program("program.npz", "program.npy")
    expected = np.load(tmp_path / "program.npy").tobytes()
    assert by_python("python.npz").tobytes() == expected
    with np.load(tmp_path / "program.npz") as one, np.load(tmp_path / "python.npz") as other:
        assert one.files == other.files
        assert all(np.array_equal(one[name], other[name]) for name in one.files if name != "trace")  # which has the seconds
    (tmp_path / "program.npz").rename(tmp_path / "for_python.npz")
    (tmp_path / "python.npz").rename(tmp_path / "for_program.npz")
    assert by_python("for_python.npz").tobytes() == expected
    by_program("for_program.npz", "again.npy")
    assert np.load(tmp_path / "again.npy").tobytes() == expected


def test_what_is_no_checkpoint_of_this_run_is_refused(tmp_path):
    path, target = tmp_path / "run.npz", itspace.Target.from_features(rows())
    itspace.align(target, **OPTIONS, checkpoint=path, checkpoint_every=5)
    again = dict(checkpoint=path, checkpoint_every=5, resume=True)
    for change, words in (({"seed": 7}, "seed=0, here seed=7"), ({"steps": 13}, "steps=12, here steps=13")):
        with pytest.raises(ValueError, match="another run: there " + words):
            itspace.align(target, **dict(OPTIONS, **change), **again)
    with pytest.raises(ValueError, match="60 samples of dimension 8.*59 samples"):
        itspace.align(itspace.Target.from_features(rows()[1:]), **OPTIONS, **again)
    changed = rows()
    changed[17] *= 1.01
    with pytest.raises(ValueError, match="made with another target"):
        itspace.align(itspace.Target.from_features(changed), **OPTIONS, **again)
    np.savez(path, current=np.eye(3))
    with pytest.raises(RuntimeError, match="run.npz"):
        itspace.align(target, **OPTIONS, **again)
    with pytest.raises(ValueError, match="resume is set and checkpoint is None"):
        itspace.align(target, **OPTIONS, resume=True)
    with pytest.raises(TypeError, match="checkpoint is a int"):
        itspace.align(target, **OPTIONS, checkpoint=3)
    with pytest.raises(ValueError, match="checkpoint_every is 0"):
        itspace.align(target, **OPTIONS, checkpoint=tmp_path / "new.npz", checkpoint_every=0)
    with pytest.raises(RuntimeError, match="nowhere"):
        itspace.align(target, **OPTIONS, checkpoint=tmp_path / "nowhere" / "run.npz")


def test_the_default_is_the_librarys():
    assert itspace.align.__kwdefaults__["checkpoint_every"] == _core._default_checkpoint_every()
