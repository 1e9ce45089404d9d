# SPDX-License-Identifier: Apache-2.0
"""Streams give what the same rows in memory give, and refuse what cannot be gone through again."""
import copy
import gc
import os
import pickle
import weakref

import numpy as np
import pytest

import itspace

RANK = 3


def rows(n=400, d=12, dtype=np.float32, mean=2.0):
    random = np.random.default_rng(3)
    return (mean + random.standard_normal((n, d)) / np.arange(1, d + 1)).astype(dtype)


class Parts:
    def __init__(self, X):
        self.X = X
        self.begun = 0

    def __iter__(self):
        self.begun += 1
        return iter(np.array_split(self.X, 7))


def assert_as_in_memory(target, X):
    held = itspace.Target.from_features(X)
    Y = np.random.default_rng(1).standard_normal((X.shape[1], RANK)).astype(target.dtype)
    sigma = np.cov(X.astype(np.float64), rowvar=False)
    limit = 30 * X.shape[1] * np.finfo(target.dtype).eps * np.linalg.norm(sigma)
    assert target.kind == "stream" and target.dim == X.shape[1] and target.dtype == held.dtype
    assert np.linalg.norm(target.apply(Y) - sigma @ Y) <= limit * np.linalg.norm(Y)
    assert abs(target.trace - np.trace(sigma)) <= limit
    assert target.samples == len(X)
    assert np.abs(target.mean - X.astype(np.float64).mean(axis=0)).max() <= 1e-12
    assert itspace.align(target, rank=RANK, steps=3).certified


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_kind_of_source(dtype):
    X = rows(dtype=dtype)
    for source in (list(np.array_split(X, 5)), Parts(X), lambda: iter(np.array_split(X, 3)), X):
        assert_as_in_memory(itspace.Target.from_stream(source), X)


def test_one_sweep_for_each_pass():
    source = Parts(rows())
    target = itspace.Target.from_stream(source)
    looked = source.begun
    result = itspace.align(target, rank=RANK, steps=3)
    assert source.begun - looked == result.trace["passes_total"]


def test_a_large_mean_in_float32():
    X = rows(mean=1e4)
    assert_as_in_memory(itspace.Target.from_stream(list(np.array_split(X, 9))), X)


def test_a_generator_is_refused_in_words():
    with pytest.raises(TypeError, match="only once.*returns a fresh one"):
        itspace.Target.from_stream(x for x in [rows()])
    with pytest.raises(TypeError, match="int"):
        itspace.Target.from_stream(3)


def test_a_function_that_returns_the_same_generator_is_found_out():
    once = iter([rows(), rows()])
    with pytest.raises(RuntimeError, match="same rows each time"):
        itspace.align(itspace.Target.from_stream(lambda: once), rank=RANK)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_source_that_holds_its_target_is_let_go_with_it(dtype):
    class Source:
        def __init__(self):
            self.target = itspace.Target.from_stream(self.rows)
            self.wide = self.target._widened() if dtype == np.float32 else None

        def rows(self):
            yield from np.array_split(rows(dtype=dtype), 3)

    source = Source()
    assert itspace.align(source.target, rank=2).certified
    gone = weakref.ref(source)
    gc.collect()
    assert gone() is source and len(source.target.mean) == 12  # what is in use is not taken for garbage
    del source
    gc.collect()
    assert gone() is None


def test_bad_chunks_are_named():
    X = rows()
    with pytest.raises(ValueError, match="chunk 1 of the stream has 5 columns and the first one 12"):
        itspace.align(itspace.Target.from_stream([X, X[:, :5]]), rank=RANK)
    broken = X.copy()
    broken[17, 4] = np.nan
    with pytest.raises(ValueError, match="row 417 of the stream, column 4 is nan"):
        itspace.align(itspace.Target.from_stream([X, broken]), rank=RANK)
    with pytest.raises(ValueError, match="empty"):
        itspace.Target.from_stream([])
    with pytest.raises(ValueError, match="memory is 'much'"):
        itspace.Target.from_stream([X], memory="much")
    with pytest.raises(ValueError, match="8 rows of 12 values need"):
        itspace.Target.from_stream([X], memory=100)


def test_what_the_source_raises_is_raised():
    def chunks():
        yield rows()
        raise KeyError("the shelf is empty")

    with pytest.raises(KeyError, match="shelf"):
        itspace.align(itspace.Target.from_stream(chunks), rank=RANK)


def test_npy_files(tmp_path):
    X = rows()
    for i, part in enumerate(np.array_split(X, 3)):
        np.save(tmp_path / f"part-{i}.npy", part)
    listed = [tmp_path / f"part-{i}.npy" for i in range(3)]
    for files in (tmp_path / "part-*.npy", listed, [str(tmp_path / "part-[01].npy"), str(listed[2])]):
        assert_as_in_memory(itspace.Target.from_files(files, memory="1MiB"), X)
    np.save(tmp_path / "wide.npy", X.astype(np.float64))
    with pytest.raises(RuntimeError, match="wide.npy.*float64.*part-0.npy.*float32"):
        itspace.Target.from_files([*listed, tmp_path / "wide.npy"])
    mixed = itspace.align(itspace.Target.from_files(listed), rank=RANK, precision="mixed")
    assert mixed.trace["precision"] == "mixed"
    assert itspace.align(itspace.Target.from_files(listed), rank=RANK, precision="float64").trace["precision"] == "float64"


def test_no_file_that_is_read_is_written(tmp_path):
    names = [tmp_path / "part-0.npy", tmp_path / "part-1.npy"]
    for name in names:
        np.save(name, np.random.default_rng(1).standard_normal((20, 3)))
    (tmp_path / "link.npy").symlink_to(names[1])
    before = names[1].read_bytes()
    for files in (names, str(tmp_path / "part-*.npy")):
        for out in (names[1], tmp_path / "link.npy"):
            with pytest.raises(ValueError, match="out is .*npy', and rows are read from that file .*part-1.npy.*another name"):
                itspace.covariance(files, out=out)
            with pytest.raises(ValueError, match="checkpoint is .*and rows are read from that file"):
                itspace.align(itspace.Target.from_files(files), rank=2, steps=4, checkpoint=out, checkpoint_every=1)
    assert names[1].read_bytes() == before
    assert itspace.covariance(names, out=tmp_path / "S.npy").shape == (3, 3)


def test_a_file_of_one_dimension_is_no_feature_set(tmp_path):
    np.save(tmp_path / "labels.npy", np.arange(30.0))
    np.save(tmp_path / "column.npy", np.arange(30.0)[:, None])
    with pytest.raises(ValueError, match=r"labels\.npy has 1 dimension.*\(30,\).*reshape\(-1, 1\)"):
        itspace.Target.from_files([tmp_path / "column.npy", tmp_path / "labels.npy"])
    assert itspace.Target.from_files(tmp_path / "column.npy").dim == 1


def test_a_dataset_and_an_array_of_one_dimension_are_none_either(tmp_path):
    values = np.arange(30.0)
    with pytest.raises(ValueError, match=r"source of a stream has 1 dimension.*\(30,\).*reshape\(-1, 1\)"):
        itspace.Target.from_stream(values)
    pieces = np.empty(2, dtype=object)  # an array of chunks is an iterable of them
    pieces[:] = np.split(rows(), 2)
    assert itspace.Target.from_stream(pieces).dim == 12
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["labels"] = values
        file["column"] = values[:, None]
    with pytest.raises(ValueError, match=r"x\.h5:/labels' has 1 dimension.*\(30,\).*reshape\(-1, 1\)"):
        itspace.Target.from_files(f"{tmp_path}/x.h5:/labels")
    assert itspace.Target.from_files(f"{tmp_path}/x.h5:/column").dim == 1


def test_they_are_pickled_by_name(tmp_path):
    X = rows()
    np.save(tmp_path / "x.npy", X)
    target = itspace.Target.from_files(tmp_path / "x.npy")
    Y = np.eye(12, 2, dtype=np.float32)
    for again in (pickle.loads(pickle.dumps(target)), copy.deepcopy(target)):
        assert np.array_equal(again.apply(Y), target.apply(Y))


def test_a_file_that_changes(tmp_path):
    np.save(tmp_path / "x.npy", rows())
    target = itspace.Target.from_files(tmp_path / "x.npy")
    assert target.trace > 0
    np.save(tmp_path / "x.npy", rows(mean=3.0))
    os.utime(tmp_path / "x.npy", ns=(1, 1))
    with pytest.raises(RuntimeError, match="x.npy.*changed"):
        target.apply(np.eye(12, 2, dtype=np.float32))


def test_a_file_that_is_gone_was_there_when_the_run_began(tmp_path):
    X = rows()
    np.save(tmp_path / "x.npy", X)
    names = [tmp_path / "x.npy"]
    targets = [itspace.Target.from_files(tmp_path / "x.npy")]
    try:
        import pyarrow
        import pyarrow.parquet

        pyarrow.parquet.write_table(pyarrow.table({f"f{j}": column for j, column in enumerate(X.T)}), tmp_path / "x.parquet")
        names.append(tmp_path / "x.parquet")
        targets.append(itspace.Target.from_files(tmp_path / "x.parquet"))
    except ImportError:
        pass
    for name, target in zip(names, targets):
        assert target.trace > 0
        name.unlink()
        with pytest.raises(RuntimeError, match=rf"{name.name}' was there when the run began and is gone; put it back"):
            target.apply(np.eye(12, 2, dtype=np.float32))


def test_parquet_and_arrow(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    import pyarrow.feather
    import pyarrow.parquet

    X = rows()
    names = [f"f{j}" for j in range(12)]
    tables = [pyarrow.table({n: part[:, j] for j, n in enumerate(names)}) for part in np.array_split(X, 2)]
    for i, table in enumerate(tables):
        pyarrow.parquet.write_table(table, tmp_path / f"{i}.parquet", row_group_size=37)
        pyarrow.feather.write_feather(table, tmp_path / f"{i}.arrow", compression="uncompressed")
    for kind in ("parquet", "arrow"):
        assert_as_in_memory(itspace.Target.from_files(tmp_path / f"*.{kind}"), X)
        assert itspace.Target.from_files(tmp_path / f"*.{kind}", columns=names[:5]).dim == 5
    lists = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(X.ravel()), 12)
    pyarrow.parquet.write_table(pyarrow.table({"embedding": lists, "id": np.arange(400)}), tmp_path / "e.parquet")
    assert_as_in_memory(itspace.Target.from_files(tmp_path / "e.parquet", columns="embedding"), X)
    with pytest.raises(ValueError, match="embedding.*columns="):
        itspace.Target.from_files(tmp_path / "e.parquet")
    others = pyarrow.table({n: X[:, j] for j, n in enumerate(reversed(names))})
    pyarrow.parquet.write_table(others, tmp_path / "o.parquet")
    with pytest.raises(ValueError, match="column 0 of .*o.parquet' is .*0.parquet' it is .*columns="):
        itspace.Target.from_files([tmp_path / "0.parquet", tmp_path / "o.parquet"])
    broken = X.copy()
    broken[30, 2] = np.inf
    table = pyarrow.table({n: broken[:, j] for j, n in enumerate(names)})
    pyarrow.parquet.write_table(table, tmp_path / "b.parquet")
    with pytest.raises(ValueError, match="b.parquet': row 30, column 2 is inf"):
        itspace.align(itspace.Target.from_files([tmp_path / "0.parquet", tmp_path / "b.parquet"]), rank=RANK)


def test_a_file_that_pyarrow_cannot_read_is_named(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    import pyarrow.feather
    import pyarrow.parquet

    table = pyarrow.table({f"f{j}": column for j, column in enumerate(rows().T)})
    for name, write in (("x.parquet", pyarrow.parquet.write_table), ("x.arrow", pyarrow.feather.write_feather)):
        good, bad = tmp_path / name, tmp_path / f"bad-{name}"
        write(table, good)
        whole = good.read_bytes()
        for content in (b"", b"no table at all", whole[: len(whole) // 2]):
            bad.write_bytes(content)
            with pytest.raises(RuntimeError, match=f"bad-{name}' cannot be read as .*: .+; copy or save it again"):
                itspace.align(itspace.Target.from_files([good, bad]), rank=RANK)


def test_the_checksums_of_a_parquet_file_are_verified(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    import pyarrow.parquet

    path = tmp_path / "x.parquet"
    table = pyarrow.table({f"f{j}": column for j, column in enumerate(rows().T)})
    plain = dict(write_page_checksum=True, use_dictionary=False, compression="none")
    pyarrow.parquet.write_table(table, path, **plain)
    itspace.align(itspace.Target.from_files(path), rank=RANK)
    content = bytearray(path.read_bytes())
    at = bytes(content).index(rows()[:, 1].tobytes())  # the values of a column, as they lie
    content[at + 4] ^= 1
    path.write_bytes(content)
    with pytest.raises(RuntimeError, match="x.parquet' cannot be read as Parquet: .*; copy or save it again"):
        itspace.align(itspace.Target.from_files(path), rank=RANK)


@pytest.mark.parametrize("columns", ["nowhere", ["f1", "nowhere"]])
def test_a_column_that_is_not_there_is_named(tmp_path, columns):
    pyarrow = pytest.importorskip("pyarrow")
    import pyarrow.feather
    import pyarrow.parquet

    table = pyarrow.table({f"f{j}": column for j, column in enumerate(rows().T)})
    pyarrow.parquet.write_table(table, tmp_path / "x.parquet")
    pyarrow.feather.write_feather(table, tmp_path / "x.arrow")
    for name in ("x.parquet", "x.arrow"):
        with pytest.raises(ValueError, match=rf"{name}' has no column 'nowhere'; its columns are 'f0', .*'f7', \.\.\. \(12\)"):
            itspace.Target.from_files(tmp_path / name, columns=columns)


def test_a_file_that_h5py_cannot_read_is_named(tmp_path):
    pytest.importorskip("h5py")
    (tmp_path / "bad.h5").write_bytes(b"no dataset at all")
    with pytest.raises(RuntimeError, match="bad.h5' cannot be read as HDF5: .+; copy or save it again"):
        itspace.Target.from_files(f"{tmp_path}/bad.h5:/x")


def test_datasets_of_hdf5(tmp_path):
    h5py = pytest.importorskip("h5py")
    X = rows()
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("a/b", data=X, chunks=(50, 5), compression="gzip")
    assert_as_in_memory(itspace.Target.from_files(f"{tmp_path}/x.h5:/a/b"), X)
    with pytest.raises(RuntimeError, match="no dataset '/a/c'.*'a'"):
        itspace.Target.from_files(f"{tmp_path}/x.h5:/a/c")
    with h5py.File(tmp_path / "x.h5", "r") as file:
        assert_as_in_memory(itspace.Target.from_stream(file["a/b"]), X)
