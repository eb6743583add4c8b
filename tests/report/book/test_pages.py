"""The Markdown sources of the book: targets of links, and contents of an exercise's page."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
import pytest

from grader.course import Course, Entry
from grader.report.book import exercises, files, front, references
from grader.report.book.links import Links
from grader.setup.errors import GraderError
from tests.small_course import write_course

COURSE = Course()


def test_links_lead_to_pages(tmp_path: Path) -> None:
    for name in ("lessons/a/sum.cu", "lessons/llmk/b.cuh", "lessons/faq.md", "solutions/a/sum.cu"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"// this is {name}\n")
    links = Links(tmp_path, {"lessons/faq.md"})
    text = "[`sum.cu`](sum.cu) [solved](../../solutions/a/sum.cu) [faq](../faq.md#x) [us](https://a.b) [h](../llmk)\n"
    fenced = "```\n[`sum.cu`](sum.cu)\n```\n"
    assert links.rewrite(text + fenced, "lessons/a/lesson.ipynb") == (
        "[`sum.cu`](../../files/lessons/a/sum.cu.md) solved [faq](../faq.md#x) [us](https://a.b) "
        "[h](../../files/lessons/llmk.md)\n" + fenced
    )
    pages = files.pages(tmp_path, links)
    assert sorted(pages) == ["files/lessons/a/sum.cu.md", "files/lessons/llmk.md", "files/lessons/llmk/b.cuh.md"]
    assert "// this is lessons/a/sum.cu" in pages["files/lessons/a/sum.cu.md"]
    assert "[b.cuh](llmk/b.cuh.md)" in pages["files/lessons/llmk.md"]


@pytest.mark.parametrize("entry", COURSE.exercises, ids=lambda entry: entry.name)
def test_an_exercise_has_its_task_and_no_solution(entry: Entry) -> None:
    page = exercises.page(COURSE, entry)
    exercise = entry.load()
    assert all(exercise.launcher(dtype) in page for dtype in exercise.dtypes)
    assert page.count("<details>") == len(entry.hints) > 0
    assert all(f"`{name}`" in page for name in {**exercise.inputs, **exercise.outputs})
    given = entry.skeleton.read_text()
    own = [line.strip() for line in entry.solution.read_text().splitlines() if len(line.strip()) > 15]
    own = [line for line in own if line not in given]
    # Hints may contain lines of the solution.
    beside_hints = re.sub(r"<details>.*?</details>", "", page, flags=re.DOTALL)
    assert own and not [line for line in own if line in beside_hints]


def test_reading_lists_are_found() -> None:
    def given(text: str) -> list[str]:
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(text)])
        return references.to_read(nbformat.writes(notebook))

    listed = "## What to remember\n\n- This.\n\n## What to read\n\n- A. One,\n  *Two*.\n- B. Three.\n\n## Else\n\n- No."
    assert given(listed) == ["A. One, *Two*.", "B. Three."]
    assert given("- This.\n\nRead: A, *One* (2018); B,\n*Two*. It is long.\n\nElse.") == [
        "A, *One* (2018).",
        "B, *Two*. It is long.",
    ]
    assert given("Read the list first.") == []


def test_the_front_page_shows_a_verdict_a_question_and_a_block_above_the_days() -> None:
    page = front.page(COURSE, [])
    places = [page.index(f'<figure class="{name}">') for name in ("verdict", "question", "block")]
    assert places == sorted(places) and places[-1] < page.index("make demo") < page.index("| day |")
    verdict, question, block = re.split("<figure", page)[1:]
    assert "Builds" in verdict and "fail" in verdict and "worst at" in verdict
    assert '<iframe title="Predict: ' in question and 'step by step"' in block
    assert all(f"lessons/{shown.day}/lesson.html" in page for shown in front.SHOWN)


def test_the_front_page_of_another_course_shows_its_days(tmp_path: Path) -> None:
    write_course(tmp_path, {"day01_sums": ""}, {})
    page = front.page(Course(tmp_path), [])
    assert "<figure" not in page and "| 1 | [The sums]" in page


def test_the_front_page_names_a_missing_output(tmp_path: Path) -> None:
    shown = front.SHOWN[0]
    write_course(tmp_path, {shown.day: ""}, {})
    with pytest.raises(GraderError, match=f"lesson.ipynb has no cell {shown.cell} with an output in HTML"):
        front.page(Course(tmp_path), [])
