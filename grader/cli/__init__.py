"""The ``grader`` command: one file per subcommand. ``main`` is the way in and decides every exit code.

0 passed, 1 failed, 2 could not grade; 130 when interrupted.
"""

from __future__ import annotations

from grader.cli.app import main

__all__ = ["main"]
