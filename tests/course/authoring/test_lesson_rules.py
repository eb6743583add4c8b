"""Statistics of lessons: how they are counted, and that the course's lessons stay within the limits."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest

from grader.course import Course, Day, Entry
from grader.course.authoring.lesson_rules import SHOWN, figures, shown_share
from grader.setup import shipped

LESSONS = Course(shipped.COURSE).days
WORDS = 3800
"""The maximum number of words of a lesson."""
QUESTIONS = range(8, 16)
"""The number of questions that a lesson may ask."""


@pytest.mark.parametrize("day", LESSONS, ids=lambda day: day.folder)
def test_lessons_stay_within_the_limits(day: Day) -> None:
    found = figures(day.lesson)
    assert not found.paragraphs and not found.listings
    assert found.words <= WORDS
    assert found.questions in QUESTIONS


TO_WRITE = [(day, entry) for day in LESSONS for entry in day.exercises if entry.kind != "debug"]


@pytest.mark.parametrize(("day", "entry"), TO_WRITE, ids=lambda each: getattr(each, "name", ""))
def test_a_lesson_shows_only_part_of_the_solution(day: Day, entry: Entry) -> None:
    share = shown_share(day, entry)
    assert share < SHOWN, f"before the exercise, the lesson shows {share:.0%} of the solution of {entry.name}"


def lesson(path: Path, *cells: nbformat.NotebookNode) -> Path:
    """Write a notebook."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(nbformat.writes(nbformat.v4.new_notebook(cells=list(cells))))
    return path


def markdown(text: str) -> nbformat.NotebookNode:
    return nbformat.v4.new_markdown_cell(text)


def code(source: str, shown: str = "", folded: bool = False, page: str = "<pre>") -> nbformat.NotebookNode:
    """Return a code cell, with an output where ``shown`` is given."""
    data = {"text/plain": shown, "text/html": page}
    outputs = [nbformat.v4.new_output("execute_result", data=data)] if shown else []
    return nbformat.v4.new_code_cell(source, outputs=outputs, metadata={"tags": ["hide-input"]} if folded else {})


def test_words_and_paragraphs(tmp_path: Path) -> None:
    long = "word " * 91
    text = f"# A title\n\n{long}\n\n| a | table of |\n|---|---|\n\n- {'item ' * 80}\n- {long}\n\n```cpp\n{long}\n```\n"
    found = figures(lesson(tmp_path / "n.ipynb", markdown("One two."), markdown(text)))
    assert found.words == 2 + 91 + 80 + 91
    assert [(place.cell, place.size) for place in found.paragraphs] == [(2, 91), (2, 91)]
    assert found.paragraphs[0].begins == "word word word word word word"


def test_listings(tmp_path: Path) -> None:
    long = "\n".join(f"x{number} = {number}" for number in range(41))
    found = figures(
        lesson(
            tmp_path / "n.ipynb",
            code(long),
            code(long, folded=True),
            code(long.rpartition("\n")[0]),
            code("show_source(file)", long),
            code("show_source(file, folded='All')", long, page="<details><summary>"),
            code("show_source(file)", long, folded=True),
            markdown(f"```cpp\n{long}\n```"),
            code("print(table)", long),
        )
    )
    assert [(place.cell, place.size) for place in found.listings] == [(1, 41), (4, 41), (6, 41), (7, 41)]


def test_questions(tmp_path: Path) -> None:
    cells = [code("n = 3\npredict('?', n)"), code("from grader.report.notebook import predict"), markdown("predict(")]
    assert figures(lesson(tmp_path / "n.ipynb", *cells)).questions == 1


SKELETON = "#include <x.h>\n__global__ void twice(float* x) {\n    // TODO\n}\n"
SOLUTION = """#include <x.h>
__global__ void twice(float* x) {
    const int i = threadIdx.x;  // a comment
    const float read = x[i];

    x[i] = 2 * read;
    __syncthreads();
    x[i] = x[i] + 1;
}
"""
HALF = "const int i = threadIdx.x;\nconst  float read = x[i];\n}"
"""A listing with two of the five lines that the learner must write. Differences in spaces do not count."""


@pytest.mark.parametrize(
    ("cells", "share"),
    [
        ([markdown("nothing")], 0.0),
        ([code(HALF)], 0.4),
        ([code(HALF, folded=True)], 0.0),
        ([markdown(f"```cpp\n{HALF}\n```"), code("show_source(f)", "x[i] = 2 * read;  // said otherwise")], 0.6),
        ([code(SOLUTION)], 1.0),
        ([code("show_source(f, folded='All')", SOLUTION, page="<details>")], 0.0),
        ([markdown("## 3. Exercises\n\n`twice` asks"), code(SOLUTION)], 0.0),
        ([markdown("## Exercises\n\n`once` asks"), code(HALF), markdown("`twice` asks"), code(SOLUTION)], 0.4),
        ([markdown("## Exercises of others\n\n## The end\n\n`twice` is read"), code(HALF)], 0.4),
    ],
)
def test_what_is_shown_before_the_exercise(tmp_path: Path, cells: list[nbformat.NotebookNode], share: float) -> None:
    for part, text in (("exercises", SKELETON), ("solutions", SOLUTION)):
        (tmp_path / part / "day01_x").mkdir(parents=True)
        (tmp_path / part / "day01_x" / "twice.cu").write_text(text)
    entry = Entry(tmp_path, "day01_x", "twice")
    day = Day(tmp_path, "day01_x", 1, "X", "", (entry,))
    lesson(day.lesson, *cells)
    assert shown_share(day, entry) == pytest.approx(share)


def test_the_command(root: Path, dev) -> None:  # type: ignore[no-untyped-def]
    assert (root / "lessons").is_dir()
    code, said = dev("lessons")
    assert code == 0 and "lesson words questions long paragraphs long listings" in said
    assert "day02_reductions" in said and "day16_whole_models" in said
    code, said = dev("lessons", "2")
    assert code == 0 and "day02_reductions" in said and "day03" not in said
    code, said = dev("lessons", "softmax")
    assert code == 2 and "not a day" in said
