"""The interface of executors: processes of this machine (local.py), or nodes of a cluster (cluster.py)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from grader.classroom.jobs import Job

MOST_DEATHS = 2
"""After so many workers that ended over one job it is not tried again."""
MOST_LOSSES = 10
"""After so many machines that went away with a job at work, it is their fault no longer."""


@dataclass(frozen=True)
class Died:
    """The worker ended without an answer."""

    why: str
    machine: bool = False
    """The whole machine went: nobody blames the job."""


Outcome = bytes | Died
"""Of a job: what ``worker.Graded.to_json`` gives, or that nothing came back."""


class Executor(Protocol):
    """Takes jobs, and gives what became of them, in any order."""

    name: str
    """``8 processes``, ``Ray at 10.0.0.1:6379``"""

    @property
    def busy(self) -> bool:
        """Return whether it has a job."""

    @property
    def room(self) -> bool:
        """Return whether it takes another job now, without waiting for one and without holding the whole class."""

    def submit(self, job: Job) -> None:
        """Take a job."""

    def wait(self) -> list[tuple[Job, Outcome]]:
        """Wait until something is done, or for a few seconds. GraderError: nothing works any more."""

    def close(self) -> None:
        """End, and drop what is at work."""
