"""Short messages on the terminal: errors, notes, and how to name an exercise in a command."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from grader.course import Course, Entry
from grader.course.learner import former_files, kernel_file
from grader.course.learner.progress import Progress, ProgressFile
from grader.course.puzzles import BLANK, Puzzle, find_puzzle, open_blank
from grader.report import theme
from grader.setup.errors import GraderError

if TYPE_CHECKING:
    from grader.course.authoring.exercise_rules import Problem


def print_error(message: str, hint: str = "") -> None:
    """Print an error and its advice on stderr."""
    _print("error", "bad.title", message, hint)


def print_note(message: str) -> None:
    """Print a note on stderr. The command continues."""
    _print("note", "warn", message, "")


def _print(label: str, style: str, message: str, hint: str) -> None:
    console = theme.console(sys.stderr)
    text = Text.assemble((f"{label}: ", style), message)
    if not console.is_terminal:
        console.print(text, soft_wrap=True)
        for line in hint.splitlines():
            console.print(Text(f"  {line}"), soft_wrap=True)
        return
    first, *rest = text.wrap(console, max(console.width - 2, 20))
    console.print(first)
    for continued in rest:
        console.print(Text("  ") + continued)
    for line in hint.splitlines():
        console.print(Padding(Text(line), (0, 0, 0, 2)))


def print_problem(problem: Problem, console: Console) -> None:
    """Print what an exercise or a day lacks, with the file and the line."""
    place = f"    {shown_path(problem.file)}{f':{problem.line}' if problem.line else ''}: "
    console.print(Text.assemble((place, "quiet"), problem.says), soft_wrap=True)


def shortened(text: Text, columns: int, ascii_only: bool) -> Text:
    """Shorten a text to a width; an ellipsis marks the cut."""
    if text.cell_len > columns:
        end = "..." if ascii_only else "…"
        text = text[: max(0, columns - len(end))] + Text(end)
    return text


def find_exercise(course: Course, name: str) -> Entry:
    """Return the exercise or puzzle of a name. If it was renamed, print the new name and move the learner's file."""
    if puzzle := find_puzzle(course, name):
        if not puzzle.skeleton.exists():
            kernel_file.write(course, puzzle, puzzle.text)
        return puzzle
    entry = course.find(name)
    move_renamed_files(course)
    if course.is_former(name):
        print_note(f"{name} was renamed to {entry.name}")
    return entry


def refuse_open_blanks(entry: Entry, text: str, file: Path | None = None) -> None:
    """Raise GraderError if a puzzle's text still has a blank. ``file``: where it is, or None for a notebook's cell."""
    if line := open_blank(entry, text):
        # The first line of the cell is %%kernel.
        place = f"{shown_path(file)}:{line}" if file else f"line {line + 1} of the cell"
        raise GraderError(f"{place} still has the blank {BLANK}", "Replace the blank by code, and grade it again.")


def read_progress(course: Course) -> Progress:
    """Return the learner's progress. If its file could not be read, print a note."""
    progress = ProgressFile(course.root).read()
    if progress.set_aside:
        print_note(progress.set_aside)
    return progress


def move_renamed_files(course: Course) -> None:
    """Move the learner's files of renamed exercises, and print a note for each."""
    for note in former_files.move_renamed(course):
        print_note(note)


def start_command(entry: Entry, course: Course) -> str:
    """Return the command that starts an exercise or a puzzle."""
    return f"grader {'check' if isinstance(entry, Puzzle) else 'watch'} {short_name(entry, course)}"


def short_name(entry: Entry, course: Course) -> str:
    """Return the name without the day, such as ``flash_attention``; the full name if two days have such an exercise."""
    same = [other for other in (*course.exercises, *course.drafts) if other.variable == entry.variable]
    return entry.variable if len(same) == 1 or isinstance(entry, Puzzle) else entry.name


def shown_path(path: Path) -> str:
    """Return a path as a learner would type it: relative to the working folder if inside it, else unchanged."""
    with_dots = os.path.relpath(path)
    return with_dots if not with_dots.startswith("..") else str(path)
