"""Verdicts and reports in lessons: their text is deterministic, their HTML has colors, and no path names a machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.report.notebook import show_source
from grader.report.notebook.graded import bound_html
from grader.report.notebook.panel import Panel
from grader.report.notebook.verdicts import VerdictPanel, explain, show, with_relative_paths
from grader.simulator.line_counters import LineCounters
from grader.simulator.report import Report
from grader.verdict import TimeBound, UnitTime
from grader.verdict.wording.findings import text
from tests.notebooks.test_helpers import notebook
from tests.report import samples


def test_a_verdict_is_the_same_each_time(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "exercises").mkdir()
    (tmp_path / "exercises" / "course.toml").touch()
    monkeypatch.setenv("GRADER_COURSE", str(tmp_path))
    first, second = samples.unsafe(), samples.unsafe()
    second.seconds, second.stages[0].summary, second.stages[0].resources = 7.0, "compiled before", []
    for verdict in (first, second):
        verdict.file = str(tmp_path / "exercises" / "x.cu")
        verdict.stages[2].findings[0].file = verdict.file
    shown = [VerdictPanel(verdict, verbose=False) for verdict in (first, second)]
    assert str(shown[0]) == str(shown[1]) and shown[0].html() == shown[1].html()
    assert str(tmp_path) not in str(shown[0]) and "exercises/x.cu" in str(shown[0])
    assert not shown[0].passed
    assert with_relative_paths(first).stages[2].findings[0].file == "exercises/x.cu"


def test_a_report_shows_findings_and_counters(tmp_path: Path) -> None:
    source = tmp_path / "kernel.cu"
    source.write_text("\n".join(f"line {number};" for number in range(1, 20)))
    finding = samples.out_of_bounds()
    finding.file, finding.line, finding.source_line = str(source), 9, "line 9;"
    lines = [
        LineCounters(str(source), 7, shared_wavefronts=65536, ideal_shared_wavefronts=2048),
        LineCounters(str(source), 5, sectors=32768, ideal_sectors=4096),
    ]
    shown = str(show(Report(findings=[finding], lines=lines)))
    assert "memcheck" in shown and "32-way bank conflict" in shown and "8.0x" in shown and "line 5;" in shown
    assert str(tmp_path) not in shown
    assert "No finding" in str(show(Report()))


def test_explanations_fit_a_page_except_for_source_lines() -> None:
    finding = samples.race()
    finding.source_line = "    " + "sum += x[i]; " * 20
    lines = explain(finding).splitlines()
    wide = [line for line in lines if len(line) > 100]
    assert len(lines) > 3 and wide and all(finding.source_line.strip() in line for line in wide)
    assert " ".join(explain(finding).split()) == " ".join(text(finding).split())


def test_what_limits_a_kernel_is_drawn_to_scale() -> None:
    verdict = samples.unsafe()
    assert bound_html(verdict) == ""
    units = [
        UnitTime("dram", 1e6, 2.0),
        UnitTime("f32", 1e6, 4.0),
        UnitTime("l2", 1.0, 0.001),
        UnitTime("l1", 1.0, 0.1),
    ]
    verdict.stages[3].bound = TimeBound("H200", "a <case>", "f32", {"n": 4}, units, True, 200, 132)
    html = bound_html(verdict)
    rows = [line.split("</pre>")[0] for line in html.partition("<pre")[2].splitlines()]
    assert [row.count("█") for row in rows] == [40, 20, 1] and html.startswith("<details><summary>")
    assert "FP32 arithmetic" in rows[0] and "4 us" in rows[0] and "DRAM" in rows[1]
    assert "at least" in html and "not a prediction" in html and "<case>" not in html


def test_html_is_one_pre_with_inline_colors() -> None:
    html = Panel("[bad]wrong[/bad] <tag>").html()
    assert html.startswith("<pre") and html.endswith("</pre>") and "&lt;tag&gt;" in html and "color:" in html


def test_panels_in_a_notebook_print_nothing_on_the_side(tmp_path: Path) -> None:
    from grader.report.notebook.execute import execute

    path = notebook(tmp_path / "a.ipynb", "from grader.report.notebook.panel import Panel\nPanel('[bad]wrong[/bad]')")
    execute(path)
    import json

    (output,) = json.loads(path.read_text())["cells"][0]["outputs"]
    assert output["output_type"] == "execute_result" and set(output["data"]) == {"text/plain", "text/html"}


def test_jupyterlab_does_not_break_lines_within_words(tmp_path: Path) -> None:
    kernel = tmp_path / "kernel.cu"
    kernel.write_text("// a line\n")
    for shown in (Panel("a line"), show_source(kernel)):
        assert "white-space:pre;overflow-x:auto" in shown.html()
