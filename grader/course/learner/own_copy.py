"""A learner's own copy of the course, written and updated by ``grader init``.

``.grader/manifest.json`` keeps a hash of each file as it was written. A file that still has that hash is unchanged, so
a newer version replaces it. Any other file is the learner's and is kept. Each file is replaced by one rename. The
manifest is written empty at first and completely at the end, so after an interrupt the next run finishes the update.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from grader.course.manifest import FILE, SUFFIXES, former_names
from grader.setup import shipped
from grader.setup.errors import GraderError
from grader.setup.files import replace_file

VERSION = 1


@dataclass
class Done:
    """The result of an update, as paths relative to the learner's folder."""

    written: list[str] = field(default_factory=list)
    """Written files: they are new, or the learner had removed them."""
    updated: list[str] = field(default_factory=list)
    """Replaced files, which the learner had not changed."""
    beside: dict[str, str] = field(default_factory=dict)
    """Kept files that learner and course both changed; the value is the path of the course's new version."""
    removed: list[str] = field(default_factory=list)
    """Deleted files, which the course no longer has and the learner had not changed."""
    moved: dict[str, str] = field(default_factory=dict)
    """Moved files, which the learner had changed and the course has renamed: old path to new path."""
    left: list[str] = field(default_factory=list)
    """Kept files that the course no longer has, because the learner had changed them."""


def manifest_path(root: Path) -> Path:
    """Return the path of the manifest."""
    return root / ".grader" / "manifest.json"


def is_own_copy(root: Path) -> bool:
    """Return whether ``grader init`` wrote this course, even if it was interrupted."""
    return manifest_path(root).is_file()


def skeleton_copy(root: Path, day: str, name: str) -> Path:
    """Return the path at which the copy of an exercise's original skeleton is stored."""
    return root / ".grader" / "skeletons" / day / name


def write(root: Path, course: Path = shipped.COURSE) -> Done:
    """Write the course into a new or empty folder, or update the copy in it."""
    try:
        _refuse(root)
        return _write(root, course)
    except OSError as error:
        raise GraderError(
            f"cannot write {error.filename or root}: {error.strerror or error}",
            "No file is incomplete. Fix this, then run `grader init` again.",
        ) from error


def _refuse(root: Path) -> None:
    """Raise if the folder contains anything but a copy by ``grader init``. Hidden files do not count."""
    if is_own_copy(root) or not root.exists():
        return
    if not root.is_dir():
        raise GraderError(f"{root} is a file, not a folder", "Name a new folder, or an empty one.")
    if (root / FILE).exists():
        raise GraderError(
            f"{root} holds a course that `grader init` did not write",
            "In a clone, update it with `git pull`. For a copy, name a new folder.",
        )
    # A .venv, .git or .vscode may be there already.
    visible = sorted(entry.name for entry in root.iterdir() if not entry.name.startswith("."))
    if visible:
        raise GraderError(f"{root} is not empty: it has {visible[0]}", "Name a new folder, or an empty one.")


def _write(root: Path, course: Path) -> Done:
    done = Done()
    before = _read(root)
    if not before:
        _write_manifest(root, {})
    files = shipped.files(course)
    _follow_renames(root, course, before, set(files), done)
    now: dict[str, str] = {}
    # Write the list of exercises last, so that no command takes an incomplete copy for a course.
    for name in sorted(files, key=lambda name: (name == FILE, name)):
        content = (course / name).read_bytes()
        now[name] = _hash(content)
        _bring_up_to_date(root, name, content, before.get(name), done)
        path = PurePosixPath(name)
        if path.parts[0] == "exercises" and path.name != "tasks.py" and path.suffix in SUFFIXES.values():
            copy = skeleton_copy(root, path.parts[1], path.name)
            if _hash_of(copy) != now[name]:
                replace_file(copy, content)
    for name in sorted(set(before) - set(now)):
        found = _hash_of(root / name)
        if found == before[name]:
            (root / name).unlink()
            done.removed.append(name)
        elif found:
            done.left.append(name)
    _write_manifest(root, now)
    return done


def _follow_renames(root: Path, course: Path, before: dict[str, str], files: set[str], done: Done) -> None:
    """Move files that the learner changed and the course renamed. Rename their keys in ``before``, too."""
    days, exercises = former_names(course)
    for old in sorted(before.keys() - files):
        new = _present_place(old, days, exercises)
        changed = _hash_of(root / old) not in ("", "a link", before[old])
        if new in files and changed and new not in before and not _hash_of(root / new):
            (root / new).parent.mkdir(parents=True, exist_ok=True)
            os.replace(root / old, root / new)
            before[new] = before.pop(old)
            done.moved[old] = new


def _present_place(old: str, days: Mapping[str, str], exercises: Mapping[str, str]) -> str:
    """Return the path of a file after the renaming of its day and its exercise."""
    folder, day, *rest = PurePosixPath(old).parts
    if len(rest) == 1 and (suffix := PurePosixPath(old).suffix) in SUFFIXES.values():
        name = f"{day}/{rest[0].removesuffix(suffix)}"
        if name in exercises:
            return f"{folder}/{exercises[name]}{suffix}"
    return "/".join((folder, days.get(day, day), *rest))


def _bring_up_to_date(root: Path, name: str, content: bytes, before: str | None, done: Done) -> None:
    """Update one file. ``before``: its hash when ``grader init`` last wrote it; None if it never did."""
    path, new = root / name, _hash(content)
    found = _hash_of(path)
    if found == new:
        return
    if not found or found == before:
        replace_file(path, content)
        (done.updated if found else done.written).append(name)
    elif before != new:
        place = _beside(path, new)
        if not place.exists():
            replace_file(place, content)
        done.beside[name] = place.relative_to(root).as_posix()


def _beside(path: Path, wanted: str) -> Path:
    """Return the first path of name.new, name.2.new, ... that does not exist or has the hash ``wanted``."""
    number = 1
    while True:
        place = path.with_name(f"{path.name}.{number}.new" if number > 1 else f"{path.name}.new")
        if _hash_of(place) in ("", wanted):
            return place
        number += 1


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _hash_of(path: Path) -> str:
    """Return the hash of a file; empty if there is no file. A symbolic link counts as changed by the learner."""
    if path.is_symlink():
        return "a link"
    try:
        return _hash(path.read_bytes())
    except FileNotFoundError:
        return ""


def _read(root: Path) -> dict[str, str]:
    """Return the stored hashes by path; empty if the manifest is invalid, so that all files count as the learner's."""
    try:
        kept = json.loads(manifest_path(root).read_bytes())["files"]
        return {str(name): str(value) for name, value in kept.items() if _of_the_course(str(name))}
    except (FileNotFoundError, ValueError, TypeError, KeyError, AttributeError):
        return {}


def _of_the_course(name: str) -> bool:
    """Return whether a path lies within the course's folders."""
    parts = PurePosixPath(name).parts
    return len(parts) > 1 and parts[0] in shipped.FOLDERS and ".." not in parts


def _write_manifest(root: Path, files: dict[str, str]) -> None:
    text = json.dumps({"version": VERSION, "files": files}, indent=1)
    replace_file(manifest_path(root), text.encode() + b"\n")
