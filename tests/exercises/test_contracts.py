"""What every exercise keeps to, whatever it is about: its files, its hints, and references that nothing trivial meets."""

from __future__ import annotations

import re

import pytest
import torch

from grader.comparison.compare import compare
from grader.course import Entry
from grader.course.task import Call, Case, Exercise, torch_dtype
from grader.course.tolerance import LARGEST
from grader.source import course_headers
from tests.exercises.conftest import COURSE, ROOT, described
from tests.seeds import SEED

ENTRIES = COURSE.exercises
LONG_RUN = 25
"""Lines that two solutions may share in a row, blank ones not counted."""
CONSTANTS = ("zeros", "ones", "the mean", "the mean of each row", "noise", "NaN")


def names(entry: Entry) -> str:
    return entry.name


every_exercise = pytest.mark.parametrize("entry", ENTRIES, ids=names)


@every_exercise
def test_files_are_there(entry: Entry) -> None:
    assert entry.skeleton.is_file()
    assert entry.solution.is_file()
    assert len(entry.designs) >= 2, "at least two right kernels of other designs"
    assert len(described(entry).get("wrong", [])) >= 6, "at least six mistakes that people make"


@every_exercise
def test_the_list_says_what_the_task_says(entry: Entry) -> None:
    """The list is read from the text of tasks.py; it must agree with the running one."""
    task = entry.load()
    assert isinstance(task, Exercise)
    assert (entry.title, entry.kind, entry.points) == (task.title, task.kind, task.points)
    assert entry.hints == tuple(task.hints) and entry.summary == " ".join(task.summary.split())


@every_exercise
def test_three_hints(entry: Entry) -> None:
    hints = entry.load().hints
    assert len(hints) == 3
    assert all(len(hint) > 20 for hint in hints) and len(set(hints)) == 3


@every_exercise
def test_the_summary_says_what_happens_at_empty_input(entry: Entry) -> None:
    assert entry.summary and len(entry.summary) > 60


def test_no_kernel_without_a_task() -> None:
    for part in ("exercises", "solutions"):
        for file in sorted((ROOT / part).glob("day*/*.cu")):
            assert any(file in (e.skeleton, e.solution) for e in ENTRIES), f"{file} belongs to no exercise"
    for file in sorted((ROOT / "tests" / "exercises").glob("day*/*.cu")):
        assert any(file in e.designs or file.name in wrong_files(e) for e in ENTRIES), f"{file} belongs to no exercise"


def wrong_files(entry: Entry) -> list[str]:
    """Names of the whole wrong kernels of an exercise."""
    return [mistake["file"] for mistake in described(entry).get("wrong", []) if "file" in mistake]


def meaningful_lines(text: str) -> list[str]:
    """The lines that a solution must keep: all but blank ones and the comments that say what is TO DO."""
    kept: list[str] = []
    within = False
    for line in text.splitlines():
        stripped = line.strip()
        comment = stripped.startswith("//")
        within = comment and (within or "TODO" in stripped)
        if stripped and not within and not ("TODO" in stripped and "//" in stripped):
            kept.append(stripped)
    return kept


@pytest.mark.parametrize("entry", [e for e in ENTRIES if e.kind == "implement"], ids=names)
def test_solving_only_adds_lines(entry: Entry) -> None:
    """Else a learner cannot tell which given line has to go."""
    solution = iter(line.strip() for line in entry.solution.read_text().splitlines())
    for line in meaningful_lines(entry.skeleton.read_text()):
        assert any(line == other for other in solution), f"the solution lacks, at its place: {line}"


def test_no_long_run_of_lines_stands_in_two_solutions() -> None:
    """What several solutions need stands in a header of the course (``lessons/llmk``), once."""
    places: dict[tuple[str, ...], str] = {}
    for entry in ENTRIES:
        lines = [line.strip() for line in entry.solution.read_text().splitlines() if line.strip()]
        for start in range(len(lines) - LONG_RUN):
            run = tuple(lines[start : start + LONG_RUN + 1])
            other = places.setdefault(run, entry.name)
            assert other == entry.name, f"{entry.name} and {other} share more than {LONG_RUN} lines, from: {run[0]}"


@pytest.mark.parametrize("entry", ENTRIES, ids=names)
def test_only_exercises_have_things_to_do(entry: Entry) -> None:
    has = "TODO" in entry.skeleton.read_text()
    assert has == (entry.kind == "implement")
    assert "TODO" not in entry.solution.read_text()


@every_exercise
def test_kernels_include_headers_of_cuda_and_of_the_course_only(entry: Entry) -> None:
    for file in (entry.skeleton, entry.solution, *entry.designs):
        for include in re.findall(r"#include\s*([<\"].*?[>\"])", file.read_text()):
            own = include[1:-1] in course_headers.names()
            assert include.startswith("<") or own, f"{file.name} includes {include}"


@every_exercise
def test_tolerances_are_tight_enough(entry: Entry) -> None:
    task = entry.load()
    given = [*task.tolerance.values(), *(o.tolerance for o in task.outputs.values() if o.tolerance is not None)]
    assert all(0 < value <= LARGEST for value in given)


@every_exercise
def test_bars_have_a_case(entry: Entry) -> None:
    task = entry.load()
    assert bool(task.bars) == (task.efficient is not None)


@every_exercise
def test_a_case_of_random_sizes_and_ragged_ones(entry: Entry) -> None:
    task = entry.load()
    drawn = [{str(sorted(task.dims_of(case, seed).items())) for seed in range(5)} for case in task.cases]
    assert any(len(different) > 1 for different in drawn), "no case draws its sizes afresh"


@pytest.fixture
def no_diagnosis(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a wrong output looks like takes longer to find out than that it is wrong."""
    monkeypatch.setattr("grader.comparison.compare.diagnose", lambda *_: "")


@every_exercise
def test_trivial_outputs_fail(entry: Entry, no_diagnosis: None) -> None:
    """Zeros, constants, means and noise fail in every case with elements, except where they are the very answer.

    Where a reference is itself trivial (the softmax of one column is 1) the case cannot tell; most others must. The
    inputs, and the task's own lazy outputs, may be near the answer in a case made for something else, but not in all.
    """
    task = entry.load()
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
    """What a kernel might write that did not do the work."""
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
    """Whether a trivial output is the reference itself, up to rounding."""
    if not b.is_floating_point():
        a = a.to(b.dtype)  # as the kernel's whole numbers would be
    return torch.allclose(a.to(torch.float64), b.to(torch.float64), rtol=1e-6, atol=1e-12)


def passes(task: Exercise, call: Call, outputs: dict, expected: dict) -> bool:
    """Whether every output would be accepted."""
    for name, wanted in expected.items():
        dtype = call.output_dtypes[name]
        tolerance = task.tolerance_of(name, call.dtype)
        target = torch.uint8 if dtype == "bool" else torch_dtype(dtype)
        if not compare(
            name, outputs[name].to(target), wanted, dtype, tolerance, scale=task.scale_of(name, call)
        ).passed:
            return False
    return True


def test_trivial_test_sees_a_weak_case() -> None:
    """The test above would notice a task with inputs that make zeros right."""
    from grader.course.task import Input, Output, constant

    weak = Exercise(
        title="weak",
        summary="",
        launchers="void weak(const float* x, float* out, int n, cudaStream_t stream)",
        inputs={"x": Input("n", constant(0.0))},
        outputs={"out": Output("n")},
        reference=lambda x: x * 2,
        cases=[Case("zero", n=8)],
        hints=[],
    )
    call = weak.call(weak.cases[0], "f32", 1)
    expected = weak.expected(call)
    assert passes(weak, call, trivial_outputs(weak, call, expected)["zeros"], expected)
