"""Faults of the grader itself, met while it graded a student: an error of that student alone, and a reference.

The student reads the reference; the instructor finds it in errors.log, with the traceback.
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
"""Of one traceback, the end of it."""


@dataclass(frozen=True)
class Incident:
    """One fault. It crosses from process to process, so it holds texts alone."""

    what: str
    """What the grader was about to do."""
    details: str
    """The traceback."""
    reference: str = field(default_factory=lambda: secrets.token_hex(4))

    @classmethod
    def of(cls, error: BaseException, what: str) -> Incident:
        """Return an incident for an unexpected exception."""
        return cls(what, "".join(traceback.format_exception(error))[-MOST_CHARACTERS:])

    @property
    def told(self) -> str:
        """Return the message for the student."""
        return (
            f"The grader itself failed: this is no fault of the submission. It is graded again when the class is.\n"
            f"The instructor finds out more by the reference {self.reference}."
        )


def note(out: Path, student: str, incident: Incident) -> None:
    """Add it to the log of a folder of results."""
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    head = f"reference {incident.reference}, {now}, student {student!a}, {incident.what}"
    try:
        with (out / LOG).open("a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(f"{head}\n{incident.details.rstrip()}\n\n")
    except OSError as error:
        raise GraderError(f"cannot write {out / LOG}: {error.strerror}") from error
