"""Runs the work of the stage *builds* in a separate process, while the main process imports torch.

The import holds the GIL for most of a second, so threads of the same process would be delayed. The separate process
receives its job through a pipe, sends each result when it is ready, and ends when the pipe closes.
"""

from __future__ import annotations

import gc
import os
import pickle
import sys
import threading
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from typing import Any

from grader.execution.jail.running import no_more_namespaces, shared_libraries
from grader.frontend.toolchain import ahead
from grader.judge.build_job import Building, Job
from grader.setup.errors import GraderError

_PARTS = ("jail", "kernel", "runner", "nvcc")


class Process(Building):
    """A job that runs in another process."""

    def __init__(self, job: Job) -> None:
        self.jail, self.kernel, self.runner = Future(), Future(), Future()
        self.nvcc = Future() if job.ask_nvcc else None
        self._process = ahead.take()
        assert self._process.stdin
        with suppress(BrokenPipeError):
            pickle.dump(job, self._process.stdin)
            self._process.stdin.flush()
        threading.Thread(target=self._receive, daemon=True).start()

    def stop(self) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait()

    def _receive(self) -> None:
        assert self._process.stdout
        with suppress(EOFError, OSError, pickle.UnpicklingError), self._process.stdout as pipe:
            while True:
                name, result, error = pickle.load(pipe)
                future: Future[Any] = getattr(self, name)
                if error is None:
                    future.set_result(result)
                    _look_ahead(name, result)
                else:
                    future.set_exception(error)
        for name in _PARTS:
            with suppress(InvalidStateError, AttributeError):
                getattr(self, name).set_exception(GraderError("the process that builds the kernel has ended early"))
        self._process.wait()


def _look_ahead(part: str, result: Any) -> None:
    """Compute and cache values that every start of a runner needs."""
    with suppress(GraderError):  # the first start of a runner raises the error again
        if part == "runner":
            shared_libraries(result)
        elif part == "jail" and result.tier == "bwrap":
            no_more_namespaces()


def main() -> None:
    """Run a job in the separate process. Its results go to standard output, so messages go to standard error."""
    gc.set_threshold(50_000)
    pipe = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    from grader.judge.build_threads import Threads

    try:
        job: Job = pickle.load(sys.stdin.buffer)
    except EOFError:  # the parent sent no job
        return
    try:
        building = Threads(job)
    except GraderError as error:
        pipe.write(b"".join(pickle.dumps((name, None, error)) for name in _PARTS if name != "nvcc" or job.ask_nvcc))
        pipe.close()
        return
    lock, left, stopped = threading.Lock(), threading.Semaphore(0), threading.Event()

    def send(name: str, done: Future[Any]) -> None:
        error = done.exception()
        try:
            content = pickle.dumps((name, None if error else done.result(), error))
        except Exception:  # the result or error cannot be pickled
            content = pickle.dumps((name, None, GraderError(f"building fails: {type(error).__name__}: {error}")))
        with lock, suppress(BrokenPipeError):
            pipe.write(content)
            pipe.flush()
        left.release()

    parts = [(name, getattr(building, name)) for name in _PARTS if getattr(building, name) is not None]
    for name, future in parts:
        future.add_done_callback(lambda done, name=name: send(name, done))

    def wait_for_the_end() -> None:
        os.read(0, 1)
        stopped.set()
        left.release()

    threading.Thread(target=wait_for_the_end, daemon=True).start()
    for _ in parts:
        left.acquire()
        if stopped.is_set():
            building.stop()
            return
