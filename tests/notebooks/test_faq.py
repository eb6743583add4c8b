"""The FAQ page: its answers are short, and its links lead to the lessons that explain more."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "lessons" / "faq.md"
MOST_WORDS = 110
"""The maximum number of words in an answer. Longer explanations belong in a lesson."""


def answers() -> dict[str, str]:
    """Return the answer to each question, in the order of the page."""
    parts = re.split(r"^### (.+)$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    questions = parts[::2]
    assert len(set(questions)) == len(questions)
    return {
        question: re.sub(r"^## .*$", "", text, flags=re.MULTILINE) for question, text in zip(questions, parts[1::2])
    }


@pytest.mark.parametrize("question", answers())
def test_an_answer_is_short_and_leads_to_a_day(question: str) -> None:
    assert question.endswith("?")
    answer = answers()[question]
    assert 10 <= len(answer.split()) <= MOST_WORDS
    links = re.findall(r"\[([^\]]+)\]\(([^)]+)\)", answer)
    assert links, "the answer links to no lesson with the details"
    for name, target in links:
        assert (PAGE.parent / target).is_file(), target
        day = re.fullmatch(r"day (\d+)", name.lower())
        assert not day or target.startswith(f"day{int(day[1]):02}_"), f"{name} leads to {target}"


def test_the_readme_leads_to_it() -> None:
    assert "lessons/faq.md" in (ROOT / "README.md").read_text(encoding="utf-8")
