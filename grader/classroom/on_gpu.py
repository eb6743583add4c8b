"""Grading on a GPU: the simulator grades each kernel first; one that passes is run, and timed, on a GPU.

The student gets one verdict: *safe* and *efficient* are the simulator's, *fast* is the GPU's, and *correct* must hold
on both.
"""

from __future__ import annotations

from grader.classroom.worker import Graded
from grader.verdict import ERROR, PASSED, SKIPPED, STAGES, Verdict

MARK = " on cuda"
"""A suffix of the exercise's name. It identifies the job that runs on a GPU."""


def wanted(graded: Graded) -> bool:
    """Return whether the kernel passed on the simulator, so that it also runs on a GPU."""
    return all(verdict.passed for verdict in graded.verdicts)


def merged(verdicts: list[Verdict]) -> Verdict:
    """Return one verdict from the simulator's and, if there is one, the GPU's."""
    if len(verdicts) == 1:
        return verdicts[0]
    verdict, real = verdicts
    stages = {stage.name: stage for stage in verdict.stages}
    for stage in real.stages:
        if stage.status != SKIPPED and (stage.name == "fast" or stage.status != PASSED):
            stages[stage.name] = stage
    verdict.stages = sorted(stages.values(), key=lambda stage: STAGES.index(stage.name))
    verdict.passed = all(stage.status in (PASSED, SKIPPED) for stage in verdict.stages)
    verdict.score = float(verdict.points) if verdict.passed else 0.0
    verdict.seconds += real.seconds
    if not any(stage.status == ERROR for stage in real.stages):
        verdict.device, verdict.isolation, verdict.isolation_note = real.device, real.isolation, real.isolation_note
        verdict.versions = real.versions
    return verdict
