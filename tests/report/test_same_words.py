"""The reports in the terminal, HTML, JUnit, results.json and notebooks describe a verdict with the same words."""

from __future__ import annotations

import html
import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest
import torch

from grader.judge import attention_mistakes, misread, rescaling_mistakes
from grader.judge.comparison import diagnosis
from grader.report.html import html_page
from grader.report.junit import junit_xml
from grader.report.notebook.verdicts import VerdictPanel
from grader.report.terminal import as_text
from grader.verdict import CaseResult, Diagnostic, Finding, Memory, OutputResult, Side, Stage, Verdict, schema
from grader.verdict.findings import KINDS
from grader.verdict.findings.barriers import Reason
from grader.verdict.wording import cases, catalog, findings, outputs, results
from tests.report import samples

MEMORY = Memory(
    kind="tensor", space="global", name="x", dtype="float32", shape=[4], bytes=16, element_bytes=4, index=[2]
)
OTHER = Side(
    access="write", bytes=4, memory=MEMORY, file=samples.FILE, line=40, source_line="x[0] = 1;", thread=[1, 0, 0]
)
VALIDATOR = jsonschema.Draft202012Validator(schema.schema())  # tests/verdict checks the schema itself


def finding(kind: str, **facts: object) -> Finding:
    made = {"kind": kind, "access": "read", "bytes": 4, "memory": MEMORY, "other": OTHER}
    place = {"file": samples.FILE, "line": 31, "column": 5, "source_line": "    y = x[i];", "thread": [0, 0, 0]}
    sample = KINDS[kind].sample if kind in KINDS else None
    check = KINDS[kind].check if kind in KINDS else "memcheck"
    return Finding(**{**made, **place, "check": check, "payload": sample, "case": "one", **facts})  # type: ignore[arg-type]


def squeezed(text: str) -> str:
    """Remove spaces and line breaks from a text, to compare texts with different wrapping."""
    return re.sub(r"\s+", "", text)


def page_text(verdict: Verdict) -> str:
    return html.unescape(re.sub(r"<[^>]*>", "", html_page(verdict)))


def xml_text(verdict: Verdict) -> str:
    root = ET.fromstring(junit_xml(verdict))
    return "\n".join([*root.itertext(), *(part.get("message", "") for part in root.iter())])


def json_text(verdict: Verdict) -> str:
    data = json.loads(results.as_json(verdict))
    VALIDATOR.validate(data)
    return "\n".join(part["text"] for stage in data["stages"] for part in [stage, *stage["cases"], *stage["findings"]])


REPORTS: dict[str, Callable[[Verdict], str]] = {
    "terminal": lambda verdict: as_text(verdict, verbose=True),
    "html": page_text,
    "junit": xml_text,
    "json": json_text,
    "notebook": lambda verdict: str(VerdictPanel(verdict, verbose=True)),
}


@pytest.mark.parametrize("report", ["terminal", "html", "notebook"])
@pytest.mark.parametrize("passed", [True, False])
def test_a_warning_of_the_stage_builds(passed: bool, report: str) -> None:
    warning = Diagnostic(
        "warning", "'sum' is used uninitialized", samples.FILE, 7, 3, "  sum += y;", "Give it a value."
    )
    builds = Stage("builds", "passed", "compiles", diagnostics=[warning] * 6)
    correct = Stage("correct", "passed" if passed else "failed", cases=[CaseResult("one", "f32", "passed")])
    shown = REPORTS[report](samples.verdict(builds, correct, passed=passed))
    assert all(text in shown for text in (warning.message, "Give it a value.")) and "often causes" not in shown


@pytest.mark.parametrize("report", REPORTS)
@pytest.mark.parametrize("kind", [*KINDS, "a_kind_of_tomorrow"])
def test_a_finding(kind: str, report: str) -> None:
    made = finding(kind)
    stage = Stage("safe", "failed", findings=[made])
    seen = squeezed(REPORTS[report](samples.verdict(samples.builds(), stage)))
    for said in (findings.message(made), findings.other_side(made), findings.advice(made)):
        assert squeezed(said) in seen, said


def verdict_of(case: CaseResult) -> Verdict:
    return samples.verdict(samples.builds(), Stage("correct", "failed", cases=[case]))


@pytest.mark.parametrize("report", REPORTS)
@pytest.mark.parametrize("kind", outputs.LOOKS)
def test_a_wrong_output(kind: str, report: str) -> None:
    output = OutputResult("out", "f32", [4, 8], False, 32, 5, 2, 0.5, 30.0, tolerance=1e-4)
    output.diagnosis = catalog.sample_diagnosis(kind)
    output.worst = [samples.wrong_case().outputs[0].worst[0]]
    seen = squeezed(REPORTS[report](verdict_of(CaseResult("c", "f32", "failed", {"n": 1}, "wrong", outputs=[output]))))
    said = [
        outputs.name(output),
        outputs.how_wrong(output),
        outputs.largest_error(output),
        outputs.looks(output.diagnosis),
    ]
    for part in [*said, *outputs.worst(output.worst[0])[:3]]:
        assert part and squeezed(part) in seen, part


def test_every_kind_of_diagnosis_has_a_text() -> None:
    source = Path(diagnosis.__file__).read_text()
    kinds = set(re.findall(r'(?:Diagnosis|looks)\("(\w+)"', source)) | {"columns_unwritten", "columns_unwritten_from"}
    kinds |= {"above_diagonal", "below_diagonal", "on_diagonal", "mask_ignored", "mask_not_requested"}
    kinds |= {kind for kind, _, _ in misread._misread_versions(torch.ones(17, 17))}
    attention = Path(attention_mistakes.__file__).read_text()
    kinds |= set(re.findall(r'"((?:scale|mask|first_keys|last_keys)_\w+)"', attention))
    kinds |= set(re.findall(r'"(\w+_rescaled)"', Path(rescaling_mistakes.__file__).read_text()))
    assert kinds == set(outputs.LOOKS)


WITHOUT_REASON = {"no_launch", "exception", "finding", "operations", "after_timeouts", "after_crashes"}
PROBLEMS = [problem for problem in cases.PROBLEMS if problem not in WITHOUT_REASON]


@pytest.mark.parametrize("report", REPORTS)
@pytest.mark.parametrize("problem", PROBLEMS)
def test_a_case_that_could_not_be_compared(problem: str, report: str) -> None:
    case = CaseResult("c", "f32", "failed", {"n": 1}, problem, ["said by CUDA"], outside={"out": -3}, printed="bye\n")
    said = cases.reason(case)
    assert "said by CUDA" in said or "3 elements before the start of out" in said
    assert squeezed(said) in squeezed(REPORTS[report](verdict_of(case)))


HOSTILE = "\x1b]0;owned\x07\x9b2J\x00\u202eevil\ud800\u2028<script>alert(1)</script>&amp;]]>\r[bold]"


@pytest.mark.parametrize("report", REPORTS)
def test_hostile_texts(report: str) -> None:
    """Check that text chosen by a submission is escaped: names, output, source, and code quoted by the compiler."""
    case = CaseResult("c", "f32", "failed", {"n": 1}, "launch", [HOSTILE], printed=HOSTILE)
    memory = Memory(kind="__shared__", space="shared", name=HOSTILE)
    reason = Reason(reason=HOSTILE)
    found = finding("assertion", payload=reason, memory=memory, source_line=HOSTILE, file=HOSTILE, kernel=HOSTILE)
    verdict = samples.does_not_build()
    verdict.stages[0].diagnostics[0].message = verdict.stages[0].message = HOSTILE
    verdict.stages[1] = Stage("correct", "failed", cases=[case])
    verdict.stages[2] = Stage("safe", "failed", findings=[found, finding("out_of_bounds", memory=memory)])
    seen = REPORTS[report](verdict)
    assert all(c.isprintable() or c in "\n\t" for c in seen)
    assert squeezed("�]0;owned��2J��evil� <script>alert(1)</script>&amp;]]>�[bold]") in squeezed(seen)
    seen.encode("utf-8")
    assert "<script>" not in html_page(verdict)
