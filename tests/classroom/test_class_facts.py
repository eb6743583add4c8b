"""Similar submissions, the leaderboard and common mistakes, computed from verdicts and sources."""

from __future__ import annotations

import sys
from itertools import combinations
from pathlib import Path

import pytest

from grader.classroom import leaderboard, mistakes, similar
from grader.classroom.gradebook import GradeBook
from grader.classroom.pages import feedback_page, feedback_text
from grader.classroom.policy import Grade
from grader.classroom.result import StudentResult
from grader.classroom.similar import Pair
from grader.classroom.stored import Stored, shown_names
from grader.cli.grade import print_similar
from grader.course import Course
from grader.report import theme
from grader.verdict import BarResult, CaseResult, Diagnostic, OutputResult, Stage, Timing, Verdict
from grader.verdict.wording import outputs
from grader.verdict.wording.catalog import sample_diagnosis
from tests.classroom.conftest import KERNEL

BODY = "".join(f"__device__ float part{i}(float a) {{ return a * {i} + {i}.5f; }}\n" for i in range(12))


def student(name: str, *stages: Stage, nickname: str = "", passed: bool = True) -> Stored:
    verdict = Verdict("d/e", "E", "e.cu", "cuda", 0, passed=passed, stages=list(stages))
    grade = Grade(student=name, folder=name, submission=name, points={}, maximum=10)
    return Stored(name, name, nickname, StudentResult(name, name, "key"), grade, [verdict])


def counted(moved: float) -> Stage:
    bar = BarResult("global_bytes / minimum", moved / 100, True, values={"minimum": 100.0})
    return Stage("efficient", "passed", totals={"global_bytes": moved}, bars=[bar])


def timed(verified: float | None, own: float) -> Stage:
    return Stage("fast", "passed", timings=[Timing("large", "f32", "gpu", median_us=own, verified_us=verified)])


def test_only_verified_times_count() -> None:
    students = [
        student("ann", counted(100), timed(9.0, 9.0), nickname="Ann"),
        student("bob", counted(150), timed(None, 0.1), nickname="Bob"),  # timed only by the kernel's own clock
        student("cem", counted(100), timed(7.0, 7.0), nickname="Cem"),
        student("dan", counted(10), timed(1.0, 1.0)),  # opted out of the leaderboard
        student("eve", counted(20), timed(2.0, 2.0), nickname="Eve", passed=False),
    ]
    (board,) = leaderboard.boards(students)
    assert board.passed == 4
    assert [(row.rank, row.name, row.ratio) for row in board.traffic] == [(1, "Ann", 1), (1, "Cem", 1), (3, "Bob", 1.5)]
    ((size, rows),) = board.times
    assert size == "large (f32)" and [(row.rank, row.name) for row in rows] == [(1, "Cem"), (2, "Ann")]


def test_no_leaderboard_if_no_student_opted_in() -> None:
    assert leaderboard.boards([student("ann", counted(100))]) == []


def wrong(name: str, message: str = "", case: str = "") -> Stored:
    if message:
        stage = Stage("builds", "failed", diagnostics=[Diagnostic("error", message, f"{name}.cu", 3, 1, "int x")])
    else:
        output = OutputResult("out", "f32", [4], False, 4, wrong=2)
        stage = Stage("correct", "failed", cases=[CaseResult(case, "f32", "failed", problem="wrong", outputs=[output])])
    return student(name, stage, passed=False)


def test_one_mistake_under_many_names_is_one() -> None:
    found = mistakes.most_common(
        [
            wrong("ann", case="one"),
            wrong("bob", "use of undeclared identifier 'foo' in line 3"),
            wrong("cem", "use of undeclared identifier 'bar' in line 77"),
            student("dan"),
        ]
    )
    assert [(mistake.count, mistake.stage, mistake.student.name) for mistake in found] == [
        (2, "Builds", "bob"), (1, "Correct", "ann"),
    ]  # fmt: skip
    assert found[0].where.endswith("bob.cu:3") and found[0].source == "int x"
    assert found[1].title == "wrong elements" and "in the case 'one'" in found[1].text


@pytest.mark.parametrize("file", ["llmk/parts.cuh", "day01_start/parts.cu"])
def test_code_of_the_course_is_not_compared(course: Course, file: str) -> None:
    entry = course.find("twice")
    (course.root / "lessons" / file).parent.mkdir(parents=True, exist_ok=True)
    (course.root / "lessons" / file).write_text(BODY)
    entry.skeleton.write_text(KERNEL)
    given = similar.given(entry)
    pasted = {"ann": similar.k_grams(BODY + KERNEL), "bob": similar.k_grams(KERNEL + BODY)}
    assert similar.similar("twice", pasted) and not similar.similar("twice", pasted, given)


def test_a_copy_with_more_code_is_found() -> None:
    more = "".join(f"constexpr long table{i}[] = {{{i}, {i} + 1, {i} << 2, -{i}, ~{i}}};\n" for i in range(3))
    files = {"ann": similar.k_grams(BODY), "bob": similar.k_grams(more + BODY.replace("part", "mine"))}
    ((pair),) = similar.similar("twice", files)
    assert pair.similarity == 1
    first, second = similar.common_lines(BODY, more + BODY, frozenset())
    assert first == set(range(1, 13)) and second == set(range(4, 16))


def test_a_huge_file_takes_little_memory() -> None:
    text = "".join(f"int a{i} = {i};\n" for i in range(40_000))
    assert len(similar.k_grams(text)) == similar.MOST


def test_code_in_macros_is_compared_too() -> None:
    body = BODY.replace("\n", " \\\n")
    macro = f"#define ALL {body}\nALL\n"
    assert similar.similar("twice", {"ann": similar.k_grams(BODY), "bob": similar.k_grams(macro)})


def test_pairs_of_identical_files_need_no_comparison() -> None:
    """300 students with the same file are 44,850 pairs and one group, found without a comparison of two sets."""

    class Grams(frozenset[tuple[str, ...]]):
        def __sub__(self, other: object) -> Grams:
            return self

        def __and__(self, other: object) -> Grams:
            raise AssertionError("two identical sets are compared")

        __hash__ = frozenset.__hash__

    pairs = similar.similar("twice", {f"student{i:03}": Grams(similar.k_grams(BODY)) for i in range(300)})
    assert len(pairs) == 300 * 299 // 2 and {pair.similarity for pair in pairs} == {1.0}
    assert pairs[0] == Pair("twice", "student000", "student001", 1.0)
    (group,) = similar.groups(pairs)
    assert group == pairs and len(similar.students(group)) == 300


def test_a_file_similar_to_one_of_a_group_joins_the_group() -> None:
    pairs = [Pair("e", "a", "b", 0.9), Pair("e", "c", "d", 0.8), Pair("e", "b", "c", 0.95), Pair("f", "a", "d", 1.0)]
    grouped = similar.groups(pairs)
    assert [[(pair.first, pair.second) for pair in group] for group in grouped] == [
        [("b", "c"), ("a", "b"), ("c", "d")], [("a", "d")],
    ]  # fmt: skip


def test_two_students_of_one_name_are_shown_with_their_numbers() -> None:
    names = [f"{name}_assignsubmission_file_" for name in ("Lee, Ann_101", "Lee, Ann_102", "Ray, Bob_103")]
    assert list(shown_names(names).values()) == [names[0], names[1], "Ray, Bob"]


def test_similar_files_are_printed_by_group(capsys: pytest.CaptureFixture[str]) -> None:
    """A class with one solution has many pairs, which would hide a smaller group."""
    names = [f"Lee, A{i}_{100 + i}_assignsubmission_file_" for i in range(8)]
    pairs = [Pair("day01/twice", first, second, 1.0) for first, second in combinations(names, 2)]
    pairs += [Pair("day02/softmax", "[red]bob", "cem", 0.9)]
    shown = shown_names([*names, "[red]bob", "cem"])
    print_similar(pairs, shown, Path("out"), theme.console(sys.stdout))
    assert capsys.readouterr().out.splitlines() == [
        "29 pairs of nearly identical files, in 2 groups: out/similar.csv",
        "  100%  day01/twice: 8 students",
        "        Lee, A0; Lee, A1; Lee, A2; Lee, A3; Lee, A4; Lee, A5; and 2 more",
        "  90%  day02/softmax: 2 students",
        "        [red]bob; cem",
    ]


@pytest.mark.parametrize("text", ["", "#define", "/*", '"', "\\\n" * 3, 'R"x(' * 50])
def test_any_text_can_be_compared(text: str, tmp_path: Path) -> None:
    assert similar.common_lines(text, text, frozenset()) == (set(), set()) or text.count("R")


@pytest.mark.parametrize("kind", outputs.LOOKS)
def test_the_text_of_a_mistake_ends_like_a_sentence(kind: str) -> None:
    output = OutputResult("out", "f32", [4], False, 4, wrong=2, diagnosis=sample_diagnosis(kind))
    case = CaseResult("two tiles", "f32", "failed", problem="wrong", outputs=[output])
    (mistake,) = mistakes.most_common([student("ann", Stage("correct", "failed", cases=[case]), passed=False)])
    assert mistake.text.startswith("In the case 'two tiles' (f32): ")
    assert mistake.text[-1] in ".?" and mistake.text[-2] not in ".?", mistake.text


def test_an_unchanged_skeleton_is_no_mistake() -> None:
    ann, bob = wrong("ann", "expected ';'"), wrong("bob", "expected ';'")
    ann.result.unchanged = ["d/e"]
    (mistake,) = mistakes.most_common([ann, bob])
    assert (mistake.student, mistake.count) == (bob, 1)


def test_feedback_lists_failed_exercises_first_and_links_to_each() -> None:
    ann = student("ann", Stage("builds", "passed"))
    ann.result.remarks = ["the file for d/e is the unchanged skeleton"]
    ann.grade.days_late = 3
    error = Diagnostic("error", "invalid syntax", "z.py", 2, 0, "def f(:")
    bad = Verdict("d/z", "Z", "z.cu", "cpu", 0, passed=False, stages=[Stage("builds", "failed", diagnostics=[error])])
    ann.verdicts.append(bad)
    page = feedback_page(ann, GradeBook(maxima={"d/e": 10, "d/m": 5, "d/z": 10}, grades=[]))
    table, _, reports = page.partition("</table>")
    assert table.index("d/<wbr>z") < table.index("d/<wbr>m") < table.index("d/<wbr>e")
    assert 'href="#d/z"' in table and 'href="#d/e"' in table and 'href="#d/m"' not in table
    assert "<p>The file for d/e is the unchanged skeleton.</p>" in reports
    assert '<pre tabindex="0">grader check d/z --file z.cu\n</pre>' in reports
    assert '3 days late</td><td class="number">0</td>' in table, "no points are deducted from none: not -0"
    assert "<code>z.py:2</code>" in reports, "the column is unknown"
    assert 0 < reports.index('<section id="d/z">') < reports.index('<section id="d/e">')


def test_feedback_as_text_has_the_same_points_and_the_next_step() -> None:
    ann = student("ann", Stage("builds", "passed"), Stage("correct", "failed"), passed=False)
    ann.verdicts[0].file, ann.verdicts[0].score, ann.verdicts[0].points = "a.zip/my e.cu", 1, 5
    ann.grade.total, ann.grade.days_late, ann.grade.late, ann.grade.why = 2, 1, 1, ["2 points more: typo"]
    text = feedback_text(ann, GradeBook(maxima={"d/e": 5}, grades=[]))
    assert "Points: 2 of 5; handed in 1 day late: -1 points; 2 points more: typo\n" in text
    assert "Partly: 1 of 5 points" in text
    assert text.endswith("  grader check d/e --file 'my e.cu'\n")


def test_feedback_of_a_refused_submission_says_what_to_hand_in() -> None:
    ann = student("ann")
    ann.result.refused, ann.result.missing, ann.verdicts[:] = "it contains no .cu or .py file", ["d/e"], []
    book = GradeBook(maxima={"d/e": 5}, grades=[])
    for text in (feedback_text(ann, book), feedback_page(ann, book)):
        assert (
            "not graded: it contains no .cu or .py file" in text and "the archive that `grader submit` writes" in text
        )
        assert "There is no file" not in text and "grader check" not in text
    ann.result.references = ["12ab"]
    assert "Hand in" not in feedback_text(ann, book), "the grader itself failed"
