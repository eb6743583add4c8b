"""Whose turn it is on a GPU, among the graders of one machine, whoever started them.

Work that is timed has the GPU alone; work that is only to be right shares it with others of its kind. Who waits for a
turn alone is not overtaken. Each GPU has two files in /tmp for this, named by its number (UUID), locked while a turn
lasts (flock); the system frees them when a process ends. They are only ever read, so every user can lock those of
another.
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
"""After so long the work goes on without its turn."""

_PAUSE = 0.02
_alone: set[str] = set()
"""The GPUs that this process has to itself already."""


@contextlib.contextmanager
def turn(gpu: str, alone: bool, seconds: float = SECONDS) -> Iterator[bool]:
    """Wait for a turn on the GPU of that UUID; gives whether it was granted within so many seconds."""
    if gpu in _alone:
        yield True
        return
    until = time.monotonic() + seconds
    with contextlib.ExitStack() as held:
        with (
            contextlib.ExitStack() as waiting
        ):  # in a queue, so that those who share do not keep out who wants it alone
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
    """Lock a file until the stack is closed; false when its time is over, or somebody else made it what it should not be."""
    path = folder() / f"grader-{name}.lock"
    while True:
        try:
            file = _open(path)
            with contextlib.ExitStack() as opened:
                opened.callback(os.close, file)
                fcntl.flock(file, kind | fcntl.LOCK_NB)
                if os.fstat(file).st_ino == path.lstat().st_ino:  # else it was tidied away meanwhile
                    stack.push(opened.pop_all())
                    return True
        except (BlockingIOError, FileNotFoundError, FileExistsError, PermissionError):
            pass  # another has it, removed it, made it first, or has not yet let all others read it
        except OSError:
            return False
        if time.monotonic() >= until:
            return False
        time.sleep(_PAUSE)


def _open(path: Path) -> int:
    """Open the file, creating it if needed; without O_CREAT first, which Linux refuses for another user's file there."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
    with contextlib.suppress(FileNotFoundError):
        return os.open(path, flags)
    file = os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o644)
    os.fchmod(file, 0o644)  # whatever the umask took away
    return file
