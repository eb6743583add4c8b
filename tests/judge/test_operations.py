"""With ``details``, the verdict and its reports contain the operations and lanes of each line, in each jail."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import jsonschema
import pytest

from grader import verdict as v
from grader.judge import check
from grader.report.html import html_page
from grader.report.terminal import as_text
from grader.simulator import disassembly
from grader.verdict import schema
from grader.verdict.wording.results import results
from tests.attacks.conftest import exercise, tier  # noqa: F401
from tests.seeds import SEED

KERNEL = """
__global__ void twice_kernel(const float* x, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float value = x[i];
  if (i % 4 == 0) {
    value = value * 1.5f;  // eight of 32 lanes
    value = value / 1.5f;
  }
  out[i] = value + x[i];
}
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
  twice_kernel<<<(n + 127) / 128, 128, 0, stream>>>(x, out, n);
}
"""
N = 512
"""Size of the case whose counters are shown."""


@pytest.fixture
def kernel(tmp_path: Path) -> Path:
    path = tmp_path / "twice.cu"
    path.write_text(KERNEL)
    return path


def efficient(kernel: Path, **options: bool) -> tuple[v.Verdict, v.Stage]:
    verdict = check(exercise(), kernel, seed=SEED, **options)
    assert verdict.passed, as_text(verdict)
    stage = verdict.stage("efficient")
    assert stage
    return verdict, stage


def test_operations_and_lanes_by_line(kernel: Path, tier: str) -> None:  # noqa: F811
    verdict, stage = efficient(kernel, details=True)
    assert stage.note == ""
    assert stage.totals["flops"] == N + 2 * N / 4 and stage.totals["special_functions"] == 0
    lines = {line.source.strip(): line.counters for line in stage.lines}
    few = lines["value = value * 1.5f;  // eight of 32 lanes"]
    assert few["flops"] == N / 4 and few["active_lanes"] == 8
    assert lines["out[i] = value + x[i];"]["flops"] == N and lines["out[i] = value + x[i];"]["sectors"] > 0
    jsonschema.validate(results(verdict), schema.schema())
    text, page = as_text(verdict, verbose=True), html_page(verdict)
    assert "768 floating-point operations; 0.188 operations for each byte" in " ".join(text.split())
    assert "768 floating-point operations" in page
    (row,) = [row for row in text.splitlines() if "// eight of 32" in row and "128" in row]
    assert row.split()[:3] == ["7", "128", "8.0"]


def test_operations_are_counted_only_on_request(kernel: Path) -> None:
    verdict, stage = efficient(kernel)
    assert "flops" not in stage.totals and "What it computes" not in as_text(verdict, verbose=True)


def test_without_objdump_the_other_counters_are_shown(kernel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disassembly, "shutil", SimpleNamespace(which=lambda name: None))
    verdict, stage = efficient(kernel, details=True)
    assert "flops" not in stage.totals and stage.lines
    text = " ".join(as_text(verdict, verbose=True).split())
    assert "objdump, which disassembles the compiled kernel, was not found" in text and "Install binutils." in text
