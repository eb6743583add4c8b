"""Cases in words: what they ran, and why they did not pass."""

from __future__ import annotations

from grader.verdict import PASSED, CaseResult
from grader.verdict.wording import findings, outputs, words

_IN_SHORT = {
    "crash": "the kernel's process crashed",
    "timeout": "took too long",
    "exit": "the kernel's process ended itself",
    "reply": "the kernel's process gave an answer that was made up",
    "guard": "wrote outside its tensors",
    "no_launch": "no kernel was launched",
    "inputs": "changed its inputs",
    "load": "the kernel cannot be loaded",
    "call": "the kernel could not be called",
    "launch": "the launch failed",
    "run": "the kernel failed while it ran",
    "exception": "the launcher threw an exception",
    "finding": "a finding of the simulator",
    "oom": "out of memory",
    "memory": "out of memory",
    "after_timeouts": "not run: too many cases did not finish in time",
    "after_crashes": "not run: too many cases ended the process",
}


def heading(case: CaseResult) -> str:
    """``not a multiple of the block (f32: rows=3 columns=129)``."""
    sizes = words.sizes(case.dims)
    return f"{case.name} ({case.dtype}: {sizes})" if sizes else f"{case.name} ({case.dtype})"


def in_short(case: CaseResult) -> str:
    """Why a case failed or was not run, in a few words."""
    wrong = next((output for output in case.outputs if not output.passed), None)
    if wrong is not None and case.problem in ("wrong", "unwritten"):
        return outputs.in_short(wrong)
    return findings.title(case.findings[0]) if case.findings else _IN_SHORT.get(case.problem, case.problem)


def reason(case: CaseResult) -> str:
    """Why a case failed, in a sentence; outputs that are wrong and findings speak for themselves."""
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
            return f"There is not enough device memory for {', '.join(case.reasons)}."
        case "launch":
            return f"The launch failed: {said}"
        case "run":
            return f"The kernel failed while it ran: {said}"
        case "exception":
            return "The launcher threw a C++ exception that nothing caught: it must return."
        case "inputs":
            return f"The kernel changed its input {', '.join(case.reasons)}, which it may only read."
        case "guard":
            places = (
                f"{words.count(abs(at), 'element')} {'past the end' if at >= 0 else 'before the start'} of {name}"
                for name, at in case.outside.items()
            )
            return f"The kernel wrote outside its output: {'; '.join(places)}."
        case "no_launch":
            return "The launcher returned without launching a kernel: nothing was written."
        case "finding" | "wrong" | "unwritten":
            return ""
    return _IN_SHORT.get(case.problem, case.problem)


def before_findings(case: CaseResult) -> str:
    """What stands above the findings of a case."""
    return "The launch was stopped by a fault:" if case.problem == "finding" else "The simulator saw:"


def text(case: CaseResult) -> str:
    """All that there is to say about a case that did not pass, over several lines."""
    if case.status == PASSED:
        return ""
    wrong = [] if case.problem == "no_launch" else case.outputs
    rows = [said for said in [reason(case), *map(outputs.text, wrong)] if said]
    if case.findings:
        rows.append(before_findings(case))
        rows.append(words.indented(findings.several(case.findings, most=2)))
    return "\n".join(rows)
