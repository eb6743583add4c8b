"""A small book built by Sphinx: its pages are complete and load nothing from other sites."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
import pytest

from grader.course import Course
from grader.report.book.site import build, missing
from grader.setup.errors import GraderError
from tests.small_course import write_course

pytestmark = pytest.mark.skipif(
    bool(missing()), reason=f"the book needs {', '.join(missing())}; `make book` installs what it takes"
)
TASKS = """
from grader.course.task import Case, Exercise, Input, Output

total = Exercise(
    summary="The sum of each row: a * b < c, and x_1 * 2.",
    launchers="void total_{dtype}(const {T}* x, {T}* out, int rows, int cols, cudaStream_t stream)",
    inputs={"x": Input("rows cols")},
    outputs={"out": Output("rows")},
    reference=lambda x: x.sum(-1),
    cases=[Case("one row", rows=1, cols=3)],
)
"""
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="


def small(root: Path, sentence: str = "") -> Course:
    """Return a course of one day with one exercise, and a glossary."""
    write_course(root, {"day01_sums": TASKS}, {"day01_sums/total": 'title = "Total"\nkind = "implement"\npoints = 5'})
    day = root / "lessons" / "day01_sums"
    (day / "sum.cu").write_text("__global__ void whole_kernel() {}\n")
    (root / "solutions" / "day01_sums" / "total.cu").write_text("// nobody may see this\n")
    (root / "exercises" / "day01_sums" / "hints.toml").write_text('total = ["Add a < b.", "A tree.", "All of it."]\n')
    (root / "lessons" / "glossary.md").write_text("# Glossary\n\n[day 1](day01_sums/lesson.ipynb#the-idea)\n")
    picture = nbformat.v4.new_output("display_data", data={"image/png": PIXEL})
    cells = [
        nbformat.v4.new_markdown_cell(
            "# Day 1: sums\n\n## The idea\n\n$\\sum_i x_i$ in [`sum.cu`](sum.cu), "
            "[solved](../../solutions/day01_sums/total.cu)."
            f" {sentence}\n\n## What to read\n\n- A. Author, *A marvellous book*."
            "\n\n## A look at `total`\n\n```sh\n# This is a comment and no heading.\n```"
        ),
        nbformat.v4.new_code_cell(
            "plt.plot([1])", outputs=[picture], execution_count=1, metadata={"tags": ["hide-input"]}
        ),
    ]
    (day / "lesson.ipynb").write_text(nbformat.writes(nbformat.v4.new_notebook(cells=cells)))
    return Course(root)


def test_a_small_book(tmp_path: Path) -> None:
    """Test all pages in one test, because a build takes seconds.

    ``build`` raises if a page loads an external resource.
    """
    html = build(small(tmp_path / "course"), tmp_path / "out").parent
    assert html.joinpath("search.html").is_file() and "marvel" in (html / "searchindex.js").read_text()
    assert "A marvellous book" in (html / "references.html").read_text()
    assert "whole_kernel" in (html / "files/lessons/day01_sums/sum.cu.html").read_text()

    lesson = (html / "lessons/day01_sums/lesson.html").read_text()
    assert re.search(r'<details class="[^"]*hide[^"]*input', lesson), "the cell that draws is not folded"
    (alternative,) = re.findall(r'<div class="picture" tabindex="0"><img alt="([^"]*)"', lesson)
    assert alternative == "Picture in the section: A look at total"
    assert "\\(\\sum_i x_i\\)" in lesson
    assert 'href="../../exercises/day01_sums/total.html"' in lesson
    (mathjax,) = re.findall(r'src="([^"?]*tex-chtml\.js)', lesson)
    assert (html / "lessons/day01_sums" / mathjax).resolve().is_file()
    assert list((html / "_static/mathjax").rglob("MathJax_Main-Regular.woff"))

    exercise = (html / "exercises/day01_sums/total.html").read_text()
    assert re.findall(r"<details><summary>Hint (\d)", exercise) == ["1", "2", "3"]
    assert "<p>Add a &lt; b.</p>" in exercise and "a * b &lt; c, and x_1 * 2." in exercise
    assert "TODO: day01_sums/total" in exercise
    assert not [path for path in html.rglob("*") if path.is_file() and b"nobody may see" in path.read_bytes()]


def test_a_dead_link_is_an_error(tmp_path: Path) -> None:
    course = small(tmp_path / "course", "See [this](gone.ipynb).")
    with pytest.raises(GraderError) as error:
        build(course, tmp_path / "out")
    assert "lessons/day01_sums/lesson.html" in error.value.message and "gone.ipynb" in error.value.message
