"""The students' submissions: a folder or a zip archive each. Archives are read, never unpacked."""

from __future__ import annotations

import hashlib
import io
import os
import re
import stat
import tempfile
import zipfile
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from grader.classroom import class_archive
from grader.classroom.archives import Refused, checked_name, shown
from grader.classroom.incidents import Incident
from grader.course.learner.packing import MOST_NICKNAME, OPT_IN
from grader.course.manifest import SUFFIXES
from grader.setup.errors import GraderError

MOST_ENTRIES = 500
MOST_BYTES = 20 << 20
"""The maximum size of a whole submission, unpacked."""
MOST_KERNEL_BYTES = 1 << 20
MOST_DEPTH = 40
"""The maximum depth of nested folders."""
_NOT_READ = (".cu", ".py", ".rar", ".7z", ".tar", ".gz", ".tgz", ".xz", ".bz2")
"""Suffixes of files that may be a student's work but are not read. They are reported."""
_CANVAS = re.compile(r"(?P<student>[^\W\d_][^_]*)(?:_LATE)?_(?P<number>\d+)_(?P<attachment>\d+)_(?P<file>.+)")
"""The name of an attachment in Canvas's archive: the student's name and number, the attachment's number, the file."""


@dataclass
class Submission:
    """One student's submission."""

    student: str
    path: Path
    kernels: dict[str, bytes] = field(default_factory=dict)
    """The .cu and .py files, by their path in the submission."""
    nickname: str = ""
    """The name on the leaderboard; empty: the student did not opt in."""
    refused: str = ""
    """The reason why the submission was rejected; empty if it was read."""
    incident: Incident | None = None
    """An internal error of the grader while it read the submission."""

    @property
    def digest(self) -> str:
        """Return a hash of all kernel files, or of the reason for the rejection."""
        total = hashlib.sha256(self.refused.encode())
        for name, content in sorted(self.kernels.items()):
            total.update(f"{name}\0{len(content)}\0".encode())
            total.update(content)
        return total.hexdigest()

    @property
    def folder_name(self) -> str:
        """A name for the folder of the student's results, safe as a path and different for different students.

        A name of lower-case letters, digits, dashes and underscores is kept. Other names get a hash at the end, because
        some file systems do not distinguish capital letters. A name that already ends like a hash gets another one, so
        that it cannot equal a name with a hash. Names have no dot, unlike the grader's own files.
        """
        if re.fullmatch(r"[a-z0-9_][a-z0-9_-]{0,79}", self.student) and not re.search(r"-[0-9a-f]{16}$", self.student):
            return self.student
        plain = re.sub(r"[^\w.-]+", "_", self.student, flags=re.ASCII).strip("._")[:80]
        return f"{plain or 'student'}-{hashlib.sha256(os.fsencode(self.student)).hexdigest()[:16]}"


def find_submissions(folder: Path) -> list[Submission]:
    """Return the submissions in a folder, sorted by student; hidden and other files are left out.

    ``folder`` may also be an archive: that of a class from a learning system, or one student's by ``grader submit``.
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
    several = _attachments(paths)
    for path in paths:
        kind = path.suffix.lower()
        if path in several:
            if path == several[path][0]:
                found.append(_read(Submission(path.stem, path), lambda first: _from_attachments(several[first])))
            continue
        if path.name.startswith(".") or path.name == "__MACOSX":
            continue
        if path.is_symlink():
            found.append(Submission(path.name, path, refused="it is a link"))
        elif path.is_dir():
            found.append(_read(Submission(path.name, path), _from_folder))
        elif kind == ".zip":
            found.append(_read(Submission(path.stem, path), _from_archive))
        elif kind in _NOT_READ:
            reason = f"the submission is neither a folder nor a zip archive: put {kind} into a folder or a zip archive"
            found.append(Submission(path.name, path, refused=reason))
    if not found:
        raise GraderError(
            f"there are no submissions in {folder}",
            "This folder should hold a folder or a zip archive for each student.",
        )
    _rename_duplicates(found)
    return found


def _attachments(paths: Sequence[Path]) -> dict[Path, list[Path]]:
    """Return, for each attachment from Canvas, all attachments of its student. Omit a student's only archive."""
    files = [path for path in paths if path.is_file() and not path.is_symlink() and not path.name.startswith(".")]
    names = {path: _CANVAS.fullmatch(path.name) for path in files}
    work = [path for path in files if _is_archive(path.name) or _is_kernel(path.name)]
    if not _are_from_canvas([names[path] for path in work]):
        return {}
    by_student: dict[str, list[Path]] = defaultdict(list)
    for path, name in names.items():
        if name:
            by_student[name["number"]].append(path)
    return {
        path: together
        for together in by_student.values()
        if not set(together).isdisjoint(work) and (len(together) > 1 or not _is_archive(together[0].name))
        for path in together
    }


def _are_from_canvas(names: Sequence[re.Match[str] | None]) -> bool:
    """Return whether files are named as Canvas names them, and not only like that, as ``lab_3_01_ann.zip`` is."""
    found = [name for name in names if name]
    students = {(name["number"], name["student"]) for name in found}
    attachments, numbers = {name["attachment"] for name in found}, {number for number, _ in students}
    if len(attachments) < len(names) or len(numbers) < len(students):
        return False
    several = len({student for _, student in students}) > 1
    return several or all(int(name["attachment"]) >= 100 for name in found)


def read_submission(student: str, folder: Path) -> Submission:
    """Read one student's submission from a folder."""
    return _read(Submission(student, folder), _from_folder)


def _in_archive(path: Path) -> list[Submission]:
    """Return the submissions in a downloaded archive: one student's if it has the course's layout."""
    if class_archive.is_of_one_student(path):
        return [_read(Submission(path.stem, path), _from_archive)]
    with tempfile.TemporaryDirectory() as folder:
        class_archive.unpack(path, Path(folder))
        return find_submissions(Path(folder))


def _rename_duplicates(submissions: list[Submission]) -> None:
    """Rename students with equal names, such as a folder and its zip, to their file names, which are unique."""
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
        others = sorted(files.keys() - submission.kernels)
        opted = (files[place] for place in others if PurePosixPath(place).name == OPT_IN)
        submission.nickname = next(map(_nickname, opted), "")
        if not submission.kernels:
            submission.refused = f"it contains no .cu or .py file{_listed(others)}"
    except Refused as reason:
        submission.refused = str(reason)
    except OSError as error:
        submission.refused = f"it cannot be read: {error.strerror or error}"
    except Exception as error:
        submission.incident = Incident.of(error, "reading the submission")
        submission.refused = f"the grader itself failed to read it (reference {submission.incident.reference})"
    return submission


def _listed(places: list[str]) -> str:
    """Return text that says which files a submission has instead of kernels."""
    if not places:
        return ": it is empty"
    more = f" and {len(places) - 3} more" if len(places) > 3 else ""
    return f", only {', '.join(map(shown, places[:3]))}{more}"


def _from_folder(folder: Path) -> dict[str, bytes]:
    """Return the files of a folder by their path; a file that is not read has no content."""
    return _from_paths({name: folder / name for name in _files(folder)})


def _from_attachments(paths: Sequence[Path]) -> dict[str, bytes]:
    """Return the files of one student's attachments from Canvas, by the names that the student gave them."""
    by_name: dict[str, Path] = {}
    for path in paths:
        match = _CANVAS.fullmatch(path.name)
        name = match["file"] if match else path.name
        if name in by_name:
            raise Refused(f"it holds {shown(name)} twice")
        by_name[name] = path
    return _from_paths(by_name)


def _from_paths(paths: Mapping[str, Path]) -> dict[str, bytes]:
    kernels: dict[str, bytes] = {}
    problems: list[Refused] = []
    total = 0
    for name, path in paths.items():
        # learning systems nest archives in this way
        if _is_archive(path.name):
            inside = _nested(name, lambda path=path: _from_archive(path), problems)  # type: ignore[misc]
            total += sum(map(len, inside.values()))
            _check_size(name, 0, total)
            _add(kernels, inside)
            continue
        base = PurePosixPath(name).name
        if not _is_read(base):
            if not base.startswith("."):
                kernels[name] = b""
            continue
        with _open(path) as file:
            content = file.read(MOST_KERNEL_BYTES + 1)
        total += len(content)
        _check_size(name, len(content), total)
        kernels[name] = content
    return _unless_all_failed(kernels, problems)


def _nested(name: str, read: Callable[[], dict[str, bytes]], problems: list[Refused]) -> dict[str, bytes]:
    """Return the files of an archive in a submission; only its name, and the reason in ``problems``, if it is bad."""
    try:
        return {f"{name}/{place}": content for place, content in read().items()}
    except Refused as problem:
        problems.append(Refused(f"in {shown(name)}: {problem}"))
        return {name: b""}


def _add(files: dict[str, bytes], inside: dict[str, bytes]) -> None:
    files.update(inside)
    if len(files) > MOST_ENTRIES:
        raise Refused(f"it holds more than {MOST_ENTRIES} files, with those of its archives")


def _unless_all_failed(files: dict[str, bytes], problems: list[Refused]) -> dict[str, bytes]:
    """Return the files. Raise the first problem of an archive if there is no kernel besides."""
    if problems and not any(_is_kernel(PurePosixPath(name).name) for name in files):
        raise problems[0]
    return files


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
                        raise Refused(f"its folders are nested more than {MOST_DEPTH} deep")
                    folders.append(place)
                elif not entry.is_file():
                    raise Refused(f"{shown(str(place))} is neither a file nor a folder")
                elif "__MACOSX" not in place.parts:
                    files.append(str(place))
    return sorted(files)


def _open(path: Path) -> BinaryIO:
    """Open a regular file without blocking; raise for anything else, such as a named pipe."""
    file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise Refused(f"{shown(path.name)} is neither a file nor a folder")
    return os.fdopen(file, "rb")


def _from_archive(path: Path) -> dict[str, bytes]:
    """Return the files of an archive by their path; a file that is not read has no content."""
    with _open(path) as file:
        return _unzipped(file)


def _unzipped(file: BinaryIO, nested: bool = False) -> dict[str, bytes]:
    """Return the files of an archive, and of the archives in it. ``nested``: it is in another archive."""
    kernels: dict[str, bytes] = {}
    problems: list[Refused] = []
    try:
        with zipfile.ZipFile(file) as archive:
            members = archive.infolist()
            if len(members) > MOST_ENTRIES:
                raise Refused(f"it holds more than {MOST_ENTRIES} files")
            if sum(member.file_size for member in members) > MOST_BYTES:
                raise Refused(f"it would unpack to more than {MOST_BYTES >> 20} MB")
            total = 0
            for member in members:
                name = checked_name(member)
                base = PurePosixPath(name).name
                if member.is_dir() or name.startswith("__MACOSX/"):
                    continue
                if _is_archive(base) and not nested:
                    with archive.open(member) as packed:
                        inner = io.BytesIO(packed.read(MOST_BYTES))
                    inside = _nested(name, lambda inner=inner: _unzipped(inner, nested=True), problems)  # type: ignore[misc]
                    total += sum(map(len, inside.values()))
                    _check_size(name, 0, total)
                    _add(kernels, inside)
                    continue
                if not _is_read(base):
                    if not base.startswith("."):
                        kernels[name] = b""
                    continue
                if name in kernels:
                    raise Refused(f"it holds {shown(name)} twice")
                with archive.open(member) as packed:  # the size that the archive declares may be wrong
                    content = packed.read(MOST_KERNEL_BYTES + 1)
                total += len(content)
                _check_size(name, len(content), total)
                kernels[name] = content
    except (zipfile.BadZipFile, zipfile.LargeZipFile, EOFError, ValueError, NotImplementedError, RuntimeError) as error:
        raise Refused(f"it is not a readable zip archive: {error}") from error
    except Exception as error:  # zlib, lzma and bz2 raise their own errors
        if isinstance(error, (Refused, OSError)):
            raise
        raise Refused(f"it is damaged: {error}") from error
    return _unless_all_failed(kernels, problems)


def _nickname(content: bytes) -> str:
    """Return a student's nickname: one line without invisible characters."""
    lines = content[: 8 * MOST_NICKNAME].decode("utf-8-sig", errors="replace").strip().splitlines()
    line = "".join(c if c.isprintable() else " " for c in lines[0]) if lines else ""
    return " ".join(line.split())[:MOST_NICKNAME]


def _is_archive(name: str) -> bool:
    return name.lower().endswith(".zip") and not name.startswith(".")


def _is_read(name: str) -> bool:
    return _is_kernel(name) or name == OPT_IN


def _is_kernel(name: str) -> bool:
    """Return whether a file may be an exercise's. macOS adds hidden files with the same suffix."""
    return name.lower().endswith(tuple(SUFFIXES.values())) and not name.startswith(".") and name != "tasks.py"


def _check_size(name: str, size: int, total: int) -> None:
    if size > MOST_KERNEL_BYTES:
        raise Refused(f"{shown(name)} is larger than {MOST_KERNEL_BYTES >> 20} MB")
    if total > MOST_BYTES:
        raise Refused(f"its kernels are larger than {MOST_BYTES >> 20} MB together")
