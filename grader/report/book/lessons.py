"""A day's page: its notebook with the stored outputs, and the day's exercises below it."""

from __future__ import annotations

import nbformat

from grader.course import Day
from grader.report.book.links import Links, relative


def page(text: str, path: str, links: Links, day: Day | None) -> str:
    """Return the notebook ``text`` (JSON) prepared for the book; ``path``: its place in the course's folder."""
    notebook = nbformat.reads(text, as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = links.rewrite(cell.source, path)
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
    return "\n".join([*lines, "", "```{toctree}", ":hidden:", "", *pages, "```"])
