"""Starts runners for a GPU while the kernel still compiles: creating a CUDA context takes tenths of a second.

A warm runner is confined, has created its context, and has loaded nothing. It can read one folder, which is empty until
a ``Child`` takes the runner and puts its kernel there. Each runner is taken once, so a kernel never gets the process of
another kernel.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import threading
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from grader.execution.jail.staging import own_folder
from grader.execution.runner.client import Child
from grader.setup.errors import GraderError


@dataclass
class WarmRunners:
    """Starts the runners of ``children`` in a thread, one after another.

    ``children`` yields children that have no kernel and have not started. It may wait until a runner can be started,
    and raise GraderError if none can. Each start is inside a ``turn()``.
    """

    children: Iterable[Child]
    turn: Callable[[], AbstractContextManager[object]] = nullcontext

    _changed: threading.Condition = field(default_factory=threading.Condition)
    _ready: list[Child] = field(default_factory=list)
    _starting: Child | None = None
    _settled: bool = False
    """True if no more runners start."""
    _closed: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self._thread = threading.Thread(target=self._start_all, name="warm runners", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def take(self, other: Child) -> Child | None:
        """Return a runner with the program and the sandbox of ``other``; None if there is none.

        Wait for a runner that is just starting, because it will be ready before a new one.
        """
        with self._changed:
            while not self._ready and self._starting is not None:
                self._changed.wait()
            while self._ready:
                child = self._ready.pop(0)
                if child.alive and child.like(other):
                    return child
                child.stop()
        return None

    def settle(self) -> None:
        """Start no more runners, and wait for the one that is starting. A measurement must not overlap with a start."""
        with self._changed:
            self._settled = True
            while self._starting is not None:
                self._changed.wait()

    def close(self) -> None:
        """End all runners. Children that have taken one must be stopped before."""
        self._closed.set()
        with self._changed:
            self._settled = True
            if self._starting is not None:
                self._starting.kill()
            while self._ready:
                self._ready.pop().stop()

    def _start_all(self) -> None:
        with contextlib.suppress(GraderError, OSError):  # a Child that starts its own runner raises the error again
            for child in self.children:
                with self.turn():
                    if not self._start(child):
                        break
        self._closed.wait()  # bwrap ends a process when the thread that started it ends

    def _start(self, child: Child) -> bool:
        """Start a runner. Return whether it can be taken."""
        with self._changed:
            if self._settled:
                return False
            self._starting = child
        prepared = False
        try:
            prepared = child.prepare(_folder())
        finally:
            with self._changed:
                self._starting = None
                prepared = prepared and not child.killed
                if prepared:
                    self._ready.append(child)
                else:
                    child.stop()
                self._changed.notify_all()
        return prepared


def _folder() -> Path:
    """Return a new empty folder that the sandbox's user can read, but not change."""
    folder = Path(tempfile.mkdtemp(prefix="warm-", dir=own_folder()))
    os.chmod(folder, 0o755)
    return folder
