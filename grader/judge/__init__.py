"""Grading of one kernel file: one module per stage, in order.

``check`` is the entry point::

    verdict = check(entry, file, device="cpu", stages=["builds", "correct"])
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grader.course import Entry
from grader.judge.options import CheckOptions
from grader.verdict import Verdict

if TYPE_CHECKING:
    from grader.course.task import Exercise

__all__ = ["CheckOptions", "check"]

_DEFAULTS = CheckOptions()


def check(
    exercise: Entry | Exercise | str,
    file: str | Path | None = None,
    options: CheckOptions = _DEFAULTS,
    **changes: Any,
) -> Verdict:
    """Grade a file as an answer to an exercise.

    Args:
        exercise: an ``Entry``, its name, or an ``Exercise``.
        file: the kernel file; by default the learner's own.
        options: how to check.
        changes: fields of ``options`` to change, by name.

    A kernel that fails is a verdict. ``GraderError`` means that the grader could not grade it: a missing file, no
    compiler.
    """
    from grader.judge.driver import run_check

    return run_check(exercise, file, replace(options, **changes))
