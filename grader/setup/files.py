"""Reads and locks files, and writes them whole or not at all."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path
from typing import TextIO

from grader.setup.errors import GraderError

try:
    import fcntl
except ImportError:  # this system has no such locks
    fcntl = None  # type: ignore[assignment]


def replace_file(path: Path, content: bytes) -> None:
    """Write a file atomically, and create its folder. An existing file keeps its mode."""
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        aside.write_bytes(content)
        if path.exists():
            shutil.copymode(path, aside)
        os.replace(aside, path)
    finally:
        aside.unlink(missing_ok=True)


def write_file(path: str | Path, content: str | bytes) -> None:
    """Write a file that the user asked for; raise GraderError if that fails. Links and devices are not replaced."""
    path = Path(path)
    data = content.encode(errors="replace") if isinstance(content, str) else content
    try:
        if path.is_symlink() or (path.exists() and not path.is_file()):
            path.write_bytes(data)
        elif path.exists() and not os.access(path, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        else:
            _replace_or_overwrite(path, data)
    except FileExistsError as error:  # a file stands where the path has a folder
        raise GraderError(f"cannot write {path}: {os.strerror(errno.ENOTDIR)}") from error
    except OSError as error:
        raise GraderError(f"cannot write {path}: {error.strerror or error}") from error


def _replace_or_overwrite(path: Path, data: bytes) -> None:
    try:
        replace_file(path, data)
    except OSError as error:
        # The folder may not be writable, or the file may be the target of a mount.
        if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS, errno.EBUSY) or not path.is_file():
            raise
        path.write_bytes(data)


def read_file(path: Path, hint: str = "") -> bytes:
    """Return the content of a file; raise GraderError if it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise GraderError(f"{path} cannot be read: {error.strerror}", hint) from error


def try_lock(file: int | TextIO, shared: bool = False) -> bool:
    """Lock a file without waiting, until it is closed. Return False if another process holds the lock.

    Return True if the system or the file system has no locks.
    """
    if fcntl is not None:
        try:
            fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:
            pass
    return True


def make_folder(path: Path) -> None:
    """Create a folder; raise GraderError if that fails."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise GraderError(f"cannot write {path}: {error.strerror}") from error
