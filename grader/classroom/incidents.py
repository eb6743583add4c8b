"""Internal errors of the grader while it graded a student. Only that student's result is an error.

The student sees a reference; the instructor finds the reference and the traceback in errors.log.
"""

from __future__ import annotations

import datetime
import secrets
import traceback
from dataclasses import dataclass, field
from pathlib import Path

from grader.setup.errors import GraderError

LOG = "errors.log"
MOST_CHARACTERS = 20_000
"""The maximum length of a traceback. A longer one is cut at its beginning."""


@dataclass(frozen=True)
class Incident:
    """One internal error. It is sent between processes, so it holds only text."""

    what: str
    """The grader's action that failed, such as ``writing the results``."""
    details: str
    """The traceback."""
    reference: str = field(default_factory=lambda: secrets.token_hex(4))

    @classmethod
    def of(cls, error: BaseException, what: str) -> Incident:
        """Create an incident from an unexpected exception."""
        return cls(what, "".join(traceback.format_exception(error))[-MOST_CHARACTERS:])

    @property
    def told(self) -> str:
        """Return the message for the student."""
        return (
            f"The grader itself failed; the submission is not at fault. It will be graded again with the class.\n"
            f"The instructor can find details by the reference {self.reference}."
        )


def note(out: Path, student: str, incident: Incident) -> None:
    """Add the incident to the log of a folder of results."""
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    head = f"reference {incident.reference}, {now}, student {student!r}, {incident.what}"
    try:
        with (out / LOG).open("a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(f"{head}\n{incident.details.rstrip()}\n\n")
    except OSError as error:
        raise GraderError(f"cannot write {out / LOG}: {error.strerror}") from error
