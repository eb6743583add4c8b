"""Assignment of jobs to nodes and retries, with a fake clock and a simulated cluster."""

from __future__ import annotations

import threading
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from grader.classroom import cluster, course_package
from grader.classroom.attempts import JOBS_FOR_EACH_CORE, LATE, LEAST_JOBS, Attempts
from grader.classroom.cluster import LOOK, Cluster
from grader.classroom.executor import Died, Outcome
from grader.classroom.jobs import Job
from grader.classroom.session import Session
from grader.classroom.submissions import find_submissions
from grader.course import Course
from grader.setup.errors import GraderError
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


class Nodes:
    """A stand-in for Ray: three nodes with one core each.

    Nodes in ``silent`` do not answer. The fake clock advances when no node has a result.
    """

    exceptions = SimpleNamespace()
    util = SimpleNamespace(
        scheduling_strategies=SimpleNamespace(NodeAffinitySchedulingStrategy=lambda node, soft: node)
    )

    def __init__(self, clock: Clock, falls_silent: int, wakes: float) -> None:
        self.clock, self.falls_silent, self.wakes = clock, falls_silent, wakes
        self.asked: dict[int, tuple[str, Job]] = {}
        self.answered: list[int] = []

    def init(self, **options: Any) -> None: ...
    def shutdown(self) -> None: ...
    def cancel(self, reference: int, force: bool) -> None: ...

    def nodes(self) -> list[dict[str, Any]]:
        return [
            {"NodeID": name, "Alive": name != "dead", "Resources": {"CPU": 1.0}} for name in ("a", "b", "c", "dead")
        ]

    def remote(self, **options: Any) -> Any:
        return lambda function: SimpleNamespace(options=self.on)

    def on(self, scheduling_strategy: str) -> Any:
        def remote(job: Job, *given: Any) -> int:
            self.asked[len(self.asked)] = scheduling_strategy, job
            return len(self.asked) - 1

        return SimpleNamespace(remote=remote)

    def wait(self, references: list[int], num_returns: int, timeout: float) -> tuple[list[int], list[int]]:
        quiet = self.falls_silent <= len(self.answered) and self.clock.now < self.wakes
        ready = [reference for reference in references if not (quiet and self.asked[reference][0] == "b")][:num_returns]
        if not ready:
            self.clock.now += timeout
        return ready, [reference for reference in references if reference not in ready]

    def get(self, reference: int) -> Outcome:
        self.answered.append(reference)
        return passes(self.asked[reference][1])


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
    nodes = Nodes(clock, falls_silent=3, wakes=wakes)
    no_ray(nodes)
    done: list[str] = []
    session = Session(course, find_submissions(folder), tmp_path / "out", executor=lambda: Cluster("none", course))
    results = session.run(lambda student, result, before: done.append(student.student))
    assert sorted(done) == [f"student{number:02}" for number in range(12)], "a student is missing or listed twice"
    assert [result.score for result in results] == [10] * 12
    assert len({nodes.asked[reference][1].key for reference in nodes.answered}) == len(nodes.answered) == 12
    tries = Counter(job.key for _, job in nodes.asked.values())
    assert sorted(tries.values())[-JOBS_FOR_EACH_CORE - 1 :] == [1] + [2] * JOBS_FOR_EACH_CORE, (
        "only jobs of the silent node are retried"
    )
    assert clock.now <= LATE + LOOK


def test_a_silent_head_is_reported(course: Course, no_ray, clock: Clock, monkeypatch) -> None:
    nodes, woken = Nodes(clock, falls_silent=0, wakes=0.0), threading.Event()
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
