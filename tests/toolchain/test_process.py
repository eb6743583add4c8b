"""A compiler that nobody waits for any more is ended, with what it has started."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import psutil
import pytest

from grader.errors import GraderError
from grader.toolchain.process import Command, run_command, started, stop_all

DRIVER = ("sh", "-c", "sleep 1000 & sleep 1000; true")
"""Like g++, which starts the compiler proper."""


def children() -> list[psutil.Process]:
    return psutil.Process().children(recursive=True)


def wait_for(condition) -> None:
    while not condition():
        time.sleep(0.01)


def test_all_are_stopped_and_whoever_waits_is_told(tmp_path: Path) -> None:
    said: list[str] = []

    def compile_it() -> None:
        with pytest.raises(GraderError) as error:
            run_command(Command(DRIVER, tmp_path))
        said.append(error.value.message)

    before = children()
    thread = threading.Thread(target=compile_it)
    thread.start()
    wait_for(lambda: len(children()) >= len(before) + 3)
    wait_for(lambda: stop_all() or not thread.is_alive())
    assert said == ["sh was stopped"]
    wait_for(lambda: children() == before)  # what the driver had started is the system's to bury


def test_an_interrupt_ends_it() -> None:
    before = children()
    with pytest.raises(KeyboardInterrupt), started(DRIVER):
        wait_for(lambda: len(children()) >= len(before) + 3)
        raise KeyboardInterrupt
    wait_for(lambda: children() == before)
