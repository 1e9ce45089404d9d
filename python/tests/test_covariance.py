# SPDX-License-Identifier: Apache-2.0
"""The covariance matrix of a stream: the definition, in as many sweeps as the memory makes of it."""
import os
import subprocess

import numpy as np
import pytest

import itspace
from itspace._as_target import as_target


class Parts:
    def __init__(self, X):
        self.X, self.begun = X, 0

    def __iter__(self):
        self.begun += 1
        return iter(np.array_split(self.X, 7))


def rows(n=90, d=11, dtype=np.float32, mean=100.0):
    return (mean + np.random.default_rng(3).standard_normal((n, d)) / np.arange(1, d + 1)).astype(dtype)


def definition(X):
    wide = X.astype(np.longdouble)
    centred = wide - wide.mean(axis=0)
    return centred.T @ centred / (len(X) - 1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("columns", [1, 4, 11])
def test_bands_are_the_matrix(dtype, columns):
    X = rows(dtype=dtype)
    source = Parts(X)
    target = itspace.Target.from_stream(source)
    before = source.begun
    found = itspace.covariance(target, memory=48 * 11 * columns)
    assert source.begun - before == -(-11 // columns)
    assert found.dtype == np.float64
    sigma = definition(X)
    assert np.linalg.norm((found - sigma).astype(np.float64)) <= 30 * np.finfo(np.float64).eps * np.linalg.norm(sigma.astype(np.float64))


def test_files_go_to_a_file_as_the_program_makes_it(program, tmp_path):
    X = rows()
    np.save(tmp_path / "part-1.npy", X[:40])
    np.save(tmp_path / "part-2.npy", X[40:])
    found = itspace.covariance(str(tmp_path / "part-*.npy"), out=tmp_path / "S.npy")
    assert isinstance(found, np.memmap) and not found.flags.writeable
    subprocess.run([program, "covariance", "part-1.npy", "part-2.npy", "--out", "P.npy", "--quiet"], cwd=tmp_path, check=True)
    assert (tmp_path / "S.npy").read_bytes()[-8 * 121 :] == (tmp_path / "P.npy").read_bytes()[-8 * 121 :]
    assert sorted(os.listdir(tmp_path)) == ["P.npy", "S.npy", "part-1.npy", "part-2.npy"]


def test_what_fails_leaves_nothing(tmp_path):
    X = rows()
    X[80, 3] = np.nan
    np.save(tmp_path / "X.npy", X)
    with pytest.raises(ValueError, match="row 80, column 3"):
        itspace.covariance(tmp_path / "X.npy", out=tmp_path / "S.npy")
    assert os.listdir(tmp_path) == ["X.npy"]
    with pytest.raises(ValueError, match="memory is 'much'"):
        itspace.covariance(tmp_path / "X.npy", memory="much")
    np.save(tmp_path / "X.npy", rows())
    with pytest.raises(OSError, match="none"):
        itspace.covariance(tmp_path / "X.npy", out=tmp_path / "none" / "S.npy")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_an_operator_of_python(dtype):
    class Diagonal:
        dim, trace = 5, 15.0

        def apply(self, Y):
            assert Y.dtype == dtype
            return np.arange(1, 6, dtype=dtype)[:, None] * Y

    Diagonal.dtype = dtype
    target, _ = as_target(Diagonal())
    assert np.array_equal(itspace.covariance(target, memory=1), np.diag(np.arange(1.0, 6)))
