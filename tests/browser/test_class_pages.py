"""The pages of a class with hostile students in a browser: accessible, and usable on a phone."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.classroom.gradebook import load
from tests.browser.conftest import DESKTOP, PHONE, OpenPage, file_url, violations
from tests.classroom.test_class_exports import graded

assert graded


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desk", "phone"])
def test_accessibility(graded: Path, open_page: OpenPage, size: tuple[int, int], theme: str) -> None:
    dan = next(grade.folder for grade in load(graded).grades if grade.student.startswith("Dan"))
    page = open_page(size, color_scheme=theme)
    for name in ("class.html", "leaderboard.html", f"{dan}/feedback.html"):
        page.goto(file_url(graded / name))
        assert not violations(page), name
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{name} scrolls sideways"
        right = "[...document.querySelectorAll('svg.bar')].map(bar => bar.getBoundingClientRect().right)"
        assert max(page.evaluate(right), default=0) <= size[0], f"{name}: a bar extends beyond the page"
    cells = "[...document.querySelectorAll('.points td, .bars td')].map(cell => cell.getBoundingClientRect().right)"
    assert 0 < max(page.evaluate(cells)) <= size[0], "points and bars of the feedback must be visible without scrolling"
