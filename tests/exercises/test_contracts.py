"""Rules for every exercise: those of `grader dev check`, and cases that reject trivial outputs."""

from __future__ import annotations

import pytest
import torch

from grader.course import Day, Entry
from grader.course.authoring import day_rules, exercise_rules
from grader.course.python_task import PythonExercise
from grader.course.task import Call, Case, Exercise, torch_dtype
from grader.judge.comparison.compare import compare
from tests.exercises.conftest import COURSE
from tests.seeds import SEED

ENTRIES = COURSE.exercises
LONG_RUN = 25
"""The maximum number of consecutive lines that two solutions may share, without blank lines."""
CONSTANTS = ("zeros", "ones", "the mean", "the mean of each row", "noise", "NaN")


def names(entry: Entry) -> str:
    return entry.name


every_exercise = pytest.mark.parametrize("entry", ENTRIES, ids=names)


@every_exercise
def test_the_exercise_lacks_nothing(entry: Entry) -> None:
    """Check that the exercise satisfies every rule of `grader dev check`."""
    assert not exercise_rules.lacks(entry)


@pytest.mark.parametrize("day", COURSE.days, ids=lambda day: day.folder)
def test_the_day_lacks_nothing(day: Day) -> None:
    assert not day_rules.lacks(day)


def test_every_day_with_kernels_is_listed() -> None:
    assert not list(day_rules.unlisted_days(COURSE))


def test_solutions_share_no_long_run_of_lines() -> None:
    """Check that solutions share at most LONG_RUN consecutive lines.

    Common code belongs in a header of ``lessons/llmk``.
    """
    places: dict[tuple[str, ...], str] = {}
    for entry in ENTRIES:
        lines = [line.strip() for line in entry.solution.read_text().splitlines() if line.strip()]
        for start in range(len(lines) - LONG_RUN):
            run = tuple(lines[start : start + LONG_RUN + 1])
            other = places.setdefault(run, entry.name)
            assert other == entry.name, f"{entry.name} and {other} share more than {LONG_RUN} lines, from: {run[0]}"


@pytest.fixture
def no_diagnosis(monkeypatch: pytest.MonkeyPatch) -> None:
    """Skip the diagnosis of wrong outputs, because it takes longer than the comparison."""
    monkeypatch.setattr("grader.judge.comparison.compare.diagnose", lambda *_: "")


@every_exercise
def test_trivial_outputs_fail(entry: Entry, no_diagnosis: None) -> None:
    """Check that trivial outputs fail: zeros, constants, means, noise, the inputs, and the task's ``lazy`` outputs.

    A case may accept a trivial output only if its reference is trivial too (the softmax of one column is 1). Most cases
    must reject zeros, constants, means and noise; at least one must reject the inputs and the ``lazy`` outputs.
    """
    task = entry.load()
    if isinstance(task, PythonExercise):
        return  # its model judges operations, and there are no outputs
    told: dict[str, list[bool]] = {}
    for number, (case, dtype) in enumerate(task.runs()):
        call = task.call(case, dtype, task.case_seed(SEED + number, case, dtype))
        expected = task.expected(call)
        if not any(value.numel() for value in expected.values()):
            continue
        for name, outputs in trivial_outputs(task, call, expected).items():
            passed = passes(task, call, outputs, expected)
            if passed and name in CONSTANTS:
                is_answer = all(equal(outputs[output], expected[output]) for output in expected)
                assert is_answer, f"{name} passes in {case.name!r} ({dtype})"
            told.setdefault(name, []).append(not passed)
    for name, failed in told.items():
        enough = len(failed) / 2 if name in CONSTANTS else 1 if len(failed) > len(task.dtypes) else 0
        assert sum(failed) >= enough, f"{name} fails in {sum(failed)} of {len(failed)} cases only"


def trivial_outputs(task: Exercise, call: Call, expected: dict) -> dict[str, dict]:
    """Return outputs by name, such as zeros or the inputs, that a kernel could return without computing."""
    generator = torch.Generator().manual_seed(call.seed)

    def each(make) -> dict:
        return {name: make(value.to(torch.float64)).expand(value.shape) for name, value in expected.items()}

    def finite_mean(value: torch.Tensor) -> torch.Tensor:
        return torch.nan_to_num(value, posinf=0.0, neginf=0.0).mean()

    found = {
        "zeros": each(torch.zeros_like),
        "ones": each(torch.ones_like),
        "the mean": each(finite_mean),
        "the mean of each row": each(lambda v: v.mean(dim=-1, keepdim=True) if v.dim() else v * 0),
        "noise": each(lambda v: torch.rand(v.shape, generator=generator, dtype=torch.float64)),
    }
    if all(value.is_floating_point() for value in expected.values()):
        found["NaN"] = each(lambda v: torch.full_like(v, torch.nan))
    for name, tensor in call.tensors.items():
        if all(tensor.numel() == value.numel() for value in expected.values()):
            found[f"the input {name}"] = each(lambda v, t=tensor: t.to(torch.float64).reshape(v.shape))
    for number, make in enumerate(task.trivial):
        found[f"trivial {number}"] = task.outputs_of(make, call)
    return found


def equal(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Return whether a trivial output equals the reference, up to rounding."""
    if not b.is_floating_point():
        a = a.to(b.dtype)  # compare integers in the dtype of the output
    return torch.allclose(a.to(torch.float64), b.to(torch.float64), rtol=1e-6, atol=1e-12)


def passes(task: Exercise, call: Call, outputs: dict, expected: dict) -> bool:
    """Return whether the judge's comparison would accept all outputs of a call."""
    for name, wanted in expected.items():
        dtype = call.output_dtypes[name]
        tolerance = task.tolerance_of(name, call.dtype)
        target = torch.uint8 if dtype == "bool" else torch_dtype(dtype)
        if not compare(
            name, outputs[name].to(target), wanted, dtype, tolerance, scale=task.scale_of(name, call)
        ).passed:
            return False
    return True


def test_weak_cases_fail_the_test_of_trivial_outputs() -> None:
    """Check that test_trivial_outputs_fail fails for a task whose inputs make zeros the correct result."""
    from grader.course.task import Input, Output, constant

    weak = Exercise(
        summary="",
        launchers="void weak(const float* x, float* out, int n, cudaStream_t stream)",
        inputs={"x": Input("n", constant(0.0))},
        outputs={"out": Output("n")},
        reference=lambda x: x * 2,
        cases=[Case("zero", n=8)],
    )
    call = weak.call(weak.cases[0], "f32", 1)
    expected = weak.expected(call)
    assert passes(weak, call, trivial_outputs(weak, call, expected)["zeros"], expected)
