"""``grader solution``: shows the course's solution to learners who have passed."""

from __future__ import annotations

import sys
from typing import Annotated

import typer
from rich.syntax import Syntax

from grader.cli.messages import find_exercise, read_progress, short_name, shown_path
from grader.cli.options import Exercise
from grader.course import Course
from grader.course.puzzles import Puzzle
from grader.report import theme
from grader.setup.errors import GraderError


def command(
    exercise: Exercise,
    spoil: Annotated[bool, typer.Option("--spoil", help="Show it before you have passed.")] = False,
) -> int:
    """Show the course's solution, once you have passed."""
    course = Course()
    entry = find_exercise(course, exercise)
    name = short_name(entry, course)
    passed = read_progress(course).of(entry.name).passed
    if not spoil and not passed:
        raise GraderError(
            f"you have not passed {entry.name} yet",
            f"`grader hint {name}` helps step by step; `grader solution {name} --spoil` shows it anyway.",
        )
    source = entry.solution_text()
    console = theme.console()
    if console.is_terminal:
        console.print(Syntax(source, entry.language, theme="ansi_dark", background_color="default", word_wrap=False))
        if not isinstance(entry, Puzzle):
            print(f"\n{shown_path(entry.solution)}")
    else:
        sys.stdout.write(source)
    return 0
