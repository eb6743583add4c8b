"""A day's page: its notebook with the stored outputs, and the day's exercises below it."""

from __future__ import annotations

import re

import nbformat

from grader.course import Course, Day
from grader.course.puzzles import read_puzzles
from grader.report.book.links import Links, escaped, relative

FENCED = re.compile(r"^(```+).*?^\1", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#{1,6} +(.+?) *$", re.MULTILINE)


def page(text: str, path: str, links: Links, day: Day | None) -> str:
    """Prepare the notebook ``text`` (JSON) for the book. ``path``: its path in the course's folder."""
    notebook = nbformat.reads(text, as_version=4)
    section = ""
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            headings = HEADING.findall(FENCED.sub("", cell.source))
            section = headings[-1].replace("`", "") if headings else section
            cell.source = links.rewrite(cell.source, path)
        elif any("image/png" in output.get("data", {}) for output in cell.outputs):
            # Without it, screen readers read out the name of the picture's file.
            cell.metadata["mystnb"] = {"image": {"alt": f"Picture in the section: {section}"}}
    if day and day.exercises:
        notebook.cells.append(nbformat.v4.new_markdown_cell(_exercises(day, path), id="exercises-of-the-day"))
    return str(nbformat.writes(notebook))


def _exercises(day: Day, path: str) -> str:
    lines = ["## The day's exercises, each on its page", ""]
    lines += ["| exercise | kind | difficulty | minutes | points |", "| --- | --- | --- | ---: | ---: |"]
    pages = [relative(f"exercises/{entry.name}.md", path) for entry in day.exercises]
    for entry, target in zip(day.exercises, pages):
        effort = f"{entry.difficulty} | {entry.minutes or ''}"
        lines.append(f"| [{entry.title}]({target}) | {entry.kind} | {effort} | {entry.points} |")
    return "\n".join([*lines, "", *_puzzles(day), "```{toctree}", ":hidden:", "", *pages, "```"])


def _puzzles(day: Day) -> list[str]:
    """Return the day's puzzles as a list, with the magic that puts each into a notebook cell."""
    puzzles = [puzzle for puzzle in read_puzzles(Course(day.root)) if puzzle.day == day.folder]
    items = [f"- **{puzzle.title}** (`%kernel {puzzle.variable}`). {escaped(puzzle.listed.text)}" for puzzle in puzzles]
    return ["## The day's puzzles, a blank each", "", *items, ""] if items else []
