"""The state of a child process, which only the system reports: resources, printed text, and exit status."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass

from grader.execution.runner.answers import MOST_PRINTED, Ended, clean


@dataclass
class Usage:
    """The resources that a process uses since the last call of ``restart``. A process id of 0 stands for no process."""

    pid: int = 0
    _cpu_before: float = 0.0

    def restart(self) -> None:
        """Count processor time from now on."""
        self._cpu_before = self._cpu_clock()

    def cpu_seconds(self) -> float:
        """Return the processor time since ``restart``."""
        return max(0.0, self._cpu_clock() - self._cpu_before)

    def memory(self) -> int:
        """Return the resident memory in bytes."""
        try:
            with open(f"/proc/{self.pid}/statm", "rb") as file:
                return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")
        except (OSError, IndexError, ValueError):
            return 0

    def asleep(self) -> bool:
        """Return whether all threads of the process sleep. A thread that waits for a processor does not sleep."""
        try:
            for thread in os.listdir(f"/proc/{self.pid}/task"):
                with open(f"/proc/{self.pid}/task/{thread}/stat", "rb") as file:
                    if file.read().rpartition(b") ")[2][:1] in (b"R", b"D"):
                        return False
        except OSError:
            pass
        return True

    def _cpu_clock(self) -> float:
        """Return the processor time that the process has used so far."""
        if not self.pid:
            return 0.0
        try:
            return time.clock_gettime_ns(((~self.pid) << 3) | 2) * 1e-9
        except OSError:
            return 0.0


@dataclass
class TimeLimit:
    """A limit of processor time, or of twice as many seconds asleep.

    Seconds in which the process waits for a processor do not count, so a busy machine does not stop it.
    """

    usage: Usage
    seconds: float
    _seen: float = 0.0
    _asleep: float = 0.0

    def exceeded(self, wall: float) -> bool:
        """Return whether the process is over its limit ``wall`` seconds after its request."""
        over = wall > self.seconds
        if over and self.usage.asleep():
            self._asleep += wall - self._seen
        self._seen = wall
        return over and (self.usage.cpu_seconds() > self.seconds or self._asleep > 2 * self.seconds)


class Printed:
    """A file in memory to which a child process prints."""

    def __init__(self) -> None:
        self.file = os.memfd_create("grader-printed", os.MFD_CLOEXEC)
        self._seen = 0

    def new(self) -> str:
        """Return the text printed since the last call, without control characters, truncated if long."""
        size = os.fstat(self.file).st_size
        content = os.pread(self.file, max(0, min(size - self._seen, 4 * MOST_PRINTED)), self._seen)
        self._seen = size
        return clean(content.decode(errors="replace"))

    def close(self) -> None:
        """Free the memory."""
        os.close(self.file)


_SIGNALS: dict[int, tuple[str, str]] = {
    signal.SIGSEGV: ("crash", "it crashed: an access to memory that it does not own (SIGSEGV)"),
    signal.SIGBUS: ("crash", "it crashed: an access to memory that does not exist (SIGBUS)"),
    signal.SIGFPE: ("crash", "it crashed: a division by zero or another arithmetic fault (SIGFPE)"),
    signal.SIGILL: ("crash", "it crashed: an illegal instruction (SIGILL)"),
    signal.SIGABRT: ("crash", "it aborted (SIGABRT): a failed assert, an uncaught exception, or corrupted memory"),
    signal.SIGXFSZ: ("output", "it printed more than 16 MB"),
    signal.SIGXCPU: ("timeout", "it used up its processor time: an infinite loop, or far too slow"),
    signal.SIGKILL: ("crash", "the system killed it, most likely because memory ran out (SIGKILL)"),
}


def how_ended(status: int, returning: str) -> Ended:
    """Return why a process ended with this status: negative for a signal. ``returning`` is what it should have done."""
    if status >= 0:
        return Ended("exit", f"it ended the process with exit code {status} instead of {returning}")
    return Ended(*_SIGNALS.get(-status, ("crash", f"it was ended by signal {-status}")))
