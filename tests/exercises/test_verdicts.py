"""Every kernel of the course gets the expected verdict on the simulator."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from grader.course import Entry
from grader.course.authoring.mistakes import Failure, Mistake, other_designs, read_mistakes
from grader.course.task import Call, Exercise
from grader.frontend.toolchain.process import run_command
from grader.judge import check, driver
from grader.judge.cases import CasePool
from grader.verdict import FAILED, PASSED, STAGES, Verdict
from tests.exercises.conftest import COURSE, Wrong, as_seen, wrong_kernels
from tests.exercises.narrowed import narrowed_task, narrowed_text
from tests.seeds import SEED

ENTRIES = COURSE.exercises


@pytest.fixture(scope="module", autouse=True)
def one_child() -> Iterator[None]:
    """Run one case at a time, because the tests themselves run in parallel. No case then runs after a failing one.

    Run compilers without a jail, which would copy files. tests/attacks tests the jails.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("grader.judge.cases.CHILDREN", 1)
        patch.setattr("grader.execution.jail.compiling.run_in", lambda jail: run_command)
        yield


@pytest.fixture(scope="module", autouse=True)
def drawn_once() -> Iterator[None]:
    """Draw inputs and compute references once for all kernels of an exercise."""
    kept: dict[str, dict[tuple[object, ...], Any]] = {}
    draw, refer = Exercise.call, Exercise.expected

    def once(task: Exercise, key: tuple[object, ...], make: Callable[[], Any]) -> Any:
        if task.name not in kept:
            kept.clear()
        found = kept.setdefault(task.name, {})
        if key not in found:
            found[key] = make()
        return found[key]

    def expected(task: Exercise, call: Call) -> dict[str, Any]:
        if not any(call is each for each in kept.get(task.name, {}).values()):  # a diagnosis has changed the inputs
            return refer(task, call)
        return once(task, (call.case.name, call.dtype, call.seed, "expected"), lambda: refer(task, call))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            Exercise, "call", lambda task, *asked: once(task, (asked[0].name, *asked[1:]), lambda: draw(task, *asked))
        )
        patch.setattr(Exercise, "expected", expected)
        yield


def verdict_of(exercise: Entry | Exercise, file: Path, last: str = STAGES[-1]) -> Verdict:
    """Return the verdict of the stages up to ``last``; later ones do not run after a failure."""
    return check(exercise, file, device="cpu", seed=SEED, stages=STAGES[: STAGES.index(last) + 1])


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give each block three times as long, so that on a slow machine no kernel counts as an endless loop by mistake.

    Kernels whose blocks wait for each other forever must still be stopped before the time limit of their case.
    """
    monkeypatch.setitem(driver.SETTINGS, "watchdog_seconds", "10")


def must_pass(verdict: Verdict) -> None:
    assert verdict.passed, as_seen(verdict)
    for stage in verdict.stages:
        assert stage.status == PASSED or stage.name in ("efficient", "fast"), as_seen(verdict)


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize(("entry", "kernel"), [(e, e.solution) for e in ENTRIES], ids=[e.name for e in ENTRIES])
def test_solution_passes(entry: Entry, kernel: Path) -> None:
    verdict = verdict_of(entry, kernel)
    must_pass(verdict)
    if entry.load().bars:
        assert verdict.stage("efficient").status == PASSED


DESIGNS = [(entry, name, text) for entry in ENTRIES for name, text in other_designs(entry).items()]


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize(("entry", "name", "text"), DESIGNS, ids=[f"{e.name}: {name}" for e, name, _ in DESIGNS])
def test_other_designs_pass(entry: Entry, name: str, text: str, tmp_path: Path) -> None:
    must_pass(verdict_of(entry, written(entry, text, tmp_path)))


def written(entry: Entry, text: str, folder: Path) -> Path:
    """Write a kernel under the file name of its exercise."""
    file = folder / entry.file_name
    file.write_text(text)
    return file


@pytest.mark.parametrize(("entry", "kernel"), [(e, e.skeleton) for e in ENTRIES], ids=[e.name for e in ENTRIES])
def test_skeleton_builds_and_fails(entry: Entry, kernel: Path) -> None:
    """Check the failure that ``[skeleton]`` names in the file of mistakes. Unfinished skeletons have no such entry."""
    reason = read_mistakes(entry).skeleton
    verdict = verdict_of(entry, kernel) if reason is None else must_fail(entry, kernel, reason)
    assert verdict.stage("builds").status == PASSED, as_seen(verdict)
    assert not verdict.passed and verdict.exit_code == 1


WRONG = wrong_kernels()
ENDLESS = "does not end"
"""The text of a finding that ends a block after its time. A kernel that must get it runs with the learner's limit."""


@pytest.mark.parametrize("wrong", WRONG, ids=[f"{w.entry.name}: {w.mistake.name}" for w in WRONG])
def test_wrong_kernel_fails_for_the_right_reason(wrong: Wrong, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    if wrong.mistake.says != ENDLESS:
        request.getfixturevalue("patient")
    text = wrong.mistake.text(wrong.entry)
    if fails_narrowed(wrong, text, tmp_path):
        return
    last = max(wrong.mistake.stages, key=STAGES.index)
    must_fail(wrong.entry, written(wrong.entry, text, tmp_path), wrong.mistake, last)


def test_there_are_many_wrong_kernels() -> None:
    assert len(WRONG) >= 60


def fails_narrowed(wrong: Wrong, text: str, folder: Path) -> bool:
    """Return whether the kernel, reduced to the case that must catch it, fails as expected.

    If the reduced kernel does not fail so, the caller judges the complete kernel. But a mistake that names a case must
    fail in that case.
    """
    task, mistake = wrong.entry.load(), wrong.mistake
    narrow = narrowed_task(task, mistake)
    if narrow is None:
        return False
    file = written(wrong.entry, narrowed_text(text, task, narrow, SEED), folder)
    verdict = verdict_until_one_fails(narrow, file, max(mistake.stages, key=STAGES.index))
    failed = verdict.failed_stage
    fails = failed is not None and failed.name in {*mistake.stages} - {"builds"} and says(verdict, mistake)
    assert fails or not mistake.case, f"the case {mistake.case!r} does not catch it\n{as_seen(verdict)}"
    return fails


def verdict_until_one_fails(exercise: Entry | Exercise, file: Path, last: str) -> Verdict:
    """Return the verdict of the stages up to ``last``, where cases after the first failing one are skipped."""
    with pytest.MonkeyPatch.context() as patch:
        until_one_fails = functools.partial(CasePool, enough=lambda run: run.result.status == FAILED)
        patch.setattr("grader.judge.driver.CasePool", until_one_fails)
        return verdict_of(exercise, file, last)


def must_fail(entry: Entry, file: Path, failure: Failure | Mistake, last: str = STAGES[-1]) -> Verdict:
    """Assert that the kernel fails as expected, and return the verdict.

    Cases after the first failing one run only if its messages do not contain the expected text.
    """
    verdict = verdict_until_one_fails(entry, file, last)
    if verdict.failed_stage is not None and verdict.failed_stage.name == "correct" and not says(verdict, failure):
        verdict = verdict_of(entry, file, last)
    assert verdict.failed_stage is not None, f"it passes\n{as_seen(verdict)}"
    assert verdict.failed_stage.name in failure.stages, (
        f"it fails at {verdict.failed_stage.name}, not {failure.stages}\n{as_seen(verdict)}"
    )
    assert says(verdict, failure), f"{failure.says!r} is not in:\n{as_seen(verdict)}"
    return verdict


def says(verdict: Verdict, failure: Failure | Mistake) -> bool:
    """Return whether the report contains the expected text."""
    return " ".join(failure.says.lower().split()) in as_seen(verdict).lower()
