"""The interface of executors: processes of this machine (local.py), or nodes of a cluster (cluster.py)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from grader.classroom.jobs import Job

MOST_DEATHS = 2
"""The number of workers that may die during one job before the job is recorded as failed."""
MOST_LOSSES = 10
"""The number of machines that may fail during one job before the job is recorded as failed."""


@dataclass(frozen=True)
class Died:
    """The outcome of a job whose worker ended without a result."""

    why: str
    machine: bool = False
    """True if the whole machine failed, so the job is not to blame."""


Outcome = bytes | Died
"""The result of a job: the text of ``worker.Graded.to_json``, or the death of its worker."""


class Executor(Protocol):
    """A runner of jobs, which returns their results in any order."""

    name: str
    """A description for the user: ``8 processes``, ``Ray at 10.0.0.1:6379``."""

    @property
    def busy(self) -> bool:
        """Return whether any submitted job has no result yet."""

    @property
    def room(self) -> bool:
        """Return whether ``submit`` can start another job now. It is False when all cores have enough jobs."""

    def submit(self, job: Job) -> None:
        """Start a job, or queue it on a machine."""

    def wait(self) -> list[tuple[Job, Outcome]]:
        """Return finished jobs, or none after a few seconds. Raise GraderError if no job can run any more."""

    def close(self) -> None:
        """Stop the workers. Running jobs are lost."""
