# SPDX-License-Identifier: Apache-2.0
"""Should one adapt? Every pair of every set at hand, every map, three frozen classifiers: the table of the docs.

A classifier is trained on source features (standardised by the source) and frozen; the maps see the target without
labels; the gain is accuracy after minus accuracy before, in points, and a pair is hurt where it is below -1. Families
of data count alike. adaptation_cases.py has the cases, adaptation_measure.py what is done with one, adaptation_summary.py
the tables, adaptation_left_out.py the rule with constants chosen on other families.

    script/adaptation-table

With --cache a run that was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
from pathlib import Path
from typing import Any

for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(name, "1")  # before NumPy is imported

from adaptation_cases import all_cases  # noqa: E402
from adaptation_measure import Heads, measure  # noqa: E402
from adaptation_summary import pair_table, summary  # noqa: E402


def write_between(page: Path, text: str) -> None:
    begin, end = "<!-- made by script/adaptation-table: begin -->", "<!-- end -->"
    before, _, rest = page.read_text().partition(begin)
    after = rest.partition(end)[2]
    if not rest or not after:
        raise SystemExit(f"{page} has no '{begin}' ... '{end}' to write between")
    page.write_text(f"{before}{begin}\n\n{text}\n\n{end}{after}")


def rounded(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 4)
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    return value


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("ITSPACE_DATA", "../shared/data")))
    parser.add_argument("--json", type=Path, help="every number of every case")
    parser.add_argument("--page", type=Path, help="the page whose tables are made anew; by default they are printed")
    parser.add_argument("--pairs", type=Path, help="a page of its own with a line for every pair")
    parser.add_argument("--cache", type=Path, help="folder of finished cases, of this very code")
    parser.add_argument("--only", default="", help="kinds that begin so: pairs, halves, drift")
    arguments = parser.parse_args()
    if not arguments.data.is_dir():
        print(f"no data in {arguments.data}; set ITSPACE_DATA", file=sys.stderr)
        return 3
    heads, rows = Heads(), []
    for case in all_cases(arguments.data):
        if not case.kind.startswith(arguments.only):
            continue
        label = f"{case.kind}|{case.family}|{case.name}"
        kept = arguments.cache and arguments.cache / (hashlib.sha256(label.encode()).hexdigest()[:24] + ".json")
        if kept and kept.exists():
            rows.append(json.loads(kept.read_text()))
            continue
        rows.append(measure(case, heads))
        print(label, rows[-1]["heads"]["logistic"]["choices"]["auto, probabilities"], file=sys.stderr, flush=True)
        if kept:
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.write_text(json.dumps(rows[-1]))
    if arguments.json:
        lines = ",\n".join(json.dumps(rounded(row)) for row in rows)
        arguments.json.write_text('{"schema": "itspace.adaptation/1", "cases": [\n' + lines + "\n]}\n")
    if arguments.pairs:
        title = "# Every pair: accuracy of a frozen logistic regression, maps shrunk by noise and remixed\n\n"
        columns = "noise, mean, left over: shares of the shift (see [Should I adapt?](../should-i-adapt.md)). Made by `script/adaptation-table`.\n\n"
        arguments.pairs.write_text(title + columns + "\n".join(pair_table(rows)) + "\n")
    if arguments.page:
        write_between(arguments.page, summary(rows))
    else:
        print(summary(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
