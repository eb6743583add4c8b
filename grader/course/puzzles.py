"""Puzzles: kernels of a few lines with a blank, one idea each, graded as exercises are.

A puzzle is one ``[[puzzle]]`` of ``exercises/dayNN_topic/puzzles.toml``. It has no other file: the learner's file is
written from it, to ``exercises/dayNN_topic/puzzles/NAME.cu``, which is not part of the course. No class is graded on
puzzles, and ``Course.find`` does not know them.
"""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import Meta, Struct, field

from grader.course.catalog import Course, Entry
from grader.course.manifest import ALWAYS, Text, read_record
from grader.setup.errors import GraderError

if TYPE_CHECKING:
    from grader.course.task import Exercise

FILE = "puzzles.toml"
BLANK = "____"
"""The place in a kernel that the learner fills in."""


class Tensor(Struct, frozen=True, forbid_unknown_fields=True):
    """An input tensor of a puzzle, if its entry gives more than a shape."""

    shape: Text
    dtype: Literal["f32", "i32"] = "f32"
    low: str | int = 0
    """The smallest integer: a number, or an expression with the sizes of the case."""
    high: str | int = 2
    """The integer after the largest one: a number, or an expression with the sizes of the case."""


class Bar(Struct, frozen=True, forbid_unknown_fields=True):
    """A bar of the stage *efficient*: a limit on counters, which are counted in the first case."""

    expression: Text
    at_most: float
    look: str = ""


class Wrong(Struct, frozen=True, forbid_unknown_fields=True):
    """Wrong answers, the stage that must fail, and a text that the learner must see."""

    answers: tuple[str, ...]
    stage: Literal["builds", "correct", "safe", "efficient"]
    says: str = ""


class Listed(Struct, frozen=True, forbid_unknown_fields=True):
    """One ``[[puzzle]]`` table of puzzles.toml."""

    name: Annotated[str, Meta(pattern=r"^[a-z][a-z0-9_]*$")]
    title: Text
    text: Text
    """The task, and the meaning of the blank."""
    kernel: Text
    """The whole file without its includes, with a BLANK for each answer."""
    answers: tuple[Text, ...]
    hint: Text
    outputs: dict[str, Text]
    """The shapes of the outputs by name. A shape is an expression with the sizes of the case."""
    reference: Text
    """A Python expression with the inputs, the sizes and ``torch``."""
    cases: Annotated[tuple[dict[str, int | float], ...], Meta(min_length=1)]
    """The sizes by name."""
    wrong: Annotated[tuple[Wrong, ...], Meta(min_length=2)]
    inputs: dict[str, str | Tensor] = {}
    bars: tuple[Bar, ...] = ()
    points: Annotated[int, Meta(ge=1)] = 1


class _File(Struct, frozen=True, forbid_unknown_fields=True):
    puzzles: tuple[Listed, ...] = field(default=(), name="puzzle")


@dataclass(frozen=True)
class Puzzle(Entry):
    """One puzzle. As an ``Entry``, it is graded and recorded like an exercise."""

    listed: Listed = None  # type: ignore[assignment]  # needs a default, as the fields above have one

    @property
    def skeleton(self) -> Path:
        """The learner's file, which may not exist yet."""
        return self.root / "exercises" / self.day / "puzzles" / f"{self.variable}.cu"

    @property
    def tasks(self) -> Path:
        """The file that describes it."""
        return self.root / "exercises" / self.day / FILE

    @property
    def hints(self) -> tuple[str, ...]:
        """The only hint."""
        return (" ".join(self.listed.hint.split()),)

    @property
    def text(self) -> str:
        """The text of the kernel file, with its blanks."""
        return f"#include <cuda_runtime.h>\n\n{self.listed.kernel.strip()}\n"

    def filled(self, answers: tuple[str, ...] | None = None) -> str:
        """Return the kernel with its blanks filled with ``answers``; by default the correct ones."""
        text = self.text
        for answer in self.listed.answers if answers is None else answers:
            text = text.replace(BLANK, answer, 1)
        return text

    def solution_text(self) -> str:
        """Return the kernel with the correct answers."""
        return self.filled()

    def load(self) -> Exercise:
        """Return the description of the task. Imports torch."""
        import numpy  # noqa: F401  (before torch: see Entry.load)

        from grader.course import task

        inputs = {name: _input(tensor) for name, tensor in self.listed.inputs.items()}
        cases = [task.Case(_named(dims), **dict[str, Any](dims)) for dims in self.listed.cases]
        names = dict.fromkeys([*inputs, *(name for case in cases for name in case.dims)])
        return task.Exercise(
            summary=self.listed.text,
            launchers=self._launcher(),
            inputs=inputs,
            outputs={name: task.Output(shape) for name, shape in self.listed.outputs.items()},
            reference=self._reference(list(names)),
            cases=cases,
            efficient=cases[0] if self.listed.bars else None,
            bars=[task.Bar(bar.expression, at_most=bar.at_most, look=bar.look) for bar in self.listed.bars],
            name=self.name,
            title=self.title,
            kind=self.kind,
            points=self.points,
            architecture=self.architecture,
            difficulty=self.difficulty,
        )

    def _launcher(self) -> str:
        found = re.search(r'extern "C"\s+(void\s+\w+\s*\([^)]*\))', self.listed.kernel)
        if found is None:
            raise GraderError(f"{self.tasks}: {self.variable} has no launcher", 'Write extern "C" void ...')
        return found[1]

    def _reference(self, names: list[str]) -> Any:
        """Return the reference as a function of the inputs and sizes that its expression names."""
        import torch

        used = [name for name in names if re.search(rf"\b{name}\b", self.listed.reference)]
        try:
            return eval(f"lambda {', '.join(used)}: {self.listed.reference.strip()}", {"torch": torch})
        except SyntaxError as error:
            raise GraderError(f"{self.tasks}: the reference of {self.variable}: {error.msg}") from error


def _input(tensor: str | Tensor) -> Any:
    from grader.course import task

    if isinstance(tensor, str):
        return task.Input(tensor)
    if tensor.dtype == "f32":
        return task.Input(tensor.shape)
    return task.Input(tensor.shape, task.integers(tensor.low, tensor.high), dtype=tensor.dtype)


def _named(dims: dict[str, int | float]) -> str:
    """Return the name of a case, made of its sizes: ``n = 5, cols = 3``."""
    return ", ".join(f"{name} = {value}" for name, value in dims.items())


def read_puzzles(course: Course) -> list[Puzzle]:
    """Return the puzzles of a course, in the order of its days.

    Raises:
        GraderError: a puzzle contradicts itself.
    """
    found, hint = [], f"{__name__} has the fields of a puzzle."
    known = {entry.variable for entry in [*course.exercises, *course.drafts]}
    for day in course.days:
        file = course.root / "exercises" / day.folder / FILE
        if not file.is_file():
            continue
        for puzzle in read_record(file, _File, hint).puzzles:
            if problem := _problem(puzzle, known):
                raise GraderError(f"{file}: {puzzle.name}: {problem}", hint)
            known.add(puzzle.name)
            stages = (*ALWAYS, "efficient") if puzzle.bars else ALWAYS
            place = (course.root, day.folder, puzzle.name, day.number)
            entry = Puzzle(*place, puzzle.title, "implement", puzzle.points, course.manifest.architecture, stages)
            found.append(dataclasses.replace(entry, difficulty="easy", listed=puzzle))
    return found


def find_puzzle(course: Course, name: str) -> Puzzle | None:
    """Return the puzzle of that name, ``DAY/NAME`` or path; None if there is none."""
    wanted = name.strip().removesuffix(".cu").split("/")
    if any(entry.variable == wanted[-1] for entry in [*course.exercises, *course.drafts]):
        return None  # no puzzle has the name of an exercise, so the files of the puzzles need not be parsed
    matching = [puzzle for puzzle in read_puzzles(course) if puzzle.variable == wanted[-1]]
    known = {"exercises", "puzzles", *(f"{part.day}" for part in matching), *(str(part.number) for part in matching)}
    return matching[0] if matching and (len(wanted) == 1 or wanted[-2] in known) else None


def _problem(puzzle: Listed, known: set[str]) -> str:
    """Return what is wrong in a puzzle's table; empty if it is valid."""
    if puzzle.name in known:
        return "another puzzle or exercise has this name"
    blanks = puzzle.kernel.count(BLANK)
    if blanks == 0 or any(len(answers) != blanks for answers in (puzzle.answers, *(w.answers for w in puzzle.wrong))):
        return f"the kernel has {blanks} blanks, but the solution or a wrong kernel has another number of answers"
    return ""


def open_blank(entry: Entry, text: str) -> int:
    """Return the line of the first blank that is still open in a puzzle's file; 0 if there is none."""
    lines = text.splitlines() if isinstance(entry, Puzzle) else []
    return next((number for number, line in enumerate(lines, 1) if BLANK in line), 0)
