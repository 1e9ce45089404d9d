# SPDX-License-Identifier: Apache-2.0
"""align_batch is a loop of align, on all threads, in which one bad problem is no other's business."""
import pickle
import warnings

import numpy as np
import pytest

import itspace


@pytest.fixture
def stack(rng):
    X = rng.normal(size=(12, 30, 7)) * np.linspace(3, 0.5, 7)
    return X, np.stack([np.cov(x.T) for x in X]), rng.normal(size=(12, 7, 3))


def lone(target, start, **options):
    with itspace.thread_limit(1):
        return itspace.align(target, start, **options)


def assert_as_alone(batch, i, alone):
    assert np.array_equal(batch.factors[i], alone.factor)
    made = len(alone.trace["objective"])
    assert np.array_equal(batch.objectives[i, :made], alone.trace["objective"], equal_nan=True)
    assert np.isnan(batch.objectives[i, made:]).all()
    assert (batch.status[i], batch.certified[i], batch.objective[i]) == (alone.status, alone.certified, alone.objective)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("options", [{}, {"solver": "ritz", "steps": 3}, {"alpha": "line-search"}, {"lam": 2.0, "steps": 1}])
def test_a_batch_is_a_loop_of_align(stack, dtype, options):
    X, S, starts = (part.astype(dtype) for part in stack)
    covariances = itspace.align_batch(S, starts, **options)
    features = itspace.align_batch(X, starts, features=True, **options)
    random = itspace.align_batch(S, rank=2, seed=5, **options)
    assert covariances.factors.dtype == dtype and covariances.objectives.dtype == np.float64
    for i in range(len(S)):
        assert_as_alone(covariances, i, lone(S[i], starts[i], **options))
        assert_as_alone(features, i, lone(itspace.Target.from_features(X[i]), starts[i], **options))
        assert_as_alone(random, i, lone(S[i], None, rank=2, seed=5, **options))


@pytest.mark.parametrize("precision", ["float32", "mixed", "float64"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_precision_is_that_of_align(stack, precision, dtype):
    _, S, starts = (part.astype(dtype) for part in stack)
    batch = itspace.align_batch(S, starts, precision=precision, keep_traces=True)
    for i in range(len(S)):
        alone = lone(S[i], starts[i], precision=precision)
        assert_as_alone(batch, i, alone)
        assert batch.traces[i]["precision"] == alone.trace["precision"]


def test_the_number_of_threads_changes_no_bit(stack):
    _, S, starts = stack
    expected = itspace.align_batch(S, starts)
    for threads in (1, 2, 3, 4):
        with itspace.thread_limit(threads):
            found = itspace.align_batch(S, starts)
        assert np.array_equal(found.factors, expected.factors)
        assert np.array_equal(found.objectives, expected.objectives)


def test_traces_on_request(stack):
    _, S, starts = stack
    assert itspace.align_batch(S, starts).traces == []
    traces = itspace.align_batch(S, starts, keep_traces=True).traces
    alone = lone(S[4], starts[4]).trace
    for key in set(alone) - {"seconds"}:
        np.testing.assert_array_equal(traces[4][key], alone[key], err_msg=key)


def test_one_bad_problem_is_no_others_business(stack):
    _, S, starts = stack
    S = S.copy()
    good = S.copy()
    S[2, 1, 3] = np.nan
    S[5, 0, 6] += 100
    S[9, 4, 4] = -50
    starts[7, 0, 0] = np.inf
    with pytest.warns(RuntimeWarning, match=r"targets\[2\] ended as not_finite \(.*\[1, 3\] is nan.*first of 4 of 12"):
        batch = itspace.align_batch(S, starts)
    bad = {2: "not_finite", 5: "not_a_covariance", 7: "not_finite", 9: "not_a_covariance"}
    for i in range(12):
        if i in bad:
            assert batch.status[i] == bad[i] and not batch.certified[i]
            assert np.array_equal(batch.factors[i], starts[i])
            assert np.isnan(batch.objectives[i]).all()
        else:
            assert_as_alone(batch, i, lone(good[i], starts[i]))
    assert set(batch.reasons) == {2, 5, 9}
    assert "not symmetric" in batch.reasons[5] and "[4, 4] = -50" in batch.reasons[9]


def test_asymmetry_of_rounding_is_averaged_away_as_align_does(stack):
    _, S, starts = stack
    S[3, 0, 5] *= 1 + 1e-8
    assert_as_alone(itspace.align_batch(S, starts), 3, lone(S[3], starts[3]))


def test_nothing_is_copied_or_written(stack):
    _, S, starts = stack
    before = S.copy(), starts.copy()
    S.flags.writeable = starts.flags.writeable = False
    itspace.align_batch(S, starts)
    assert np.array_equal(S, before[0]) and np.array_equal(starts, before[1])


def test_a_stack_of_none(rng):
    batch = itspace.align_batch(np.empty((0, 4, 4)), np.empty((0, 4, 2)), steps=3)
    assert batch.factors.shape == (0, 4, 2) and batch.objectives.shape == (0, 4)
    assert len(batch) == 0 and batch.objective.shape == batch.status.shape == (0,)
    assert itspace.align_batch(np.empty((0, 9, 4)), rank=2, features=True).factors.shape == (0, 4, 2)
    assert "0 problems" in repr(batch)


def test_the_result_says_what_it_is(stack):
    _, S, starts = stack
    batch = itspace.align_batch(S, starts)
    assert repr(batch) == "<itspace.BatchResult of 12 problems: 12 step_limit; 12 certified>"
    again = pickle.loads(pickle.dumps(batch))
    assert np.array_equal(again.factors, batch.factors) and again.reasons == {}


def test_float32_that_knows_nothing_is_named(rng):
    start = rng.normal(size=(3, 5, 5)).astype(np.float32)
    S = (start @ start.transpose(0, 2, 1)).astype(np.float32)
    S = (S + S.transpose(0, 2, 1)) / 2
    with pytest.warns(itspace.ResolutionWarning, match=r"in 3 of 3 problems.*precision='mixed'"):
        itspace.align_batch(S, start)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        itspace.align_batch(S, start, precision="mixed")


def test_tensors_come_back_as_tensors(stack):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    _, S, starts = stack
    factors = itspace.align_batch(torch.from_dlpack(S), torch.from_dlpack(starts)).factors
    assert isinstance(factors, torch.Tensor) and tuple(factors.shape) == (12, 7, 3)


@pytest.mark.parametrize(
    "error, match, call",
    [
        (ValueError, r"targets has 2 dimension\(s\)", lambda S, Y: itspace.align_batch(S[0], Y)),
        (ValueError, r"\(12, 7, 3\).*features=True", lambda S, Y: itspace.align_batch(Y, rank=2)),
        (ValueError, "starts has 2 dimension", lambda S, Y: itspace.align_batch(S, Y[0])),
        (ValueError, "12 targets and 11 starts", lambda S, Y: itspace.align_batch(S, Y[1:])),
        (ValueError, "6 rows.*dimension 7", lambda S, Y: itspace.align_batch(S, Y[:, 1:])),
        (ValueError, "rank is 2.*3 columns", lambda S, Y: itspace.align_batch(S, Y, 2)),
        (ValueError, "rank is 8.*7", lambda S, Y: itspace.align_batch(S, rank=8)),
        (ValueError, "rank is 'auto'.*auto_rank", lambda S, Y: itspace.align_batch(S, rank="auto")),
        (TypeError, "neither rank nor starts", lambda S, Y: itspace.align_batch(S)),
        (TypeError, "rank is 2.5", lambda S, Y: itspace.align_batch(S, rank=2.5)),
        (ValueError, "steps is -1", lambda S, Y: itspace.align_batch(S, Y, steps=-1)),
        (ValueError, "steps is 4294967296.*2147483647", lambda S, Y: itspace.align_batch(S, Y, steps=2**32)),
        (ValueError, "precision is 'half'", lambda S, Y: itspace.align_batch(S, Y, precision="half")),
        (ValueError, "alpha is 2.5", lambda S, Y: itspace.align_batch(S, Y, alpha=2.5)),
        (ValueError, "alpha and lam", lambda S, Y: itspace.align_batch(S, Y, alpha=1.0, lam=1.0)),
        (ValueError, "solver is 'Ritz'", lambda S, Y: itspace.align_batch(S, Y, solver="Ritz")),
        (ValueError, "route factor", lambda S, Y: itspace.align_batch(S, Y, route="factor")),
        (ValueError, "guard is 3", lambda S, Y: itspace.align_batch(S, Y, guard=3)),
    ],
)
def test_misuse_is_named(stack, error, match, call):
    with pytest.raises(error, match=match):
        call(stack[1], stack[2])
