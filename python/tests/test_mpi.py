# SPDX-License-Identifier: Apache-2.0
"""itspace.mpi: a job of three ranks, each of which holds what it gets against one process."""
import os
import shutil
import subprocess
import sys

import pytest

pytest.importorskip("mpi4py")
mpirun = shutil.which("mpirun")
pytestmark = pytest.mark.skipif(mpirun is None, reason="no mpirun here")

PROGRAM = """
import numpy as np
import itspace, itspace.mpi
from mpi4py import MPI

comm = MPI.COMM_WORLD
X = np.random.default_rng(1).standard_normal((50, 12)) * np.linspace(3, 0.1, 12) + 1000
for dtype in (np.float32, np.float64):
    rows = X.astype(dtype)
    ends = [0, 1, 20, 50][: comm.size] + [50]  # one rank has a single row
    spread = itspace.mpi.FeatureRows(rows[ends[comm.rank] : ends[comm.rank + 1]], comm)
    here = itspace.Target.from_features(rows)
    assert abs(spread.trace - here.trace) <= 100 * np.finfo(dtype).eps * here.trace, "trace"
    start = np.random.default_rng(2).standard_normal((12, 3)).astype(dtype)
    one = itspace.align(here, start, rank=3, steps=4)
    many = itspace.align(spread, start, rank=3, steps=4)
    scale = np.finfo(dtype).eps * (here.trace + float((start.astype(float) ** 2).sum()))
    assert np.abs(np.array(one.trace["objective"]) - np.array(many.trace["objective"])).max() <= 100 * scale
    assert many.certified
    assert len(set(comm.allgather(many.factor.tobytes()))) == 1, "other bits"

stopped = itspace.align(spread, start, rank=3, steps=9, callback=itspace.mpi.agreed(
    lambda step, factor: step["index"] == 2 and comm.rank == comm.size - 1, comm))
assert stopped.status == "stopped" and len(stopped.trace["objective"]) == 3, stopped

for bad, word in ((np.zeros((4, 5 + comm.rank)), "rank 1 has rows of 6"), (np.zeros(3), "shape (3,)"),
                  (np.where(np.arange(8).reshape(4, 2) == 3 * (comm.rank == 1), np.nan, 1.0), "is nan")):
    try:
        itspace.mpi.FeatureRows(bad, comm)
    except ValueError as error:
        assert word in str(error), error
    else:
        raise AssertionError("accepted " + word)
try:
    spread.apply(start + (comm.rank == 0))
except RuntimeError as error:
    assert "same bits" in str(error)
else:
    raise AssertionError("different blocks went unseen")
if comm.rank == 0:
    print("all is well")
"""


def test_ranks_agree_with_one_process(tmp_path):
    program = tmp_path / "job.py"
    program.write_text(PROGRAM)
    done = subprocess.run(
        [mpirun, "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", "3", sys.executable, str(program)],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr + done.stdout
    assert "all is well" in done.stdout
