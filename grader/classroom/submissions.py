"""The students' submissions: a folder or a zip archive each. Archives are read, never unpacked."""

from __future__ import annotations

import hashlib
import os
import re
import stat
import tempfile
import zipfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from grader.classroom import class_archive
from grader.classroom.archives import Refused, checked_name, shown
from grader.classroom.incidents import Incident
from grader.course.learner.packing import MOST_NICKNAME, OPT_IN
from grader.setup.errors import GraderError

MOST_ENTRIES = 500
MOST_BYTES = 20 << 20
"""Of a whole submission, unpacked."""
MOST_KERNEL_BYTES = 1 << 20
MOST_DEPTH = 40
"""Of folders in folders."""
_NOT_READ = (".cu", ".rar", ".7z", ".tar", ".gz", ".tgz", ".xz", ".bz2")
"""A student's work in a form that is not read, which must not pass unnoticed."""


@dataclass
class Submission:
    """One student's submission."""

    student: str
    path: Path
    kernels: dict[str, bytes] = field(default_factory=dict)
    """The .cu files, by their place in the submission."""
    nickname: str = ""
    """In the leaderboard; none: not in it."""
    refused: str = ""
    """Why nothing of it was read."""
    incident: Incident | None = None
    """The grader's own fault that was met while it was read."""

    @property
    def digest(self) -> str:
        """A hash of all that is graded."""
        total = hashlib.sha256(self.refused.encode())
        for name, content in sorted(self.kernels.items()):
            total.update(f"{name}\0{len(content)}\0".encode())
            total.update(content)
        return total.hexdigest()

    @property
    def folder_name(self) -> str:
        """A name for the student's results: no path, no surprises, different for different students.

        Only a name of small letters, digits and dashes stays as it is. It has no dot, as the names of our own files
        have, and differs from others by more than capital letters; no student can be called like what has a hash at its
        end.
        """
        if re.fullmatch(r"[a-z0-9_][a-z0-9_-]{0,79}", self.student) and not re.search(r"-[0-9a-f]{16}$", self.student):
            return self.student
        plain = re.sub(r"[^\w.-]+", "_", self.student, flags=re.ASCII).strip("._")[:80]
        return f"{plain or 'student'}-{hashlib.sha256(os.fsencode(self.student)).hexdigest()[:16]}"


def find_submissions(folder: Path) -> list[Submission]:
    """All of a folder, sorted by student; hidden files and other files are left out.

    In place of the folder an archive of it, as learning systems give it, or of one student, as ``grader submit`` makes
    it.
    """
    if folder.is_file() and folder.suffix.lower() == ".zip":
        return _in_archive(folder)
    if not folder.is_dir():
        raise GraderError(
            f"there is no folder {folder}", "Name the folder that holds a folder or zip for each student."
        )
    try:
        paths = sorted(folder.iterdir())
    except OSError as error:
        raise GraderError(f"{folder} cannot be read: {error.strerror}") from error
    found = []
    for path in paths:
        kind = path.suffix.lower()
        if path.name.startswith(".") or path.name == "__MACOSX":
            continue
        if path.is_symlink():
            found.append(Submission(path.name, path, refused="it is a link"))
        elif path.is_dir():
            found.append(_read(Submission(path.name, path), _from_folder))
        elif kind == ".zip":
            found.append(_read(Submission(path.stem, path), _from_archive))
        elif kind in _NOT_READ:
            reason = f"it is neither a folder nor a zip archive: put {kind} into one"
            found.append(Submission(path.name, path, refused=reason))
    if not found:
        raise GraderError(f"there are no submissions in {folder}", "It should hold a folder or a zip for each student.")
    _tell_apart(found)
    return found


def read_submission(student: str, folder: Path) -> Submission:
    """One student's folder."""
    return _read(Submission(student, folder), _from_folder)


def _in_archive(path: Path) -> list[Submission]:
    """Return the submissions in a downloaded archive: one student's if it has the course's layout."""
    if class_archive.is_of_one_student(path):
        return [_read(Submission(path.stem, path), _from_archive)]
    with tempfile.TemporaryDirectory() as folder:
        class_archive.unpack(path, Path(folder))
        return find_submissions(Path(folder))


def _tell_apart(submissions: list[Submission]) -> None:
    """Students of one name, as a folder and a zip of it, get the names of their files, of which no two are the same."""
    while True:
        count = Counter(submission.student for submission in submissions)
        same = [submission for submission in submissions if count[submission.student] > 1]
        if not same:
            return
        for submission in same:
            submission.student = submission.path.name


def _read(submission: Submission, reader: Callable[[Path], dict[str, bytes]]) -> Submission:
    try:
        files = reader(submission.path)
        submission.kernels = {
            place: content for place, content in files.items() if _is_kernel(PurePosixPath(place).name)
        }
        submission.nickname = next((_nickname(files[place]) for place in sorted(files.keys() - submission.kernels)), "")
        if not submission.kernels:
            submission.refused = "it holds no .cu file"
    except Refused as reason:
        submission.refused = str(reason)
    except OSError as error:
        submission.refused = f"it cannot be read: {error.strerror or error}"
    except Exception as error:
        submission.incident = Incident.of(error, "reading the submission")
        submission.refused = f"the grader itself failed to read it (reference {submission.incident.reference})"
    return submission


def _from_folder(folder: Path) -> dict[str, bytes]:
    kernels: dict[str, bytes] = {}
    total = 0
    for name in _files(folder):
        path = folder / name
        if path.suffix.lower() == ".zip" and not path.name.startswith("."):  # how learning systems pass archives on
            inside = {f"{name}/{place}": content for place, content in _from_archive(path).items()}
            total += sum(map(len, inside.values()))
            _check_size(name, 0, total)
            kernels.update(inside)
        if not _is_read(path.name):
            continue
        with _open(path) as file:
            content = file.read(MOST_KERNEL_BYTES + 1)
        total += len(content)
        _check_size(name, len(content), total)
        kernels[name] = content
    return kernels


def _files(folder: Path) -> list[str]:
    """Return the paths of all files below a folder, sorted; raise for anything but files and folders."""
    files = []
    folders = [PurePosixPath()]
    entries = 0
    while folders:
        inside = folders.pop()
        with os.scandir(folder / inside) as scan:
            for entry in scan:
                place = inside / entry.name
                entries += 1
                if entries > MOST_ENTRIES:
                    raise Refused(f"it holds more than {MOST_ENTRIES} files")
                if entry.is_symlink():
                    raise Refused(f"{shown(str(place))} is a link")
                if entry.is_dir():
                    if len(place.parts) > MOST_DEPTH:
                        raise Refused(f"its folders lie more than {MOST_DEPTH} deep in each other")
                    folders.append(place)
                elif not entry.is_file():
                    raise Refused(f"{shown(str(place))} is neither a file nor a folder")
                elif "__MACOSX" not in place.parts:
                    files.append(str(place))
    return sorted(files)


def _open(path: Path) -> BinaryIO:
    """Open a regular file only: opening a pipe would wait for its writer."""
    file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise Refused(f"{shown(path.name)} is neither a file nor a folder")
    return os.fdopen(file, "rb")


def _from_archive(path: Path) -> dict[str, bytes]:
    kernels: dict[str, bytes] = {}
    try:
        with _open(path) as file, zipfile.ZipFile(file) as archive:
            members = archive.infolist()
            if len(members) > MOST_ENTRIES:
                raise Refused(f"it holds more than {MOST_ENTRIES} files")
            if sum(member.file_size for member in members) > MOST_BYTES:
                raise Refused(f"it would unpack to more than {MOST_BYTES >> 20} MB")
            total = 0
            for member in members:
                name = checked_name(member)
                if member.is_dir() or not _is_read(PurePosixPath(name).name) or name.startswith("__MACOSX/"):
                    continue
                if name in kernels:
                    raise Refused(f"it holds {shown(name)} twice")
                with archive.open(member) as packed:  # what the list says of sizes may be a lie
                    content = packed.read(MOST_KERNEL_BYTES + 1)
                total += len(content)
                _check_size(name, len(content), total)
                kernels[name] = content
    except (zipfile.BadZipFile, zipfile.LargeZipFile, EOFError, ValueError, NotImplementedError, RuntimeError) as error:
        raise Refused(f"it is not a zip archive that can be read: {error}") from error
    except Exception as error:  # zlib, lzma and bz2 have errors of their own
        if isinstance(error, (Refused, OSError)):
            raise
        raise Refused(f"it is damaged: {error}") from error
    return kernels


def _nickname(content: bytes) -> str:
    """Return a student's nickname: one line without invisible characters."""
    lines = content[: 8 * MOST_NICKNAME].decode("utf-8-sig", errors="replace").strip().splitlines()
    line = "".join(c if c.isprintable() else " " for c in lines[0]) if lines else ""
    return " ".join(line.split())[:MOST_NICKNAME]


def _is_read(name: str) -> bool:
    return _is_kernel(name) or name == OPT_IN


def _is_kernel(name: str) -> bool:
    """Hidden ones are what a Mac adds."""
    return name.lower().endswith(".cu") and not name.startswith(".")


def _check_size(name: str, size: int, total: int) -> None:
    if size > MOST_KERNEL_BYTES:
        raise Refused(f"{shown(name)} is larger than {MOST_KERNEL_BYTES >> 20} MB")
    if total > MOST_BYTES:
        raise Refused(f"its kernels are larger than {MOST_BYTES >> 20} MB together")
