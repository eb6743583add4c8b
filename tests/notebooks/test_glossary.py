"""The glossary: each term has a meaning, a day and a reference."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

LESSONS = Path(__file__).resolve().parents[2] / "lessons"
ROW = re.compile(
    r"^\| (?P<term>[^|]+) \| (?P<chinese>[^|]+) \| (?P<meaning>[^|]+) \| "
    r"\[(?P<day>\d+)\]\((?P<link>[^)]+)\) \| (?P<source>[^|]+) \|$"
)


def rows() -> list[re.Match[str]]:
    lines = (LESSONS / "glossary.md").read_text(encoding="utf-8").splitlines()
    table = [line for line in lines if line.startswith("| ")][2:]
    found = [ROW.match(line) for line in table]
    assert all(found), [line for line, match in zip(table, found, strict=True) if not match]
    return [match for match in found if match]


def test_terms_are_sorted_and_unique() -> None:
    terms = [row["term"].casefold() for row in rows()]
    assert terms == sorted(set(terms))


def test_every_term_has_a_chinese_one() -> None:
    assert [row["term"] for row in rows() if not re.search("[\u4e00-\u9fff]", row["chinese"])] == []


@pytest.mark.parametrize("row", rows(), ids=lambda row: row["term"])
def test_the_day_of_a_term_uses_it(row: re.Match[str]) -> None:
    lesson = LESSONS / row["link"]
    assert lesson.parent.name.startswith(f"day{int(row['day']):02}_")
    cells = json.loads(lesson.read_text(encoding="utf-8"))["cells"]
    text = " ".join(
        word for cell in cells if cell["cell_type"] == "markdown" for word in "".join(cell["source"]).split()
    )
    text = text.casefold().replace("*", "")
    words = re.sub(r" \([^)]*\)", "", row["term"]).casefold()
    assert re.search(rf"\b{re.escape(words.removesuffix('y'))}", text), row["term"]  # also "copies"


@pytest.mark.parametrize("row", rows(), ids=lambda row: row["term"])
def test_the_reference_of_a_term_is_defined(row: re.Match[str]) -> None:
    text = (LESSONS / "glossary.md").read_text(encoding="utf-8")
    labels = re.findall(r"\]\[(\w+)\]", row["source"])
    assert labels or re.search(r"\b(19|20)\d\d$|CUTLASS", row["source"]), (
        "the source names neither a document of NVIDIA nor a paper"
    )
    assert all(f"\n[{label}]: https://docs.nvidia.com/" in text for label in labels)


def test_the_chinese_page_lists_every_day() -> None:
    text = (LESSONS / "chinese.md").read_text(encoding="utf-8")
    days = sorted(path.parent.name for path in LESSONS.glob("day*/lesson.ipynb"))
    assert re.findall(r"^\| \[\d+\]\((\w+)/lesson\.ipynb\) \|", text, re.MULTILINE) == days
