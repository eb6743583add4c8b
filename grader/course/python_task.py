"""The description of an exercise whose file is Python: a class, to which cases apply operations.

A case has the arguments of the class, and ``operations`` as a text such as ``a = create(); append(a, 3)`` or as a
function that draws such a text. The class runs in the sandbox (``grader/execution/python``); the exercise's ``Model``,
in the grader's process, judges each operation by its outcome and by what was read after it.
"""

from __future__ import annotations

import ast
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from msgspec import Struct

from grader.course.task import Case, Exercise, Input, Output
from grader.setup.errors import GraderError

__all__ = ["OPERATIONS", "Case", "Model", "Operation", "PythonExercise", "Raised", "Seen", "parse", "said"]

OPERATIONS = "operations"
"""The name of a case's value that has its operations."""

Draw = Callable[[random.Random], str]
"""A function that draws operations."""


class Raised(Struct, frozen=True):
    """An exception of the learner's code."""

    names: list[str]
    """The names of its class and base classes."""
    says: str
    line: int
    """The line of the learner's file, 0 if unknown."""


class Seen(Struct, frozen=True):
    """The outcome of a call: a value or an exception.

    Lists, texts and integers are themselves. Another object is a dict: its ``type``, and the ``fields`` of a dataclass.
    """

    value: Any = None
    raised: Raised | None = None


@dataclass(frozen=True)
class Operation:
    """A call of a method. Its result gets the name ``target``, which is an argument of later operations."""

    target: str
    method: str
    arguments: tuple[str | int, ...]

    def __str__(self) -> str:
        """Return the call: ``append(a, 3)``."""
        return f"{self.method}({', '.join(map(str, self.arguments))})"


class Model(Protocol):
    """The reference of an exercise. It is created for each case, with the case's arguments."""

    def judge(self, operation: Operation, outcome: Seen, views: Mapping[str, Mapping[str, Seen]]) -> str:
        """Return what is wrong after an operation, or an empty text.

        ``views`` has what ``PythonExercise.views`` read: for a method, by the name of its argument; for a property,
        under an empty name.
        """


@dataclass(kw_only=True)
class PythonExercise(Exercise):
    """The complete description of a Python exercise."""

    launchers: str = ""
    inputs: dict[str, Input] = field(default_factory=dict)
    outputs: dict[str, Output] = field(default_factory=dict)
    reference: Callable[..., Model]
    """The ``Model``."""
    creates: str
    """The class that the file must define."""
    methods: tuple[str, ...]
    """The methods and properties that it must have."""
    views: tuple[str, ...]
    """What is read after each operation: properties, and methods that are called for each named result."""
    instance: str
    """The name of the object in messages."""
    scripts: int = 200
    """The number of times that a case with drawn operations is repeated."""
    dtypes: tuple[str, ...] = ()
    timeout: float = 5.0
    """The limit of processor time for a case, in seconds."""

    def __post_init__(self) -> None:
        """Raise GraderError for operations that the class does not have."""
        self.summary = " ".join(self.summary.split())
        for case in self.cases:
            given = case.dims.get(OPERATIONS)
            try:
                unknown = (
                    {item.method for item in parse(str(given))} - {*self.methods} if not callable(given) else set()
                )
            except (AssertionError, SyntaxError, ValueError):
                unknown = {str(given)}
            if unknown:
                raise GraderError(
                    f"the case {case.name!r} of {self.creates} has unknown operations: {', '.join(sorted(unknown))}"
                )


def said(raised: Raised, with_line: bool = True) -> str:
    """Return an exception as text: ``IndexError at line 12: pop from empty list``."""
    name = raised.names[0] if raised.names else "an exception"
    line = f" at line {raised.line}" if with_line and raised.line else ""
    text = f"{name}{line}" + (f": {raised.says}" if raised.says else "")
    refused = "PermissionError" in raised.names or "can't start new thread" in raised.says
    return f"{text} (the sandbox allows no processes, no threads, no network, and no files)" if refused else text


def parse(text: str) -> list[Operation]:
    """Parse operations such as ``a = create(); append(a, 3)``."""
    operations = []
    for statement in ast.parse(text).body:
        target = ""
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            target = statement.targets[0].id
        call = statement.value if isinstance(statement, (ast.Assign, ast.Expr)) else None
        assert isinstance(call, ast.Call) and isinstance(call.func, ast.Name), text
        arguments = tuple(a.id if isinstance(a, ast.Name) else ast.literal_eval(a) for a in call.args)
        operations.append(Operation(target, call.func.id, arguments))
    return operations
