"""The most common mistakes in a class. Each student's first problem in each exercise counts, except in a skeleton."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass

from grader.classroom.stored import Stored
from grader.verdict import Diagnostic, Side, Stage, Verdict, words
from grader.verdict.wording import bars, cases, findings, outputs, stages

MOST = 12


@dataclass
class Mistake:
    """One kind of mistake in one exercise, with one student's verdict as the example."""

    exercise: str
    stage: str
    title: str
    student: Stored
    text: str = ""
    where: str = ""
    source: str = ""
    count: int = 1
    """The number of students."""


def most_common(students: Iterable[Stored]) -> list[Mistake]:
    """Return the mistakes, the most common first."""
    found: dict[Hashable, Mistake] = {}
    for student in students:
        for verdict in student.verdicts:
            stage = verdict.failed_stage
            if stage is None or verdict.exercise in student.result.unchanged:
                continue
            for key, mistake in dict(_of(student, verdict, stage)).items():
                if key in found:
                    found[key].count += 1
                else:
                    found[key] = mistake
    return sorted(found.values(), key=lambda mistake: (-mistake.count, mistake.exercise, mistake.title))[:MOST]


def _of(student: Stored, verdict: Verdict, stage: Stage) -> Iterator[tuple[Hashable, Mistake]]:
    def made(key: str, title: str, text: str, side: Side | Diagnostic | None = None) -> tuple[Hashable, Mistake]:
        mistake = Mistake(verdict.exercise, stages.title(stage), title, student, text)
        if side is not None and side.line:
            mistake.where = f"{words.file(side.file)}:{side.line}"
            mistake.source = side.source_line.strip()
        return (verdict.exercise, stage.name, key), mistake

    for item in stage.diagnostics[:1]:
        message = item.message.splitlines()[0] if item.message else "error"
        yield made(_pattern(message), message, item.advice, item)
    for case in stages.failing_cases(stage)[:1]:
        wrong = next((output for output in case.outputs if not output.passed), None)
        place = f"the case '{case.name}'" + (f" ({case.dtype})" if case.dtype else "")
        if wrong is not None and wrong.diagnosis is not None:
            title = outputs.title(wrong.diagnosis)
            yield made(wrong.diagnosis.kind, title, _sentence(f"In {place}: {outputs.looks(wrong.diagnosis)}"))
        elif wrong is not None:
            yield made("wrong", "wrong elements", f"{cases.in_short(case)} in {place}.")
        else:
            yield made(case.problem, cases.in_short(case), f"First in {place}.")
    for finding in stage.findings[:1]:
        title = f"{finding.check}: {findings.title(finding)}"
        yield made(f"{finding.check} {finding.kind}", title, findings.message(finding), finding)
    for bar in stage.bars:
        if not bar.passed:
            yield made(
                bar.expression, bar.expression, f"It is {bars.value(bar)} and must be {bars.limit(bar)}. {bar.look}"
            )
            break
    if not (stage.diagnostics or stage.cases or stage.findings or stage.bars):
        summary = stages.summary(stage)
        yield made(_pattern(summary), summary, "")


def _sentence(text: str) -> str:
    """Return a text with a period at its end, unless it is a question."""
    return text if text.endswith(("?", ".")) else f"{text}."


def _pattern(message: str) -> str:
    """Remove names and numbers from a message, so that equal mistakes have equal texts."""
    return re.sub(r"\d+", "0", re.sub(r"‘[^’]*’|'[^']*'|\"[^\"]*\"|`[^`]*`", "''", message))
