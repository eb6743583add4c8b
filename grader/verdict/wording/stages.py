"""Describes stages in words: a summary in one line, the details of a failed stage, and where to start."""

from __future__ import annotations

import re
from collections.abc import Sequence

from grader.verdict import FAILED, SKIPPED, STAGES, CaseResult, Diagnosis, Diagnostic, Stage, Verdict, words
from grader.verdict.findings.barriers import EndlessLoop
from grader.verdict.findings.launches import RefusedCall
from grader.verdict.wording import bars, cases, findings

TITLES = {"builds": "Builds", "correct": "Correct", "safe": "Safe", "efficient": "Efficient", "fast": "Fast"}
COMPILES, COMPILED_BEFORE = "compiles", "compiled before"
DOES_NOT_COMPILE, WRONG_LAUNCHER = "does not compile", "wrong launcher"
SHOWN = 4
"""The maximum number of cases, and of findings, that are described in detail."""


def title(stage: Stage) -> str:
    """Return the title of a stage, such as ``Correct``."""
    return TITLES.get(stage.name, stage.name)


def summary(stage: Stage) -> str:
    """Return a line about a stage: why it failed or was skipped, or what passed."""
    if stage.summary:
        return stage.summary
    if stage.cases:
        failed, skipped = len(failing_cases(stage)), sum(case.status == SKIPPED for case in stage.cases)
        if nothing_launched(stage):
            return "nothing is launched yet"
        if not failed and not skipped:
            return f"{len(stage.cases)} of {words.count(len(stage.cases), 'case')}"
        return f"{failed} of {words.count(len(stage.cases), 'case')} fail" + (f", {skipped} not run" if skipped else "")
    if stage.bars:
        missed = sum(not bar.passed for bar in stage.bars)
        every = words.count(len(stage.bars), "bar")
        return f"{missed} of {every} missed" if missed else f"{every} met"
    if stage.time_bars:
        missed = sum(bar.status == FAILED for bar in stage.time_bars)
        return f"{missed} of {words.count(len(stage.time_bars), 'time')} above the limit"
    if stage.runs and not stage.findings:
        return f"no finding in {words.count(stage.runs, 'run')}"
    if stage.findings:
        checks = dict.fromkeys(finding.check for finding in stage.findings)
        return f"{words.count(len(stage.findings), 'finding')}: {', '.join(checks)}"
    return {SKIPPED: "not run"}.get(stage.status, stage.status)


def why_skipped(name: str, verdict: Verdict, wanted: Sequence[str], device: str) -> str:
    """Return why a stage was not run."""
    failed = next((stage.name for stage in verdict.stages if stage.status == FAILED), None)
    if name not in wanted:
        return "not requested"
    if name == "fast" and device == "cpu":
        return "needs a GPU: --device cuda"
    if name in ("safe", "efficient") and device == "cuda":
        return "judged on the simulator: --device cpu"
    if failed and STAGES.index(failed) < STAGES.index(name):
        return f"not run, as {failed} failed"
    return "the exercise has nothing to check here"


def text(stage: Stage) -> str:
    """Return the details of a stage that did not pass, over several lines; empty for a stage that passed."""
    if stage.status != FAILED:
        return stage.message
    failed = failing_cases(stage)[: 1 if nothing_launched(stage) else None]
    rows = [stage.message] if stage.message else []
    rows += [f"{cases.heading(case)}\n{words.indented(cases.text(case))}" for case in failed[:SHOWN]]
    if failed[SHOWN:]:
        rows.append("Also failing: " + ", ".join(map(cases.named, failed[SHOWN:])))
    if stage.findings:
        rows.append(findings.several(stage.findings, most=SHOWN))
    rows += [bars.text(bar) for bar in stage.bars if not bar.passed]
    rows += [bars.time_text(bar) for bar in stage.time_bars if bar.status == FAILED]
    return "\n".join(rows)


def nothing_launched(stage: Stage) -> bool:
    """Return whether the launcher launches no kernel in any case that needs one, as in an unsolved exercise."""
    failing = failing_cases(stage)
    if not failing or any(case.problem != "no_launch" for case in failing):
        return False
    return not any(output.elements for case in stage.cases if case.passed for output in case.outputs)


def failing_cases(stage: Stage) -> list[CaseResult]:
    """Return the cases that did not pass, in the task's order, which begins with simple sizes."""
    return [case for case in stage.cases if case.status in ("failed", "error")]


def better_diagnosed_case(failing: Sequence[CaseResult]) -> tuple[CaseResult, Diagnosis] | None:
    """Return the first failing case that has a diagnosis, and the diagnosis, if the first failing case has none.

    Return None if the first failing case has a diagnosis, or if it failed for another reason than wrong outputs.
    """
    if not failing or failing[0].problem != "wrong" or failing[0].findings:
        return None
    found = ((case, output.diagnosis) for case in failing for output in case.outputs if output.diagnosis)
    case, diagnosis = next(found, (failing[0], None))
    return (case, diagnosis) if diagnosis and case is not failing[0] else None


# -- where to look first --


def first_look(verdict: Verdict) -> str:
    """Return where a learner should look first; empty if the report shows it already."""
    stage = verdict.failed_stage
    if stage is None:
        return ""
    for bar in stage.bars:
        if not bar.passed and bar.look:
            return bar.look
    for limit in stage.time_bars:
        if limit.status == FAILED and limit.look:
            return limit.look
    # A fault that the simulator detected comes before wrong numbers, because it is usually their cause.
    for finding in [finding for every in verdict.stages for finding in every.findings]:
        if isinstance(finding.payload, EndlessLoop) and finding.payload.loop:
            return f"{finding.payload.loop}, {findings.look(finding)}"
        if finding.line:
            return f"{finding.file.rsplit('/', 1)[-1]}:{finding.line}, {findings.look(finding)}"
        if isinstance(finding.payload, RefusedCall):
            return f"the launch or call that fails: {finding.payload.call}"
    errors = [item for item in stage.diagnostics if item.severity.startswith(("error", "fatal")) and item.line]
    if errors and _semicolon_missing(errors[0]):
        return f"the end of the code above line {errors[0].line}: a ';' seems to be missing there"
    if len(errors) > 1:
        return f"the first error, line {errors[0].line}; later ones often follow from it"
    failing = failing_cases(stage)
    if failing:
        return _look_at_case(stage, failing)
    return ""


def _semicolon_missing(error: Diagnostic) -> bool:
    """Return whether an error means that the code before the line lacks a semicolon.

    g++ reports a missing semicolon at the next token, which is often the first one of a correct line.
    """
    before = error.source_line[: max(0, error.column - 1)]
    return bool(re.match("expected .*';'.* before", error.message)) and not before.strip()


def _look_at_case(stage: Stage, failing: Sequence[CaseResult]) -> str:
    """Return how the failing cases differ from those that pass."""
    if nothing_launched(stage):
        return "the launcher: it launches no kernel yet"
    first = failing[0]
    names = {case.name for case in failing}
    passing = {case.name for case in stage.cases if case.passed}
    dtypes_failing = {case.dtype for case in failing}
    dtypes_passing = {case.dtype for case in stage.cases if case.passed}
    if names <= passing and dtypes_failing.isdisjoint(dtypes_passing) and dtypes_passing:
        return (
            f"the code that runs only for {words.listed(sorted(dtypes_failing))}: "
            f"every case passes for {words.listed(sorted(dtypes_passing))}"
        )
    if not passing:
        return f"'{first.name}', the simplest case: no case passes yet"
    if only_special := _only_special_cases(stage, failing):
        return only_special
    neighbor = _passing_neighbor(stage, first)
    if neighbor is None:
        return f"'{first.name}', the simplest case that fails"
    here, there = _differences(neighbor, first)
    compared = f"'{neighbor.name}' passes{there}; '{first.name}' fails{here}. What changed?"
    return f"{compared} Every other case passes." if len(names) == 1 and len(passing) > 1 else compared


def _only_special_cases(stage: Stage, failing: Sequence[CaseResult]) -> str:
    """Return what is special in the first failing case, if every case without anything special passes."""
    ordinary = [case for case in stage.cases if not _is_special(case) and not _is_empty(case)]
    if not ordinary or not all(case.passed for case in ordinary) or not all(map(_is_special, failing)):
        return ""
    first = failing[0]
    values = all(case.special_values for case in failing)
    offsets = all(case.special_offsets for case in failing)
    if first.special_values and not offsets:
        special = f"the values of {words.listed(first.special_values)}"
    else:
        special = f"the alignment of {words.listed(first.special_offsets)}"
    ordinary_case = (
        "aligned case" if offsets else "case with ordinary values" if values else "aligned case with ordinary values"
    )
    return f"{special} in '{first.name}': every {ordinary_case} passes"


def _is_special(case: CaseResult) -> bool:
    return bool(case.special_values or case.special_offsets)


def _differences(passing: CaseResult, failing: CaseResult) -> tuple[str, str]:
    """Return the sizes in which two cases differ: those of the failing case, then those of the passing case.

    Both are texts in parentheses, or empty.
    """
    names = [name for name in {**passing.dims, **failing.dims} if passing.dims.get(name) != failing.dims.get(name)]

    def shown(case: CaseResult) -> str:
        dims = {name: case.dims[name] for name in names if name in case.dims}
        return f" ({words.sizes(dims)})" if dims else ""

    return shown(failing), shown(passing)


def _passing_neighbor(stage: Stage, failing: CaseResult) -> CaseResult | None:
    """Return the passing case of the same dtype that is nearest to a failing case in the task's order.

    The task lists simple cases first, so neighbors are similar. If all simpler cases fail, only the next case is
    similar. Cases with an empty tensor do not count, because a kernel that does nothing passes them; nor do cases with
    special values or alignment, which differ in more than their sizes.
    """
    alike = [
        case
        for case in stage.cases
        if case is failing or (case.dtype == failing.dtype and not _is_empty(case) and not _is_special(case))
    ]
    at = alike.index(failing)
    every = [(abs(number - at), number) for number, case in enumerate(alike) if case.passed]
    if not every or (min(every)[0] > 1 and not any(number < at for _, number in every)):
        return None
    return alike[min(every)[1]]


def _is_empty(case: CaseResult) -> bool:
    return any(size == 0 for size in case.dims.values() if not isinstance(size, bool))
