# SPDX-License-Identifier: Apache-2.0
"""A result in a notebook: one line of text and a small picture of the descent."""
from __future__ import annotations

import html
import math
from typing import Any, List

_WIDTH, _HEIGHT, _LEFT, _TOP, _BOTTOM = 320, 140, 54, 12, 24


def _descent_svg(objectives: List[float]) -> str:
    values = [(k, v) for k, v in enumerate(objectives) if math.isfinite(v)]
    if not values:
        return ""
    low, high = min(v for _, v in values), max(v for _, v in values)
    span = high - low or 1.0
    last = max(len(objectives) - 1, 1)

    def place(k: int, v: float) -> str:
        x = _LEFT + (_WIDTH - _LEFT - 12) * k / last
        y = _TOP + (_HEIGHT - _TOP - _BOTTOM) * (high - v) / span
        return f"{x:.1f},{y:.1f}"

    points = [place(k, v) for k, v in values]
    dots = "".join('<circle cx="{}" cy="{}" r="2.5" fill="#2166ac"/>'.format(*p.split(",")) for p in points)
    floor = _HEIGHT - _BOTTOM
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{_HEIGHT}" role="img" '
        f'aria-label="objective by step" font-family="sans-serif" font-size="10" fill="#555">'
        f'<path d="M{_LEFT},{_TOP} V{floor} H{_WIDTH - 12}" fill="none" stroke="#999"/>'
        f'<polyline points="{" ".join(points)}" fill="none" stroke="#2166ac" stroke-width="1.5"/>{dots}'
        f'<text x="{_LEFT - 4}" y="{_TOP + 4}" text-anchor="end">{high:.4g}</text>'
        f'<text x="{_LEFT - 4}" y="{floor + 3}" text-anchor="end">{low:.4g}</text>'
        f'<text x="{_LEFT}" y="{_HEIGHT - 8}">0</text>'
        f'<text x="{_WIDTH - 12}" y="{_HEIGHT - 8}" text-anchor="end">step {last}</text></svg>'
    )


def result_html(result: Any) -> str:
    trace = result.trace
    facts = (
        f"itspace.align: {trace['dim']} &times; {trace['rank']} factor, solver {html.escape(trace['solver'])}, "
        f"status <b>{html.escape(result.status)}</b>, {'certified' if result.certified else '<b>not certified</b>'}; "
        f"W<sub>2</sub>&sup2; = {result.objective:.6g}"
    )
    return f"<div><div>{facts}</div>{_descent_svg(trace['objective'].tolist())}</div>"
