"""The front page: a verdict, a question and a block being played, the first commands, the days and the contents."""

from __future__ import annotations

import json
from html import escape
from pathlib import Path
from typing import NamedTuple

from grader.course import Course, Day
from grader.report.book.links import escaped
from grader.setup.errors import GraderError

WHAT = "A course in writing the CUDA kernels that run large language models. **You do not need a GPU.**"

HOW = """\
Each day is a notebook with kernels to read, and exercises to solve in the course's folder. The same unedited `.cu` file
runs on an NVIDIA GPU and on your laptop, where a simulator runs it with CUDA's semantics. This book is for reading; to
run and to solve, set the course up on Linux:

```sh
make demo      # sets everything up, then grades a correct and a broken flash attention
make lab       # opens these lessons in JupyterLab
```

[Asked and reached](goals.md) shows how fast the solutions should be on an H200, and how fast they are.
"""


class Shown(NamedTuple):
    """An output of a lesson that the front page shows: the lesson's folder, the cell, and a caption."""

    day: str
    cell: str
    name: str
    caption: str


SHOWN = (
    Shown("day09_sparse_attention", "5f8a9165", "verdict", "The grader says what is wrong, and where"),
    Shown("day02_reductions", "ask-online", "question", "You predict first"),
    Shown("day02_reductions", "player-tree", "block", "You play a block, step by step: here 8 warps add 512 numbers"),
)
"""The outputs on the front page. A course without such a day shows nothing in its place."""


def page(course: Course, more: list[str]) -> str:
    """Return the page as Markdown; ``more``: pages to list after the days, as paths from the front page."""
    rows = ["| day | topic | exercises | points |", "| ---: | --- | ---: | ---: |"]
    for day in course.days:
        title = f"[{escaped(day.title)}](lessons/{day.folder}/lesson.ipynb)<br>{escaped(day.summary)}"
        rows.append(f"| {day.number} | {title} | {len(day.exercises)} | {sum(e.points for e in day.exercises)} |")
    days = [f"lessons/{day.folder}/lesson.ipynb" for day in course.days]
    head = [f"# {escaped(course.manifest.title)}", "", WHAT, "", *_shown(course), HOW]
    return "\n".join([*head, *rows, "", *_toctree("Days", days), *_toctree("More", more)])


def _shown(course: Course) -> list[str]:
    days = {day.folder: day for day in course.days}
    figures = [_figure(shown, days[shown.day]) for shown in SHOWN if shown.day in days]
    # Raw HTML: Markdown would end the block at the first empty line of a verdict.
    return ["````{raw} html", '<div class="front">', *figures, "</div>", "````", ""] if figures else []


def _figure(shown: Shown, day: Day) -> str:
    link = f'<a href="lessons/{day.folder}/lesson.html">day {day.number}</a>'
    caption = f"<figcaption>{escape(shown.caption)} ({link}).</figcaption>"
    content = f'<div class="cell_output"><div class="text_html">{_output(day.lesson, shown.cell)}</div></div>'
    return f'<figure class="{shown.name}">{caption}{content}</figure>'


def _output(lesson: Path, cell: str) -> str:
    """Return the HTML that a lesson stores as the output of a cell."""
    for found in json.loads(lesson.read_text(encoding="utf-8"))["cells"]:
        if found["id"] == cell:
            for output in found["outputs"]:
                if html := output.get("data", {}).get("text/html"):
                    return "".join(html)
    raise GraderError(
        f"{lesson} has no cell {cell} with an output in HTML, which the front page shows",
        "Execute the lesson, or name another cell in grader/report/book/front.py.",
    )


def _toctree(caption: str, pages: list[str]) -> list[str]:
    return ["```{toctree}", ":hidden:", f":caption: {caption}", "", *pages, "```", ""] if pages else []
