"""A verdict for people and for machines: in the terminal, as JUnit XML, as one HTML page, as a picture.

It draws; what it says comes from ``grader.verdict.wording``, whose ``words`` are here too for who draws a table of
their own.
"""

from __future__ import annotations

from grader.verdict.wording import words

__all__ = ["words"]
