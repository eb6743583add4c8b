"""A verdict as JUnit XML, which CI systems and most course platforms read.

There is one test suite for each stage, and one test case for each of its cases, findings and bars. A stage without any
of them has one test case for the whole stage.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

from grader.setup.files import write_file
from grader.verdict import ERROR, FAILED, PASSED, SKIPPED, Stage, Verdict
from grader.verdict.wording import bars, cases, stages
from grader.verdict.wording import findings as finding_words


def save_junit(verdict: Verdict, path: str | Path) -> None:
    """Write the XML file."""
    write_file(path, junit_xml(verdict))


def junit_xml(verdict: Verdict) -> str:
    """Return the XML text."""
    root = ET.Element("testsuites", name=verdict.exercise, time=f"{verdict.seconds:.3f}")
    for stage in verdict.stages:
        root.append(_suite(verdict, stage))
    for counter in ("tests", "failures", "errors", "skipped"):
        root.set(counter, str(sum(int(suite.get(counter, "0")) for suite in root)))
    ET.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _suite(verdict: Verdict, stage: Stage) -> ET.Element:
    suite = ET.Element(
        "testsuite",
        name=f"{verdict.exercise}.{stage.name}",
        time=f"{stage.seconds:.3f}",
        timestamp=verdict.started.partition("+")[0],
    )
    properties = ET.SubElement(suite, "properties")
    facts = {
        "file": verdict.file,
        "device": verdict.device,
        **({"seed": str(verdict.seed)} if verdict.seed else {}),
        "passed": str(verdict.passed).lower(),
        "score": f"{verdict.score:g}",
        "points": str(verdict.points),
        "isolation": verdict.isolation,
        "summary": stages.summary(stage),
    }
    for name, value in facts.items():
        ET.SubElement(properties, "property", name=name, value=value)
    class_name = f"{verdict.exercise.replace('/', '.')}.{stage.name}"
    for item in _test_cases(stage, class_name):
        suite.append(item)
    suite.set("tests", str(len(suite.findall("testcase"))))
    for counter, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(counter, str(len(suite.findall(f"testcase/{tag}"))))
    return suite


def _test_cases(stage: Stage, class_name: str) -> list[ET.Element]:
    made: list[ET.Element] = []
    for case in stage.cases:
        item = _test_case(class_name, cases.named(case), case.seconds)
        _outcome(item, case.status, cases.in_short(case), cases.text(case))
        if case.printed:
            ET.SubElement(item, "system-out").text = case.printed
        made.append(item)
    for finding in stage.findings:
        item = _test_case(class_name, f"{finding.check} {Path(finding.file).name}:{finding.line}", 0.0)
        _outcome(item, FAILED, finding_words.message(finding), finding_words.text(finding))
        made.append(item)
    for bar in stage.bars:
        item = _test_case(class_name, bar.expression, 0.0)
        if not bar.passed:
            _outcome(item, FAILED, f"{bars.value(bar)}, not {bars.limit(bar)}", bars.text(bar))
        made.append(item)
    for limit in stage.time_bars:
        item = _test_case(class_name, f"{limit.name} ({limit.dtype}) on {limit.gpu}", 0.0)
        if limit.status != PASSED:
            _outcome(
                item, limit.status, f"{limit.median_us:.4g} us, limit {limit.at_most_us:g} us", bars.time_text(limit)
            )
        made.append(item)
    if not made or (stage.status in (FAILED, ERROR) and all(len(item) == 0 for item in made)):
        item = _test_case(class_name, stages.title(stage), stage.seconds)
        diagnostics = "\n".join(f"{d.file}:{d.line}:{d.column}: {d.severity}: {d.message}" for d in stage.diagnostics)
        _outcome(item, stage.status, stages.summary(stage), stages.text(stage) or diagnostics)
        made.insert(0, item)
    return made


def _test_case(class_name: str, name: str, seconds: float) -> ET.Element:
    return ET.Element("testcase", classname=class_name, name=name, time=f"{seconds:.3f}")


def _outcome(item: ET.Element, status: str, message: str, text: str) -> None:
    tag = {FAILED: "failure", ERROR: "error", SKIPPED: "skipped"}.get(status)
    if tag:
        outcome = ET.SubElement(item, tag, message=message)
        if text and tag != "skipped":
            outcome.text = text
