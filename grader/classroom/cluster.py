"""The nodes of a Ray cluster. Ray finds a free core for a job of the simulator, and a whole free GPU for one on ``cuda``.

Ray (https://docs.ray.io) is the extra ``cluster``. A job that ends its worker, or whose node goes away, comes back as that:
who retries it, and how often, is the session's matter.
"""

from __future__ import annotations

import contextlib
import logging
import os
import tempfile
from pathlib import Path
from typing import Any

from grader.classroom import course_package, jobs, local, worker
from grader.classroom.executor import Died, Outcome
from grader.classroom.jobs import Job
from grader.course import Course
from grader.errors import GraderError
from grader.runner import tiers

JOBS_FOR_EACH_CORE = 3
"""That the cluster has, so that no node waits for the next one, and a cluster that grows by need sees the need."""
LEAST_JOBS = 16
_SETTINGS = ("GRADER_CHECK_NVCC", "GRADER_JAIL", "GRADER_CACHE", "GRADER_CACHE_MB")
"""Variables that hold on the nodes, too."""


class Cluster:
    """The cluster at an address: ``auto`` (the one that this machine is part of), ``HOST:PORT``, ``ray://HOST:PORT``."""

    def __init__(self, address: str, course: Course, unsafe: bool = False) -> None:
        self.ray = ray = _ray()
        self.name = f"Ray at {address}"
        self._pending: dict[Any, Job] = {}
        self._seen, self._cores = 0, 0
        environment = {name: os.environ[name] for name in _SETTINGS if name in os.environ}
        with tempfile.TemporaryDirectory(prefix="grader-cluster-") as folder:
            course_package.pack(course, Path(folder))
            try:
                ray.init(
                    address=address,
                    runtime_env={
                        "working_dir": folder,
                        "env_vars": {"RAY_memory_monitor_refresh_ms": "0"} | environment,
                    },
                    logging_level=logging.ERROR,
                    log_to_driver=False,
                )
            except Exception as error:  # of many kinds, and not all of Ray's own
                raise GraderError(
                    f"no Ray cluster answers at {address}: {' '.join(str(error).split())[:300]}",
                    "Start one (`ray start --head`, and `ray start --address HOST:6379` on each node) or leave --cluster out.",
                ) from error
        wanted = {"num_cpus": 1, "max_retries": 0, "max_calls": worker.JOBS_PER_WORKER}
        self._on_cpu = ray.remote(**wanted)(grade_here)
        self._on_gpu = ray.remote(**wanted, num_gpus=1)(grade_here)
        self._given = (jobs.code_digest(), unsafe, worker.grade)

    @property
    def busy(self) -> bool:
        """See Executor."""
        return bool(self._pending)

    @property
    def room(self) -> bool:
        """A few jobs for each core."""
        if not self._seen:  # asking takes a while, and nodes come and go
            self._cores = int(self.ray.cluster_resources().get("CPU", 0))
        self._seen = (self._seen + 1) % 100
        return len(self._pending) < max(LEAST_JOBS, JOBS_FOR_EACH_CORE * self._cores)

    def submit(self, job: Job) -> None:
        """See Executor."""
        remote = self._on_gpu if job.device == "cuda" else self._on_cpu
        self._pending[remote.remote(job, *self._given)] = job

    def wait(self) -> list[tuple[Job, Outcome]]:
        """See Executor."""
        with _lost():
            some, _ = self.ray.wait(list(self._pending), num_returns=1)
            if len(self._pending) > 1:
                some, _ = self.ray.wait(list(self._pending), num_returns=len(self._pending), timeout=0)
            return [(self._pending.pop(reference), self._outcome(reference)) for reference in some]

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
                "Each node needs this Python, torch and a C++ compiler; the same command goes on where it stopped.",
            ) from error
        except errors.RuntimeEnvSetupError as error:
            raise GraderError(f"a node of the cluster could not be set up: {error}") from error
        except (errors.NodeDiedError, errors.ObjectLostError) as error:
            return Died(f"its node of the cluster went away: {error}", machine=True)
        except errors.RayError as error:  # WorkerCrashedError, OutOfMemoryError
            return Died(f"the process that graded it ended: {type(error).__name__}: {error}")

    def close(self) -> None:
        """See Executor."""
        with contextlib.suppress(Exception):  # of a cluster that is gone
            for reference in self._pending:
                self.ray.cancel(reference, force=True)
        self._pending.clear()
        self.ray.shutdown()


def grade_here(job: Job, digest: str, unsafe: bool, grade: worker.Grade) -> bytes:
    """On a node: one job, in the folder that Ray unpacked."""
    import dataclasses

    root = Path.cwd()
    if jobs.code_digest() != digest:
        raise GraderError("a node of the cluster has another grader than this", "Take grader out of its PYTHONPATH.")
    worker.one_core()
    held = tiers.in_force()
    if held.tier == "none" and not unsafe:
        raise GraderError(
            "a node of the cluster has no jail: submissions could read and change all that Ray's user can",
            f"{held.explanation.strip()}\n--unsafe grades all the same.",
        )
    return local.answer(grade, dataclasses.replace(job, root=root, then=None))


@contextlib.contextmanager
def _lost() -> Any:
    """A cluster that cannot be reached any more is a message."""
    try:
        yield
    except GraderError:
        raise
    except Exception as error:
        raise GraderError(
            f"the cluster cannot be reached any more: {' '.join(str(error).split())[:300]}",
            "Nothing is lost: the same command goes on where it stopped.",
        ) from error


def _ray() -> Any:
    try:
        import ray
        import ray.exceptions
    except ImportError as error:
        raise GraderError(
            "--cluster needs Ray, which is not installed",
            "`make cluster` installs it; elsewhere pip install 'llm-kernels[cluster]'.",
        ) from error
    return ray
