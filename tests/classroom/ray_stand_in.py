"""A stand-in for Ray in this process.

With it, machines without Ray can test the calls that cluster.py makes and its handling of results.
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
    """The base class of all errors of Ray."""


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
    """A remote function. After a call, it also serves as the reference to the result."""

    ray: StandIn
    function: Callable[..., Any]
    wanted: dict[str, Any]
    strategy: tuple[str, bool] | None = None
    number: int = 0
    arguments: tuple[Any, ...] = ()

    def __hash__(self) -> int:
        return self.number

    def options(self, scheduling_strategy: tuple[str, bool]) -> Remote:
        """Return the function bound to a node."""
        return replace(self, strategy=scheduling_strategy)

    def remote(self, *arguments: Any) -> Remote:
        """Record the call, and return its reference."""
        task = replace(self, number=len(self.ray.tasks), arguments=arguments)
        self.ray.tasks.append(task)
        return task


class StandIn:
    """A cluster of one node. ``ends``: for each call in order, the exception that it raises, or None."""

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
        """Copy the working folder to the node, because the caller deletes it after this call."""
        self.settings = settings
        shutil.copytree(settings["runtime_env"]["working_dir"], self.folder)

    def nodes(self) -> list[dict[str, Any]]:
        """Return one live and one dead node."""
        has = {"CPU": 1.0, "GPU": 1.0}
        return [{"NodeID": name, "Alive": name == "node", "Resources": has} for name in ("gone", "node")]

    def remote(self, **wanted: Any) -> Callable[[Callable[..., Any]], Remote]:
        """Return a decorator for remote functions."""
        return lambda function: Remote(self, function, wanted)

    def wait(
        self, references: Sequence[Remote], num_returns: int, timeout: float
    ) -> tuple[Sequence[Remote], Sequence[Remote]]:
        """Return the first ``num_returns`` references as finished."""
        return references[:num_returns], references[num_returns:]

    def get(self, reference: Remote) -> Any:
        """Return the result of a call, or raise its exception."""
        if end := next(self.ends, None):
            raise end
        try:
            with contextlib.chdir(self.folder):
                return reference.function(*reference.arguments)
        except Exception as cause:
            raise task_error(cause) from cause

    def cancel(self, reference: Remote, force: bool) -> None:
        """Record the cancellation."""
        assert force
        self.cancelled.append(reference)

    def shutdown(self) -> None:
        """Record the shutdown."""
        self.over = True


def task_error(cause: Exception) -> Exception:
    """Return the exception into which Ray converts an exception of a remote function."""
    error = ERRORS["RayTaskError"](repr(cause))
    error.cause = cause  # type: ignore[attr-defined]
    return error
