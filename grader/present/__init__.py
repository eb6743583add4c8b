"""A verdict for people and for machines: in the terminal, as JUnit XML, as one HTML page, as a picture."""

from __future__ import annotations

from grader.wording import words

__all__ = ["words"]
