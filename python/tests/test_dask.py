# SPDX-License-Identifier: Apache-2.0
"""Rows on Dask workers: the same results as in memory, on any scheduler, and when a worker dies."""
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

import itspace

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
cloudpickle = pytest.importorskip("cloudpickle")
da = pytest.importorskip("dask.array")
import itspace.dask  # noqa: E402

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers do not find this file


@pytest.fixture(scope="module")
def cluster():
    """A client with two worker processes of one thread each."""
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0") as local:
        with distributed.Client(local, set_as_default=False) as client:
            yield client


@pytest.fixture(params=["synchronous", "threads", "cluster"])
def scheduler(request):
    if request.param == "cluster":
        with request.getfixturevalue("cluster").as_current():
            yield request.param
    else:
        with dask.config.set(scheduler=request.param):
            yield request.param


def samples(rng, n=260, d=24, mean=0.0):
    mix = rng.standard_normal((d, d)) * np.linspace(2, 0.1, d)
    return rng.standard_normal((n, d)) @ mix.T + mean


def covariance_of(X):
    """From the definition, in float64 about the mean."""
    Z = X.astype(np.float64)
    Z = Z - Z.mean(axis=0)
    return Z.T @ Z / (len(Z) - 1)


def residual(found, wanted, X, Y, dtype):
    """The error of a product in units of its rounding: n eps ||S|| ||Y||."""
    scale = len(X) * np.finfo(dtype).eps * np.linalg.norm(covariance_of(X)) * np.linalg.norm(Y)
    return np.linalg.norm(found.astype(np.float64) - wanted) / scale


# Results are those in memory.


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("chunks", [260, (130, 130), (1, 100, 0, 99, 60), 11], ids=str)
def test_products_mean_and_trace_are_those_of_the_definition(rng, dtype, chunks):
    X = samples(rng, mean=3.0).astype(dtype)
    spread = itspace.Target.from_dask(da.from_array(X, chunks=(chunks, -1)))
    Y = rng.standard_normal((24, 5)).astype(dtype)
    S = covariance_of(X)
    assert spread.kind == "dask" and spread.dtype == dtype and spread.dim == 24 and spread.samples == 260
    assert residual(spread.apply(Y), S @ Y, X, Y, dtype) < 1
    eps = np.finfo(np.float64).eps
    assert abs(spread.trace - np.trace(S)) < len(X) * eps * np.trace(S)
    np.testing.assert_allclose(spread.mean, X.astype(np.float64).mean(axis=0), rtol=len(X) * eps)
    np.testing.assert_allclose(spread.deviations, np.sqrt(np.diag(S)), rtol=len(X) * eps)


def test_a_run_is_that_in_memory_on_every_scheduler(rng, scheduler):
    X = samples(rng)
    start = itspace.start_from(itspace.Target.from_features(X[:100]), 4)
    here = itspace.align(itspace.Target.from_features(X), start, steps=4)
    there = itspace.align(itspace.dask.target(da.from_array(X, chunks=(70, -1))), start, steps=4)
    assert there.certified and there.status == here.status
    eps = len(X) * np.finfo(np.float64).eps
    np.testing.assert_allclose(there.trace["objective"], here.trace["objective"], rtol=100 * eps)
    S = covariance_of(X)
    assert np.linalg.norm(there.factor - here.factor) < 100 * eps * np.linalg.cond(start) * np.linalg.norm(S) ** 0.5


def test_the_bits_are_those_of_the_chunks_whoever_is_first(rng, cluster):
    X = da.from_array(samples(rng, n=400).astype(np.float32), chunks=(13, -1))  # 31 chunks: two levels of sums
    Y = rng.standard_normal((24, 6)).astype(np.float32)
    found = []
    for name in ("synchronous", "threads"):
        with dask.config.set(scheduler=name):
            found += [itspace.dask.target(X).apply(Y) for _ in range(3)]
    with cluster.as_current():
        held = X.persist()
        found += [itspace.dask.target(held).apply(Y) for _ in range(3)]
    assert all(np.array_equal(one, found[0]) for one in found)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_parts_add_up_to_the_same_in_any_order(rng, dtype):
    from itspace._dask_sums import Limits, in_exact_parts, summed

    Z = (rng.standard_normal((600, 7)) * 10.0 ** np.arange(-3, 4)).astype(dtype)
    Z[:, 2] = 0
    Y = (rng.standard_normal((7, 3)) * [1e-9, 1, 1e12]).astype(dtype)
    products = [z.T @ (z @ Y) for z in np.split(Z, 60)]
    limits = Limits.of((Z.astype(np.float64) ** 2).sum(axis=0), Y)
    parts = [in_exact_parts(product, limits) for product in products]
    bits = {summed([parts[i] for i in rng.permutation(60)]).tobytes() for _ in range(20)}
    bits.add(summed([summed(parts[i : i + 7]) for i in range(0, 60, 7)]).tobytes())
    assert len(bits) == 1
    wanted = sum(product.astype(np.longdouble) for product in products)
    size = np.sqrt((Z.astype(np.float64) ** 2).sum(axis=0)[:, None] * (Z.astype(np.float64) ** 2).sum()) * np.linalg.norm(Y, axis=0)
    # Half a unit for each part, and the one rounding of their sum.
    unit = 2.0**-46 if dtype == np.float32 else np.finfo(np.float64).eps
    assert (abs(summed(parts).sum(axis=0) - wanted) <= 60 * unit * size).all()


def test_a_step_is_one_task_for_each_thread_that_has_chunks(rng, cluster):
    cluster.wait_for_workers(2)
    Y = rng.standard_normal((24, 3))
    with cluster.as_current():
        rows = da.from_array(samples(rng, n=400), chunks=(13, -1))
        held, lazy = itspace.dask.target(rows.persist()), itspace.dask.target(rows)
        assert np.array_equal(held.apply(Y), lazy.apply(Y))
        assert lazy._rows.placed is None
        placed = held._rows.placed
        assert len(placed.kept) == len(placed.shares) == 2
        assert sorted(number for _, numbers in placed.shares for number in numbers) == list(range(31))
        # A large block is sent once, and handed on.
        wide = rng.standard_normal((24, 1 << 13))
        assert np.array_equal(held.apply(wide), lazy.apply(wide))
        assert len(placed.kept) == 3


def test_chunks_that_lie_elsewhere_are_looked_for(rng, cluster):
    cluster.wait_for_workers(2)
    Y = rng.standard_normal((24, 3))
    with cluster.as_current():
        target = itspace.dask.target(da.from_array(samples(rng, n=400), chunks=(40, -1)).persist())
        found = target.apply(Y)
        placed = target._rows.placed
        placed.shares = [("tcp://nobody:1", numbers) for _, numbers in placed.shares]  # as if their worker had gone
        assert np.array_equal(target.apply(Y), found)
        assert placed.shares is None
        assert np.array_equal(target.apply(Y), found)
        assert {address for address, _ in placed.shares} <= set(cluster.nthreads())


def test_a_large_mean_takes_no_digits_of_float32(rng):
    X = (samples(rng) + 1e7).astype(np.float32)  # where neighbours are 1 apart: no shift in float32 is the mean
    Y = rng.standard_normal((24, 4)).astype(np.float32)
    spread = itspace.dask.target(da.from_array(X, chunks=(50, -1)))
    S = covariance_of(X)
    assert residual(spread.apply(Y), S @ Y, X, Y, np.float32) < 1
    assert abs(spread.trace - np.trace(S)) < len(X) * np.finfo(np.float64).eps * np.trace(S)


def test_a_constant_feature_has_no_variance(rng):
    X = samples(rng)
    X[:, 3] = 0.1  # no sum of it is exact
    spread = itspace.dask.target(da.from_array(X, chunks=(70, -1)))
    assert spread.deviations[3] == 0 and (spread.deviations[[0, 1, 2, 4]] > 0).all()


def test_precisions(rng):
    X = samples(rng).astype(np.float32)
    rows = da.from_array(X, chunks=(100, -1))
    for precision, dtype in (("float32", np.float32), ("mixed", np.float64), ("float64", np.float64)):
        run = itspace.align(itspace.dask.target(rows), rank=3, steps=2, precision=precision)
        assert run.factor.dtype == dtype and run.certified


@pytest.mark.parametrize("dtype", ["i2", "b1", "f2", ">f4"])
def test_other_numbers_are_converted(rng, dtype):
    X = np.maximum(0, samples(rng)).astype(dtype)
    spread = itspace.dask.target(da.from_array(X, chunks=(100, -1)))
    assert spread.dtype == (np.float32 if dtype == ">f4" else np.float64)
    S = covariance_of(X)
    assert abs(spread.trace - np.trace(S)) < len(X) * np.finfo(np.float64).eps * np.trace(S)


def test_a_dataframe_of_unknown_lengths_and_an_empty_partition(rng):
    pd = pytest.importorskip("pandas")
    dd = pytest.importorskip("dask.dataframe")
    X = samples(rng, d=5)
    X[:130, 0] = -abs(X[:130, 0])
    frame = dd.from_pandas(pd.DataFrame(X, columns=list("abcde")), npartitions=4)
    frame = frame[frame.a > 0]  # nothing is left of two partitions
    spread = itspace.Target.from_dask(frame)
    kept = X[X[:, 0] > 0]
    assert spread.samples == len(kept)
    assert residual(spread.apply(np.eye(5)), covariance_of(kept), kept, np.eye(5), np.float64) < 1
    unknown = itspace.dask.target(frame.to_dask_array())
    assert np.array_equal(unknown.apply(np.eye(5)), spread.apply(np.eye(5)))


def test_a_sum_leaves_its_parts_alone(rng):
    """A sum that is made again, after a worker was lost, must find them as they were."""
    from itspace._dask_rows import _sum_of_sweep
    from itspace._dask_sums import summed

    parts = [rng.standard_normal((3, 2)) for _ in range(4)]
    kept = [part.copy() for part in parts]
    first = _sum_of_sweep(summed, *parts)
    assert np.array_equal(first, _sum_of_sweep(summed, *parts))
    assert all(np.array_equal(a, b) for a, b in zip(parts, kept))


# The accumulator and the estimator.


def test_an_accumulator_has_seen_all_rows(rng, scheduler):
    X, other = samples(rng), samples(rng, n=90, mean=1.0)
    here = itspace.FrechetAccumulator().update(X)
    there = itspace.dask.FrechetAccumulator().update(da.from_array(X, chunks=((100, 0, 160), -1)))
    assert there.count == 260 and there.dim == 24
    eps = len(X) * np.finfo(np.float64).eps
    assert np.linalg.norm(there.covariance - covariance_of(X)) < eps * np.linalg.norm(covariance_of(X))
    there.update(other)  # and arrays go on as before
    here.update(other)
    assert there.count == here.count == 350
    reference = itspace.FrechetAccumulator().update(samples(rng, n=80))
    assert there.compute(reference) == pytest.approx(here.compute(reference), rel=1e-8)  # its own accuracy


def domains(rng):
    source, target = samples(rng, n=700, d=9), samples(rng, n=520, d=9, mean=1.0) * np.linspace(0.5, 2, 9)
    return source, target


@pytest.mark.parametrize("kind", ["auto", "scale+monge", "monge"])
def test_an_aligner_is_that_in_memory(rng, kind):
    pytest.importorskip("sklearn")
    from itspace.sklearn import CovarianceAligner as InMemory

    Xs, Xt = domains(rng)
    here = InMemory(rank=4, map=kind).fit(Xs, Xt)
    spread = da.from_array(Xt, chunks=(130, -1))
    there = itspace.dask.CovarianceAligner(rank=4, map=kind).fit(da.from_array(Xs, chunks=(150, -1)), spread)
    assert there.choice_ == here.choice_ and there.certified_ and there.rank_ == 4
    moved = there.transform(spread)
    assert dask.is_dask_collection(moved) and moved.chunks == spread.chunks
    # The map multiplies rounding by its condition; 1e6 is that of the models' floor.
    close = dict(rtol=0, atol=1e6 * len(Xs) * np.finfo(np.float64).eps * abs(Xs).max())
    np.testing.assert_allclose(moved.compute(), here.transform(Xt), **close)
    np.testing.assert_allclose(there.inverse_transform(moved).compute(), Xt, **close)
    np.testing.assert_allclose(there.transform(Xt), here.transform(Xt), **close)
    for name in ("noise_share", "mean_share", "unexplained_mean", "displacement"):
        assert there.harm_report_[name] == pytest.approx(here.harm_report_[name], rel=1e-6, abs=1e-9), name
    assert there.harm_report_.samples == (700, 520)


def test_an_aligner_that_asks_a_classifier(rng):
    pytest.importorskip("sklearn")
    from sklearn.linear_model import LogisticRegression

    from itspace.sklearn import CovarianceAligner as InMemory

    Xs, Xt = domains(rng)
    head = LogisticRegression().fit(Xs, Xs[:, 0] > 0)
    here = InMemory(rank=4).fit(Xs).adapt(Xt, head=head)
    there = itspace.dask.CovarianceAligner(rank=4).fit(da.from_array(Xs, chunks=(350, -1)))
    there.adapt(da.from_array(Xt, chunks=(260, -1)), head=head)
    assert there.choice_ == here.choice_ and there.report_.evidence == "probabilities"
    for name, numbers in here.report_.candidates.items():
        assert there.report_.candidates[name] == pytest.approx(numbers, abs=2 / len(Xt)), name  # a row at the border


def test_an_aligner_transforms_nothing_before_it_is_asked(rng):
    pytest.importorskip("sklearn")
    Xs, Xt = domains(rng)
    aligner = itspace.dask.CovarianceAligner(rank=3, map="monge").fit(Xs, Xt)  # arrays in memory are fine
    lazy = aligner.transform(da.from_array(Xt, chunks=(100, -1)).map_blocks(refuse, dtype=Xt.dtype))
    with pytest.raises(ZeroDivisionError):
        lazy.compute()


def refuse(chunk):
    if chunk.size:
        raise ZeroDivisionError
    return chunk


def test_an_aligner_of_dataframes(rng):
    pytest.importorskip("sklearn")
    pd = pytest.importorskip("pandas")
    dd = pytest.importorskip("dask.dataframe")
    Xs, Xt = domains(rng)
    names = list("abcdefghi")
    source, target = (dd.from_pandas(pd.DataFrame(X, columns=names), npartitions=3) for X in (Xs, Xt))
    aligner = itspace.dask.CovarianceAligner(rank=3, map="scale").fit(Xs=source, Xt=target)
    assert list(aligner.feature_names_in_) == names
    assert aligner.transform(target).compute().shape == Xt.shape
    with pytest.raises(ValueError, match="not those of fit"):
        aligner.transform(target[names[::-1]])
    with pytest.raises(ValueError, match="Xt has 4 features"):
        aligner.adapt(target[names[:4]])
    with pytest.raises(ValueError, match="pass two"):
        aligner.fit(source, sample_domain=np.ones(700))


# A worker that dies.


def die_once(flag):
    try:
        os.unlink(flag)
    except FileNotFoundError:
        return
    os.kill(os.getpid(), signal.SIGKILL)


def set_trap(flag):
    """From now on this worker dies in a product where the flag is there."""
    from itspace import _core

    product = _core.rows_product

    def trapped(*given):
        die_once(flag)
        return product(*given)

    _core.rows_product = trapped


def load(chunk, flag):
    die_once(flag)
    return chunk


@pytest.mark.parametrize("held", [True, False], ids=["persisted", "loaded in each step"])
def test_a_worker_killed_in_a_step(rng, cluster, tmp_path, held):
    cluster.wait_for_workers(2)
    flag = str(tmp_path / "die")
    rows = da.from_array(samples(rng, n=400), chunks=(40, -1))
    if not held:
        rows = rows.map_blocks(load, flag, dtype=rows.dtype)
    with cluster.as_current():
        rows = rows.persist() if held else rows
        target = itspace.dask.target(rows)
        undisturbed = itspace.align(target, rank=3, steps=4)
        before = set(cluster.run(os.getpid).values())
        if held:
            cluster.run(set_trap, flag)

        def callback(step, factor):
            if step["index"] == 1:
                open(flag, "w").close()  # the next product is the one of step 2

        found = itspace.align(target, rank=3, steps=4, callback=callback)
    assert not os.path.exists(flag)
    cluster.wait_for_workers(2)
    assert len(before - set(cluster.run(os.getpid).values())) == 1
    assert found.certified and len(found.trace["objective"]) == 5
    assert np.array_equal(found.factor, undisturbed.factor)


# Input that is refused, and in which words.


def test_a_value_that_is_not_finite_is_named(rng, scheduler):
    X = samples(rng, d=5)
    X[170, 3] = np.nan
    X[201, 1] = np.inf  # a later one
    rows = da.from_array(X, chunks=(50, -1))
    where = r"nan in chunk 3, row 20 of it \(row 170 of all\), column 3; remove"
    with pytest.raises(ValueError, match="X has " + where):
        itspace.dask.target(rows)
    with pytest.raises(ValueError, match="batch has " + where):
        itspace.dask.FrechetAccumulator().update(rows)
    with pytest.raises(ValueError, match="X has inf in chunk 0, row 30 of it, column 1"):
        itspace.dask.target(da.from_array(X[171:], chunks=(50, -1))[da.ones(89, chunks=50) > 0])  # sizes unknown


def short(chunk):
    return chunk[:, :-1]


def complex_valued(chunk):
    return chunk * 1j


def masked(chunk):
    return np.ma.masked_invalid(chunk)


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda X: X, TypeError, "ndarray; it must be a dask array"),
        (lambda X: da.from_array(X, chunks=(100, 10)), ValueError, r"3 chunks along its columns.*rechunk\(\{1: -1\}\)"),
        (lambda X: da.from_array(X[:, 0], chunks=100), ValueError, "1 dimension"),
        (lambda X: da.from_array(X * 1j, chunks=100), TypeError, "complex128"),
        (lambda X: da.from_array(X.astype(np.longdouble), chunks=(100, -1)), TypeError, "float64 is the widest"),
        (lambda X: da.from_array(X[:1], chunks=(100, -1)), ValueError, r"1 row\(s\) in 1 chunk"),
        (lambda X: da.from_array(X[:0], chunks=(100, -1)), ValueError, r"0 row\(s\)"),
        (lambda X: da.from_array(1e200 * X, chunks=(100, -1)), ValueError, "beyond what float64 can hold"),
        (lambda X: da.from_array(X, chunks=(100, -1)).map_blocks(short, dtype=float), ValueError, r"chunk \d .*23\); its rows must have 24"),
        (lambda X: da.from_array(X, chunks=(100, -1)).map_blocks(complex_valued, dtype=float), TypeError, "complex128"),
        (lambda X: da.from_array(X, chunks=(100, -1)).map_blocks(masked, dtype=float), TypeError, "masked array"),
    ],
)
def test_refused(rng, make, error, text):
    with pytest.raises(error, match=text):
        itspace.dask.target(make(samples(rng)))


def test_a_column_that_is_no_number_is_named():
    pd = pytest.importorskip("pandas")
    dd = pytest.importorskip("dask.dataframe")
    frame = dd.from_pandas(pd.DataFrame({"a": [1.0, 2.0], "name": ["x", "y"]}), npartitions=1)
    with pytest.raises(TypeError, match="column 'name' of X has dtype"):
        itspace.dask.target(frame)


def test_a_client_that_is_closed(rng):
    rows = da.from_array(samples(rng), chunks=(100, -1))
    client = distributed.Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=":0")
    with client:
        held = rows.persist()
        target = itspace.dask.target(held)
    with pytest.raises(RuntimeError, match="client of X is clos.*make the target anew"):
        target.apply(np.eye(24))
    with pytest.raises(RuntimeError, match="client of X is clos"):
        itspace.dask.target(held)
    itspace.dask.target(rows).apply(np.eye(24))  # and without a client there is this process


def test_without_dask_the_package_to_install_is_named():
    program = "import sys; sys.modules['dask'] = None; import itspace; itspace.Target.from_dask(None)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 1 and "ImportError" in done.stderr and "pip install 'itspace[dask]'" in done.stderr
