"""``grader goals``: the goals of the course's solutions for speed, beside the recorded figures."""

from __future__ import annotations

from typing import Annotated

import typer

from grader.course import Course
from grader.report import theme
from grader.setup.errors import GraderError


def command(
    exercise: Annotated[
        list[str] | None, typer.Argument(metavar="EXERCISE...", help="The exercises; default: all.")
    ] = None,
) -> int:
    """Show the goals for the solutions on an H200, and the results.

    The goals are in exercises/goals.toml, the figures in the records beside the lessons. Nothing is measured.
    """
    from grader.judge.timing.goals import reached
    from grader.report.goals import render_goals

    course = Course()
    found = reached(course.root)
    if exercise:
        names = {course.find(name).name for name in exercise}
        found = [one for one in found if one.goal.exercise in names]
        if not found:
            raise GraderError(f"{', '.join(sorted(names))} has no goal", "`grader goals` shows all goals.")
    theme.console().print(render_goals(course, found))
    return 0
