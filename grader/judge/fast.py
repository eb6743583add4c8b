"""Stage 5, *fast*, on a real GPU only: time, percent of the roofline, ratio to torch in the same run.

Time is shown and not failed: it depends on the GPU. Only a kernel that cannot be timed fails here.
"""

from __future__ import annotations

from pathlib import Path

from grader.errors import GraderError
from grader.verdict import FAILED, PASSED, SKIPPED, Stage


def judge_fast(entry_name: str, file: Path) -> Stage:
    """Time the kernel at the exercise's bench sizes, without torch.compile, which takes long."""
    from grader.bench import bench
    from grader.course import find

    stage = Stage("fast")
    entry = find(entry_name)
    if not entry.load().bench:
        stage.status, stage.summary = SKIPPED, "the exercise names no sizes to time"
        return stage
    try:
        report = bench(entry, file, "cuda", compiled=False)
    except GraderError as error:
        stage.status, stage.text, stage.summary = FAILED, str(error), "cannot be timed"
        return stage
    stage.timings = report.timings
    stage.status = PASSED
    best = max(report.timings, key=lambda timing: timing.bytes)
    parts = [f"{best.name} ({best.dtype}) {best.median_us:.1f} us"]
    if best.percent_of_roofline:
        parts.append(f"{best.percent_of_roofline:.0f} % of the roofline")
    if best.torch_ratio:
        parts.append(f"{best.torch_ratio:.2f} x torch")
    stage.summary = ", ".join(parts)
    return stage
