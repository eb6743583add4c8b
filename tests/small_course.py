"""A function that writes a course with a few exercises to a temporary folder."""

from __future__ import annotations

import json
from pathlib import Path

HEAD = """format = 1
title = "A small course"
architecture = "sm_80"
stages = ["builds", "correct", "safe"]
"""


def write_course(root: Path, tasks: dict[str, str], exercises: dict[str, str]) -> None:
    """Write a course.

    ``tasks`` maps a day to the text of its tasks.py. ``exercises`` maps ``day/name`` to the lines of course.toml that
    follow the exercise's name.
    """
    text = HEAD
    for day, description in tasks.items():
        for part in ("exercises", "solutions", "lessons"):
            (root / part / day).mkdir(parents=True, exist_ok=True)
        (root / "lessons" / day / "lesson.ipynb").write_text(json.dumps({"cells": []}))
        (root / "exercises" / day / "tasks.py").write_text(description)
        text += f'\n[[day]]\nfolder = "{day}"\ntitle = "The {day[6:]}"\nsummary = "What it is about"\n'
        for name, lines in exercises.items():
            if name.startswith(f"{day}/"):
                text += f'\n[[day.exercise]]\nname = "{name.partition("/")[2]}"\n{lines}\n'
                (root / "exercises" / f"{name}.cu").write_text(f"// TODO: {name}\n")
    (root / "exercises" / "course.toml").write_text(text)
