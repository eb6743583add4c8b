"""``exercises/course.toml``: valid contents, and errors about invalid ones."""

from __future__ import annotations

import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from grader.course import Course, manifest
from grader.course.manifest import FILE, former_names, read_manifest
from grader.report.task_view import effort
from grader.setup.errors import GraderError

TEXT = """format = 1
title = "Small"
architecture = "sm_80"
stages = ["builds", "correct", "safe"]

[[day]]
folder = "day01_first"
title = "First"
summary = "About it"

[[day.exercise]]
name = "once"
title = "Once"
kind = "implement"
points = 3

[[day]]
folder = "day02_second"
title = "Second"
summary = "About that"

[[day.exercise]]
name = "twice"
title = "Twice"
kind = "debug"
points = 4

[[day.exercise]]
name = "thrice"
title = "Thrice"
kind = "optimize"
points = 5
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for day, names in {"day01_first": ["once"], "day02_second": ["twice", "thrice"]}.items():
        for part in ("lessons", "exercises"):
            (tmp_path / part / day).mkdir(parents=True)
        (tmp_path / "lessons" / day / "lesson.ipynb").touch()
        (tmp_path / "exercises" / day / "tasks.py").touch()
        for name in names:
            (tmp_path / "exercises" / day / f"{name}.cu").touch()
    (tmp_path / FILE).write_text(TEXT)
    return tmp_path


def refused(root: Path) -> tuple[str, str]:
    """Return the message of the error, without the folder, and its hint."""
    with pytest.raises(GraderError) as caught:
        read_manifest(root)
    return caught.value.message.replace(f"{root}/", ""), caught.value.hint


def test_it_is_read_in_order(root: Path) -> None:
    read = read_manifest(root)
    assert [(day.number, day.title) for day in read.days] == [(1, "First"), (2, "Second")]
    assert [exercise.name for exercise in read.days[1].exercises] == ["twice", "thrice"]
    assert read.days[1].exercises[0].kind == "debug" and read.days[1].exercises[0].points == 4


def test_an_unchanged_text_is_parsed_once(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[str] = []

    def loads(text: str) -> dict[str, Any]:
        parsed.append(text)
        return tomllib.loads(text)

    monkeypatch.setattr(manifest, "tomllib", SimpleNamespace(loads=loads, TOMLDecodeError=tomllib.TOMLDecodeError))
    first = read_manifest(root)
    assert former_names(root) == ({}, {}) and read_manifest(root) == first
    assert parsed == [TEXT]
    renamed = f'{TEXT}[formerly]\nday01_begin = "day01_first"\n'
    (root / FILE).write_text(renamed)
    assert former_names(root) == ({"day01_begin": "day01_first"}, {"day01_begin/once": "day01_first/once"})
    assert read_manifest(root).formerly and parsed == [TEXT, renamed]


def test_former_names_of_an_invalid_file(root: Path) -> None:
    for text in ("format = ", TEXT + '[formerly]\nday01_begin = "day09_first"\n', TEXT.replace("format = 1", "")):
        (root / FILE).write_text(text)
        assert former_names(root) == ({}, {})
    (root / FILE).unlink()
    assert former_names(root) == ({}, {})


@pytest.mark.parametrize(
    ("find", "replace", "says", "hint"),
    [
        ('kind = "debug"', 'kind = "solve"', ":25: day 2 (day02_second), exercise 1 (twice), "
                                             "kind: ", "implement, debug, optimize"),
        ("points = 5", 'points = "5"', ":32: day 2 (day02_second), exercise 2 (thrice), points: Expected "
                                       "int", "at least 1"),
        ("points = 5", "points = 0", ":32: day 2 (day02_second), exercise 2 (thrice), points: Expected int >= "
                                     "1", "at least 1"),
        ("points = 3\n", "points = 3\npionts = "
                         "4\n", ":16: day 1 (day01_first), exercise 1 (once), "
                                "pionts: ", "The keys are name, title, kind, points,"),
        ('title = "Second"\n', "", ":17: day 2 (day02_second), title: this key is missing", ""),
        ('summary = "About it"', 'sumary = "About it"', ":9: day 1 (day01_first), "
                                                        "sumary: ", "folder, title, summary, exercise"),
        ('title = "Small"\n', "", ":1: title: this key is missing", ""),
        ('title = "Small"', 'name = "Small"', ":2: name: ", "format, title, architecture, stages, day"),
        ('"sm_80"', '"ampere"', ":3: architecture: ", "sm_90a"),
        ('"builds", "correct"', '"correct", "builds"', ":4: stages: ", "in order"),
        ('"safe"]', '"quick"]', ":4: stages: ", "in order"),
        ("points = 4\n", 'points = 4\nstages = '
                         '["builds"]\n', ":27: day 2 (day02_second), exercise 1 (twice), stages: ", "in order"),
        ('"thrice"', '"twice"', ":29: day 2 (day02_second), exercise 2 (twice), name: the day has two", "Rename one"),
        ('"thrice"', '"four"', ":29: day 2 (day02_second), exercise 2 (four), name: there is no "
                               "exercises/day02_second/four.cu", "correct the name"),
        ('"thrice"', '"Thrice"', ":29: day 2 (day02_second), exercise 2 (Thrice), name: ", "small letters"),
        ('"day02_second"', '"day01_second"', ":18: day 2 (day01_second), folder: there are two days "
                                             "1", "another number"),
        ('"day02_second"', '"second"', ":18: day 2 (second), folder: ", "dayNN_topic"),
        ('"day02_second"', '"day03_third"', ":18: day 2 (day03_third), folder: there is no "
                                            "lessons/day03_third/lesson.ipynb", "remove the day"),
        ("format = 1\n", "", " has no key format; this grader reads format 1", "format = 1"),
        ("format = 1", "format = 2", " has the format 2; this grader reads format 1", "git pull"),
        ("points = 4", "points = ", " is not TOML: Invalid value (at line 26", "Correct that line"),
        ("[[day]]", "[day]", " is not TOML: ", "Correct that line"),
        ('kind = "debug"', 'kind = ["debug"]', ":25: day 2 (day02_second), exercise 1 (twice), kind: Expected str, "
                                               "got array", ""),
    ],
)  # fmt: skip
def test_errors_name_their_place(root: Path, find: str, replace: str, says: str, hint: str) -> None:
    assert find in TEXT
    (root / FILE).write_text(TEXT.replace(find, replace, 1))
    said, todo = refused(root)
    assert said.startswith(FILE + says) and todo and hint in todo


def test_needs_are_days_and_exercises_before(root: Path) -> None:
    needs = 'difficulty = "hard"\nminutes = 90\nneeds = ["day01_first", "day02_second/twice"]\n'
    (root / FILE).write_text(TEXT + needs)
    course = Course(root)
    thrice, twice = course.find("thrice"), course.find("twice")
    assert (thrice.difficulty, thrice.minutes, thrice.needs) == ("hard", 90, ("day01_first", "day02_second/twice"))
    assert effort(thrice) == "Hard, about 90 minutes. Needs day 1, twice."
    assert (twice.difficulty, twice.minutes, twice.needs) == ("", 0, ()) and effort(twice) == ""


@pytest.mark.parametrize(
    ("line", "says", "hint"),
    [
        ('difficulty = "steep"', "difficulty: ", "easy, medium or hard"),
        ("minutes = 0", "minutes: Expected int >= 1", "at least 1"),
        ('needs = ["day02_second/thrice"]', "needs: 'day02_second/thrice' does not come before it", "come before"),
        ('needs = ["day02_second"]', "needs: 'day02_second' does not come before it", "come before"),
        ('needs = "day01_first"', "needs: Expected array", "come before"),
    ],
)
def test_effort_that_does_not_fit(root: Path, line: str, says: str, hint: str) -> None:
    (root / FILE).write_text(TEXT.replace("points = 4\n", f"points = 4\n{line}\n"))
    said, todo = refused(root)
    assert said.startswith(f"{FILE}:27: day 2 (day02_second), exercise 1 (twice), {says}") and hint in todo


def test_days_may_be_written_as_inline_tables(root: Path) -> None:
    head = TEXT.partition("[[day]]")[0]
    (root / FILE).write_text(head + 'day = [{folder = "day01_first"}]')
    assert refused(root)[0] == f"{FILE}:1: day 1 (day01_first), title: this key is missing"


def test_without_tasks(root: Path) -> None:
    (root / "exercises/day01_first/tasks.py").unlink()
    assert refused(root)[0] == f"{FILE}:7: day 1 (day01_first), folder: there is no exercises/day01_first/tasks.py"


def test_without_the_file(root: Path) -> None:
    (root / FILE).unlink()
    said, todo = refused(root)
    assert said.startswith(f"there is no {FILE} in ") and "GRADER_COURSE" in todo


def test_a_file_that_is_not_utf8(root: Path) -> None:
    (root / FILE).write_bytes(b"title = '\xff'")
    assert "cannot be read" in refused(root)[0]


def test_a_learner_may_lose_a_file_that_has_a_solution(root: Path) -> None:
    (root / "solutions/day01_first").mkdir(parents=True)
    (root / "exercises/day01_first/once.cu").rename(root / "solutions/day01_first/once.cu")
    assert [entry.variable for entry in Course(root).exercises] == ["once", "twice", "thrice"]
