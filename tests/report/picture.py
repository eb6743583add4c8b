"""Draws the report of a verdict as an SVG picture for the README, on random inputs from a fixed seed.

python -m tests.report.picture EXERCISE OUT.svg [--file F] [--seed N] [--results results.json]

The picture contains nothing that changes from run to run: no time and no machine.
"""

from __future__ import annotations

import argparse
import io
import re
import sys
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import TerminalTheme

from grader.course import find
from grader.judge import check
from grader.report import terminal, theme
from grader.report.notebook.verdicts import timeless
from grader.setup.errors import GraderError
from grader.setup.files import write_file
from grader.verdict import Verdict

COLORS = TerminalTheme(
    (250, 250, 250),
    (36, 41, 47),
    [
        (36, 41, 47),
        (179, 38, 30),
        (26, 127, 75),
        (154, 103, 0),
        (9, 105, 218),
        (130, 80, 223),
        (27, 124, 131),
        (87, 96, 106),
    ],
)


def picture(verdict: Verdict, command: str, width: int = theme.WIDTH) -> str:
    """Return an SVG with the command that makes the verdict, and the verdict's report below it."""
    console = Console(
        file=io.StringIO(),
        record=True,
        width=width,
        theme=theme.THEME,
        highlight=False,
        force_terminal=True,
        color_system="truecolor",
        legacy_windows=False,
    )
    console.print(f"[bold]$[/bold] {command}", highlight=False, soft_wrap=True)
    console.print(terminal.render(timeless(verdict), width))
    svg = console.export_svg(title="grader check", theme=COLORS, unique_id="verdict", font_aspect_ratio=0.61)
    # The font is named, not embedded: a picture in a README must not load anything.
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)
    return "\n".join(line.rstrip() for line in svg.splitlines()) + "\n"


SEED = 1


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.report.picture", description="Draw a report as SVG.")
    parser.add_argument("exercise")
    parser.add_argument("out", type=Path)
    parser.add_argument("--file", type=Path, help="grade this file")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--results", type=Path, help="draw this results.json without grading")
    options = parser.parse_args(arguments)
    try:
        if options.results:
            verdict = Verdict.load(options.results)
        else:
            verdict = check(find(options.exercise), options.file, seed=options.seed)
        command = f"grader check {options.exercise.rpartition('/')[2]}"
        write_file(options.out, picture(verdict, command))
    except GraderError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
