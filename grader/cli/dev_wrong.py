"""``grader dev wrong``: wrong kernels for an exercise, proposed from its solution and kept if its tests catch them."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.text import Text

from grader.cli.messages import print_problem, shown_path
from grader.course import Entry
from grader.course.authoring import exercise_rules
from grader.course.authoring.mistakes import Mistake, Variant, add_mistakes, read_mistakes
from grader.course.authoring.mutants import propose
from grader.judge import check
from grader.report import theme
from grader.report.terminal import as_text
from grader.setup.errors import GraderError
from grader.verdict import FAILED, Verdict, words
from grader.verdict.wording import findings

SEEDS = (1, 2)
"""The seeds of the two input sets for each mutant. A mutant that fails with only one set would make a flaky test."""


@dataclass(frozen=True)
class Tried:
    """A graded mutant. ``mistake``: its entry for the list of mistakes; if None, ``why`` gives the reason."""

    mutant: Variant
    mistake: Mistake | None
    why: str = ""


def find_mistakes(entry: Entry, each: int) -> int:
    """Try mutants of the solution. Add those that fail to the exercise's wrong kernels, and print the others.

    Return the exit code: 0 if each mutant that compiles fails, 1 if one passes or tasks.py is not complete.
    """
    console = theme.console()
    if entry.language == "python":
        raise GraderError(f"{entry.name} is a Python exercise", "Write its wrong files by hand: the edits are of CUDA.")
    if unready := unready_tasks(entry):
        console.print(Text("  tasks.py is not complete yet, so no kernel can run:", style="bad"))
        for problem in unready:
            print_problem(problem, console)
        console.print(Text.assemble("  Complete it, then: ", (f"grader dev wrong {entry.name}", "command")))
        return 1
    solution = entry.solution_text()
    texts = set(_texts(entry))
    mutants = [m for m in propose(solution, each) if solution.replace(m.find, m.replace) not in texts]
    tried = try_all(entry, mutants, console)
    kept = [result.mistake for result in tried if result.mistake is not None]
    if kept:
        add_mistakes(entry, kept)
    console.print()
    where = shown_path(entry.wrong_kernels)
    console.print(Text(f"  {words.count(len(kept), 'wrong kernel')} added to {where}. Rename each to its mistake."))
    passed = [result for result in tried if result.why == PASSES]
    if passed:
        says = f"  {words.count(len(passed), 'mutant')} passed: each is harmless, or a case is missing that catches it."
        console.print(Text(says, style="bad"), soft_wrap=True)
    return int(bool(passed))


def _texts(entry: Entry) -> Iterator[str]:
    """Yield the listed wrong kernels. Skip those that do not match the solution: `grader dev check` reports them."""
    for mistake in read_mistakes(entry).wrong:
        with contextlib.suppress(GraderError, OSError):
            yield mistake.text(entry)


def unready_tasks(entry: Entry) -> list[exercise_rules.Problem]:
    """Return what tasks.py still lacks to judge a kernel: a description, cases, a reference."""
    draft = exercise_rules.Draft(entry)
    try:
        return list(exercise_rules.reference(draft))
    except GraderError as error:
        return [exercise_rules.Problem(entry.tasks, str(error).replace("\n", " "))]


PASSES = "passes"


def try_all(entry: Entry, mutants: list[Variant], console: Console) -> list[Tried]:
    """Grade the solution, which must pass, and then each mutant; print a line for each.

    Raises:
        GraderError: the solution does not pass.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"{entry.variable}.cu"
        solution = entry.solution_text()
        file.write_text(solution, encoding="utf-8")
        with console.status("checking the solution"):
            verdict = check(entry, file, seed=SEEDS[0])
        if not verdict.passed:
            stage = verdict.failed_stage
            raise GraderError(
                f"the solution fails at {stage.name if stage else 'no stage'}, so a failing mutant would prove nothing",
                f"grader check {entry.name} --file {entry.solution}",
            )
        tried = []
        for mutant in mutants:
            with console.status(f"checking: {mutant.name}"):
                file.write_text(solution.replace(mutant.find, mutant.replace), encoding="utf-8")
                result = tried_with(mutant, [check(entry, file, seed=seed) for seed in SEEDS])
            tried.append(result)
            outcome = ", ".join(result.mistake.stages) if result.mistake else result.why
            style = "bad" if result.why == PASSES else "quiet" if result.why else "good"
            console.print(Text.assemble((f"  {outcome:12} ", style), mutant.name), soft_wrap=True)
            if result.mistake:
                console.print(Text(f"  {'':12} {result.mistake.says}", style="quiet"), soft_wrap=True)
    return tried


def tried_with(mutant: Variant, verdicts: list[Verdict]) -> Tried:
    """Return a mutant's entry for the list: the stages that fail, and a text that all its reports show."""
    stages = [verdict.failed_stage for verdict in verdicts]
    failed = [stage.name for stage in stages if stage is not None and stage.status == FAILED]
    if not failed:
        return Tried(mutant, None, PASSES if all(verdict.passed for verdict in verdicts) else "not judged")
    if "builds" in failed:
        return Tried(mutant, None, "no build")
    says = shown_by_all(verdicts)
    if len(failed) < len(verdicts) or not says:
        return Tried(mutant, None, "by chance")
    names = tuple(dict.fromkeys(failed))
    stage = names[0] if len(names) == 1 else names
    return Tried(mutant, Mistake(name=mutant.name, find=mutant.find, replace=mutant.replace, stage=stage, says=says))  # type: ignore[arg-type]


def shown_by_all(verdicts: list[Verdict]) -> str:
    """Return a text that the reports of all verdicts show: a finding, a failing case or a missed bar. Empty if none."""
    reports = [" ".join(as_text(verdict, width=200).lower().split()) for verdict in verdicts]
    for says in candidates(verdicts[0]):
        if all(" ".join(says.lower().split()) in report for report in reports):
            return says
    return ""


def candidates(verdict: Verdict) -> list[str]:
    """Return the texts that may identify a failure, the most specific first."""
    stage = verdict.failed_stage
    if stage is None:
        return []
    titles = [findings.title(finding) for finding in stage.findings]
    titles += [findings.title(finding) for case in stage.cases for finding in case.findings]
    cases = [case.name for case in stage.cases if case.status == FAILED]
    bars = [bar.look or bar.expression for bar in stage.bars if not bar.passed]
    return [*titles, *cases, *bars]
