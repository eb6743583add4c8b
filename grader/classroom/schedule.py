"""The order of jobs: long ones start early, so that no core waits for the last of them alone.

Jobs that may be endless come first, because they take many times as long as others; then the exercise whose finished
jobs took longest on average. An exercise without finished jobs counts as the longest.
"""

from __future__ import annotations

import math
from collections import defaultdict, deque

from grader.classroom.jobs import Job


class Schedule:
    """The queue of waiting jobs."""

    def __init__(self) -> None:
        self._waiting: dict[tuple[bool, str, str], deque[Job]] = defaultdict(deque)
        self._seconds: dict[tuple[str, str], tuple[int, float]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values()))

    def add(self, job: Job) -> None:
        """Add a job to the queue."""
        self._waiting[job.may_not_end, job.exercise, job.device].append(job)

    def pop(self) -> Job:
        """Remove and return the next job; raise IndexError if there is none."""
        kind = max((kind for kind, jobs in self._waiting.items() if jobs), key=self._rank, default=None)
        if kind is None:
            raise IndexError("no job is waiting")
        return self._waiting[kind].popleft()

    def learn(self, job: Job, seconds: float) -> None:
        """Record the time that a finished job took."""
        count, total = self._seconds.get((job.exercise, job.device), (0, 0.0))
        self._seconds[job.exercise, job.device] = count + 1, total + seconds

    def _rank(self, kind: tuple[bool, str, str]) -> tuple[bool, float]:
        may_not_end, exercise, device = kind
        count, total = self._seconds.get((exercise, device), (0, 0.0))
        return may_not_end, total / count if count else math.inf
