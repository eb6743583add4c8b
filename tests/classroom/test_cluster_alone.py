"""The calls of cluster.py to Ray and its handling of results, with a stand-in for Ray.

tests/classroom/test_cluster.py uses a real cluster.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from grader.classroom import cluster, jobs, worker
from grader.classroom.cluster import Cluster
from grader.classroom.jobs import Job
from grader.classroom.worker import Graded
from grader.course import Course
from grader.execution.jail.running import NO_JAIL
from grader.execution.runner import tiers
from grader.setup.errors import GraderError
from tests.classroom.ray_stand_in import ERRORS, StandIn, task_error
from tests.classroom.test_jobs import Recorded, grade_class, half_pass

STUDENTS = 6
Begin = Callable[..., StandIn]


def grade_there(job: Job) -> Graded:
    """Replace the worker's function: check the course's files, then let every other student pass."""
    assert Course(job.root).find(job.exercise).load().name == job.exercise, "the course was not copied to the node"
    return half_pass(job)


@pytest.fixture
def begin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Begin:
    """Replace Ray by a stand-in that runs in this process."""
    for patience in ("BEGIN", "SILENT"):  # a busy machine must not cause a timeout
        monkeypatch.setattr(cluster, patience, 3600.0)
    monkeypatch.setattr(worker, "save_time", lambda: None)
    monkeypatch.setattr(worker, "grade", grade_there)

    def put(*ends: Exception | None) -> StandIn:
        ray = StandIn(tmp_path / "node", ends)
        monkeypatch.setattr(cluster, "_ray", lambda: ray)
        return ray

    return put


@pytest.fixture
def a_class(hand_in) -> Path:
    """Return a class's folder with submissions."""
    return [hand_in(f"student{number}", f"// {number}") for number in range(STUDENTS)][-1]


def test_a_class(begin: Begin, course: Course, a_class: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("GRADER_CHECK_NVCC", "off")
    (course.root / "solutions/day01_start").mkdir(parents=True, exist_ok=True)
    (course.root / "solutions/day01_start/twice.cu").write_text("// nobody's business\n")
    ray = begin()
    there = grade_class(course, a_class, tmp_path / "there", lambda: Cluster("auto", course))
    here = Recorded(lambda job: half_pass(job).to_json())
    assert there == grade_class(course, a_class, tmp_path / "here", lambda: here)
    assert (tmp_path / "there/grades.csv").read_bytes() == (tmp_path / "here/grades.csv").read_bytes()
    assert len(ray.tasks) == STUDENTS and set(there.values()) == {"0", "10"}
    assert {task.strategy for task in ray.tasks} == {("node", False)}
    assert all(task.wanted["num_cpus"] == 1 and task.wanted["max_retries"] == 0 for task in ray.tasks)
    assert ray.settings["runtime_env"]["env_vars"]["GRADER_CHECK_NVCC"] == "off"
    assert sorted(path.name for path in ray.folder.iterdir()) == ["exercises", "grader", "lessons"]
    assert ray.over and not ray.cancelled


@pytest.mark.parametrize("error", ["NodeDiedError", "ObjectLostError", "TaskUnschedulableError"])
def test_a_lost_node_changes_no_grade(begin: Begin, course: Course, a_class: Path, tmp_path: Path, error: str) -> None:
    ray = begin(None, *[ERRORS[error]("gone")] * 3)
    found = grade_class(course, a_class, tmp_path / "out", lambda: Cluster("auto", course))
    assert sorted(found.values()) == ["0", "0", "0", "10", "10", "10"]
    assert len(ray.tasks) == STUDENTS + 3 and not (tmp_path / "out/errors.log").exists()


def test_a_job_that_ends_its_process(begin: Begin, course: Course, a_class: Path, tmp_path: Path) -> None:
    crashed = ERRORS["WorkerCrashedError"]("killed")
    ray = begin(crashed)
    assert "10" in grade_class(course, a_class, tmp_path / "once", lambda: Cluster("auto", course)).values()
    assert len(ray.tasks) == STUDENTS + 1 and not (tmp_path / "once/errors.log").exists()
    ray = begin(*[crashed] * 2 * STUDENTS)
    ray.folder = tmp_path / "another"
    assert set(grade_class(course, a_class, tmp_path / "each", lambda: Cluster("auto", course)).values()) == {"0"}
    assert len(ray.tasks) == 2 * STUDENTS and (tmp_path / "each/errors.log").read_text().count("2 times") == STUDENTS


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (task_error(GraderError("no compiler")), "^no compiler$"),
        (task_error(ImportError("no torch")), "a node of the cluster cannot grade: ImportError"),
        (ERRORS["RuntimeEnvSetupError"]("disk full"), "could not be set up: disk full"),
        (ConnectionError("cable\n  pulled"), "connection to the cluster was lost: cable pulled"),
    ],
)
def test_errors_that_stop_a_class(
    begin: Begin, course: Course, a_class: Path, tmp_path: Path, error, says: str
) -> None:
    ray = begin(None, error)
    with pytest.raises(GraderError, match=says):
        grade_class(course, a_class, tmp_path / "out", lambda: Cluster("auto", course))
    assert ray.over


def test_a_node_without_a_jail(begin: Begin, course: Course, a_class: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(tiers, "in_force", lambda arch=None: tiers.InForce(NO_JAIL))
    begin()
    with pytest.raises(GraderError, match="a node of the cluster has no sandbox"):
        grade_class(course, a_class, tmp_path / "out", lambda: Cluster("auto", course))
    begin().folder = tmp_path / "another"
    assert (
        "10" in grade_class(course, a_class, tmp_path / "unsafe", lambda: Cluster("auto", course, unsafe=True)).values()
    )


def test_another_grader_on_a_node(begin: Begin, course: Course, a_class: Path, tmp_path: Path, monkeypatch) -> None:
    """A node with another version of the grader could give other grades, so the run stops."""
    ray = begin()

    def other_there() -> Cluster:
        executor = Cluster("auto", course)
        monkeypatch.setattr(jobs, "code_digest", lambda: "another")
        return executor

    with pytest.raises(GraderError, match="a different grader"):
        grade_class(course, a_class, tmp_path / "out", other_there)
    assert ray.over


def test_a_job_on_cuda_has_a_whole_gpu_and_running_jobs_are_cancelled(begin: Begin, course: Course) -> None:
    ray = begin()
    executor = Cluster("auto", course)
    steps = jobs.plan(course.find("twice"), b"0", 7, [], course.root, "cuda").steps
    for step in steps:
        assert executor.room
        executor.submit(step)
    assert [task.wanted.get("num_gpus") for task in ray.tasks] == [None, 1]
    executor.close()
    assert ray.cancelled == ray.tasks and ray.over and not executor.busy
