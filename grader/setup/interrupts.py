"""Delay of Ctrl-C while code runs that cannot be interrupted."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def interrupts_delayed() -> Iterator[None]:
    """Raise KeyboardInterrupt at the end of this context, instead of inside it.

    Only the main thread receives interrupts: in other threads, and where a handler other than Python's own is set, this
    does nothing.
    """
    previous = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or previous is not signal.default_int_handler:
        yield
        return
    received: list[int] = []
    signal.signal(signal.SIGINT, lambda number, _: received.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)
    if received:
        raise KeyboardInterrupt
