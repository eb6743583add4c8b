"""Jobs of a class: their keys, their order, results from a GPU, progress, and grading again on request."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from grader.classroom import jobs, on_gpu
from grader.classroom.executor import Died, Executor, Outcome
from grader.classroom.jobs import Job
from grader.classroom.result import StudentResult
from grader.classroom.session import Session
from grader.classroom.status import status
from grader.classroom.store import FOLDER, Plan, Store
from grader.classroom.submissions import find_submissions
from grader.classroom.worker import Graded
from grader.cli.app import run
from grader.course import Course
from grader.verdict import ERROR, FAILED, PASSED, SKIPPED, Stage, Verdict
from tests.classroom.conftest import KERNEL
from tests.classroom.test_grade import grades


def a_job(exercise: str = "day/a", text: bytes = b"", device: str = "cpu") -> Job:
    return Job(f"{exercise} {text!r}", exercise, text, 7, device=device)


class Recorded:
    """An executor that runs each job at once with ``judge``, and records the jobs."""

    name = "a test"

    def __init__(self, judge) -> None:
        self.judge, self.asked = judge, list[Job]()
        self.waiting: list[Job] = []

    @property
    def busy(self) -> bool:
        return bool(self.waiting)

    @property
    def room(self) -> bool:
        return not self.waiting

    def submit(self, job: Job) -> None:
        self.asked.append(job)
        self.waiting.append(job)

    def wait(self) -> list[tuple[Job, Outcome]]:
        done, self.waiting = self.waiting, []
        return [(job, self.judge(job)) for job in done]

    def close(self) -> None:
        pass


def verdict(job: Job, **stages: str) -> Verdict:
    ran = [Stage(name, status) for name, status in stages.items()]
    passed = all(stage.status in (PASSED, SKIPPED) for stage in ran)
    return Verdict(job.exercise, "", "", job.device, 0, passed=passed, score=10.0 * passed, stages=ran)


def passes(job: Job) -> bytes:
    if job.device == "cuda":
        return Graded([verdict(job, builds=PASSED, correct=PASSED, safe=SKIPPED, fast=PASSED)]).to_json()
    return Graded([verdict(job, builds=PASSED, correct=PASSED, safe=PASSED, fast=SKIPPED)]).to_json()


def half_pass(job: Job) -> Graded:
    """Replace the worker's function: every other student passes."""
    return Graded([verdict(job, builds=PASSED, correct=PASSED if job.content[-1] % 2 == 0 else FAILED)])


def grade_class(course: Course, folder: Path, out: Path, executor: Callable[[], Executor]) -> dict[str, str]:
    """Grade a class and write its tables; return the points by student."""
    session = Session(course, find_submissions(folder), out, executor=executor)
    session.finish(session.run(lambda student, result, before: None))
    return grades(out)


def grade(course: Course, folder: Path, out: Path, judge=passes, **options) -> tuple[Recorded, list[StudentResult]]:
    executor = Recorded(judge)
    session = Session(course, find_submissions(folder), out, executor=lambda: executor, **options)
    return executor, session.run(lambda student, result, before: None)


def test_a_key_changes_with_everything_that_affects_a_grade(course: Course) -> None:
    entry = course.find("twice")

    def key(entry=entry, content=b"x", seed=7, cases=()) -> str:
        return jobs.plan(entry, content, seed, list(cases), course.root).key

    first = key()
    assert key() == first
    others = [key(content=b"y"), key(seed=8), key(cases=[{"name": "hidden"}])]
    others += [key(dataclasses.replace(entry, points=11)), key(dataclasses.replace(entry, variable="thrice"))]
    others.append(jobs.plan(entry, b"x", 7, [], course.root, "cuda").steps[1].key)
    entry.tasks.write_text(entry.tasks.read_text() + "\n# changed\n")
    others.append(key())
    assert len({first, *others}) == 8


def test_identical_submissions_share_a_job(course: Course, hand_in, tmp_path: Path) -> None:
    for student in ("ann", "bob"):
        folder = hand_in(student)
    hand_in("eve", KERNEL + "// eve\n")
    executor, results = grade(course, folder, tmp_path / "out")
    assert len(executor.asked) == 2 and [result.score for result in results] == [10, 10, 10]
    assert [result.verdicts[0].file for result in results] == ["twice.cu"] * 3


def test_jobs_that_may_be_endless_start_first(course: Course, hand_in, tmp_path: Path) -> None:
    texts = {"ann": KERNEL, "bob": KERNEL + "// bob\n", "eve": KERNEL + "// while (true)\n", "zoe": KERNEL + "// zoe\n"}
    for student, text in texts.items():
        folder = hand_in(student, text)
    executor, _ = grade(course, folder, tmp_path / "out")
    assert [job.content.decode() for job in executor.asked] == [texts[name] for name in ("eve", "ann", "bob", "zoe")]


def test_a_lost_machine_does_not_fail_the_job(course: Course, hand_in, tmp_path: Path) -> None:
    folder = hand_in("ann")
    fates = [Died("gone", machine=True)] * 5 + [Died("killed")]
    executor, results = grade(course, folder, tmp_path / "out", lambda job: fates.pop() if fates else passes(job))
    assert len(executor.asked) == 7 and results[0].score == 10


def test_a_gpu_judges_submissions_that_passed_on_the_simulator(course: Course, hand_in, tmp_path: Path) -> None:
    def judge(job: Job) -> bytes:
        if b"wrong" in job.content:
            return Graded([verdict(job, builds=PASSED, correct=FAILED)]).to_json()
        if b"here alone" in job.content and job.device == "cuda":
            return Graded([verdict(job, builds=PASSED, correct=FAILED, fast=SKIPPED)]).to_json()
        return passes(job)

    for student, text in (("ann", "right"), ("bob", "wrong"), ("eve", "here alone")):
        folder = hand_in(student, text)
    out = tmp_path / "out"
    executor, results = grade(course, folder, out, judge, device="cuda")
    asked = [(job.content.decode(), job.device) for job in executor.asked]
    assert sorted(asked) == [
        ("here alone", "cpu"),
        ("here alone", "cuda"),
        ("right", "cpu"),
        ("right", "cuda"),
        ("wrong", "cpu"),
    ]
    stages = [{stage.name: stage.status for stage in result.verdicts[0].stages} for result in results]
    assert [result.score for result in results] == [10, 0, 0]
    assert stages[0] == {"builds": PASSED, "correct": PASSED, "safe": PASSED, "fast": PASSED}
    assert stages[2] == {"builds": PASSED, "correct": FAILED, "safe": PASSED, "fast": SKIPPED}
    assert status(out).done == status(out).jobs == 6
    again, _ = grade(course, folder, out, judge, device="cuda")
    assert not again.asked


def test_a_gpu_that_failed_is_asked_again(course: Course, hand_in, tmp_path: Path) -> None:
    def broken(job: Job) -> bytes:
        return passes(job) if job.device == "cpu" else Graded([verdict(job, builds=ERROR)]).to_json()

    folder = hand_in("ann")
    _, (result,) = grade(course, folder, tmp_path / "out", broken, device="cuda")
    assert result.score == 0 and result.verdicts[0].stages[0].status == ERROR
    executor, (result,) = grade(course, folder, tmp_path / "out", device="cuda")
    assert [job.device for job in executor.asked] == ["cuda"] and result.score == 10
    merged = on_gpu.merged([verdict(a_job(), builds=FAILED)])
    assert not merged.passed


def test_one_student_or_one_exercise_is_graded_again(course: Course, hand_in, tmp_path: Path, capsys) -> None:
    for student in ("ann", "bob", "Zoë"):
        folder = hand_in(student, f"// {student}")
    out = tmp_path / "out"
    grade(course, folder, out)
    assert not grade(course, folder, out)[0].asked
    again, _ = grade(course, folder, out, again_students=("bob",))
    assert [job.content for job in again.asked] == [b"// bob"]
    again, _ = grade(course, folder, out, again_exercises=("day01_start/twice",))
    assert len(again.asked) == 3
    hand_in("=eve")
    grade(course, folder, out)
    again, _ = grade(course, folder, out, again_students=("'=eve",))  # as grades.csv shows the name
    assert len(again.asked) == 1
    hand_in("leeann_12_345_work")
    for wrong, meant in (("bop", "bob"), ("Zoe", "Zoë"), ("leeann", "leeann_12_345_work")):
        assert run(["grade", str(folder), "--out", str(out), "--regrade-student", wrong]) == 2
        assert f"Did you mean '{meant}'?" in capsys.readouterr().err
    assert run(["grade", str(folder), "--out", str(out), "--regrade-student", "bob\u202e"]) == 2
    assert r"there is no student 'bob\u202e'" in capsys.readouterr().err, "control characters are escaped"


def test_killed_while_it_grades_again(course: Course, hand_in, tmp_path: Path) -> None:
    folder, out = hand_in("ann"), tmp_path / "out"
    grade(course, folder, out)

    def killed(job: Job) -> bytes:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        grade(course, folder, out, killed, again_students=("ann",))
    assert len(grade(course, folder, out)[0].asked) == 1


def test_progress(tmp_path: Path, capsys) -> None:
    store = Store(tmp_path)
    store.make()
    store.write_plan(Plan("8 processes", 1000.0, 3, {"a": "day/one", "b": "day/two", "c": "day/two", "d": "day/two"}))
    for key, when in (("a", 1010.0), ("b", 1050.0)):
        store.write(key, b"{}")
        os.utime(tmp_path / FOLDER / f"{key}.json", (when, when))
    found = status(tmp_path, now=1100.0)
    assert (found.done, found.jobs, found.plan.students, found.running) == (2, 4, 3, False)
    assert found.by_exercise == {"day/one": (1, 1), "day/two": (1, 3)}
    assert found.per_second == pytest.approx(0.02) and found.seconds_left == pytest.approx(100)
    assert status(tmp_path, now=1340.0).per_second == pytest.approx(1 / 300)
    assert run(["grade", "--status", str(tmp_path)]) == 0
    assert "2 of 4 kernels graded, stopped" in capsys.readouterr().out
    with store.alone():
        assert run(["grade", "--status", str(tmp_path)]) == 0
        assert "running on 8 processes" in capsys.readouterr().out
    assert run(["grade", "--status", str(tmp_path / "none")]) == 2
    assert "no class was graded" in capsys.readouterr().err


def test_two_runs_do_not_write_to_one_folder(course: Course, hand_in, tmp_path: Path, capsys) -> None:
    folder, out = hand_in("ann"), tmp_path / "out"
    store = Store(out)
    store.make()
    with store.alone():
        assert run(["grade", str(folder), "--out", str(out)]) == 2
    assert "another `grader grade` writes" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [(["FOLDER"], "--out DIR is missing"), (["--out", "x"], "FOLDER is missing")],
)
def test_missing_results_are_reported(arguments: list[str], says: str, capsys) -> None:
    assert run(["grade", *arguments]) == 2
    assert says in capsys.readouterr().err


def test_a_damaged_job_is_run_again(course: Course, hand_in, tmp_path: Path) -> None:
    folder, out = hand_in("ann"), tmp_path / "out"
    grade(course, folder, out)
    (out / "ann/results.json").unlink()
    for path in (out / FOLDER).glob("*.json"):
        if path.name != "plan.json":
            path.write_text(json.dumps({"seconds": 1}))
    executor, results = grade(course, folder, out)
    assert len(executor.asked) == 1 and results[0].score == 10
