"""Outputs of a notebook: plain text, or colored HTML if the viewer shows HTML."""

from __future__ import annotations

import io
from typing import Any

from rich.console import RenderableType
from rich.terminal_theme import TerminalTheme

from grader.report import theme

COLORS = TerminalTheme(
    (255, 255, 255),
    (36, 41, 47),
    [
        (36, 41, 47),
        (179, 55, 46),
        (44, 127, 87),
        (154, 103, 0),
        (9, 105, 218),
        (130, 80, 223),
        (27, 124, 131),
        (87, 96, 106),
    ],
)
WIDTH = 100
_PRE = (
    # JupyterLab breaks the lines of `pre` anywhere, also in words, unless an output says otherwise.
    '<pre style="line-height:1.35;white-space:pre;overflow-x:auto;'
    'font-family:ui-monospace,Menlo,Consolas,monospace;font-size:0.85em">{code}</pre>'
)


class Output:
    """The result of a cell. ``str`` gives it as plain text, ``html`` for viewers of HTML."""

    def html(self) -> str:
        """Return the HTML."""
        raise NotImplementedError

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/plain": str(self), "text/html": self.html()}

    def __repr__(self) -> str:
        return str(self)


class Panel(Output):
    """A report inside a notebook. ``str`` converts it to plain text."""

    def __init__(self, renderable: RenderableType) -> None:
        self._renderable = renderable

    def __str__(self) -> str:
        return theme.plain_text(self._renderable, WIDTH).strip("\n")

    def html(self) -> str:
        """Return the report as colored HTML."""
        console = theme.console(io.StringIO(), width=WIDTH, record=True, force_terminal=True, color_system="truecolor")
        console.print(self._renderable)
        code = console.export_html(theme=COLORS, inline_styles=True, code_format="{code}")
        lines = [line.rstrip() for line in code.strip("\n").splitlines()]
        return _PRE.format(code="\n".join(lines))
