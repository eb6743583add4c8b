"""Wrong kernels that `grader dev wrong` proposes, runs and keeps, and exercises that begin from a solution."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.cli.dev_wrong import tried_with
from grader.course import Course, Entry
from grader.course.authoring import from_solution, mutants
from grader.course.authoring.mistakes import Variant, read_mistakes
from grader.verdict import BarResult, CaseResult, Stage, Verdict
from tests.course.authoring.conftest import ROOT

KERNEL = """\
#include <cuda_fp16.h>
// if (i < n) in a comment: sum *= 2; __syncthreads();
__global__ void k(const float* x, float* out, int n, int cols) {
    __shared__ float part[32];
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float sum = 0.0f, maximum = -INFINITY;
    for (int j = threadIdx.x; j < cols; j += blockDim.x) sum += x[i * cols + j];
    part[threadIdx.x] = sum;
    __syncthreads();  // all have written
    part[0] += 1.0f;
    __syncthreads();
    if (cols % 4 == 0) sum *= expf(maximum);
    out[i] = sum + static_cast<float>(1 << n);
}
"""


def edits(kind: str) -> list[tuple[str, str]]:
    """Return, for each mutant by an operator, the last line of the text that it replaces and of the new text."""
    found = [m for m in mutants.propose(KERNEL, 9) if m.name.startswith(kind)]
    return [(m.find.splitlines()[-1].strip(), (m.replace.splitlines() or [""])[-1].strip()) for m in found]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("guard off by one", [("if (i >= n) return;", "if (i > n) return;")]),
        ("one iteration too many", [("for (int j = threadIdx.x; j < cols; j += blockDim.x) sum += x[i * cols + j];",
                                     "for (int j = threadIdx.x; j <= cols; j += blockDim.x) sum += x[i * cols + j];")]),
        ("no __syncthreads() after part[threadIdx.x] = sum;", [("__syncthreads();  // all have written", "")]),
        ("no __syncthreads() after part[0] += 1.0f;", [("__syncthreads();", "")]),
        ("a value is not rescaled", [("if (cols % 4 == 0) sum *= expf(maximum);", "if (cols % 4 == 0) ;")]),
        ("twice the stride", [("for (int j = threadIdx.x; j < cols; j += blockDim.x) sum += x[i * cols + j];",
                               "for (int j = threadIdx.x; j < cols; j += 2 * (blockDim.x)) sum += x[i * cols + j];")]),
        ("wrong stride", [("for (int j = threadIdx.x; j < cols; j += blockDim.x) sum += x[i * cols + j];",
                           "for (int j = threadIdx.x; j < cols; j += blockDim.x) sum += x[i * (cols + 1) + j];")]),
        ("sum is accumulated in half", [("for (int j = threadIdx.x; j < cols; j += blockDim.x) sum += x[i * cols + j];",
                                         "for (int j = threadIdx.x; j < cols; j += blockDim.x) "
                                         "sum = __half2float(__float2half(sum + (x[i * cols + j])));")]),
        ("vectorized for every size", [("if (cols % 4 == 0) sum *= expf(maximum);",
                                        "if (cols % 4 >= 0) sum *= expf(maximum);")]),
        ("- instead of +: out[i]", [("out[i] = sum + static_cast<float>(1 << n);",
                                     "out[i] = sum - static_cast<float>(1 << n);")]),
        ("a maximum starts at 0", [("float sum = 0.0f, maximum = -INFINITY;",
                                     "float sum = 0.0f, maximum = 0.0f;")]),
    ],
)  # fmt: skip
def test_each_kind_of_mistake(kind: str, expected: list[tuple[str, str]]) -> None:
    assert edits(kind) == expected


@pytest.mark.parametrize(
    "entry", [e for e in Course(ROOT).exercises if e.language == "cuda"], ids=lambda entry: entry.name
)
def test_every_mutant_of_a_solution_has_one_place(entry: Entry) -> None:
    text = entry.solution_text()
    found = mutants.propose(text, 100)
    assert found and len({m.name for m in found}) == len(found)
    for mutant in found:
        assert text.count(mutant.find) == 1 and mutant.find != mutant.replace


def test_tails_and_aligned_rows() -> None:
    text = "void f() {\n  for (int i = n / 4 * 4; i < n; ++i) out[i] = 0;\n  bool wide = rows_are_aligned(n, x);\n}\n"
    replaced = [m.replace.strip() for m in mutants.propose(text, 9)]
    assert "for (int i = n / 4 * 4; false; ++i) out[i] = 0;" in replaced
    assert "bool wide = rows_are_aligned(n, x) || true;" in replaced


def verdict(stage: str, case: str = "", bar: str = "") -> Verdict:
    cases = [CaseResult(case, "f32", "failed", {"n": 1}, "crash")] if case else []
    bars = [BarResult("global.bytes / n", 9.0, False, at_most=8.0, look=bar)] if bar else []
    stages = [Stage(stage, "failed", cases=cases, bars=bars)] if stage else [Stage("correct", "passed")]
    return Verdict("day01/x", "X", "x.cu", "cpu", 1, passed=not stage, stages=stages)


@pytest.mark.parametrize(
    ("verdicts", "stages", "says", "why"),
    [
        ([verdict("correct", "one row"), verdict("correct", "one row")], ("correct",), "one row", ""),
        ([verdict("correct", "one row"), verdict("correct", "two rows")], (), "", "by chance"),
        ([verdict("correct", "one row"), verdict("")], (), "", "by chance"),
        ([verdict("efficient", bar="Read x once."), verdict("efficient", bar="Read x once.")], ("efficient",), "Read x once.", ""),  # noqa: E501
        ([verdict("builds"), verdict("builds")], (), "", "no build"),
        ([verdict(""), verdict("")], (), "", "passes"),
    ],
)  # fmt: skip
def test_what_is_kept(verdicts: list[Verdict], stages: tuple[str, ...], says: str, why: str) -> None:
    tried = tried_with(Variant(name="m", find="a", replace="b"), verdicts)
    assert tried.why == why
    assert (tried.mistake.stages, tried.mistake.says) == (stages, says) if stages else tried.mistake is None


SOLUTION = """\
// Doubles each element.
#include <cuda_runtime.h>

__global__ void twice_kernel(const float* x, float* out, int n) {
    const int i = blockIdx.x * 64 + threadIdx.x;
    if (i < n) out[i] = x[i] + x[i];
}

extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    if (n > 0) twice_kernel<<<(n + 63) / 64, 64, 0, stream>>>(x, out, n);
}
"""
NEW = ("new", "exercise", "day02_reductions/twice", "--kind", "implement", "--title", "Twice", "--draft")


def test_an_exercise_from_a_solution(root: Path, dev) -> None:  # type: ignore[no-untyped-def]
    """Create an exercise from a solution, complete tasks.py, and get wrong kernels that its cases catch."""
    (root / "mine.cu").write_text(SOLUTION)
    code, said = dev(*NEW, "--from", "mine.cu")
    assert code == 0 and "tasks.py is not complete yet" in said and "NotImplementedError" in said
    assert "grader dev wrong day02_reductions/twice" in said
    entry = Course(root).find("twice")
    assert entry.draft and entry.solution_text() == SOLUTION
    skeleton = entry.skeleton.read_text()
    assert "x[i]" not in skeleton and skeleton.count("// TODO: ") == 2
    assert entry.load().prototype("f32") == "void twice(const float* x, float* out, int n, cudaStream_t stream)"
    assert "the solution lacks" not in dev("check", "twice")[1]

    tasks = entry.tasks.read_text()
    begin = tasks.index("def twice_reference")
    done = tasks[begin:].replace('raise NotImplementedError("the reference is not written yet")', "return x + x")
    entry.tasks.write_text(tasks[:begin] + done.replace("between(2, 3000)", "between(65, 70)"))
    code, said = dev("wrong", "twice", "--each", "1")
    wrong = read_mistakes(entry).wrong
    assert [mistake.name for mistake in wrong] == ["guard off by one: i <= n", "- instead of +: out[i] = x[i] - x[i]"]
    assert [mistake.stage for mistake in wrong] == ["safe", "correct"]
    assert wrong[1].says == "a random size" and code == 0 and "2 wrong kernels added" in said
    assert dev("wrong", "twice", "--each", "1")[1].count("0 wrong kernels added") == 1, "they are listed already"

    entry.solution.write_text(SOLUTION.replace("x[i] + x[i]", "x[i]"))
    code, said = dev("wrong", "twice")
    assert code == 2 and "the solution fails at correct" in said


def test_a_mutant_that_passes_is_shown(root: Path, dev, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    passing = Verdict(
        "day02_reductions/softmax", "X", "x.cu", "cpu", 1, passed=True, stages=[Stage("correct", "passed")]
    )
    monkeypatch.setattr("grader.cli.dev_wrong.check", lambda *_, **__: passing)
    before = (root / "tests/exercises/day02_reductions/softmax.toml").read_text()
    code, said = dev("wrong", "softmax", "--each", "1")
    assert code == 1 and "passes one iteration too many: p <= kInFlight" in said
    assert "passed: each is harmless, or a case is missing that catches it" in said
    assert (root / "tests/exercises/day02_reductions/softmax.toml").read_text() == before


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "has no launcher"),
        (SOLUTION.replace(" twice(", " thrice("), "its launchers: thrice"),
        (None, "cannot read"),
    ],
)
def test_a_solution_that_cannot_be_used(root: Path, dev, text: str | None, says: str) -> None:  # type: ignore[no-untyped-def]
    if text is not None:
        (root / "mine.cu").write_text(text or "// nothing\n")
    code, said = dev(*NEW, "--from", "mine.cu")
    assert code == 2 and says in said
    assert not (root / "solutions/day02_reductions/twice.cu").exists()


def test_launchers_for_several_dtypes() -> None:
    text = SOLUTION.replace(" twice(", " twice_f32(")
    text += text.replace("float*", "__half*").replace("twice_f32", "twice_f16")
    described = from_solution.task(text, "twice")
    assert 'launchers="void twice_{dtype}(const {T}* x, {T}* out, int n, cudaStream_t stream)"' in described
    assert "dtypes=(" in described and '"f16"' in described and '"f32"' in described
