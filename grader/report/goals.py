"""The goals of the course beside the recorded figures: in the terminal, and as Markdown for the book."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from grader.course import Course
from grader.judge.timing.goals import Reached
from grader.report.failures import paragraph

HEAD = """\
# Asked and reached

The course sets goals for the speed of its own solutions on an H200. This page shows each goal beside the recorded
figure. `grader goals` prints the same. A goal that is met limits the time in the stage *fast* of `grader check --device
cuda`.

A time is the median of many runs, between two CUDA events. It contains the few microseconds that the GPU needs to start
a kernel, but no time of the host. The inputs are not in the L2 cache. The kernel and torch take turns in one run of
`grader bench`.

- *x torch*: torch's time divided by the kernel's, so above 1 the kernel is faster. torch's time is the shorter of eager
  and `torch.compile`, for the function `torch_baseline` of the day's `tasks.py`.
- *of a copy*: the time of a device-to-device copy of as many bytes, divided by the kernel's time.
- *of the roofline*: the roofline's time divided by the kernel's. The roofline is not that of the data sheet: it uses
  the bandwidth of a large copy and the speed of torch's matmul of the same dtype, both measured in the same run.
- Other units are figures of the lesson's own measurement, which the lesson describes.
"""

KEY = (
    "x torch: torch's time divided by the kernel's, so above 1 the kernel is faster; torch's time is the shorter of "
    "eager and torch.compile. Of a copy: the time of a copy of as many bytes divided by the kernel's. Of the roofline: "
    "by the measured speeds of a large copy and of torch's matmul, not by the data sheet."
)


def render_goals(course: Course, found: Sequence[Reached]) -> RenderableType:
    """Return the goals by day and exercise, for a terminal of 80 columns, and the meaning of their units."""
    lines: list[RenderableType] = []
    for title, of_day in _by_day(course, found):
        lines += [Text(""), Text(f"  {title}", style="title")]
        for (name, measured), group in itertools.groupby(of_day, key=lambda one: (one.goal.title, _measured(one))):
            lines.append(Text(f"  {name}"))
            for one in group:
                style = "good" if one.status == "met" else "quiet" if not one.rows else "warn"
                line = Text(f"    {one.goal.limit}: ")
                line.append(f"{one.range}, {one.status}" if one.rows else one.status, style=style)
                lines.append(line if line.cell_len <= 80 else paragraph(line.plain.strip(), style=style, indent=4))
                if one.explained:
                    lines.append(paragraph(one.explained, style="quiet", indent=6))
            if measured:
                lines.append(paragraph(measured, style="quiet", indent=4))
    return Group(
        *lines, Text(""), paragraph(KEY, style="quiet", indent=2), Text(""), paragraph(summary(found), indent=2)
    )


def goals_page(course: Course, found: Sequence[Reached]) -> str:
    """Return the goals as a page in Markdown: for each day a table, the reasons, and the commands that measured."""
    parts = [HEAD, summary(found), ""]
    for title, of_day in _by_day(course, found):
        parts += [f"## {title}", "", "| kernel | asked | reached | result | measured on |", "| --- " * 5 + "|"]
        for one in of_day:
            measured = f"{one.gpu}<br>{one.date}" if one.rows else ""
            parts.append(f"| `{one.goal.title}` | {one.goal.limit} | {one.range} | {one.status} | {measured} |")
        reasons = [f"- `{one.goal.title}`, {one.goal.limit}. {one.explained}" for one in of_day if one.explained]
        parts += ["", *reasons]
        if commands := list(dict.fromkeys(one.command for one in of_day if one.rows)):
            parts += ["", "```sh", *commands, "```"]
        parts.append("")
    return "\n".join(parts)


def summary(found: Sequence[Reached]) -> str:
    """Return the numbers of goals that are met, missed and not recorded."""
    met = sum(one.status == "met" for one in found)
    unknown = sum(not one.rows for one in found)
    missed = len(found) - met - unknown
    return f"Goals: {met} met, {missed} missed for at least one size or dtype, {unknown} not recorded."


def _by_day(course: Course, found: Sequence[Reached]) -> Iterator[tuple[str, list[Reached]]]:
    titles = {day.folder: f"Day {day.number}: {day.title}" for day in course.days}
    for folder, group in itertools.groupby(found, key=lambda one: one.goal.day):
        of_day = list(group)
        names = list(dict.fromkeys((one.goal.title, _measured(one)) for one in of_day))
        yield titles.get(folder, folder), sorted(of_day, key=lambda one: names.index((one.goal.title, _measured(one))))


def _measured(one: Reached) -> str:
    return f"{one.gpu}, {one.date}: {one.command}" if one.rows else ""
