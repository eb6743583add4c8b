"""Runners that start before their kernel is built: each is taken once, by a child that would start the same process."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from grader.execution.jail.running import NO_JAIL, Jail
from grader.execution.runner import tiers
from grader.execution.runner.client import Child, LoadFailed
from grader.execution.runner.program import build_runner
from grader.execution.runner.warm import WarmRunners
from grader.judge.cases import plan, run_case
from grader.setup.errors import GraderError
from grader.verdict.wording.cases import text
from tests.execution.runner.test_runner import exercise


def jail_of(tier: str) -> Jail:
    """Return the jail of a tier. Skip the test if it does not work here."""
    if why := tiers.why_not(tier):
        pytest.skip(f"the isolation tier {tier} is not available: {why}")
    return Jail(tier) if tier != "none" else NO_JAIL


def runners(libraries: tuple[Path, Path], count: int, jail: Jail = NO_JAIL) -> WarmRunners:
    """Return warm runners for the stand-in simulator."""
    return WarmRunners(Child(build_runner(), Path(), libraries[0], jail=jail) for _ in range(count))


def pid(child: Child) -> int:
    """Return the id of the process that a child started, or took over."""
    assert child._process is not None
    return child._process.pid


def passes(child: Child) -> bool:
    """Return whether the right kernel passes a case in a child."""
    run = plan(task := exercise("double_it"), task.runs(), seed=1)[0]
    run_case(task, run, child)
    assert run.result.passed, text(run.result)
    return True


def started_processes(warm: WarmRunners, count: int) -> list[int]:
    """Wait until ``count`` runners have started. Return the ids of their processes."""
    with warm._changed:
        assert warm._changed.wait_for(lambda: len(warm._ready) == count, 60)
        return [pid(child) for child in warm._ready]


@pytest.mark.parametrize("tier", tiers.TIERS)
def test_each_runner_is_taken_once(libraries: tuple[Path, Path], tier: str) -> None:
    jail = jail_of(tier)
    with runners(libraries, 2, jail) as warm:
        started = started_processes(warm, 2)
        folders = [child.kernel for child in warm._ready]
        taken = []
        for _ in range(3):
            with Child(build_runner(), libraries[1], libraries[0], {"checks": "1"}, jail=jail, warm=warm) as child:
                assert passes(child)
                taken.append(pid(child))
        assert taken[:2] == started and taken[2] not in started
        assert not any(folder.exists() for folder in folders)


def test_a_child_that_crashes_goes_on_in_the_next_runner(libraries: tuple[Path, Path]) -> None:
    with runners(libraries, 2) as warm, Child(build_runner(), libraries[1], libraries[0], warm=warm) as child:
        started = started_processes(warm, 2)
        task = exercise("crash")
        run_case(task, run := plan(task, task.runs(), seed=1)[0], child)
        assert run.result.problem == "crash"
        assert passes(child) and pid(child) == started[1]


@pytest.mark.parametrize("other", ["jail", "limit", "dead"])
def test_only_an_equal_process_that_lives_is_taken(libraries: tuple[Path, Path], other: str) -> None:
    with runners(libraries, 1, jail_of("landlock" if other == "jail" else "none")) as warm:
        (started,) = started_processes(warm, 1)
        if other == "dead":
            os.kill(started, signal.SIGKILL)
            os.waitid(os.P_PID, started, os.WEXITED | os.WNOWAIT)
        seconds = 200 if other == "limit" else 300
        with Child(build_runner(), libraries[1], libraries[0], cpu_seconds=seconds, warm=warm) as child:
            assert passes(child) and pid(child) != started


def test_a_runner_that_is_not_taken_ends(libraries: tuple[Path, Path]) -> None:
    with runners(libraries, 2) as warm:
        started_processes(warm, 2)
        processes = [child._process for child in warm._ready]
        folders = [child.kernel for child in warm._ready]
    assert all(process is not None and process.returncode is not None for process in processes)
    assert not any(folder.exists() for folder in folders)


def test_no_runner_starts_after_the_first_measurement(libraries: tuple[Path, Path]) -> None:
    """``settle`` waits for the runner that is starting; the others do not start, and those that are ready remain."""
    inside, leave, asked = threading.Event(), threading.Event(), []

    class Slow(Child):
        def prepare(self, folder: Path) -> bool:
            inside.set()
            assert leave.wait(60)
            return super().prepare(folder)

    def children() -> Iterator[Child]:
        for number in range(3):
            asked.append(number)
            yield Slow(build_runner(), Path(), libraries[0])

    with WarmRunners(children()) as warm:
        assert inside.wait(60)
        settled = threading.Thread(target=warm.settle)
        settled.start()
        settled.join(0.05)
        assert settled.is_alive(), "a runner is still starting"
        leave.set()
        settled.join(60)
        assert len(warm._ready) == 1
        with Child(build_runner(), libraries[1], libraries[0], warm=warm) as child:
            assert passes(child)
    warm._thread.join(60)
    assert len(asked) < 3


def test_closing_ends_the_runner_that_is_starting(libraries: tuple[Path, Path]) -> None:
    inside, leave = threading.Event(), threading.Event()

    class Slow(Child):
        def prepare(self, folder: Path) -> bool:
            prepared = super().prepare(folder)
            inside.set()
            assert leave.wait(60)
            return prepared

    child = Slow(build_runner(), Path(), libraries[0])
    with WarmRunners([child]) as warm:
        assert inside.wait(60)
    leave.set()
    warm._thread.join(60)
    assert not child.alive and not child.kernel.exists() and warm.take(child) is None


def test_a_runner_that_cannot_start_is_an_error_of_the_child(libraries: tuple[Path, Path]) -> None:
    def refuses() -> Iterator[Child]:
        raise GraderError("the runner does not compile")
        yield

    with WarmRunners(refuses()) as warm, Child(build_runner(), libraries[1], libraries[0], warm=warm) as child:
        assert passes(child)
    nowhere = Path("/bin/false")
    with (
        WarmRunners([Child(nowhere, Path(), libraries[0])]) as warm,
        Child(nowhere, libraries[1], libraries[0], warm=warm) as child,
        pytest.raises(LoadFailed),
    ):
        child.start()


def test_a_stopped_check_takes_no_runner(libraries: tuple[Path, Path]) -> None:
    with runners(libraries, 1) as warm, Child(build_runner(), libraries[1], libraries[0], warm=warm) as child:
        (started,) = started_processes(warm, 1)
        child.kill()
        with pytest.raises(GraderError, match="the check was stopped"):
            child.start()
        assert not child.alive and not os.path.exists(f"/proc/{started}")
