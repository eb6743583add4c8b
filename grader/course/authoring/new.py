"""Templates for a new day and a new exercise. `grader dev check` lists their unfinished parts."""

from __future__ import annotations

import ast
import contextlib
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path

import nbformat

from grader.course import Course, Day
from grader.course.authoring import from_solution
from grader.course.authoring.mistakes import toml_text
from grader.course.manifest import FILE, WANTED
from grader.setup.errors import GraderError
from grader.setup.files import replace_file

SOLUTION = """\
// {title}.
//
//   x, out: [n]
#include <cuda_runtime.h>

__global__ void {name}_kernel(const float* x, float* out, int n) {{
    // TODO: solve it
}}

extern "C" void {name}(const float* x, float* out, int n, cudaStream_t stream) {{
    // TODO: solve it
}}
"""
GIVEN = {
    "debug": "the whole kernel, with one realistic fault",
    "optimize": "the whole kernel, correct, but it misses a bar of the stage efficient",
}
"""The content of the skeleton of an exercise that gives the learner a whole kernel."""

TASK_NAMES = ("Case", "Exercise", "Input", "Output", "between")
HINTS = "# The hints that `grader hint` shows, one more each time: a nudge, the idea, nearly the code.\n"
MISTAKES = "# Wrong kernels of {name}, each the solution with one realistic fault. CONTRIBUTING.md has an example.\n"

LESSON = {
    "question": "## The question\n\nTODO: one paragraph, with the number that makes it matter.",
    "idea": "## The idea\n\nTODO: with a picture.",
    "reference": "## The reference\n\nTODO: a few lines of torch.",
    "simple-kernel": "## The simple kernel\n\nTODO: shown in pieces, loaded with `load_kernel`, checked.",
    "costs": "## What it costs\n\nTODO: counted by the simulator; and the floor of a named GPU.",
    "better-kernel": "## The better kernel, one change at a time\n\nTODO: each with its new count.",
    "gpu": "## On a real GPU\n\nTODO: the recorded table, and a cell that measures here.",
    "wrong": "## What goes wrong\n\nTODO: a broken kernel, run, with the finding that it gets.",
    "exercises": "## Exercises\n\nTODO: each exercise of the day by its name.",
    "remember": "## What to remember\n\nTODO\n\n## What to read\n\nTODO",
}
"""The cells of a lesson, by their ids."""


def new_day(course: Course, folder: str, title: str) -> list[Path]:
    """Write a day: its entry in course.toml, and a lesson with the sections in order. Return the files."""
    if not re.fullmatch(r"day\d\d_[a-z0-9_]+", folder):
        raise GraderError(f"{folder} is not the name of a day's folder", WANTED["folder"])
    number, title = int(folder[3:5]), _title(title)
    if any(day.number == number for day in course.days):
        raise GraderError(
            f"there is already a day {number}", f"Give {folder} another number, or remove that day from {FILE}."
        )
    file = course.root / FILE
    block = f'[[day]]\nfolder = "{folder}"\ntitle = {toml_text(title)}\nsummary = ""\n'
    before = [day.folder for day in course.days if day.number < number]
    listed = _inserted(file, f"\n\n{block}", before[-1] if before else "")
    lesson = course.root / "lessons" / folder / "lesson.ipynb"
    write_all({lesson: _notebook(number, title)}, {file: listed})
    return [lesson, file]


def new_exercise(
    course: Course, name: str, kind: str, title: str, points: int, draft: bool = False, solved: str = ""
) -> list[Path]:
    """Write an exercise DAY/NAME: its entry in course.toml, and all its files. Return the files.

    ``solved`` is the text of a finished solution; by default a template. The skeleton and the description are made from
    it. If tasks.py already describes the exercise, that description stays.
    """
    day, variable = _named(course, name)
    title = _title(title)
    folder = course.root / "exercises" / day.folder
    solution = solved or SOLUTION.format(name=variable, title=title)
    task = from_solution.task(solution, variable)
    skeleton = from_solution.skeleton(solution) if kind == "implement" else f"// TODO: {GIVEN[kind]}\n{solution}"
    new = {
        folder / f"{variable}.cu": skeleton,
        course.root / "solutions" / day.folder / f"{variable}.cu": solution,
        course.root / "tests" / "exercises" / day.folder / f"{variable}.toml": MISTAKES.format(name=variable),
    }
    tasks, hints, listed = folder / "tasks.py", folder / "hints.toml", course.root / FILE
    before = (
        tasks.read_text(encoding="utf-8")
        if tasks.is_file()
        else f'"""What each exercise of day {day.number} must do."""\n'
    )
    described = re.search(rf"^{variable}\s*=", before, re.MULTILINE)
    known = hints.read_text(encoding="utf-8") if hints.is_file() else HINTS
    block = f'[[day.exercise]]\nname = "{variable}"\ntitle = {toml_text(title)}\nkind = "{kind}"\npoints = {points}\n'
    block += "draft = true\n" if draft else ""
    changed = {
        tasks: before if described else with_imports(before, tasks).rstrip() + "\n" + task,
        hints: known.rstrip() + f"\n\n{variable} = []\n",
        listed: _inserted(listed, f"\n{block}", day.folder),
    }
    write_all(new, changed)
    return [*new, *changed]


def _named(course: Course, name: str) -> tuple[Day, str]:
    """Return the day and the variable of a new exercise; raise if it exists."""
    folder, _, variable = name.rpartition("/")
    day = next((day for day in course.days if folder in (day.folder, str(day.number))), None)
    if day is None:
        days = ", ".join(day.folder for day in course.days)
        raise GraderError(
            f"{name!r} does not name a day of the course",
            f"Write DAY/NAME. The days are {days}; `grader dev new day` adds one.",
        )
    if not re.fullmatch(r"[a-z][a-z0-9_]*", variable):
        raise GraderError(f"{variable!r} cannot be the name of an exercise", WANTED["name"])
    if any(entry.variable == variable for entry in (*day.exercises, *day.drafts)):
        raise GraderError(f"{day.folder} already has an exercise {variable}", "Choose another name.")
    return day, variable


def _title(title: str) -> str:
    """Return a title that fits on a line."""
    if not title.strip() or not title.isprintable():
        raise GraderError(f"{title!r} is not a title", "A title is one line of text.")
    return title.strip()


def _inserted(file: Path, block: str, after: str) -> str:
    """Return course.toml with a block inserted at the end of the day ``after`` (empty: before the first day)."""
    lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
    heads = [at for at, line in enumerate(lines) if re.match(r"\s*\[\[\s*day\s*\]\]", line)]
    folders = [day["folder"] for day in tomllib.loads("".join(lines)).get("day", [])]
    following = folders.index(after) + 1 if after else 0
    end = heads[following] if following < len(heads) else len(lines)
    while lines[end - 1].isspace() or lines[end - 1].startswith("#"):
        end -= 1  # insert before blank lines and comments, which belong to the following day
    text = "".join([*lines[:end], block, *lines[end:]])
    try:
        tomllib.loads(text)
        as_written = len(heads) == len(folders)
    except tomllib.TOMLDecodeError:
        as_written = False
    if not as_written:
        raise GraderError(
            f"{file} has days or exercises that are not written as [[day]] and [[day.exercise]]",
            "Add the exercise to this file by hand.",
        )
    return text


def with_imports(text: str, file: Path) -> str:
    """Add the imports of a new exercise to the import in tasks.py."""
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        raise GraderError(f"{file}:{error.lineno}: {error.msg}", "Correct tasks.py first.") from error
    lines = text.splitlines()
    there = [node for node in tree.body if isinstance(node, ast.ImportFrom) and node.module == "grader.course.task"]
    imports = [node for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom))]
    names = {alias.name for node in there for alias in node.names} | set(TASK_NAMES)
    line = f"from grader.course.task import {', '.join(sorted(names))}"
    if len(line) > 120:
        line = "\n".join(["from grader.course.task import (", *(f"    {name}," for name in sorted(names)), ")"])
    if there:
        first, last = there[0].lineno - 1, there[0].end_lineno or there[0].lineno
        return "\n".join([*lines[:first], line, *lines[last:]]) + "\n"
    after = imports[-1].end_lineno if imports else tree.body[0].end_lineno if ast.get_docstring(tree) else 0
    return "\n".join([*lines[: after or 0], "", line, *lines[after or 0 :]]) + "\n"


def _notebook(number: int, title: str) -> str:
    """Return the lesson, in canonical form."""
    cells = [nbformat.v4.new_markdown_cell(text, id=name) for name, text in LESSON.items()]
    cells[0].source = f"# Day {number}: {title}\n\n{cells[0].source}"
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return nbformat.writes(nbformat.v4.new_notebook(cells=cells, metadata=metadata)) + "\n"


def write_all(new: Mapping[Path, str], changed: Mapping[Path, str]) -> None:
    """Create the files ``new``, which must not exist, and overwrite the files ``changed``. Undo both on an error."""
    for path in new:
        if path.exists():
            raise GraderError(
                f"{path} exists already, and nothing was written", "Move this file away, or choose another name."
            )
    before = {path: path.read_bytes() if path.exists() else None for path in changed}
    folders: list[Path] = []
    written: list[Path] = []
    try:
        for path, text in {**new, **changed}.items():
            for folder in reversed([folder for folder in path.parents if not folder.exists()]):
                folder.mkdir()
                folders.append(folder)
            written.append(path)
            replace_file(path, text.encode())
    except BaseException as error:
        for path in reversed(written):
            content = before.get(path)
            with contextlib.suppress(OSError):
                if content is None:
                    path.unlink(missing_ok=True)
                else:
                    replace_file(path, content)
        for folder in reversed(folders):
            with contextlib.suppress(OSError):
                folder.rmdir()
        if isinstance(error, OSError):
            raise GraderError(f"cannot write {error.filename}: {error.strerror}; nothing was changed") from error
        raise
