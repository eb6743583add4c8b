"""The nodes of a Ray cluster. A job on the simulator occupies one core, a job on ``cuda`` one GPU.

Ray (https://docs.ray.io) is in the extra ``cluster``. The grader assigns jobs to nodes, because Ray waits forever for a
node that does not respond (attempts.py). The death of a worker or of a node is reported to the session, which decides
about retries.
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Any

from grader.classroom import course_package, jobs, local, worker
from grader.classroom.attempts import Attempts
from grader.classroom.executor import Died, Outcome
from grader.classroom.jobs import Job
from grader.course import Course
from grader.setup import shipped
from grader.setup.errors import GraderError

LOOK = 5.0
"""The period in seconds between two queries of the nodes."""
SILENT = 40.0
"""The seconds to wait for an answer of the cluster's head node.

Ray itself waits forever, or ends this process 60 s after the head is gone.
"""
BEGIN = 120.0
"""The seconds to wait for the first connection to the cluster's head node. Ray itself retries forever."""
_SETTINGS = ("GRADER_CHECK_NVCC", "GRADER_JAIL", "GRADER_CACHE", "GRADER_CACHE_MB")
"""Environment variables that are passed to the nodes."""

_JOIN = "`ray start --address HOST:6379`"


class Cluster:
    """A Ray cluster with this machine as a node. ``address``: ``auto``, or the ``HOST:PORT`` of the head."""

    def __init__(self, address: str, course: Course, unsafe: bool = False) -> None:
        _refuse(address)
        self.ray = ray = _ray()
        self.name = f"Ray at {address}"
        self._attempts, self._looked, self._patience = Attempts(), -LOOK, BEGIN
        environment = {name: os.environ[name] for name in _SETTINGS if name in os.environ}
        with tempfile.TemporaryDirectory(prefix="grader-cluster-") as folder:
            course_package.pack(course, Path(folder))
            variables = {"RAY_memory_monitor_refresh_ms": "0"} | environment
            settings = {"runtime_env": {"working_dir": folder, "env_vars": variables}, "log_to_driver": False}
            try:
                self._ask(partial(ray.init, address=address, logging_level=logging.ERROR, **settings))
            except Exception as error:  # many types, not all of them Ray's
                if isinstance(error, TimeoutError):
                    atexit.register(_exit_at_once)
                raise GraderError(
                    f"no Ray cluster answers at {address}: {' '.join(str(error).split())[:300]}",
                    f"Start one (`ray start --head`, and {_JOIN} on each node, this machine too) or omit --cluster.",
                ) from error
        self._patience = SILENT
        wanted = {"num_cpus": 1, "max_retries": 0, "max_calls": worker.JOBS_PER_WORKER}
        self._on_cpu = ray.remote(**wanted)(grade_here)
        self._on_gpu = ray.remote(**wanted, num_gpus=1)(grade_here)
        self._given = (jobs.code_digest(), unsafe, worker.grade)

    @property
    def busy(self) -> bool:
        """Implement ``Executor.busy``."""
        return self._attempts.busy

    @property
    def room(self) -> bool:
        """Return whether any node has room for another job."""
        self._update_nodes()
        return self._attempts.room

    def _update_nodes(self) -> None:
        """Update the list of nodes, at most every LOOK seconds, because the query is slow."""
        if time.monotonic() >= self._looked + LOOK:
            with _lost_cluster_as_error():
                there = [node for node in self._ask(self.ray.nodes) if node["Alive"]]
            self._attempts.nodes = {node["NodeID"]: node["Resources"] for node in there}
            self._looked = time.monotonic()

    def submit(self, job: Job) -> None:
        """Implement ``Executor.submit``."""
        self._try(job, self._attempts.node_for(job))

    def _try(self, job: Job, node: str) -> None:
        remote = self._on_gpu if job.device == "cuda" else self._on_cpu
        if node:
            there = self.ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(node, soft=False)
            remote = remote.options(scheduling_strategy=there)
        with _lost_cluster_as_error():
            reference = self._ask(partial(remote.remote, job, *self._given))  # the first call waits for the head
        self._attempts.add(reference, job, node)

    def wait(self) -> list[tuple[Job, Outcome]]:
        """Implement ``Executor.wait``."""
        self._update_nodes()
        # Retry late jobs. Every job has been submitted, so a node with room would otherwise be idle.
        for job, node in self._attempts.late():
            self._try(job, node)
        references = self._attempts.references
        with _lost_cluster_as_error():
            some, _ = self.ray.wait(references, num_returns=1, timeout=LOOK)
            if some and len(references) > 1:
                some, _ = self.ray.wait(references, num_returns=len(references), timeout=0)
            ended = [self._attempts.end(reference, partial(self._outcome, reference)) for reference in some]
        return [one for one in ended if one]

    def _outcome(self, reference: Any) -> Outcome:
        errors = self.ray.exceptions
        try:
            answer: bytes = self.ray.get(reference)
            return answer
        except errors.RayTaskError as error:
            if isinstance(error.cause, GraderError):
                raise error.cause from None
            raise GraderError(
                f"a node of the cluster cannot grade: {error.cause!r}",
                "Each node needs this Python, torch and a C++ compiler. Run the same command again to continue.",
            ) from error
        except errors.RuntimeEnvSetupError as error:
            raise GraderError(f"a node of the cluster could not be set up: {error}") from error
        except (errors.NodeDiedError, errors.ObjectLostError, errors.TaskUnschedulableError) as error:
            return Died(f"the job's node of the cluster went away: {error}", machine=True)
        except errors.RayError as error:  # WorkerCrashedError, OutOfMemoryError
            return Died(f"the process that graded the job ended: {type(error).__name__}: {error}")

    def _ask(self, call: Callable[[], Any]) -> Any:
        """Make a call in a new thread and return its result. Raise TimeoutError if the head does not answer.

        After a timeout, the thread is not stopped.
        """
        answer = Future[Any]()

        def run() -> None:
            try:
                answer.set_result(call())
            except BaseException as error:
                answer.set_exception(error)

        threading.Thread(target=run, daemon=True).start()
        try:
            return answer.result(self._patience)
        except TimeoutError:
            waited, self._patience = self._patience, SILENT / 8  # later calls wait less: the head is probably gone
            raise TimeoutError(f"no answer for {waited:g} s") from None

    def close(self) -> None:
        """Implement ``Executor.close``."""
        try:
            self._ask(self._end)
        except TimeoutError:
            atexit.register(_exit_at_once)
        self._attempts = Attempts()

    def _end(self) -> None:
        with contextlib.suppress(Exception):  # the cluster may no longer exist
            for reference in self._attempts.references:
                self.ray.cancel(reference, force=True)
        self.ray.shutdown()


def grade_here(job: Job, digest: str, unsafe: bool, grade: worker.Grade) -> bytes:
    """Grade one job on a node, in the folder that Ray unpacked there."""
    import dataclasses

    root = Path.cwd()
    if jobs.code_digest() != digest:
        raise GraderError("a node of the cluster has a different grader", "Remove grader from its PYTHONPATH.")
    worker.save_time()
    danger = "submissions could read and change everything that Ray's user can"
    worker.require_sandbox(unsafe, f"a node of the cluster has no sandbox: {danger}")
    return local.answer(grade, dataclasses.replace(job, root=root, then=None))


def _refuse(address: str) -> None:
    """Raise a GraderError for an address on which Ray would hang or fail with an unclear message."""
    if "://" in address:
        raise GraderError(
            f"--cluster {address} is an address of Ray's client, which the grader does not support",
            f"Make this machine a node ({_JOIN} --num-cpus 0), and give --cluster auto.",
        )
    host, _, port = address.rpartition(":")
    if host and port.isdecimal() and int(port) < 1 << 16:
        try:
            socket.create_connection((host.strip("[]"), int(port)), SILENT).close()
        except OSError as error:
            raise GraderError(
                f"no Ray cluster answers at {address}: {error.strerror or error}",
                f"Give HOST:PORT of its head as `ray start --head` printed it, or auto on a node ({_JOIN}).",
            ) from error


def _exit_at_once() -> None:
    """End this process at once. A normal exit would wait for Ray, which waits for a silent head, and then crash."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(2)


@contextlib.contextmanager
def _lost_cluster_as_error() -> Any:
    """Convert the exceptions of a lost cluster into a GraderError."""
    try:
        yield
    except GraderError:
        raise
    except Exception as error:
        raise GraderError(
            f"the connection to the cluster was lost: {' '.join(str(error).split())[:300]}",
            "Finished results are saved. Run the same command again to continue.",
        ) from error


def _ray() -> Any:
    try:
        import ray
        import ray.exceptions
        import ray.util.scheduling_strategies
    except ImportError as error:
        raise GraderError(
            "--cluster needs Ray, which is not installed",
            f"Install Ray: {shipped.install_extra('cluster') if shipped.IN_WHEEL else 'make cluster'}",
        ) from error
    return ray
