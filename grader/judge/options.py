"""The options of a check, and the events that report its progress to the caller."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from grader.judge.recorded import Recorded


@dataclass(frozen=True)
class CheckEvent:
    """An event that ``check`` sends at the start of a stage, after each case or step, and at the end of a stage."""

    stage: str
    event: str
    """The kind of the event: started, case, step or finished."""
    done: int = 0
    total: int = 0
    case: str = ""
    """The name of the case, or of the step of the stage *fast*."""
    status: str = ""
    """The status: passed, failed, skipped or error, for a case or a finished stage."""


@dataclass(frozen=True, kw_only=True)
class CheckOptions:
    """The options of a check: the device, the stages, and functions that receive events."""

    device: str = "cpu"
    """"cpu" is the simulator, "cuda" a real GPU."""
    seed: int | None = None
    """The seed of all random inputs; None for a random seed."""
    stages: Sequence[str] | None = None
    """The stages to run; None for all that the device has."""
    details: bool = False
    """True to count the floating-point operations of each line, and use them for the lower bound of the time."""
    gpu: str = "H200"
    """The GPU for which a lower bound of the kernel's time is computed."""
    same_value_races: bool = False
    """True to report also races between writes of the same value."""
    times: Literal["measure", "renew", "reuse"] = "measure"
    """How the stage *fast* uses kept times. Grading a class always measures.

    "reuse": report the times of an earlier check if nothing has changed since, else measure and keep them. "renew":
    measure and keep. "measure": measure, and keep nothing.
    """
    own_process: bool = False
    """True to compile in a separate process, which is faster if the caller has not imported torch yet."""
    ahead: bool = False
    """True to draw the inputs while the kernel compiles. A single check ends sooner; grading a class does not."""
    on_progress: Callable[[CheckEvent], None] | None = None
    """A function that is called with each event, possibly by another thread."""
    on_recording: Callable[[Recorded], None] | None = None
    """A function that is called with a recording of one block. Recording takes one more run of the kernel."""

    def report(self, event: CheckEvent) -> None:
        """Pass an event to ``on_progress``."""
        if self.on_progress is not None:
            self.on_progress(event)
