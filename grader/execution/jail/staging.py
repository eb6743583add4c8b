"""Copies of files that the sandbox's unprivileged user can read, for a grader that runs as root.

Root's own files are often in a folder that other users cannot enter, such as /root.
"""

from __future__ import annotations

import atexit
import contextlib
import errno
import fcntl
import functools
import os
import shutil
import stat
import subprocess
import tempfile
import threading
from pathlib import Path

from grader.execution.jail.programs import build_program

UNPRIVILEGED = 65534
"""The id of the user and group that a sandboxed process has instead of root's (usually "nobody")."""

_PREFIX = "grader-jail-"
_lock = threading.Lock()
_copies: dict[tuple[Path, int], Path] = {}


@functools.cache
def drops_root() -> bool:
    """Return whether this process is root, and can change its user and the owner of files.

    Root cannot do this where no other user exists (``unshare -r``), or in a container that forbids it. A submission
    then keeps root's user id and is confined like that of any other user.
    """
    if os.geteuid() != 0:
        return False
    with tempfile.TemporaryFile() as file:
        try:
            os.fchown(file.fileno(), UNPRIVILEGED, UNPRIVILEGED)
        except OSError as error:
            if error.errno not in (errno.EPERM, errno.EINVAL):
                raise
            return False
    return (
        subprocess.run([build_program("drop_root"), str(UNPRIVILEGED)], capture_output=True, check=False).returncode
        == 0
    )


def as_unprivileged() -> list[str]:
    """Return the start of a command that gives up root's rights; empty if there is nothing to give up."""
    return [str(build_program("drop_root")), str(UNPRIVILEGED)] if drops_root() else []


def reachable(path: Path) -> Path:
    """Return the path if the sandbox's user can read it; otherwise copy it and return the copy's path."""
    if not drops_root() or _open_to_all(path):
        return path
    with _lock:
        key = (path, _changed(path))
        if key not in _copies:
            target = Path(tempfile.mkdtemp(dir=own_folder())) / path.name
            if path.is_dir():
                shutil.copytree(path, target)
                os.chmod(target, 0o755)
            else:
                shutil.copyfile(path, target)
                os.chmod(target, 0o755)
            os.chmod(target.parent, 0o755)
            _copies[key] = target
        return _copies[key]


def _changed(path: Path) -> int:
    """Return the modification time of a file, or of the newest file in a folder, in ns."""
    files = [file for file in path.iterdir() if file.is_file()] if path.is_dir() else [path]
    return max((file.stat().st_mtime_ns for file in files), default=0)


def scratch_folder() -> Path:
    """Return a new empty folder that the sandbox's user can write. The caller must remove it."""
    folder = Path(tempfile.mkdtemp(prefix="work-", dir=own_folder()))
    if drops_root():
        os.chown(folder, UNPRIVILEGED, UNPRIVILEGED)
    return folder


def _open_to_all(path: Path) -> bool:
    """Return whether all users may read a file or folder and enter the folders above it, and above links to it."""
    real = Path(os.path.realpath(path))
    mode = real.stat().st_mode
    wanted = stat.S_IROTH | (stat.S_IXOTH if real.is_dir() else 0)
    above = {*real.parents, *path.absolute().parents}
    return mode & wanted == wanted and all(folder.stat().st_mode & stat.S_IXOTH for folder in above)


@functools.cache
def own_folder() -> Path:
    """Return a temporary folder that is removed when this process ends.

    Also remove the folders of processes that no longer exist. A process holds a lock on its folder, because its id
    alone does not identify it: containers with separate process ids may share /tmp.
    """
    base = Path(tempfile.gettempdir())
    for left in base.glob(f"{_PREFIX}*"):
        pid = left.name.removeprefix(_PREFIX).partition(".")[0]
        with contextlib.suppress(OSError):  # another process removes it at the same time
            if pid.isdigit() and not Path(f"/proc/{pid}").exists() and left.lstat().st_uid == os.geteuid():
                os.close(_locked(left))
                shutil.rmtree(left, ignore_errors=True)
    while True:
        folder = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}.", dir=base))
        with contextlib.suppress(OSError):  # another process took the lock first
            _locked(folder)
            os.chmod(folder, 0o711)
            atexit.register(shutil.rmtree, folder, ignore_errors=True)
            return folder


def _locked(folder: Path) -> int:
    """Lock a folder; return the descriptor that holds the lock until it is closed.

    Raise OSError if another process holds the lock.
    """
    file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(file)
        raise
    return file
