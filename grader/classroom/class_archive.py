"""The archive of a whole class, from "download all submissions" of a learning system.

It is unpacked into a separate folder. Only files that can belong to a submission are unpacked. Students chose the names
and the content, so every name and size is checked during unpacking.
"""

from __future__ import annotations

import re
import zipfile
from pathlib import Path, PurePosixPath

from grader.classroom.archives import Refused, checked_name, shown
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
        return any(name == LISTED or _DAY.match(name) for name in archive.namelist()[:MOST_ENTRIES])


def unpack(path: Path, folder: Path) -> None:
    """Write the archive's submissions into an empty folder.

    Of a submission without a file that can belong to it, only the names are kept, as empty files: the student is then
    listed with a reason instead of missing from the class.
    """
    total = 0
    others: dict[str, list[PurePosixPath]] = {}
    with _opened(path) as archive:
        if len(archive.infolist()) > MOST_ENTRIES:
            raise _cannot(path, f"it holds more than {MOST_ENTRIES} files")
        for member in archive.infolist():
            try:
                place = PurePosixPath(checked_name(member))
                if member.is_dir() or place.suffix.lower() not in _SUFFIXES:
                    if not any(part.startswith(".") or part == "__MACOSX" for part in place.parts):
                        others.setdefault(place.parts[0], []).extend([] if member.is_dir() else [place])
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
    for top, places in others.items():
        if (folder / top).exists():
            continue
        try:
            for place in places[:MOST_NAMES]:
                _write(folder / place, b"")
            if not places:
                (folder / top).mkdir()
        except OSError as error:
            raise _cannot(path, f"{shown(top)}: {error}") from error


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
