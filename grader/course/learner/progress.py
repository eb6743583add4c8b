"""A learner's progress, stored in ``.grader/progress.json`` inside the course folder.

Two graders may run at once (``watch`` in one terminal, ``check`` in another): each change takes a lock, reads the
newest version of the file, and replaces it by one rename. An unreadable file is renamed, never overwritten.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from grader.course.manifest import former_names
from grader.setup.errors import GraderError
from grader.setup.files import replace_file, try_lock

VERSION = 1


class ExerciseProgress(msgspec.Struct):
    """The progress of one exercise: the number of checks, whether it ever passed, the number of hints shown."""

    checks: int = 0
    passed: bool = False
    first_passed: str = ""
    """Date and time in UTC, ISO 8601."""
    last_checked: str = ""
    last_failed_stage: str = ""
    """The stage at which the last check stopped; empty if it passed."""
    hints_shown: int = 0
    passed_sha256: str = ""
    """The SHA-256 of the last file that passed; empty if it is unknown."""


class _File(msgspec.Struct):
    """The content of the file. Unknown fields are dropped."""

    exercises: dict[str, ExerciseProgress]
    version: int = VERSION


@dataclass
class Progress:
    """The progress of all exercises that were ever graded, by name."""

    exercises: dict[str, ExerciseProgress] = field(default_factory=dict)
    set_aside: str = ""
    """A note for the learner that the progress file was unreadable; empty if it was read."""

    def of(self, name: str) -> ExerciseProgress:
        """Return the progress of one exercise (an empty one if it was never graded)."""
        return self.exercises.get(name, ExerciseProgress())


class ProgressFile:
    """The progress file of one course folder."""

    def __init__(self, root: Path) -> None:
        self.folder = root / ".grader"
        self.path = self.folder / "progress.json"

    def read(self) -> Progress:
        """Return the recorded progress; empty if there is none yet. An unreadable file is renamed."""
        try:
            text = self.path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return Progress()
        except (OSError, UnicodeDecodeError) as error:
            return self._set_aside(error)
        try:
            kept = msgspec.json.decode(text, type=_File)
        except (msgspec.DecodeError, RecursionError) as error:
            return self._set_aside(error)
        return _renamed(Progress(kept.exercises), former_names(self.folder.parent)[1])

    def record_check(self, name: str, passed: bool, failed_stage: str = "", sha256: str = "") -> ExerciseProgress:
        """Count one check of the file with a hash. An exercise that passed once stays passed."""
        with self._changing() as progress:
            entry = progress.exercises.setdefault(name, ExerciseProgress())
            entry.checks += 1
            entry.last_checked = datetime.now(UTC).isoformat(timespec="seconds")
            entry.last_failed_stage = "" if passed else failed_stage
            if passed:
                entry.passed_sha256 = sha256
            if passed and not entry.passed:
                entry.passed, entry.first_passed = True, entry.last_checked
        return entry

    def record_hint(self, name: str, shown: int) -> None:
        """Record the number of hints that were shown."""
        with self._changing() as progress:
            progress.exercises.setdefault(name, ExerciseProgress()).hints_shown = shown

    def forget(self, name: str) -> None:
        """Reset the progress of an exercise."""
        with self._changing() as progress:
            progress.exercises.pop(name, None)

    @contextlib.contextmanager
    def _changing(self) -> Iterator[Progress]:
        """Lock the file and yield its newest progress; write it back at the end of the block."""
        try:
            self.folder.mkdir(exist_ok=True)
            lock = open(self.folder / "progress.lock", "w", encoding="utf-8")  # noqa: SIM115
        except OSError as error:
            raise self._unwritable(error) from None
        with lock:
            _lock(lock)
            progress = self.read()
            yield progress
            data = msgspec.to_builtins(_File(dict(sorted(progress.exercises.items()))))
            try:
                replace_file(self.path, f"{json.dumps(data, indent=2)}\n".encode())
            except OSError as error:
                raise self._unwritable(error) from None

    def _unwritable(self, error: OSError) -> GraderError:
        return GraderError(
            f"cannot save your progress in {self.path}: {error.strerror or error}",
            "Verdicts are not affected. Make the course folder writable to keep progress between runs.",
        )

    def _set_aside(self, error: Exception) -> Progress:
        aside = self.path.with_name(f"progress.broken-{int(time.time())}.json")
        try:
            os.replace(self.path, aside)
        except OSError:
            return Progress(set_aside=f"{self.path} cannot be read ({error}); progress starts from zero")
        return Progress(
            set_aside=f"{self.path.name} could not be read; it is kept as {aside.name}, and progress starts from zero"
        )


def _lock(file: Any) -> None:
    """Lock the file. After one second of waiting for another grader, continue without the lock."""
    for _ in range(50):
        if try_lock(file):
            return
        time.sleep(0.02)


def _renamed(progress: Progress, former: Mapping[str, str]) -> Progress:
    """Add the progress recorded under former names to the present names."""
    for old in progress.exercises.keys() & former.keys():
        progress.exercises[former[old]] = _together(progress.exercises.pop(old), progress.of(former[old]))
    return progress


def _together(first: ExerciseProgress, second: ExerciseProgress) -> ExerciseProgress:
    """Combine the progress of one exercise that was recorded under two names."""
    later = max(first, second, key=lambda one: one.last_checked)
    return ExerciseProgress(
        checks=first.checks + second.checks,
        passed=first.passed or second.passed,
        first_passed=min(filter(None, (first.first_passed, second.first_passed)), default=""),
        last_checked=later.last_checked,
        last_failed_stage=later.last_failed_stage,
        hints_shown=max(first.hints_shown, second.hints_shown),
    )
