# SPDX-License-Identifier: Apache-2.0
"""What may come in, what comes out, and what is not copied."""
import numpy as np
import pytest

import itspace
from oracle import covariance
from itspace import _core


def address(array):
    return array.__array_interface__["data"][0]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_contiguous_array_is_not_copied(dtype):
    S = np.eye(2048, dtype=dtype)
    target = itspace.Target.from_covariance(S, check=False)
    assert _core._address_of(target._core) == address(S)
    X = np.ones((5, 3), dtype=dtype)
    for made, data in (
        (itspace.Target.from_features(X), X),
        (itspace.Target.from_factor(X), X),
        (itspace.Target.low_rank_plus_diagonal(X, np.ones(3), 1.0), X),
    ):
        assert _core._address_of(made._core) == address(data)
    X.flags.writeable = False  # read-only memory is borrowed too
    assert _core._address_of(itspace.Target.from_factor(X)._core) == address(X)


def test_the_target_keeps_its_array_alive(rng):
    target = itspace.Target.from_covariance(covariance(rng, 50))
    import gc

    gc.collect()
    filler = [np.full((50, 50), np.nan) for _ in range(20)]  # takes the memory, were it free
    assert np.isfinite(target.apply(np.eye(50))).all() and len(filler) == 20


def test_a_result_outlives_its_run(rng):
    factor = itspace.align(covariance(rng, 30), rank=4).factor
    copy = factor.copy()
    filler = [itspace.align(covariance(rng, 30), rank=4) for _ in range(5)]
    np.testing.assert_array_equal(factor, copy)
    assert factor.flags.writeable and len(filler) == 5


def test_other_orders_and_types_are_converted(rng):
    S = covariance(rng, 8)
    Y = rng.standard_normal((8, 3))
    expected = itspace.align(S, Y, rank=3).factor
    wide = np.zeros((16, 16))
    wide[::2, ::2] = S
    for same in (np.asfortranarray(S), wide[::2, ::2], S[::-1, ::-1][::-1, ::-1], S.astype(">f8"), S.tolist()):
        assert np.array_equal(itspace.align(same, Y, rank=3).factor, expected)
    assert np.array_equal(itspace.align(S, np.asfortranarray(Y), rank=3).factor, expected)
    unaligned = np.frombuffer(b"\0" + S.tobytes(), dtype=np.uint8)[1:].view(np.float64).reshape(8, 8)
    assert np.array_equal(itspace.align(unaligned, Y, rank=3).factor, expected)


@pytest.mark.parametrize("dtype", [np.int32, np.uint8, np.int64, bool, np.float16])
def test_integers_and_half_floats_become_float64(dtype):
    S = np.diag([1, 1, 0, 1]).astype(dtype)
    result = itspace.align(S, rank=2)
    assert result.factor.dtype == np.float64
    assert np.array_equal(result.factor, itspace.align(S.astype(float), rank=2).factor)


def test_a_start_is_converted_to_the_targets_dtype(rng):
    S, Y = covariance(rng, 6), rng.standard_normal((6, 2))
    assert itspace.align(S.astype(np.float32), Y, rank=2).factor.dtype == np.float32
    assert itspace.align(S, Y.astype(np.float32), rank=2).factor.dtype == np.float64


def test_float32_in_float32_out(rng):
    S = covariance(rng, 6).astype(np.float32)
    assert itspace.start_from(S, 2).dtype == np.float32
    assert itspace.random_start(S, 2).dtype == np.float32
    assert itspace.truncate(S, 2).dtype == np.float32
    assert itspace.geodesic(S, S, 0.5).dtype == np.float32
    _, gradient = itspace.objective_and_gradient(np.ones((6, 2), dtype=np.float32), S)
    assert gradient.dtype == np.float32


class WithDlpack:
    """Another library's array: DLPack and nothing else."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **kwargs):
        return self.array.__dlpack__()

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class WithArray:
    def __init__(self, array):
        self.array = array

    def __array__(self, dtype=None, copy=None):
        return self.array if dtype is None else self.array.astype(dtype)


class OtherLibrary(WithDlpack):
    """One that names its namespace, so that results can go back to it."""

    def __array_namespace__(self, api_version=None):
        class Namespace:
            @staticmethod
            def asarray(array):
                return OtherLibrary(array)

        return Namespace


def test_dlpack_and_array_protocol(rng):
    S, Y = covariance(rng, 7), rng.standard_normal((7, 2))
    expected = itspace.align(S, Y, rank=2).factor
    for kind in (WithDlpack, WithArray):
        assert np.array_equal(itspace.align(kind(S), kind(Y), rank=2).factor, expected)
    assert _core._address_of(itspace.Target.from_covariance(WithDlpack(S))._core) == address(S)
    result = itspace.align(OtherLibrary(S), rank=2, keep_iterates=True)
    assert isinstance(result.factor, OtherLibrary) and isinstance(result.iterates[0], OtherLibrary)
    assert isinstance(itspace.geodesic(OtherLibrary(S), S, 0.5), OtherLibrary)


def test_subclasses_of_arrays(rng):
    S = covariance(rng, 5)
    masked = np.ma.masked_array(S)
    assert np.array_equal(itspace.align(masked, rank=1).factor, itspace.align(S, rank=1).factor)


def test_import_is_light():
    import subprocess
    import sys

    heavy = "scipy, sklearn, torch, tqdm, matplotlib"
    code = f"import sys, itspace; print([m for m in '{heavy}'.split(', ') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
