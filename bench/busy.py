# SPDX-License-Identifier: Apache-2.0
"""All threads against one thread on a machine that has other things to do. Markdown.

    python bench/busy.py [JOBS]        JOBS endless compilations run beside it (default 8; 0: none, whatever else runs)

Both numbers of threads take turns within the same load; medians of many calls, and the worst of a hundred.
"""

from __future__ import annotations

import contextlib
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import itspace

SOURCE = '#include <algorithm>\n#include <functional>\n#include <map>\n#include <regex>\n#include <string>\n' \
         'int main() { std::map<std::string, std::regex> m; m["a"] = std::regex("b+"); return int(m.size()); }\n'


@contextlib.contextmanager
def compilations(jobs: int) -> Iterator[None]:
    """`jobs` compilers at work, each started again when it ends."""
    if jobs == 0:
        yield
        return
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / 'a.cpp'
        source.write_text(SOURCE)
        loop = f'while :; do c++ -O2 -std=c++17 -c {source} -o /dev/null; done'
        running = [subprocess.Popen(['bash', '-c', loop], start_new_session=True) for _ in range(jobs)]
        try:
            yield
        finally:
            for job in running:
                os.killpg(job.pid, signal.SIGKILL)
                job.wait()


def compare(what: str, work: Callable[[], Any], seconds: float = 15) -> None:
    all_threads = itspace.threads()
    taken: dict[int, list[float]] = {1: [], all_threads: []}
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(taken[1]) < 5:
        for threads, times in taken.items():
            with itspace.thread_limit(threads):
                begin = time.perf_counter()
                work()
                times.append(time.perf_counter() - begin)
    medians = {threads: statistics.median(times) for threads, times in taken.items()}
    late = {threads: sorted(times)[int(0.99 * (len(times) - 1))] for threads, times in taken.items()}
    print(f'| {what} | {1e3 * medians[1]:.2f} | {all_threads} | {1e3 * medians[all_threads]:.2f} '
          f'| {medians[all_threads] / medians[1]:.2f} | {late[all_threads] / late[1]:.2f} |', flush=True)


def several_callers(target: Any, calls: int, threads_each: int | None) -> float:
    """Seconds for a call where 8 threads call at once."""

    def serve() -> None:
        with itspace.thread_limit(threads_each) if threads_each else contextlib.nullcontext():
            for _ in range(calls):
                itspace.align(target, rank=4, steps=4, solver='ritz')

    callers = [threading.Thread(target=serve) for _ in range(8)]
    begin = time.perf_counter()
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    return (time.perf_counter() - begin) / calls


def main() -> None:
    jobs = int(sys.argv[1]) if len(sys.argv) > 1 else 8
    rng = np.random.default_rng(0)
    samples = rng.standard_normal((4096, 2048)).astype(np.float32)
    sigma = np.cov(samples, rowvar=False).astype(np.float32)
    sigma = (sigma + sigma.T) / 2
    start = rng.standard_normal((2048, 16)).astype(np.float32)
    small = itspace.Target.from_features(rng.standard_normal((295, 1024)))
    tiny = itspace.Target.from_features(rng.standard_normal((200, 60)))
    print(f'{os.cpu_count()} processors, {jobs} compilations beside it\n')
    print('| what | 1 thread, ms | threads | ms | ratio | of the worst of a hundred |\n|---|---|---|---|---|---|')
    with compilations(jobs):
        compare('6 steps, d = 2048, r = 16, float32', lambda: itspace.align(sigma, start, steps=6))
        compare('6 Ritz steps, 295 x 1024 features, r = 16',
                lambda: itspace.align(small, rank=16, steps=6, solver='ritz'))
        first, second = np.cov(samples[:, :800], rowvar=False), np.cov(samples[:, 800:1600], rowvar=False)
        compare('exact distance of two covariances, d = 800', lambda: itspace.bures_wasserstein(first, second))
        third, fourth = np.cov(samples[:2048, :1500], rowvar=False), np.cov(samples[2048:, :1500], rowvar=False)
        compare('exact distance of two covariances, d = 1500', lambda: itspace.bures_wasserstein(third, fourth), 30)
        noise = itspace.Target.from_features(samples[:2400, :1200])
        compare('start of r = 16 from 2400 x 1200 of noise', lambda: itspace.start_from(noise, 16), 30)
        pairs = [(several_callers(tiny, 20, 1), several_callers(tiny, 20, None)) for _ in range(5)]
    one, many = (statistics.median(column) for column in zip(*pairs))
    print(f'| 8 callers at once, 4 Ritz steps, d = 60, r = 4 | {1e3 * one:.2f} | {itspace.threads()} | {1e3 * many:.2f} '
          f'| {many / one:.2f} | |')


if __name__ == '__main__':
    main()
