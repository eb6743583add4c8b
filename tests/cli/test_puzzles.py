"""Puzzles on the command line and in a notebook: they are found, written, graded and counted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from grader.course import Course
from grader.course.learner.progress import ProgressFile
from grader.course.puzzles import find_puzzle, read_puzzles
from grader.setup.errors import GraderError

PUZZLES = """
[[puzzle]]
name = "double"
title = "Double it"
text = "Write the factor."
kernel = '''
extern "C" void double_it(const float* x, float* out, int n, cudaStream_t stream) { ____; }
'''
answers = ["2"]
hint = "More than one."
inputs = {x = "n"}
outputs = {out = "n"}
reference = "2 * x"
cases = [{n = 3}]
[[puzzle.wrong]]
answers = ["1"]
stage = "correct"
[[puzzle.wrong]]
answers = ["3"]
stage = "correct"
"""
FILE = "exercises/day01_start/puzzles/double.cu"
NAME = "day01_start/double"


@pytest.fixture
def puzzles(course: Course) -> Course:
    (course.root / "exercises/day01_start/puzzles.toml").write_text(PUZZLES + PUZZLES.replace('"double"', '"again"'))
    return course


@pytest.mark.parametrize("name", ["double", NAME, "1/double", FILE, f"puzzles/{NAME.rpartition('/')[2]}.cu"])
def test_found_by_name_and_path(puzzles: Course, name: str) -> None:
    found = find_puzzle(puzzles, name)
    assert found and found.name == NAME and found.points == 1


@pytest.mark.parametrize("name", ["first", "day02_other/double", "doubles"])
def test_not_found(puzzles: Course, name: str) -> None:
    assert find_puzzle(puzzles, name) is None


def test_a_mistake_in_a_puzzle_does_not_matter_to_an_exercise(puzzles: Course) -> None:
    (puzzles.root / "exercises/day01_start/puzzles.toml").write_text("mistake")
    assert find_puzzle(puzzles, "first") is None and find_puzzle(puzzles, "day01_start/first") is None
    with pytest.raises(GraderError, match="is not TOML"):
        find_puzzle(puzzles, "double")


@pytest.mark.parametrize(
    ("find", "replace", "says"),
    [
        ('name = "double"', 'name = "first"', "another puzzle or exercise"),
        ('answers = ["2"]', 'answers = ["2", "3"]', "1 blanks"),
        ("____", "2", "0 blanks"),
        ("points", "points", "unknown field"),
        ('stage = "correct"', 'stage = "fast"', "Invalid enum value"),
    ],
)
def test_mistakes_in_the_file_are_messages(puzzles: Course, find: str, replace: str, says: str) -> None:
    text = PUZZLES.replace(find, replace) if find in PUZZLES else PUZZLES + "pionts = 3\n"
    (puzzles.root / "exercises/day01_start/puzzles.toml").write_text(text)
    with pytest.raises(GraderError, match=says):
        read_puzzles(puzzles)


def test_listed_with_the_progress(grader, puzzles: Course) -> None:  # type: ignore[no-untyped-def]
    assert "0 of 2 puzzles solved, next: grader check double" in grader("list").all
    ProgressFile(puzzles.root).record_check(NAME, True)
    assert "1 of 2 puzzles solved, next: grader check again" in grader("list").all
    data = json.loads(grader("list", "--json").out)
    assert [(item["name"], item["passed"]) for item in data["puzzles"]] == [
        (NAME, True),
        ("day01_start/again", False),
    ]
    assert data["points_total"] == 15, "puzzles are not exercises"


def test_check_writes_the_file_and_asks_for_the_blank(grader, puzzles: Course, judge) -> None:  # type: ignore[no-untyped-def]
    done = grader("check", "double")
    assert done.code == 2 and "puzzles/double.cu:3 still has the blank ____" in done.err
    file = puzzles.root / FILE
    assert file.read_text() == find_puzzle(puzzles, "double").text  # type: ignore[union-attr]
    file.write_text(file.read_text().replace("____", "// solved"))
    done = grader("check", "double")
    assert done.code == 0 and "grader check again" in done.all
    assert ProgressFile(puzzles.root).read().of(NAME).passed
    assert "// solved" in file.read_text(), "the learner's file was overwritten"


def test_other_commands(grader, puzzles: Course) -> None:  # type: ignore[no-untyped-def]
    assert "is a puzzle" in grader("watch", "double").err
    assert "{ 2; }" in grader("solution", "double", "--spoil").out
    assert "More than one." in grader("hint", "double").all
    Path(FILE).write_text("// mine")
    assert "skeleton restored" in grader("reset", "double").out and "____" in Path(FILE).read_text()
    assert Path(f"{FILE}.1.bak").read_text() == "// mine"
