"""Programs of binutils that read a kernel's library: what they may use, and how much they may say, is limited.

The library is made from a submission. A program that needs more than any kernel takes, or fails, has told nothing.
"""

from __future__ import annotations

import os
import resource
import subprocess
from collections.abc import Sequence

from grader.toolchain.process import status_when_ended

SECONDS = 30
MEMORY = 2 << 30
OUTPUT = 64 << 20
LARGEST_LIBRARY = 16 << 20


def read_with(argv: Sequence[str], said: str = "") -> str | None:
    """What a program prints when it is told something; None where it fails or goes beyond its limits."""
    told, printed = os.memfd_create("told", os.MFD_CLOEXEC), os.memfd_create("printed", os.MFD_CLOEXEC)
    try:
        with open(told, "w", encoding="ascii", closefd=False) as file:
            file.write(said)
        os.lseek(told, 0, os.SEEK_SET)
        process = subprocess.Popen(argv, stdin=told, stdout=printed, stderr=subprocess.DEVNULL)
        try:
            for kind, most in (
                (resource.RLIMIT_CPU, SECONDS),
                (resource.RLIMIT_AS, MEMORY),
                (resource.RLIMIT_FSIZE, OUTPUT),
            ):
                resource.prlimit(process.pid, kind, (most, most))
            status_when_ended(process, 4 * SECONDS)
        except ProcessLookupError:  # it has ended already
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
