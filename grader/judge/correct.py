"""Stage 2, *correct*: every case matches the reference."""

from __future__ import annotations

import math
from collections.abc import Sequence

from grader.judge.cases import Run
from grader.judge.comparison.diagnosis import COARSEST
from grader.verdict import FAILED, PASSED, CaseResult, Stage


def judge_correct(runs: Sequence[Run], repeated: Sequence[Run] = ()) -> Stage:
    """Return the result of the stage from those of its cases.

    ``repeated`` are second runs of some cases, with the blocks and warps in reverse order. If only the second run of a
    case fails, and no finding says why, the case has the result of the second run.
    """
    second = {
        (run.case.name, run.dtype): run.result
        for run in repeated
        if run.result.status == FAILED and not run.result.findings and not run.counted
    }
    cases = [second.get((run.case.name, run.dtype), run.result) if run.result.passed else run.result for run in runs]
    drop_doubtful_rounding(cases)
    stage = Stage("correct", PASSED if all(case.passed for case in cases) else FAILED, cases=cases)
    if only := sum(case is not run.result for case, run in zip(cases, runs, strict=True)):
        fails = "case fails" if only == 1 else "cases fail"
        stage.note = f"{only} {fails} only if blocks and warps run in reverse order."
    return stage


def drop_doubtful_rounding(cases: Sequence[CaseResult]) -> None:
    """Remove the diagnosis "rounding" of an output that has larger errors in as many cases as it has such small ones.

    A wrong kernel may be nearly right in a case by chance. For example, an attention that uses only the last tile of
    keys is nearly right if these keys have most of the weight.
    """
    wrong = [output for case in cases for output in case.outputs if not output.passed]
    for name in {output.name for output in wrong}:
        small = [out for out in wrong if out.name == name and out.diagnosis and out.diagnosis.kind == "rounding"]
        large = [out for out in wrong if out.name == name and COARSEST < out.norm_error < math.inf]
        if len(large) >= len(small):
            for output in small:
                output.diagnosis = None
