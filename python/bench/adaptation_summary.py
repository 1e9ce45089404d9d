# SPDX-License-Identifier: Apache-2.0
"""Measured cases of the adaptation table, as the tables of docs/should-i-adapt.md and a line for every pair."""

from __future__ import annotations

import numpy as np

from adaptation_cases import DRIFT_SEEDS, HEADS
from adaptation_left_out import HURT, leave_one_family_out
from adaptation_measure import GATED, MAPS, SHOWN


def rows_of(rows: list, kind: str, head: str) -> list:
    return [row for row in rows if row["kind"] == kind and head in row["heads"]]


def figures(rows: list, head: str, name: str) -> tuple[float, float, float]:
    """Mean gain with families weighted alike, share of cases hurt in percent, worst case."""
    gains: dict = {}
    for row in rows:
        accuracy = row["heads"][head]["accuracy"]
        gains.setdefault(row["family"], []).append(accuracy[name] - accuracy["none"])
    every = np.concatenate(list(gains.values()))
    return float(np.mean([np.mean(g) for g in gains.values()])), 100 * float((every < HURT).mean()), float(every.min())


def table(rows: list, kind: str, heads) -> list[str]:
    heads = [head for head in heads if rows_of(rows, kind, head)]
    lines = ["| | " + " | ".join(heads) + " |", "|---" * (len(heads) + 1) + "|"]
    for name in SHOWN + GATED:
        cells = ["%+.1f; %.0f %%; %+.1f" % figures(rows_of(rows, kind, head), head, name) for head in heads]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return lines


def recovery_table(rows: list) -> list[str]:
    lines = ["| | drop | Monge today | `auto`, probabilities | labels | no head |", "|---|---|---|---|---|---|"]
    clean = {
        (row["family"], row["name"]): row["heads"]["logistic"]["accuracy"]["none"]
        for row in rows_of(rows, "drift none 1", "logistic")
    }
    for kind in sorted({row["kind"] for row in rows if row["kind"].startswith("drift") and "none" not in row["kind"]}):
        for family in sorted({row["family"] for row in rows_of(rows, kind, "logistic")}):
            own = [row for row in rows_of(rows, kind, "logistic") if row["family"] == family]
            accuracy = [row["heads"]["logistic"]["accuracy"] for row in own]
            drop = np.mean([clean[row["family"], row["name"]] - a["none"] for row, a in zip(own, accuracy)])
            gains = [np.mean([a[name] - a["none"] for a in accuracy]) for name in ("monge", *GATED[::-1])]
            lines.append(f"| {family}, {kind[6:]} | {drop:.1f} | " + " | ".join(f"{gain:+.1f}" for gain in gains) + " |")
    return lines


def pair_table(rows: list) -> list[str]:
    lines = [
        "| source -> target | n, n', d | noise | mean | left over | none | mean | scale | scale+monge | monge | `auto` | chosen |",
        "|---" * 12 + "|",
    ]
    for row in rows_of(rows, "pairs", "logistic"):
        result = row["heads"]["logistic"]
        values = [result["accuracy"][n] for n in ("none", *(f"{m}, remixed" for m in MAPS), "auto, probabilities")]
        numbers = [row["noise_share"], row["shift"]["mean_share"], row["shift"]["unexplained"]]
        lines.append(
            f"| {row['family']} {row['name']} | {row['samples'][0]}, {row['samples'][1]}, {row['features']} | "
            + " | ".join(f"{number:.2f}" for number in numbers)
            + " | "
            + " | ".join(f"{value:.1f}" for value in values)
            + f" | {result['choices']['auto, probabilities']} |"
        )
    return lines


def summary(rows: list) -> str:
    count = len(rows_of(rows, "pairs", "logistic"))
    parts = [f"**Pairs** ({count}): mean gain in points; share of pairs hurt; worst pair.", "", *table(rows, "pairs", HEADS)]
    parts += [*leave_one_family_out(rows, "auto, probabilities")]
    parts += ["", "**Halves of one domain**, where every gain or loss is noise:", "", *table(rows, "halves", HEADS)]
    for kind in sorted({row["kind"] for row in rows if "thinned" in row["kind"]}, reverse=True):
        what = kind.replace("thinned to 0.5", "half of the classes at half").replace("thinned to 0.1", "half of the classes at a tenth")
        parts += ["", f"**{what[0].upper()}{what[1:]} of their samples**:", "", *table(rows, kind, ["logistic"])]
    if rows_of(rows, "drift none 1", "logistic"):
        parts += ["", f"**The paper's drifts**, points recovered, {len(DRIFT_SEEDS)} seeds:", "", *recovery_table(rows)]
    return "\n".join(parts)
