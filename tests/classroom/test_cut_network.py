"""A class on a Ray cluster of two machines, while the network of a node or of the driver is cut and restored."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from grader.classroom.jobs import Job
from grader.classroom.worker import Graded
from grader.course import Course
from tests.classroom import test_jobs
from tests.classroom.cluster_record import finished
from tests.classroom.namespaces import Machines, NamespacesUnavailable
from tests.classroom.ray_nodes import PATIENT, SETTINGS
from tests.classroom.test_grade import grades, written
from tests.classroom.test_jobs import Recorded, half_pass

pytestmark = pytest.mark.timeout(1500)  # Ray starts a dozen processes, which takes minutes where all cores are busy
STUDENTS = 12
HEAD, FAR = 1, 2
PORT = 6379
PATIENCE = 300.0
"""Timeout in seconds for steps that normally take a few seconds."""
GRADE = """
import sys
from functools import partial
from pathlib import Path
from ray import cloudpickle
from grader.classroom import attempts, cluster, worker
from grader.cli.app import run
from tests.classroom import test_cut_network as here

for module in (here, here.test_jobs):
    cloudpickle.register_pickle_by_value(module)
worker.grade = partial(getattr(here, sys.argv[1]), Path(sys.argv[2]))
attempts.LATE, cluster.SILENT = 5.0, 10.0
sys.exit(run(sys.argv[3:]))
"""
"""A program that runs ``grader grade`` with a grading function of this file."""


def until(true: Callable[[], bool]) -> None:
    """Wait until a condition is true."""
    began = time.monotonic()
    while not true():
        if time.monotonic() > began + PATIENCE:
            raise TimeoutError
        time.sleep(0.05)


def waits_on_the_far_machine(gates: Path, job: Job) -> Graded:
    """Block each job on the far machine, and its retry on the head, until the network is restored.

    After a few jobs, the head waits until the far machine has started a job.

    """
    import ray

    begun, mended, answered = gates / job.key, gates / "mended", gates / "answered"
    first = not begun.exists()
    begun.touch()
    if ray.util.get_node_ip_address() == Machines.address(FAR):
        (gates / "far").touch()
        until(mended.exists)
        answered.touch()
    elif not first:
        until(answered.exists)
    elif len(list(gates.iterdir())) > 4:
        until((gates / "far").exists)
    return half_pass(job)


def waits_after_a_few(gates: Path, job: Job) -> Graded:
    """Block all jobs except the first few until the network is restored."""
    (gates / job.key).touch()
    if len(list(gates.iterdir())) > 4:
        until((gates / "mended").exists)
    return half_pass(job)


@pytest.fixture(scope="module")
def machines():
    """Start a Ray cluster of two simulated machines: a head with two cores, and a machine with one core."""
    pytest.importorskip("ray", reason="Ray is not installed: run `make cluster`")
    with contextlib.ExitStack() as stack:
        try:
            machines = stack.enter_context(Machines(2))
        except NamespacesUnavailable as error:
            pytest.skip(str(error))
        start = [sys.executable, "-m", "ray.scripts.scripts", "start", f"--object-store-memory={80 << 20}"]
        first = [f"--port={PORT}", "--include-dashboard=false", f"--system-config={json.dumps(PATIENT)}"]
        for machine, more in (
            (HEAD, ["--head", "--num-cpus=2", *first]),
            (FAR, [f"--address={Machines.address(HEAD)}:{PORT}", "--num-cpus=1"]),
        ):
            address = f"--node-ip-address={Machines.address(machine)}"
            said, log = subprocess.PIPE, subprocess.STDOUT
            ray = machines.start(machine, [*start, address, *more], env=os.environ | SETTINGS, stdout=said, stderr=log)
            out, _ = ray.communicate()
            if ray.returncode:
                pytest.skip(f"Ray did not start: {out[-300:]}")
        yield machines


@pytest.fixture
def a_class(course: Course, hand_in, tmp_path: Path) -> Path:
    """Return the submissions of a class. Its grades from this machine are already in the folder ``here``."""
    for number in range(STUDENTS):
        folder = hand_in(f"student{number:02}", f"// {number}")
    here = Recorded(lambda job: half_pass(job).to_json())
    test_jobs.grade_class(course, folder, tmp_path / "here", lambda: here)
    (tmp_path / "gates").mkdir()
    (tmp_path / "there").mkdir()
    seed = tmp_path / "here/seed.json"
    (tmp_path / "there/seed.json").write_text(seed.read_text())
    return folder


def grade(machines: Machines, machine: int, function: str, folder: Path) -> subprocess.Popen[str]:
    """Start grading on a machine."""
    base = folder.parent
    command = ["grade", str(folder), "--out", str(base / "there"), "--cluster", f"{Machines.address(HEAD)}:{PORT}"]
    python = [sys.executable, "-c", GRADE, function, str(base / "gates"), *command]
    return machines.start(machine, python, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def reaches_the_head(machines: Machines) -> bool:
    """Return whether the far machine reaches the head."""
    connect = f"import socket; socket.create_connection(({Machines.address(HEAD)!r}, {PORT}), 3)"
    return machines.start(FAR, [sys.executable, "-c", connect], stderr=subprocess.DEVNULL).wait() == 0


def test_a_node_whose_network_is_cut_and_comes_back(machines: Machines, a_class: Path, tmp_path: Path) -> None:
    there, gates = tmp_path / "there", tmp_path / "gates"
    driver = grade(machines, HEAD, "waits_on_the_far_machine", a_class)
    until(lambda: driver.poll() is not None or (finished(there) >= 3 and (gates / "far").exists()))
    assert driver.poll() is None, driver.communicate()[0]
    assert reaches_the_head(machines)
    machines.cable(FAR, plugged=False)
    try:
        assert not reaches_the_head(machines)
        # At the end, both machines try the last job.
        until(lambda: driver.poll() is not None or finished(there) == STUDENTS - 1)
    finally:
        machines.cable(FAR, plugged=True)
    before = written(there)
    (gates / "mended").touch()
    said, _ = driver.communicate()
    assert driver.returncode == 0, said
    assert before.items() <= written(there).items(), "a student was graded twice"
    points = [line.split(":")[0] for line in said.splitlines() if line.endswith(" points")]
    assert sorted(points) == sorted(grades(tmp_path / "here")), "a student is missing or listed twice"
    assert len(set(grades(there).values())) == 2
    assert (there / "grades.csv").read_bytes() == (tmp_path / "here/grades.csv").read_bytes()


def test_a_driver_whose_network_is_cut_continues_later(machines: Machines, a_class: Path, tmp_path: Path) -> None:
    there, gates = tmp_path / "there", tmp_path / "gates"
    driver = grade(machines, FAR, "waits_after_a_few", a_class)
    until(lambda: driver.poll() is not None or finished(there) >= 3)
    assert driver.poll() is None, driver.communicate()[0]
    machines.cable(FAR, plugged=False)
    try:
        said, _ = driver.communicate()
    finally:
        machines.cable(FAR, plugged=True)
    assert driver.returncode == 2, said
    assert "the connection to the cluster was lost: no answer for 10 s" in said and "again to continue" in said
    before = written(there)
    assert 3 <= finished(there) < STUDENTS
    (gates / "mended").touch()
    again = grade(machines, FAR, "waits_after_a_few", a_class)
    said, _ = again.communicate()
    assert again.returncode == 0, said
    assert before.items() <= written(there).items(), "a student was graded twice"
    assert (there / "grades.csv").read_bytes() == (tmp_path / "here/grades.csv").read_bytes()
