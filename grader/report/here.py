"""A table of 80 columns: the times on this machine's GPU beside an H200's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from grader.report import theme
from grader.report.failures import indented, paragraph
from grader.report.timings import machine_line, percent
from grader.verdict import words

if TYPE_CHECKING:
    from grader.judge.timing.here import Compared


def here_table(found: Sequence[Compared]) -> RenderableType:
    """Return a table of all sizes: the time and the percent of the floor, on this machine's GPU and on the H200."""
    from grader.judge.timing.here import machines

    table = theme.table()
    table.add_column("size", overflow="fold")
    table.add_column("dtype", no_wrap=True)
    for title in ("us\nhere", "us\nH200", "floor\nhere", "floor\nH200"):
        table.add_column(title, justify="right", no_wrap=True)
    notes: dict[str, list[str]] = {}
    for one in found:
        table.add_row(Text(one.entry.variable, style="title"))
        before = ""
        for here, h200 in one.rows():
            if here.note:
                notes.setdefault(here.note, []).append(f"{one.entry.variable} ({here.name}, {here.dtype})")
            table.add_row(
                f"  {here.name}" if here.name != before else "",
                here.dtype,
                _number(here.median_us),
                _number(h200.median_us if h200 else 0),
                percent(here.percent_of_roofline),
                percent(h200.percent_of_roofline) if h200 else "",
            )
            before = here.name
    rows: list[RenderableType] = [Text("")]
    rows += [
        paragraph(f"{name}: {machine_line('cuda', machine)}", "quiet") for name, machine in machines(found).items()
    ]
    text = "The columns floor show the least time that the GPU needs, in percent of the kernel's time: for the bytes "
    text += "at the bandwidth of a copy on that GPU, or for the operations at the rate of torch's matmul on it."
    rows += [paragraph(text, "quiet"), Text(""), indented(table)]
    if notes:
        rows.append(Text(""))
    for note, sizes in notes.items():
        which = ", ".join(sizes[:3]) + (f" and {len(sizes) - 3} more" if len(sizes) > 3 else "")
        rows.append(paragraph(f"{which}: {note}", "warn"))
    return Group(*rows)


def summary(found: Sequence[Compared]) -> str:
    """Return the number of timed sizes, and of those that are as close to their floor as on the H200, or closer."""
    timed = [(here, h200) for one in found for here, h200 in one.rows() if here.median_us]
    both = [(here.percent_of_roofline, h200.percent_of_roofline) for here, h200 in timed if h200]
    as_close = sum(here >= other for here, other in both if here and other)
    untimed = sum(not here.median_us for one in found for here, _ in one.rows())
    text = f"{words.count(len(timed), 'size')} timed"
    text += f", {untimed} not timed" if untimed else ""
    return f"{text}. {as_close} of {len(both)} are as close to the floor here as on the H200, or closer."


def _number(us: float) -> str:
    """Return a time without its unit; a dash for 0, a missing time."""
    return "-" if not us else f"{us:,.0f}" if us >= 1000 else f"{us:.3g}"
