# SPDX-License-Identifier: Apache-2.0
"""What a step on Dask workers costs: one worker and two, the overhead, and other ways to leading directions.

    script/bench dask [scaling] [overhead] [compared] [--rows N] [--features D] [--rank R] [--repeats K]

Each figure is a median; steps of one and of two workers take turns, so that other work on the machine meets both. Peak
memory is the high-water mark of the workers' resident memory, set back before each run. Prints Markdown.
"""
import argparse
import contextlib
import os
import platform
import statistics
import subprocess
import time
import warnings

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster, wait

import itspace
import itspace.dask


@contextlib.contextmanager
def cluster_of(workers):
    options = dict(threads_per_worker=1, processes=True, dashboard_address=":0", memory_limit="8GB", silence_logs="ERROR")
    with LocalCluster(n_workers=workers, **options) as local, Client(local, set_as_default=False) as client:
        yield client


def rows_of_chunk(block, features, seed):
    """Rows with a spectrum that falls off, about a mean; the same ones whoever makes them."""
    rng = np.random.default_rng((seed, int(block[0, 0])))
    deviations = (1 + np.arange(features)) ** -0.7
    mix = np.random.default_rng(seed).standard_normal((features, 32)).astype(np.float32) / np.float32(np.sqrt(features))
    rows = rng.standard_normal((len(block), features), dtype=np.float32) * deviations.astype(np.float32)
    return rows + rng.standard_normal((len(block), 32), dtype=np.float32) @ mix.T + np.float32(3)


def samples(client, rows, features, chunks, seed=7):
    chunk = -(-rows // chunks)
    numbers = da.arange(rows, chunks=chunk)[:, None]
    X = numbers.map_blocks(rows_of_chunk, features, seed, chunks=(numbers.chunks[0], (features,)), dtype=np.float32)
    with client.as_current():
        X = X.persist()
        wait(X)
    return X


def seconds(work):
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def repeated(work, most, budget=10.0):
    """The times of so many runs, fewer where they take long."""
    times = [seconds(work)]
    while len(times) < most and sum(times) < budget:
        times.append(seconds(work))
    return times


def processor_seconds(client):
    """Of this process, which is the client and the scheduler, and of all workers."""
    return time.process_time() + sum(client.run(time.process_time).values())


def shown(values):
    ordered = sorted(values)
    return f"{1e3 * statistics.median(ordered):.1f} ms ({1e3 * ordered[0]:.1f} to {1e3 * ordered[-1]:.1f})"


def scaling(one, two, options):
    """The time of a product on one worker and on two, in turns."""
    clients, targets = (one, two), []
    for client in clients:
        targets.append(itspace.dask.target(samples(client, options.rows, options.features, options.chunks)))
    Y = np.random.default_rng(0).standard_normal((options.features, options.rank)).astype(np.float32)
    times = ([], [])
    for target in targets:
        target.apply(Y)
    before = [client.run(time.process_time) for client in clients]
    for _ in range(options.repeats):
        for target, taken in zip(targets, times):
            taken.append(seconds(lambda: target.apply(Y)))
    busiest = []
    for client, begin in zip(clients, before):
        end = client.run(time.process_time)
        busiest.append(max(end[worker] - begin[worker] for worker in begin) / options.repeats)
    ratios = [a / b for a, b in zip(*times)]
    print(f"## One worker and two\n\nA product, {options.rows} x {options.features} float32 in {options.chunks} chunks, r = "
          f"{options.rank}, {options.repeats} of each in turns. Wall time: median (least to most). Processor time: of the busiest worker, "
          "the mean; other work on the machine does not count in it.\n")
    print("| workers | wall time of a step | processor time |\n|---|---|---|")
    for workers, taken, used in zip((1, 2), times, busiest):
        print(f"| {workers} | {shown(taken)} | {1e3 * used:.1f} ms |")
    print(f"\nRatio of wall times: {statistics.median(ratios):.2f} (median of the {options.repeats} pairs), "
          f"{statistics.median(times[0]) / statistics.median(times[1]):.2f} (of the medians), "
          f"{min(times[0]) / min(times[1]):.2f} (of the least). Of processor times: {busiest[0] / busiest[1]:.2f}.\n", flush=True)


def overhead(client, options):
    """The time of products that hold next to no arithmetic, beside that of the least that Dask can do."""
    most = 10 * options.repeats
    print("## Overhead of a step\n\nTwo workers, 8 rows of 64 features in each chunk, r = 16. Wall time: median (least to most). Processor time: "
          "the mean of client, scheduler and workers together.\n\n| chunks | wall time of a step | processor time |\n|---|---|---|")
    trivial = repeated(lambda: client.submit(int, pure=False).result(), most)
    print(f"| one empty task | {shown(trivial)} | |")
    Y = np.random.default_rng(0).standard_normal((64, 16)).astype(np.float32)
    for chunks in (2, 8, 16, 64, 256):
        target = itspace.dask.target(samples(client, 8 * chunks, 64, chunks))
        target.apply(Y)
        begin = processor_seconds(client)
        times = repeated(lambda: target.apply(Y), most)
        used = (processor_seconds(client) - begin) / len(times)
        print(f"| {chunks} | {shown(times)} | {1e3 * used:.1f} ms |", flush=True)
    print()


def forget_peak():
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")


def peak_bytes():
    with open("/proc/self/status") as file:
        return next(1024 * int(line.split()[1]) for line in file if line.startswith("VmHWM"))


def resident_bytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def methods(X, rank, seed=0):
    """Name, and a function that gives directions, one per column."""

    def aligned(**options):
        return lambda: itspace.align(itspace.dask.target(X), rank=rank, seed=seed, **options).factor

    def covariance():
        centred = X - X.mean(axis=0)
        S = (centred.T @ centred / (len(X) - 1)).compute()
        return np.linalg.eigh(S)[1][:, -rank:]

    def principal(name, **options):
        def run():
            import dask_ml.decomposition

            return getattr(dask_ml.decomposition, name)(n_components=rank, random_state=seed, **options).fit(X).components_.T

        return run

    yield "itspace, 2 steps of the paper", aligned(steps=2)
    yield "itspace, 4 steps of the paper", aligned(steps=4)
    yield "itspace, 2 Ritz steps", aligned(steps=2, solver="ritz")
    yield "plain dask: covariance, then eigh", covariance
    yield "dask-ml PCA, randomized", principal("PCA", svd_solver="randomized", iterated_power=2)
    yield "dask-ml PCA, tsqr", principal("PCA", svd_solver="tsqr")
    yield "dask-ml IncrementalPCA", principal("IncrementalPCA")


def compared(client, options):
    X = samples(client, options.rows, options.features, options.chunks)
    with client.as_current():
        target = itspace.dask.target(X)
        sigma = target.apply(np.eye(options.features, dtype=np.float32)).astype(np.float64)
        best = itspace.leading_eigenvalues(sigma, options.rank).sum() / np.trace(sigma)
        print(f"## Beside other ways\n\nTwo workers, the data of above, rank {options.rank}, median of {options.runs} (fewer where 60 s are over). Variance is the "
              f"share that the directions explain; the most there is is {best:.4f}.\n")
        print("| way | wall time | processor time | variance | peak memory of a worker over its data |\n|---|---|---|---|---|")
        for name, run in methods(X, options.rank):
            times, used, peaks = [], [], []
            try:
                while len(times) < options.runs and sum(times) < 60:
                    client.run(forget_peak)
                    before = client.run(resident_bytes)
                    begin, begin_used = time.perf_counter(), processor_seconds(client)
                    found = run()
                    times.append(time.perf_counter() - begin)
                    used.append(processor_seconds(client) - begin_used)
                    after = client.run(peak_bytes)
                    peaks.append(max(after[worker] - before[worker] for worker in after))
            except Exception as error:  # a package that does not go with this Dask is a row too
                print(f"| {name} | does not run: {type(error).__name__}: {str(error)[:90]!r} | | | |")
                continue
            basis = np.linalg.qr(np.asarray(found, dtype=np.float64))[0]
            share = np.trace(basis.T @ sigma @ basis) / np.trace(sigma)
            print(f"| {name} | {statistics.median(times):.2f} s | {statistics.median(used):.2f} s | {share:.4f} | {statistics.median(peaks) / 2**20:.0f} MiB |", flush=True)
    print()


def machine():
    import dask
    import distributed

    versions = [f"Python {platform.python_version()}", f"NumPy {np.__version__}", f"dask {dask.__version__}"]
    versions += [f"distributed {distributed.__version__}"]
    try:
        import dask_ml

        versions.append(f"dask-ml {dask_ml.__version__}")
    except ImportError:
        versions.append("no dask-ml")
    with open("/proc/cpuinfo") as file:
        model = next((line.split(":")[1].strip() for line in file if line.startswith("model name")), platform.machine())
    commit = subprocess.run(
        ["git", "-C", os.path.dirname(os.path.abspath(__file__)), "rev-parse", "--short", "HEAD"], capture_output=True, text=True
    )
    print(f"{model}, {len(os.sched_getaffinity(0))} processors, load {os.getloadavg()[0]:.1f} at the start. itspace "
          f"{itspace.__version__} at {commit.stdout.strip() or 'no commit'}. {', '.join(versions)}.\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parts = ("scaling", "overhead", "compared")
    parser.add_argument("parts", nargs="*", help=f"of {', '.join(parts)}; none: all")
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--features", type=int, default=512)
    parser.add_argument("--rank", type=int, default=16)
    parser.add_argument("--chunks", type=int, default=16)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    warnings.filterwarnings("ignore", category=UserWarning)
    machine()
    wanted = options.parts or parts
    if not set(wanted) <= set(parts):
        parser.error(f"the parts are {', '.join(parts)}")
    if "scaling" in wanted:
        with cluster_of(1) as one, cluster_of(2) as two:
            scaling(one, two, options)
    for name, measure in (("overhead", overhead), ("compared", compared)):
        if name in wanted:
            with cluster_of(2) as two:
                measure(two, options)


if __name__ == "__main__":
    main()
