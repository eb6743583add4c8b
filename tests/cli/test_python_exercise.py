"""An exercise whose file is Python is listed, checked, hinted, submitted, graded, solved and reset like any other."""

from __future__ import annotations

import csv
import subprocess
import zipfile
from pathlib import Path

import pytest

from grader.cli.app import run
from grader.cli.watch_loop import WatchLoop
from grader.course import Course
from grader.report import theme
from grader.setup.errors import GraderError
from tests.small_course import write_course

TASKS = """
from grader.course.python_task import Case, PythonExercise

class Sum:
    def __init__(self, start):
        self.total = start

    def judge(self, operation, outcome, views):
        self.total += operation.arguments[0]
        return "" if outcome.value == self.total else f"it returns {outcome.value}, not {self.total}"

counter = PythonExercise(
    summary="Add numbers.", reference=Sum, creates="Counter", methods=("add",), views=(), instance="counter", scripts=3,
    cases=[
        Case("two", start=1, operations="add(2); add(3)"),
        Case("any", start=0, operations=lambda chooser: f"add(1); add({chooser.randint(5, 9)}); add(4)"),
    ],
)
"""
LISTED = 'title = "A counter"\nkind = "implement"\nlanguage = "python"\npoints = 10'
SKELETON = '''class Counter:
    """Adds numbers."""

    def __init__(self, start):
        self.total = start

    def add(self, number):
        """Return the sum so far."""
        # TODO
'''
SOLUTION = SKELETON.replace("# TODO", "self.total += number\n        return self.total")
NAME = "day01_start/counter"
FILE = Path(f"exercises/{NAME}.py")


@pytest.fixture
def course(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Course:
    """Return a course with one Python exercise, and make it the current folder."""
    root = tmp_path / "course"
    write_course(root, {"day01_start": TASKS}, {NAME: LISTED})
    (root / f"exercises/{NAME}.cu").unlink()
    (root / FILE).write_text(SKELETON)
    (root / f"solutions/{NAME}.py").write_text(SOLUTION)
    (root / "exercises/day01_start/hints.toml").write_text('counter = ["Keep the sum."]\n')
    monkeypatch.delenv("GRADER_COURSE", raising=False)
    monkeypatch.chdir(root)
    return Course(root)


def test_a_learner_solves_it(course: Course, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["list"]) == 0 and "counter  implement" in capsys.readouterr().out
    assert run(["check", "counter"]) == 1
    shown = capsys.readouterr().out
    assert "counter.py is still the skeleton" in shown and "class Counter: add" in shown
    FILE.write_text(SOLUTION.replace("return self.total", "return number"))
    assert run(["check", str(FILE)]) == 1
    shown = " ".join(capsys.readouterr().out.split())
    assert "add(2): it returns 2, not 3 counter = Counter(start=1) counter.add(2)" in shown
    assert "stops at Correct" in shown and "Safe" not in shown
    assert run(["hint", "counter"]) == 0 and "Keep the sum." in capsys.readouterr().out
    assert run(["solution", "counter"]) == 2
    FILE.write_text(SOLUTION)
    assert run(["check", "counter"]) == 0 and "Passed 10 of 10 points" in " ".join(capsys.readouterr().out.split())
    assert run(["check", f"solutions/{NAME}.py"]) == 0
    capsys.readouterr()
    assert run(["solution", "counter"]) == 0 and capsys.readouterr().out == SOLUTION
    assert run(["submit", "--out", "mine.zip"]) == 0
    with zipfile.ZipFile("mine.zip") as archive:
        assert archive.read(f"{NAME}.py").decode() == SOLUTION
    assert run(["reset", "counter"]) == 0
    assert FILE.read_text() == SKELETON and Path(f"{FILE}.1.bak").read_text() == SOLUTION


def test_the_shortest_drawn_script_is_shown(course: Course, capsys: pytest.CaptureFixture[str]) -> None:
    FILE.write_text(SOLUTION.replace("return self.total", "return self.total + (self.total > 3)"))
    assert run(["check", "counter", "--seed", "1", "-v"]) == 1
    shown = " ".join(capsys.readouterr().out.split())
    assert "counter = Counter(start=0) counter.add(4)" in shown and "counter.add(1)" not in shown


def test_watch_follows_the_file(course: Course) -> None:
    loop = WatchLoop(course, None, theme.console(), lambda entry: None)  # type: ignore[arg-type,return-value]
    entry = loop._entry_of(course.exercises[0].skeleton.resolve())
    assert entry is not None and entry.name == NAME


def test_a_class_is_graded(course: Course, tmp_path: Path) -> None:
    solved = SOLUTION.replace(
        "self.total += number", "for _ in range(number):\n            self.total = self.total + 1"
    )
    for student, text in (("ann", solved), ("bob", SKELETON), ("cem", "import os\nos._exit(0)\n"), ("dan", solved)):
        folder = tmp_path / "class" / student / "day01_start"
        folder.mkdir(parents=True)
        (folder / "counter.py").write_text(text)
        (folder / "tasks.py").write_text("1 / 0")
    instructions = tmp_path / "class.toml"
    instructions.write_text(
        f'[[case]]\nexercise = "{NAME}"\nname = "hidden"\ndims = {{start = 7}}\noperations = "add(1)"\n'
    )
    out = tmp_path / "out"
    arguments = [
        "grade",
        str(tmp_path / "class"),
        "--out",
        str(out),
        "--workers",
        "1",
        "--instructor",
        str(instructions),
    ]
    assert run(arguments) == 0
    with (out / "grades.csv").open(encoding="utf-8-sig") as file:
        grades = {row["student"]: row["score"] for row in csv.DictReader(file)}
    assert grades == {"ann": "10", "bob": "0", "cem": "0", "dan": "10"}
    feedback = (out / "cem/feedback.txt").read_text()
    assert "Importing counter.py fails: it ended the process with exit code 0" in " ".join(feedback.split())
    assert "3 of 3 cases" in (out / "ann/feedback.txt").read_text()
    assert "ann" in (out / "similar.csv").read_text() and "dan" in (out / "similar.csv").read_text()


def test_hidden_operations_must_exist(course: Course, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "class/ann").mkdir(parents=True)
    (tmp_path / "class/ann/counter.py").write_text(SOLUTION)
    for operations in ("subtract(1)", "add(", "1 + 1"):
        (tmp_path / "class.toml").write_text(
            f'[[case]]\nexercise = "{NAME}"\nname = "x"\ndims = {{start = 7}}\noperations = "{operations}"\n'
        )
        arguments = ["--out", str(tmp_path / "out"), "--instructor", str(tmp_path / "class.toml")]
        assert run(["grade", str(tmp_path / "class"), *arguments]) == 2
        assert "the case 'x' of Counter has unknown operations" in " ".join(capsys.readouterr().err.split())


def test_a_python_exercise_has_two_stages(course: Course) -> None:
    assert course.exercises[0].stages == ("builds", "correct")
    path = course.root / "exercises/course.toml"
    path.write_text(path.read_text().replace('language = "python"', 'language = "python"\nstages = ["builds"]'))
    with pytest.raises(GraderError, match="a Python exercise has the stages builds, correct"):
        _ = Course(course.root).exercises


def test_reset_uses_the_committed_skeleton(course: Course, capsys: pytest.CaptureFixture[str]) -> None:
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "start"]):
        subprocess.run([*git, *command], check=True)
    FILE.write_text("changed")
    assert run(["reset", NAME]) == 0
    assert FILE.read_text() == SKELETON


@pytest.mark.parametrize("command", [["bench", "counter", "--device", "cpu"], ["dev", "wrong", "counter"]])
def test_commands_for_kernels_refuse_it(course: Course, capsys: pytest.CaptureFixture[str], command: list[str]) -> None:
    assert run(command) == 2
    assert f"{NAME} is a Python exercise" in capsys.readouterr().err
