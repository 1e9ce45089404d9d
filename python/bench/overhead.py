# SPDX-License-Identifier: Apache-2.0
"""What a call from Python costs over the same call from C++, and how long the import takes.

    python python/bench/overhead.py [--dim 64] [--rank 8]

Both are measured in this run, in alternating short rounds, and the least of each are compared: other work on the machine only adds.
"""
import argparse
import statistics
import subprocess
import sys
import time

import numpy as np

import itspace
from itspace import _core


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--dim", type=int, default=64)
    arguments.add_argument("--rank", type=int, default=8)
    given = arguments.parse_args()
    rng = np.random.default_rng(0)
    d, r, repeats = given.dim, given.rank, 20
    T = rng.standard_normal((d, 2 * d))
    S, Y = T @ T.T / (2 * d), rng.standard_normal((d, r))
    target = itspace.Target.from_covariance(S)
    for steps in (0, 2, 5):
        cpp, python, made = [], [], []
        for _ in range(300):
            cpp.append(_core._seconds_per_align(S, Y, steps, repeats))
            begin = time.perf_counter()
            for _ in range(repeats):
                itspace.align(S, Y, rank=r, steps=steps)
            python.append((time.perf_counter() - begin) / repeats)
            begin = time.perf_counter()
            for _ in range(repeats):
                itspace.align(target, Y, rank=r, steps=steps)
            made.append((time.perf_counter() - begin) / repeats)
        a, b, c = (min(x) * 1e6 for x in (cpp, python, made))
        print(
            f"d={d} r={r} steps={steps}: C++ {a:.1f} us, Python {b:.1f} us: overhead {b - a:.1f} us "
            f"(with a Target made before: Python {c:.1f} us)"
        )
    bare = "import time, numpy; t = time.perf_counter(); import itspace; print(time.perf_counter() - t)"
    full = "import time; t = time.perf_counter(); import itspace; print(time.perf_counter() - t)"
    for name, code in (("import itspace", full), ("the same after import numpy", bare)):
        runs = [float(subprocess.check_output([sys.executable, "-c", code])) for _ in range(7)]
        print(f"{name}: {statistics.median(runs) * 1e3:.0f} ms")


if __name__ == "__main__":
    main()
