"""Assignment of jobs to nodes and retries, with a fake clock and a simulated cluster."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from grader.classroom import cluster, course_package
from grader.classroom.attempts import JOBS_FOR_EACH_CORE, LATE, LEAST_JOBS, Attempts
from grader.classroom.cluster import LOOK, Cluster
from grader.classroom.executor import Died
from grader.classroom.jobs import Job
from grader.classroom.session import Session
from grader.classroom.submissions import find_submissions
from grader.course import Course
from grader.setup.errors import GraderError
from tests.classroom.ray_stand_in import Remote, StandIn
from tests.classroom.test_jobs import a_job, passes

GONE = Died("gone", machine=True)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def two(clock: Clock) -> Attempts:
    """Return two nodes: ``big`` with four cores and a GPU, ``small`` with one core."""
    return Attempts(clock, {"big": {"CPU": 4.0, "GPU": 1.0}, "small": {"CPU": 1.0}, "empty": {"memory": 1.0}})


def hand_out(to: Attempts, text: str, device: str = "cpu") -> tuple[str, Job]:
    job = a_job(text=text.encode(), device=device)
    node = to.node_for(job)
    to.add(f"{text} on {node}", job, node)
    return node, job


def test_each_node_has_jobs_for_its_cores(two: Attempts) -> None:
    nodes = Counter[str]()
    while two.room:
        nodes[hand_out(two, str(nodes.total()))[0]] += 1
    assert nodes == {"big": 4 * JOBS_FOR_EACH_CORE, "small": JOBS_FOR_EACH_CORE}
    assert two.end("0 on big", lambda: b"") and two.room
    assert {hand_out(two, f"gpu {number}", "cuda")[0] for number in range(3)} == {"big"}


def test_a_cluster_without_nodes_yet_is_left_to_ray() -> None:
    none = Attempts()
    for number in range(LEAST_JOBS):
        assert none.room and hand_out(none, str(number))[0] == ""
    assert not none.room


def test_a_late_job_is_retried_and_the_first_answer_counts(two: Attempts, clock: Clock) -> None:
    (first, job), (_, other) = hand_out(two, "a"), hand_out(two, "b", "cuda")
    clock.now = LATE - 1
    assert not list(two.late())
    clock.now = LATE
    second = "small" if first == "big" else "big"
    assert list(two.late()) == [(job, second)], "only jobs that another node can run are retried"
    two.add("again", job, second)
    assert not list(two.late()), "a job that has just started is not late"
    assert two.end("again", lambda: b"first") == (job, b"first") and two.busy
    assert two.end(f"a on {first}", lambda: pytest.fail("the result of a second attempt was read")) is None
    assert two.end("b on big", lambda: b"b") == (other, b"b") and not two.busy


def test_a_busy_node_gets_no_second_attempt(two: Attempts, clock: Clock) -> None:
    job = a_job(text=b"late")
    two.add("late", job, "big")
    clock.now = LATE
    for number in range(JOBS_FOR_EACH_CORE):
        two.add(str(number), a_job(text=b"%d" % number), "small")
    assert not list(two.late())
    two.end("0", lambda: b"")
    assert list(two.late()) == [(job, "small")]


def test_new_jobs_go_where_nothing_is_late(two: Attempts, clock: Clock) -> None:
    two.add("late", a_job(text=b"late"), "big")
    clock.now = LATE
    assert [hand_out(two, str(number))[0] for number in range(3)] == ["small"] * JOBS_FOR_EACH_CORE + ["big"]


def test_a_lost_job_is_reported_when_no_attempt_is_left(two: Attempts) -> None:
    job = a_job()
    two.add("here", job, "big")
    two.add("there", job, "small")
    assert two.end("here", lambda: GONE) is None and two.busy
    assert two.end("there", lambda: GONE) == (job, GONE) and not two.busy
    assert two.node_for(job) == "", "no node is left, although Ray still lists both"


class Nodes(StandIn):
    """Three nodes with one core each, of which ``b`` falls silent. The clock advances when no node has a result."""

    def __init__(self, folder: Path, clock: Clock, falls_silent: int, wakes: float) -> None:
        super().__init__(folder)
        self.clock, self.falls_silent, self.wakes = clock, falls_silent, wakes
        self.answered: list[str] = []

    def nodes(self) -> list[dict[str, Any]]:
        return [
            {"NodeID": name, "Alive": name != "dead", "Resources": {"CPU": 1.0}} for name in ("a", "b", "c", "dead")
        ]

    def wait(
        self, references: Sequence[Remote], num_returns: int, timeout: float
    ) -> tuple[Sequence[Remote], Sequence[Remote]]:
        quiet = self.falls_silent <= len(self.answered) and self.clock.now < self.wakes
        ready = [reference for reference in references if not (quiet and reference.strategy == ("b", False))]
        if not ready:
            self.clock.now += timeout
        return ready[:num_returns], []

    def get(self, reference: Remote) -> bytes:
        (job, *_) = reference.arguments
        self.answered.append(job.key)
        return passes(job)


@pytest.fixture
def no_ray(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> Any:
    """Replace Ray's nodes with simulated ones."""
    monkeypatch.setattr(course_package, "pack", lambda course, folder: None)
    monkeypatch.setattr(cluster, "Attempts", lambda: Attempts(clock))
    return lambda nodes: monkeypatch.setattr(cluster, "_ray", lambda: nodes)


@pytest.mark.parametrize("wakes", [1e9, LATE], ids=["silent forever", "silent until other nodes start its jobs"])
def test_a_node_falls_silent(course: Course, hand_in, tmp_path: Path, no_ray, clock: Clock, wakes: float) -> None:
    for number in range(12):
        folder = hand_in(f"student{number:02}", f"// {number}")
    nodes = Nodes(tmp_path / "node", clock, falls_silent=3, wakes=wakes)
    no_ray(nodes)
    done: list[str] = []
    session = Session(course, find_submissions(folder), tmp_path / "out", executor=lambda: Cluster("none", course))
    results = session.run(lambda student, result, before: done.append(student.student))
    assert sorted(done) == [f"student{number:02}" for number in range(12)], "a student is missing or listed twice"
    assert [result.score for result in results] == [10] * 12
    assert len(set(nodes.answered)) == len(nodes.answered) == 12
    tries = Counter(task.arguments[0].key for task in nodes.tasks)
    assert sorted(tries.values())[-JOBS_FOR_EACH_CORE - 1 :] == [1] + [2] * JOBS_FOR_EACH_CORE, (
        "only jobs of the silent node are retried"
    )
    assert clock.now <= LATE + LOOK


def test_a_silent_head_is_reported(course: Course, no_ray, tmp_path: Path, monkeypatch) -> None:
    nodes, woken = StandIn(tmp_path / "node"), threading.Event()
    no_ray(nodes)
    monkeypatch.setattr(nodes, "nodes", woken.wait)
    monkeypatch.setattr(nodes, "shutdown", woken.wait)
    monkeypatch.setattr(cluster, "SILENT", 0.1)
    executor = Cluster("none", course)
    with pytest.raises(
        GraderError, match=r"connection to the cluster was lost: no answer for 0.1 s[\s\S]*again to continue"
    ):
        assert executor.room
    at_exit: list[Any] = []
    monkeypatch.setattr("atexit.register", at_exit.append)
    executor.close()
    assert at_exit == [cluster._exit_at_once]
    woken.set()
