"""Finds the original skeleton of an exercise after the learner has changed the file.

With git, it is the newest version that someone other than the learner committed. If all commits are by one author (a
course author, or a learner who put a downloaded copy under git), it is the last commit. Without git it is the copy that
the grader saved when it first ran here. In a learner's own copy of the course it is the one that ``grader init`` saved.
"""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from grader.course import Course, Entry
from grader.course.learner import own_copy
from grader.course.puzzles import Puzzle


@dataclass(frozen=True)
class Pristine:
    """An original skeleton."""

    content: bytes
    source: str
    """The origin of the skeleton, such as a git commit, as text for the learner."""


def find(course: Course, entry: Entry) -> Pristine | None:
    """Return the original skeleton of an exercise, or None if no copy is found."""
    if isinstance(entry, Puzzle):
        return Pristine(entry.text.encode(), "the puzzle")
    if own_copy.is_own_copy(course.root):
        return _kept(course, entry, "the copy that `grader init` kept")
    kept = "the copy that was kept when the grader first ran here"
    return _from_git(course.root, entry) or _kept(course, entry, kept)


def untouched(course: Course, entry: Entry) -> bool:
    """Return whether the learner's file equals the original skeleton; False if the original is unknown."""
    return _is_file_of(entry, find(course, entry))


def committed(course: Course, entry: Entry) -> bool:
    """Return whether git has the learner's current file. A copy saved by the grader does not count: it may be older."""
    return _is_file_of(entry, find(course, entry) if isinstance(entry, Puzzle) else _from_git(course.root, entry))


def _is_file_of(entry: Entry, given: Pristine | None) -> bool:
    """Return whether the learner's file has this content."""
    try:
        return given is not None and entry.skeleton.read_bytes() == given.content
    except OSError:
        return False


def keep_copies(course: Course) -> None:
    """Save a copy of every skeleton that has no copy yet, unless git or `grader init` has one. Ignore errors."""
    if (course.root / ".git").exists() or own_copy.is_own_copy(course.root):
        return
    for entry in course.exercises:
        copy = _copy_of(course, entry)
        if copy.exists() or not entry.skeleton.is_file():
            continue
        try:
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(entry.skeleton, copy)
        except OSError:
            return


def _copy_of(course: Course, entry: Entry) -> Path:
    return own_copy.skeleton_copy(course.root, entry.day, entry.skeleton.name)


def _kept(course: Course, entry: Entry, source: str) -> Pristine | None:
    try:
        return Pristine(_copy_of(course, entry).read_bytes(), source)
    except OSError:
        return None


def _from_git(root: Path, entry: Entry) -> Pristine | None:
    path = entry.skeleton.relative_to(root).as_posix()
    log = _git(root, "log", "--format=%H%x09%ae%x09%cs", "--", path)
    commits = [line.split("\t") for line in log.decode("utf-8", "replace").splitlines()] if log else []
    if not commits:
        return None
    me = (_git(root, "config", "user.email") or b"").decode("utf-8", "replace").strip()
    by_others = [commit for commit in commits if me and commit[1] != me]
    for commit, _, date in [*by_others, *commits]:
        content = _git(root, "show", f"{commit}:{path}")
        if content is not None:
            return Pristine(content, f"commit {commit[:9]} of {date}")
    return None


def _git(root: Path, *arguments: str) -> bytes | None:
    """Return git's output; None if it fails or is not installed."""
    try:
        result = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return result.stdout if result.returncode == 0 else None
