"""A drawing of an mbarrier's states and of the operations that change its state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from grader.report.notebook import style
from grader.report.notebook.pictures.parts import arrow, box, canvas, label

_WIDE, _HIGH = 13.5, 8.5
"""The width and height of a state's box."""
_ROWS = (style.PALE_BLUE, style.PALE_ORANGE)
"""The colors of the states of even and odd phases."""


def draw_mbarrier() -> Any:
    """Draw the two mbarriers of a ring buffer. "full" expects one arrival and bytes, "empty" expects two arrivals."""
    ax = canvas(100, 77)
    _draw_cycle(
        ax,
        70,
        "full: initialized with 1 arrival, for two copies of 1,024 bytes",
        [(1, "0"), (0, "2,048"), (0, "1,024")],
        ["arrive\n.expect_tx\n2,048", "complete_tx\n1,024"],
        "complete_tx\n1,024",
    )
    _draw_cycle(
        ax,
        31,
        "empty: initialized with 2 arrivals, one of each consumer",
        [(2, "0"), (1, "0")],
        ["arrive"],
        "arrive",
    )
    return ax.figure


def _draw_cycle(
    ax: Any, top: float, title: str, states: Sequence[tuple[int, str]], steps: Sequence[str], last: str
) -> None:
    """Draw the states as a cycle: even phase left to right, odd phase right to left.

    ``states``: pending arrivals and bytes. ``steps``: the operations between two states. ``last``: the operation that
    completes a phase.

    """
    pitch = 62 / (len(states) - 1)
    label(ax, (1, top + 4.8), title, 9, weight="bold")
    left = [12 + pitch * i for i in range(len(states))]
    lows = (top - 10, top - 29)
    for parity, low in enumerate(lows):
        order = states if parity == 0 else states[::-1]
        label(ax, (1, low + _HIGH / 2), f"phase\n{parity}, {parity + 2}, ...\nparity {parity}", 7.5)
        for x, (arrivals, bytes_) in zip(left, order):
            box(ax, (x, low), (_WIDE, _HIGH), f"arrivals: {arrivals}\nbytes: {bytes_}", _ROWS[parity], style.GRAY)
        for i, step in enumerate(steps):
            start, end = left[i] + _WIDE, left[i + 1]
            if parity == 1:
                start, end, step = end, start, steps[-1 - i]
            arrow(ax, (start, low + 3), (end, low + 3), style.INK)
            label(ax, ((start + end) / 2, low + 3.6), step, 7, ha="center", va="bottom")
    right, first = left[-1] + _WIDE / 2, left[0] + _WIDE / 2
    above, below = lows[0] - 0.2, lows[1] + _HIGH + 0.2
    middle = (above + below) / 2
    arrow(ax, (right, above), (right, below), style.RED)
    arrow(ax, (first, below), (first, above), style.RED)
    label(ax, (right + 1, middle), f"{last}:\nthe phase\ncompletes", 7, style.RED)
    label(ax, (first - 1, middle), f"{last}:\nthe phase completes", 7, style.RED, ha="right")
    arrow(ax, (first, top + 2.6), (first, top - 1.3), style.GREEN)
    label(ax, (first + 1, top + 1.2), "mbarrier.init", 7.5, style.GREEN)
    for shift, text in (
        (1.6, "a wait for parity 0 blocks in the phases above, not below"),
        (-1.6, "a wait for parity 1 blocks in the phases below, not above"),
    ):
        label(ax, ((first + right) / 2, middle + shift), text, 7.5, ha="center")
