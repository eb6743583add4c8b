"""One job: one exercise of one student, on one device. Its key is a hash of everything that determines the verdict.

Students with identical files share the job, on any machine: nothing is graded twice.
"""

from __future__ import annotations

import functools
import hashlib
import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grader
from grader import __version__
from grader.course import Entry
from grader.frontend import course_headers

MAY_NOT_END = re.compile(rb"\bwhile\s*\(|\bfor\s*\([^;]*;\s*;|\bdo\b|\bgoto\b|\basm\b")
"""Constructs that an endless kernel usually contains. Kernels that end may contain them too."""


@dataclass(frozen=True)
class Job:
    """One exercise to grade. It holds only text and numbers, because it is sent between machines."""

    key: str
    exercise: str
    content: bytes
    """The kernel file."""
    seed: int
    cases: list[dict[str, Any]] = field(default_factory=list)
    """The instructor's hidden cases."""
    root: Path = Path()
    """The course's folder on the machine that runs the job."""
    device: str = "cpu"
    """The device; ``cuda``: the stages *correct* and *fast*, which need a whole GPU."""

    then: Job | None = None
    """The job that follows if this one passed."""

    @property
    def steps(self) -> list[Job]:
        """Return this job and the jobs that may follow it."""
        return [self, *(self.then.steps if self.then else [])]

    @property
    def may_not_end(self) -> bool:
        """Guess whether the kernel may be endless, so that its job starts early. The guess changes no grade."""
        return bool(MAY_NOT_END.search(self.content))


def plan(entry: Entry, content: bytes, seed: int, cases: list[dict[str, Any]], root: Path, device: str = "cpu") -> Job:
    """Return the jobs of a kernel file: the simulator's, and a GPU's after it if ``device`` is ``cuda``."""
    listed = [entry.name, entry.title, entry.kind, entry.points, entry.architecture]
    decides = [__version__, code_digest(), seed, listed, cases, _of_file(entry.tasks), _of_headers()]

    def job(device: str, then: Job | None) -> Job:
        key = hashlib.sha256(json.dumps([*decides, device]).encode() + content).hexdigest()[:32]
        return Job(key, entry.name, content, seed, cases, root, device, then)

    return job("cpu", job("cuda", None) if device == "cuda" else None)


@functools.cache
def code_digest() -> str:
    """Return a hash of the grader's code. If the code changes, everyone is graded again."""
    package = Path(grader.__file__).parent
    return _of_files(package, [path for path in package.rglob("*") if "__pycache__" not in path.parts])


@functools.cache
def _of_headers() -> str:
    """Return a hash of the course's headers, which become part of a kernel."""
    return _of_files(course_headers.FOLDER, list(course_headers.FOLDER.glob("*.cuh")))


def _of_files(folder: Path, paths: list[Path]) -> str:
    digest = hashlib.sha256()
    for path in sorted(paths):
        if path.is_file():
            digest.update(f"{path.relative_to(folder)}\0".encode() + path.read_bytes())
    return digest.hexdigest()


def _of_file(path: Path) -> str:
    return _hash(path, path.stat().st_mtime_ns)


@functools.cache
def _hash(path: Path, written: int) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
