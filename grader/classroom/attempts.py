"""Assignment of jobs to the nodes of a cluster: late jobs are tried again elsewhere, and the first answer counts.

A cut network and a hanging machine look the same: there is no result. The grader therefore does not decide whether a
node is alive. A late job gets another attempt on a node with room (Dean and Ghemawat, "MapReduce", OSDI 2004, section
3.6, call these backup tasks). A silent node keeps its few jobs and gets no more. If it wakes up, results that are
already known are dropped. A wrong guess costs a job done twice, never a grade.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from grader.classroom.executor import Died, Outcome
from grader.classroom.jobs import Job

LATE = 60.0
"""The seconds after which a job is late and is also tried on another node. Few jobs take longer."""
JOBS_FOR_EACH_CORE = 2
"""The jobs that a node gets per core. With two, a core need not wait for its next job, and Ray adds nodes if needed."""
LEAST_JOBS = 16
"""The number of jobs that may be submitted while the cluster has no node."""


@dataclass(frozen=True)
class _Attempt:
    job: Job
    node: str
    late: float
    """The time at which the attempt becomes late."""


@dataclass
class Attempts:
    """The running attempts. The executor identifies each attempt by a reference."""

    clock: Callable[[], float] = time.monotonic
    nodes: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """The present nodes, each with its numbers of ``CPU`` and ``GPU``."""
    _at_work: dict[Any, _Attempt] = field(default_factory=dict)
    _waiting: set[str] = field(default_factory=set)
    """The keys of the jobs that have no result yet."""
    _gone: set[str] = field(default_factory=set)
    """Failed nodes, which get no more jobs. Ray still lists them for a while. A restarted node has a new name."""

    @property
    def references(self) -> list[Any]:
        """Return all running attempts. Some belong to jobs that already have a result; they still occupy a core."""
        return list(self._at_work)

    @property
    def busy(self) -> bool:
        """Return whether any submitted job has no result yet."""
        return bool(self._waiting)

    @property
    def room(self) -> bool:
        """Return whether any node has room for another job."""
        ranked = self._ranked("cpu")
        return any(not full for full, _ in ranked) if ranked else len(self._at_work) < LEAST_JOBS

    def node_for(self, job: Job) -> str:
        """Return the best node; empty if there is none.

        Nodes with room come first. Among them, nodes without late jobs come first, and then the least loaded.
        """
        return next((node for _, node in self._ranked(job.device)), "")

    def add(self, reference: Any, job: Job, node: str) -> None:
        """Record the start of an attempt."""
        self._at_work[reference] = _Attempt(job, node, self.clock() + LATE)
        self._waiting.add(job.key)

    def late(self) -> Iterator[tuple[Job, str]]:
        """Yield each late job with a node to retry it on. The caller must ``add`` that attempt before the next one."""
        tried: dict[str, list[_Attempt]] = {}
        for attempt in self._at_work.values():
            tried.setdefault(attempt.job.key, []).append(attempt)
        for key, attempts in tried.items():
            if key in self._waiting and all(attempt.late <= self.clock() for attempt in attempts):
                job, had = attempts[0].job, {attempt.node for attempt in attempts}
                node = next((node for full, node in self._ranked(job.device) if not full and node not in had), "")
                if node:
                    yield job, node

    def end(self, reference: Any, outcome: Callable[[], Outcome]) -> tuple[Job, Outcome] | None:
        """Record the end of an attempt. Return the job and its outcome.

        Return None if the job already has a result, or if the node failed and another attempt is still running.
        """
        attempt = self._at_work.pop(reference)
        job = attempt.job
        if job.key not in self._waiting:
            return None
        what = outcome()
        lost = isinstance(what, Died) and what.machine
        if lost:
            self._gone.add(attempt.node)
        if lost and any(other.job.key == job.key for other in self._at_work.values()):
            return None
        self._waiting.discard(job.key)
        return job, what

    def _ranked(self, device: str) -> list[tuple[bool, str]]:
        """Return pairs (node is full, node name) of the nodes that have the device, best node first."""
        resource, now = "GPU" if device == "cuda" else "CPU", self.clock()
        # Every job needs a core, but only jobs on ``cuda`` need a GPU.
        held = Counter(one.node for one in self._at_work.values() if device in ("cpu", one.job.device))
        slow = {one.node for one in self._at_work.values() if one.late <= now}
        loads = {
            name: held[name] / has[resource]
            for name, has in self.nodes.items()
            if has.get(resource) and name not in self._gone
        }
        ranked = sorted((load >= JOBS_FOR_EACH_CORE, name in slow, load, name) for name, load in loads.items())
        return [(full, name) for full, _, _, name in ranked]
