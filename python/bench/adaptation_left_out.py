# SPDX-License-Identifier: Apache-2.0
"""What the rule of `map="auto"` gains on a family of data that had no say in its constants."""

from __future__ import annotations

import itertools

import numpy as np

import itspace._gate as gate
from adaptation_cases import HEADS, map_name

HURT = -1.0  # points of accuracy: below it a pair is hurt
GRID = {
    "CLEAR_RISE": (0.075, 0.10, 0.125, 0.15),
    "LOST_INFORMATION": (-0.15, -0.10, -0.05),
    "MUCH_MOVE": (0.2, 0.3, 0.4, 0.5),
    "LOST_AGREEMENT": (-0.20, -0.15, -0.10, -0.05),
    "CLEAR_SHARED": (0.08, 0.10, 0.12, 0.15),
    "SECOND_INFORMATION_SEEN": (0.05, 0.10),
}
COST_OF_HURT = 0.1  # points for each percent of pairs hurt
NEARLY_BEST = {"the best on the other families": 0.0, "the strictest that is nearly the best there": 0.1}  # points


def leave_one_family_out(rows: list, way: str) -> list[str]:
    """What the rule gains on a family when its constants are chosen, from a grid, on the other families alone.

    All heads count alike. Once the best setting on the others is taken, and once the strictest of those that are nearly
    as good: families on which nothing is hurt have no say in how careful to be.
    """
    largest = [max(abs(value) for value in values) for values in GRID.values()]
    settings = sorted(
        itertools.product(*GRID.values()), key=lambda v: -sum(value / unit for value, unit in zip(v, largest))
    )
    pairs = [row for row in rows if row["kind"] == "pairs"]
    families = sorted({row["family"] for row in pairs})
    gains = {head: np.zeros((len(settings), len(pairs))) for head in HEADS}
    kept = {name: getattr(gate, name) for name in GRID}
    for i, values in enumerate(settings):
        for name, value in zip(GRID, values):
            setattr(gate, name, value)
        for j, row in enumerate(pairs):
            for head, result in row["heads"].items():
                gains[head][i, j] = gain_by_rule(row, result, way)
    for name, value in kept.items():
        setattr(gate, name, value)
    member = np.array([families.index(row["family"]) for row in pairs])

    def worth(among):
        parts = [g[:, member == f] for g in gains.values() for f in among]
        return np.mean([p.mean(axis=1) - COST_OF_HURT * 100 * (p < HURT).mean(axis=1) for p in parts], axis=0)

    lines, notes = [], []
    for what, slack in NEARLY_BEST.items():
        chosen = {}
        for f in range(len(families)):
            of_others = worth([other for other in range(len(families)) if other != f])
            chosen[f] = int(np.flatnonzero(of_others >= of_others.max() - slack)[0])
        cells = []
        for head in HEADS:
            own = np.array([gains[head][chosen[member[j]], j] for j in range(len(pairs))])
            mean = np.mean([own[member == f].mean() for f in range(len(families))])
            cells.append(f"{mean:+.1f}; {100 * (own < HURT).mean():.0f} %; {own.min():+.1f}")
        lines.append(f"| {way}, constants: {what} | " + " | ".join(cells) + " |")
        taken = [f"without {families[f]} " + ", ".join(map(str, settings[i])) for f, i in chosen.items()]
        notes.append(f"{what}: " + "; ".join(taken) + ".")
    return lines + ["", "Constants (" + ", ".join(GRID) + "), " + " ".join(notes)]


def gain_by_rule(row: dict, result: dict, way: str) -> float:
    predictions = None
    if way != "auto, no head":
        predictions = {name: gate.Predictions(**p) for name, p in result["predictions"].items()}
        if way == "auto, labels":
            predictions = {name: p._replace(information=None) for name, p in predictions.items()}
    choice = gate.decide(gate.Shift(**row["shift"]), predictions).choice
    accuracy = result["accuracy"]
    return accuracy[map_name(choice, way)] - accuracy["none"]
