"""Makes the sentences of all reports (terminal, HTML, JUnit, JSON, lessons) from the facts of a verdict."""

from __future__ import annotations

from grader.verdict import words

__all__ = ["words"]
