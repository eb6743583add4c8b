"""The page of references: the reading lists of all lessons."""

from __future__ import annotations

import re

import nbformat

from grader.course import Course

SECTION = re.compile(r"^## What to read\n+(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
PARAGRAPH = re.compile(r"^Read: (.*?)(?=\n\n|\Z)", re.MULTILINE | re.DOTALL)


def page(course: Course) -> str:
    """Return the page as Markdown: the reading list of each day that has one."""
    parts = ["# References", "The reading list of each day."]
    for day in course.days:
        if items := to_read(day.lesson.read_text(encoding="utf-8")):
            parts.append(f"## [Day {day.number}: {day.title}](lessons/{day.folder}/lesson.ipynb)")
            parts.append("\n".join(f"- {item}" for item in items))
    return "\n\n".join(parts) + "\n"


def to_read(notebook: str) -> list[str]:
    """Return a lesson's references: its list under "What to read", or the parts of its paragraph "Read: ...; ..."."""
    cells = nbformat.reads(notebook, as_version=4).cells
    text = "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    if section := SECTION.search(text):
        return [
            " ".join(item.split()) for item in re.findall(r"^[-*] (.*(?:\n(?![-*] |\n).*)*)", section[1], re.MULTILINE)
        ]
    if paragraph := PARAGRAPH.search(text):
        items = re.split(r";\s+", " ".join(paragraph[1].split()).removesuffix("."))
        return [f"{item}." for item in items]
    return []
