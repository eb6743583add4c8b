"""A check that is interrupted ends at once, even if a kernel does not return."""

from __future__ import annotations

import threading

import pytest

from grader.execution.runner.client import LoadFailed
from grader.judge import cases
from grader.judge.cases import CasePool, Run, plan
from tests.judge.test_check import exercise


class Endless:
    """A fake child process whose kernel never returns."""

    made: list[Endless]

    def __init__(self) -> None:
        self.killed = threading.Event()
        self.made.append(self)

    def kill(self) -> None:
        self.killed.set()

    def stop(self) -> None:
        pass


@pytest.mark.parametrize("where", ["in a case", "while waiting for other cases"])
def test_ctrl_c_does_not_wait_for_kernels(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    Endless.made = []
    both = threading.Barrier(2)

    def run_case(_: object, run: Run, child: Endless) -> None:
        both.wait()
        if threading.current_thread() is not threading.main_thread():
            assert child.killed.wait(60), "the child was not killed"
        elif where == "in a case":
            raise KeyboardInterrupt

    def join(thread: threading.Thread) -> None:
        assert where != "in a case", "waited for a case although the check was interrupted"
        raise KeyboardInterrupt

    monkeypatch.setattr(cases, "run_case", run_case)
    task = exercise()
    runs = plan(task, task.runs()[:2], seed=1)
    pool = CasePool(task, Endless, helpers=2)  # type: ignore[arg-type]
    monkeypatch.setattr(threading.Thread, "join", join)
    with pytest.raises(KeyboardInterrupt):
        pool.run(runs)
    assert len(Endless.made) == 2 and all(child.killed.is_set() for child in Endless.made)


def test_ctrl_c_counts_even_if_a_case_failed_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C can end a child that is being started, before the main thread handles the signal."""
    Endless.made = []

    def run_case(_: object, run: Run, child: Endless) -> None:
        both.wait()
        if threading.current_thread() is not threading.main_thread():
            raise LoadFailed("the runner does not start: it ended immediately", "")
        assert child.killed.wait(60), "the failure of the other case did not stop this one"
        raise KeyboardInterrupt

    both = threading.Barrier(2)
    monkeypatch.setattr(cases, "run_case", run_case)
    task = exercise()
    pool = CasePool(task, Endless, helpers=2)  # type: ignore[arg-type]
    with pytest.raises(KeyboardInterrupt):
        pool.run(plan(task, task.runs()[:2], seed=1))
