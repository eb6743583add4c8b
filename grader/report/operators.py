"""A table of the times of a transformer's operators, in every dtype and size. ``grader bench --all`` ends with it.

``Exercise.operator`` names the operator that a kernel implements. Two exercises may implement the same operator: the
linear layer has one kernel for f32 and another, on tensor cores, for f16 and bf16.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from grader.report import theme
from grader.report.failures import indented, paragraph
from grader.report.timings import percent
from grader.verdict import Timing, words

Row = tuple[str, str, Timing]
"""The operator, the exercise, and one of its times."""


def operators_table(rows: Sequence[Row]) -> RenderableType:
    """Return a table of time, rate, percent of the roofline and speedup over torch, by operator, dtype and size."""
    table = theme.table()
    table.add_column("operator", no_wrap=True)
    table.add_column("dtype", no_wrap=True)
    table.add_column("size", overflow="fold")
    for title in ("median", "rate", "roofline", "x eager", "x compiled"):
        table.add_column(title, justify="right", no_wrap=True)
    before = ("", "")
    for operator, _, timing in rows:
        here = (operator, timing.dtype)
        table.add_row(
            operator if operator != before[0] else "",
            timing.dtype if here != before else "",
            timing.name,
            words.microseconds(timing.median_us),
            rate(timing),
            percent(timing.percent_of_roofline),
            _times(timing.torch_eager_us, timing),
            _times(timing.torch_compile_us, timing),
        )
        before = here
    kernels: dict[str, list[str]] = {}
    for operator, kernel, _ in rows:
        if kernel not in kernels.setdefault(operator, []):
            kernels[operator].append(kernel)
    several = [f"{name} is {' and '.join(made)}" for name, made in kernels.items() if len(made) > 1]
    note = "The columns x eager and x compiled show the speedup over eager and compiled torch in the same run. "
    note += "GB/s counts each byte once."
    head = Text("  The operators of a transformer", style="title")
    return Group(Text(""), head, Text(""), indented(table), *(paragraph(text, "quiet") for text in [note, *several]))


def rate(timing: Timing) -> str:
    """Return the rate of the resource that limits the roofline: operations per second or bytes per second."""
    by_bytes, by_roofline = timing.percent_of_copy or 0.0, timing.percent_of_roofline or 0.0
    if timing.gigaflops_per_second and by_roofline > by_bytes * (1 + 1e-6):
        return f"{timing.gigaflops_per_second / 1000:,.3g} TFLOP/s"
    return f"{timing.gigabytes_per_second:,.0f} GB/s" if timing.gigabytes_per_second is not None else ""


def _times(torch_us: float | None, timing: Timing) -> str:
    return f"{torch_us / timing.median_us:.2f}" if torch_us and timing.median_us else ""
