"""The sentences of every report (terminal, HTML, JUnit, JSON, lessons), made from the facts of a verdict."""

from __future__ import annotations

from grader.verdict import words

__all__ = ["words"]
