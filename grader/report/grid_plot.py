"""The grid of ``grader bench --grid`` as a picture: tokens per second and latency over the sequence length."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from grader.judge.timing.grid import Row
from grader.report.plots import save
from grader.setup.errors import GraderError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Series = dict[tuple[int, int], list[Row]]
"""For each pair of width C and number of heads H, the rows in the order of the length N."""


def series(rows: Sequence[Row], batch: int) -> Series:
    """Return the measured rows of one batch size, as one series for each pair of width C and number of heads H."""
    found: Series = {}
    for row in sorted(rows, key=lambda row: (row.C, row.H, row.N)):
        if batch == row.B and row.mean_us is not None:
            found.setdefault((row.C, row.H), []).append(row)
    return found


def kernels(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Return the measured rows by exercise and dtype, only with the GPU and kernel version of the last row."""
    found: dict[str, list[Row]] = {}
    newest = {(row.exercise, row.dtype): (row.gpu, row.source) for row in rows}
    for row in rows:
        if (row.gpu, row.source) == newest[row.exercise, row.dtype] and row.mean_us is not None:
            found.setdefault(f"{row.exercise.rpartition('/')[2]} ({row.dtype}) on {row.gpu}", []).append(row)
    return found


def draw(rows: Sequence[Row]) -> Figure:
    """Draw two panels per kernel: tokens/s at the batch size with the most rows, and latency at the smallest."""
    import matplotlib.pyplot as plt
    from matplotlib.lines import Line2D

    drawn = kernels(rows)
    if not drawn:
        raise GraderError(
            "no size of the grid is measured yet, so there is nothing to draw", "Run it again with more --minutes."
        )
    figure, axes = plt.subplots(len(drawn), 2, figsize=(12, 3.6 * len(drawn)), squeeze=False, layout="constrained")
    for (name, measured), (left, right) in zip(drawn.items(), axes):
        batches = Counter(row.B for row in measured)
        pairs = sorted({(row.C, row.H) for row in measured})
        colors = dict(zip(pairs, itertools.cycle(plt.colormaps["tab20"].colors)))
        for axis, batch, title in (
            (left, max(batches, key=lambda batch: (batches[batch], batch)), "tokens per second"),
            (right, min(batches), "latency in us, P50 to P99"),
        ):
            for (width, heads), points in series(measured, batch).items():
                lengths, color = [row.N for row in points], colors[width, heads]
                values = [row.tokens_per_second if axis is left else row.p50_us for row in points]
                axis.plot(lengths, values, "o-", ms=3, lw=1, color=color)
                if axis is right:
                    bounds = [row.p50_us for row in points], [row.p99_us for row in points]
                    axis.fill_between(lengths, *bounds, color=color, alpha=0.2)
            axis.set_xscale("log", base=2)
            axis.set_yscale("log")
            axis.set_xticks(sorted({row.N for row in measured}), [str(n) for n in sorted({row.N for row in measured})])
            axis.set_xlabel("N")
            axis.set_title(f"{name}\nbatch of {batch}: {title}", fontsize=8, loc="left")
        lines = [Line2D([], [], color=color, marker="o", ms=3, lw=1) for color in colors.values()]
        labels = [f"C {width}, H {heads} (D {width // heads})" for width, heads in colors]
        right.legend(lines, labels, fontsize=6, loc="center left", bbox_to_anchor=(1, 0.5))
    return figure


def save_plot(rows: Sequence[Row], path: Path) -> None:
    """Save the plot as a PNG file."""
    save(lambda: draw(rows), path, "Name another file with --csv; the picture is written next to it.")
