"""``grader dev new`` creates a day or an exercise, lists what is missing, and overwrites nothing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from grader.course import Course
from grader.course.authoring import new
from grader.execution.build.build import compile_kernel
from grader.report.notebook.canonical import canonical_text
from grader.setup import files
from grader.setup.errors import GraderError
from tests.course.authoring.conftest import ROOT

EXERCISE = ("new", "exercise", "day02_reductions/row_max", "--kind", "debug", "--title", 'The "largest" of a row')


def everything(root: Path) -> dict[str, bytes]:
    """Return all files with their contents, and all folders."""
    found = {str(path.relative_to(root)): path.read_bytes() if path.is_file() else b"" for path in root.rglob("*")}
    return {name: content for name, content in found.items() if "__pycache__" not in name}


def test_a_day_says_what_it_lacks(root: Path, dev) -> None:  # type: ignore[no-untyped-def]
    before = (root / "exercises/course.toml").read_text()
    assert dev("new", "day", "day98_late", "--title", "Late")[0] == 0
    assert dev("new", "day", "day97_before", "--title", "Before")[0] == 0
    days = Course(root).days
    assert [(day.number, day.title) for day in days[-2:]] == [(97, "Before"), (98, "Late")]
    assert (root / "exercises/course.toml").read_text().startswith(before.rstrip())
    assert canonical_text(days[-1].lesson) == days[-1].lesson.read_text()
    code, said = dev("check", "98")
    assert code == 1
    assert "day98_late has no summary" in said and "day98_late has no exercise" in said
    assert "lesson.ipynb: cell 2 is not written yet: TODO: with a picture." in said
    assert "the section" not in said, "the template has all sections, in order"


def test_an_exercise_says_what_it_lacks(root: Path, dev) -> None:  # type: ignore[no-untyped-def]
    before = (root / "exercises/course.toml").read_text()
    assert dev(*EXERCISE)[0] == 0
    course = Course(root)
    entry = course.find("row_max")
    assert [e.variable for e in course.days[1].exercises][-2:] == ["row_sum_debug", "row_max"]
    assert (entry.title, entry.kind, entry.points) == ('The "largest" of a row', "debug", 10)
    after = (root / "exercises/course.toml").read_text()
    at = after.index('\n[[day.exercise]]\nname = "row_max"')
    assert before == after[:at] + after[after.index("points = 10\n", at) + len("points = 10\n") :]
    assert entry.load().launcher("f32") == "row_max"
    assert entry.hints == () and course.find("row_sum_debug").hints
    code, said = dev("check", "row_max")
    assert code == 1
    tasks = (root / "exercises/day02_reductions/tasks.py").read_text().splitlines()
    place = f"exercises/day02_reductions/tasks.py:{tasks.index('row_max = Exercise(') + 1}: row_max: "
    for line in (
        "tests/exercises/day02_reductions/row_max.<design>.cu: 0 of at least 2 correct kernels of other designs",
        "exercises/day02_reductions/row_max.cu:1: it still has a TODO",
        "solutions/day02_reductions/row_max.cu:7: it still has a TODO",
        "row_max: 0 of 3 hints",
        "day02_reductions/row_max has no difficulty.",
        "day02_reductions/row_max has no minutes.",
        "day02_reductions/row_max has no needs.",
        "row_max.toml: 0 of at least 6 wrong kernels",
        "row_max.toml: the table [skeleton] is missing",
        f"{place}the summary is missing: say what the kernel must do, in general and for empty input",
        f"{place}no case has a size of 1",
        f"{place}the reference fails in the case 'no element': NotImplementedError",
        "lists the stages builds, correct, safe, efficient, fast; its bars and bench need builds, correct, safe",
    ):
        assert line in said
    assert "the lesson does not name the exercise `row_max`" in dev("check", "2")[1]


def test_a_draft_is_checked_by_its_name_only(root: Path, dev) -> None:  # type: ignore[no-untyped-def]
    assert dev(*EXERCISE, "--draft")[0] == 0
    course = Course(root)
    entry = course.find("row_max")
    assert entry.draft and entry not in course.exercises and course.days[1].drafts == (entry,)
    code, said = dev("check", "2")
    assert code == 0, said
    assert "day02_reductions/row_max is a draft and was not checked: grader dev check day02_reductions/row_max" in said
    code, said = dev("check", "row_max")
    assert code == 1 and "row_max: 0 of 3 hints" in said
    assert dev(*EXERCISE)[1].count("already has an exercise row_max") == 1


@pytest.mark.parametrize("kind", ["implement", "debug", "optimize"])
def test_the_first_exercise_of_a_day_builds_and_is_well_formed(root: Path, course: Course, kind: str) -> None:
    new.new_day(course, "day99_last", "Last")
    files = new.new_exercise(Course(root), "99/one", kind, "One", 5)
    entry = Course(root).find("99/one")
    assert entry.load().points == 5
    assert [launcher.name for launcher in compile_kernel(entry.skeleton, "cpu", checks=True).launchers] == ["one"]
    tools = Path(sys.executable).parent
    for command in (["ruff", "check", "--isolated", "--select", "E,F,I"], ["ruff", "format", "--isolated", "--check"]):
        python = [str(file) for file in files if file.suffix == ".py"]
        assert subprocess.run([tools / command[0], *command[1:], "--line-length", "120", *python]).returncode == 0
    kernels = [str(file) for file in files if file.suffix == ".cu"]
    style = f"--style=file:{ROOT / '.clang-format'}"
    assert subprocess.run([tools / "clang-format", style, "--dry-run", "--Werror", *kernels]).returncode == 0


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("new", "day", "day02_again", "--title", "x"), "there is already a day 2"),
        (("new", "day", "later", "--title", "x"), "dayNN_topic"),
        (("new", "day", "day99_x", "--title", "two\nlines"), "one line of text"),
        (("new", "exercise", "2/softmax", "--kind", "debug", "--title", "x"), "already has an exercise softmax"),
        (("new", "exercise", "99/x", "--kind", "debug", "--title", "x"), "does not name a day of the course"),
        (("new", "exercise", "x", "--kind", "debug", "--title", "x"), "does not name a day of the course"),
        (("new", "exercise", "2/X", "--kind", "debug", "--title", "x"), "small letters"),
        (("new", "exercise", "2/x", "--kind", "solve", "--title", "x"), "'implement', 'debug', 'optimize'"),
    ],
)
def test_a_refused_command_changes_nothing(root: Path, dev, arguments: tuple[str, ...], says: str) -> None:  # type: ignore[no-untyped-def]
    before = everything(root)
    code, said = dev(*arguments)
    assert code == 2 and says in said
    assert everything(root) == before


@pytest.mark.parametrize(
    "there",
    ["exercises/day02_reductions/row_max.cu", "solutions/day02_reductions/row_max.cu", "tests/exercises/day02_reductions/row_max.toml"],  # noqa: E501
)  # fmt: skip
def test_no_file_is_overwritten(root: Path, dev, there: str) -> None:  # type: ignore[no-untyped-def]
    (root / there).write_text("somebody's")
    before = everything(root)
    code, said = dev(*EXERCISE)
    assert code == 2 and f"{there} exists already, and nothing was written" in said
    assert everything(root) == before


@pytest.mark.parametrize("fails_at", range(6))
@pytest.mark.parametrize("fault", [OSError(28, "No space left on device", "somewhere"), KeyboardInterrupt()], ids=str)
def test_a_failure_writes_nothing(root: Path, course: Course, monkeypatch, fails_at: int, fault: BaseException) -> None:  # type: ignore[no-untyped-def]
    shutil.rmtree(root / "tests/exercises/day02_reductions")
    before = everything(root)
    replaced: list[str] = []
    replace = os.replace

    def fails_once(partial, path) -> None:  # type: ignore[no-untyped-def]
        replaced.append(path.name)
        if len(replaced) == fails_at + 1:
            raise fault
        replace(partial, path)

    monkeypatch.setattr(files.os, "replace", fails_once)
    with pytest.raises((Exception, KeyboardInterrupt)) as caught:
        new.new_exercise(course, "2/row_max", "debug", "x", 10)
    assert "nothing was changed" in str(caught.value) or isinstance(fault, KeyboardInterrupt)
    assert len(replaced) > fails_at
    assert everything(root) == before


def test_a_comment_before_the_next_day_stays_there(root: Path) -> None:
    file = root / "exercises/course.toml"
    file.write_text(file.read_text().replace('[[day]]\nfolder = "day03', '# Three is next.\n[[day]]\nfolder = "day03'))
    new.new_exercise(Course(root), "2/row_max", "debug", "x", 10)
    assert '# Three is next.\n[[day]]\nfolder = "day03' in file.read_text()
    assert Course(root).days[1].exercises[-1].variable == "row_max"


def test_a_course_that_is_laid_out_in_another_way(root: Path) -> None:
    file = root / "exercises/course.toml"
    head = file.read_text().partition("\n[")[0] + "\n"
    one = '{name = "softmax", title = "x", kind = "debug", points = 1}'
    for days in (
        f'day = [{{folder = "day02_reductions", title = "x", exercise = [{one}]}}]\n',
        f'[[day]]\nfolder = "day02_reductions"\ntitle = "x"\nexercise = [{one}]\n',
    ):
        file.write_text(head + days)
        with pytest.raises(GraderError, match="not written as"):
            new.new_exercise(Course(root), "2/row_max", "debug", "x", 10)
        assert file.read_text() == head + days


def test_the_first_day(root: Path) -> None:
    file = root / "exercises/course.toml"
    text = file.read_text()
    file.write_text(
        text.replace('[[day]]\nfolder = "day01_residual_add"', '# One.\n[[day]]\nfolder = "day01_residual_add"')
    )
    new.new_day(Course(root), "day00_before", "Before")
    assert [day.number for day in Course(root).days][:3] == [0, 1, 2]
    file.write_text(text.partition("\n[")[0])
    new.new_day(Course(root), "day50_alone", "Alone")
    assert [day.title for day in Course(root).days] == ["Alone"]


@pytest.mark.parametrize(
    ("text", "first_lines"),
    [
        ('"""A day."""\n', ['"""A day."""', "", "LINE"]),
        ('"""A day."""\n\nimport torch\n\nx = 1\n', ['"""A day."""', "", "import torch", "", "LINE", "", "x = 1"]),
        ("from grader.course.task import Case, Bar\n", ["LINE with Bar"]),
        ("from grader.course.task import (\n    Case,\n    Bar,\n)\nx = 1\n", ["LINE with Bar", "x = 1"]),
        ("", ["", "LINE"]),
    ],
)
def test_imports_are_added(text: str, first_lines: list[str]) -> None:
    line = "from grader.course.task import Case, Exercise, Input, Output, between"
    lines = [part.replace("LINE with Bar", line.replace("Case", "Bar, Case")) for part in first_lines]
    lines = [part.replace("LINE", line) for part in lines]
    assert new.with_imports(text, Path("tasks.py")).splitlines() == lines
