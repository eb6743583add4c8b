"""The sentences of every report: facts of a verdict in, words out.

Terminal, HTML, JUnit, JSON and lessons all take them here.
"""

from __future__ import annotations

from grader.verdict import words

__all__ = ["words"]
