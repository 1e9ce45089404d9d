# SPDX-License-Identifier: Apache-2.0
"""The rule of the program and of the library, and that of the package, decide alike."""

import json
import subprocess

import numpy as np
import pytest

from itspace import _gate

NAMES = {"none": "none", "scale": "after", "scale+monge": "further"}


def answers(rng, samples, classes, sharpness, pull):
    """Probabilities that lean towards the first class by `pull`."""
    scores = sharpness * rng.normal(size=(samples, classes))
    scores[:, 0] += pull
    shares = np.exp(scores - scores.max(axis=1, keepdims=True))
    return shares / shares.sum(axis=1, keepdims=True)


def decided_by_the_program(program, folder, given, left_over, classes, second):
    arguments = []
    if second is not None:
        for i, values in enumerate(second):
            np.save(folder / f"second{i}.npy", values)
        arguments += ["--second", ",".join(str(folder / f"second{i}.npy") for i in range(len(second)))]
    for flag, values in zip(("--before", "--after", "--further"), given):
        np.save(folder / f"{flag[2:]}.npy", values)
        arguments += [flag, str(folder / f"{flag[2:]}.npy")]
    if left_over is not None:
        arguments += ["--left-over", repr(left_over)]
    if classes is not None:
        arguments += ["--classes", str(classes)]
    done = subprocess.run([program, "gate", *arguments, "--json"], check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


@pytest.mark.parametrize("labels", [False, True])
def test_the_program_decides_as_the_package_does(program, tmp_path, labels):
    rng = np.random.default_rng(3)
    chosen = set()
    for _ in range(60):
        classes = int(rng.integers(2, 8))
        # From a classifier that has collapsed to one that has not, and back.
        given = [answers(rng, 200, classes, rng.uniform(0.5, 3), pull) for pull in rng.uniform(0, 8, size=3)]
        if labels:
            given = [each.argmax(axis=1).astype(np.float64) for each in given]
        given = given[: int(rng.integers(2, 4))]
        left_over = None if rng.random() < 0.3 else float(np.round(rng.uniform(0, 0.6), 3))
        known = classes if labels else None
        names = ("none", "scale", "scale+monge")[: len(given)]
        seen = {name: _gate.predictions_of(each, known) for name, each in zip(names, given)}
        second = None
        if rng.random() < 0.6:  # a second classifier that says the same of some
            own = [each if labels else each.argmax(axis=1) for each in given]
            keeps = rng.uniform(0, 1, size=len(given))
            second = [
                np.where(rng.random(200) < keep, each, rng.integers(classes, size=200)).astype(np.float64)
                for keep, each in zip(keeps, own)
            ]
            seen = {
                name: _gate.beside(seen[name], each, other, classes) for name, each, other in zip(names, own, second)
            }
        # The mean moved with the covariance: no drift of the covariance alone, which the program does not look for.
        shift = _gate.Shift(0.5, 1.0, 1.0, 1.0, 1.0, left_over)
        found = decided_by_the_program(program, tmp_path, given, left_over, known, second)
        decision = _gate.decide(shift, seen)
        assert found["choice"] == NAMES[decision.choice], (decision, found)
        for name, numbers in seen.items():
            there = found["candidates"][NAMES[name]]
            np.testing.assert_allclose(there["spread"], numbers.spread, rtol=0, atol=1e-12)
            for of_both in ("agreement", "shared"):
                assert (of_both in there) == (second is not None)
                if second is not None:
                    np.testing.assert_allclose(there[of_both], getattr(numbers, of_both), rtol=0, atol=1e-12)
            if not labels:
                np.testing.assert_allclose(there["information"], numbers.information, rtol=0, atol=1e-12)
        chosen.add(decision.choice)
    assert chosen >= {"none", "scale"}  # both answers were compared
