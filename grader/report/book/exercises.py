"""An exercise's page: its task, its hints, each folded, and its skeleton, but not its solution."""

from __future__ import annotations

import textwrap
from html import escape

from grader.course import Course, Entry
from grader.course.learner import pristine
from grader.course.python_task import PythonExercise
from grader.course.task import Exercise
from grader.frontend.dtypes import DTYPES
from grader.judge.timing.goals import with_time_bars
from grader.report.book.links import escaped, relative
from grader.report.task_view import effort, tensors
from grader.verdict.wording import bars

KINDS = {
    "implement": "Complete the skeleton.",
    "debug": "The given kernel is complete but wrong. Find out why, and correct it.",
    "optimize": "The kernel is correct but misses its bar: make it meet the bar.",
}
HINTS = ("Hint 1: a nudge", "Hint 2: the idea", "Hint 3: nearly the code")


def page(course: Course, entry: Entry) -> str:
    """Return the page as Markdown. Run the day's tasks.py."""
    exercise = with_time_bars(entry, entry.load())
    here = f"exercises/{entry.name}.md"
    lesson = relative(f"lessons/{entry.day}/lesson.ipynb", here)
    parts = [
        f"# {escaped(entry.title)}",
        f"*{entry.kind}*, {entry.points} points, of [day {entry.number}]({lesson}). {KINDS[entry.kind]} "
        + escaped(effort(entry)),
        escaped(exercise.summary),
        f"```sh\ngrader watch {entry.name}\n```",
        *_interface(exercise),
        "## Cases",
        "\n".join(f"- {escaped(case.name)}{_only(case.dtypes)}" for case in exercise.cases),
        *_bars(exercise),
    ]
    if entry.hints:
        titles = HINTS if len(entry.hints) == len(HINTS) else [f"Hint {n}" for n in range(1, len(entry.hints) + 1)]
        parts += ["## Hints", *(_folded(title, hint) for title, hint in zip(titles, entry.hints))]
    # Show the original skeleton: a learner's file may already be solved.
    found = pristine.find(course, entry)
    text = found.content.decode() if found else entry.skeleton.read_text(encoding="utf-8")
    parts += ["## What you start from", f"`exercises/{entry.day}/{entry.file_name}`", _fenced(text, entry.language)]
    return "\n\n".join(parts) + "\n"


def _interface(exercise: Exercise) -> list[str]:
    """Return what the file must define: launchers with their tensors, or a Python class."""
    if isinstance(exercise, PythonExercise):
        methods = ", ".join(f"`{method}`" for method in exercise.methods)
        return ["## The class", f"`{exercise.creates}` with {methods}."]
    return [
        "## The launcher" + ("s" if len(exercise.dtypes) > 1 else ""),
        _fenced(_broken(exercise.prototype(exercise.dtypes[0])) + ";", "cuda"),
        *_likewise(exercise),
        _tensors(exercise),
    ]


def _fenced(text: str, language: str) -> str:
    return f"````{language}\n{text.rstrip()}\n````"


def _folded(title: str, text: str) -> str:
    """Return a hint as folded HTML: paragraphs, and code for indented blocks."""
    blocks = (
        f"<pre><code>{escape(textwrap.dedent(block))}</code></pre>" if block[:1] == " " else f"<p>{escape(block)}</p>"
        for block in text.split("\n\n")
    )
    return f"<details><summary>{title}</summary>{''.join(blocks)}</details>"


def _broken(prototype: str) -> str:
    """Break a prototype over several lines, so that it fits on a phone."""
    name, _, parameters = prototype.partition("(")
    return f"{name}(\n    " + parameters.removesuffix(")").replace(", ", ",\n    ") + ")"


def _likewise(exercise: Exercise) -> list[str]:
    """Return a sentence with the launchers for the other dtypes; empty if there are none."""
    others = [f"`{exercise.launcher(dtype)}` ({dtype}: `{DTYPES[dtype].c_type}`)" for dtype in exercise.dtypes[1:]]
    return [f"Likewise {' and '.join(others)}."] if others else []


def _only(dtypes: tuple[str, ...] | None) -> str:
    return f" ({', '.join(dtypes)} only)" if dtypes else ""


def _tensors(exercise: Exercise) -> str:
    rows = ["| tensor | access | shape | dtype |", "| --- | --- | --- | --- |"]
    rows += [f"| `{name}` | {use} | `{shape}` | {dtype} |" for name, shape, dtype, use in tensors(exercise)]
    known = {*exercise.inputs, *exercise.outputs}
    others = [p for p in exercise.parameters(exercise.dtypes[0]) if p.name not in known and not p.is_stream]
    sizes = ", ".join(f"`{p.name}` ({p.type})" for p in others)
    return "\n".join(rows) + (f"\n\nBy value: {sizes}." if sizes else "")


def _bars(exercise: Exercise) -> list[str]:
    lines = [
        f"- `{bar.expression}`: {bars.limit(bar)}."
        + (f" {escaped(bar.look)}" if bar.look else "")
        + (f" *Missed by: {escaped(bar.naive)}.*" if bar.naive else "")
        for bar in exercise.bars
    ]
    for time in exercise.time_bars:
        lines.append(
            f"- time of *{escaped(time.size)}* on {time.gpu}{_only(time.dtypes)}: at most {time.at_most_us:g} µs."
        )
    return ["## What an efficient kernel keeps to", "\n".join(lines)] if lines else []
