"""Writes an exercise's file without losing the learner's work in it.

The previous contents are saved beside the file, unless git has them or this module wrote them. ``.grader/written``
holds a hash of the text that this module wrote last.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from pathlib import Path

from grader.course import Course, Entry
from grader.course.learner import pristine
from grader.setup.errors import GraderError
from grader.setup.files import replace_file


def write(course: Course, entry: Entry, text: str) -> Path | None:
    """Replace the exercise's file by ``text`` atomically; return the backup of the learner's work, if one was made."""
    file = Path(os.path.realpath(entry.skeleton))  # replace the link's target, not the link
    content = text.encode()
    try:
        present = file.read_bytes() if file.exists() else None
        if present == content:
            return None
        pristine.keep_copies(course)
        expendable = present is None or _sum(present) == _written(course, entry) or pristine.committed(course, entry)
        backup = None if expendable or present is None else keep(file, present)
        replace_file(file, content)
    except OSError as error:
        raise GraderError(f"cannot write {file}: {error.strerror or error}", "Nothing was changed.") from error
    _remember(course, entry, content)
    return backup


def keep(file: Path, content: bytes) -> Path:
    """Save ``content`` as the first of name.cu.1.bak, name.cu.2.bak, ... that does not exist yet."""
    number = 1
    while True:
        backup = file.with_name(f"{file.name}.{number}.bak")
        with contextlib.suppress(FileExistsError), open(backup, "xb") as out:
            out.write(content)
            return backup
        number += 1


def _sum(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _memory(course: Course, entry: Entry) -> Path:
    return course.root / ".grader" / "written" / entry.day / f"{entry.variable}.sha256"


def _written(course: Course, entry: Entry) -> str:
    try:
        return _memory(course, entry).read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return ""


def _remember(course: Course, entry: Entry, content: bytes) -> None:
    """Store the hash of the text. If that fails, the next write only makes an unnecessary backup."""
    path = _memory(course, entry)
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_sum(content) + "\n", encoding="ascii")
