"""A copy of the course for a learner to write in."""

from __future__ import annotations

import shutil
from pathlib import Path

ROOT = Path(__file__).parents[1]


def copy_course(root: Path) -> Path:
    """Copy lessons, exercises and solutions, but no files that a learner or a program created."""
    for folder in ("exercises", "lessons", "solutions"):
        shutil.copytree(ROOT / folder, root / folder, ignore=shutil.ignore_patterns("*.bak", ".*", "__pycache__"))
    return root
