"""Tests of puzzles: answers pass, wrong answers fail at the named stage, and unfilled puzzles do not build."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
import pytest

from grader.course import Course
from grader.course.puzzles import Puzzle, Wrong, read_puzzles
from grader.judge import CheckOptions, check
from grader.report.terminal import as_text
from grader.setup import shipped
from grader.verdict import Verdict

PUZZLES = read_puzzles(Course(shipped.COURSE))
WRONG = [(puzzle, wrong) for puzzle in PUZZLES for wrong in puzzle.listed.wrong]
SEED = 1
LINES = 10
"""The maximum number of lines of a kernel, without its launcher."""


def graded(puzzle: Puzzle, text: str, folder: Path) -> Verdict:
    """Return the verdict on a puzzle's file with this text."""
    file = folder / f"{puzzle.variable}.cu"
    file.write_text(text)
    return check(puzzle, file, CheckOptions(seed=SEED))


@pytest.mark.parametrize("puzzle", PUZZLES, ids=lambda puzzle: puzzle.variable)
def test_the_answer_passes(puzzle: Puzzle, tmp_path: Path) -> None:
    verdict = graded(puzzle, puzzle.filled(), tmp_path)
    assert verdict.passed, as_text(verdict)
    assert verdict.score == puzzle.points


@pytest.mark.parametrize(("puzzle", "wrong"), WRONG, ids=[f"{p.variable}-{' '.join(w.answers)}" for p, w in WRONG])
def test_a_wrong_answer_fails(puzzle: Puzzle, wrong: Wrong, tmp_path: Path) -> None:
    verdict = graded(puzzle, puzzle.filled(wrong.answers), tmp_path)
    assert verdict.failed_stage is not None and verdict.failed_stage.name == wrong.stage, as_text(verdict)
    assert wrong.says in " ".join(as_text(verdict).split())


@pytest.mark.parametrize("puzzle", PUZZLES, ids=lambda puzzle: puzzle.variable)
def test_the_kernel_and_its_text_are_short(puzzle: Puzzle) -> None:
    kernel = puzzle.listed.kernel.partition('extern "C"')[0].strip()
    assert 3 < len(kernel.splitlines()) <= LINES + 1  # the closing brace
    assert max(map(len, puzzle.text.splitlines())) <= 120
    assert len(puzzle.listed.text.split()) <= 60 and len(puzzle.listed.wrong) >= 3


def test_a_blank_does_not_build(tmp_path: Path) -> None:
    verdict = graded(PUZZLES[0], PUZZLES[0].text, tmp_path)
    assert verdict.failed_stage is not None and verdict.failed_stage.name == "builds"


def test_there_are_puzzles_for_days_1_to_4() -> None:
    assert {puzzle.number for puzzle in PUZZLES} == {1, 2, 3, 4} and len(PUZZLES) >= 20


@pytest.mark.parametrize("day", sorted({puzzle.day for puzzle in PUZZLES}))
def test_the_lesson_lists_the_puzzles_of_its_day(day: str) -> None:
    cells = nbformat.read(shipped.COURSE / "lessons" / day / "lesson.ipynb", as_version=4).cells
    (cell,) = (cell for cell in cells if cell.id == "puzzles")
    listed = re.findall(r"^\| `(\w+)` \| (.+) \|$", cell.source, re.MULTILINE)
    assert listed == [(puzzle.variable, puzzle.title) for puzzle in PUZZLES if puzzle.day == day]
