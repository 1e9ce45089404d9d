# SPDX-License-Identifier: Apache-2.0
"""Traces that did not come from a run: verify names the entry, its value and what it must be."""
import copy
import pickle

import numpy as np
import pytest

import itspace

S = np.diag([3.0, 2.0, 1.0])
RESULT = itspace.align(S, rank=2, steps=3)
SCALARS = {
    "dim": "an integer",
    "rank": "an integer",
    "solver": "a string",
    "route": "a string",
    "alpha": "a number or None",
    "precision": "a string",
    "status": "a string",
    "reason": "a string or None",
    "target_trace": "a number",
    "passes_total": "an integer",
    "best": "an integer",
}
COLUMNS = {key: "an integer" for key in ("index", "gram_rank", "passes")}
COLUMNS.update(step_route="a string", certified="True, False or None")
COLUMNS.update(
    (key, "a number")
    for key in RESULT.trace
    if isinstance(RESULT.trace[key], np.ndarray) and RESULT.trace[key].dtype == np.float64
)
WORDS = [None, "three", b"three", 1.5, 3, True, [], [[1.0]], {}, {"nested": [1]}, object(), 2**70, 10**5000, 1j, "\ud800"]


def fits(value, expected):
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return {
        "an integer": isinstance(value, int) and number and abs(value) < 2**63,
        "a number": number and abs(value) < 1e308,
        "a number or None": value is None or (number and abs(value) < 1e308),
        "a string": False,  # it would have to be one of a few
        "a string or None": value is None or value == "three",
        "True, False or None": value is None or isinstance(value, bool),
    }[expected]


def refusal(trace):
    with pytest.raises((TypeError, ValueError)) as caught:
        itspace.verify(RESULT.factor, S, trace)
    return caught.type, str(caught.value)


def test_every_entry_is_known_here():
    assert set(SCALARS) | set(COLUMNS) | {"schema"} == set(RESULT.trace)


@pytest.mark.parametrize("key", [*SCALARS, *COLUMNS])
def test_a_missing_entry_is_named(key):
    trace = {k: v for k, v in RESULT.trace.items() if k != key}
    kind, text = refusal(trace)
    assert kind is ValueError and f"no entry '{key}'" in text


@pytest.mark.parametrize("value", WORDS, ids=lambda value: ascii(value)[:20] if not isinstance(value, int) else hex(value)[:20])
@pytest.mark.parametrize("key", SCALARS)
def test_a_wrong_entry_is_named(key, value):
    trace = {**RESULT.trace, key: value}
    if key in ("solver", "precision") and value == "three":
        return  # claims nothing
    if fits(value, SCALARS[key]):
        itspace.verify(RESULT.factor, S, trace)
        return
    kind, text = refusal(trace)
    assert f"trace['{key}'] is " in text and "; " in text, text
    if isinstance(value, str):
        assert kind is (ValueError if "a string" in SCALARS[key] else TypeError), text
    elif isinstance(value, int) and abs(value) >= 2**63 and "a string" not in SCALARS[key]:
        assert kind is ValueError and ("2**63" in text or "1.8e308" in text), text
    else:
        assert kind is TypeError and SCALARS[key] in text, text
    if value == "three":
        assert "'three'" in text


@pytest.mark.parametrize("value", WORDS, ids=lambda value: ascii(value)[:20] if not isinstance(value, int) else hex(value)[:20])
@pytest.mark.parametrize("key", COLUMNS)
def test_a_wrong_value_in_a_column_is_named_with_its_row(key, value):
    column = RESULT.trace[key].tolist()
    column[1] = value
    trace = {**RESULT.trace, key: column}
    if fits(value, COLUMNS[key]):
        itspace.verify(RESULT.factor, S, trace)
        return
    kind, text = refusal(trace)
    assert f"trace['{key}'][1] is " in text and "; " in text, text


@pytest.mark.parametrize("value", [None, 3, 1.5, "three", {"a": 1}, np.float64(1.5), np.array(2.0), object()], ids=repr)
@pytest.mark.parametrize("key", COLUMNS)
def test_a_column_that_is_none_is_named(key, value):
    kind, text = refusal({**RESULT.trace, key: value})
    assert kind is TypeError and f"trace['{key}'] is " in text and "one value for each iterate" in text, text


@pytest.mark.parametrize("key", COLUMNS)
def test_a_column_of_another_length_is_named(key):
    kind, text = refusal({**RESULT.trace, key: RESULT.trace[key][:-1]})
    assert kind is ValueError and "for each" in text and ("'" + key + "'" in text or key == "objective"), text


def test_what_numpy_and_json_make_of_a_trace_serves():
    plain = {key: value.tolist() if isinstance(value, np.ndarray) else value for key, value in RESULT.trace.items()}
    scalars = {key: np.array(value)[()] if isinstance(value, (int, float)) else value for key, value in plain.items()}
    tuples = {key: tuple(value) if isinstance(value, list) else value for key, value in plain.items()}
    narrow = {**plain, "objective": np.array(plain["objective"], dtype=np.float32).astype(object)}
    for trace in (plain, scalars, tuples, copy.deepcopy(RESULT.trace), pickle.loads(pickle.dumps(RESULT)).trace):
        assert itspace.verify(RESULT.factor, S, trace)["holds"]
    itspace.verify(RESULT.factor, S, narrow)


def test_an_unknown_name_is_refused():
    for key in ("route", "status", "step_route"):
        wrong = {**RESULT.trace, key: ["qr", "magic", "qr", "qr"] if key == "step_route" else "magic"}
        kind, text = refusal(wrong)
        assert kind is ValueError and f"trace['{key}']" in text and "'magic'" in text and "'qr'" in text or key == "status", text


def test_a_trace_of_the_program_is_told_apart():
    kind, text = refusal({"schema": "itspace.trace/1", "dim": 3, "steps": [{"index": 0}]})
    assert kind is ValueError and "rows" in text and "columns" in text, text
