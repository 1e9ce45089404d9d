# SPDX-License-Identifier: Apache-2.0
"""Traces that did not come from a run: verify names the entry, its value and what it must be."""
import copy
import json
import pickle
import subprocess

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
    "alpha": "a number or 'line-search'",
    "precision": "a string",
    "status": "a string",
    "reason": "a string or None",
    "target_trace": "a number",
    "passes_total": "an integer",
    "best": "an integer",
    "factor_checksum": "a string or None",
}
COLUMNS = {key: "an integer" for key in ("index", "gram_rank", "target_version", "passes")}
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
        "a number or 'line-search'": number and abs(value) < 1e308,
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


def keys_by_rows(trace):
    """The keys of the run and those of every row, of a trace as a file has it."""
    rows = [set(row) for row in trace["steps"]]
    assert all(row == rows[0] for row in rows)
    return set(trace) - {"steps"}, rows[0]


def expect_the_names_of_a_file(trace):
    run, row = keys_by_rows(trace)
    # In columns a name that the run and its rows share is that of the run.
    columns = {"step_" + key if key in run else key for key in row}
    assert set(RESULT.trace) == run | columns
    assert columns == set(COLUMNS)


def test_columns_have_the_names_of_the_rows():
    expect_the_names_of_a_file(json.loads(RESULT.to_json()))


def test_a_callback_sees_the_columns():
    seen = []
    itspace.align(S, rank=2, callback=lambda step, factor: seen.append(set(step)))
    assert seen and all(keys == set(COLUMNS) for keys in seen)


@pytest.mark.parametrize("options", [{}, {"alpha": "line-search"}, {"solver": "ritz"}], ids=repr)
def test_rows_and_columns_hold_the_same(options):
    result = itspace.align(S, rank=2, steps=3, **options)
    rows, columns = json.loads(result.to_json()), result.trace
    run, row = keys_by_rows(rows)
    for key in run - {"factor_checksum"}:
        missing = isinstance(columns[key], float) and np.isnan(columns[key])
        assert rows[key] == (None if missing else columns[key]), key
    for key in row:
        for k, value in enumerate(columns["step_" + key if key in run else key].tolist()):
            missing = value == "" or isinstance(value, float) and np.isnan(value)
            assert rows["steps"][k][key] == (None if missing else value), (key, k)
    assert itspace.verify(result.factor, S, rows)["holds"]


def test_the_program_and_python_read_each_others_traces(program, tmp_path):
    def run(*arguments, code=0):
        done = subprocess.run([program, *arguments], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == code, done.stderr
        return done.stdout

    np.save(tmp_path / "S.npy", S)
    np.save(tmp_path / "ours.npy", RESULT.factor)
    (tmp_path / "ours.json").write_text(RESULT.to_json())
    found = json.loads(run("verify", "ours.npy", "--target", "S.npy", "--trace", "ours.json", "--json"))
    assert found["holds"] and found["certified"] is RESULT.certified
    assert "factor checksum" in [claim["name"] for claim in found["claims"]]

    run("align", "--target", "S.npy", "--rank", "2", "--steps", "3", "--out", "theirs.npy", "--trace", "theirs.json")
    theirs = json.loads((tmp_path / "theirs.json").read_text())
    expect_the_names_of_a_file(theirs)
    factor = np.load(tmp_path / "theirs.npy")
    checked = itspace.verify(factor, S, theirs)
    assert checked["holds"] and checked["certified"]
    mine = {claim["name"] for claim in checked["claims"]}
    assert mine == {claim["name"] for claim in found["claims"]}
    # Another factor of the same worth shows by its checksum.
    other = itspace.verify(-factor, S, theirs)
    assert not other["holds"] and [c["name"] for c in other["claims"] if not c["holds"]] == ["factor checksum"]


def test_a_file_that_lacks_something_is_named():
    rows = json.loads(RESULT.to_json())
    kind, text = refusal({**rows, "steps": [{"index": 0}]})
    assert kind is ValueError and "steps[0].objective is missing" in text, text
    kind, text = refusal({**rows, "steps": [np.zeros(2)]})
    assert kind is TypeError and "json.load" in text, text
    kind, text = refusal({**rows, "target_trace": float("nan")})
    assert kind is ValueError and "json.load" in text, text
