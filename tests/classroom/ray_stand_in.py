"""In place of Ray, in this process.

For what cluster.py asks of it and makes of its answers, where Ray itself is not installed.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any


class RayError(Exception):
    """The base of all of Ray's errors."""


ERRORS = {
    name: type(name, (RayError,), {})
    for name in (
        "NodeDiedError",
        "ObjectLostError",
        "RayTaskError",
        "RuntimeEnvSetupError",
        "TaskUnschedulableError",
        "WorkerCrashedError",
    )
}


@dataclass(frozen=True)
class Remote:
    """A function that runs on a node; one that was called is a reference, too."""

    ray: StandIn
    function: Callable[..., Any]
    wanted: dict[str, Any]
    strategy: tuple[str, bool] | None = None
    number: int = 0
    arguments: tuple[Any, ...] = ()

    def __hash__(self) -> int:
        return self.number

    def options(self, scheduling_strategy: tuple[str, bool]) -> Remote:
        """Return the same function, on a node."""
        return replace(self, strategy=scheduling_strategy)

    def remote(self, *arguments: Any) -> Remote:
        """Call it."""
        task = replace(self, number=len(self.ray.tasks), arguments=arguments)
        self.ray.tasks.append(task)
        return task


class StandIn:
    """A cluster of one node. ``ends``: what becomes of one call after the other, an error or None, which runs it."""

    def __init__(self, folder: Path, ends: Iterable[Exception | None] = ()) -> None:
        self.exceptions = SimpleNamespace(RayError=RayError, **ERRORS)
        strategies = SimpleNamespace(NodeAffinitySchedulingStrategy=lambda node, soft: (node, soft))
        self.util = SimpleNamespace(scheduling_strategies=strategies)
        self.folder, self.ends = folder, iter(ends)
        self.settings: dict[str, Any] = {}
        self.tasks: list[Remote] = []
        self.cancelled: list[Remote] = []
        self.over = False

    def init(self, **settings: Any) -> None:
        """Send the folder to the node; it is deleted here soon."""
        self.settings = settings
        shutil.copytree(settings["runtime_env"]["working_dir"], self.folder)

    def nodes(self) -> list[dict[str, Any]]:
        """One of them is no more."""
        has = {"CPU": 1.0, "GPU": 1.0}
        return [{"NodeID": name, "Alive": name == "node", "Resources": has} for name in ("gone", "node")]

    def remote(self, **wanted: Any) -> Callable[[Callable[..., Any]], Remote]:
        """As a decorator of functions."""
        return lambda function: Remote(self, function, wanted)

    def wait(
        self, references: Sequence[Remote], num_returns: int, timeout: float
    ) -> tuple[Sequence[Remote], Sequence[Remote]]:
        """All are done."""
        return references[:num_returns], references[num_returns:]

    def get(self, reference: Remote) -> Any:
        """Return the result of a call."""
        if end := next(self.ends, None):
            raise end
        try:
            with contextlib.chdir(self.folder):
                return reference.function(*reference.arguments)
        except Exception as cause:
            raise task_error(cause) from cause

    def cancel(self, reference: Remote, force: bool) -> None:
        """Whatever it does."""
        assert force
        self.cancelled.append(reference)

    def shutdown(self) -> None:
        """At the end."""
        self.over = True


def task_error(cause: Exception) -> Exception:
    """Return what Ray makes of an error of the function."""
    error = ERRORS["RayTaskError"](repr(cause))
    error.cause = cause  # type: ignore[attr-defined]
    return error
