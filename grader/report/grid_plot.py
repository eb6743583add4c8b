"""The grid of ``grader bench --grid`` as a picture: the time beside torch's, tokens per second, and latency."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grader.judge.timing.grid import Row
from grader.report.plots import save
from grader.setup.errors import GraderError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Series = dict[tuple[int, int], list[Row]]
"""For each pair of width C and number of heads H, the rows in the order of the length N."""


def series(rows: Sequence[Row], batch: int) -> Series:
    """Return the measured rows of one batch size without a mask, as one series for each pair of C and H."""
    found: Series = {}
    for row in sorted(rows, key=lambda row: (row.C, row.H, row.N)):
        if batch == row.B and row.mean_us is not None and not row.causal:
            found.setdefault((row.C, row.H), []).append(row)
    return found


def kernels(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Return the measured rows by exercise and dtype, only with the GPU, kernel version and flags of the last row."""
    found: dict[str, list[Row]] = {}
    newest = {(row.exercise, row.dtype): (row.gpu, row.source, row.nvcc_flags) for row in rows}
    for row in rows:
        version = row.gpu, row.source, row.nvcc_flags
        if version == newest[row.exercise, row.dtype] and row.mean_us is not None:
            found.setdefault(f"{row.exercise.rpartition('/')[2]} ({row.dtype}) on {row.gpu}", []).append(row)
    return found


def ratios(rows: Sequence[Row], causal: bool) -> tuple[list[str], list[str], list[list[float]]]:
    """Return a table of ``times_as_fast``: the names of its rows and columns, and its cells, NaN where not measured.

    A row of the table has one pair of heads and head_dim, a column one pair of length and batch size.
    """
    known = {((row.head_dim, row.H), (row.N, row.B)): row.times_as_fast for row in rows if row.causal == causal}
    pairs, sizes = (sorted({key[side] for key in known}) for side in (0, 1))
    cells = [[value if (value := known.get((pair, size))) else float("nan") for size in sizes] for pair in pairs]
    names = [f"D {head_dim}, H {heads}" for head_dim, heads in pairs]
    return names, [f"N {n}, B {batch}" for n, batch in sizes], cells


def draw(rows: Sequence[Row]) -> Figure:
    """Draw four panels per kernel.

    They are two heat maps of the kernel's speed beside torch's, without a mask and causal; tokens per second at the
    batch size with the most rows; and latency at the smallest.
    """
    import matplotlib.pyplot as plt
    from matplotlib.lines import Line2D

    drawn = kernels(rows)
    if not drawn:
        raise GraderError(
            "no size of the grid is measured yet, so there is nothing to draw", "Run it again with more --minutes."
        )
    figure, axes = plt.subplots(
        4 * len(drawn),
        figsize=(9, 15 * len(drawn)),
        layout="constrained",
        height_ratios=[5, 5, 4, 4] * len(drawn),
    )
    for number, (name, measured) in enumerate(drawn.items()):
        unmasked, causal_map, rates, latencies = axes[4 * number : 4 * number + 4]
        for axis, causal in ((unmasked, False), (causal_map, True)):
            _heat_map(axis, measured, causal, f"{name}\n{'causal' if causal else 'no mask'}: times as fast as torch")
        batches = Counter(row.B for row in measured)
        pairs = sorted({(row.C, row.H) for row in measured})
        colors = dict(zip(pairs, itertools.cycle(plt.colormaps["tab20"].colors)))
        for axis, batch, title in (
            (rates, max(batches, key=lambda batch: (batches[batch], batch)), "tokens per second"),
            (latencies, min(batches), "latency in us, P50 to P99"),
        ):
            for (width, heads), points in series(measured, batch).items():
                lengths, color = [row.N for row in points], colors[width, heads]
                values = [row.tokens_per_second if axis is rates else row.p50_us for row in points]
                axis.plot(lengths, values, "o-", ms=3, lw=1, color=color)
                if axis is latencies:
                    bounds = [row.p50_us for row in points], [row.p99_us for row in points]
                    axis.fill_between(lengths, *bounds, color=color, alpha=0.2)
            axis.set_xscale("log", base=2)
            axis.set_yscale("log")
            axis.set_xticks(sorted({row.N for row in measured}), [str(n) for n in sorted({row.N for row in measured})])
            axis.set_xlabel("N")
            axis.set_title(f"no mask, batch of {batch}: {title}", fontsize=10, loc="left")
        lines = [Line2D([], [], color=color, marker="o", ms=3, lw=1) for color in colors.values()]
        labels = [f"C {width}, H {heads} (D {width // heads})" for width, heads in colors]
        rates.legend(lines, labels, fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
    return figure


def _heat_map(axis: Any, rows: Sequence[Row], causal: bool, title: str) -> None:
    """Draw ``ratios`` with its numbers: white for 1, blue where the kernel is faster, red where torch is."""
    from matplotlib.colors import TwoSlopeNorm

    names, sizes, cells = ratios(rows, causal)
    axis.set_title(title, fontsize=10, loc="left")
    if not cells:
        axis.set_axis_off()
        return
    axis.imshow(cells, cmap="RdBu", norm=TwoSlopeNorm(1.0, 0.5, 1.5), aspect="auto")
    axis.set_xticks(range(len(sizes)), sizes, rotation=60, ha="right", fontsize=8)
    axis.set_yticks(range(len(names)), names, fontsize=8)
    axis.tick_params(length=0)
    for y, line in enumerate(cells):
        for x, value in enumerate(line):
            text = f"{value:.2f}" if value == value else ""  # NaN: not measured, or torch does not support the size
            axis.text(
                x, y, text, ha="center", va="center", fontsize=8, color="white" if abs(value - 1) > 0.35 else "black"
            )


def save_plot(rows: Sequence[Row], path: Path) -> None:
    """Save the plot as a PNG file."""
    save(lambda: draw(rows), path, "Name another file with --csv; the picture is written next to it.")
