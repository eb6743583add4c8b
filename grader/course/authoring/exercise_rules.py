"""CONTRIBUTING's rules for an exercise, one function per rule. Rules that run kernels are in ``tests/exercises``."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from grader.course import Entry
from grader.course.authoring.mistakes import Mistakes, Variant, read_mistakes
from grader.course.manifest import ALWAYS, FILE, WANTED, read_manifest
from grader.course.python_task import OPERATIONS, PythonExercise
from grader.course.task import Exercise
from grader.course.tolerance import LARGEST
from grader.frontend import course_headers
from grader.setup.errors import GraderError

MISTAKES, DESIGNS, HINTS = 6, 2, 3
"""The minimum number of wrong kernels, of correct kernels with another design than the solution's, and of hints."""
HINT = 20
"""The minimum number of characters of a hint."""
EMPTY = re.compile(
    r"\b(?:empty|nothing|none|no (?:\w+ )?(?:elements?|rows?|columns?|tokens?|quer(?:y|ies)|keys?|sequences?|inputs?)"
    r"|(?:is|are|be|not|has|have|with(?: \w+ =)?|for \w+ =) (?:0|zero)|at least (?:1|one)|any (?:number|rows|size))\b",
    re.IGNORECASE,
)
"""Matches a summary that says what happens for empty input, or which sizes are at least 1."""
UNTRIED = "but no test is that large"
"""The words in a summary after a size that no case tests, because it would take too much memory or time."""


@dataclass(frozen=True)
class Problem:
    """A requirement that an exercise does not meet."""

    file: Path
    says: str
    line: int = 0
    """The line of the problem; 0 if it concerns the whole file."""


@dataclass
class Draft:
    """An exercise that may be incomplete."""

    entry: Entry

    @cached_property
    def task(self) -> Exercise:
        """The exercise's description from tasks.py. Raises GraderError if it cannot be loaded."""
        return self.entry.load()

    @cached_property
    def mistakes(self) -> Mistakes:
        """The list of wrong kernels."""
        return read_mistakes(self.entry)

    def described(self, says: str) -> Problem:
        """Return a problem at the line of the exercise's description in tasks.py."""
        return Problem(
            self.entry.tasks, f"{self.entry.variable}: {says}", line_of(self.entry.tasks, self.entry.variable)
        )


Rule = Callable[[Draft], Iterator[Problem]]


def line_of(file: Path, name: str) -> int:
    """Return the line that begins with ``name =``; 0 if there is none."""
    lines = lines_of(file)
    return next((number for number, line in enumerate(lines, 1) if re.match(rf"{re.escape(name)}\s*=", line)), 0)


def lines_of(file: Path) -> list[str]:
    """Return the lines of a file; empty if there is no file."""
    return file.read_text(encoding="utf-8").splitlines() if file.is_file() else []


def lacks(entry: Entry) -> list[Problem]:
    """Return all problems of an exercise."""
    draft = Draft(entry)
    found: list[Problem] = []
    for rule in RULES:
        try:
            found += rule(draft)
        except GraderError as error:  # several rules may read the same broken file: report it once
            broken = Problem(entry.tasks, str(error).replace("\n", " "))
            found += [] if broken in found else [broken]
    return found


def files(draft: Draft) -> Iterator[Problem]:
    """Check that the skeleton, the solution, the mistakes and correct kernels of other designs exist."""
    entry = draft.entry
    for file in (entry.skeleton, entry.solution, entry.wrong_kernels):
        if not file.is_file():
            yield Problem(file, "the file is missing")
    count = len(entry.designs) + len(draft.mistakes.design)
    if count < DESIGNS:
        place = entry.wrong_kernels.with_suffix(f".<design>{entry.skeleton.suffix}")
        yield Problem(place, f"{count} of at least {DESIGNS} correct kernels of other designs")


def effort(draft: Draft) -> Iterator[Problem]:
    """Check that course.toml gives the difficulty, the minutes and the prerequisites (``needs``)."""
    entry = draft.entry
    days = {day.folder: day for day in read_manifest(entry.root).days}
    (listed,) = (exercise for exercise in days[entry.day].exercises if exercise.name == entry.variable)
    for key in ("difficulty", "minutes", "needs"):
        if getattr(listed, key) is None:
            yield Problem(entry.root / FILE, f"{entry.name} has no {key}. {WANTED[key]}", _listed_line(entry))


def _listed_line(entry: Entry) -> int:
    """Return the line of the exercise's name in course.toml; 0 if several lines have it."""
    lines = lines_of(entry.root / FILE)
    listed = [number for number, line in enumerate(lines, 1) if f'name = "{entry.variable}"' in line]
    return listed[0] if len(listed) == 1 else 0


def headers(draft: Draft) -> Iterator[Problem]:
    """Check that a kernel file includes only headers of CUDA and of the course."""
    entry = draft.entry
    known = course_headers.names()
    for file in (entry.skeleton, entry.solution, *entry.designs):
        for number, line in enumerate(lines_of(file), 1):
            include = entry.language == "cuda" and re.match(r"\s*#\s*include\s*\"([^\"]*)", line)
            if include and include[1] not in known:
                yield Problem(
                    file,
                    f'it includes "{include[1]}": a kernel file may include only headers of CUDA and of the course',
                    number,
                )


def todo_comments(draft: Draft) -> Iterator[Problem]:
    """Check that an unfinished skeleton has a TODO comment, and that no other file has one."""
    entry = draft.entry
    implement = entry.kind == "implement"
    if implement and entry.skeleton.is_file() and not _todo(entry.skeleton):
        yield Problem(entry.skeleton, "no comment has a TODO")
    for file in (entry.solution, *entry.designs, *(() if implement else (entry.skeleton,))):
        for number in _todo(file):
            yield Problem(file, "it still has a TODO", number)


def _todo(file: Path) -> list[int]:
    return [number for number, line in enumerate(lines_of(file), 1) if "TODO" in line]


def solution_keeps_the_skeleton(draft: Draft) -> Iterator[Problem]:
    """Check that the solution of an *implement* exercise contains all lines of the skeleton, in order."""
    entry = draft.entry
    if entry.kind != "implement" or not entry.solution.is_file():
        return
    solution = [line.strip() for line in lines_of(entry.solution)]
    place = 0
    for number, line in given_lines(lines_of(entry.skeleton)):
        if line in solution[place:]:
            place = solution.index(line, place) + 1
        else:
            yield Problem(entry.skeleton, f"the solution lacks, after its line {place}: {line}", number)
            return


def given_lines(lines: list[str]) -> Iterator[tuple[int, str]]:
    """Yield the numbered lines that a solution must keep: all except blank lines and TODO comments."""
    within = False
    for number, line in enumerate(lines, 1):
        stripped = line.strip()
        comment = stripped.startswith(("//", "# "))
        within = comment and (within or "TODO" in stripped)
        if stripped and not within and not ("TODO" in stripped and ("//" in stripped or "# " in stripped)):
            yield number, stripped


def hints(draft: Draft) -> Iterator[Problem]:
    """Check the hints: a nudge, the idea, nearly the code."""
    entry = draft.entry
    file = entry.tasks.with_name("hints.toml")
    line = line_of(file, entry.variable)
    if len(entry.hints) != HINTS:
        yield Problem(file, f"{entry.variable}: {len(entry.hints)} of {HINTS} hints", line)
    if any(len(hint) <= HINT for hint in entry.hints):
        yield Problem(file, f"{entry.variable}: a hint is too short", line)
    if len(set(entry.hints)) < len(entry.hints):
        yield Problem(file, f"{entry.variable}: two hints are the same", line)


def mistakes(draft: Draft) -> Iterator[Problem]:
    """Check for enough valid wrong kernels. A *debug* or *optimize* exercise must also say how its skeleton fails."""
    entry, file = draft.entry, draft.entry.wrong_kernels
    found = draft.mistakes.wrong
    if len(found) < MISTAKES:
        yield Problem(file, f"{len(found)} of at least {MISTAKES} wrong kernels")
    heads = [number for number, line in enumerate(lines_of(file), 1) if line.strip() == "[[wrong]]"]
    for mistake, line in zip(found, [*heads, *[0] * len(found)]):
        if sum(mistake.name == other.name for other in found) > 1:
            yield Problem(file, f"two mistakes are named {mistake.name!r}", line)
        if not mistake.says:
            yield Problem(file, f"{mistake.name!r} has no text that the learner must see (says)", line)
        yield from _changes(draft, mistake, line)
    for design in draft.mistakes.design:
        yield from _changes(draft, design)
    if entry.kind != "implement" and draft.mistakes.skeleton is None:
        yield Problem(file, "the table [skeleton] is missing: the stage at which the skeleton fails, and its message")


def _changes(draft: Draft, variant: Variant, line: int = 0) -> Iterator[Problem]:
    """Check that a kernel's file exists, and contains what the kernel changes."""
    entry, file = draft.entry, draft.entry.wrong_kernels
    try:
        variant.text(entry)
    except GraderError as error:
        yield Problem(file, f"{variant.name!r}: {error}", line)
    except OSError:
        yield Problem(file, f"{variant.name!r}: there is no file {variant.path(entry).name}", line)


def naive_versions(draft: Draft) -> Iterator[Problem]:
    """Check that at least one bar names a naive version (``naive=``), and that this wrong kernel misses the bar."""
    task = draft.task
    if not task.bars or draft.entry.kind == "debug":
        return
    wrong = {mistake.name: mistake for mistake in draft.mistakes.wrong}
    if not any(bar.naive for bar in task.bars):
        yield draft.described("no bar names the naive version that misses it (naive=)")
    for bar in task.bars:
        mistake = wrong.get(bar.naive)
        if bar.naive and (mistake is None or mistake.stages != ("efficient",)):
            yield draft.described(f"{bar.naive!r} is not a wrong kernel with the stage 'efficient'")
        elif mistake is not None and mistake.says.lower() not in f"{bar.expression} {bar.look}".lower():
            says = f"{bar.naive!r} has says = {mistake.says!r}, which the bar {bar.expression!r} does not contain"
            yield draft.described(says)


def summary(draft: Draft) -> Iterator[Problem]:
    """Check that the summary exists and says what happens for empty input, and that cases test its promises."""
    if not draft.task.summary.strip():
        yield draft.described("the summary is missing: say what the kernel must do, in general and for empty input")
    elif not EMPTY.search(draft.task.summary):
        yield draft.described("the summary does not say what happens for empty input, or which sizes are never 0")
    if (
        "2^31" in draft.task.summary
        and UNTRIED not in draft.task.summary
        and not any(c.before for c in draft.task.cases)
    ):
        yield draft.described(
            f"the summary promises 2^31 elements: add a Case(before=...) that tests it, or write {UNTRIED!r}"
        )


def stages(draft: Draft) -> Iterator[Problem]:
    """Check that course.toml lists exactly the stages for which tasks.py has data."""
    task, entry = draft.task, draft.entry
    if isinstance(task, PythonExercise) != (entry.language == "python"):
        yield draft.described(f"it is not described as an exercise whose language is {entry.language}")
    if entry.language == "python":
        return
    if bool(task.bars) != (task.efficient is not None):
        yield draft.described(
            "bars= and efficient= belong together: give the limits on counters, and the case in which they are counted"
        )
    has = [*ALWAYS, *(["efficient"] if task.bars else []), *(["fast"] if task.bench else [])]
    if list(entry.stages) != has:
        says = f"{entry.name} lists the stages {', '.join(entry.stages)}; its bars and bench need {', '.join(has)}"
        yield Problem(entry.root / FILE, says, _listed_line(entry))


def tolerances(draft: Draft) -> Iterator[Problem]:
    """Check that no tolerance is so wide that a trivial output passes."""
    task = draft.task
    given = [*task.tolerance.values(), *(o.tolerance for o in task.outputs.values() if o.tolerance is not None)]
    for value in given:
        if not 0 < value <= LARGEST:
            yield draft.described(f"the tolerance {value:g} must be above 0 and at most {LARGEST:g}")


def sizes(draft: Draft) -> Iterator[Problem]:
    """Check for odd sizes, empty input, and a case with random sizes."""
    task = draft.task
    if isinstance(task, PythonExercise):
        if not any(callable(case.dims[OPERATIONS]) for case in task.cases):
            yield draft.described("no case draws its operations")
        return
    fixed = {value for case in task.cases for value in case.dims.values() if type(value) is int}
    for size in (0, 1, 2):
        if size not in fixed:
            yield draft.described(
                f"no case has a size of {size}" + (": what happens at empty input?" if not size else "")
            )
    if not any(size > 3 and all(size % divisor for divisor in range(2, size)) for size in fixed):
        yield draft.described("no case has a prime size above 3, which no block size divides")
    drawn = [{str(sorted(task.dims_of(case, seed).items())) for seed in range(5)} for case in task.cases]
    if not any(len(different) > 1 for different in drawn):
        yield draft.described("no case has random sizes: use between() or one_of()")


def reference(draft: Draft) -> Iterator[Problem]:
    """Check that the reference works in the first case. The tests run the other cases."""
    task = draft.task
    if not task.cases:
        yield draft.described("there is no case")
    if not task.cases or isinstance(task, PythonExercise):
        return
    case = task.cases[0]
    try:
        task.expected(task.call(case, (case.dtypes or task.dtypes)[0], seed=1))
    except Exception as error:  # an author's code may raise anything
        yield draft.described(f"the reference fails in the case {case.name!r}: {type(error).__name__}: {error}")


RULES: tuple[Rule, ...] = (
    files,
    effort,
    headers,
    todo_comments,
    solution_keeps_the_skeleton,
    hints,
    mistakes,
    naive_versions,
    summary,
    stages,
    tolerances,
    sizes,
    reference,
)
