"""Starts the worker of a Python file in a sandbox, sends it operations, and reads their outcomes."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from grader.course.python_task import Raised, Seen
from grader.execution.jail.running import Start
from grader.execution.jail.staging import reachable
from grader.execution.python.interpreter import Interpreter
from grader.execution.runner.answers import Ended, Refused
from grader.execution.runner.client import Child, Reply

MEGABYTES = 1024
"""The limit for the address space of the worker."""
MOST_BYTES = 4 << 20
"""The maximum size of the outcomes of one script."""


class Step(msgspec.Struct, frozen=True):
    """The outcome of an operation, and what was read after it."""

    outcome: Seen
    views: dict[str, dict[str, Seen]] = {}


class Module(msgspec.Struct, frozen=True):
    """The result of importing the learner's file: its exception, and the names that it lacks."""

    raised: Raised | None
    lacks: list[str]


@dataclass
class Answer:
    """The reply to a request; incomplete if the process ended early."""

    module: Module | None
    """None if the import of the learner's file did not finish."""
    steps: list[Step]
    """The finished steps. The first one creates the object."""
    ended: Ended | None
    """The reason why the process ended early, if it did."""
    printed: str
    cpu_seconds: float
    """The processor time that the process used for the request."""


@dataclass
class Python(Child):
    """The child process of a Python file."""

    interpreter: Interpreter = field(kw_only=True)
    returning = "returning"

    def ask(self, task: Mapping[str, Any], seconds: float) -> Answer:
        """Send a request, and wait for its outcomes."""
        results = os.memfd_create("outcomes", os.MFD_CLOEXEC)
        try:
            self.send(f"call script\n{json.dumps(task)}", [results])
            reply = self.receive(seconds)
            lines = os.pread(results, MOST_BYTES, 0).split(b"\n")[:-1]
            return _answer(lines, reply)
        finally:
            os.close(results)

    def _start(self, number: int) -> Start:
        home = self.interpreter.home
        place = reachable(home) if self.jail.tier == "landlock" else home
        arguments = ["-S", "-B", str(place / "worker.py"), str(number), str(MEGABYTES), str(self.cpu_seconds)]
        environment = {"PYTHONHOME": str(place), "PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": "0"}
        libraries = (self.program, *self.interpreter.extensions)
        return self.jail.start(self.program, arguments, [home, self.kernel], environment, libraries)


def _answer(lines: Sequence[bytes], reply: Reply) -> Answer:
    ended = reply.answer if isinstance(reply.answer, Ended) else None
    if isinstance(reply.answer, Refused):
        ended = Ended("reply", reply.answer.reason)
    module, steps = None, []
    try:
        if lines:
            module = msgspec.json.decode(lines[0], type=Module)
            steps = [msgspec.json.decode(line, type=Step) for line in lines[1:]]
    except (msgspec.DecodeError, RecursionError) as error:
        ended = ended or Ended("reply", f"its process sent an answer that cannot be read: {error}")
    return Answer(module, steps, ended, reply.printed, reply.cpu_seconds)
