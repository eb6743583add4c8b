"""Reports on a verdict: in the terminal, as JUnit XML, as one HTML page.

This package lays out the reports; ``grader.verdict.wording`` has their texts. Its module ``words`` is re-exported for
other tables.
"""

from __future__ import annotations

from grader.verdict.wording import words

__all__ = ["words"]
