# SPDX-License-Identifier: Apache-2.0
import copy
import pickle
import sys
import threading

import numpy as np
import pytest

import itspace
from oracle import w2_squared


def features(rng, n, d, shift=0.0, scale=1.0):
    return rng.standard_normal((n, d)) * np.linspace(1, 0.1, d) * scale + shift


def test_against_the_definition_and_sqrtm(rng):
    linalg = pytest.importorskip("scipy.linalg")
    a, b = features(rng, 300, 20), features(rng, 200, 20, 0.3, 1.4)
    args = a.mean(0), np.cov(a.T), b.mean(0), np.cov(b.T)
    found = itspace.frechet_distance(*args)
    mean_part = np.sum((args[0] - args[2]) ** 2)
    assert found == pytest.approx(mean_part + w2_squared(args[1], args[3]), rel=1e-8)
    root = np.real(linalg.sqrtm(args[1] @ args[3]))
    assert found == pytest.approx(mean_part + np.trace(args[1] + args[3] - 2 * root), rel=1e-8)
    assert itspace.frechet_distance_from_features(a, b) == pytest.approx(found, rel=1e-9)


@pytest.mark.parametrize("n, m", [(10, 15), (10, 200), (2, 2), (40, 41)])
def test_fewer_samples_than_features(rng, n, m):
    d = 40
    a, b = features(rng, n, d), features(rng, m, d, 0.2)
    args = a.mean(0), np.cov(a.T), b.mean(0), np.cov(b.T)
    found = itspace.frechet_distance(*args)
    # The truth from factors, where singular covariances lose nothing.
    ca, cb = ((x - x.mean(0)) / np.sqrt(len(x) - 1) for x in (a, b))
    nuclear = np.linalg.svd(ca @ cb.T, compute_uv=False).sum()
    expected = np.sum((args[0] - args[2]) ** 2) + np.sum(ca**2) + np.sum(cb**2) - 2 * nuclear
    assert isinstance(found, float) and np.isfinite(found) and found >= 0
    assert found == pytest.approx(expected, rel=1e-6)
    assert itspace.frechet_distance_from_features(a, b) == pytest.approx(expected, rel=1e-11)


def test_degenerate_inputs():
    zero, one = np.zeros((3, 3)), np.eye(3)
    mu = np.zeros(3)
    assert itspace.frechet_distance(mu, zero, mu, zero) == 0
    assert itspace.frechet_distance(mu, zero, mu, one) == pytest.approx(3)
    assert itspace.frechet_distance(mu, one, mu, one) == pytest.approx(0, abs=1e-9)
    constant = np.ones((5, 3))
    assert itspace.frechet_distance_from_features(constant, constant + 1) == pytest.approx(3)


def test_covariances_rounded_to_float32(rng):
    a, b = features(rng, 30, 60), features(rng, 25, 60)
    sigma1, sigma2 = (np.cov(x.T).astype(np.float32).astype(np.float64) for x in (a, b))
    assert np.linalg.eigvalsh(sigma1).min() < 0
    found = itspace.frechet_distance(a.mean(0), sigma1, b.mean(0), sigma2)
    assert found == pytest.approx(itspace.frechet_distance_from_features(a, b), rel=1e-2)


def test_accumulator_is_the_moments_of_all_batches(rng):
    X = features(rng, 101, 7, shift=1e4)
    accumulator = itspace.FrechetAccumulator()
    assert accumulator.dim is None and accumulator.count == 0
    for batch in np.array_split(X, [1, 10, 10, 60]):
        accumulator.update(batch)
    assert accumulator.count == 101 and accumulator.dim == 7
    np.testing.assert_allclose(accumulator.mean, X.mean(0), rtol=1e-14)
    np.testing.assert_allclose(accumulator.covariance, np.cov(X.T), atol=1e-9)


def test_accumulators_merge_pickle_and_compute(rng):
    X, Z = features(rng, 80, 6), features(rng, 90, 6, 0.5)
    parts = [itspace.FrechetAccumulator(6).update(part) for part in np.array_split(X, 3)]
    whole = parts[0] + parts[1] + pickle.loads(pickle.dumps(parts[2]))
    assert [part.count for part in parts] == [27, 27, 26]  # + leaves its terms alone
    other = itspace.FrechetAccumulator().update(Z.astype(np.float32))
    expected = itspace.frechet_distance_from_features(X, Z)
    assert whole.compute(other) == pytest.approx(expected, rel=1e-5)
    assert other.compute(whole) == pytest.approx(whole.compute(other), rel=1e-9)
    parts[0].merge(parts[1]).merge(parts[2])
    np.testing.assert_array_equal(parts[0].covariance, whole.covariance)
    whole.reset()
    assert whole.count == 0 and whole.dim == 6
    with pytest.raises(ValueError, match="0 samples"):
        whole.compute(other)


def test_accumulator_misuse(rng):
    accumulator = itspace.FrechetAccumulator().update(features(rng, 5, 3))
    before = accumulator.covariance
    with pytest.raises(ValueError, match="4 columns"):
        accumulator.update(np.zeros((2, 4)))
    with pytest.raises(ValueError, match=r"batch\[0, 1\] is nan"):
        accumulator.update(np.array([[0.0, np.nan, 0.0]]))
    with pytest.raises(TypeError, match="FrechetAccumulator"):
        accumulator.compute(3)
    with pytest.raises(ValueError, match="dim is -1"):
        itspace.FrechetAccumulator(-1)
    np.testing.assert_array_equal(accumulator.covariance, before)


def test_computing_while_another_thread_updates(rng):
    """Every value is that of some prefix of the updates, to the last bit: no half of an update is ever seen."""
    batches = features(rng, 1200, 40).reshape(600, 2, 40) * np.linspace(1, 30, 600)[:, None, None]
    reference = itspace.FrechetAccumulator().update(features(rng, 50, 40, 0.5))
    replay, expected, states = itspace.FrechetAccumulator(), set(), set()
    for batch in batches:
        replay.update(batch)
        expected.add(replay.compute(reference))
        states.add((replay.count, replay.mean.tobytes(), replay.covariance.tobytes()))

    shared = itspace.FrechetAccumulator().update(batches[0])
    found, seen, failures = [], [], []

    def guarded(work):
        def run():
            try:
                work()
            except BaseException as error:  # reported by the test's own thread
                failures.append(error)

        return threading.Thread(target=run)

    def update():
        for batch in batches[1:]:
            shared.update(batch)

    def compute():
        while shared.count < 1200:
            found.append(shared.compute(reference))
            found.append(reference.compute(shared))

    def copies():
        while shared.count < 1200:
            for other in (pickle.loads(pickle.dumps(shared)), copy.copy(shared), itspace.FrechetAccumulator().merge(shared)):
                seen.append((other.count, other.mean.tobytes(), other.covariance.tobytes()))

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)  # as many turns as there can be
    try:
        threads = [guarded(work) for work in (compute, copies, compute, update)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert not failures
    assert shared.count == 1200
    # The distance is symmetric up to rounding; the other way round has values of its own.
    mirrored = set()
    replay.reset()
    for batch in batches:
        mirrored.add(reference.compute(replay.update(batch)))
    wrong = [value for value in found if value not in expected and value not in mirrored]
    assert not wrong, f"{len(wrong)} of {len(found)} values belong to no prefix"
    torn = [state for state in seen if state not in states]
    assert not torn, f"{len(torn)} of {len(seen)} copies belong to no prefix"


def test_merging_each_other_in_two_threads_ends():
    """Locks are never taken two at a time, so that no order of them can deadlock."""
    first, second = (itspace.FrechetAccumulator().update(np.eye(3) * k) for k in (1.0, 2.0))
    threads = [
        threading.Thread(target=lambda a, b: [a.merge(b) for _ in range(8)], args=pair)
        for pair in ((first, second), (second, first), (first, first))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert first.count > 3 and second.count > 3


@pytest.mark.parametrize("dim", [10**6, 10**10, 2**62])
def test_a_dimension_that_no_memory_holds_is_named(dim):
    with pytest.raises(MemoryError, match=f"dim is {dim}.*GB.*project.*frechet_distance_from_features"):
        itspace.FrechetAccumulator(dim)


@pytest.mark.parametrize("known", [True, False])
def test_a_batch_that_no_memory_holds_is_named_and_changes_nothing(monkeypatch, known):
    """Whether the machine's memory is known, or the allocation has to fail first."""
    if not known:
        monkeypatch.setattr(itspace._distance, "_physical_memory", lambda: float("inf"))
    accumulator = itspace.FrechetAccumulator()
    with pytest.raises(MemoryError, match="dim is 1000000: .* 8e\\+03 GB"):
        accumulator.update(np.zeros((2, 10**6)))
    assert accumulator.dim is None and accumulator.count == 0
    assert accumulator.update(np.eye(3)).count == 3


def test_what_is_asked_in_the_middle_of_an_update_is_answered():
    """A signal handler may run there, in the same thread, and print how far it got."""
    accumulator, answers = itspace.FrechetAccumulator(), []

    def trace(frame, event, argument):
        if frame.f_code is itspace.FrechetAccumulator.update.__code__:
            if event == "line" and not accumulator._lock.acquire(blocking=False):
                answers.append("deadlock")
                return None
            if event == "line":
                accumulator._lock.release()
                answers.append(accumulator.count)
            return trace
        return None

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        accumulator.update(np.eye(3))
    finally:
        sys.settrace(before)
    assert set(answers) == {0, 3}
