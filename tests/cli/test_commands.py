"""Each command on a small course: its output, the state that it saves, and its exit code."""

from __future__ import annotations

import io
import json
import os
import shlex
import shutil
import subprocess
import sys
import threading
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from grader.cli import doctor
from grader.cli.list_exercises import print_list
from grader.course import Course
from grader.course.learner.progress import ProgressFile
from grader.report import theme
from grader.setup.errors import GraderError

ROOT = Path(__file__).resolve().parents[2]
FIRST = "day01_start/first"
FILE = Path(f"exercises/{FIRST}.cu")


def progress(course: Course):  # type: ignore[no-untyped-def]
    return ProgressFile(course.root).read()


# --- list ---


def test_list(grader, course) -> None:  # type: ignore[no-untyped-def]
    ProgressFile(course.root).record_check(FIRST, passed=True)
    done = grader("list")
    assert done.code == 0
    assert "1 of 2 exercises passed, 10 of 15 points" in done.all
    assert "grader watch second" in done.all
    assert "debug 75 min <- next" in done.all and "Hard, about 75 minutes. Needs first." in done.all
    assert max(map(len, done.out.splitlines())) <= 80


def listed(course: Course, width: int) -> list[str]:
    """Return the lines of the list in a terminal of that width."""
    text = io.StringIO()
    print_list(course, ProgressFile(course.root).read(), console=theme.console(text, width=width, color_system=None))
    return [line.rstrip() for line in text.getvalue().splitlines()]


def test_a_narrow_terminal_has_room_for_titles() -> None:
    course = Course(ROOT)
    narrow, wide = listed(course, 80), listed(course, 100)
    assert max(map(len, narrow)) <= 80 and max(map(len, wide)) <= 100
    by_name = {line.split()[1]: line for line in narrow if len(line.split()) > 3}
    for entry in course.exercises[1:]:
        assert entry.title[:27].rstrip() in by_name[entry.variable], by_name[entry.variable]
    (row,) = [line for line in wide if " layer_norm " in line]
    assert "implement medium  45 min 15  LayerNorm by Welford's method" in row


def test_a_draft_is_listed_and_counts_nowhere(grader, course, judge) -> None:  # type: ignore[no-untyped-def]
    file = course.root / "exercises/course.toml"
    file.write_text(file.read_text() + "draft = true\n")
    course = Course(course.root)
    assert [entry.name for entry in course.exercises] == [FIRST]
    assert course.find("second").draft and course.find("second").load().title == "The second"
    done = grader("list")
    assert "0 of 1 exercise passed, 0 of 10 points" in done.all
    assert "second debug 75 min (draft) The second" in done.all
    assert json.loads(grader("list", "--json").out)["points_total"] == 10
    (course.root / "exercises/day01_start/second.cu").write_text("solved")
    assert grader("check", "second").code == 0 and judge == ["day01_start/second"]
    refused = grader("submit", "second")
    assert refused.code == 2 and "is a draft, which is not graded" in refused.err


def test_list_as_json(grader, course) -> None:  # type: ignore[no-untyped-def]
    ProgressFile(course.root).record_check(FIRST, passed=False, failed_stage="correct")
    data = json.loads(grader("list", "--json").out)
    assert [item["name"] for item in data["exercises"]] == [FIRST, "day01_start/second"]
    assert data["exercises"][0]["stops_at"] == "correct" and data["points_total"] == 15
    first, second = ({key: item[key] for key in ("difficulty", "minutes", "needs")} for item in data["exercises"])
    assert first == {"difficulty": None, "minutes": None, "needs": []}
    assert second == {"difficulty": "hard", "minutes": 75, "needs": [FIRST]}


def test_list_of_one_day(grader, course, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    assert grader("list", "1").out == grader("list").out  # this course has one day
    monkeypatch.setenv("GRADER_COURSE", str(ROOT))
    assert [line.split()[:2] for line in grader("list", "02").out.splitlines() if line.startswith("  Day")] == [
        ["Day", "2"]
    ]
    by_name = [json.loads(grader("list", name, "--json").out) for name in ("day2", "day02_reductions/")]
    assert by_name[0] == by_name[1] and {item["day"] for item in by_name[0]["exercises"]} == {2}
    assert {item["day"] for item in by_name[0]["puzzles"]} == {2} and len(by_name[0]["days"]) == 1


def test_list_outside_a_course(grader, tmp_path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "empty" / "exercises").mkdir(parents=True)
    monkeypatch.setenv("GRADER_COURSE", str(tmp_path / "empty"))
    done = grader("list")
    assert done.code == 2 and "which has no exercises/course.toml" in done.err


SLOW = ["torch", "numpy", "matplotlib", "IPython", "nbformat", "elftools", "jinja2", "watchfiles"]
"""Packages that `grader list` must not import, because importing any one takes longer than the list."""


def test_list_imports_nothing_slow() -> None:
    """Check which packages are imported. The time itself would depend on the load of the machine."""
    code = f"import sys; from grader.cli.app import run; run(['list']); print(sorted({set(SLOW)} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "[]"


# --- check ---


def test_check_fails(grader, course, judge) -> None:  # type: ignore[no-untyped-def]
    done = grader("check", "first")
    assert done.code == 1
    assert "Not passed yet" in done.all and "one element (f32)" in done.all
    assert "grader hint first" in done.all and "hint 1 of 3" in done.all
    kept = progress(course).of(FIRST)
    assert (kept.checks, kept.passed, kept.last_failed_stage) == (1, False, "correct")


def test_check_passes_and_names_the_next(grader, course, judge) -> None:  # type: ignore[no-untyped-def]
    FILE.write_text("// solved\n")
    done = grader("check", "exercises/day01_start/first.cu")
    assert done.code == 0
    assert "Passed 10 of 10 points" in done.all and "grader watch second" in done.all
    assert progress(course).of(FIRST).passed


def test_another_file_is_no_progress(grader, course, judge) -> None:  # type: ignore[no-untyped-def]
    done = grader("check", "1/first", "--file", "solutions/day01_start/first.cu")
    assert done.code == 0
    assert progress(course).exercises == {}


@pytest.mark.parametrize("path", ["solutions/day01_start/first.cu", "elsewhere/first.cu", "elsewhere/first/mine.cu"])
def test_a_path_outside_of_exercises_is_the_file_that_is_graded(grader, course, judge, path) -> None:  # type: ignore[no-untyped-def]
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text("// solved: first\n")
    done = grader("check", path)
    assert done.code == 0, "the given file, which passes, was not the one that was graded"
    assert f"note: {path} is graded as the exercise {FIRST}" in " ".join(done.err.split())
    assert progress(course).exercises == {}


def test_check_writes_reports(grader, course, judge, tmp_path) -> None:  # type: ignore[no-untyped-def]
    out = tmp_path / "new" / "folder"
    done = grader(
        "check", "first", "--json", str(out / "r.json"), "--junit", str(out / "r.xml"), "--html", str(out / "r.html")
    )
    assert done.code == 1
    assert json.loads((out / "r.json").read_text())["exercise"] == FIRST
    assert ET.parse(out / "r.xml").getroot().get("failures") == "1"
    assert "The first" in (out / "r.html").read_text()


def test_json_to_stdout_is_only_json(grader, course, judge) -> None:  # type: ignore[no-untyped-def]
    done = grader("check", "first", "--json", "-")
    assert json.loads(done.out)["passed"] is False
    assert "Not passed yet" in done.err


@pytest.mark.parametrize(
    ("error", "code", "says"),
    [
        (GraderError("there is no C++ compiler", "Install g++."), 2, "error: there is no C++ compiler Install g++."),
        (ZeroDivisionError("division by zero"), 2, "error: the grader itself failed: ZeroDivisionError: division by"),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
)
def test_an_error_of_the_judge(grader, course, monkeypatch, error: BaseException, code: int, says: str) -> None:  # type: ignore[no-untyped-def]
    def fails(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("grader.judge.check", fails)
    done = grader("check", "first")
    assert done.code == code and " ".join(done.err.split()).startswith(says)
    assert "Traceback" not in done.err and progress(course).exercises == {}


def test_a_verdict_is_printed_although_progress_cannot_be_saved(grader, course, judge) -> None:  # type: ignore[no-untyped-def]
    Path(".grader").write_text("in the way")
    done = grader("check", "first")
    assert done.code == 1 and "cannot save your progress" in done.err and "Not passed yet" in done.out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["chek", "first"], "Did you mean 'check'?"),
        (["check"], "missing argument 'EXERCISE'"),
        (["check", "frist"], "Did you mean day01_start/first?"),
        (["check", "day01_strat/first"], "Did you mean day01_start/first"),
        (["check", "first", "--file", "nowhere.cu"], "there is no file nowhere.cu"),
        (["check", "first", "--file", "."], "is a folder"),
        (["check", "exercises/course.toml"], "there is no exercise 'exercises/course.toml'"),
        (["check", "no/such/first.cu"], "there is no file no/such/first.cu"),
        (["check", "solutions/day01_start/first.cu", "--file", "x.cu"], "are both files"),
        (["check", "first", "--device", "gpu"], "'cpu', 'cuda'"),
        (["check", "first", "--seed", "many"], "--seed"),
        (["check", "first", "--again"], "Add --device cuda"),
        (["check", "first", "--jsn", "x"], "--json"),
        (["check", "first", "--json", "."], "it is a folder"),
        (["check", "first", "--html", "exercises/day01_start/tasks.py/x"], "cannot write"),
        (["list", "7"], "there is no day '7'"),
        (["list", "first"], "Write a day's number or folder."),
        (["hint", "frist"], "Did you mean"),
        (["init"], "that `grader init` did not write"),
        (["init", "exercises"], "is not empty"),
        (["watch", "frist"], "Did you mean"),
        (["watch", "--device", "gpu"], "'cpu', 'cuda'"),
        (["bench"], "--all"),
        (["bench", "first", "--all"], "--all"),
        (["bench", "first", "--grid"], "has no grid of sizes"),
        (["bench", "--all", "--grid"], "no exercise has a grid of sizes"),
        (["bench", "first", "--grid", "--device", "cpu"], "--grid measures on a GPU"),
        (["bench", "--here", "--grid"], "--here times solutions on a GPU: it excludes"),
        (["bench", "--here", "--recorded"], "nothing was measured on this machine's GPU yet"),
        (["bench", "frist", "--here"], "Did you mean day01_start/first?"),
        (["check", "first", "--gpu", "RTX 9000"], "Known GPUs: H200"),
        (["bench", "first", "--recorded"], "nothing of day01_start/first is recorded"),
        (["goals", "first"], "day01_start/first has no goal"),
        (["goals", "frist"], "there is no exercise 'frist'"),
        (["bench", "--all", "--recorded", "--record"], "--recorded shows recorded times"),
    ],
)
def test_mistakes_get_one_message(grader, judge, arguments, says) -> None:  # type: ignore[no-untyped-def]
    done = grader(*arguments)
    assert done.code == 2
    assert says in " ".join(done.err.split())
    assert done.out == "" and "Traceback" not in done.err


def test_a_skeleton_is_not_timed(grader, judge) -> None:  # type: ignore[no-untyped-def]
    grader("check", "first")
    done = grader("bench", "first", "--device", "cpu")
    assert done.code == 2 and "is still the skeleton: there is no kernel to time" in done.err
    assert done.out == "" and "Traceback" not in done.err


def test_no_command_shows_help(grader) -> None:  # type: ignore[no-untyped-def]
    done = grader()
    assert done.code == 0
    for name in ("init", "list", "check", "watch", "hint", "reset", "solution", "bench", "goals", "doctor"):
        assert f"  {name} " in done.out


@pytest.mark.parametrize("group", [(), ("dev",), ("dev", "new"), ("export",)], ids=" ".join)
def test_lists_of_commands_show_whole_sentences(  # type: ignore[no-untyped-def]
    grader, group: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    _, _, commands = grader(*group, "--help").out.partition("Commands:")
    assert commands and "..." not in commands


def test_a_closed_pipe_is_no_error() -> None:
    command = f"{shlex.quote(sys.executable)} -m grader list | true"
    done = subprocess.run(["bash", "-c", command], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stderr == ""


# --- hint, solution ---


TASK = "Do it. void first(float* x, int rows, cudaStream_t stream) w [4] f32 read x [rows, 4] f32 read and written"


def test_the_task_is_shown_for_an_untouched_skeleton(grader, judge) -> None:  # type: ignore[no-untyped-def]
    assert f"first.cu is still the skeleton. The task: {TASK}" in grader("check", "first").all
    assert TASK in grader("hint", "first").all
    FILE.write_text("// begun\n")
    assert TASK not in grader("check", "first").all


def test_hints_come_one_at_a_time(grader, course) -> None:  # type: ignore[no-untyped-def]
    first, second, third, all_again = (grader("hint", "first") for _ in range(4))
    assert "a nudge" in first.out and "the idea" not in first.out and "2 more" in first.all
    assert "the idea" in second.out and "a nudge" not in second.out
    assert "nearly the code" in third.out and "--spoil" in third.all
    assert all(hint in all_again.out for hint in ("a nudge", "the idea", "nearly the code"))


def test_the_solution_waits_for_a_pass(grader, course) -> None:  # type: ignore[no-untyped-def]
    done = grader("solution", "first")
    assert done.code == 2 and "--spoil" in done.err and "solved" not in done.all
    assert grader("solution", "first", "--spoil").out == "// solved: first\n"
    ProgressFile(course.root).record_check(FIRST, passed=True)
    assert grader("solution", "first").out == "// solved: first\n"


# --- reset ---


def test_reset_keeps_the_learners_file(grader, course, git) -> None:  # type: ignore[no-untyped-def]
    for number in (1, 2):
        FILE.write_text(f"// attempt {number}\n")
        done = grader("reset", "first")
        assert done.code == 0 and f"first.cu.{number}.bak" in done.all
        assert FILE.read_text() == "// TODO: first\n"
        assert Path(f"{FILE}.{number}.bak").read_text() == f"// attempt {number}\n"
    assert "already the skeleton" in grader("reset", "first").out


def test_reset_after_the_learner_committed(grader, course, git) -> None:  # type: ignore[no-untyped-def]
    git("config", "user.email", "learner@example.org")
    FILE.write_text("// my work\n")
    git("commit", "--quiet", "-am", "Mine", email="learner@example.org")
    assert grader("reset", "first").code == 0
    assert FILE.read_text() == "// TODO: first\n"


def test_reset_of_a_deleted_file(grader, course, git) -> None:  # type: ignore[no-untyped-def]
    FILE.unlink()
    assert grader("reset", "first").code == 0
    assert FILE.read_text() == "// TODO: first\n" and not list(FILE.parent.glob("*.bak"))


def test_reset_without_git(grader, course, judge) -> None:  # type: ignore[no-untyped-def]
    FILE.with_name("second.cu").write_text("// begun before the grader ever ran\n")
    done = grader("reset", "second")
    assert done.code == 2 and "Your kernel file was not changed" in done.err
    assert FILE.with_name("second.cu").read_text() == "// begun before the grader ever ran\n"
    grader("check", "first")
    FILE.write_text("// my work\n")
    assert grader("reset", "first").code == 0
    assert FILE.read_text() == "// TODO: first\n"


def test_reset_forgets_the_progress(grader, course, git, judge) -> None:  # type: ignore[no-untyped-def]
    FILE.write_text("// solved\n")
    assert grader("check", "first").code == 0
    grader("reset", "first")
    assert not progress(course).of(FIRST).passed


# --- doctor ---


def test_doctor(grader) -> None:  # type: ignore[no-untyped-def]
    done = grader("doctor")
    assert done.code == 0
    for name in (
        "grader",
        "torch",
        "platform",
        "C++ compiler",
        "nvcc",
        "GPU",
        "jail",
        "browser",
        "build cache",
        "course",
    ):
        assert name in done.out
    assert max(map(len, done.out.splitlines())) <= 80


def test_doctor_as_json(grader) -> None:  # type: ignore[no-untyped-def]
    done = grader("doctor", "--json")
    assert done.code == 0, done.all
    data = json.loads(done.out)
    assert data["ready"] and {item["name"] for item in data["examined"]} >= {"C++ compiler", "GPU"}


@pytest.mark.parametrize(
    ("version_file", "build"),
    [
        ("from typing import Optional\ncuda: Optional[str] = None\nhip: Optional[str] = None\n", "CPUs"),
        ("__version__ = '2.13.0+cu130'\ncuda: Optional[str] = '13.0'\nhip: Optional[str] = None\n", "CUDA 13.0"),
        ("cuda = None\nhip = '7.1.52802'\n", "ROCm 7.1.52802"),
        ("something = 'else'\n", ""),
    ],
)
def test_doctor_names_the_build_of_torch(monkeypatch, tmp_path, version_file: str, build: str) -> None:  # type: ignore[no-untyped-def]
    package = tmp_path / "torch-2.13.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 2.13.0\n")
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "version.py").write_text(version_file)
    monkeypatch.syspath_prepend(tmp_path)
    assert doctor.torch_build() == build
    assert doctor.torch_package().found == (f"2.13.0, built for {build}" if build else "2.13.0")


@pytest.mark.parametrize(("build", "status"), [("CPUs", doctor.OPTIONAL), ("CUDA 13.0", doctor.GOOD)])
def test_doctor_and_a_gpu(monkeypatch, tmp_path, build: str, status: str) -> None:  # type: ignore[no-untyped-def]
    tool = tmp_path / "nvidia-smi"
    tool.write_text("#!/bin/sh\necho 'NVIDIA H200, 580.1, 143771 MiB'\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setattr(doctor, "torch_build", lambda: build)
    found = doctor.gpu()
    assert found.status == status and found.found == "NVIDIA H200, 580.1, 143771 MiB"
    assert ("make TORCH=pip" in found.advice) == (build == "CPUs")


def test_doctor_without_a_gpu_accepts_a_cuda_build_of_torch(monkeypatch, tmp_path) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(doctor, "torch_build", lambda: "CUDA 13.0")
    assert doctor.torch_package().status == doctor.GOOD and not doctor.torch_package().advice
    assert doctor.gpu().advice == "Everything except timing works without one."


def test_doctor_measures_a_cache_that_changes_meanwhile(monkeypatch, tmp_path) -> None:  # type: ignore[no-untyped-def]
    """Measuring the cache's size does not fail if other runs add and remove entries meanwhile."""
    (tmp_path / "kept").write_bytes(bytes(2048))
    monkeypatch.setenv("GRADER_CACHE", str(tmp_path))
    ended = threading.Event()

    def build_and_clear() -> None:
        while not ended.is_set():
            (tmp_path / "entry" / "parts").mkdir(parents=True)
            shutil.rmtree(tmp_path / "entry")

    other = threading.Thread(target=build_and_clear, daemon=True)
    other.start()
    try:
        for _ in range(300):
            assert "2 KiB" in doctor.build_cache().found
    finally:
        ended.set()
        other.join()


def test_doctor_without_a_compiler(grader, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setenv("GRADER_CXX", os.devnull)
    done = grader("doctor")
    assert done.code == 2 and "Not ready to grade: see C++ compiler" in done.all
