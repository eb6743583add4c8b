"""The report in the terminal is complete, concise, and at most 80 columns wide."""

from __future__ import annotations

import io

import pytest

from grader.course import find
from grader.report import failures, terminal, theme
from grader.report.task_view import render_task
from grader.verdict import CaseResult, Diagnosis, Diagnostic, Finding, OutputResult, Stage
from grader.verdict.findings.launches import RefusedCall
from grader.verdict.findings.sides import an_access
from tests.report import samples


def flat(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("name", samples.ALL)
@pytest.mark.parametrize("verbose", [False, True])
@pytest.mark.parametrize("width", [60, 80, 100])
def test_no_line_is_too_wide(name: str, verbose: bool, width: int) -> None:
    text = terminal.as_text(samples.ALL[name](), width, verbose, [("grader check x", "again")])
    assert max(map(len, text.splitlines())) <= width


@pytest.mark.parametrize("name", samples.ALL)
def test_every_stage_has_its_line(name: str) -> None:
    text = terminal.as_text(samples.ALL[name]())
    for title in ("Builds", "Correct", "Safe", "Efficient", "Fast"):
        assert title in text


def test_a_wrong_output_shows_the_first_case_in_full() -> None:
    text = flat(terminal.as_text(samples.wrong()))
    assert "two key blocks (f32)" in text
    assert "query_len=65" in text and "causal=false" in text
    assert "4,096 of 8,320 elements wrong (49.2 %), 64 of them never written" in text
    assert "looks like: each row is wrong by a factor of its own" in text
    assert text.count("0, 1, 0 6") == 4 and "not written" in text
    assert "Also failing" in text and "random sizes (f32) took too long" in text
    assert "Start here: 'one key block' passes (query_len=64); 'two key blocks' fails (query_len=65 key_len=129" in text
    assert text.index("two key blocks (f32)") < text.index("Also failing")


def test_the_name_of_a_long_case_below_a_finding_stays_indented() -> None:
    verdict = samples.unsafe()
    finding = next(finding for stage in verdict.stages for finding in stage.findings)
    finding.case, finding.dtype = "GPT-NeoX: a quarter of the channels is rotated in every head", "f32"
    lines = terminal.as_text(verdict).splitlines()
    at = next(number for number, line in enumerate(lines) if "first in the case 'GPT-NeoX" in line)
    assert lines[at + 1].startswith("    ") and "(f32)" in lines[at + 1]


def test_a_refused_launch_is_shown_before_the_failures_that_it_causes() -> None:
    refused = Finding(
        check="fault",
        kind="refused",
        payload=RefusedCall(call="linear_kernel<T>", error=1, reason="too much shared memory"),
    )
    failing = CaseResult(name="one row", dtype="f16", status="failed", problem="fault", seed=1)
    stages = [
        samples.builds(),
        Stage("correct", "failed", "1 of 1 cases fails", 0.1, cases=[failing]),
        Stage("safe", "failed", "1 finding", 0.1, findings=[refused]),
    ]
    assert "Start here: the launch or call that fails: linear_kernel<T>" in flat(
        terminal.as_text(samples.verdict(*stages))
    )
    without = terminal.as_text(samples.verdict(*stages[:2], Stage("safe", "passed", "no finding", 0.1)))
    assert "Start here: 'one row', the simplest case" in flat(without)


def test_the_diagnosis_of_a_later_case_is_shown_if_the_first_has_none() -> None:
    def case(name: str, diagnosis: Diagnosis | None) -> CaseResult:
        output = OutputResult("out", "f32", [4], passed=False, elements=4, wrong=4, tolerance=1e-5, diagnosis=diagnosis)
        return CaseResult(name=name, dtype="f32", status="failed", problem="wrong", seed=1, outputs=[output])

    def shown(*cases: CaseResult) -> str:
        stage = Stage("correct", "failed", "2 of 2 cases fail", 0.1, cases=list(cases))
        return flat(terminal.as_text(samples.verdict(samples.builds(), stage)))

    zeros = Diagnosis("input_left_out", name="bias")
    said = "the case 'two' looks like: right if bias were all zeros"
    assert said in shown(case("one", None), case("two", zeros))
    assert "looks like" not in shown(case("one", None), case("two", None))
    assert "in the case" not in shown(case("one", zeros), case("two", zeros))


def test_a_task_is_shown_with_the_sizes_that_its_launcher_has() -> None:
    shown = theme.plain_text(render_task(find("kv_cache_append").load()), 100)
    assert "[pages, kv_heads, page_size, head_dim]" in flat(shown) and "first_page" not in shown


def test_a_long_prototype_is_broken_between_parameters() -> None:
    task = find("flash_attention_backward").load()
    lines = theme.plain_text(render_task(task)).splitlines()
    first = next(number for number, line in enumerate(lines) if "void flash_attention_backward(" in line)
    assert lines[first + 1].startswith(" " * 8 + "const float* ") and lines[first].rstrip().endswith(",")
    assert task.prototype("f32") in flat("\n".join(lines))


def test_verbose_shows_every_failing_case_in_full() -> None:
    text = flat(terminal.as_text(samples.wrong(), verbose=True))
    assert text.count("elements wrong (49.2 %)") == 2 and "took longer than 20 s and was ended" in text


def test_compiler_messages_have_carets_under_tabs_too() -> None:
    lines = terminal.as_text(samples.does_not_build()).splitlines()
    line = next(number for number, text in enumerate(lines) if "blockIdx.x * 32" in text)
    # Column 34 is one past the end of the line, where the semicolon is missing.
    assert lines[line + 1].index("^") == lines[line].index("32") + 2
    line = next(number for number, text in enumerate(lines) if "if (row < query_len)" in text)
    assert lines[line + 1].index("^") == lines[line].index("row")


def test_the_expected_prototype_is_shown() -> None:
    text = terminal.as_text(samples.wrong_prototype(), width=100)
    assert "expected:\n    void flash_attention(const float* q" in text


def test_findings_show_source_and_both_sides_of_a_race() -> None:
    text = flat(terminal.as_text(samples.unsafe()))
    assert "past the end of k[2, 4, 65, 64] (float32)" in text
    assert "31 │ k_tile[row][d] = k[offset + d];" in text
    assert "44 │ sum += tile[threadIdx.x][0];" in text and "40 │ tile[threadIdx.y][threadIdx.x] = x[i];" in text
    assert "512 times, first in the case 'one query' (f32)" in text
    assert "Start here: flash_attention.cu:31" in text


def test_start_here_names_findings_before_wrong_numbers() -> None:
    verdict = samples.wrong()
    verdict.stages[2] = Stage("safe", "failed", "1 finding", findings=[samples.out_of_bounds()])
    verdict.stages[1].cases[2].findings = [samples.out_of_bounds()]
    text = flat(terminal.as_text(verdict))
    assert "Start here: flash_attention.cu:31" in text and "see Safe, below" in text
    assert text.count("past the end of k[2") == 1


def test_start_here_names_the_line_of_a_missed_bar() -> None:
    text = flat(terminal.as_text(samples.wasteful()))
    assert "global_bytes / minimum 3.94 at most 1.2" in text
    assert "neighboring threads read addresses that are a row apart" in text
    assert "32-way bank conflict" in text and "moves 8 times as many sectors" in text


def test_passed() -> None:
    text = flat(terminal.as_text(samples.right()))
    assert "Passed 15 of 15 points" in text and "512 us" in text and "Start here" not in text


def test_not_graded() -> None:
    verdict = samples.verdict(Stage("builds", "error", "the compiler could not be started"))
    assert "Not graded the compiler could not be started" in flat(terminal.as_text(verdict))


def test_a_terminal_without_unicode_gets_ascii() -> None:
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding="ascii", errors="strict")
    for make in samples.ALL.values():
        terminal.print_verdict(make(), theme.console(file, width=80), verbose=True)
    file.flush()
    assert b"x   Correct" in raw.getvalue() and b"ok  Builds" in raw.getvalue()


def test_brackets_in_a_kernels_output_are_no_markup() -> None:
    case = CaseResult(
        "c", "f32", "failed", {"n": 1}, "crash", ["it said [bold]x[/bold] and [/]"], printed="[red]t[0][/]\n"
    )
    verdict = samples.verdict(samples.builds(), Stage("correct", "failed", "1 of 1 [x]", cases=[case]))
    text = terminal.as_text(verdict)
    assert "[bold]x[/bold]" in text and "[red]t[0][/]" in text


def test_long_commands_are_not_cut() -> None:
    command = "grader check " + "x" * 100
    assert command in terminal.as_text(samples.wrong(), next_steps=[(command, "again"), ("y", "z")])


def test_a_failing_case_is_compared_with_its_nearest_passing_neighbor() -> None:
    cases = [
        CaseResult("nothing", "f32", "passed", {"n": 0}),
        CaseResult("one", "f32", "passed", {"n": 1, "causal": False}),
        CaseResult("two", "f32", "failed", {"n": 2}, "crash"),
        CaseResult("three", "f32", "failed", {"n": 3}, "crash"),
        CaseResult("four", "f32", "failed", {"n": 4}, "crash"),
    ]
    verdict = samples.verdict(samples.builds(), Stage("correct", "failed", cases=cases))
    assert "'one' passes (n=1 causal=false); 'two' fails (n=2). What changed?" in flat(terminal.as_text(verdict))
    del cases[1]
    assert "'two', the simplest case that fails" in flat(terminal.as_text(verdict))
    cases.append(CaseResult("five", "f32", "passed", {"n": 5}))
    assert "'two', the simplest case that fails" in flat(terminal.as_text(verdict)), "five is not similar to two"
    cases[2].status = "passed"
    assert "'three' passes (n=3); 'two' fails (n=2). What changed?" in flat(terminal.as_text(verdict))
    cases[0].status = "failed"
    assert "'nothing' fails (n=0)" not in flat(terminal.as_text(verdict))


def test_values_and_alignment_are_named_if_they_alone_make_cases_fail() -> None:
    cases = [
        CaseResult("nothing", "f32", "passed", {"n": 0}),
        CaseResult("one", "f32", "passed", {"n": 1}),
        CaseResult("a view", "f32", "passed", {"n": 7}, special_offsets=["x"]),
        CaseResult("large scores", "f32", "failed", {"n": 9}, "wrong", special_values=["q", "k"]),
    ]
    verdict = samples.verdict(samples.builds(), Stage("correct", "failed", cases=cases))
    shown = flat(terminal.as_text(verdict))
    assert "Start here: the values of q, k in 'large scores': every case with ordinary values passes" in shown
    cases[2].status = "failed"
    both = "the alignment of x in 'a view': every aligned case with ordinary values passes"
    assert both in flat(terminal.as_text(verdict))
    cases[3].status = "passed"
    assert "the alignment of x in 'a view': every aligned case passes" in flat(terminal.as_text(verdict))
    cases.append(CaseResult("two", "f32", "failed", {"n": 2}))
    verdict.stages[1].cases = [cases[1], cases[3], cases[4]]
    assert "'one' passes (n=1); 'two' fails (n=2)" in flat(terminal.as_text(verdict)), "not 'large scores'"


def test_the_output_of_a_kernel_is_shown_for_every_case() -> None:
    verdict = samples.unsafe()
    verdict.stages[1].cases[1].printed = "x = 3\n" * 10
    text = flat(terminal.as_text(verdict))
    assert "In the case 'two key blocks' (f32), the kernel printed x = 3" in text and "(2 more lines)" in text
    verdict = samples.wrong()
    verdict.stages[1].cases[3].printed = "y = 4"
    assert (
        flat(terminal.as_text(verdict)).count("y = 4")
        == flat(terminal.as_text(verdict, verbose=True)).count("y = 4")
        == 1
    )


@pytest.mark.parametrize("width", [40, 50, 80])
@pytest.mark.parametrize("column", [1, 13, 40, 71, 100, 110, 111])
@pytest.mark.parametrize("ascii_only", [False, True])
def test_a_caret_stays_under_its_column(width: int, column: int, ascii_only: bool) -> None:
    source = "            " + "".join(chr(ord("!") + i) for i in range(90)) + "END;" + "abcd"
    shown, caret = theme.plain_text(failures.excerpt(7, source, column, ascii_only), width).splitlines()
    assert len(shown.rstrip()) <= width and caret.rstrip().endswith("^") and "7 " in shown
    if column <= len(source) and not source[column - 1].isspace():
        at = caret.rstrip().index("^")
        assert shown[at : at + 1] == source[column - 1 : column]


@pytest.mark.parametrize(
    ("kind", "says"),
    [("infinite_loop", "the loop that does not end"), ("barrier_sites_differ", "the divergent barrier")],
)
def test_a_hang_is_blamed_on_its_loop(kind: str, says: str) -> None:
    found = Finding(check="synccheck", kind=kind, file="a.cu", line=9)
    verdict = samples.verdict(samples.builds(), Stage("safe", "failed", findings=[found]))
    assert f"Start here: a.cu:9, {says}" in flat(terminal.as_text(verdict))


@pytest.mark.parametrize(
    ("column", "source", "says"),
    [
        (5, "    for (int k = 0;", "the end of the code above line 16: a ';' seems to be missing there"),
        (20, "    float sum = 0.0f  float other;", "the first error, line 16; later ones often follow from it"),
    ],
)
def test_a_missing_semicolon_is_reported_on_the_next_line(column: int, source: str, says: str) -> None:
    errors = [
        Diagnostic("error", "expected ',' or ';' before 'for'", "a.cu", 16, column, source),
        Diagnostic("error", "'k' was not declared in this scope", "a.cu", 16, column + 9, source),
    ]
    verdict = samples.verdict(Stage("builds", "failed", diagnostics=errors))
    assert f"Start here: {says}" in flat(terminal.as_text(verdict))


def test_the_article_of_an_access() -> None:
    assert an_access(Finding(check="c", kind="k", access="read", bytes=8)) == "an 8-byte read"
    assert an_access(Finding(check="c", kind="k", access="read", bytes=16)) == "a 16-byte read"
