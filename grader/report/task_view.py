"""The task of an exercise: the summary, the launcher's prototype, and each tensor with its shape."""

from __future__ import annotations

import re

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from grader.course import Entry
from grader.course.python_task import PythonExercise
from grader.course.task import Exercise, split_shape
from grader.report import theme
from grader.report.failures import indented, paragraph
from grader.verdict import words


def render_task(task: Exercise) -> RenderableType:
    """Return a task's summary, effort, prototype and tensors for the terminal."""
    if isinstance(task, PythonExercise):
        rows = [paragraph(task.summary), Text(""), *_effort_rows(task)]
        needed = f"class {task.creates}: {', '.join(task.methods)}"
        return Group(*rows, paragraph(needed, style="code", indent=4))
    others = [task.launcher(dtype) for dtype in task.dtypes[1:]]
    also = f"and the same for {words.listed(task.dtypes[1:])}: {words.listed(others)}" if others else ""
    rows = [paragraph(task.summary), Text(""), *_effort_rows(task)]
    rows.append(_prototype(task.prototype(task.dtypes[0])))
    if len(set(others)) == len(others) and also:
        rows.append(paragraph(also, style="quiet", indent=4))
    table = Table.grid(padding=(0, 2, 0, 0))
    for style in ("title", "", "quiet", "quiet"):
        table.add_column(style=style)
    for row in tensors(task):
        table.add_row(*map(Text, row))  # a shape is no markup
    return Group(*rows, Text(""), indented(table, 4)) if table.row_count else Group(*rows)


def _prototype(text: str) -> RenderableType:
    """Return a prototype, broken between parameters where it is too long for a line."""
    lines = [""]
    for part in re.split(r"(?<=,) ", text):
        longer = f"{lines[-1]} {part}" if lines[-1] else part
        if len(longer) <= theme.WIDTH - 4:
            lines[-1] = longer
        else:
            lines.append(f"    {part}")
    return paragraph("\n".join(lines), style="code", indent=4)


def _effort_rows(task: Exercise) -> list[RenderableType]:
    said = effort(task)
    return [paragraph(said, style="quiet"), Text("")] if said else []


def effort(task: Exercise | Entry) -> str:
    """Return the difficulty, the minutes and the prerequisites; empty if course.toml does not have them."""
    takes = f"about {words.count(task.minutes, 'minute')}" if task.minutes else ""
    said = ", ".join(filter(None, [task.difficulty, takes]))
    needs = f"Needs {words.listed(_need(name) for name in task.needs)}." if task.needs else ""
    return " ".join(filter(None, [f"{said[:1].upper()}{said[1:]}." if said else "", needs]))


def _need(name: str) -> str:
    """Return a prerequisite's short name: ``day 2`` for a day, the name without the day for an exercise."""
    day, _, exercise = name.partition("/")
    return exercise or f"day {int(day[3:5])}"


def tensors(task: Exercise) -> list[tuple[str, str, str, str]]:
    """Return a row for each tensor: its name, shape, dtypes and use, such as ``out [rows, cols] f32, f16 written``."""
    every = ", ".join(task.dtypes)
    rows = [(name, _shape(task, given.shape), given.dtype or every, "read") for name, given in task.inputs.items()]
    for name, output in task.outputs.items():
        use = "working memory" if output.scratch else "read and written" if output.inout else "written"
        rows.append((name, _shape(task, output.shape), output.dtype or every, use))
    return rows


def _shape(task: Exercise, text: str) -> str:
    """Return a shape with the launcher's names of the sizes. A case's hidden offset (``Case.before``) is left out."""
    prototype = task.prototype(task.dtypes[0])
    for name in task.scalars:
        if not re.search(rf"\b{name}\b", prototype):
            text = re.sub(rf"\((\w+) - {name}\)", r"\1", text)
    return f"[{', '.join(split_shape(text))}]"
