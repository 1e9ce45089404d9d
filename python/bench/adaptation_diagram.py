# SPDX-License-Identifier: Apache-2.0
"""The decision of map="auto" as a picture, with the constants of the rule: writes an SVG."""

from __future__ import annotations

import sys
from html import escape
from pathlib import Path

from itspace import _gate

WIDTH, HEIGHT, LINE = 900, 620, 17


def box(x: float, y: float, width: float, lines: list[str], kind: str) -> str:
    height = 20 + LINE * len(lines)
    fill, edge = {"question": ("#f5f5f5", "#777777"), "map": ("#e3eefb", "#2166ac"), "none": ("#f0f0f0", "#777777")}[kind]
    text = "".join(
        f'<text x="{x}" y="{y - height / 2 + 23 + LINE * i:.0f}" text-anchor="middle">{escape(line)}</text>'
        for i, line in enumerate(lines)
    )
    radius = 4 if kind == "question" else 14
    return (
        f'<rect x="{x - width / 2}" y="{y - height / 2}" width="{width}" height="{height}" rx="{radius}" '
        f'fill="{fill}" stroke="{edge}"/>{text}'
    )


def arrow(points: list[tuple[float, float]], word: str, at: tuple[float, float]) -> str:
    path = " ".join(f"{x},{y}" for x, y in points)
    label = f'<text x="{at[0]}" y="{at[1]}" class="word">{word}</text>'
    return f'<polyline points="{path}" fill="none" stroke="#555555" marker-end="url(#head)"/>{label}'


def picture() -> str:
    g = _gate
    parts = [
        box(300, 50, 470, ["Did the covariance drift far beyond noise while the mean stayed?",
                           f"mean's share < {g.STILL_MEAN:.2f}, kept > {g.CLEAR_COVARIANCE:.2f}, size > {g.LARGE_COVARIANCE:.2f}"], "question"),
        box(760, 50, 190, ["monge", "if the predicted classes", "are spread no worse"], "map"),
        box(300, 165, 470, ["Is there a classifier to ask?"], "question"),
        box(760, 235, 210, ["Left over of the mean's move", f"> {g.MUCH_MOVE:.2f}?"], "question"),
        box(690, 345, 90, ["scale"], "map"),
        box(830, 345, 100, ["leave alone"], "none"),
        box(300, 285, 470, [f"With 'scale': do the predicted classes spread by > {g.CLEAR_RISE:.2f},",
                            f"information falling by < {-g.LOST_INFORMATION:.2f}, agreement by < {-g.LOST_AGREEMENT:.2f}, no less shared;",
                            f"or is {g.CLEAR_SHARED:.2f} more shared?",
                            f"And is more than {g.SOME_MOVE:.2f} of the mean's move left over?"], "question"),
        box(300, 410, 470, [f"Or is more than {g.MUCH_MOVE:.2f} of the mean's move left over,",
                            "and none of spread, information and what is shared falls?"], "question"),
        box(690, 480, 330, ["With the low-rank map on top: spread and", f"information +{g.SECOND_RISE:.2f} more, and more is shared?"], "question"),
        box(300, 570, 120, ["leave alone"], "none"),
        box(600, 580, 130, ["scale+monge"], "map"),
        box(790, 580, 90, ["scale"], "map"),
        arrow([(535, 50), (662, 50)], "yes", (590, 43)),
        arrow([(300, 77), (300, 145)], "no", (308, 115)),
        arrow([(535, 165), (760, 165), (760, 205)], "no", (590, 158)),
        arrow([(300, 184), (300, 238)], "yes", (308, 218)),
        arrow([(725, 263), (695, 324)], "yes", (680, 298)),
        arrow([(795, 263), (825, 324)], "no", (818, 298)),
        arrow([(300, 329), (300, 380)], "no", (308, 354)),
        arrow([(535, 300), (580, 300), (580, 450)], "yes", (545, 293)),
        arrow([(535, 410), (560, 410), (560, 450)], "yes", (538, 403)),
        arrow([(300, 438), (300, 548)], "no", (308, 498)),
        arrow([(620, 508), (602, 559)], "yes", (582, 540)),
        arrow([(760, 508), (785, 559)], "no", (782, 540)),
    ]
    head = (
        '<defs><marker id="head" markerWidth="8" markerHeight="8" refX="7" refY="4" orient="auto">'
        '<path d="M0,0 L8,4 L0,8 z" fill="#555555"/></marker></defs>'
        "<style>text{font:13px sans-serif;fill:#222222}.word{font-style:italic;fill:#555555}</style>"
    )
    size = f'width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}"'
    body = "\n".join(parts)
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}>{head}<rect width="100%" height="100%" fill="white"/>\n{body}\n</svg>\n'


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(picture())
