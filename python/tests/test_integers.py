# SPDX-License-Identifier: Apache-2.0
"""Every integer of the public API: what is none, or is too large, is refused with its name, its value and the limit."""
import inspect
import re

import numpy as np
import pytest

import itspace

S = np.diag([3.0, 2.0, 1.0])
Y = np.eye(3)[:, :2]
X = np.arange(12.0).reshape(4, 3) ** 2
MAP = itspace.TransportMap.between(S, Y, None, S, Y, None)
FEATURES = itspace.Target.from_features(X)
MODEL = itspace.model_of(FEATURES, Y)


class Operator:
    trace = 6.0

    def __init__(self, dim):
        self.dim = dim

    def apply(self, block):
        return S @ block


# Function, argument, what it may be at most, a value that serves, a call.
CALLS = {
    ("align", "rank"): (3, 2, lambda n: itspace.align(S, rank=n)),
    ("align", "rank", "start"): (3, 2, lambda n: itspace.align(S, Y, rank=n)),
    ("align", "steps"): (None, 2, lambda n: itspace.align(S, rank=1, steps=n)),
    ("align", "guard"): (None, 2, lambda n: itspace.align(S, rank=1, solver="ritz", guard=n)),
    ("align", "seed"): (2**64 - 1, 2, lambda n: itspace.align(S, rank=1, seed=n)),
    ("align", "checkpoint_every"): (None, 2, lambda n: itspace.align(S, rank=1, checkpoint_every=n)),
    ("align_batch", "rank"): (3, 2, lambda n: itspace.align_batch(S[None], rank=n)),
    ("align_batch", "rank", "starts"): (3, 2, lambda n: itspace.align_batch(S[None], Y[None], n)),
    ("align_batch", "steps"): (2**31 - 1, 2, lambda n: itspace.align_batch(S[None], rank=1, steps=n)),
    ("align_batch", "guard"): (None, 2, lambda n: itspace.align_batch(S[None], rank=1, solver="ritz", guard=n)),
    ("align_batch", "seed"): (2**64 - 1, 2, lambda n: itspace.align_batch(S[None], rank=1, seed=n)),
    ("auto_rank", "seed"): (2**64 - 1, 2, lambda n: itspace.auto_rank(S, seed=n)),
    ("start_from", "rank"): (3, 2, lambda n: itspace.start_from(S, n)),
    ("start_from", "seed"): (2**64 - 1, 2, lambda n: itspace.start_from(S, 1, seed=n)),
    ("random_start", "rank"): (3, 2, lambda n: itspace.random_start(S, n)),
    ("random_start", "seed"): (2**64 - 1, 2, lambda n: itspace.random_start(S, 1, seed=n)),
    ("truncate", "rank"): (3, 2, lambda n: itspace.truncate(S, n)),
    ("truncate_factor", "rank"): (3, 2, lambda n: itspace.truncate_factor(Y, n)),
    ("leading_eigenvalues", "count"): (3, 2, lambda n: itspace.leading_eigenvalues(S, n)),
    ("FollowGate", "buffer"): (None, 2, lambda n: itspace.FollowGate(MODEL, len, buffer=n)),
    ("FollowGate", "patience"): (None, 2, lambda n: itspace.FollowGate(MODEL, len, patience=n)),
    ("set_threads", "count"): (4096, 2, lambda n: (itspace.set_threads(n), itspace.set_threads(0))),
    ("thread_limit", "count"): (4096, 2, lambda n: itspace.thread_limit(n)),
    ("FrechetAccumulator", "dim"): (None, 2, lambda n: itspace.FrechetAccumulator(n)),
    ("TransportMap.diagnose", "samples_from"): (None, 2, lambda n: MAP.diagnose(n)),
    ("TransportMap.diagnose", "samples_to"): (None, 2, lambda n: MAP.diagnose(None, n)),
    ("TransportMap.between", "seed"): (
        2**64 - 1,
        2,
        lambda n: itspace.TransportMap.between(FEATURES, Y, None, FEATURES, Y, None, seed=n),
    ),
    ("seen_shift", "seed"): (2**64 - 1, 2, lambda n: itspace.seen_shift(FEATURES, MODEL, FEATURES, MODEL, seed=n)),
    ("seen_shift", "steps"): (
        None,
        2,
        lambda n: itspace.seen_shift(FEATURES, MODEL, FEATURES, MODEL, method="halves", steps=n),
    ),
    ("shift_test", "rank"): (None, 2, lambda n: itspace.shift_test(X, X, rank=n, permutations=2)),
    ("shift_test", "permutations"): (None, 2, lambda n: itspace.shift_test(X, X, permutations=n)),
    ("shift_test", "seed"): (2**64 - 1, 2, lambda n: itspace.shift_test(X, X, permutations=2, seed=n)),
    ("CovarianceOperator", "the target's dim"): (None, 3, lambda n: itspace.align(Operator(n), rank=1)),
}
for name in ("rank", "steps", "subset", "starts", "seed"):
    CALLS["barycenter", name] = (
        2**64 - 1 if name == "seed" else 3 if name == "rank" else None,
        2,
        lambda n, name=name: itspace.barycenter([S, 2 * S], **{"rank": 2, "steps": 2, name: n}),
    )
for name in ("rank", "steps", "window", "keep", "reference_batches", "seed"):
    CALLS["OnlineAligner", name] = (
        2**64 - 1 if name == "seed" else None,
        4 if name == "reference_batches" else 2,
        lambda n, name=name: itspace.OnlineAligner(**{"rank": 2, "run_length": 50.0, name: n}).observe(X),
    )

try:
    from itspace.sklearn import CovarianceAligner, target_folds

    for name in ("rank", "steps", "guard", "random_state"):
        CALLS["CovarianceAligner", name] = (
            2**64 - 1 if name == "random_state" else None,
            2,
            lambda n, name=name: CovarianceAligner(**{"rank": 2, "solver": "ritz", name: n}).fit(X, 2 * X),
        )
    CALLS["target_folds", "n_splits"] = (None, 2, lambda n: target_folds([1, 1, -1, -1], n_splits=n))
except ImportError:
    pass
try:
    from itspace.torch import AlignLayer

    CALLS["AlignLayer", "dim"] = (None, 2, lambda n: AlignLayer(n, 1))
    CALLS["AlignLayer", "rank"] = (3, 2, lambda n: AlignLayer(3, n))
except ImportError:
    pass

# A rank that more than suffices counts as enough there.
NO_LIMIT = {("CovarianceAligner", "rank")}
SWEEP = pytest.mark.parametrize("key", CALLS, ids=".".join)


def refusal(key, value):
    with pytest.raises((TypeError, ValueError)) as caught:
        CALLS[key][2](value)
    text = str(caught.value)
    assert key[1] in text, text
    assert "incompatible function arguments" not in text and "bad_cast" not in text, text
    assert text.count(";") >= 1, text  # the remedy
    return caught.type, text


@SWEEP
@pytest.mark.parametrize("value", [2**63, 2**64, 10**30, -(2**63) - 1, -(10**30)], ids=repr)
def test_too_large_is_a_value_error_that_says_the_limit(key, value):
    most = CALLS[key][0]
    if (most is not None and 0 <= value <= most) or (key in NO_LIMIT and value > 0):
        CALLS[key][2](value)
        return
    kind, text = refusal(key, value)
    assert kind is ValueError and str(value) in text, text


@SWEEP
def test_so_large_that_python_will_not_spell_it(key):
    if key in NO_LIMIT:
        return
    kind, text = refusal(key, 10**5000)
    assert kind is ValueError and "16610 bits" in text, text


@SWEEP
def test_negative_is_a_value_error(key):
    kind, text = refusal(key, -1)
    assert kind is ValueError and "-1" in text, text


@SWEEP
@pytest.mark.parametrize("value", [True, np.True_, 1.5, 2.0, np.float64(2), "2", b"2", [2], (2,), np.array([1, 2]), 2j], ids=repr)
def test_what_is_no_integer_is_a_type_error(key, value):
    if key == ("CovarianceAligner", "random_state"):
        return  # what else it may be is for scikit-learn to say
    kind, text = refusal(key, value)
    if isinstance(value, str) and key[1] == "rank" and key[0] in ("align", "start_from", "random_start"):
        assert kind is ValueError, text  # a rank may be a text, 'auto'
    else:
        assert kind is TypeError and "integer" in text, text


@SWEEP
@pytest.mark.parametrize("dtype", [int, np.int8, np.int32, np.int64, np.uint8, np.uint64])
def test_integers_of_numpy_serve(key, dtype):
    CALLS[key][2](dtype(CALLS[key][1]))


def test_no_public_integer_is_left_out():
    """Whatever is annotated as an integer, here and in the faces, is in the table above."""
    missing = []

    def look(owner, function):
        for name, parameter in inspect.signature(function).parameters.items():
            annotation = str(parameter.annotation)
            if re.search(r"\b(int|Rank)\b", annotation) and (owner, name) not in CALLS:
                missing.append((owner, name, annotation))

    modules = [itspace]
    for face in ("sklearn", "torch"):
        try:
            modules.append(__import__(f"itspace.{face}", fromlist=["__all__"]))
        except ImportError:
            pass
    for module in modules:
        for name in module.__all__:
            value = getattr(module, name)
            if inspect.isfunction(value):
                look(name, value)
            elif inspect.isclass(value) and not issubclass(value, tuple) and name != "BatchResult":  # records
                for method_name, method in vars(value).items():
                    plain = getattr(method, "__func__", method)
                    if inspect.isfunction(plain) and (not method_name.startswith("_") or method_name == "__init__"):
                        look(name if method_name == "__init__" else f"{name}.{method_name}", plain)
    assert not missing
