"""Worker processes on this machine: forked from a process that has torch loaded, each with its own pipe.

A worker grades one job at a time. If it dies, only this job is lost, and this job must have caused the crash.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

from grader.classroom import worker
from grader.classroom.executor import Died, Outcome
from grader.classroom.incidents import Incident
from grader.classroom.jobs import Job
from grader.setup.errors import GraderError

_READY = b"ready"


@dataclass(eq=False)
class _Worker:
    process: BaseProcess
    pipe: Connection
    job: Job | None = None
    """The job that the worker runs; None if it is free."""
    ready: bool = False
    left: int = worker.JOBS_PER_WORKER


class Local:
    """An executor with ``workers`` processes."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self.name = f"{workers} process{'es' if workers > 1 else ''}"
        # A forked worker starts quickly. Use this only on Linux, because libraries of other systems do not support it.
        self._context: Any = multiprocessing.get_context("forkserver" if sys.platform == "linux" else "spawn")
        if sys.platform == "linux":
            self._context.set_forkserver_preload(["grader.classroom.forked"])
        self._workers: list[_Worker] = []

    @property
    def busy(self) -> bool:
        """Implement ``Executor.busy``."""
        return any(one.job for one in self._workers)

    @property
    def room(self) -> bool:
        """Return whether a worker is free."""
        return sum(one.job is not None for one in self._workers) < self.workers

    def submit(self, job: Job) -> None:
        """Pass the job to a free worker; start one if there is none."""
        one = next((one for one in self._workers if one.job is None), None) or self._start()
        one.job = job
        one.left -= 1
        with contextlib.suppress(OSError):  # the process has ended: wait() reports it
            one.pipe.send(job)

    def wait(self) -> list[tuple[Job, Outcome]]:
        """Implement ``Executor.wait``."""
        done: list[tuple[Job, Outcome]] = []
        while not done:
            for pipe in wait([one.pipe for one in self._workers]):
                one = next(one for one in self._workers if one.pipe is pipe)
                job, outcome = one.job, self._receive(one)
                if job and outcome is not None:
                    done.append((job, outcome))
        return done

    def _receive(self, one: _Worker) -> Outcome | None:
        """Return a worker's result; None if it only reports that it has started."""
        try:
            said = one.pipe.recv_bytes()
        except (EOFError, OSError):
            return self._handle_death(one)
        if said == _READY:
            one.ready = True
            return None
        one.job = None
        if one.left <= 0:
            self._end(one)
        return said

    def _handle_death(self, one: _Worker) -> Died:
        one.process.join()
        self._end(one)
        if not one.ready:
            raise GraderError(
                "a worker process ended before it started, probably for lack of memory",
                "Run the same command to continue; --workers 1 needs less memory.",
            )
        code = one.process.exitcode or 0
        return Died(f"the process that graded it ended {f'by signal {-code}' if code < 0 else f'with status {code}'}")

    def _start(self) -> _Worker:
        ours, theirs = self._context.Pipe()
        arguments = (theirs, dict(os.environ), worker.begin, worker.grade)
        process = self._context.Process(target=_serve, args=arguments, daemon=True)
        process.start()
        theirs.close()
        self._workers.append(_Worker(process, ours))
        return self._workers[-1]

    def _end(self, one: _Worker) -> None:
        self._workers.remove(one)
        one.pipe.close()

    def close(self) -> None:
        """Implement ``Executor.close``."""
        for one in list(self._workers):
            one.process.kill()
            self._end(one)


def _serve(pipe: Connection, environment: dict[str, str], begin: Any, grade: worker.Grade) -> None:
    """Run a worker: handle requests until the pipe is closed."""
    os.environ.clear()  # the fork server's environment may be older than this process's
    os.environ.update(environment)
    threading.Thread(target=_end_with_command, daemon=True).start()
    begin()
    with contextlib.suppress(EOFError, OSError):  # the command has ended
        pipe.send_bytes(_READY)
        while True:
            pipe.send_bytes(answer(grade, pipe.recv()))


def _end_with_command() -> None:
    """Kill this process when the command ends, even if the command was killed.

    The fork server does not do that: it lives as long as its workers.
    """
    if (command := multiprocessing.parent_process()) is not None:
        command.join()
        os.kill(os.getpid(), signal.SIGKILL)


def answer(grade: worker.Grade, job: Job) -> bytes:
    """Return the result of a job. Every failure becomes a result."""
    from grader.course import Course

    try:
        graded = grade(job)
    except Exception as error:
        graded = worker.failed(Course(job.root).find(job.exercise), Incident.of(error, f"grading {job.exercise}"))
    return graded.to_json()
