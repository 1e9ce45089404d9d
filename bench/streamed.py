# SPDX-License-Identifier: Apache-2.0
"""Features of three times the memory: within it, and at what share of the speed of merely reading the file.

    python bench/streamed.py PROGRAM [--memory 512] [--dim 1024] [--rank 16] [--folder /tmp]

All rates are of one run and of one file, medians of several turns that take place one after the other: reading and
nothing else (in four ways), one sweep of a product by the library (Python's face of it), the same by NumPy over a memmap.
Once with the file in the page cache (warm), once after the system was asked to drop it (cold). Then the program runs as a
user would run it, and the kernel says how much memory it held at most.
"""
import argparse
import mmap
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

import itspace

CHUNK = 8 << 20
STARTER = """
import os, subprocess, sys
child = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
_, status, usage = os.wait4(child.pid, 0)
print(usage.ru_maxrss)
sys.exit(os.waitstatus_to_exitcode(status))
"""


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--memory", type=int, default=512, help="MiB that the program may hold")
    parser.add_argument("--dim", type=int, default=1024)
    parser.add_argument("--rank", type=int, default=16)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--folder", default=tempfile.gettempdir())
    return parser.parse_args()


def write_features(path, rows, dim):
    """float32, a decaying spectrum and a mean of ten deviations; a piece is drawn once and used again."""
    random = np.random.default_rng(1)
    piece = random.standard_normal((4096, dim), dtype=np.float32) / np.sqrt(np.arange(1, dim + 1, dtype=np.float32)) + 10
    out = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(rows, dim))
    for first in range(0, rows, len(piece)):
        part = out[first : first + len(piece)]
        part[:] = np.roll(piece, first % 977, axis=0)[: len(part)]
    out.flush()
    del out
    os.sync()


def drop(path):
    fd = os.open(path, os.O_RDONLY)
    os.fsync(fd)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)


def cached_share(path):
    """How much of the file is in the page cache, by fincore."""
    try:
        out = subprocess.run(["fincore", "-nb", "-o", "RES", path], capture_output=True, text=True, check=True).stdout
        return int(out) / os.path.getsize(path)
    except (OSError, ValueError, subprocess.CalledProcessError):
        return float("nan")


def read_by(flags):
    def read(path):
        fd = os.open(path, os.O_RDONLY | flags)
        buffer = mmap.mmap(-1, CHUNK)  # aligned, as O_DIRECT asks for
        while os.readv(fd, [buffer]) == CHUNK:
            pass
        os.close(fd)
        buffer.close()

    return read


def read_mapped(advice):
    def read(path):
        with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as mapped:
            if advice is not None:
                mapped.madvise(advice)
            values = np.frombuffer(mapped, np.uint8)
            copy = np.empty(CHUNK, np.uint8)
            for first in range(0, len(values) - CHUNK, CHUNK):
                copy[:] = values[first : first + CHUNK]
            del values

    return read


def by_numpy(Y):
    """What one writes without the library: centred by the mean of the first chunk, in float32, no second sweep."""

    def product(path):
        X = np.load(path, mmap_mode="r")
        step = max(1, CHUNK // (4 * X.shape[1]))
        shift = X[:step].mean(axis=0)
        total, sums = np.zeros_like(Y), np.zeros(X.shape[1])
        for first in range(0, len(X), step):
            Z = X[first : first + step] - shift
            total += Z.T @ (Z @ Y)
            sums += Z.sum(axis=0, dtype=np.float64)
        delta = (sums / len(X)).astype(np.float32)
        return (total - len(X) * np.outer(delta, delta @ Y)) / (len(X) - 1)

    return product


def main():
    given = arguments()
    limit = given.memory << 20
    rows = 3 * limit // (4 * given.dim)
    path = os.path.join(given.folder, f"itspace-streamed-{os.getpid()}.npy")
    try:
        write_features(path, rows, given.dim)
        size = os.path.getsize(path)
        Y = np.linalg.qr(np.random.default_rng(2).standard_normal((given.dim, given.rank)))[0].astype(np.float32)
        target = itspace.Target.from_files(path)
        # Memory for two chunks and no more: a thread reads for the others.
        by_reader = itspace.Target.from_files(path, memory=2 * CHUNK + 64 * given.dim)
        assert target.trace > 0 and by_reader.trace > 0  # the first sweep gathers more than the others
        Y64 = Y.astype(np.float64)
        ours, theirs = target.apply(Y), by_numpy(Y)(path)
        print(f"{size / 1e9:.2f} GB of float32, {rows} x {given.dim}, rank {given.rank}; 3 x the memory of {given.memory} MiB")
        print(f"{platform.processor() or platform.machine()}, {os.cpu_count()} processors, Linux {platform.release()}, "
              f"NumPy {np.__version__}, itspace {itspace.__version__}, load {os.getloadavg()[0]:.1f}")
        print(f"largest difference of the two products: {np.abs(ours - theirs).max() / np.abs(Y64).max():.1e}")
        ways = {
            "read()": read_by(0),
            "read(), O_DIRECT": read_by(os.O_DIRECT),
            "mapped, copied": read_mapped(None),
            "mapped, copied, MADV_SEQUENTIAL": read_mapped(mmap.MADV_SEQUENTIAL),
            "itspace, one product": lambda _: target.apply(Y),
            "the same, one thread reads": lambda _: by_reader.apply(Y),
            "NumPy over a memmap, one product": by_numpy(Y),
        }
        rates = {(name, state): [] for name in ways for state in ("warm", "cold")}
        work = {key: [] for key in rates}  # seconds of all processors for a GB: what a busy machine does not change much
        shares = {"warm": [], "cold": []}
        for state in ("warm", "cold"):
            for _ in range(given.turns):
                for name, way in ways.items():
                    if state == "cold":
                        drop(path)
                    elif name == "read(), O_DIRECT":
                        continue  # it does not look there
                    if name == "read()":
                        shares[state].append(cached_share(path))
                    began, busy = time.perf_counter(), sum(os.times()[:2])
                    way(path)
                    rates[name, state].append(size / (time.perf_counter() - began))
                    work[name, state].append((sum(os.times()[:2]) - busy) / size * 1e9)
                    if state == "warm" and name == "read()":
                        read_by(0)(path)
        for state, share in shares.items():
            print(f"in the page cache before reading, {state}: {100 * statistics.median(share):.0f} %")
        print("medians (and the best turn), shares of the median of read()")
        print(f"{'':34}" + "".join(f"{state + ' GB/s':>18}{'of read()':>11}{'CPU s/GB':>10}" for state in ("warm", "cold")))
        base = {state: statistics.median(rates["read()", state]) for state in ("warm", "cold")}
        for name in ways:
            line = f"{name:34}"
            for state in ("warm", "cold"):
                values = rates[name, state]
                if not values:
                    line += f"{'':39}"
                    continue
                median = statistics.median(values)
                line += f"{f'{median / 1e9:.2f} ({max(values) / 1e9:.2f})':>18}{median / base[state]:11.2f}"
                line += f"{statistics.median(work[name, state]):10.2f}"
            print(line)
        run_program(given, path, size)
    finally:
        if os.path.exists(path):
            os.remove(path)


def run_program(given, path, size):
    out = path + ".Y.npy"
    steps = 3
    command = [given.program, "align", "--target", path, "--memory", f"{given.memory}MiB", "--rank", str(given.rank),
               "--steps", str(steps), "--precision", "float32", "--out", out]
    began = time.perf_counter()
    # Through a small process of its own: a child is charged with what its parent held when it was started.
    child = subprocess.run([sys.executable, "-c", STARTER, *command], capture_output=True, text=True)
    seconds = time.perf_counter() - began
    assert child.returncode == 0, child.stderr
    most, notes = int(child.stdout.splitlines()[-1]) * 1024, child.stderr
    os.remove(out)
    print(f"itspace align --memory {given.memory}MiB --steps {steps}: {seconds:.1f} s, at most "
          f"{most / 2**20:.0f} MiB resident ({most / size:.3f} of the file)")
    print("  " + "\n  ".join(line for line in notes.splitlines() if "sweeps" in line))


if __name__ == "__main__":
    main()
