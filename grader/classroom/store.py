"""The state of a run in the folder of results: ``.jobs``.

``KEY.json``   the result of one job, named by the hash of everything that determines it; written atomically
``plan.json``  the list of jobs, for ``grader grade --status``
``lock``       held by the run that writes here, while it runs
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from grader.classroom.worker import Graded
from grader.setup.errors import GraderError
from grader.setup.files import make_folder, try_lock, write_file

FOLDER = ".jobs"
PLAN, LOCK = "plan.json", "lock"


class Plan(msgspec.Struct):
    """The list of a run's jobs, stored for ``grader grade --status``."""

    executor: str
    started: float
    """The start time, in seconds since 1970."""
    students: int
    jobs: dict[str, str]
    """The exercise of each job, by key. For a GPU, the name ends in ``on cuda``."""


class Store:
    """The job results in one folder of results."""

    def __init__(self, out: Path) -> None:
        self.folder = out / FOLDER

    def make(self) -> None:
        """Create the folder."""
        make_folder(self.folder)

    def read(self, key: str) -> Graded | None:
        """Return the stored result of a job; None if there is none or the file is damaged."""
        try:
            graded = Graded.from_json(self._path(key).read_bytes())
        except (OSError, ValueError, KeyError, TypeError, RecursionError, GraderError):
            return None
        return graded

    def done(self, keys: set[str]) -> set[str]:
        """Return the keys that have a result."""
        with contextlib.suppress(OSError):
            return {path.stem for path in self.folder.iterdir() if path.stem in keys and path.suffix == ".json"}
        return set()

    def write(self, key: str, graded: bytes) -> None:
        """Store the result of a job."""
        write_file(self._path(key), graded)

    def forget(self, key: str) -> None:
        """Delete the result of a job, so that the job is done again."""
        self._path(key).unlink(missing_ok=True)

    def write_plan(self, plan: Plan) -> None:
        """Write the plan."""
        write_file(self.folder / PLAN, msgspec.json.encode(plan))

    def read_plan(self) -> Plan:
        """Return the plan of the last run; raise GraderError if there was none."""
        try:
            return msgspec.json.decode((self.folder / PLAN).read_bytes(), type=Plan)
        except OSError as error:
            raise GraderError(
                f"no class was graded in {self.folder.parent}", "Name the folder that --out named."
            ) from error
        except (ValueError, msgspec.ValidationError) as error:
            raise GraderError(f"{self.folder / PLAN} cannot be read: {error}") from error

    def when(self, key: str) -> float | None:
        """Return the time when a job was finished, in seconds since 1970; None if it is not finished."""
        try:
            return self._path(key).stat().st_mtime
        except OSError:
            return None

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Hold the lock of the folder, so that two runs do not grade the same jobs.

        The system releases the lock when the process ends.
        """
        path = self.folder / LOCK
        try:
            file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise GraderError(f"cannot write {path}: {error.strerror}") from error
        try:
            if not try_lock(file):
                raise GraderError(
                    f"another `grader grade` writes to {self.folder.parent}",
                    "`grader grade --status DIR` shows its progress.",
                )
            yield
        finally:
            os.close(file)

    def running(self) -> bool:
        """Return whether a run is in progress here."""
        try:
            file = os.open(self.folder / LOCK, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            return not try_lock(file, shared=True)
        finally:
            os.close(file)

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}.json"
