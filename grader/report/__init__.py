"""Reports on a verdict: in the terminal, as JUnit XML, as one HTML page, as a picture.

This package does the layout. ``grader.verdict.wording`` has the texts; its ``words`` are re-exported for other tables.
"""

from __future__ import annotations

from grader.verdict.wording import words

__all__ = ["words"]
