"""The page of ``grader check --html`` contains a player.

It plays the block of the first finding, or the first block of a small case.
"""

from __future__ import annotations

from pathlib import Path

from grader.cli.check import _player
from grader.judge import check
from grader.judge.recorded import Recorded
from grader.report.html import html_page
from grader.report.player.encoding import jumps
from grader.verdict import Verdict
from tests.attacks.conftest import exercise
from tests.seeds import SEED

KERNEL = """
__global__ void twice_kernel(const float* x, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 2.0f * x[i];
}
__global__ void nothing() {}
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
  nothing<<<1, 32, 0, stream>>>();
  twice_kernel<<<(n + 63) / 64, 64, 0, stream>>>(x, out, n);
}
"""


def judged(tmp_path: Path, kernel: str) -> tuple[Verdict, list[Recorded]]:
    file = tmp_path / "twice.cu"
    file.write_text(kernel)
    recordings: list[Recorded] = []
    return check(exercise(), file, seed=SEED, on_recording=recordings.append), recordings


def test_the_block_of_a_finding(tmp_path: Path) -> None:
    """The program first launches another kernel, so the launch with the finding, which is recorded, is the second."""
    verdict, recordings = judged(tmp_path, KERNEL.replace("i < n", "i <= n"))
    finding = verdict.stage("safe").findings[0]  # type: ignore[union-attr]
    (recorded,) = recordings
    assert (recorded.case, recorded.recording.index) == (finding.case, finding.block)
    assert recorded.recording.kernel == finding.kernel == "twice_kernel" and recorded.recording.launch == 1
    (sentence, steps), *_ = jumps(recorded.recording, recorded.findings)
    assert "past the end" in sentence
    assert recorded.recording.events[steps[0] - 1].line == finding.line
    page = html_page(verdict, _player(recordings))
    assert page.count("<iframe") == 1 and "Block (" in page
    assert "<iframe" not in html_page(verdict)


def test_a_kernel_that_passes(tmp_path: Path) -> None:
    verdict, recordings = judged(tmp_path, KERNEL.replace("  nothing<<<1, 32, 0, stream>>>();\n", ""))
    assert verdict.passed
    (recorded,) = recordings
    assert recorded.recording.index == [0, 0, 0] and recorded.recording.warps == 2 and not recorded.findings
    assert any(event.kind == "write" for event in recorded.recording.events)


def test_no_launch_to_record(tmp_path: Path) -> None:
    verdict, recordings = judged(tmp_path, KERNEL.replace("i < n", "i << n << "))
    assert not verdict.passed and recordings == [] and _player(recordings) is None
