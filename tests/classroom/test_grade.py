"""Grading a class: a second run reuses results, a killed run can be resumed, and without a jail nothing is graded."""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from grader.classroom.instructor import read_instructions
from grader.classroom.similar import k_grams, similar
from grader.classroom.store import FOLDER, PLAN
from grader.cli.app import run
from grader.course import Course
from grader.execution.runner import tiers
from grader.setup.errors import GraderError
from tests.classroom.archives import zip_of
from tests.classroom.conftest import KERNEL
from tests.seeds import SEED

WRONG = KERNEL.replace("2.0f", "3.0f")


@pytest.fixture
def instructor(tmp_path: Path) -> Path:
    path = tmp_path / "instructor.toml"
    path.write_text(
        'seed = 7\nexercises = ["twice"]\n[[case]]\nexercise = "twice"\nname = "hidden"\ndims = {n = 777}\n'
    )
    return path


def grades(out: Path) -> dict[str, str]:
    with (out / "grades.csv").open(newline="", encoding="utf-8-sig") as file:
        return {row["student"]: row["score"] for row in csv.DictReader(file)}


def test_a_class(course: Course, hand_in, instructor: Path, tmp_path: Path, capsys) -> None:
    hand_in("ann")
    hand_in("bob", WRONG)
    hand_in("=cmd()", KERNEL.replace("n > 0", "n > 0 && n != 777"))  # fails only the hidden case
    folder = hand_in("eve", "not C++")
    out = tmp_path / "out"
    arguments = ["grade", str(folder), "--instructor", str(instructor), "--workers", "2"]
    assert run([*arguments, "--out", str(out)]) == 0, capsys.readouterr()
    assert grades(out) == {"ann": "10", "bob": "0", "'=cmd()": "0", "eve": "0"}
    result = json.loads((out / "ann/results.json").read_text())
    assert [case["name"] for case in result["verdicts"][0]["stages"][1]["cases"]] == ["some", "any", "hidden"]
    assert "Passed" in (out / "ann/feedback.txt").read_text()
    assert (out / "bob/junit.xml").read_text().count("<testsuite ") == 5
    for file in out.glob("*/*"):
        assert "seed 7" not in file.read_text() and 'name="seed"' not in file.read_text()
    assert result["verdicts"][0]["seed"] == 0
    assert {case["seed"] for case in result["verdicts"][0]["stages"][1]["cases"]} == {0}

    before = {path: path.stat().st_mtime_ns for path in out.glob("*/results.json")}
    assert run([*arguments, "--out", str(out)]) == 0
    assert before == {path: path.stat().st_mtime_ns for path in out.glob("*/results.json")}, "a student was regraded"
    assert run([*arguments, "--out", str(tmp_path / "again")]) == 0
    assert grades(tmp_path / "again") == grades(out)


def test_another_grader_grades_anew(course: Course, hand_in, tmp_path: Path, monkeypatch) -> None:
    folder = hand_in("ann")
    arguments = ["grade", str(folder), "--out", str(tmp_path / "out"), "--exercise", "twice"]
    assert run(arguments) == 0
    result = tmp_path / "out/ann/results.json"
    before = result.stat().st_mtime_ns
    monkeypatch.setattr("grader.classroom.jobs.code_digest", lambda: "another")
    assert run(arguments) == 0
    assert result.stat().st_mtime_ns != before


KILLED_WHILE_WRITING = """
import os, signal, sys
from grader.cli.app import run

moment, replace = int(sys.argv[1]), os.replace

def replace_or_die(*arguments):
    global moment
    moment -= 1
    if moment == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    replace(*arguments)
    moment -= 1
    if moment == 0:
        os.kill(os.getpid(), signal.SIGKILL)

os.replace = replace_or_die
run(sys.argv[2:])
"""
"""A program that kills itself before or after it writes the n-th file, to test each state of the folder that can
remain.
"""


TIMES = re.compile(
    r' *\(?\d+\.\d s\)?$|(time|timestamp)="[^"]*"|"(seconds|started)": .*|compile(s|d before)'
    r'|"quiet number">[^<]*<|\d{4}-\d\d-\d\d[T ][\d:+]*',
    re.MULTILINE,
)


def files(out: Path) -> dict[str, str]:
    """Return the texts of all files of a run, without times and line breaks.

    For jobs, return only their names.
    """
    texts = {
        str(path.relative_to(out)): "" if path.parent.name == FOLDER else path.read_text()
        for path in out.rglob("*")
        if path.is_file()
    }
    return {name: " ".join(TIMES.sub("", text).split()) for name, text in texts.items()}


def written(out: Path) -> dict[Path, int]:
    """Return the time at which each job and each student was finished."""
    paths = [*out.glob("*/results.json"), *(path for path in out.glob(f"{FOLDER}/*.json") if path.name != PLAN)]
    return {path: path.stat().st_mtime_ns for path in paths}


def test_killed_and_resumed(course: Course, hand_in, instructor: Path, tmp_path: Path) -> None:
    students = 4
    for student in range(students):
        folder = hand_in(f"student{student}", KERNEL + f"// {student}\n")
    (folder / "student1/twice.cu").write_text(WRONG)
    arguments = ["grade", str(folder), "--workers", "1", "--instructor", str(instructor), "--out"]
    assert run([*arguments, str(tmp_path / "whole")]) == 0
    out = tmp_path / "out"
    root = str(Path(__file__).parent.parent.parent)
    done: dict[Path, int] = {}
    # A run writes its plan, then a job and two files for each student. Each run is killed at one of its
    # first files.
    for moment in Random(SEED).choices(range(1, 11), k=3):
        killed = subprocess.run(
            [sys.executable, "-c", KILLED_WHILE_WRITING, str(moment), *arguments, str(out)],
            env={**os.environ, "PYTHONPATH": root},
            start_new_session=True,
            check=False,
        )
        assert killed.returncode == -signal.SIGKILL
        now = written(out)
        assert done.items() <= now.items(), "a student is missing or was graded twice"
        done = now
    assert run([*arguments, str(out)]) == 0
    assert done.items() <= written(out).items()
    assert grades(out) == {"student0": "10", "student1": "0", "student2": "10", "student3": "10"}
    assert files(out) == files(tmp_path / "whole")


LONG_JOB = """
import sys, time
from grader.classroom import worker
from grader.cli.app import run

def grade(job):
    with open(sys.argv[1], "w") as pipe:
        print("begun", file=pipe, flush=True)
        time.sleep(60)
        print("finished", file=pipe)

if __name__ == "__main__":
    worker.grade = grade
    run(sys.argv[2:])
"""


def test_workers_end_with_a_killed_command(course: Course, hand_in, tmp_path: Path) -> None:
    """Kill the command during a job. The pipe that the job writes to is closed before the job is finished."""
    (tmp_path / "long_job.py").write_text(LONG_JOB)
    os.mkfifo(tmp_path / "pipe")
    arguments = ["grade", str(hand_in("ann")), "--workers", "1", "--out", str(tmp_path / "out")]
    command = subprocess.Popen(
        [sys.executable, str(tmp_path / "long_job.py"), str(tmp_path / "pipe"), *arguments],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )
    with (tmp_path / "pipe").open() as pipe:
        assert pipe.readline() == "begun\n"
        command.kill()
        command.wait()
        assert pipe.read() == ""


def test_files_that_are_not_graded_are_named(course: Course, hand_in, tmp_path: Path, capsys) -> None:
    folder = hand_in("ann")
    (folder / "ann/twice.cu").rename(folder / "ann/twice (1).cu")
    (folder / "ann/thrice.cu").write_text("int x;")
    (folder / "bob").mkdir()
    (folder / "bob/homework.cu").write_text(KERNEL)
    hand_in("cy")
    for copy in ("cy/twice (1).cu", "cy/before/twice.cu"):
        (folder / copy).parent.mkdir(exist_ok=True)
        (folder / copy).write_text(WRONG)
    (folder / "cy/other/twice.cu").parent.mkdir()
    (folder / "cy/other/twice.cu").write_bytes((course.root / "exercises/day01_start/twice.cu").read_bytes())
    hand_in("dan", "\n")
    (folder / "eve/old").mkdir(parents=True)
    (folder / "eve/old/twice.cu").write_text(WRONG)
    (folder / "eve/backup.zip").write_bytes(zip_of({"day01_start/twice.cu": WRONG}))
    (folder / "eve/exercises/day01_start").mkdir(parents=True)
    (folder / "eve/exercises/day01_start/twice.cu").write_text(KERNEL)
    out = tmp_path / "out"
    assert run(["grade", str(folder), "--out", str(out), "--workers", "1", "--exercise", "twice"]) == 0, (
        capsys.readouterr()
    )
    assert grades(out) == {"ann": "10", "bob": "0", "cy": "10", "dan": "0", "eve": "10"}
    assert "no exercise has that name: thrice.cu.\n" in (out / "ann/feedback.txt").read_text()
    assert "no exercise has that name: homework.cu (expected: twice.cu)" in (out / "bob/feedback.txt").read_text()
    assert (
        "same exercise, or the exercise was not requested: before/twice.cu, twice (1).cu"
        in (out / "cy/feedback.html").read_text()
    )
    assert "The file for day01_start/twice is empty" in (out / "dan/feedback.html").read_text()
    for page in ("grades.csv", "class.html"):
        assert "no exercise has that name: homework.cu" in (out / page).read_text()


def test_refused_without_a_jail(course: Course, hand_in, tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.setenv("GRADER_JAIL", "none")
    assert run(["grade", str(hand_in("ann")), "--out", str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err
    assert "no sandbox" in said and "--unsafe" in said
    assert not (tmp_path / "out").exists()


CASE = '[[case]]\nexercise = "twice"\n'


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("seed = ", "is not TOML"),
        ('seed = "x"', r"got `str` - at `\$\.seed`"),
        ("sed = 1", "unknown field `sed`"),
        ('exercises = ["thrice"]', "no exercise 'thrice'"),
        ('[[case]]\nname = "x"', r"missing required field `exercise` - at `\$\.case\[0\]`"),
        ("seed = true", r"got `bool` - at `\$\.seed`"),
        ("exercises = 3", r"got `int` - at `\$\.exercises`"),
        ("exercises = [3]", r"got `int` - at `\$\.exercises\[0\]`"),
        ("case = 3", r"got `int` - at `\$\.case`"),
        ("case = [3]", r"got `int` - at `\$\.case\[0\]`"),
        (f"{CASE}name = 3\ndims = {{n = 3}}", r"Expected `str`, got `int` - at `\$\.case\[0\]\.name`"),
        (f'{CASE}name = "x"\ndims = 3', r"Expected `object`, got `int` - at `\$\.case\[0\]\.dims`"),
        (f'{CASE}name = "x"\ndims = {{n = "3"}}', r"got `str` - at `\$\.case\[0\]\.dims"),
        (f'{CASE}name = "x"\ndims = {{m = 3}}', "case 'x' gives no value for the parameter 'n'"),
        (f'{CASE}name = "x"\ndims = {{n = 3}}\ndtypes = ["f17"]', "f17 is not one of its dtypes"),
        (
            f'{CASE}name = "x"\ndims = {{n = 3}}\noffsets = {{x = -1}}',
            r"Expected `int` >= 0 - at `\$\.case\[0\]\.offsets",
        ),
    ],
)
def test_mistakes_in_the_instructors_file(course: Course, tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "instructor.toml"
    path.write_text(text)
    with pytest.raises(GraderError, match=says):
        read_instructions(path, course)


def test_a_draft_cannot_be_set(course: Course, tmp_path: Path) -> None:
    listed = course.root / "exercises" / "course.toml"
    listed.write_text(re.sub(r"(points = \d+\n)(?![\s\S]*points)", r"\1draft = true\n", listed.read_text()))
    fresh = Course(course.root)
    (draft,) = fresh.drafts
    (tmp_path / "instructor.toml").write_text(f'exercises = ["{draft.name}"]')
    with pytest.raises(GraderError, match=f"{draft.name} is a draft"):
        read_instructions(tmp_path / "instructor.toml", fresh)


def test_the_instructors_file_is_kept_from_students(course: Course) -> None:
    (course.root / "hidden.toml").write_text("seed = 1")
    with pytest.raises(GraderError, match="is inside the course"):
        read_instructions(course.root / "hidden.toml", course)


def test_similar_files() -> None:
    renamed = (
        KERNEL.replace("twice_kernel", "my_own").replace("int i", "int  place /* mine */").replace("[i]", "[place]")
    )
    other = (
        "__global__ void f(float* a) {\n" + "".join(f"    a[{k}] += {k} * a[{k + 1}] - 1;\n" for k in range(20)) + "}\n"
    )
    files = {"ann": KERNEL, "bob": renamed.replace("i <", "place <"), "eve": other}
    runs = {student: k_grams(text) for student, text in files.items()}
    assert [(pair.first, pair.second) for pair in similar("twice", runs)] == [("ann", "bob")]
    assert similar("twice", runs, skeleton=k_grams(KERNEL)) == []


@pytest.mark.parametrize("out", ["class", "class/out", "class/ann/out"])
def test_results_among_the_submissions(course: Course, hand_in, tmp_path: Path, capsys, out: str) -> None:
    assert run(["grade", str(hand_in("ann")), "--out", str(tmp_path / out)]) == 2
    assert "is inside the folder of submissions" in capsys.readouterr().err


def test_doctor_says_the_tier(course: Course, capsys) -> None:
    run(["doctor"])
    assert tiers.TITLES[tiers.in_force().tier] in capsys.readouterr().out


def test_a_jail_that_does_not_exist(course: Course, hand_in, monkeypatch, capsys) -> None:
    monkeypatch.setenv("GRADER_JAIL", "fortress")
    assert run(["check", "twice"]) == 2
    assert "fortress is not a sandbox tier" in capsys.readouterr().err
