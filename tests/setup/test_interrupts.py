"""Ctrl-C in code that cannot be interrupted arrives after it."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator

import pytest

from grader.setup.interrupts import interrupts_delayed


@pytest.fixture(autouse=True)
def default_handler() -> Iterator[None]:
    """Set Python's own handler: tests that a shell started in the background ignore SIGINT."""
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, previous)


def test_an_interrupt_arrives_at_the_end_of_the_context() -> None:
    steps = []
    with pytest.raises(KeyboardInterrupt), interrupts_delayed():
        signal.raise_signal(signal.SIGINT)
        steps.append("not interrupted")
    assert steps == ["not interrupted"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_error_in_the_context_is_raised_as_it_is() -> None:
    with pytest.raises(ValueError), interrupts_delayed():
        raise ValueError
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_other_threads_and_other_handlers_are_left_alone() -> None:
    seen = []

    def enter() -> None:
        with interrupts_delayed():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    previous = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        enter()
    finally:
        signal.signal(signal.SIGINT, previous)
    assert seen == [signal.default_int_handler, signal.SIG_IGN]
