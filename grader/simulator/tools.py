"""Programs of binutils that read a kernel's library, with limits on their resources and output.

The library is made from a submission. The output of a program that fails or exceeds the limits is ignored.
"""

from __future__ import annotations

import contextlib
import os
import re
import resource
import select
import subprocess
import time
import weakref
from collections.abc import Sequence

from grader.frontend.toolchain.process import status_when_ended

SECONDS = 30
PATIENCE = 4
"""A program's limit on wall-clock time, per run or per question, as a multiple of its limit on processor time."""
MEMORY = 2 << 30
OUTPUT = 64 << 20
LARGEST_LIBRARY = 16 << 20


def read_with(argv: Sequence[str], said: str = "") -> str | None:
    """Return a program's output for an input. Return None if the program fails or exceeds its limits."""
    told, printed = os.memfd_create("told", os.MFD_CLOEXEC), os.memfd_create("printed", os.MFD_CLOEXEC)
    try:
        with open(told, "w", encoding="ascii", closefd=False) as file:
            file.write(said)
        os.lseek(told, 0, os.SEEK_SET)
        process = subprocess.Popen(argv, stdin=told, stdout=printed, stderr=subprocess.DEVNULL)
        try:
            _limit(process)
            status_when_ended(process, PATIENCE * SECONDS)
        except ProcessLookupError:  # the program has ended already
            process.wait()
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.returncode != 0:
            return None
        with open(printed, "rb", closefd=False) as file:
            file.seek(0)
            return file.read(OUTPUT).decode(errors="replace")
    finally:
        os.close(told)
        os.close(printed)


class Server:
    """A program that answers several questions, and reads the library once.

    The limits on processor time and memory apply to all questions together. The program ends when this object is
    deleted.
    """

    def __init__(self, argv: Sequence[str]) -> None:
        self._process = subprocess.Popen(
            argv, bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self._end = weakref.finalize(self, _end, self._process)
        with contextlib.suppress(ProcessLookupError):  # the program has ended already
            _limit(self._process)

    def ask(self, said: str, last: re.Pattern[bytes]) -> str | None:
        """Send the input ``said`` and return the program's output up to a match of ``last``.

        ``said`` must fit into a pipe (64 KiB). If the program ends or exceeds the limits, this call and all later ones
        return None.
        """
        if not self._end.alive:
            return None
        answer = self._answer(said, last)
        if answer is None:
            self._end()
        return answer

    def _answer(self, said: str, last: re.Pattern[bytes]) -> str | None:
        assert self._process.stdin is not None and self._process.stdout is not None
        printed, until = bytearray(), time.monotonic() + PATIENCE * SECONDS
        poll = select.poll()
        poll.register(self._process.stdout, select.POLLIN)
        try:
            self._process.stdin.write(said.encode("ascii"))
            while not last.search(printed, max(0, len(printed) - 1000)):
                if not poll.poll(max(0.0, until - time.monotonic()) * 1000):
                    return None
                part = self._process.stdout.read(1 << 16)
                printed += part or b""
                if not part or len(printed) > OUTPUT:
                    return None
        except OSError:
            return None
        return printed.decode(errors="replace")


def _limit(process: subprocess.Popen[bytes]) -> None:
    for kind, most in (
        (resource.RLIMIT_CPU, SECONDS),
        (resource.RLIMIT_AS, MEMORY),
        (resource.RLIMIT_FSIZE, OUTPUT),
    ):
        _, hard = resource.prlimit(process.pid, kind)  # keep the hard limit, which is inherited and cannot be raised
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.prlimit(process.pid, kind, (most, most))


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()
