"""The front page: an introduction, the first commands, the days, and the book's table of contents."""

from __future__ import annotations

from grader.course import Course
from grader.report.book.links import escaped

WHAT = """\
A course in writing the CUDA kernels that run large language models. Each day is a notebook with kernels to read, and
exercises to solve in the course's folder, where the grader shows what is wrong and where.

**You do not need a GPU.** The same unedited `.cu` file runs on an NVIDIA GPU and on your laptop, where a simulator runs
it with CUDA's semantics. This book is for reading; to run and to solve, set the course up on Linux:

```sh
make demo      # sets everything up, then grades a correct and a broken flash attention
make lab       # opens these lessons in JupyterLab
```

[Asked and reached](goals.md) shows how fast the solutions should be on an H200, and how fast they are.
"""


def page(course: Course, more: list[str]) -> str:
    """Return the page as Markdown; ``more``: pages to list after the days, as paths from the front page."""
    rows = ["| day | | exercises | points |", "| ---: | --- | ---: | ---: |"]
    for day in course.days:
        title = f"[{escaped(day.title)}](lessons/{day.folder}/lesson.ipynb)<br>{escaped(day.summary)}"
        rows.append(f"| {day.number} | {title} | {len(day.exercises)} | {sum(e.points for e in day.exercises)} |")
    days = [f"lessons/{day.folder}/lesson.ipynb" for day in course.days]
    return "\n".join(
        [f"# {escaped(course.manifest.title)}", "", WHAT, *rows, "", *_toctree("Days", days), *_toctree("More", more)]
    )


def _toctree(caption: str, pages: list[str]) -> list[str]:
    return ["```{toctree}", ":hidden:", f":caption: {caption}", "", *pages, "```", ""] if pages else []
