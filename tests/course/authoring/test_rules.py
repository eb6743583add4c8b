"""The rules of ``grader dev check``: the course satisfies all of them, and each rule detects a violation."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from grader.course.authoring import exercise_rules

EXERCISE = "day02_reductions/softmax"
DEBUG = "day02_reductions/row_sum_debug"


def test_a_day_lacks_nothing(dev) -> None:  # type: ignore[no-untyped-def]
    code, said = dev("check", "2")
    assert code == 0 and "Nothing is missing." in said


BROKEN = [
    ("exercises/day02_reductions/softmax.cu", "// TODO.*", "// here", "softmax.cu: no comment has a TODO"),
    ("exercises/day02_reductions/softmax.cu", "#include <cuda_fp16.h>", '#include "mine.h"', r'softmax.cu:\d+: it includes "mine.h"'),  # noqa: E501
    ("exercises/day02_reductions/softmax.cu", "#include <cuda_fp16.h>", "#include <cstdio>", r"softmax.cu:\d+: the solution lacks, after its line \d+: #include <cstdio>"),  # noqa: E501
    ("solutions/day02_reductions/softmax.cu", "#include <cuda_fp16.h>", "#include <cuda_fp16.h>  // TODO", r"solutions/.*softmax.cu:\d+: it still has a TODO"),  # noqa: E501
    ("exercises/day02_reductions/hints.toml", r"softmax = \[", "softmax = ['''\nOne more of these hints.''',", "hints.toml:3: softmax: 4 of 3 hints"),  # noqa: E501
    ("exercises/day02_reductions/hints.toml", r"softmax = \[\s*'''[^']*'''", "softmax = ['Try.'", "hints.toml:3: softmax: a hint is too short"),  # noqa: E501
    ("exercises/day02_reductions/tasks.py", r'(?s)title_of_nothing|summary=\(\s*"Softmax of each.*?\n    \),', 'summary="Softmax.",', r"tasks.py:\d+: softmax: the summary does not say"),  # noqa: E501
    ("exercises/day02_reductions/tasks.py", r"2\^31, but no test is that large\), any", "2^31), any", r"softmax: the summary promises 2\^31 elements"),  # noqa: E501
    ("exercises/day02_reductions/tasks.py", r'Case\("no row", rows=0, cols=7\),\s*Case\("no column", rows=3, cols=0\),', "", "softmax: no case has a size of 0: what happens at empty input"),  # noqa: E501
    ("exercises/day02_reductions/tasks.py", r'(?s)(softmax = Exercise.*?)Case\("random sizes".*?\),\n', r"\1", "softmax: no case has random sizes"),  # noqa: E501
    ("exercises/day02_reductions/tasks.py", "reference=softmax_reference", "reference=lambda x: x[:, :1, :, :]", "softmax: the reference fails in the case 'no row': IndexError"),  # noqa: E501
    ("exercises/day02_reductions/tasks.py", "reference=softmax_reference", 'tolerance={"f16": 0.2}, reference=softmax_reference', "softmax: the tolerance 0.2 must be above 0 and at most 0.05"),  # noqa: E501
    ("exercises/day02_reductions/tasks.py", r'efficient=Case\("counted", rows=8, cols=4096\),', "", "softmax: bars= and efficient= belong together"),  # noqa: E501
    ("exercises/day02_reductions/tasks.py", r'bench=\[Bench\("small", rows=64, cols=1024\), Bench\("large", rows=16384, cols=4096\)\],\n    torch_baseline=lambda x: torch.softmax', "torch_baseline=lambda x: torch.softmax", r"course.toml:\d+: day02_reductions/softmax lists the stages .* its bars and bench need builds, correct, safe, efficient$"),  # noqa: E501
    ("exercises/day02_reductions/tasks.py", r"softmax = Exercise\(", "soft_max = Exercise(", "tasks.py has no Exercise 'softmax'"),  # noqa: E501
    ("exercises/day02_reductions/tasks.py", 'naive="the row is read from global memory again before it is written"', 'naive="slow"', "softmax: 'slow' is not a wrong kernel with the stage 'efficient'"),  # noqa: E501
    ("exercises/day02_reductions/tasks.py", 'naive="the row is read from global memory again before it is written",', "", "softmax: no bar names the naive version that misses it"),  # noqa: E501
    ("tests/exercises/day02_reductions/softmax.toml", r"(?s)\[\[wrong\]\].*", "", "softmax.toml: 0 of at least 6 wrong kernels"),  # noqa: E501
    ("tests/exercises/day02_reductions/softmax.toml", "find = '''", "find = '''no such text", r"softmax.toml:\d+: '.*occurs 0 times in the solution, not 1"),  # noqa: E501
    ("tests/exercises/day02_reductions/softmax.toml", 'says = ".*"', 'says = ""', r"softmax.toml:\d+: '.*' has no text that the learner must see"),  # noqa: E501
    ("tests/exercises/day02_reductions/softmax.toml", r"find = '''[^']*'''\nreplace = '''[^']*'''", 'base = "none.cu"', r"softmax.toml:\d+: '.*': there is no file none.cu"),  # noqa: E501
    ("tests/exercises/day02_reductions/softmax.toml", 'stage = ".*"', 'stage = "quick"', "softmax.toml: Invalid enum value 'quick'"),  # noqa: E501
    ("tests/exercises/day02_reductions/softmax.toml", r"\Z", '\n[[design]]\nname = "none"\nfind = "no such text"\nreplace = ""\n', "softmax.toml: 'none': 'no such text' occurs 0 times in the solution"),  # noqa: E501
]  # fmt: skip


@pytest.mark.parametrize(("file", "find", "replace", "says"), BROKEN, ids=[f"{n}" for n in range(len(BROKEN))])
def test_an_exercise_that_breaks_a_rule(root: Path, dev, file: str, find: str, replace: str, says: str) -> None:  # type: ignore[no-untyped-def]
    text = (root / file).read_text()
    changed, count = re.subn(find, lambda found: found.expand(replace), text, count=0 if "TODO" in find else 1)
    assert count, "the text that this test changes is missing"
    (root / file).write_text(changed)
    code, said = dev("check", EXERCISE)
    assert code == 1 and re.search(says, said, re.MULTILINE), said


@pytest.mark.parametrize(
    ("summary", "accepted"),
    [
        ("An empty input starts no kernel.", True),
        ("Sums of rows; with no rows, nothing is written.", True),
        ("Sum of x. With n = 0 the sum is 0.", True),
        ("Copies x; n is at least 1.", True),
        ("Sums: out[0] = 0 and out[i] is the sum of all elements before element i, as unsigned.", False),
        ("Softmax.", False),
        ("Softmax of each row, for f32, f16 and bf16 and for every width that a block can hold, in one pass.", False),
        ("Linear layer without bias: no layer has one, and every value of x is finite.", False),
    ],
)
def test_a_summary_says_what_an_empty_input_gives(summary: str, accepted: bool) -> None:
    assert bool(exercise_rules.EMPTY.search(summary)) == accepted


def test_messages_about_one_exercise(root: Path, dev) -> None:  # type: ignore[no-untyped-def]
    file = root / "tests/exercises/day02_reductions/softmax.toml"
    first, second = re.findall(r'name = ".*"', file.read_text())[:2]
    file.write_text(file.read_text().replace(second, first))
    assert "two mistakes are named" in dev("check", EXERCISE)[1]


def test_a_debug_exercise_says_why_it_fails(root: Path, dev) -> None:  # type: ignore[no-untyped-def]
    file = root / "tests/exercises/day02_reductions/row_sum_debug.toml"
    file.write_text(re.sub(r"(?s)\[skeleton\].*?(?=\[\[wrong)", "", file.read_text()))
    (root / "exercises/day02_reductions/row_sum_debug.cu").open("a").write("// TODO\n")
    code, said = dev("check", DEBUG)
    assert (
        code == 1 and "the table [skeleton] is missing" in said and "row_sum_debug.cu:42: it still has a TODO" in said
    )


def test_files_that_are_not_there(root: Path, dev) -> None:  # type: ignore[no-untyped-def]
    (root / "exercises/day02_reductions/softmax.cu").unlink()
    for design in (root / "tests/exercises/day02_reductions").glob("softmax.*.cu"):
        design.unlink()
    said = dev("check", EXERCISE)[1]
    assert "exercises/day02_reductions/softmax.cu: the file is missing" in said
    assert "softmax.<design>.cu: 0 of at least 2 correct kernels" in said


def test_a_lesson_in_another_order(root: Path, dev) -> None:  # type: ignore[no-untyped-def]
    file = root / "lessons/day02_reductions/lesson.ipynb"
    text = file.read_text()
    for find, replace, says in (
        ("# Day 2: Reductions", "# Day 2: sums", "does not begin with the title '# Day 2: Reductions'"),
        ("## What goes wrong", "## Faults", "the section 'what goes wrong' is missing"),
        ("## The reference", "## What it costs", "the section 'the reference' is missing"),
        ("## The idea: a tree", "## What to remember", "stands after 'what to remember'"),
        ("`rms_norm`", "`rms`", "the lesson does not name the exercise `rms_norm`"),
    ):  # fmt: skip
        assert find in text
        file.write_text(text.replace(find, replace))
        code, said = dev("check", "2")
        assert code == 1 and says in said, said
    file.write_text(json.dumps({"cells": [{}]}))
    assert "lesson.ipynb is not a notebook" in dev("check", "2")[1]


def test_a_day_that_is_not_listed(root: Path, dev) -> None:  # type: ignore[no-untyped-def]
    file = root / "exercises/course.toml"
    file.write_text(file.read_text().partition('[[day]]\nfolder = "day02')[0])
    (root / "lessons/day77_empty").mkdir()
    code, said = dev("check")
    for part in ("lessons", "exercises", "solutions", "tests/exercises"):
        assert f"{part}/day02_reductions: this folder belongs to no day of exercises/course.toml" in said
    assert code == 1 and "day77" not in said


def test_files_that_belong_to_no_exercise(root: Path, dev) -> None:  # type: ignore[no-untyped-def]
    stray = ["exercises/day02_reductions/a.cu", "solutions/day02_reductions/b.cu"]
    stray += ["tests/exercises/day02_reductions/c.cu", "tests/exercises/day02_reductions/d.toml"]
    for name in stray:
        (root / name).write_text("")
    (root / "exercises/day02_reductions/hints.toml").open("a").write("\nother = []\n")
    (root / "exercises/day02_reductions/tasks.py").open("a").write("\nsoft = softmax\n")
    code, said = dev("check", "2")
    assert code == 1 and all(
        f"{name}: this kernel belongs to no exercise of exercises/course.toml" in said for name in stray
    )
    assert re.search(r"hints.toml:\d+: other is not an exercise of", said)
    assert re.search(r"tasks.py:\d+: soft is not listed in", said)
