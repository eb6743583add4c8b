"""Launchers get a non-default stream. Work in another stream is reported at its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.judge import check
from grader.report.terminal import as_text
from grader.verdict.findings.launches import Call
from tests.attacks.conftest import exercise
from tests.seeds import SEED

KERNEL = """
__global__ void twice_kernel(const float* x, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 2 * x[i];
}
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
  cudaMemsetAsync(out, 0, n > 0 ? sizeof(float) : 0, stream);
  cudaStream_t other;
  cudaStreamCreate(&other);
  twice_kernel<<<(n + 127) / 128, 128, 0, stream>>>(x, out, n);
  cudaStreamDestroy(other);
}
"""
LAUNCH = "<<<(n + 127) / 128, 128, 0, stream>>>"


@pytest.mark.parametrize(
    ("before", "after", "what"),
    [
        (LAUNCH, "<<<(n + 127) / 128, 128>>>", "twice_kernel"),
        (LAUNCH, LAUNCH.replace("stream", "cudaStreamLegacy"), "twice_kernel"),
        (", stream);", ");", "cudaMemsetAsync"),
    ],
)
def test_work_in_the_default_stream_is_reported(before: str, after: str, what: str, tmp_path: Path) -> None:
    file = tmp_path / "twice.cu"
    file.write_text(KERNEL.replace(before, after))
    verdict = check(exercise(), file, seed=SEED)
    stage = verdict.stage("safe")
    assert stage and not stage.passed, as_text(verdict)
    (finding,) = stage.findings  # the races that follow from the wrong stream are not reported
    assert finding.kind == "default_stream" and finding.hides
    assert isinstance(finding.payload, Call) and finding.payload.call.startswith(what)
    assert after in file.read_text().splitlines()[finding.line - 1]


def test_the_given_stream_and_own_streams_are_accepted(tmp_path: Path) -> None:
    file = tmp_path / "twice.cu"
    file.write_text(KERNEL)
    verdict = check(exercise(), file, seed=SEED)
    assert verdict.passed, as_text(verdict)
