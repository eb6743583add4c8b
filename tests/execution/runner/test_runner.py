"""The child process: effects of misbehaving kernels, and how the parent process reports them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch

from grader.course.task import Case, Exercise, Input, Output, normal
from grader.execution.runner.answers import clean
from grader.execution.runner.client import Child, LoadFailed
from grader.execution.runner.program import build_runner
from grader.judge.cases import plan, run_case
from grader.verdict.wording.cases import text


@pytest.fixture
def child(libraries: tuple[Path, Path]):
    """Return a child process that has not started yet."""
    with Child(build_runner(), libraries[1], libraries[0], {"checks": "1"}) as child:
        yield child


def exercise(launcher: str, **changes) -> Exercise:
    description = dict(
        title="Double it",
        summary="out = 2 x",
        launchers=f"void {launcher}(const float* x, float* out, int n, cudaStream_t stream)",
        inputs={"x": Input("n", normal(mean=1.0))},
        outputs={"out": Output("n")},
        reference=lambda x: 2 * x,
        cases=[Case("some", n=100)],
        timeout=0.5 if launcher in ("hang", "sleep") else 20.0,  # a slow machine may need more time for the others
        name="day00_tests/double_it",
    )
    return Exercise(**{**description, **changes})


def outcome(launcher: str, child: Child, **changes):
    """Run one case and return its result."""
    task = exercise(launcher, **changes)
    run = plan(task, task.runs(), seed=1)[0]
    run_case(task, run, child)
    return run.result


def test_right_kernel_passes(child: Child) -> None:
    result = outcome("double_it", child)
    assert result.passed, text(result)
    assert result.outputs[0].elements == 100


@pytest.mark.parametrize(
    ("launcher", "problem", "says"),
    [
        ("half_of_it", "unwritten", "the last 50 elements of 100 were never written"),
        ("nothing", "unwritten", "nothing was written"),
        ("crash", "crash", "SIGSEGV"),
        ("abort_it", "crash", "SIGABRT"),
        ("hang", "timeout", "did not finish within 0.5 s"),
        ("sleep", "timeout", "did not finish within 0.5 s"),
        ("leave", "exit", "exit code 0"),
        ("leave_quietly", "exit", "exit code 3"),
        ("flood", "output", "more than 16 MB"),
        ("refuse", "launch", "cudaErrorInvalidConfiguration"),
        ("missing", "call", "there is no launcher missing"),
        ("change_input", "inputs", "changed its input x"),
        ("orphan", "exit", "exit code 0"),
        ("forge", "guard", "outside its output"),
    ],
)
def test_bad_kernels_are_verdicts(child: Child, launcher: str, problem: str, says: str) -> None:
    result = outcome(launcher, child)
    assert (result.status, result.problem) == ("failed", problem), text(result)
    assert says in text(result)


def test_child_starts_again_after_a_crash(child: Child) -> None:
    assert not outcome("crash", child).passed
    assert outcome("double_it", child).passed


def test_a_lost_connection_is_a_verdict(child: Child) -> None:
    result = outcome("close_all", child)
    assert result.problem == "exit"


def test_printed_text_is_harmless(child: Child) -> None:
    result = outcome("say", child)
    assert result.passed
    assert "n is 100" in result.printed and "\033" not in result.printed
    assert len(clean("x" * 100_000)) < 5000


def test_worst_elements_name_their_writer(child: Child) -> None:
    result = outcome("double_it", child, reference=lambda x: 3 * x)
    assert "block (0, 1, 2) thread (3, 4, 5)" in text(result)


def test_empty_inputs(child: Child) -> None:
    assert outcome("double_it", child, cases=[Case("none", n=0)]).passed


def test_settings_are_checked(libraries: tuple[Path, Path]) -> None:
    with Child(build_runner(), libraries[1], libraries[0], {"nonsense": "1"}) as child, pytest.raises(LoadFailed):
        child.start()


def test_inputs_are_sealed_and_outputs_fresh(child: Child) -> None:
    from grader.execution.runner.buffers import prepare

    task = exercise("double_it")
    with prepare(task.call(task.cases[0], "f32", 1)) as first, prepare(task.call(task.cases[0], "f32", 1)) as second:
        with pytest.raises(PermissionError):
            os.pwrite(first.input_file, b"x", 0)
        with pytest.raises(PermissionError):
            os.ftruncate(first.output_file, 0)
        assert first.poison != second.poison
        assert bool(torch.isnan(first.tensor(first.poison, "out")).all())
        damaged = bytearray(first.poison)
        place = first.outputs["out"]
        damaged[place.start + place.bytes + 8] ^= 1
        assert first.damaged_guards(bytes(damaged)) == {"out": 2}


def test_no_child_outlives_its_parent_object(child: Child) -> None:
    outcome("orphan", child)
    child.start()
    pid = child._process.pid
    child.stop()
    assert not Path(f"/proc/{pid}").exists()
