"""Events that report the progress of ``check`` to its caller."""

from __future__ import annotations

from dataclasses import dataclass


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
