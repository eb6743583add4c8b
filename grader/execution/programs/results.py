"""The result of a program, as a verdict and as text."""

from __future__ import annotations

import datetime
import signal
from pathlib import Path

from grader.execution.programs.execute import Outcome, signal_name
from grader.simulator.report_format import Sample
from grader.verdict import FAILED, PASSED, Stage, Verdict, words
from grader.verdict.wording.findings import message


def verdict(outcome: Outcome, file: Path, build_seconds: float, isolation: str) -> Verdict:
    """Return the result as a verdict with the stages *builds*, *safe* and *efficient*.

    The stage *efficient* has counters, but no bars to reach.
    """
    report = outcome.report
    findings = list(report.findings) if report else []
    builds = Stage("builds", PASSED, seconds=build_seconds)
    safe = Stage(
        "safe", FAILED if findings else PASSED, seconds=outcome.seconds, findings=findings, runs=int(report is not None)
    )
    stages = [builds, safe]
    if report is not None:
        stages.append(Stage("efficient", PASSED, totals=dict(report.totals), lines=report.source_lines))
    safe.note = ending(outcome)
    return Verdict(
        exercise=file.name,
        title=file.stem,
        file=str(file),
        device="cpu",
        seed=0,
        kind="program",
        points=0,
        passed=outcome.exit_code == 0,
        stages=stages,
        seconds=outcome.seconds + build_seconds,
        started=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        isolation=isolation,
    )


def ending(outcome: Outcome) -> str:
    """Describe how the program ended and what was found, in a sentence or two."""
    said = _how(outcome)
    report = outcome.report
    if report is None:
        said += " It left no report, so nothing is known about its kernels."
        if outcome.status == 128 + signal.SIGABRT:
            said += (
                " If it corrupted the heap, look for a write past the end of host memory, such as a cudaMemcpy of more "
                "bytes than malloc or new was asked for."
            )
        return said
    launches = words.count(report.totals.get("launches", 0), "launch", "launches")
    if outcome.checked or report.findings:
        found = words.count(len(report.findings), "finding") if report.findings else "no findings"
        there = "is" if len(report.findings) == 1 else "are"
        said += f" There {there} {found} in {launches}."
        said += _sampled(report.sample) if report.sample else ""
    else:
        said += f" The checks were disabled for {launches}."
        if outcome.timed_out is not None and outcome.kernel:
            said += " Run it without --no-checks: the checks report a kernel that waits for the host."
    if outcome.failed_allocation is not None:
        said += f" An allocation failed for lack of memory: {message(outcome.failed_allocation)}."
    for wait in outcome.waits_for_unrecorded_events:
        said += f" Note: {message(wait)}."
    if outcome.leaked and outcome.status == 0:
        said += f" It did not free {words.amount(outcome.leaked)} of device memory."
    if report.dropped_findings:
        said += f" {words.count(report.dropped_findings, 'more finding')} were not recorded."
    return said


def _sampled(sample: Sample) -> str:
    checked, launches = sample.checked_launches, words.count(sample.launches, "launch", "launches")
    some = f"{checked:,} of {launches}" if checked < sample.launches else launches
    if sample.checked_blocks == sample.blocks:
        return f" Only {some} were checked." if checked < sample.launches else ""
    blocks = f"{sample.checked_blocks:,} of {words.count(sample.blocks, 'block')}"
    return (
        f" Checked {blocks} in {some}, seed {sample.seed}. Races with other blocks and uninitialized memory can go "
        "unnoticed, and the counters are those of the checked blocks."
    )


def _how(outcome: Outcome) -> str:
    there = f" at {Path(outcome.place.file).name}:{outcome.place.line}" if outcome.place.line else ""
    there += f" in {outcome.kernel}" if outcome.kernel else ""
    if outcome.timed_out is not None:
        return f"The program was stopped after {outcome.timed_out:g} s{', while it was' + there if there else ''}."
    if outcome.refused:
        return f"The program was stopped{there}: {outcome.refused}, which is not simulated."
    if outcome.signal:
        return f"The program was ended by {signal_name(outcome.signal)}{there}."
    if 128 < outcome.status <= 192:  # 128 plus a signal's number, from 1 to 64
        return f"The program was ended by {signal_name(outcome.status - 128)}."
    return f"The program ended with status {outcome.status}."
