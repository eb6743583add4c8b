"""Errors that a user can fix. The command line prints these as one message, never as a traceback."""

from __future__ import annotations

import copyreg
from typing import Any


class GraderError(Exception):
    """An error that a user can fix: ``message`` says what is wrong and where, ``hint`` says what to do."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the error without calling ``__init__``, whose parameters differ in subclasses."""
        return copyreg.__newobj__, (type(self), *self.args), self.__dict__  # type: ignore[attr-defined]

    def __str__(self) -> str:
        return f"{self.message}\n{self.hint}" if self.hint else self.message

    def _render_traceback_(self) -> list[str]:
        """Return the text that a notebook shows instead of a traceback (IPython calls this method)."""
        return str(self).splitlines()


class BuildError(GraderError):
    """A kernel that does not compile. ``message`` is the compiler's text, with the learner's line numbers."""


class KernelFinding(GraderError):
    """An error that the simulator found while a kernel ran, such as an access out of bounds, a race or a deadlock."""
