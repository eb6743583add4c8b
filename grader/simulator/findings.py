"""One thing that the simulator saw, at the learner's line, and how it reads over several lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass
class Side:
    """One thread's part in a finding."""

    file: str = ""
    line: int = 0
    column: int = 0
    source_line: str = ""
    access: str = ""
    """read, write, atomic, volatile read..., or empty."""
    block: list[int] | None = None
    thread: list[int] | None = None
    inside: str = ""
    """Where in a header of the course it happened, if the line calls a function of one: ``llmk/reduce.cuh:31``."""

    @property
    def place(self) -> str:
        """``flash_attention.cu:31``, or ``flash_attention.cu:31 (in llmk/reduce.cuh:20)``."""
        place = f"{Path(self.file).name}:{self.line}" if self.line else Path(self.file).name
        return f"{place} (in {self.inside})" if self.inside else place

    @property
    def who(self) -> str:
        """``block (3, 0, 0) thread (17, 0, 0)``."""
        return who(self.block, self.thread)


@dataclass
class SimulatorFinding:
    """Something that is wrong, at one place. The same thing at the same place is counted, not repeated."""

    check: str
    """memcheck, initcheck, racecheck, synccheck, or fault."""
    kind: str
    message: str = ""
    """One line: what, where, and which thread was the first."""
    advice: str = ""
    """What to do about it, in a sentence or two."""
    file: str = ""
    line: int = 0
    column: int = 0
    source_line: str = ""
    access: str = ""
    bytes: int = 0
    block: list[int] | None = None
    thread: list[int] | None = None
    kernel: str = ""
    tensor: str = ""
    """The tensor, variable or shared array that it is about."""
    element: list[int] | None = None
    """The element of it, where it is a tensor and the access lies inside."""
    count: int = 1
    other: dict[str, Any] | None = None
    """For a race, the other side: file, line, column, source_line, access, block, thread, message."""

    def __str__(self) -> str:
        return self.text

    @property
    def text(self) -> str:
        """The whole finding over several lines: source line, caret, the other side, and what to do."""
        return whole(self)


def who(block: Sequence[int] | None, thread: Sequence[int] | None) -> str:
    """``block (3, 0, 0) thread (17, 0, 0)``."""
    parts = []
    if block is not None:
        parts.append(f"block ({', '.join(map(str, block))})")
    if thread is not None:
        parts.append(f"thread ({', '.join(map(str, thread))})")
    return " ".join(parts)


def excerpt(line: int, source: str, column: int) -> list[str]:
    """The source line with its number, and a caret under the column where that is known."""
    if not source.strip():
        return []
    shown = source.expandtabs(4).rstrip()
    rows = [f"  {line:>5} | {shown}"]
    if column > 0:
        rows.append(f"        | {' ' * len(source[: column - 1].expandtabs(4))}^")
    return rows


def whole(finding: SimulatorFinding) -> str:
    """All that there is to say about a finding, over several lines."""
    rows = [f"{finding.check}: {finding.message}"]
    rows += excerpt(finding.line, finding.source_line, finding.column)
    other = finding.other
    if other and other["source_line"].strip():
        rows.append(f"  {other['message']} ({Path(other['file']).name}:{other['line']}):")
        rows += excerpt(other["line"], other["source_line"], other["column"])
    if finding.count > 1:
        rows.append(f"  seen {finding.count:,} times")
    if finding.advice:
        rows.append(f"  {finding.advice}")
    return "\n".join(rows)
