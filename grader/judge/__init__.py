"""Grading of one kernel file. Each stage of a check (builds, correct, safe, efficient, fast) has a module.

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
        options: the options of the check.
        changes: fields of ``options`` that get other values.

    A kernel that fails a stage gets a verdict. ``GraderError`` is raised only if the grader cannot grade the file, for
    example because the file or a compiler is missing.
    """
    from grader.judge.driver import run_check

    return run_check(exercise, file, replace(options, **changes))
