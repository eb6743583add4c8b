"""The students' submissions: a folder or a zip archive each. Archives are read, never unpacked."""

from __future__ import annotations

import hashlib
import re
import stat
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from grader.errors import GraderError

MOST_ENTRIES = 500
MOST_BYTES = 20 << 20
"""Of a whole submission, unpacked."""
MOST_KERNEL_BYTES = 1 << 20
_NOT_READ = (".cu", ".rar", ".7z", ".tar", ".gz", ".tgz", ".xz", ".bz2")
"""A student's work in a form that is not read, which must not pass unnoticed."""


@dataclass
class Submission:
    """What one student handed in."""

    student: str
    path: Path
    kernels: dict[str, bytes] = field(default_factory=dict)
    """The .cu files, by their place in the submission."""
    refused: str = ""
    """Why nothing of it was read."""

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
        """A name for the student's results: no path, no surprises, different for different students."""
        plain = re.sub(r"[^\w.-]+", "_", self.student, flags=re.ASCII).strip("._")[:80]
        if plain == self.student:
            return plain
        return f"{plain or 'student'}-{hashlib.sha256(self.student.encode(errors='replace')).hexdigest()[:8]}"


class Refused(Exception):
    """Why a submission is not read."""


def find_submissions(folder: Path) -> list[Submission]:
    """All of a folder, sorted by student; hidden files and other files are left out."""
    if not folder.is_dir():
        raise GraderError(
            f"there is no folder {folder}", "Name the folder that holds a folder or zip for each student."
        )
    found = []
    for path in sorted(folder.iterdir()):
        if path.name.startswith(".") or path.name == "__MACOSX":
            continue
        if path.suffix.lower() == ".zip":
            found.append(_read(Submission(path.stem, path), _from_archive))
        elif path.is_symlink():
            found.append(Submission(path.name, path, refused="it is a link"))
        elif path.is_dir():
            found.append(_read(Submission(path.name, path), _from_folder))
        elif path.suffix.lower() in _NOT_READ:
            reason = f"it is neither a folder nor a zip archive: put {path.suffix.lower()} into one"
            found.append(Submission(path.name, path, refused=reason))
    names = [submission.student for submission in found]
    for submission in found:
        if names.count(submission.student) > 1:
            submission.student = submission.path.name  # a folder and a zip of one name
    if not found:
        raise GraderError(f"there are no submissions in {folder}", "It should hold a folder or a zip for each student.")
    return found


def _read(submission: Submission, reader: Callable[[Path], dict[str, bytes]]) -> Submission:
    try:
        submission.kernels = reader(submission.path)
        if not submission.kernels:
            submission.refused = "it holds no .cu file"
    except Refused as reason:
        submission.refused = str(reason)
    except OSError as error:
        submission.refused = f"it cannot be read: {error.strerror or error}"
    return submission


def _from_folder(folder: Path) -> dict[str, bytes]:
    kernels: dict[str, bytes] = {}
    entries = total = 0
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        entries += 1
        if entries > MOST_ENTRIES:
            raise Refused(f"it holds more than {MOST_ENTRIES} files")
        if path.is_symlink():
            raise Refused(f"{_shown(name)} is a link")
        if not path.is_file() or "__MACOSX" in path.parts:
            continue
        if path.suffix.lower() == ".zip" and not path.name.startswith("."):  # how learning systems pass archives on
            inside = {f"{name}/{place}": content for place, content in _from_archive(path).items()}
            total += sum(map(len, inside.values()))
            _check_size(name, 0, total)
            kernels.update(inside)
        if not _is_kernel(path.name):
            continue
        with path.open("rb") as file:
            content = file.read(MOST_KERNEL_BYTES + 1)
        total += len(content)
        _check_size(name, len(content), total)
        kernels[name] = content
    return kernels


def _from_archive(path: Path) -> dict[str, bytes]:
    kernels: dict[str, bytes] = {}
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            if len(members) > MOST_ENTRIES:
                raise Refused(f"it holds more than {MOST_ENTRIES} files")
            if sum(member.file_size for member in members) > MOST_BYTES:
                raise Refused(f"it would unpack to more than {MOST_BYTES >> 20} MB")
            total = 0
            for member in members:
                name = _checked_name(member)
                if member.is_dir() or not _is_kernel(PurePosixPath(name).name) or name.startswith("__MACOSX/"):
                    continue
                if name in kernels:
                    raise Refused(f"it holds {_shown(name)} twice")
                with archive.open(member) as file:  # what the list says of sizes may be a lie
                    content = file.read(MOST_KERNEL_BYTES + 1)
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


def _is_kernel(name: str) -> bool:
    """Hidden ones are what a Mac adds."""
    return name.lower().endswith(".cu") and not name.startswith(".")


def _checked_name(member: zipfile.ZipInfo) -> str:
    # Python cuts names at a null byte and turns backslashes round on Windows: the original name tells.
    name = member.orig_filename
    parts = PurePosixPath(name).parts
    mode = member.external_attr >> 16
    if "\0" in name or any(ord(c) < 32 or ord(c) == 127 for c in name) or not name:
        raise Refused("a name in it has control characters")
    if "\\" in name or re.match(r"[A-Za-z]:", name):
        raise Refused(f"the name {_shown(name)} is one of another system")
    if name.startswith("/"):
        raise Refused(f"the name {_shown(name)} is an absolute path")
    if ".." in parts:
        raise Refused(f"the name {_shown(name)} leaves the archive")
    if not name.isascii() and not member.flag_bits & 0x800:
        raise Refused(f"the name {_shown(name)} is in an unknown encoding")
    if mode and stat.S_IFMT(mode) not in (0, stat.S_IFREG, stat.S_IFDIR):
        raise Refused(f"{_shown(name)} is a link or a special file")
    if member.flag_bits & 1:
        raise Refused("it is encrypted")
    return name


def _check_size(name: str, size: int, total: int) -> None:
    if size > MOST_KERNEL_BYTES:
        raise Refused(f"{_shown(name)} is larger than {MOST_KERNEL_BYTES >> 20} MB")
    if total > MOST_BYTES:
        raise Refused(f"its kernels are larger than {MOST_BYTES >> 20} MB together")


def _shown(name: str) -> str:
    return ascii(name[:80])
