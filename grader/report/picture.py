"""A verdict as an SVG picture for the README.

The picture contains nothing that changes from run to run: no time and no machine.
"""

from __future__ import annotations

import io
import re

from msgspec import structs
from rich.console import Console
from rich.terminal_theme import TerminalTheme

from grader.report import terminal, theme
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


def timeless(verdict: Verdict) -> Verdict:
    """Return the verdict without facts that change between runs and machines: times, and whether nvcc is installed."""
    stages = [structs.replace(stage, seconds=0.0) for stage in verdict.stages]
    for stage in stages:
        if stage.name == "builds" and stage.passed and verdict.device != "python":
            stage.summary, stage.resources = "compiles", []
    return structs.replace(verdict, stages=stages, seconds=0.0, isolation_note="")
