"""The options of one check."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from grader.judge.events import CheckEvent

if TYPE_CHECKING:
    from grader.judge.recorded import Recorded


@dataclass(frozen=True, kw_only=True)
class CheckOptions:
    """The options of a check: what runs where, and who is informed."""

    device: str = "cpu"
    """"cpu" is the simulator, "cuda" a real GPU."""
    seed: int | None = None
    """The seed of all random inputs; None draws a seed."""
    stages: Sequence[str] | None = None
    """The stages to run; None runs all that the device has."""
    details: bool = False
    """Also count the floating-point operations of each line, and bound the time on ``gpu``."""
    gpu: str = "H200"
    """The GPU that ``details`` computes a lower bound for."""
    same_value_races: bool = False
    """Report races between writes of the same value, too."""
    own_process: bool = False
    """Compile in a separate process, for a caller that has not imported torch yet."""
    ahead: bool = False
    """Draw the inputs while the kernel compiles: one verdict comes sooner, several of a class do not."""
    on_progress: Callable[[CheckEvent], None] | None = None
    """Receives each event; called from other threads, too."""
    on_recording: Callable[[Recorded], None] | None = None
    """Receives a recording of one block, which takes one more run of the kernel."""

    def report(self, event: CheckEvent) -> None:
        """Pass an event to ``on_progress``."""
        if self.on_progress is not None:
            self.on_progress(event)
