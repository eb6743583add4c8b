"""Notebook magics: ``%%kernel``, ``%kernel``, ``%grade``, ``%hint`` and ``%progress``, after ``%load_ext grader``."""

from __future__ import annotations

import argparse
import io
import re
import shlex
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from IPython.display import DisplayHandle, display
from rich.console import Console
from rich.text import Text

from grader.cli import check, hint, list_exercises
from grader.cli.messages import find_exercise, read_progress, refuse_open_blanks, short_name, shown_path
from grader.course import Course, Entry
from grader.course.learner import kernel_file, pristine
from grader.course.learner.progress import ProgressFile
from grader.course.puzzles import Puzzle, read_puzzles
from grader.frontend.toolchain.gpus import find_gpu
from grader.judge.options import CheckEvent, CheckOptions
from grader.report import theme
from grader.report.notebook.graded import Graded
from grader.report.notebook.panel import WIDTH, Panel
from grader.report.notebook.player import Player
from grader.report.terminal import NextStep, step_table
from grader.setup.errors import GraderError
from grader.verdict import Verdict

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from grader.judge.recorded import Recorded

NAMES = ("kernel", "grade", "hint", "progress")
COMPLETED = r"\s*%%?(kernel|grade|hint)\b"


OFTEN = 0.2
"""The minimum seconds between two updates of the progress, because each update is a message to the browser."""


class Stopped(KeyboardInterrupt):
    """An interrupt by the stop button or Ctrl-C. It is a KeyboardInterrupt, so Jupyter does not run queued cells."""

    def _render_traceback_(self) -> list[str]:
        """Return the message that replaces a traceback."""
        return [str(self)]


def register(shell: InteractiveShell) -> None:
    """Register the magics and the tab completion of exercise names in IPython."""
    magics = Magics(shell)
    shell.register_magic_function(magics.kernel, "line_cell", "kernel")
    shell.register_magic_function(magics.grade, "line", "grade")
    shell.register_magic_function(magics.hint, "line", "hint")
    shell.register_magic_function(magics.progress, "line", "progress")
    shell.set_hook("complete_command", complete, re_key=COMPLETED)


def unregister(shell: InteractiveShell) -> None:
    """Remove the magics and the completion."""
    for kind in ("line", "cell"):
        for name in NAMES:
            shell.magics_manager.magics[kind].pop(name, None)
    shell.strdispatchers["complete_command"].regexs.pop(re.compile(COMPLETED), None)


class Magics:
    """The magics of one notebook. IPython calls each with the text after its name."""

    def __init__(self, shell: InteractiveShell) -> None:
        self.shell = shell

    def kernel(self, line: str, cell: str | None = None) -> None:
        """Save the cell as the exercise's file, and grade it.

        %%kernel EXERCISE [-v] [--device cpu|cuda] [--seed N] [--gpu GPU]

        If the file holds other work, that is first saved as NAME.cu.1.bak, NAME.cu.2.bak, ... `%kernel EXERCISE`, on
        one line, puts the exercise's file into this cell.
        """
        asked = _parser("%%kernel" if cell is not None else "%kernel", grading=cell is not None).read(line)
        if asked is None:
            return
        course = Course()
        entry = find_exercise(course, asked.exercise)
        if cell is None:
            self.shell.set_next_input(f"%%kernel {entry.name}\n{_text_of(entry)}", replace=True)
            return
        if not cell.strip():
            raise GraderError(
                f"the cell contains no code for {entry.name}",
                f"Write the kernel below the line %%kernel; %kernel {short_name(entry, course)} inserts the exercise's "
                "file.",
            )
        refuse_open_blanks(entry, cell)
        _refuse_another_exercise(course, entry, cell)
        backup = kernel_file.write(course, entry, cell if cell.endswith("\n") else cell + "\n")
        kept = f"The previous {shown_path(entry.skeleton)} is saved as {backup.name} beside it." if backup else ""
        self._grade(course, entry, None, asked, kept)

    def grade(self, line: str) -> None:
        """Grade the exercise's file, or another one.

        %grade EXERCISE [--file F] [-v] [--device cpu|cuda] [--seed N] [--gpu GPU]
        """
        asked = _parser("%grade", grading=True, file=True).read(line)
        if asked is None:
            return
        course = Course()
        self._grade(course, find_exercise(course, asked.exercise), asked.file, asked, "")

    def hint(self, line: str) -> None:
        """Show the task, and one hint more than last time.

        %hint EXERCISE
        """
        asked = _parser("%hint").read(line)
        if asked is not None:
            course = Course()
            entry = find_exercise(course, asked.exercise)
            again = f"%hint {short_name(entry, course)}"
            display(_printed(lambda console: hint.show_next(course, entry, again, console)))

    def progress(self, line: str) -> None:
        """Show days, exercises, points and your progress.

        %progress
        """
        if line.strip():
            raise GraderError(f"%progress takes no arguments, but got {line.strip()!r}")
        course = Course()
        read = read_progress(course)
        following = list_exercises.next_exercise(course, read)

        def write(console: Console) -> None:
            list_exercises.print_list(course, read, with_next=False, console=console, puzzle_command="%kernel")
            if following is not None:
                console.print(step_table([(f"%kernel {short_name(following, course)}", "next, in this cell")], WIDTH))

        display(_printed(write))

    def _grade(self, course: Course, entry: Entry, file: Path | None, asked: argparse.Namespace, note: str) -> None:
        gpu = find_gpu(asked.gpu).name
        if isinstance(entry, Puzzle) and (path := file or entry.skeleton).is_file():
            refuse_open_blanks(entry, path.read_text(encoding="utf-8", errors="replace"), path)
        pristine.keep_copies(course)
        own = check.is_own_file(entry, file)
        with _Output(self.shell, entry.name, note) as output:
            from grader.judge import check as judge

            check.load_torch()  # not here: the stop button would interrupt the import, which could not be repeated
            recordings: list[Recorded] = []
            options = CheckOptions(
                device=asked.device,
                seed=asked.seed,
                details=asked.verbose,
                gpu=gpu,
                on_progress=output.follow,
                on_recording=recordings.append if isinstance(entry, Puzzle) else None,
            )
            verdict = judge(entry, file, options)
        if own:
            check.record(course, entry, verdict)
        steps = next_steps(course, entry, verdict, own)
        players = [Player(each.recording, each.source, each.findings) for each in recordings]
        output.show(Graded(verdict, steps, asked.verbose, note, players))


def _refuse_another_exercise(course: Course, entry: Entry, cell: str) -> None:
    """Raise GraderError if a cell has only launchers of another exercise, instead of replacing the file of this one."""
    launchers = re.findall(r'extern\s+"C"\s+[\w\s]+?(\w+)\s*\(', cell)
    if not launchers or any(_belongs(name, entry) for name in launchers):
        return
    others = [other for other in (*course.exercises, *read_puzzles(course)) if _belongs(launchers[0], other)]
    if others:
        meant = short_name(max(others, key=lambda other: len(other.variable)), course)
        raise GraderError(
            f"the cell has the launcher {launchers[0]}, which belongs to {meant}; nothing was saved",
            f"To save and grade it as {meant}, begin the cell with: %%kernel {meant}",
        )


def _belongs(launcher: str, entry: Entry) -> bool:
    """Return whether a launcher's name is that of an exercise, with or without a dtype."""
    return launcher == entry.variable or launcher.startswith(f"{entry.variable}_")


def next_steps(course: Course, entry: Entry, verdict: Verdict, own: bool) -> list[NextStep]:
    """Return the magics that are useful after this verdict."""
    name = short_name(entry, course)
    if verdict.exit_code == 2:
        return [("!grader doctor", "this machine's tools, and what is missing")]
    progress = ProgressFile(course.root).read()
    if verdict.passed:
        following = list_exercises.next_exercise(course, progress, entry) if own else None
        if following is None:
            return [("%progress", "your progress")]
        return [(f"%kernel {short_name(following, course)}", f"next, in a cell of its own: {following.title}")]
    steps: list[NextStep] = []
    if own and entry.hints:
        shown = progress.of(entry.name).hints_shown
        which = f"hint {shown + 1} of {len(entry.hints)}"
        steps.append((f"%hint {name}", which if shown < len(entry.hints) else "the hints again"))
    if own and any(not case.passed for stage in verdict.stages for case in stage.cases):
        steps.append((f"%grade {name} --seed {verdict.seed} -v", "the same inputs, with every failure"))
    return steps


def complete(_: Any, event: Any) -> list[str]:
    """Return the exercises or options that complete a word. Return none on any error."""
    if event.symbol.startswith("-"):
        return ["--device", "--seed", "--verbose", "--gpu", *(["--file"] if "%grade" in event.line else [])]
    try:
        course = Course()
        entries = [*course.exercises, *course.drafts, *read_puzzles(course)]
        names = [entry.name for entry in entries]
        if not event.symbol or "/" in event.symbol or event.symbol.startswith("day"):
            return names
        return [*(short_name(entry, course) for entry in entries), *names]
    except GraderError:
        return []


class _Output:
    """The output of a cell that grades. It shows the progress, which the result then replaces."""

    def __init__(self, shell: InteractiveShell, name: str, note: str) -> None:
        """Store the exercise's ``name`` and a ``note`` to show if grading fails."""
        self.name, self.note = name, note
        # Only a notebook can replace output; its shell has a Jupyter kernel. IPython in a terminal shows no progress.
        self._handle = DisplayHandle() if hasattr(shell, "kernel") else None
        self._shown = ""
        self._said = 0.0

    def __enter__(self) -> _Output:
        self._say(f"grading {self.name}")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        if kind is None:
            return
        self.show(Panel(f"{self.note} {self.name} was not graded.".strip()))
        if issubclass(kind, KeyboardInterrupt):
            raise Stopped("stopped") from None

    def follow(self, event: CheckEvent) -> None:
        """Show the current stage.

        Calls from other threads are ignored: a notebook would show their output below another cell.
        """
        if threading.current_thread() is not threading.main_thread():
            return
        if event.event != "case":
            self._say(f"grading {self.name}: {event.stage}")
        elif time.monotonic() - self._said > OFTEN:
            self._say(f"grading {self.name}: {event.stage} {event.done} of {event.total}")

    def show(self, result: Panel) -> None:
        """Show the final output."""
        if self._handle is None:
            display(result)
        else:
            self._handle.update(result)

    def _say(self, text: str) -> None:
        if self._handle is not None and text != self._shown:
            (self._handle.update if self._shown else self._handle.display)(Panel(text))
            self._shown, self._said = text, time.monotonic()


def _without_comment(line: str) -> str:
    """Return the line up to a ``#`` that begins a word outside of quotes."""
    quote = ""
    for place, character in enumerate(line):
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        elif character == "#" and (place == 0 or line[place - 1].isspace()):
            return line[:place]
    return line


class _Parser(argparse.ArgumentParser):
    """The parser of a magic's options. It reports an error as one message."""

    def read(self, line: str) -> argparse.Namespace | None:
        """Parse a line's arguments; return None after printing help."""
        try:
            words = shlex.split(_without_comment(line))
        except ValueError as error:
            raise GraderError(
                f"{self.prog}: {str(error).lower()} in {line.strip()!r}", self.format_usage().strip()
            ) from None
        if {"-h", "--help"} & {*words}:
            print(self.format_help())
            return None
        return self.parse_args(words)

    def error(self, message: str) -> NoReturn:
        raise GraderError(f"{self.prog}: {message}", self.format_usage().strip())


def _parser(prog: str, grading: bool = False, file: bool = False) -> _Parser:
    parser = _Parser(prog=prog, add_help=False, allow_abbrev=False)
    parser.add_argument("exercise", metavar="EXERCISE", help="the exercise, such as 6/flash_attention or softmax")
    if file:
        parser.add_argument("--file", type=Path, metavar="F", help="grade this file instead of your own in exercises/")
    if grading:
        parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="the simulated GPU, or a real one")
        parser.add_argument("--seed", type=int, metavar="N", help="draw the same inputs as a run that showed this seed")
        parser.add_argument(
            "-v", "--verbose", action="store_true", help="show every failing case, and the operations of the kernel"
        )
        parser.add_argument("--gpu", default="H200", help="with -v: find the unit of this GPU that limits the kernel")
    return parser


def _text_of(entry: Entry) -> str:
    try:
        return entry.skeleton.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise GraderError(f"cannot read {entry.skeleton}: {error}") from None


def _printed(write: Callable[[Console], None]) -> Panel:
    """Return a command's printed output as a cell output."""
    buffer = io.StringIO()
    write(theme.console(buffer, width=WIDTH, force_terminal=True, color_system="standard"))
    return Panel(Text.from_ansi(buffer.getvalue()))
