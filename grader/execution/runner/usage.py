"""The processor time, memory and state of a child process, as the system measures them. A child cannot change them."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass


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
