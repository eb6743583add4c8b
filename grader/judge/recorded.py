"""Records the steps of one block, which a web page can play back. A case is run once more for it.

The recorded block is that of the first finding. Without findings, it is the block that wrote the element with the
largest error. If the outputs are right as well, it is the first block of the smallest case in which a block has more
than one warp.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from grader.course.task import Exercise
from grader.execution.runner.client import Child, LoadFailed
from grader.judge.build_job import Compiled
from grader.judge.cases import Run, repeated, run_case
from grader.judge.simulated import read_report
from grader.setup.errors import GraderError
from grader.simulator.recording import LANES, Recording
from grader.verdict import Finding

MOST_LAUNCHES = 6
"""The maximum number of runs to find the launch of the kernel with the finding. Each run records one launch."""


@dataclass
class Recorded:
    """The recording of one block in one case."""

    case: str
    dtype: str
    recording: Recording
    source: str
    findings: list[Finding]


@dataclass
class _Choice:
    run: Run
    block: list[int]
    kernel: str = ""
    """The name of the kernel to record; empty for the kernel of the first launch."""


def record(
    exercise: Exercise,
    runs: Sequence[Run],
    kernel: Compiled,
    file: Path,
    new_child: Callable[[dict[str, str]], Child],
) -> Recorded | None:
    """Run a case again and return the recording of a block; None if nothing can be recorded.

    ``new_child`` creates a child process. Its argument contains settings of the simulator.
    """
    choice = _choose(runs)
    if choice is None or choice.run.simulated is None:
        return None
    launches = sum(item.launches for item in choice.run.simulated.kernels)
    for launch in range(min(launches, MOST_LAUNCHES) if choice.kernel else 1):
        run = repeated(choice.run, choice.run.schedule)
        child = new_child({"record": ",".join(map(str, (launch, *choice.block))), "schedule": run.schedule})
        try:
            run_case(exercise, run, child)
        except (GraderError, LoadFailed):
            return None
        finally:
            child.stop()
        report = read_report(run, kernel.library, file)
        if report is None:
            return None
        if report.recording is not None and choice.kernel in ("", report.recording.kernel):
            case, source = choice.run.result, kernel.text
            return Recorded(case.name, case.dtype, report.recording, source, report.findings)
    return None


def _choose(runs: Sequence[Run]) -> _Choice | None:
    ran = [run for run in runs if run.simulated is not None and run.simulated.kernels]
    for run in ran:
        for finding in run.result.findings:
            if finding.block is not None:
                return _Choice(run, finding.block, finding.kernel)
    for run in ran:
        for output in run.result.outputs:
            if writers := [worst.block for worst in output.worst if worst.block is not None]:
                return _Choice(run, writers[0])
    by_size = sorted(ran, key=lambda run: sum(item.threads for item in run.simulated.kernels) if run.simulated else 0)
    several = [run for run in by_size if run.simulated and math.prod(run.simulated.kernels[0].block) > LANES]
    return next((_Choice(run, [0, 0, 0]) for run in (*several, *by_size)), None)
