"""Runs compilers. All are started here, so that a sandbox can replace this step and a signal can stop them."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any

from grader.setup.errors import GraderError

# Environment variables that make compilers print English messages, because these are parsed.
ENGLISH = {"LC_ALL": "C", "LANGUAGE": "C"}

_TIME_LIMIT = 120.0
_OUTPUT_LIMIT = 256 * 1024


@dataclass(frozen=True)
class Command:
    """A call of a compiler, which writes only in ``folder``, and reads only ``reads`` and the system's files.

    ``pipes`` has the pipes for its standard input (``stdin``) and output (``stdout``), if these are connected to
    another process. After the compiler has started, this process closes its copies of them.
    """

    argv: tuple[str, ...]
    folder: Path
    reads: tuple[Path, ...] = ()
    pipes: Mapping[str, IO[bytes]] = field(default_factory=dict, compare=False)


@dataclass(frozen=True)
class Finished:
    """The result of a command: its status, its output, and the seconds it took."""

    returncode: int
    output: str
    seconds: float = field(default=0.0, compare=False)


RunCommand = Callable[[Command], Finished]


_running: set[subprocess.Popen[bytes]] = set()


@contextlib.contextmanager
def started(
    argv: Sequence[str], pipes: Mapping[str, IO[bytes]] = MappingProxyType({}), **options: Any
) -> Iterator[subprocess.Popen[bytes]]:
    """Start a compiler, as a context manager. An exception in the block ends the compiler.

    If ``stop_all`` has ended it, raise GraderError at the end of the block.
    """
    options = {"stdin": subprocess.DEVNULL, **options, **pipes}
    process = subprocess.Popen(argv, start_new_session=True, **options)
    for pipe in pipes.values():
        pipe.close()
    _running.add(process)
    try:
        yield process
    except BaseException:
        _end(process)
        process.wait()
        raise
    finally:
        stopped = process not in _running
        _running.discard(process)
    if stopped:
        raise GraderError(f"{Path(argv[0]).name} was stopped")


def stop_all() -> None:
    """End all compilers that this process has started, and their child processes."""
    while _running:
        with contextlib.suppress(KeyError):
            _end(_running.pop())


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a compiler and its child processes. A driver such as g++ starts the actual compiler in the same session."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def status_when_ended(process: subprocess.Popen[bytes], seconds: float) -> int:
    """Return a process's status as soon as it ends, or raise TimeoutExpired.

    ``Popen.wait`` with a timeout would poll only 20 times a second.
    """
    try:
        ended = os.pidfd_open(process.pid)
    except (OSError, AttributeError):  # an old Linux, or a Python built for one (conda)
        return process.wait(seconds)
    try:
        poll = select.poll()
        poll.register(ended, select.POLLIN)
        poll.poll(seconds * 1000)
    finally:
        os.close(ended)
    return process.wait(0)


def run_command(command: Command) -> Finished:
    """Run a command without a sandbox, with the user's own rights."""
    began = time.monotonic()
    try:
        with started(
            command.argv,
            command.pipes,
            cwd=command.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE if command.pipes else subprocess.STDOUT,
            env={**os.environ, **ENGLISH},
        ) as process:
            printed = b"".join(part for part in process.communicate(timeout=_TIME_LIMIT) if part)
    except subprocess.TimeoutExpired:
        raise GraderError(
            f"{Path(command.argv[0]).name} was stopped: the compilation took longer than {_TIME_LIMIT:.0f} s",
            "Look for templates or loops that unroll without end.",
        ) from None
    except OSError as problem:
        raise GraderError(f"{command.argv[0]} cannot be started: {problem.strerror}") from None
    output = printed[:_OUTPUT_LIMIT].decode(errors="replace")
    return Finished(process.returncode, output, time.monotonic() - began)
