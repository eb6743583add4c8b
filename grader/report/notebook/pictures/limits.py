"""The flow chart of day 15: questions that find the limit of a kernel, and remedies with the numbers of their days."""

from __future__ import annotations

from typing import Any

from grader.report.notebook import style
from grader.report.notebook.pictures.parts import arrow, box, canvas, label

QUESTIONS = (
    (
        "Does the GPU wait between kernels?",
        "Nsight Systems: gaps; host time > GPU time",
        "LAUNCHES",
        "fuse kernels (day 5), replay a graph (day 15)",
        style.GRAY,
    ),
    (
        "Do SMs have no block, or too few?",
        "grader check: the grid has fewer blocks than SMs",
        "PARALLEL WORK",
        "divide the keys (day 7) or K (day 11), use smaller tiles (day 4)",
        style.GRAY,
    ),
    (
        "Is device memory busy?",
        "bytes / time is near the bandwidth; DRAM Throughput",
        "MEMORY",
        "move fewer bytes: whole sectors (day 1), fusion (5), tiles (4, 6), smaller types (8, 11)",
        style.BLUE,
    ),
    (
        "Is shared memory busy?",
        "wavefronts per multiply-add; L1/TEX Throughput",
        "SHARED MEMORY",
        "avoid bank conflicts: register tiles (day 4), swizzles (12), wgmma (13)",
        style.ORANGE,
    ),
    (
        "Are arithmetic units busy?",
        "operations / time is near the peak; Compute Throughput",
        "ARITHMETIC",
        "use tensor cores (days 4, 12-14), fewer exponentials, conversions and masks (6, 9, 11)",
        style.GREEN,
    ),
)


def draw_limits() -> Any:
    """Draw the flow chart of day 15: the first question with the answer yes names the limit."""
    width, height, step, tall = 100.0, 76.0, 12.2, 9.0
    left, wide, right = 1.0, 40.0, 50.0
    ax = canvas(width, height)
    label(ax, (left, height - 2), "A kernel takes longer than its floor. What limits it?", 10, weight="bold")
    top = height - 5.5
    for number, (question, where, limit, remedy, color) in enumerate(QUESTIONS):
        y = top - number * step - tall
        box(ax, (left, y), (wide, tall), color="#f3f5f7", edge=style.INK, lw=0.9)
        label(ax, (left + 1.2, y + tall * 0.68), question, 9, weight="bold")
        label(ax, (left + 1.2, y + tall * 0.28), where, 7.5)
        box(ax, (right, y), (width - right - 1, tall), color=color)
        label(ax, (right + 1.2, y + tall * 0.72), limit, 8.5, "white", weight="bold")
        _lines(ax, (right + 1.2, y + tall * 0.36), remedy)
        arrow(ax, (left + wide, y + tall / 2), (right, y + tall / 2), style.INK)
        label(ax, (left + wide + 2.6, y + tall / 2 + 1.7), "yes", 8)
        arrow(ax, (left + wide / 2, y), (left + wide / 2, y - step + tall), style.INK)
        label(ax, (left + wide / 2 + 1, y - (step - tall) / 2), "no", 8)
    y = top - len(QUESTIONS) * step - tall
    box(ax, (left, y), (width - left - 1, tall), color=style.RED)
    label(ax, (left + 1.2, y + tall * 0.7), "LATENCY: no unit is busy, so the warps wait", 8.5, "white", weight="bold")
    text = "more bytes in flight: wider loads (1), several at a time, more blocks per SM, prefetch (15); fewer barriers"
    label(ax, (left + 1.2, y + tall * 0.3), text, 7.5, "white")
    return ax.figure


def _lines(ax: Any, at: tuple[float, float], text: str, most: int = 58) -> None:
    """Draw a text in one line, or in two if it is long."""
    cut = text.rfind(" ", 0, most) if len(text) > most else len(text)
    rest = text[cut:].strip()
    label(ax, (at[0], at[1] + (0.6 if rest else 0)), text[:cut], 7.5, "white")
    if rest:
        label(ax, (at[0], at[1] - 1.8), rest, 7.5, "white")
