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
    """A worker that ended without a result."""

    why: str
    machine: bool = False
    """True if the whole machine failed, which is not the job's fault."""


Outcome = bytes | Died
"""The result of a job: the text of ``worker.Graded.to_json``, or the death of its worker."""


class Executor(Protocol):
    """Runs jobs, and returns their results in any order."""

    name: str
    """A description: ``8 processes``, ``Ray at 10.0.0.1:6379``"""

    @property
    def busy(self) -> bool:
        """Return whether it has a job."""

    @property
    def room(self) -> bool:
        """Return whether it takes another job now, without waiting for one and without holding the whole class."""

    def submit(self, job: Job) -> None:
        """Take a job."""

    def wait(self) -> list[tuple[Job, Outcome]]:
        """Wait until a job is done, or for a few seconds; raise GraderError if no job can be run any more."""

    def close(self) -> None:
        """Stop, and drop running jobs."""
