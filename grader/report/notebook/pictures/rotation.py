"""A picture of the channel pairs that rotate together in a head."""

from __future__ import annotations

from typing import Any

from grader.report.notebook import style
from grader.report.notebook.pictures.parts import arrow, box, canvas, label

SHADES = (style.BLUE, style.ORANGE, style.GREEN, style.RED)


def draw_pairs() -> Any:
    """Draw a head of eight channels before and after the rotation of the pairs (i, i + half)."""
    half, wide = 4, 7.5
    ax = canvas(78, 38)
    for row, name, low in ((0, "x", 29), (1, "out", 10)):
        label(ax, (1, low + 3), name, 10, weight="bold")
        for channel in range(2 * half):
            left = 8 + wide * channel + (4 if channel >= half else 0)
            text = f"x[{channel}]" if row == 0 else f"out[{channel}]"
            box(ax, (left, low), (wide - 0.4, 6), text, SHADES[channel % half], font=8)
    for pair in range(half):
        first, second = (8 + wide * channel + wide / 2 + 4 * (channel >= half) for channel in (pair, pair + half))
        for start in (first, second):
            for end in (first, second):
                arrow(ax, (start, 28.8), (end, 16.3), SHADES[pair], lw=1.8 if pair == 0 else 0.5)
    label(ax, (23, 36.5), "the first half: channels i", 8, ha="center")
    label(ax, (57, 36.5), "the second half: channels i + half", 8, ha="center")
    label(ax, (8, 6), "out[i] = x[i] · cos − x[i + half] · sin", 8.5)
    label(ax, (8, 2.6), "out[i + half] = x[i + half] · cos + x[i] · sin", 8.5)
    label(ax, (46, 6), "both use the angle of pair i", 8.5)
    label(ax, (46, 2.6), "neighboring lanes take neighboring pairs", 8.5)
    return ax.figure
