"""Tables of times for ``grader bench``, for the stage *fast*, and for lessons."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from grader.report import theme
from grader.report.failures import indented, paragraph
from grader.verdict import FAILED, PASSED, TimeBarResult, Timing, words
from grader.verdict.wording import bars

if TYPE_CHECKING:
    from grader.judge.timing.bench import BenchReport
    from grader.judge.timing.machine import Machine

WIDTH = theme.WIDTH - 2
"""The width of the tables, which are indented by two columns."""


def percentiles_table(timings: Sequence[Timing]) -> RenderableType:
    """Return the percentiles of each size, and its median relative to the roofline, copies and torch.

    Each line begins with the name of its size. If the names are too long, they stand above it.
    """
    titles = ["size", "dtype", "P50", "P90", "P95", "P99"]
    judged = any(timing.percent_of_copy is not None or timing.torch_ratio is not None for timing in timings)
    if judged:
        titles += _compared(timings)
    rows = []
    for timing in timings:
        times = [words.microseconds(t) for t in (timing.p50_us, timing.p90_us, timing.p95_us, timing.p99_us)]
        rows.append([timing.name, timing.dtype, *times, *(_judged(timing, titles) if judged else ())])
    return by_name(titles, rows)


def spread_table(timings: Sequence[Timing]) -> RenderableType:
    """Return a table of the mean, standard deviation, minimum, maximum and number of runs of each size."""
    if all(timing.mean_us is None for timing in timings):
        return Text("Mean, standard deviation, minimum and maximum were not recorded for these times.", style="quiet")
    titles = ["size", "dtype", "runs", "mean", "std", "min", "max"]
    rows = []
    for timing in timings:
        times = (timing.mean_us, timing.deviation_us, timing.minimum_us, timing.maximum_us)
        rows.append([timing.name, timing.dtype, str(timing.runs), *map(words.microseconds, times)])
    return by_name(titles, rows)


def by_name(titles: Sequence[str], rows: Sequence[Sequence[str]], left: int = 2, width: int = WIDTH) -> RenderableType:
    """Return a table. If the names in the first column make it too wide, they become headings above their rows.

    ``left``: the number of left-aligned columns; ``width``: the maximum width.
    """
    widths = [max(map(len, column)) for column in zip(titles, *rows)]
    if sum(widths) + 2 * (len(widths) - 1) <= width:
        return Group(_line(titles, widths, left, "quiet"), *(_line(row, widths, left) for row in rows))
    heads = [["", *titles[1:]]]
    if sum(widths[1:]) + 2 * (len(widths) - 1) > width:
        parts = [title.rpartition(" ") for title in heads[0]]
        heads = [[first for first, _, _ in parts], [last for _, _, last in parts]]
        widths = [max(map(len, column)) for column in zip(*heads, *rows)]
    lines = [_line(head, [0, *widths[1:]], left, "quiet") for head in heads]
    for name, group in itertools.groupby(rows, key=lambda row: row[0]):
        lines.append(Text(name))
        lines += [_line(["", *row[1:]], [0, *widths[1:]], left) for row in group]
    return Group(*lines)


def render_timings(
    timings: Sequence[Timing], limits: Sequence[TimeBarResult] = (), verbose: bool = False
) -> list[RenderableType]:
    """Return the details of the stage *fast*: percentiles, times by the grader's own clock, limits, and remarks."""
    rows: list[RenderableType] = [percentiles_table(timings)]
    if verbose:
        rows.append(spread_table(timings))
    verified = [timing for timing in timings if timing.verified_us is not None]
    if verified:
        cells = [
            [t.name, t.dtype, words.microseconds(t.verified_us), f"+- {words.microseconds(t.verified_error_us)}"]
            for t in verified
        ]
        widths = [max(map(len, column)) for column in zip(*cells)]
        rows.append(Text("Verified times by the grader's own clock, with new inputs for each run:", style="quiet"))
        rows += [_line(row, widths, 2) for row in cells]
    for limit in limits:
        rows.append(paragraph(bars.time_text(limit), _STYLES.get(limit.status, "quiet"), indent=0))
    rows += [paragraph(note, "warn") for note in dict.fromkeys(timing.note for timing in timings if timing.note)]
    return rows


_STYLES = {PASSED: "good", FAILED: "bad"}


def _line(cells: Sequence[str], widths: Sequence[int], left: int, style: str = "") -> Text:
    """Return a row of a table. ``left`` is the number of left-aligned columns; the rest are right-aligned."""
    padded = [
        cell.ljust(width) if place < left else cell.rjust(width)
        for place, (cell, width) in enumerate(zip(cells, widths))
    ]
    return Text("  ".join(padded).rstrip(), style=style)


def median_table(rows: Mapping[str, Sequence[Timing]]) -> Table:
    """Return a table of the median of each size, for several kernels.

    A kernel's name is a line of its own, so that the sizes below it have room. Rows of other dtypes leave out the size.
    """
    table = theme.table()
    table.add_column("size", overflow="fold")
    table.add_column("dtype", no_wrap=True)
    table.add_column("median", justify="right", no_wrap=True)
    table.add_column("torch", justify="right", no_wrap=True)
    titles = _compared([timing for timings in rows.values() for timing in timings])
    for title in titles:
        table.add_column(title, justify="right", no_wrap=True)
    for kernel, timings in rows.items():
        table.add_row(Text(kernel, style="title"))
        for number, timing in enumerate(timings):
            repeated = number > 0 and timing.name == timings[number - 1].name
            best = [t for t in (timing.torch_eager_us, timing.torch_compile_us) if t]
            table.add_row(
                Padding("" if repeated else timing.name, (0, 0, 0, 2)),
                timing.dtype,
                words.microseconds(timing.median_us),
                words.microseconds(min(best)) if best else "",
                *_judged(timing, titles),
            )
    return table


def render_bench(report: BenchReport, verbose: bool = False) -> RenderableType:
    """Return the output of ``grader bench`` for one exercise; ``verbose`` adds the spread of the times."""
    head = Text("  ")
    head.append(report.exercise, style="title")
    head.append(f"  {report.file}", style="quiet")
    rows: list[RenderableType] = [Text(""), head, paragraph(machine_line(report.device, report.machine), "quiet")]
    rows += [Text(""), indented(percentiles_table(report.timings))]
    if verbose:
        rows += [Text(""), indented(spread_table(report.timings))]
    notes = list(dict.fromkeys(timing.note for timing in report.timings if timing.note))
    rows += [paragraph(note, style="warn" if report.device == "cuda" else "quiet") for note in notes]
    return Group(*rows)


def machine_line(device: str, *machines: Machine) -> str:
    """Describe the measuring machine in one line. A rate that was measured several times becomes a range."""
    machine = machines[0]
    if device != "cuda":
        return f"host time of the simulator on {machine.device or 'this machine'}: not a GPU's time"
    parts = [machine.device]
    copies = [one.copy_gigabytes_per_second for one in machines if one.copy_gigabytes_per_second]
    if copies:
        parts.append(f"copy {_range(copies)} GB/s")
    for dtype in machine.product_gigaflops:
        rates = [one.product_gigaflops[dtype] / 1000 for one in machines if dtype in one.product_gigaflops]
        parts.append(f"{dtype} matmul {_range(rates)} T/s")
    parts.append(f"driver {machine.driver}, CUDA {machine.cuda}, torch {machine.torch}")
    return ", ".join(parts)


def _range(numbers: Sequence[float]) -> str:
    return " to ".join(dict.fromkeys(f"{number:,.0f}" for number in (min(numbers), max(numbers))))


SAME_BYTES = "same bytes"

_MEANINGS = {
    "torch": "the shorter of eager and torch.compile",
    "roofline": "the least time at the measured rates of a large copy and of torch's matmul, in percent of the median",
    "copy": "the kernel's bytes per second, in percent of a large copy's",
    SAME_BYTES: "the time of a copy of as many bytes, in percent of the median",
    "x torch": "torch's time divided by the median, so above 1 the kernel is faster",
}


def column_meanings(timings: Sequence[Timing]) -> str:
    """Return the meanings of the columns of ``median_table``."""
    titles = ["torch", *_compared(timings)]
    return ". ".join(f"{title}: {_MEANINGS[title]}" for title in titles) + "."


def _compared(timings: Sequence[Timing]) -> list[str]:
    """Return the titles of the columns that compare a time with the roofline, with copies and with torch."""
    same = [SAME_BYTES] if any(timing.copy_us for timing in timings) else []
    return ["roofline", "copy", *same, "x torch"]


def _judged(timing: Timing, titles: Sequence[str]) -> list[str]:
    ratio = "" if timing.torch_ratio is None else f"{timing.torch_ratio:.2f}"
    same = (
        [percent(100 * timing.copy_us / timing.median_us if timing.copy_us else None)] if SAME_BYTES in titles else []
    )
    return [percent(timing.percent_of_roofline), percent(timing.percent_of_copy), *same, ratio]


def percent(number: float | None) -> str:
    """Format a percentage, such as ``71 %``; empty for None."""
    return "" if number is None else f"{number:.0f} %"
