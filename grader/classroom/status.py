"""The progress of a class: ``grader grade --status DIR``. It only reads the folder of results."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from grader.classroom.store import Plan, Store

RECENT = 300.0
"""The period in seconds over which the rate is measured."""


@dataclass(frozen=True)
class Status:
    """The progress of the run that writes to a folder of results."""

    plan: Plan
    running: bool
    done: int
    by_exercise: dict[str, tuple[int, int]]
    """Finished jobs and all jobs of each exercise."""
    per_second: float
    """Recent jobs per second; 0 if none finished recently."""

    @property
    def jobs(self) -> int:
        """Return the number of all jobs."""
        return len(self.plan.jobs)

    @property
    def seconds_left(self) -> float | None:
        """Return the estimated remaining seconds; None if no job finished recently."""
        return (self.jobs - self.done) / self.per_second if self.per_second else None


def status(out: Path, now: float | None = None) -> Status:
    """Return the progress of the run in a folder of results. ``now``: seconds since 1970."""
    store, now = Store(out), time.time() if now is None else now
    plan = store.read_plan()
    done = store.done(set(plan.jobs))
    since = max(plan.started, now - RECENT)
    recent = sum((when := store.when(key)) is not None and when >= since for key in done)
    by_exercise: dict[str, tuple[int, int]] = {}
    for key, name in sorted(plan.jobs.items(), key=lambda item: item[1]):
        ready, total = by_exercise.get(name, (0, 0))
        by_exercise[name] = ready + (key in done), total + 1
    rate = recent / (now - since) if now > since else 0.0
    return Status(plan, store.running(), len(done), by_exercise, rate)
