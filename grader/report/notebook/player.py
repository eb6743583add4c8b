"""The player in a notebook: a recording of one block, step by step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from grader.execution.in_process.kernel import Launcher
from grader.report.notebook.panel import Output
from grader.report.player import page
from grader.setup.errors import GraderError
from grader.simulator.recording import Recording
from grader.verdict.finding import Finding

MOST_BYTES = 300_000
"""The maximum size of a player in bytes. A notebook stores the player in its outputs."""


@dataclass(repr=False, eq=False)
class Player(Output):
    """A recorded block. ``str`` describes it in words, ``save`` writes it as an HTML page."""

    recording: Recording
    source: str
    findings: list[Finding]
    most_bytes: int = MOST_BYTES

    def __str__(self) -> str:
        return page.as_text(self.recording, self.findings)

    def html(self) -> str:
        """Return a frame with the player in it."""
        return page.frame(self.recording, self.source, self.findings, self.most_bytes)

    def save(self, path: str) -> None:
        """Write the player as a self-contained page."""
        page.save(path, self.recording, self.source, self.findings)


def play(
    launcher: Launcher,
    *given: Any,
    block: tuple[int, int, int] = (0, 0, 0),
    launch: int = 0,
    most_bytes: int = MOST_BYTES,
    **named: Any,
) -> Player:
    """Call a launcher, and show the execution of one block: its steps, its waits, and the addresses of each request.

    ``play(kernel.relu, x, out, n)`` runs ``kernel.relu(x, out, n)`` on the simulator. ``block`` is the block's
    ``blockIdx``, and ``launch`` the number of the launch in the call, from 0. Findings are shown in the player and not
    raised. If the recording is long, only the first steps are kept: at most ``most_bytes`` are stored in the notebook.
    """
    if not isinstance(launcher, Launcher):
        raise GraderError(
            "the first argument of play() must be a launcher of a loaded kernel",
            "For example: play(kernel.relu, x, out, n).",
        )
    if len(block) != 3 or any(not isinstance(part, int) or part < 0 for part in (*block, launch)):
        raise GraderError(
            f"block={block}, launch={launch} does not name a block", "For example: block=(0, 0, 0), launch=0."
        )
    kernel = launcher.kernel
    with kernel.recording(block, launch):
        launcher(*given, **named)
    report = kernel.report
    if report.recording is None:
        launches = [f"{item.name} with a grid of {tuple(item.grid)}" for item in report.kernels]
        raise GraderError(
            f"block {tuple(block)} of launch {launch} did not run", f"Launched: {', '.join(launches) or 'nothing'}."
        )
    return Player(report.recording, kernel.source, report.findings, most_bytes)
