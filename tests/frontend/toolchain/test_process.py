"""An abandoned compiler process is killed together with its children."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from pathlib import Path
from unittest.mock import Mock

import psutil
import pytest

from grader.frontend.toolchain.process import Command, run_command, started, status_when_ended, stop_all
from grader.setup.errors import GraderError

DRIVER = ("sh", "-c", "sleep 1000 & sleep 1000; true")
"""A stand-in for a compiler driver: it starts a child process, as g++ starts cc1plus."""


def children() -> list[psutil.Process]:
    return psutil.Process().children(recursive=True)


def wait_for(condition) -> None:
    while not condition():
        time.sleep(0.01)


def test_all_are_stopped_and_waiting_raises_an_error(tmp_path: Path) -> None:
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
    wait_for(lambda: children() == before)  # init reaps the driver's children


def test_an_interrupt_ends_it() -> None:
    before = children()
    with pytest.raises(KeyboardInterrupt), started(DRIVER):
        wait_for(lambda: len(children()) >= len(before) + 3)
        raise KeyboardInterrupt
    wait_for(lambda: children() == before)


@pytest.mark.parametrize("lacking", [None, OSError, AttributeError], ids=["pidfd", "old system", "old Python"])
def test_waiting_ends_when_the_process_ends_or_at_the_timeout(
    lacking: type[Exception] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if lacking:
        monkeypatch.setattr(os, "pidfd_open", Mock(side_effect=lacking))
    with started(("sh", "-c", "exit 3")) as process:
        assert status_when_ended(process, 600) == 3
    with started(("sleep", "1000")) as process:
        with pytest.raises(subprocess.TimeoutExpired):
            status_when_ended(process, 0.01)
        process.kill()
