"""The page about C++: its listings are lines of the course's files, and the lessons link to the page."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
import pytest

LESSONS = Path(__file__).resolve().parents[2] / "lessons"
PAGE = LESSONS / "cpp.md"
MOST_LINES = 6


def sections() -> dict[str, str]:
    """Return the text of each section by its heading."""
    parts = re.split(r"^## (.+)$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2]))


def lines_of_the_course() -> set[str]:
    files = [*LESSONS.glob("*/*.cu"), *LESSONS.glob("llmk/*.cuh")]
    return {line.strip() for file in files for line in file.read_text(encoding="utf-8").splitlines()}


@pytest.mark.parametrize("heading", sections())
def test_a_listing_is_short_and_from_the_course(heading: str) -> None:
    listings = re.findall(r"^```cpp\n(.*?)^```", sections()[heading], re.MULTILINE | re.DOTALL)
    assert len(listings) == 1
    lines = listings[0].splitlines()
    assert 1 < len(lines) <= MOST_LINES
    assert [line for line in lines if line.strip() not in lines_of_the_course()] == []


@pytest.mark.parametrize("heading", sections())
def test_the_lesson_that_first_uses_a_feature_links_to_it(heading: str) -> None:
    found = re.search(r"First used on\s+\[day (\d+)\]\(([^)]+)\)", sections()[heading])
    assert found, "no lesson is named"
    lesson = LESSONS / found[2]
    assert lesson.parent.name.startswith(f"day{int(found[1]):02}_")
    anchor = heading.lower().replace(" ", "-")
    cells = nbformat.read(lesson, as_version=4).cells
    assert any(f"](../cpp.md#{anchor})" in cell.source for cell in cells if cell.cell_type == "markdown")


@pytest.mark.parametrize("page", ["README.md", "lessons/faq.md"])
def test_other_pages_lead_to_it(page: str) -> None:
    assert "cpp.md" in (LESSONS.parent / page).read_text(encoding="utf-8")
