"""Lets all graders of a machine take turns on a GPU.

A measurement of times has the GPU exclusively; other work may share it. A process that waits for an exclusive turn gets
it before processes that come later. Each GPU has two files in /tmp, named by its UUID, which are locked during a turn
(flock). The system releases the locks when a process ends. A lock needs only the right to read the file, so every user
can lock files of another user.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

SECONDS = 900.0
"""The timeout in seconds. After it, the work starts without a turn."""

_PAUSE = 0.02
_alone: set[str] = set()
"""The UUIDs of the GPUs on which this process has an exclusive turn."""


@contextlib.contextmanager
def turn(gpu: str, alone: bool, seconds: float = SECONDS) -> Iterator[bool]:
    """Take a turn on the GPU with the UUID ``gpu``, as a context manager.

    ``alone`` requests an exclusive turn. The yielded value is false if the turn was not granted within ``seconds``.
    """
    if gpu in _alone:
        yield True
        return
    until = time.monotonic() + seconds
    with contextlib.ExitStack() as held:
        with contextlib.ExitStack() as waiting:  # a queue, so that new shared turns do not delay an exclusive one
            granted = _lock(waiting, f"{gpu}.next", fcntl.LOCK_EX, until) and _lock(
                held, gpu, fcntl.LOCK_EX if alone else fcntl.LOCK_SH, until
            )
        if granted and alone:
            _alone.add(gpu)
            held.callback(_alone.discard, gpu)
        yield granted


def folder() -> Path:
    """Return the folder with the lock files. It does not depend on TMPDIR, so all users of a machine use the same."""
    return Path("/tmp") if Path("/tmp").is_dir() else Path(tempfile.gettempdir())


def _lock(stack: contextlib.ExitStack, name: str, kind: int, until: float) -> bool:
    """Lock a file until the stack is closed. Return false if that fails before the time ``until``."""
    path = folder() / f"grader-{name}.lock"
    while True:
        try:
            file = _open(path)
            with contextlib.ExitStack() as opened:
                opened.callback(os.close, file)
                fcntl.flock(file, kind | fcntl.LOCK_NB)
                if os.fstat(file).st_ino == path.lstat().st_ino:  # the locked file is still at this path
                    stack.push(opened.pop_all())
                    return True
        except (BlockingIOError, FileNotFoundError, FileExistsError, PermissionError):
            pass  # try again: another process has the lock, or is creating or removing the file
        except OSError:
            return False
        if time.monotonic() >= until:
            return False
        time.sleep(_PAUSE)


def _open(path: Path) -> int:
    """Open a lock file, and create it if it does not exist.

    Linux refuses O_CREAT for an existing file of another user in /tmp, so the first attempt is without it.
    """
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
    with contextlib.suppress(FileNotFoundError):
        return os.open(path, flags)
    file = os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o644)
    os.fchmod(file, 0o644)  # open() applies the umask
    return file
