"""Describes cases in words: their sizes, and why they did not pass."""

from __future__ import annotations

from grader.verdict import PASSED, CaseResult, words
from grader.verdict.wording import findings, outputs

_IN_SHORT = {
    "crash": "the kernel's process crashed",
    "timeout": "took too long",
    "exit": "the kernel's process called exit",
    "output": "the kernel printed too much",
    "reply": "the kernel's process sent a forged answer",
    "guard": "wrote outside its tensors",
    "no_launch": "no kernel was launched",
    "inputs": "changed its inputs",
    "load": "the kernel cannot be loaded",
    "call": "the kernel could not be called",
    "launch": "the launch failed",
    "run": "the kernel failed while it ran",
    "exception": "the launcher threw an exception",
    "finding": "stopped by a finding",
    "oom": "out of memory",
    "operations": "an operation has a wrong outcome",
    "memory": "out of memory",
    "after_timeouts": "not run, because an earlier case did not finish in time",
    "after_crashes": "not run, because earlier cases ended the process",
}


PROBLEMS = tuple(_IN_SHORT)
"""The values of ``CaseResult.problem``, except "wrong" and "unwritten", which the text of an output describes."""


def named(case: CaseResult) -> str:
    """Return a case's name, and its dtype if it has one: ``not a multiple of the block (f32)``."""
    return f"{case.name} ({case.dtype})" if case.dtype else case.name


def heading(case: CaseResult) -> str:
    """Return a case's name, dtype and sizes: ``not a multiple of the block (f32: rows=3 columns=129)``."""
    facts = ": ".join(filter(None, [case.dtype, words.sizes(case.dims)]))
    return f"{case.name} ({facts})" if facts else case.name


def in_short(case: CaseResult) -> str:
    """Return why a case failed or was not run, in a few words."""
    wrong = next((output for output in case.outputs if not output.passed), None)
    if wrong is not None and case.problem in ("wrong", "unwritten"):
        return outputs.in_short(wrong)
    if case.problem == "operations" and case.reasons:
        return case.reasons[0]
    return findings.title(case.findings[0]) if case.findings else _IN_SHORT.get(case.problem, case.problem)


def reason(case: CaseResult) -> str:
    """Return why a case failed, in a sentence or two; empty if its wrong outputs or its findings explain it."""
    if case.reasons and not case.dtype:
        return f"{case.reasons[0]}\n" + words.indented("\n".join(case.reasons[1:]))
    said = "; ".join(case.reasons)
    match case.problem:
        case "crash" | "timeout" | "exit" | "output" | "oom" | "reply":
            text = f"The kernel did not return: {said}."
            if case.printed.strip():
                text += "\nBefore that it printed:\n" + words.indented(
                    "\n".join(case.printed.rstrip().splitlines()[-5:])
                )
            return text
        case "load":
            return said
        case "call":
            return f"The kernel could not be called: {said}"
        case "memory":
            return (
                f"There is not enough device memory for {', '.join(case.reasons)}. Free device memory, or use a "
                f"larger GPU."
            )
        case "launch":
            return f"The launch failed: {said}"
        case "run":
            return f"The kernel failed while it ran: {said}"
        case "exception":
            return "The launcher threw a C++ exception. Catch it in the launcher: a launcher must return."
        case "inputs":
            return f"The kernel changed its input {', '.join(case.reasons)}. Inputs are read-only: write to an output."
        case "guard":
            places = (
                f"{words.count(abs(at), 'element')} {'past the end' if at >= 0 else 'before the start'} of {name}"
                for name, at in case.outside.items()
            )
            return (
                f"The kernel wrote outside its output: {'; '.join(places)}. Compare the index with the size of "
                f"the output."
            )
        case "no_launch":
            return (
                "The launcher returned without launching a kernel, so nothing was written. "
                "Add a launch: kernel<<<grid, block, 0, stream>>>(...)."
            )
        case "finding" | "wrong" | "unwritten":
            return ""
    return _IN_SHORT.get(case.problem, case.problem)


def before_findings(case: CaseResult) -> str:
    """Return the line that is shown before the findings of a case."""
    return "A fault stopped the launch:" if case.problem == "finding" else "The simulator reports:"


def text(case: CaseResult) -> str:
    """Return all that is known about a case that did not pass, over several lines; empty for a case that passed."""
    if case.status == PASSED:
        return ""
    wrong = [] if case.problem == "no_launch" else case.outputs
    rows = [said for said in [reason(case), *map(outputs.text, wrong)] if said]
    if case.findings:
        rows.append(before_findings(case))
        rows.append(words.indented(findings.several(case.findings, most=2)))
    return "\n".join(rows)
