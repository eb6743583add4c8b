"""Grading in an IPython kernel without a notebook server, as on hosted platforms.

Grading works in the first cell, and an interrupt stops it.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from jupyter_client import KernelManager

from tests.course_copy import ROOT, copy_course

SECONDS = 240
SOLUTION = (ROOT / "solutions/day01_residual_add/residual_add.cu").read_text()
ENDLESS = SOLUTION.replace("if (", "for (volatile int turn = 0;; turn = turn + 1) {}\n    if (", 1)


class Hosted:
    """An IPython kernel that runs in the course's folder."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.manager = KernelManager(kernel_name="python3")
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        environment.pop("GRADER_COURSE", None)
        self.manager.start_kernel(cwd=str(root), env=environment, extra_arguments=["--log-level=ERROR"])
        self.client = self.manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=SECONDS)

    def run(self, cell: str, meanwhile: Callable[[str], None] = lambda text: None) -> tuple[str, list[dict[str, Any]]]:
        """Run a cell; return its status and outputs. Updated outputs replace earlier ones.

        ``meanwhile`` is called with the text of each output as it arrives.

        """
        request = self.client.execute(cell)
        shown: dict[str, dict[str, Any]] = {}
        while True:
            message = self.client.get_iopub_msg(timeout=SECONDS)
            content, kind = message["content"], message["msg_type"]
            if message["parent_header"].get("msg_id") != request:
                continue
            if kind == "status" and content["execution_state"] == "idle":
                break
            if kind in ("stream", "error", "display_data", "update_display_data", "execute_result"):
                name = content.get("transient", {}).get("display_id", f"{kind} {len(shown)}")
                shown[name] = content
                meanwhile(content.get("data", {}).get("text/plain", ""))
        return self.reply(request)["status"], list(shown.values())

    def reply(self, request: str) -> dict[str, Any]:
        """Wait for the kernel's reply to a request, and return it."""
        while True:
            message = self.client.get_shell_msg(timeout=SECONDS)
            if message["parent_header"].get("msg_id") == request:
                return message["content"]

    def processes(self) -> list[psutil.Process]:
        """Return the running compilers, jails and kernels that the notebook has started.

        addr2line is excluded, because it may outlive a check: the process runs until no Python object, such as a
        traceback, refers to it.
        """
        alive = []
        for process in psutil.Process(self.manager.provisioner.pid).children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess):
                if process.status() != psutil.STATUS_ZOMBIE and "addr2line" not in process.name():
                    alive.append(process)
        return alive

    def wait(self, condition: Callable[[], bool]) -> None:
        end = time.monotonic() + SECONDS / 2
        while not condition():
            assert time.monotonic() < end, [process.cmdline() for process in self.processes()]
            time.sleep(0.02)


@pytest.fixture(scope="module")
def hosted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosted]:
    notebook = Hosted(copy_course(tmp_path_factory.mktemp("hosted")))
    assert notebook.run("%load_ext grader") == ("ok", [])
    yield notebook
    notebook.client.stop_channels()
    notebook.manager.shutdown_kernel(now=True)


def test_a_right_kernel_passes(hosted: Hosted) -> None:
    status, (shown,) = hosted.run(f"%%kernel residual_add --seed 1\n{SOLUTION}")
    text, html = shown["data"]["text/plain"], shown["data"]["text/html"]
    assert status == "ok" and "Passed  10 of 10 points" in text and "%kernel parallel_residual" in text
    assert "<details><summary>Your kernel, with what each line moves</summary>" in html
    assert "the minimum time of each unit of one H200" in html and "DRAM limits this kernel" in html
    assert "Arithmetic was not counted" in html, "that takes -v"
    assert str(hosted.root) not in text + html
    assert (hosted.root / "exercises/day01_residual_add/residual_add.cu").read_text() == SOLUTION


def test_a_kernel_that_does_not_compile_shows_where(hosted: Hosted) -> None:
    _, (shown,) = hosted.run("%%kernel residual_add\n__global__ void add() { retrun; }\n")
    assert "Not passed yet  stops at Builds" in shown["data"]["text/plain"]
    assert "<details open><summary>Your kernel</summary>" in shown["data"]["text/html"]
    assert "^ " in shown["data"]["text/html"].partition("<details")[2]
    assert "What limits the kernel" not in shown["data"]["text/html"]


@pytest.mark.parametrize("when", ["grading day01_residual_add/residual_add: builds", "correct"])
def test_the_stop_button_ends_a_check_and_what_it_started(hosted: Hosted, when: str) -> None:
    """Interrupt while compilers run, and while a kernel runs that never ends."""
    pressed = []

    def press(text: str) -> None:
        if when in text and not pressed:
            hosted.wait(lambda: bool(hosted.processes()))
            pressed.append(text)
            hosted.manager.interrupt_kernel()

    status, shown = hosted.run(f"%%kernel residual_add\n// {when}\n{ENDLESS}", press)
    assert status == "error" and pressed
    assert shown[0]["data"]["text/plain"].endswith("was not graded.")
    assert shown[1]["traceback"] == ["stopped"]
    hosted.wait(lambda: not hosted.processes())


def test_tab_completes_in_a_kernel(hosted: Hosted) -> None:
    line = "%%kernel day01_residual_add/re"
    reply = hosted.reply(hosted.client.complete(f"{line}\nint x;", len(line)))
    assert "day01_residual_add/residual_add" in reply["matches"]
