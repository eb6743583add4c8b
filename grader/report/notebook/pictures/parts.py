"""Elements of the drawings: a figure without axes, labeled boxes and arrows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from grader.report.notebook import style

INCHES = 8.0
"""The width of a figure, so that its text keeps its size on the page."""


def canvas(width: float, height: float) -> Any:
    """Return a bare axis of ``width`` x ``height`` units with equal scales and (0, 0) at the lower left."""
    import matplotlib.pyplot as plt

    _, ax = plt.subplots(figsize=(INCHES, INCHES * height / width), layout="constrained")
    prepare(ax, width, height)
    return ax


def prepare(ax: Any, width: float, height: float) -> None:
    """Remove the axes' lines and ticks, and set equal scales."""
    ax.set_xlim(0, width)
    ax.set_ylim(0, height)
    ax.set_aspect("equal")
    style.bare(ax)


def box(
    ax: Any,
    corner: tuple[float, float],
    size: tuple[float, float],
    text: str = "",
    color: Any = style.PALE,
    edge: Any = "white",
    font: float = 8,
    **more: Any,
) -> None:
    """Draw a rectangle with text in its middle.

    ``corner``: its lower left; ``more``: arguments of matplotlib's Rectangle.
    """
    from matplotlib.colors import to_rgb
    from matplotlib.patches import Rectangle

    ax.add_patch(Rectangle(corner, *size, facecolor=color, edgecolor=edge, **more))
    if text:
        ink = style.INK if color == "none" else style.text_on(to_rgb(color))
        label(ax, (corner[0] + size[0] / 2, corner[1] + size[1] / 2), text, font, ink, ha="center")


def label(ax: Any, at: tuple[float, float], text: str, font: float = 8, color: Any = style.INK, **more: Any) -> None:
    """Draw a text. ``at``: the left end and the vertical center, unless ``more`` changes the alignment."""
    ax.text(*at, text, **{"ha": "left", "va": "center", "fontsize": font, "color": color, **more})


def arrow(
    ax: Any, start: Sequence[float], end: Sequence[float], color: Any = style.GRAY, looks: str = "->", **more: Any
) -> None:
    """Draw an arrow from start to end. ``more``: properties of its line."""
    ax.annotate("", end, start, arrowprops={"arrowstyle": looks, "color": color, "lw": 1.4, **more})
