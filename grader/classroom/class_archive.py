"""The archive of a whole class, from "download all submissions" of a learning system.

It is unpacked into a separate folder. Only files that can belong to a submission are unpacked. Students chose the names
and the content, so every name and size is checked during unpacking.
"""

from __future__ import annotations

import re
import zipfile
from pathlib import Path, PurePosixPath

from grader.classroom.archives import COURSE, Refused, checked_name, shown
from grader.course.learner.packing import LISTED
from grader.course.manifest import SUFFIXES
from grader.setup.errors import GraderError

MOST_ENTRIES = 100_000
MOST_BYTES = 1 << 30
"""The maximum total size after unpacking."""
MOST_FILE_BYTES = 20 << 20
"""A larger file is truncated, so that it is no longer a valid archive."""
_SUFFIXES = {*SUFFIXES.values(), ".txt", ".zip", ".rar", ".7z", ".tar", ".gz", ".tgz", ".xz", ".bz2"}
MOST_NAMES = 100
"""The maximum number of names kept for a submission without a file that is unpacked."""
_DAY = re.compile(r"day\d+_")


def is_of_one_student(path: Path) -> bool:
    """Return whether an archive has kernels in the course's layout, instead of a folder or archive per student."""
    with _opened(path) as archive:
        return any(in_layout(re.split(r"[/\\]", name, maxsplit=1)[0]) for name in archive.namelist()[:MOST_ENTRIES])


def in_layout(name: str) -> bool:
    """Return whether a file or folder of this name belongs in a submission. A student's folder has another name."""
    return name in (LISTED, "exercises") or bool(_DAY.match(name))


def unpack(path: Path, folder: Path) -> None:
    """Write the archive's submissions into an empty folder.

    If a submission has only files that cannot be graded, write empty files with their names. The student is then listed
    with a reason, and is not missing from the class.
    """
    total = 0
    tops = set[str]()
    others: list[tuple[PurePosixPath, bool]] = []
    with _opened(path) as archive:
        if len(archive.infolist()) > MOST_ENTRIES:
            raise _cannot(path, f"it holds more than {MOST_ENTRIES} files")
        for member in archive.infolist():
            try:
                name = checked_name(member)
                place = PurePosixPath(name)
                is_folder = name.endswith("/")
                visible = not any(part.startswith(".") or part == "__MACOSX" for part in place.parts)
                tops.update(place.parts[:1] if visible else [])
                if is_folder or (place.suffix.lower() not in _SUFFIXES and not name.endswith(f"/{COURSE}")):
                    others += [(place, is_folder)] if visible else []
                    continue
                with archive.open(member) as packed:
                    content = packed.read(MOST_FILE_BYTES)
                total += len(content)
                if total > MOST_BYTES:
                    raise Refused(f"it unpacks to more than {MOST_BYTES >> 20} MB")
                _write(folder / place, content)
            except FileExistsError as error:
                raise _cannot(path, f"it holds {shown(member.filename)} twice") from error
            except Refused as reason:
                raise _cannot(path, str(reason)) from reason
            except Exception as error:  # zlib, lzma and bz2 raise their own errors
                raise _cannot(path, f"{shown(member.filename)}: {error}") from error
    of_student: dict[PurePosixPath, list[PurePosixPath]] = {}
    for place, is_folder in others:
        student = PurePosixPath(*place.parts[: 2 if len(tops) == 1 else 1])  # 2: one folder holds the class
        of_student.setdefault(student, []).extend([] if is_folder else [place])
    for student, places in of_student.items():
        if (folder / student).exists():
            continue
        try:
            for place in places[:MOST_NAMES]:
                _write(folder / place, b"")
            if not places:
                (folder / student).mkdir(parents=True)
        except OSError as error:
            raise _cannot(path, f"{shown(str(student))}: {error}") from error


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("xb") as file:
        file.write(content)


def _opened(path: Path) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(path)
    except (OSError, zipfile.BadZipFile, ValueError, NotImplementedError) as error:
        raise _cannot(path, str(error)) from error


def _cannot(path: Path, why: str) -> GraderError:
    return GraderError(f"{path} cannot be read: {why}", "Unpack the archive into a folder, and grade the folder.")
