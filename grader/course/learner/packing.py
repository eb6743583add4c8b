"""``grader submit``: the exercises that a learner solved, as one archive for whoever grades them.

It holds the files that course.toml lists and nothing else: DAY/NAME.cu as they lie in exercises/, submission.json, which says
what the learner's own checks found, and leaderboard.txt of those who want to be named. Made twice from the same files it
is the same. Who receives it need not believe it: `grader grade` reads the kernels alone, and grades them again.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass, field

from grader.course import Course, Entry
from grader.course.learner import pristine
from grader.course.learner.progress import Progress
from grader.course.learner.zipped import zipped
from grader.setup.errors import GraderError

FORMAT = 1
LISTED = "submission.json"
"""In every such archive, and in no other."""
OPT_IN = "leaderboard.txt"
"""Who hands this file in is named in the class's leaderboard, by its first line."""
MOST_BYTES = 1 << 20
"""Of one file: no more is graded."""
MOST_NICKNAME = 40
"""Characters."""


@dataclass
class Packed:
    """What is in the archive, and what is not."""

    content: bytes = b""
    entries: list[Entry] = field(default_factory=list)
    unfinished: list[Entry] = field(default_factory=list)
    """In the archive though no check passed."""
    begun: list[Entry] = field(default_factory=list)
    """Changed, not passed, and left out."""
    untouched: list[Entry] = field(default_factory=list)
    """As the course gave them: left out."""


def pack(
    course: Course, progress: Progress, wanted: Sequence[Entry], unfinished: bool = False, nickname: str = ""
) -> Packed:
    """The archive of those of ``wanted`` that are solved, with ``unfinished`` also of those that are begun."""
    packed = Packed()
    files: dict[str, bytes] = {}
    for entry in wanted:
        passed = progress.of(entry.name).passed
        content = _read(entry)
        if pristine.untouched(course, entry):
            packed.untouched.append(entry)
        elif passed or unfinished:
            packed.entries.append(entry)
            packed.unfinished += [] if passed else [entry]
            files[f"{entry.name}.cu"] = content
        else:
            packed.begun.append(entry)
    if not files:
        return packed
    files[LISTED] = _list(packed.entries, progress, files)
    if nickname:
        files[OPT_IN] = _checked(nickname).encode() + b"\n"
    packed.content = zipped(files)
    return packed


def _read(entry: Entry) -> bytes:
    """The learner's file: nothing but a plain file of a size that is graded."""
    path = entry.skeleton
    for place in (path.parent, path):
        if place.is_symlink():
            raise GraderError(f"{place} is a link", "Put the file itself in its place: links are not handed in.")
    try:
        opened = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        if not stat.S_ISREG(os.fstat(opened).st_mode):
            os.close(opened)
            raise GraderError(f"{path} is no file", "Put the kernel file in its place.")
        with os.fdopen(opened, "rb") as file:
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise GraderError(f"cannot read {path}: {error.strerror}") from error
    if len(content) > MOST_BYTES:
        raise GraderError(f"{path} is larger than {MOST_BYTES >> 20} MB", "No kernel is: that much is not graded.")
    return content


def _list(entries: Sequence[Entry], progress: Progress, files: dict[str, bytes]) -> bytes:
    """What the learner's own checks found."""
    listed = [
        {
            "exercise": entry.name,
            "file": f"{entry.name}.cu",
            "sha256": hashlib.sha256(files[f"{entry.name}.cu"]).hexdigest(),
            "passed": progress.of(entry.name).passed,
            "first_passed": progress.of(entry.name).first_passed,
            "checks": progress.of(entry.name).checks,
            "last_failed_stage": progress.of(entry.name).last_failed_stage,
        }
        for entry in entries
    ]
    return json.dumps({"format": FORMAT, "exercises": listed}, indent=1).encode() + b"\n"


def _checked(nickname: str) -> str:
    name = " ".join(nickname.split())
    if not name or not name.isprintable() or len(name) > MOST_NICKNAME:
        raise GraderError(
            f"{nickname!a} cannot be shown in a leaderboard",
            f"Choose a name of 1 to {MOST_NICKNAME} letters on one line.",
        )
    return name
