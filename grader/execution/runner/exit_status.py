"""The meaning of a child process's exit status."""

from __future__ import annotations

import signal

from grader.execution.runner.answers import Ended

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


def describe(status: int, returning: str) -> Ended:
    """Return why a process ended with this status: negative for a signal. ``returning`` is what it should have done."""
    if status >= 0:
        return Ended("exit", f"it ended the process with exit code {status} instead of {returning}")
    return Ended(*_SIGNALS.get(-status, ("crash", f"it was ended by signal {-status}")))
