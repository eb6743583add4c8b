"""Draws reports as SVG pictures, for the README: a right and a broken kernel, graded as ``grader check`` does.

    python -m grader.report.picture EXERCISE OUT.svg [--file F] [--seed N] [--results results.json]

The picture holds nothing that changes from run to run: no time, no machine, and random inputs from a fixed seed.
"""

from __future__ import annotations

import argparse
import dataclasses
import io
import re
import sys
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import TerminalTheme

from grader.errors import GraderError
from grader.report import terminal, theme
from grader.verdict import Verdict

SEED = 1
COLOURS = TerminalTheme(
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
    """The report of a verdict as SVG text, under the command that makes it."""
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
    svg = console.export_svg(title="grader check", theme=COLOURS, unique_id="verdict", font_aspect_ratio=0.61)
    # The font is named, not fetched: a picture in a README must not load anything.
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)
    return "\n".join(line.rstrip() for line in svg.splitlines()) + "\n"


def timeless(verdict: Verdict) -> Verdict:
    """The verdict without what changes from run to run and from machine to machine: times, and whether nvcc is there."""
    stages = [dataclasses.replace(stage, seconds=0.0) for stage in verdict.stages]
    for stage in stages:
        if stage.name == "builds" and stage.passed:
            stage.summary, stage.resources = "compiles", []
    return dataclasses.replace(verdict, stages=stages, seconds=0.0, isolation_note="")


def main(arguments: list[str] | None = None) -> int:
    """The command line; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m grader.report.picture", description="Draw a report as SVG.")
    parser.add_argument("exercise")
    parser.add_argument("out", type=Path)
    parser.add_argument("--file", type=Path, help="grade this file")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--results", type=Path, help="draw this results.json and grade nothing")
    options = parser.parse_args(arguments)
    try:
        if options.results:
            verdict = Verdict.load(options.results)
        else:
            from grader.course import find
            from grader.judge import check

            verdict = check(find(options.exercise), options.file, seed=options.seed)
        command = f"grader check {options.exercise.rpartition('/')[2]}"
        options.out.write_text(picture(verdict, command), encoding="utf-8")
    except GraderError as error:
        print(error, file=sys.stderr)
        return 2
    except OSError as error:
        print(f"cannot write {options.out}: {error.strerror}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
