"""The archive for Gradescope, unpacked and run as Gradescope does, in a temporary folder instead of /autograder."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from grader.classroom.exports import gradescope, gradescope_run
from grader.classroom.result import StudentResult
from grader.cli.app import run
from grader.course import Course
from grader.setup.errors import GraderError
from tests.classroom.test_class_exports import COUNTED, KERNEL, WRONG
from tests.small_course import write_course

REPOSITORY = Path(__file__).parents[2]
STAGES = 'stages = ["builds", "correct", "safe", "efficient"]'
POLICY = """seed = 3
[points.twice]
builds = 1
correct = 4
safe = 2
efficient = 3
[late]
percent_per_day = 25
[[case]]
exercise = "twice"
name = "hidden"
dims = {n = 333}
"""
METADATA = {
    "id": 123456,
    "created_at": "2018-08-01T06:22:32.365935-07:00",
    "assignment": {"due_date": "2018-07-31T23:00:00.000000-07:00", "id": 25828, "total_points": "10.0"},
    "users": [{"email": "student@example.com", "id": 1234, "name": "Student User"}],
    "previous_submissions": [],
}


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the archive that the command writes for a small course with this grader."""
    place = tmp_path_factory.mktemp("gradescope")
    course = place / "course"
    twice = f'title = "Twice"\nkind = "implement"\npoints = 10\n{STAGES}'
    write_course(course, {"day01_start": COUNTED}, {"day01_start/twice": twice})
    (course / "solutions/day01_start/twice.cu").write_text(KERNEL)
    (course / ".grader").mkdir()
    (course / ".grader/progress.json").write_text("{}")
    for name in ("Makefile", "README.md", "LICENSE", "pyproject.toml", "constraints.txt"):
        shutil.copy(REPOSITORY / name, course / name)
    shutil.copytree(REPOSITORY / "grader", course / "grader", ignore=shutil.ignore_patterns("__pycache__"))
    (place / "instructor.toml").write_text(POLICY)
    arguments = ["export", "gradescope", "-e", "twice", "--instructor", str(place / "instructor.toml")]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(course)
        patch.delenv("GRADER_COURSE", raising=False)
        for name in ("autograder.zip", "again.zip"):
            assert run([*arguments, "--out", str(place / name), "--visibility", "after_due_date"]) == 0
    assert (place / "autograder.zip").read_bytes() == (place / "again.zip").read_bytes()
    return place / "autograder.zip"


@pytest.fixture(scope="module")
def autograder(archive: Path) -> Iterator[Path]:
    """Yield a folder like /autograder in Gradescope's image, after setup.sh ran with stubs that install nothing."""
    programs = archive.parent / "programs"
    programs.mkdir()
    log = archive.parent / "installed"
    stubs = {  # replacements of programs that install packages; `make` links the environment of the tests
        "apt-get": f'echo "apt-get $*" >> {log}',
        "make": f'echo "make $*" >> {log}; ln -s {sys.prefix} .venv',
    }
    for name, line in stubs.items():
        (programs / name).write_text(f"#!/bin/sh\n{line}\n")
        (programs / name).chmod(0o755)
    with tempfile.TemporaryDirectory(prefix="autograder-") as name:
        root = Path(name)
        root.chmod(0o755)  # like /autograder, readable by the jail's user
        (root / "results").mkdir()
        unpack(archive, root / "source")
        shutil.copy2(root / "source/run_autograder", root / "run_autograder")
        path = f"{programs}:{os.environ['PATH']}"
        subprocess.run([root / "source/setup.sh"], env={**os.environ, "PATH": path}, cwd=root, check=True)
        said = log.read_text()
        assert "apt-get install -y --no-install-recommends g++ make bubblewrap" in said
        assert "make TORCH=cpu setup" in said
        yield root


def unpack(archive: Path, folder: Path) -> None:
    """Unpack an archive like unzip, with file modes."""
    with zipfile.ZipFile(archive) as file:
        for member in file.infolist():
            path = Path(file.extract(member, folder))
            path.chmod(stat.S_IMODE(member.external_attr >> 16))


def hand_in(root: Path, files: dict[str, str], metadata: Any = METADATA) -> None:
    """Write the files that Gradescope's harness provides before it grades."""
    shutil.rmtree(root / "submission", ignore_errors=True)
    (root / "submission").mkdir()
    for name, text in files.items():
        (root / "submission" / name).write_text(text)
    (root / "submission_metadata.json").write_text(json.dumps(metadata))
    (root / "results/results.json").unlink(missing_ok=True)


def run_autograder(root: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([root / "run_autograder", root], cwd=root, capture_output=True, text=True, check=False)


def results_of(root: Path) -> dict[str, Any]:
    return json.loads((root / "results/results.json").read_text())


def test_a_right_kernel_that_is_late(autograder: Path) -> None:
    hand_in(autograder, {"twice.cu": KERNEL, "leaderboard.txt": "Ann"})
    done = run_autograder(autograder)
    assert done.returncode == 0, done.stdout + done.stderr
    results = results_of(autograder)
    assert results["score"] == 7.5 and "1 day late: -2.5 points" in results["output"]
    (test,) = results["tests"]
    assert (test["score"], test["max_score"], test["status"]) == (10, 10, "passed")
    assert "Points: builds 1 of 1, correct 4 of 4, safe 2 of 2, efficient 3 of 3" in test["output"]
    assert results["visibility"] == "after_due_date" and results["stdout_visibility"] == "hidden"
    assert results["leaderboard"] == [{"name": "Twice: bytes", "value": 32768, "order": "asc"}]
    assert isinstance(results["execution_time"], int)


def test_a_wrong_kernel_in_time(autograder: Path) -> None:
    on_time = METADATA | {"created_at": "2018-07-01T14:22:32.365935-07:00"}
    hand_in(autograder, {"twice (1).cu": WRONG, "notes.txt": "x"}, on_time)
    gradescope_run.run(autograder)
    results = results_of(autograder)
    assert results["score"] == 1 and results["output"] == "" and results["leaderboard"] == []
    (test,) = results["tests"]
    assert (test["score"], test["status"]) == (1, "failed") and "3 of 3 cases fail" in test["output"]
    assert test["output"].endswith("  grader check day01_start/twice --file 'twice (1).cu'\n")
    assert "seed" not in json.dumps(results)


def test_nothing_to_grade(autograder: Path) -> None:
    hand_in(autograder, {"homework.pdf": "%PDF"})
    gradescope_run.run(autograder)
    results = results_of(autograder)
    said = "The submission was not graded: it contains no .cu or .py file, only 'homework.pdf'."
    assert results["score"] == 0 and said in results["output"]


def test_an_error_of_the_grader_gives_no_grade(autograder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hand_in(autograder, {"twice.cu": KERNEL})
    result = StudentResult("ann", "ann", "key", references=["1234"])
    monkeypatch.setattr(gradescope_run.Session, "run", lambda *_: [result])
    assert gradescope_run.main([str(autograder)]) == 2
    assert not (autograder / "results/results.json").exists()


def test_a_failure_that_is_not_the_students_gives_no_grade(autograder: Path) -> None:
    hand_in(autograder, {"twice.cu": KERNEL}, {"created_at": "2018-07-01T14:22:32-07:00"})
    done = run_autograder(autograder)
    assert (
        done.returncode == 2 and "Set a due date for the assignment" in done.stdout and "Traceback" not in done.stderr
    )
    assert not (autograder / "results/results.json").exists()


def test_contents_of_the_archive(archive: Path) -> None:
    with zipfile.ZipFile(archive) as file:
        members = {member.filename: member for member in file.infolist()}
        assert file.read("instructor.toml").decode() == POLICY
    for program in ("setup.sh", "run_autograder"):
        assert stat.S_IMODE(members[program].external_attr >> 16) == 0o755
    assert {"gradescope.json", "course/Makefile", "course/exercises/day01_start/tasks.py"} <= members.keys()
    kept_out = ("solutions", "tests", ".grader", ".venv", ".git", "__pycache__")
    assert not [name for name in members if set(name.split("/")) & set(kept_out)]
    assert {member.date_time for member in members.values()} == {(1980, 1, 1, 0, 0, 0)}


def test_courses_that_cannot_be_exported(course: Course, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["export", "gradescope", "--out", str(tmp_path / "a.zip")]) == 2
    assert "no exercise is named" in capsys.readouterr().err
    entries = [course.find("twice")]
    assert run(["export", "gradescope", "-e", "twice", "--visibility", "never"]) == 2
    assert "'never' is not one of 'visible', 'hidden', 'after_due_date'" in capsys.readouterr().err
    with pytest.raises(GraderError, match="has no Makefile"):
        gradescope.export(course, entries, tmp_path / "a.zip")
    (tmp_path / "instructor.toml").write_text('[late]\nsubmitted = "times.csv"\n')
    (tmp_path / "times.csv").write_text("student,submitted\n")
    with pytest.raises(GraderError, match="is not supported in Gradescope"):
        gradescope.export(course, entries, tmp_path / "a.zip", tmp_path / "instructor.toml")
    (tmp_path / "instructor.toml").write_text('[[extra]]\nstudent = "ann"\npoints = 1\n')
    with pytest.raises(GraderError, match="is not supported in Gradescope"):
        gradescope.export(course, entries, tmp_path / "a.zip", tmp_path / "instructor.toml")
    assert not (tmp_path / "a.zip").exists()
