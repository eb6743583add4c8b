"""``grader demo``: example verdicts, for a correct kernel and a broken one."""

from __future__ import annotations

import tempfile
from pathlib import Path

from grader.cli.check import grade
from grader.course import Course, Entry
from grader.course.learner import pristine
from grader.report import theme
from grader.report.terminal import NextStep, print_verdict
from grader.setup import shipped

RIGHT = "day06_flash_attention/flash_attention"
BROKEN = "day06_flash_attention/flash_attention_debug"

_OF_A_CLONE: list[NextStep] = [
    ("make lab", "opens the lessons in JupyterLab: begin with day 1"),
    ("source .venv/bin/activate", "makes the commands below available"),
]
_OF_A_WHEEL: list[NextStep] = [("jupyter lab lessons", "opens the lessons: begin with day 1")]
NEXT: list[NextStep] = [
    *(_OF_A_WHEEL if shipped.IN_WHEEL else _OF_A_CLONE),
    ("grader watch", "the first exercise, graded each time you save it"),
]


def command() -> int:
    """Grade a correct and a broken flash attention, as an example.

    Exit code: 0 if the correct one passes and the broken one fails, as expected.
    """
    course = Course()
    pristine.keep_copies(course)
    console = theme.console()
    right, broken = course.find(RIGHT), course.find(BROKEN)
    console.print("A correct flash attention, the course's solution:")
    passed = grade(right, right.solution, console)
    print_verdict(passed, console)
    console.print("\nA broken one, an exercise. Where would you look?")
    with tempfile.TemporaryDirectory() as folder:
        failed = grade(broken, _untouched(course, broken, Path(folder)), console)
    print_verdict(failed, console, next_steps=NEXT)
    return 0 if passed.exit_code == 0 and failed.exit_code == 1 else max(passed.exit_code, 1)


def _untouched(course: Course, entry: Entry, folder: Path) -> Path:
    """Return the exercise's file, or a copy of the original in ``folder`` if a learner has edited the file."""
    original = pristine.find(course, entry)
    if original is None or (entry.skeleton.is_file() and entry.skeleton.read_bytes() == original.content):
        return entry.skeleton
    file = folder / entry.skeleton.name
    file.write_bytes(original.content)
    return file
