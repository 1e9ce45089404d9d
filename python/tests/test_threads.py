# SPDX-License-Identifier: Apache-2.0
"""The number of threads: settings, a with statement, threadpoolctl, and forked children."""
import multiprocessing
import threading

import numpy as np
import pytest

import itspace

X = np.random.default_rng(0).standard_normal((400, 600))


def aligned() -> np.ndarray:
    return np.asarray(itspace.align(itspace.Target.from_features(X), rank=8, steps=2).factor)


def test_the_number_is_set_and_taken_back() -> None:
    before = itspace.threads()
    itspace.set_threads(3)
    assert itspace.threads() == 3
    itspace.set_threads(0)
    assert itspace.threads() == before


def test_a_limit_is_of_one_thread_and_ends() -> None:
    before, seen = itspace.threads(), []
    with itspace.thread_limit(5):
        assert itspace.threads() == 5
        other = threading.Thread(target=lambda: seen.append(itspace.threads()))
        other.start()
        other.join()
        with itspace.thread_limit(2):
            assert itspace.threads() == 2
        assert itspace.threads() == 5
    assert itspace.threads() == before and seen == [before]


@pytest.mark.parametrize("count", [-1, 10**6])
def test_numbers_that_are_none_are_refused(count: int) -> None:
    with pytest.raises(ValueError, match="between 1 and 4096"):
        itspace.set_threads(count)
    with pytest.raises(ValueError, match="between 1 and 4096"):
        itspace.thread_limit(count)


def test_the_same_number_gives_the_same_bits() -> None:
    for count in (1, 2, 3):
        with itspace.thread_limit(count):
            assert np.array_equal(aligned(), aligned())


def test_other_numbers_agree_to_rounding() -> None:
    with itspace.thread_limit(1):
        one = aligned()
    with itspace.thread_limit(4):
        four = aligned()
    assert np.linalg.norm(one @ one.T - four @ four.T) < 1e-12 * np.linalg.norm(one @ one.T)


def test_threadpoolctl_steers_them() -> None:
    threadpoolctl = pytest.importorskip("threadpoolctl", minversion="3.2")
    before = itspace.threads()
    with threadpoolctl.threadpool_limits(limits=1, user_api="openmp"):
        assert itspace.threads() == 1
    assert itspace.threads() == before
    assert "itspace" in [pool["internal_api"] for pool in threadpoolctl.threadpool_info()]


def in_child(queue: "multiprocessing.Queue[float]") -> None:
    queue.put(float(np.linalg.norm(aligned())))


# GNU's OpenMP hangs in a child that was forked after its parent had used it.
def test_a_forked_child_goes_on_working() -> None:
    with itspace.thread_limit(4):
        expected = float(np.linalg.norm(aligned()))
        context = multiprocessing.get_context("fork")
        queue = context.Queue()
        child = context.Process(target=in_child, args=(queue,))
        child.start()
        try:
            assert queue.get(timeout=60) == pytest.approx(expected, rel=1e-12)
        finally:
            child.join(60)
            child.kill()
