"""What can go wrong that a user can put right. The command line prints these as one message, never as a traceback."""

from __future__ import annotations

import copyreg
from typing import Any


class GraderError(Exception):
    """Something a user can put right: ``message`` says what and where, ``hint`` what to do about it."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __reduce__(self) -> tuple[Any, ...]:
        """How it goes from one process to another, whatever its ``__init__`` takes."""
        return copyreg.__newobj__, (type(self), *self.args), self.__dict__  # type: ignore[attr-defined]

    def __str__(self) -> str:
        return f"{self.message}\n{self.hint}" if self.hint else self.message

    def _render_traceback_(self) -> list[str]:
        """What a notebook shows in place of a traceback (IPython asks for it by this name)."""
        return str(self).splitlines()


class BuildError(GraderError):
    """The kernel does not compile. ``message`` is the compiler's own text, at the learner's lines."""


class KernelFinding(GraderError):
    """The simulator found a fault while a kernel ran (an access out of bounds, a race, a deadlock...)."""
