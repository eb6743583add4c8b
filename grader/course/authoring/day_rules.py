"""CONTRIBUTING's rules for a day: the order of its lesson's sections, and no unlisted files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from grader.course import Course, Day
from grader.course.authoring.exercise_rules import Problem, line_of, lines_of
from grader.course.authoring.lesson_rules import cells_of
from grader.course.authoring.mistakes import read_mistakes
from grader.course.manifest import FILE, SUFFIXES, read_toml
from grader.course.task import Exercise
from grader.setup.errors import GraderError

SECTIONS = {
    "the idea": True,
    "the reference": True,
    "the simple kernel": False,
    "what it costs": False,
    "the better kernel": False,
    "on a real gpu": True,
    "what goes wrong": True,
    "exercises": True,
    "what to remember": True,
}
"""The sections of a lesson in order, and whether every day must have them. The question follows the title."""


def lacks(day: Day) -> list[Problem]:
    """Return all problems of a day, except those of its exercises."""
    return [*listed(day), *lesson(day), *strays(day), *unlisted(day)]


def unlisted_days(course: Course) -> Iterator[Problem]:
    """Check that every day's folder is listed in course.toml."""
    known = {day.folder for day in course.days}
    for part in ("lessons", "exercises", "solutions", "tests/exercises"):
        for folder in sorted((course.root / part).glob("day[0-9]*/")):
            files = [file for file in folder.iterdir() if file.name != "__pycache__"]
            if folder.name not in known and files:
                yield Problem(folder, f"this folder belongs to no day of {FILE}")


def listed(day: Day) -> Iterator[Problem]:
    """Check that course.toml has a summary and exercises for the day."""
    file = day.root / FILE
    line = next((number for number, text in enumerate(lines_of(file), 1) if f'folder = "{day.folder}"' in text), 0)
    if not day.summary:
        yield Problem(file, f"{day.folder} has no summary: write one line about its subject", line)
    if not day.exercises:
        yield Problem(file, f"{day.folder} has no exercise", line)


def headings(notebook: Path) -> list[tuple[int, str]]:
    """Return the titles, sections and remaining TODOs of a notebook, as pairs (cell number from 1, text)."""
    found: list[tuple[int, str]] = []
    for number, cell in enumerate(cells_of(notebook), 1):
        if cell["cell_type"] != "markdown":
            continue
        outside_code = re.sub(r"^```.*?^```", "", cell["source"], flags=re.MULTILINE | re.DOTALL)
        found += [(number, line) for line in re.findall(r"^(?:##? |TODO).*", outside_code, re.MULTILINE)]
    return found


def lesson(day: Day) -> Iterator[Problem]:
    """Check that the lesson has the day's title, its sections in order, and links to the exercises."""
    try:
        found = headings(day.lesson)
    except GraderError as error:
        yield Problem(day.lesson, str(error))
        return
    title = f"# Day {day.number}: {day.title}"
    if not found or not found[0][1].startswith(title):
        yield Problem(day.lesson, f"the lesson does not begin with the title {title!r}")
    order = list(SECTIONS)
    seen: list[str] = []
    for cell, heading in found:
        text = re.sub(r"^## (\d+\. )?", "", heading).lower()
        name = next((section for section in order if text.startswith(section)), None)
        if name is None:
            continue
        if seen and order.index(name) < order.index(seen[-1]):
            yield Problem(day.lesson, f"the section {name!r} (cell {cell}) stands after {seen[-1]!r}")
        seen.append(name)
    for name, needed in SECTIONS.items():
        if needed and name not in seen:
            yield Problem(day.lesson, f"the section {name!r} is missing")
    text = day.lesson.read_text(encoding="utf-8")
    for cell, line in found:
        if line.startswith("TODO"):
            yield Problem(day.lesson, f"cell {cell} is not written yet: {line}")
    for entry in day.exercises:
        if f"`{entry.variable}`" not in text:
            yield Problem(day.lesson, f"the lesson does not name the exercise `{entry.variable}`")


def strays(day: Day) -> Iterator[Problem]:
    """Check that every kernel in the day's folders belongs to an exercise of course.toml."""
    known: set[Path] = set()
    for entry in (*day.exercises, *day.drafts):
        known |= {entry.skeleton, entry.solution, entry.wrong_kernels, *entry.designs}
        try:
            known |= {mistake.path(entry) for mistake in read_mistakes(entry).wrong}
        except GraderError:
            continue  # the exercise's own rules report this
    for part in ("exercises", "solutions", "tests/exercises"):
        folder = day.root / part / day.folder
        kernels = [
            file for ending in SUFFIXES.values() for file in folder.glob(f"*{ending}") if file.name != "tasks.py"
        ]
        for file in sorted([*kernels, *(folder.glob("*.toml") if part.startswith("tests") else ())]):
            if file not in known:
                yield Problem(file, f"this kernel belongs to no exercise of {FILE}")


def unlisted(day: Day) -> Iterator[Problem]:
    """Check that every exercise of tasks.py and hints.toml is listed in course.toml."""
    entries = (*day.exercises, *day.drafts)
    names = {entry.variable for entry in entries}
    tasks, hints = (day.root / "exercises" / day.folder / file for file in ("tasks.py", "hints.toml"))
    if hints.is_file():
        for name in read_toml(hints):
            if name not in names:
                yield Problem(hints, f"{name} is not an exercise of {FILE}", line_of(hints, name))
    if tasks.is_file() and entries:
        module = entries[0].module()
        for name, value in vars(module).items():
            if isinstance(value, Exercise) and name not in names:
                yield Problem(tasks, f"{name} is not listed in {FILE}", line_of(tasks, name))
