"""Complete checks on the simulator: the result of each stage for correct and for wrong kernels."""

from __future__ import annotations

from pathlib import Path

import jsonschema
import pytest

import grader.verdict as v
from grader.course.task import Bar, Case, Exercise, between
from grader.execution.runner import gpu
from grader.judge import check
from grader.report.terminal import as_text
from grader.setup.errors import GraderError
from grader.verdict import schema
from grader.verdict.wording.cases import text
from grader.verdict.wording.results import results
from tests.execution.runner.fake_driver import FakeDriver
from tests.seeds import SEED
from tests.twice import twice

HEAD = "#include <cuda_runtime.h>\n"
KERNEL = """__global__ void twice_kernel(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    BODY
}
"""
LAUNCHER = """extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    if (n > 0) twice_kernel<<<(n + 63) / 64, 64, 0, stream>>>(x, out, n);
}
"""
RIGHT = "if (i < n) out[i] = 2.0f * x[i];"


def exercise(**changes) -> Exercise:
    description = dict(
        cases=[Case("empty", n=0), Case("one", n=1), Case("some", n=100), Case("any", n=between(65, 200))],
        efficient=Case("counted", n=1024),
        bars=[Bar("global_bytes / minimum", at_most=1.1), Bar("launches", at_most=1)],
        points=10,
        timeout=5.0,
    )
    return twice(**{**description, **changes})


@pytest.mark.parametrize(("needed", "says"), [("sm_90", "sm_90 or newer"), ("sm_90a", "sm_90 only")])
def test_a_gpu_older_than_the_exercise_needs(judged, monkeypatch: pytest.MonkeyPatch, needed: str, says: str) -> None:
    monkeypatch.setattr(gpu, "_driver", lambda: FakeDriver(8, 6, b"RTX 3090"))
    monkeypatch.setattr(gpu, "require_torch", lambda: None)
    with pytest.raises(GraderError) as caught:
        judged(task=exercise(architecture=needed), device="cuda")
    assert caught.value.message == f"the exercise needs a GPU of {says}; the first GPU here, RTX 3090, is sm_86"
    assert "--device cpu" in caught.value.hint


@pytest.fixture
def judged(tmp_path: Path):
    """Return the verdict on a kernel body or on a complete file."""

    def run(body: str = RIGHT, whole: str | None = None, launcher: str = LAUNCHER, **arguments) -> v.Verdict:
        file = tmp_path / "twice.cu"
        file.write_text(whole if whole is not None else HEAD + KERNEL.replace("BODY", body) + launcher)
        task = arguments.pop("task", None) or exercise()
        return check(task, file, **{"seed": SEED, **arguments})

    return run


def statuses(verdict: v.Verdict) -> str:
    return " ".join(f"{stage.name}={stage.status}" for stage in verdict.stages)


def test_unwritten_outputs_of_a_stopped_launcher_are_not_another_finding(judged) -> None:
    stage = judged(launcher=LAUNCHER.replace("if (n > 0)", "if (n > 0 && x[0] < 1e9f)")).stage("safe")
    assert [finding.kind for finding in stage.findings] == ["host_access"]


def test_a_right_kernel(judged) -> None:
    verdict = judged()
    assert verdict.passed and verdict.exit_code == 0, as_text(verdict)
    assert statuses(verdict) == "builds=passed correct=passed safe=passed efficient=passed fast=skipped"
    assert verdict.score == verdict.points == 10
    assert verdict.stage("efficient").totals["launches"] == 1
    assert verdict.stage("efficient").lines[0].source.strip() == RIGHT
    jsonschema.validate(results(verdict), schema.schema())


def test_a_syntax_error(judged) -> None:
    verdict = judged("out[i] = 2.0f * y[i];")
    assert statuses(verdict) == "builds=failed correct=skipped safe=skipped efficient=skipped fast=skipped"
    stage = verdict.stage("builds")
    assert stage.diagnostics[0].line == 4 and "y" in stage.diagnostics[0].message
    assert verdict.exit_code == 1 and verdict.stage("safe").summary == "not run, as builds failed"


def test_a_remark_about_code_that_compiles(judged) -> None:
    verdict = judged(
        "if (i >= n) return;\n    float sum;\n    for (int k = 0; k < 2; ++k) sum += x[i];\n    out[i] = sum;"
    )
    assert statuses(verdict).startswith("builds=passed correct=failed"), as_text(verdict)
    (remark,) = verdict.stage("builds").diagnostics
    assert (remark.severity, remark.line, remark.message) == ("warning", 6, "'sum' is used uninitialized")
    assert "float sum = 0;" in as_text(verdict)

    harmless = judged("if (i < n) out[i] = 2.0f * x[0, i];")
    assert harmless.passed and "x[0, i] is x[i]" in as_text(harmless)
    assert not judged().stage("builds").diagnostics


@pytest.mark.parametrize(
    ("launcher", "says"),
    [
        (LAUNCHER.replace("int n,", "float n,"), "expected 'int n'"),
        (LAUNCHER.replace("twice(", "two("), "no launcher twice"),
        (LAUNCHER.replace("int n, ", ""), "expected"),
    ],
)
def test_a_wrong_launcher(judged, launcher: str, says: str) -> None:
    verdict = judged(
        launcher=launcher.replace("x, out, n)", "x, out, 5)").replace("if (n > 0)", "").replace("(n + 63) / 64", "1")
    )
    assert verdict.stage("builds").status == v.FAILED
    assert says in verdict.stage("builds").message
    assert "void twice(const float* x, float* out, int n, cudaStream_t stream)" in verdict.stage("builds").message


def test_a_wrong_result_names_the_writer(judged) -> None:
    verdict = judged("if (i < n) out[i] = 3.0f * x[i];")
    assert statuses(verdict).startswith("builds=passed correct=failed safe=skipped efficient=skipped")
    case = next(c for c in verdict.stage("correct").cases if c.name == "some")
    assert case.problem == "wrong" and "every element is 1.5 times" in text(case)
    worst = case.outputs[0].worst[0]
    assert worst.block[0] * 64 + worst.thread[0] == worst.index[0]
    assert verdict.stage("correct").cases[0].status == v.PASSED, "the empty case"


def test_a_launcher_that_launches_nothing(judged) -> None:
    verdict = judged(launcher=LAUNCHER.replace("if (n > 0)", "if (n < 0)"))
    assert statuses(verdict).startswith("builds=passed correct=failed safe=skipped")
    assert verdict.stage("correct").summary == "nothing is launched yet"
    report = as_text(verdict)
    assert "returned without launching a kernel" in report and "Also failing" not in report
    assert "Start here:  the launcher: it launches no kernel yet" in report


def test_a_launcher_that_launches_nothing_for_some_sizes(judged) -> None:
    verdict = judged(launcher=LAUNCHER.replace("if (n > 0)", "if (n > 1)"))
    assert "1 of" in verdict.stage("correct").summary and "returned without launching a kernel" in as_text(verdict)


def test_an_overrunning_store_is_not_reported_as_a_missing_one(judged) -> None:
    body = "if (i < n) reinterpret_cast<float4*>(out)[i] = make_float4(2.0f * x[i], 0, 0, 0);"
    verdict = judged(body, task=exercise(cases=[Case("one", n=1)], efficient=None, bars=[]))
    assert [finding.kind for finding in verdict.stage("safe").findings] == ["out_of_bounds"]


@pytest.mark.parametrize("reported", [False, True])
def test_writes_of_the_same_value_are_findings_on_request(judged, reported: bool) -> None:
    body = "__shared__ int same; same = 3; if (i < n) out[i] = 2.0f * x[i];"
    verdict = judged(body, stages=["correct", "safe"], same_value_races=reported)
    assert verdict.stage("safe").status == ("failed" if reported else "passed"), as_text(verdict)


def test_the_seed_reproduces_inputs_and_sizes(judged) -> None:
    wrong = "if (i < n) out[i] = x[i];"
    one, two, other = judged(wrong, seed=11), judged(wrong, seed=11), judged(wrong, seed=None)
    assert one.seed == 11 and other.seed != 11, "each check of a learner must draw new inputs"

    def shown(verdict: v.Verdict) -> list:
        return [
            (c.dims, [(w.expected, w.actual) for o in c.outputs for w in o.worst])
            for c in verdict.stage("correct").cases
        ]

    assert shown(one) == shown(two) != shown(other)


def test_a_kernel_that_cannot_be_loaded(judged) -> None:
    whole = HEAD + "void missing_function();\n" + KERNEL.replace("BODY", RIGHT)
    verdict = judged(whole=whole + LAUNCHER.replace("if (n > 0)", "missing_function();\n    if (n > 0)"))
    assert not verdict.passed and "missing_function" in as_text(verdict)
