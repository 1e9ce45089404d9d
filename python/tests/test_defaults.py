# SPDX-License-Identifier: Apache-2.0
"""One default for each option: in C++, in the program, in Python and in its faces."""
import inspect
import json
import re
import subprocess

import numpy as np
import pytest

import itspace
from itspace import _core

ALIGN, MAP = _core._default_options(), _core._default_map_options()


def defaults_of(function):
    return {name: parameter.default for name, parameter in inspect.signature(function).parameters.items()}


def face(module, name):
    return defaults_of(getattr(pytest.importorskip("itspace." + module, reason=f"{module} is not installed"), name))


def test_the_defaults_of_align_are_those_of_the_library():
    found = defaults_of(itspace.align)
    assert {name: found[name] for name in ALIGN} == ALIGN
    batch = defaults_of(itspace.align_batch)
    assert {name: batch[name] for name in ALIGN if name != "keep_iterates"} == {
        name: ALIGN[name] for name in ALIGN if name != "keep_iterates"
    }


def test_the_defaults_of_maps_are_those_of_the_library():
    assert defaults_of(itspace.model_of)["floor"] == MAP["floor"]
    assert defaults_of(itspace.TransportMap.from_models)["kind"] == MAP["kind"]
    between = defaults_of(itspace.TransportMap.between)
    assert (between["floor"], between["kind"]) == (MAP["floor"], MAP["kind"])


def test_the_accuracy_of_distances_is_the_librarys():
    for name in ("bures_wasserstein", "gaussian_w2", "frechet_distance", "frechet_distance_from_features"):
        assert defaults_of(getattr(itspace, name))["accuracy"] == _core._default_accuracy()


def test_the_share_that_auto_rank_explains_is_the_librarys():
    assert defaults_of(itspace.auto_rank)["threshold"] == _core._default_explained_share()


def test_the_defaults_of_the_aligner_are_those_of_the_library():
    found = face("sklearn", "CovarianceAligner")
    assert {name: found[name] for name in ("steps", "solver", "alpha", "guard")} == {
        name: ALIGN[name] for name in ("steps", "solver", "alpha", "guard")
    }
    # Under scikit-learn's name for a seed. Which map is decided by the data: a classifier is there to ask.
    assert (found["random_state"], found["map"], found["floor"]) == (ALIGN["seed"], "auto", MAP["floor"])


def test_the_defaults_of_the_layer_are_those_of_the_library():
    found = face("torch", "AlignLayer")
    assert (found["map"], found["floor"]) == (MAP["kind"], MAP["floor"])


def options_in_help(program, command):
    """{"steps": "2", "alpha": None, ...}: the options of a command that take a value, with the default that --help names."""
    text = subprocess.run([program, command, "--help"], check=True, capture_output=True, text=True).stdout
    # Newer versions of CLI11 write a default as " [2]" where older ones write "=2".
    found = re.findall(r"^  --([a-z-]+) [A-Z]+(?:=(\S+)| \[(\S+)\])?(?= |$)", text, re.MULTILINE)
    return {name: old or new or None for name, old, new in found}


def test_the_defaults_of_the_program_are_those_of_the_library(program):
    align, made = options_in_help(program, "align"), options_in_help(program, "map")
    for found in (align, made):
        assert int(found["steps"]) == ALIGN["steps"] and int(found["seed"]) == ALIGN["seed"]
        assert found["solver"] == ALIGN["solver"] and found["alpha"] is ALIGN["alpha"]
    assert align["route"] == ALIGN["route"] and align["guard"] is ALIGN["guard"]
    assert made["map"] == MAP["kind"] and float(made["floor-share"]) == MAP["floor"]
    assert made["shrink"] == defaults_of(itspace.TransportMap.between)["shrink"] == "noise"
    shift = options_in_help(program, "shift")
    for name in ("rank", "permutations", "level", "seed"):
        assert float(shift[name]) == MAP["shift_" + name] == defaults_of(itspace.shift_test)[name], name


def test_the_program_and_python_make_the_same_run_where_nothing_is_asked_for(program, rng, tmp_path):
    S = np.cov(rng.normal(size=(90, 12)).T)
    np.save(tmp_path / "S.npy", S)
    line = [program, "align", "--target", "S.npy", "--rank", "3", "--out", "Y.npy", "--trace", "run.json", "--quiet"]
    subprocess.run(line, cwd=tmp_path, check=True)
    theirs, ours = json.loads((tmp_path / "run.json").read_text()), itspace.align(S, rank=3).trace
    for key in ("dim", "rank", "solver", "route", "alpha", "precision", "status", "passes_total", "best"):
        assert theirs[key] == ours[key], key
    # The two may be linked with different BLAS, so not to the last bit.
    assert [row["objective"] for row in theirs["steps"]] == pytest.approx(ours["objective"].tolist())


@pytest.mark.parametrize("steps, guard", [(1, 16), (2, 16), (3, 8), (5, 8)])
def test_guard_follows_from_the_steps_as_in_the_library(rng, steps, guard):
    features = rng.normal(size=(300, 60)) * np.linspace(3, 0.5, 60)
    target = itspace.Target.from_features(features)
    start = itspace.start_from(itspace.Target.from_features(features[:40]), 4)

    def factor(**options):
        return itspace.align(target, start, steps=steps, solver="ritz", **options).factor

    core = _core.align(
        target._core, start, 4, steps, None, None, False, "ritz", "auto", None, 0, None, False
    )[0]  # fmt: skip
    assert np.array_equal(factor(), core)
    assert np.array_equal(factor(), factor(guard=guard))
    assert not np.array_equal(factor(), factor(guard=24 - guard))


@pytest.mark.parametrize("steps, alpha", [(1, 1.0), (2, 1.1), (4, 1.1), (5, 1.3), (9, 1.3)])
def test_alpha_follows_from_the_steps_as_the_words_say(steps, alpha):
    assert itspace.align(np.diag([3.0, 2.0, 1.0]), rank=1, steps=steps).trace["alpha"] == alpha
    assert "1 for one step, 1.1 for 2 to 4, 1.3 from five on" in itspace.align.__doc__


def test_guard_follows_from_the_steps_in_the_faces(rng):
    aligner = pytest.importorskip("itspace.sklearn", reason="scikit-learn is not installed").CovarianceAligner
    Xs, Xt = rng.normal(size=(200, 40)), rng.normal(size=(150, 40)) * np.linspace(2, 0.5, 40)

    def factor(**options):
        return aligner(rank=3, steps=2, solver="ritz", **options).fit(Xs, Xt).factor_

    assert np.array_equal(factor(), factor(guard=16))
    assert not np.array_equal(factor(), factor(guard=8))
