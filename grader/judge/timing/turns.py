"""Turns on a GPU among all graders of one machine.

A timed measurement has the GPU exclusively; other work shares it. A process that waits for an exclusive turn is not
overtaken. Each GPU has two files in /tmp, named by its UUID, which are locked during a turn (flock); the system
releases the locks when a process ends. The files are only read, so every user can lock those of another.
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
"""The timeout in seconds, after which the work starts without its turn."""

_PAUSE = 0.02
_alone: set[str] = set()
"""The GPUs that this process already has exclusively."""


@contextlib.contextmanager
def turn(gpu: str, alone: bool, seconds: float = SECONDS) -> Iterator[bool]:
    """Wait for a turn on the GPU with that UUID; yield whether it was granted before the timeout."""
    if gpu in _alone:
        yield True
        return
    until = time.monotonic() + seconds
    with contextlib.ExitStack() as held:
        with contextlib.ExitStack() as waiting:  # queued, so that shared turns do not starve an exclusive one
            granted = _lock(waiting, f"{gpu}.next", fcntl.LOCK_EX, until) and _lock(
                held, gpu, fcntl.LOCK_EX if alone else fcntl.LOCK_SH, until
            )
        if granted and alone:
            _alone.add(gpu)
            held.callback(_alone.discard, gpu)
        yield granted


def folder() -> Path:
    """Return the folder of the locks, the same for all users of a machine, whatever their TMPDIR."""
    return Path("/tmp") if Path("/tmp").is_dir() else Path(tempfile.gettempdir())


def _lock(stack: contextlib.ExitStack, name: str, kind: int, until: float) -> bool:
    """Lock a file until the stack is closed; return False after the timeout, or if the file is not a valid lock."""
    path = folder() / f"grader-{name}.lock"
    while True:
        try:
            file = _open(path)
            with contextlib.ExitStack() as opened:
                opened.callback(os.close, file)
                fcntl.flock(file, kind | fcntl.LOCK_NB)
                if os.fstat(file).st_ino == path.lstat().st_ino:  # otherwise it was removed meanwhile
                    stack.push(opened.pop_all())
                    return True
        except (BlockingIOError, FileNotFoundError, FileExistsError, PermissionError):
            pass  # another process has the lock, removed or created the file first, or has not made it readable yet
        except OSError:
            return False
        if time.monotonic() >= until:
            return False
        time.sleep(_PAUSE)


def _open(path: Path) -> int:
    """Open the file, creating it if needed; first without O_CREAT, which Linux refuses for another user's file."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
    with contextlib.suppress(FileNotFoundError):
        return os.open(path, flags)
    file = os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o644)
    os.fchmod(file, 0o644)  # regardless of the umask
    return file
