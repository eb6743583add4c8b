"""The students' submissions: a folder or a zip archive each. Archives are read, never unpacked."""

from __future__ import annotations

import contextlib
import hashlib
import io
import itertools
import os
import re
import stat
import tempfile
import zipfile
from collections import Counter, defaultdict
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO, BinaryIO

from grader.classroom import class_archive
from grader.classroom.archives import COURSE, Refused, checked_name, shown
from grader.classroom.incidents import Incident
from grader.course.learner.packing import MOST_NICKNAME, OPT_IN
from grader.course.manifest import SUFFIXES
from grader.setup.errors import GraderError
from grader.verdict.words import listed

MOST_ENTRIES = 500
MOST_BYTES = 20 << 20
"""The maximum size of a whole submission, unpacked."""
MOST_KERNEL_BYTES = 1 << 20
MOST_DEPTH = 40
"""The maximum depth of nested folders."""
_OTHER_ARCHIVES = (".rar", ".7z", ".tar", ".gz", ".tgz", ".xz", ".bz2")
"""Suffixes of archives that are not read. They are reported, because they may be a student's work."""
CANVAS = re.compile(
    r"(?:(?:LATE_)?(?P<anonymous>anon_[0-9A-Za-z]{5})|(?P<name>[^._].*?)(?:_LATE)?_(?P<number>[1-9]\d*))"
    r"_(?:(?P<attachment>[1-9]\d*)_(?P<file>.+)|(?P<entry>(?:text|link)\.html))"
)
"""A file in Canvas's archive: the student's or group's name and number, the attachment's number, the file's name.

Canvas replaces name and number in an anonymous assignment, and writes a text or a link to a file of its own
(instructure/canvas-lms: lib/content_zipper.rb).
"""
MOODLE = re.compile(r"(?P<name>[^_]*)(?:_(?P<number>\d+))?_assignsubmission_(?P<plugin>[^\W_]+)_?(?P<file>.*)")
"""The name of a submission's folder in Moodle's archive: the student's name and number as a participant, the kind of
submission (file, onlinetext). Moodle can also write a submission without folders: the file's name follows.

A group submission has the group's name and number; that of all students without a group has no number
(moodle/moodle: mod/assign/classes/downloader.php).
"""

_VERSIONS = """
archive attempt backup build code copy cpu cuda day debug dist draft exercise exercises final first gpu hw
kernel kernels lab last latest lib new old optimized out part puzzle puzzles release second sol solution
solutions source src submission task test tests tmp try v version week work
"""
VERSIONS = frozenset(_VERSIONS.split())
"""Words in the names of folders that one student's work may have. They may hold versions of the same kernel."""
GRADESCOPE = "submission_metadata.yml"
"""A file beside the submissions in the folder that Gradescope exports."""


def group_in_moodle(name: str) -> str:
    """Return a group's name as Moodle writes it in the names of folders."""
    return re.sub(r"[\x00-\x1f\x7f&<>\"`|':\\/]", "", name.replace("&", "&amp;").replace("_", " "))


@dataclass
class Submission:
    """One student's submission."""

    student: str
    path: Path
    kernels: dict[str, bytes] = field(default_factory=dict)
    """The .cu and .py files, by their path in the submission."""
    nickname: str = ""
    """The name on the leaderboard; empty: the student did not opt in."""
    unread: dict[str, str] = field(default_factory=dict)
    """The reasons why other files were not read, by their path in the submission."""
    refused: str = ""
    """The reason why the submission was rejected; empty if it was read."""
    incident: Incident | None = None
    """An internal error of the grader while it read the submission."""

    @property
    def digest(self) -> str:
        """Return a hash of all kernel files, and of the reasons why the submission or a file was not read."""
        total = hashlib.sha256(self.refused.encode())
        for name, content in sorted(self.kernels.items()):
            total.update(f"{name}\0{len(content)}\0".encode())
            total.update(content)
        if self.unread:
            total.update(repr(sorted(self.unread.items())).encode())
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


@dataclass
class _Reading:
    """The files of a submission, and what counts towards its limits."""

    files: dict[str, bytes] = field(default_factory=dict)
    """The files by their path; a file that is not read has no content."""
    unread: dict[str, str] = field(default_factory=dict)
    """The reasons why files were not read."""
    entries: int = 0
    size: int = 0

    def count(self, entries: int) -> None:
        """Count files; raise if the submission has too many."""
        self.entries += entries
        if self.entries > MOST_ENTRIES:
            raise Refused(f"it holds more than {MOST_ENTRIES} files")

    def add(self, name: str, file: IO[bytes]) -> None:
        """Read a kernel; raise if it or the whole submission is too large."""
        content = file.read(MOST_KERNEL_BYTES + 1)
        self.size += len(content)
        if len(content) > MOST_KERNEL_BYTES:
            raise Refused(f"{shown(name)} is larger than {MOST_KERNEL_BYTES >> 20} MB")
        if self.size > MOST_BYTES:
            raise Refused(f"its kernels are larger than {MOST_BYTES >> 20} MB together")
        self.files[name] = content

    def add_archive(self, name: str, opened: Callable[[], BinaryIO], nested: bool) -> None:
        """Read an archive in the submission. If it is refused, keep the other files and note the reason."""
        inside = _Reading(entries=self.entries, size=self.size)
        try:
            with _damage_refused(), opened() as file:
                _unzip(file, inside, nested)
        except Refused as reason:
            self.unread[name] = str(reason)
        else:
            self.files.update({f"{name}/{place}": content for place, content in inside.files.items()})
            self.unread.update({f"{name}/{place}": reason for place, reason in inside.unread.items()})
            self.entries = inside.entries
        self.size = inside.size  # also of a refused archive, because its files were unpacked


_Reader = Callable[[Path], _Reading]


def find_submissions(folder: Path, note: Callable[[str], None] = lambda text: None) -> list[Submission]:
    """Return the submissions in a folder, sorted by student; hidden and other files are left out.

    ``folder`` may also be an archive: that of a class from a learning system, or one student's by ``grader submit``.
    ``note`` is called with a sentence about a folder that might also be read in another way.
    """
    if folder.is_file() and folder.suffix.lower() == ".zip":
        return _in_archive(folder, note)
    if not folder.is_dir():
        raise GraderError(
            f"there is no folder {folder}", "Name the folder that holds a folder or zip for each student."
        )
    doubts: list[str] = []
    try:
        paths = _of_class(folder, doubts.append)
    except OSError as error:
        raise GraderError(f"{folder} cannot be read: {error.strerror}") from error
    attachments, parts = _attachments(paths), _moodle_parts(paths)
    found = [_from_canvas(student, together) for student, together in attachments.items()]
    found += [_from_moodle(together) for together in parts.values()]
    attached = set(itertools.chain(*attachments.values(), *parts.values()))
    for path in paths:
        kind = path.suffix.lower()
        if path in attached:
            continue
        if path.is_symlink():
            found.append(Submission(path.name, path, refused="it is a link"))
        elif path.is_dir():
            found.append(_read(Submission(path.name, path), _from_folder))
        elif kind == ".zip":
            found.append(_read(Submission(path.stem, path), _from_archive))
        elif kind in _OTHER_ARCHIVES or kind in SUFFIXES.values():
            remedy = "unpack it into" if kind in _OTHER_ARCHIVES else "put the file into"
            reason = f"the submission is neither a folder nor a zip archive: {remedy} a folder for the student"
            found.append(Submission(path.name, path, refused=reason))
    if not found:
        raise GraderError(
            f"there are no submissions in {folder}",
            "This folder should hold a folder or a zip archive for each student.",
        )
    found.sort(key=lambda submission: submission.path)
    if not _are_students(found):
        for doubt in doubts:
            note(doubt)
    _rename_duplicates(found)
    return found


def _are_students(submissions: Sequence[Submission]) -> bool:
    """Return whether several submissions are certainly of different students, and not the folders of one student.

    All of them hold the same kernel file, and their names are not those of versions, such as ``old`` or ``try 2``.
    """
    names = [re.sub(r"[\W\d_]+", " ", submission.student.lower()).strip() for submission in submissions]
    versions = any(word in VERSIONS for name in names for word in name.split())
    if len(set(names)) < max(2, len(names)) or not all(names) or versions:
        return False
    files = [{PurePosixPath(kernel).name for kernel in submission.kernels} for submission in submissions]
    return bool(set.intersection(*files))


def _of_class(folder: Path, note: Callable[[str], None]) -> list[Path]:
    """Return the visible entries of a class's folder, sorted.

    Gradescope, macOS and Windows pack a class into one folder: its entries are returned if it holds several students.
    Gradescope's folder is known by its metadata. Other folders of folders may be a class or one student's work.
    """
    paths = _visible(folder)
    if len(paths) != 1 or paths[0].is_symlink() or not paths[0].is_dir() or MOODLE.fullmatch(paths[0].name):
        return paths
    inside = _visible(paths[0])
    if _attachments(inside) or _moodle_parts(inside):
        return inside
    if any(path.name == GRADESCOPE for path in inside):
        return inside
    students = [path for path in inside if path.is_dir() or _is_archive(path.name)]
    if not students or any(_is_kernel(path.name) or class_archive.in_layout(path.name) for path in inside):
        return paths
    name = shown(paths[0].name)
    if len(students) == 1:
        inner = shown(students[0].name)
        note(f"{name} was read as one student. If {inner} in it is the student, grade the folder {name}.")
        return paths
    names = listed((shown(path.name) for path in students), 4)
    note(
        f"{name} was read as a class of {len(students)} students: {names}. If {name} is one student's work, put a zip "
        "archive of it in its place."
    )
    return inside


def _visible(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if not path.name.startswith(".") and path.name != "__MACOSX")


def _attachments(paths: Sequence[Path]) -> dict[str, list[Path]]:
    """Return the files from Canvas by student; empty if the folder is not from Canvas.

    A folder is from Canvas only if its names fit: several students, and each number means one student or attachment.
    Other files may lie beside them.
    """
    by_student: dict[str, list[Path]] = defaultdict(list)
    names, numbers, attachments = set[str](), set[str](), Counter[str]()
    for path in paths:
        name = CANVAS.fullmatch(path.name)
        if name and path.is_file() and not path.is_symlink():
            # a new attempt changes only LATE, the attachment's number and the file's name
            by_student[name["anonymous"] or f"{name['name']}_{name['number']}"].append(path)
            names.add(name["anonymous"] or name["name"])
            numbers.add(name["anonymous"] or name["number"])
            attachments.update([name["attachment"]] if name["attachment"] else [])
    if len(names) < 2 or len(numbers) < len(by_student) or attachments.total() > len(attachments):
        return {}
    return by_student


def _from_canvas(student: str, attachments: Sequence[Path]) -> Submission:
    """Read the attachments of one student.

    The submission is named after an archive, because Canvas receives the feedback as an archive of that name.
    """
    first = min(attachments, key=lambda path: (not _is_archive(path.name), not _is_kernel(path.name)))
    submission = Submission(student, first)
    if len(attachments) == 1 and _is_archive(first.name):
        return _read(submission, _from_archive)
    return _read(submission, lambda _: _from_attachments(attachments))


def _moodle_parts(paths: Sequence[Path]) -> dict[str, list[Path]]:
    """Return the paths of each participant of Moodle whose submission is not exactly one folder or archive.

    A student who hands in files and an online text has two folders. Without folders, each file is by itself.
    """
    by_student: dict[str, list[Path]] = defaultdict(list)
    for path in paths:
        name = MOODLE.fullmatch(path.name)
        if name and not path.is_symlink() and (path.is_dir() or (path.is_file() and name["file"])):
            by_student[f"{name['name']}_{name['number']}"].append(path)
    return {
        student: parts
        for student, parts in by_student.items()
        if len(parts) > 1 or not (parts[0].is_dir() or _is_archive(parts[0].name))
    }


def _from_moodle(parts: Sequence[Path]) -> Submission:
    """Read the folders and files of one participant as one submission, named after the first folder."""
    first = min(parts, key=lambda path: (not path.is_dir(), path))
    name = MOODLE.fullmatch(first.name)
    assert name
    student = first.name if first.is_dir() else first.name.removesuffix(name["file"])

    def read(_: Path) -> _Reading:
        by_name: dict[str, Path] = {}
        for path in sorted(parts, key=lambda path: path != first):
            match = MOODLE.fullmatch(path.name)
            if not path.is_dir():
                inside = {match["file"] if match else path.name: path}
            else:
                inside = {name: path / name for name in _files(path)}
            for name, place in inside.items():
                by_name[f"{path.name}/{name}" if name in by_name else name] = place
        return _from_paths(by_name)

    return _read(Submission(student, first), read)


def read_submission(student: str, folder: Path) -> Submission:
    """Read one student's submission from a folder."""
    return _read(Submission(student, folder), _from_folder)


def _in_archive(path: Path, note: Callable[[str], None]) -> list[Submission]:
    """Return the submissions in a downloaded archive: one student's if it has the course's layout."""
    if class_archive.is_of_one_student(path):
        return [_read(Submission(path.stem, path), _from_archive)]
    with tempfile.TemporaryDirectory() as folder:
        class_archive.unpack(path, Path(folder))
        return find_submissions(Path(folder), note)


def _rename_duplicates(submissions: list[Submission]) -> None:
    """Rename students with equal names, such as a folder and its zip, to their file names, which are unique."""
    while True:
        count = Counter(submission.student for submission in submissions)
        same = [submission for submission in submissions if count[submission.student] > 1]
        if not same:
            return
        for submission in same:
            submission.student = submission.path.name


def _read(submission: Submission, reader: _Reader) -> Submission:
    try:
        reading = reader(submission.path)
        files = reading.files
        submission.kernels = {
            place: content for place, content in files.items() if _is_kernel(PurePosixPath(place).name)
        }
        others = sorted(files.keys() - submission.kernels)
        submission.unread = reading.unread
        opted = (files[place] for place in others if PurePosixPath(place).name == OPT_IN)
        submission.nickname = next(map(_nickname, opted), "")
        refused = [place for place in reading.unread if place not in files]
        if not submission.kernels and refused:
            submission.refused = f"{shown(refused[0])} cannot be read: {reading.unread[refused[0]]}"
        elif not submission.kernels:
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
    packed = any(place.lower().endswith(_OTHER_ARCHIVES) for place in places)
    return f", only {', '.join(map(shown, places[:3]))}{more}{'; of archives, only .zip is read' if packed else ''}"


def _from_folder(folder: Path) -> _Reading:
    return _from_paths({name: folder / name for name in _files(folder)})


def _from_attachments(paths: Sequence[Path]) -> _Reading:
    """Return one student's attachments from Canvas, by the names that the student gave them."""
    by_name: dict[str, Path] = {}
    for path in paths:
        match = CANVAS.fullmatch(path.name)
        name = (match["file"] or match["entry"]) if match else path.name
        if name in by_name:
            raise Refused(f"it holds {shown(name)} twice")
        by_name[name] = path
    reading = _from_paths(by_name)
    for name in by_name:
        if not _is_read(name) and not _is_archive(name):
            reading.unread[name] = "it is neither a kernel nor a zip archive"
    return reading


def _from_paths(paths: Mapping[str, Path]) -> _Reading:
    reading = _Reading()
    reading.count(len(paths))
    # learning systems put archives into folders; read them last, so that a large one excludes no other file
    for name, path in sorted(paths.items(), key=lambda item: _is_archive(item[1].name)):
        base = PurePosixPath(name).name
        if _is_archive(base):
            reading.add_archive(name, partial(_open, path), nested=False)
        elif _is_read(base):
            with _open(path) as file:
                reading.add(name, file)
        elif not base.startswith("."):
            reading.files[name] = b""
    return reading


def _files(folder: Path) -> list[str]:
    """Return the paths of all files below a folder, sorted; raise for anything but files and folders.

    Leave out hidden folders. In a copy of the course, such as a clone, leave out everything but the exercises.
    """
    files = []
    folders = [PurePosixPath()]
    entries = 0
    while folders:
        inside = folders.pop()
        of_course = (folder / inside / COURSE).is_file()
        with os.scandir(folder / inside) as scan:
            for entry in scan:
                place = inside / entry.name
                if (of_course and entry.name != "exercises") or (_is_hidden(place) and not entry.is_file()):
                    continue
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
                else:
                    files.append(str(place))
    return sorted(files)


def _is_hidden(place: PurePosixPath) -> bool:
    """Return whether a path is in a hidden folder, is hidden itself, or is metadata of macOS."""
    return any(part.startswith(".") or part == "__MACOSX" for part in place.parts)


def _open(path: Path) -> BinaryIO:
    """Open a regular file without blocking; raise for anything else, such as a named pipe."""
    file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise Refused(f"{shown(path.name)} is neither a file nor a folder")
    return os.fdopen(file, "rb")


def _from_archive(path: Path) -> _Reading:
    reading = _Reading()
    with _open(path) as file:
        _unzip(file, reading)
    return reading


def _unzip(file: BinaryIO, reading: _Reading, nested: bool = False) -> None:
    """Read the files of an archive, and of the archives in it. ``nested``: it is in another archive."""
    with _damage_refused(), zipfile.ZipFile(file) as archive:
        members = _without_course(archive.infolist())
        reading.count(len(members))
        if sum(member.file_size for member in members) > MOST_BYTES:
            raise Refused(f"it would unpack to more than {MOST_BYTES >> 20} MB")
        archives = {}
        for member in members:
            name = checked_name(member)
            base = PurePosixPath(name).name
            if name.endswith("/") or _is_hidden(PurePosixPath(name)):
                continue
            if name in archives or (_is_read(base) and name in reading.files):
                raise Refused(f"it holds {shown(name)} twice")
            if _is_archive(base) and not nested:
                archives[name] = member
            elif _is_read(base):
                with archive.open(member) as packed:  # the size that the archive declares may be wrong
                    reading.add(name, packed)
            else:
                reading.files[name] = b""
                if _is_archive(base):
                    reading.unread[name] = "archives are nested too deeply"
        # read nested archives last, so that a large one excludes no other file
        for name, member in archives.items():
            reading.add_archive(name, partial(_member, archive, member), nested=True)


def _without_course(members: list[zipfile.ZipInfo]) -> list[zipfile.ZipInfo]:
    """Return the members without those of a copy of the course that are not exercises."""
    names = [member.filename.replace("\\", "/") for member in members]
    courses = tuple(name.removesuffix(COURSE) for name in names if name == COURSE or name.endswith(f"/{COURSE}"))
    courses = courses[: MOST_ENTRIES + 1]  # the files COURSE are kept, so an archive with more of them is refused
    exercises = tuple(f"{course}exercises/" for course in courses)
    return [m for m, name in zip(members, names) if not name.startswith(courses) or name.startswith(exercises)]


def _member(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> BinaryIO:
    """Return an archive that is in an archive, for random access."""
    with archive.open(member) as packed:
        return io.BytesIO(packed.read(MOST_BYTES))


@contextlib.contextmanager
def _damage_refused() -> Generator[None]:
    """Refuse an archive that cannot be read."""
    try:
        yield
    except (Refused, OSError):
        raise
    except (zipfile.BadZipFile, zipfile.LargeZipFile, EOFError, ValueError, NotImplementedError, RuntimeError) as error:
        raise Refused(f"it is not a readable zip archive: {error}") from error
    except Exception as error:  # zlib, lzma and bz2 raise their own errors
        raise Refused(f"it is damaged: {error}") from error


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
