"""``grader submit``: packs the exercises that a learner solved into one archive.

It holds only the files that course.toml lists: DAY/NAME.cu (or .py) as in exercises/, submission.json with the results
of the learner's own checks, and leaderboard.txt for learners who opt in. The same files always give the same archive.
The recipient need not trust it: `grader grade` reads only the exercises' files, and grades them again.
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
"""A file by which such an archive is recognized: every one contains it."""
OPT_IN = "leaderboard.txt"
"""A student who submits this file appears in the class's leaderboard, under the name in its first line."""
MOST_BYTES = 1 << 20
"""The maximum size of a file that is graded."""
MOST_NICKNAME = 40
"""The maximum length of a name in characters."""


@dataclass
class Packed:
    """The exercises in the archive, and those left out."""

    content: bytes = b""
    entries: list[Entry] = field(default_factory=list)
    unfinished: list[Entry] = field(default_factory=list)
    """Exercises in the archive that passed no check."""
    changed: list[Entry] = field(default_factory=list)
    """Exercises in the archive that were changed after the last check that they passed."""
    begun: list[Entry] = field(default_factory=list)
    """Exercises left out because they did not pass, although they were changed."""
    untouched: list[Entry] = field(default_factory=list)
    """Exercises left out because their skeletons are unchanged."""


def pack(
    course: Course, progress: Progress, wanted: Sequence[Entry], unfinished: bool = False, nickname: str = ""
) -> Packed:
    """Pack the solved exercises of ``wanted``; with ``unfinished``, also those that were only changed."""
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
            packed.changed += [entry] if progress.of(entry.name).passed_sha256 not in ("", _hash(content)) else []
            files[f"{entry.day}/{entry.file_name}"] = content
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
    """Return the learner's file; raise for a link, another kind of file, or a file that is too large."""
    path = entry.skeleton
    for place in (path.parent, path):
        if place.is_symlink():
            raise GraderError(f"{place} is a link", "Links cannot be submitted: replace the link by its target.")
    try:
        opened = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        if not stat.S_ISREG(os.fstat(opened).st_mode):
            os.close(opened)
            raise GraderError(f"{path} is not a file", "A kernel file is expected: put the file at this path.")
        with os.fdopen(opened, "rb") as file:
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise GraderError(f"cannot read {path}: {error.strerror}") from error
    if len(content) > MOST_BYTES:
        raise GraderError(f"{path} is larger than {MOST_BYTES >> 20} MB", "Larger files are not graded.")
    return content


def _list(entries: Sequence[Entry], progress: Progress, files: dict[str, bytes]) -> bytes:
    """Return the results of the learner's own checks as JSON."""
    listed = [
        {
            "exercise": entry.name,
            "file": f"{entry.day}/{entry.file_name}",
            "sha256": _hash(files[f"{entry.day}/{entry.file_name}"]),
            "passed": progress.of(entry.name).passed,
            "first_passed": progress.of(entry.name).first_passed,
            "checks": progress.of(entry.name).checks,
            "last_failed_stage": progress.of(entry.name).last_failed_stage,
        }
        for entry in entries
    ]
    return json.dumps({"format": FORMAT, "exercises": listed}, indent=1).encode() + b"\n"


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _checked(nickname: str) -> str:
    name = " ".join(nickname.split())
    if not name or not name.isprintable() or len(name) > MOST_NICKNAME:
        raise GraderError(
            f"{nickname!r} cannot be shown in a leaderboard",
            f"Choose a name of 1 to {MOST_NICKNAME} letters on one line.",
        )
    return name
