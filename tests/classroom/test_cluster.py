"""A class on a Ray cluster of three nodes, all in processes of this machine.

Grades stay the same when nodes, drivers and workers die.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from grader.classroom import attempts, cluster, jobs, worker
from grader.classroom.cluster import Cluster
from grader.classroom.instructor import read_instructions
from grader.classroom.jobs import Job
from grader.classroom.session import Session
from grader.classroom.submissions import find_submissions
from grader.classroom.worker import Graded
from grader.cli.app import run
from grader.course import Course
from grader.setup.errors import GraderError
from grader.verdict import Verdict
from tests.classroom import test_jobs
from tests.classroom.conftest import KERNEL
from tests.classroom.ray_nodes import NotStarted, Silence, local_nodes
from tests.classroom.test_grade import KILLED_WHILE_WRITING, TIMES, WRONG, files, grades, instructor, written
from tests.classroom.test_jobs import Recorded, grade_class, half_pass

assert instructor
pytestmark = pytest.mark.timeout(1500)  # Ray starts a dozen processes, which takes minutes where all cores are busy
STUDENTS = 20
IMPATIENT = """
import sys
from grader.classroom import cluster
from grader.cli.app import run

cluster.BEGIN = 10.0
sys.exit(run(sys.argv[1:]))
"""
"""A program that runs ``grader`` but waits at most ten seconds for the cluster."""


@pytest.fixture(scope="module")
def nodes():
    """Start a cluster of three nodes with one core each, one of them with a pretended GPU."""
    pytest.importorskip("ray", reason="Ray is not installed: run `make cluster`")
    with contextlib.ExitStack() as stack:
        try:
            nodes = stack.enter_context(local_nodes([1, 0, 0]))
        except NotStarted as error:
            pytest.skip(str(error))
        yield nodes


def half_pass_later(job: Job) -> Graded:
    """Replace the worker's function: every other student passes, after a short time."""
    time.sleep(0.3)
    return half_pass(job)


def test_a_node_that_hangs_and_resumes(nodes, instead, course: Course, hand_in, tmp_path: Path, monkeypatch) -> None:
    for number in range(12):
        folder = hand_in(f"student{number:02}", f"// {number}")
    here = Recorded(lambda job: half_pass(job).to_json())
    points = grade_class(course, folder, tmp_path / "here", lambda: here)
    instead(half_pass_later)
    monkeypatch.setattr(attempts, "LATE", 5.0)
    with contextlib.ExitStack() as stack:

        def fall_silent_then_wake(done: int, total: int) -> None:
            if done == 3:
                stack.callback(Silence(nodes.list_all_nodes()[-1]).end)
            if done == 11:  # the last job runs on the silent node and on another one
                stack.close()

        there = Session(
            course, find_submissions(folder), tmp_path / "there", executor=lambda: Cluster(nodes.address, course)
        )
        done: list[str] = []
        results = there.run(lambda student, result, kept: done.append(student.student), fall_silent_then_wake)
    there.finish(results)
    assert sorted(done) == sorted(points), "a student is missing or listed twice"
    assert len(set(points.values())) == 2
    assert (tmp_path / "there/grades.csv").read_bytes() == (tmp_path / "here/grades.csv").read_bytes()


def test_a_killed_driver_and_a_killed_node(nodes, course: Course, hand_in, instructor: Path, tmp_path: Path) -> None:
    for number in range(STUDENTS):
        folder = hand_in(f"student{number:02}", f"{WRONG if number % 4 == 3 else KERNEL}// {number}\n")
    arguments = ["grade", str(folder), "--instructor", str(instructor), "--out"]
    assert run([*arguments, str(tmp_path / "here"), "--workers", "2"]) == 0
    out = tmp_path / "out"
    # A run writes a plan, then a job and three files for each student. The driver is killed when it writes the
    # 24th file, the third file of a student.
    killed = subprocess.run(
        [sys.executable, "-c", KILLED_WHILE_WRITING, "24", *arguments, str(out), "--cluster", nodes.address],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        start_new_session=True,
    )
    assert killed.returncode == -signal.SIGKILL
    before = written(out)
    assert before

    count = itertools.count()

    def kill_a_node(done: int, total: int) -> None:
        assert total == STUDENTS
        if next(count) == 2:  # the first call is the start, the second the first job
            nodes.remove_node(nodes.list_all_nodes()[-1], allow_graceful=False)

    session = Session(
        course,
        find_submissions(folder),
        out,
        read_instructions(instructor, course),
        executor=lambda: Cluster(nodes.address, course),
    )
    done: list[tuple[str, bool]] = []
    results = session.run(lambda student, result, kept: done.append((student.student, kept)), kill_a_node)
    session.finish(results)
    assert len(nodes.list_all_nodes()) == 2
    assert before.items() <= written(out).items(), "a student was graded twice"
    assert sorted(name for name, _ in done) == sorted(grades(out)), "a student is missing"
    assert sum(kept for _, kept in done) == len([path for path in before if path.name == "results.json"])
    assert (out / "grades.csv").read_bytes() == (tmp_path / "here/grades.csv").read_bytes()
    there = {name: text for name, text in files(out).items() if "seed.json" not in name}
    # The run on this machine also wrote pages, so it may have more files than the run on the cluster.
    assert there.items() <= files(tmp_path / "here").items()
    assert sum(name.endswith("results.json") for name in there) == STUDENTS
    jobs_here, jobs_there = (
        {path.name: comparable(path) for path in (folder / ".jobs").glob("*.json") if path.name != "plan.json"}
        for folder in (tmp_path / "here", out)
    )
    assert jobs_here == jobs_there and len(jobs_here) == STUDENTS


def comparable(job: Path) -> str:
    """Return a job's result without its times."""
    return TIMES.sub("", json.dumps(json.loads(job.read_text()), indent=1))


def end_for_bob(job: Job) -> Graded:
    """Replace the worker's function: bob's job kills the process every time."""
    if b"// bob" in job.content:
        os.kill(os.getpid(), signal.SIGKILL)
    return worker.grade(job)


def on_a_gpu(job: Job) -> Graded:
    """Replace the worker's function: return the times and the GPU of a job."""
    began = time.time()
    time.sleep(0.2)
    seen = os.environ.get("CUDA_VISIBLE_DEVICES", "none")
    verdict = Verdict(job.exercise, "", "", job.device, 0, versions={"gpu": seen, "from": str(began)})
    verdict.versions |= {"to": str(time.time())}
    return Graded([verdict])


@pytest.fixture
def instead(nodes, monkeypatch: pytest.MonkeyPatch):
    """Return a function that replaces the nodes' grading function by a function of this file."""
    from ray import cloudpickle

    modules = sys.modules[__name__], test_jobs
    for module in modules:
        cloudpickle.register_pickle_by_value(module)
    yield lambda function: monkeypatch.setattr(worker, "grade", function)
    for module in modules:
        cloudpickle.unregister_pickle_by_value(module)


def test_a_job_that_ends_its_worker(nodes, instead, course: Course, hand_in, tmp_path: Path, capsys) -> None:
    for student in ("ann", "bob"):
        folder = hand_in(student, f"{KERNEL}// {student}\n")
    instead(end_for_bob)
    out = tmp_path / "out"
    assert run(["grade", str(folder), "--out", str(out), "--cluster", nodes.address]) == 0, capsys.readouterr()
    assert grades(out) == {"ann": "10", "bob": "0"}
    assert "2 times" in (out / "errors.log").read_text()
    assert "the submission is not at fault" in (out / "bob/feedback.txt").read_text()


def test_a_whole_gpu_for_each_job_on_cuda(nodes, instead, course: Course) -> None:
    instead(on_a_gpu)
    cluster = Cluster(nodes.address, course)
    try:
        for number in range(3):
            step = jobs.plan(course.find("twice"), b"%d" % number, 7, [], course.root, "cuda")
            cluster.submit(step.steps[1])
        answers: list[Any] = []
        while cluster.busy:
            answers += [Graded.from_json(answer).verdicts[0].versions for _, answer in cluster.wait()]
    finally:
        cluster.close()
    assert [answer["gpu"] for answer in answers] == ["0"] * 3
    answers.sort(key=lambda answer: float(answer["from"]))
    assert all(float(one["to"]) <= float(two["from"]) for one, two in itertools.pairwise(answers)), (
        "two jobs shared the GPU"
    )


def test_an_error_of_a_node_stops_the_class(nodes, instead, course: Course, monkeypatch) -> None:
    """A node with another version of the grader could give other grades, so the run stops."""
    monkeypatch.setattr(jobs, "code_digest", lambda: "another")
    cluster = Cluster(nodes.address, course)
    try:
        cluster.submit(jobs.plan(course.find("twice"), b"", 7, [], course.root))
        with pytest.raises(GraderError, match="a different grader"):
            while cluster.busy:
                cluster.wait()
    finally:
        cluster.close()


def test_a_head_that_hangs_is_reported(nodes, course: Course, monkeypatch) -> None:
    monkeypatch.setattr("grader.classroom.cluster.SILENT", 10.0)
    cluster = Cluster(nodes.address, course)
    head = Silence(nodes.head_node)
    try:
        with pytest.raises(GraderError, match="connection to the cluster was lost: no answer for 10 s"):
            cluster.submit(jobs.plan(course.find("twice"), b"", 7, [], course.root))
            while cluster.busy:
                cluster.wait()
    finally:
        head.end()
        cluster.close()


def test_a_head_that_never_answers_is_reported(nodes, course: Course, hand_in, tmp_path: Path) -> None:
    """After the network is cut, Ray's address no longer answers. Ray alone would retry forever."""
    command = ["grade", str(hand_in("ann")), "--out", str(tmp_path / "out"), "--cluster", "auto"]
    head = Silence(nodes.head_node)
    try:
        done = subprocess.run(
            [sys.executable, "-c", IMPATIENT, *command],
            env=os.environ | {"RAY_ADDRESS": nodes.address},
            capture_output=True,
            text=True,
            timeout=600,
        )
    finally:
        head.end()
    assert done.returncode == 2, done.stdout + done.stderr
    assert "no Ray cluster answers at auto: no answer for 10 s" in done.stderr and "Traceback" not in done.stderr


def test_a_cluster_that_never_answers(course: Course, monkeypatch: pytest.MonkeyPatch) -> None:
    """At exit, the process does not wait for a call to Ray that never returns."""
    end, at_exit = threading.Event(), list[Any]()
    monkeypatch.setattr(cluster, "BEGIN", 0.1)
    monkeypatch.setattr(cluster, "_ray", lambda: SimpleNamespace(init=lambda **settings: end.wait()))
    monkeypatch.setattr(cluster, "atexit", SimpleNamespace(register=at_exit.append))
    try:
        with pytest.raises(GraderError, match=r"no Ray cluster answers at auto: no answer for 0\.1 s"):
            Cluster("auto", course)
    finally:
        end.set()
    assert at_exit == [cluster._exit_at_once]


@pytest.mark.parametrize(
    ("address", "says"), [("ray://127.0.0.1:10001", "ray start --address"), ("127.0.0.1:{free}", "Connection refused")]
)
def test_an_address_without_a_cluster(course: Course, hand_in, tmp_path: Path, capsys, address: str, says: str) -> None:
    """The error appears at once. Ray alone would retry for minutes."""
    with socket.socket() as bound:  # nothing listens on this port
        bound.bind(("127.0.0.1", 0))
        address = address.format(free=bound.getsockname()[1])
        assert run(["grade", str(hand_in("ann")), "--out", str(tmp_path / "out"), "--cluster", address]) == 2
    said = capsys.readouterr().err
    assert address in said and says in said


def test_without_ray(course: Course, hand_in, tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    assert run(["grade", str(hand_in("ann")), "--out", str(tmp_path / "out"), "--cluster", "auto"]) == 2
    assert "make cluster" in capsys.readouterr().err
