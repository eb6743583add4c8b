"""JUnit XML, HTML and SVG reports are well-formed, complete and deterministic."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from pathlib import Path

import pytest

from grader.report.html import html_page, save_html
from grader.report.junit import junit_xml, save_junit
from grader.setup.errors import GraderError
from grader.verdict import CaseResult, SourceLine, Stage
from grader.verdict.wording.counters import LEGEND
from grader.verdict.wording.results import save
from tests.report import samples
from tests.report.picture import main as draw
from tests.report.picture import picture


@pytest.mark.parametrize("name", samples.ALL)
def test_junit_counts_what_it_holds(name: str) -> None:
    verdict = samples.ALL[name]()
    root = ET.fromstring(junit_xml(verdict))
    cases = root.findall("testsuite/testcase")
    assert int(root.get("tests", "")) == len(cases)
    assert int(root.get("failures", "")) == len(root.findall("testsuite/testcase/failure"))
    assert (int(root.get("failures", "")) + int(root.get("errors", "")) == 0) == verdict.passed


def test_junit_names_cases_findings_and_bars() -> None:
    assert 'name="two key blocks (f32)"' in junit_xml(samples.wrong())
    assert 'name="racecheck flash_attention.cu:44"' in junit_xml(samples.unsafe())
    assert 'name="global_bytes / minimum"' in junit_xml(samples.wasteful())


def test_junit_escapes_the_output_of_kernels() -> None:
    case = CaseResult("c <&>", "f32", "failed", {}, "launch", ["a\x00b\x1b[31m]]>"], printed="\x07\ufffe")
    text = junit_xml(samples.verdict(Stage("correct", "failed", "x", cases=[case])))
    assert ET.fromstring(text).find(".//failure").text == "The launch failed: a�b�[31m]]>"  # type: ignore[union-attr]


class Tags(HTMLParser):
    """A parser that checks that tags are balanced and collects links."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ("meta", "link", "br", "img"):
            self.open.append(tag)
        self.links += [value or "" for name, value in attrs if name in ("src", "href")]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.mark.parametrize("name", samples.ALL)
def test_html_is_complete_and_self_contained(name: str) -> None:
    tags = Tags()
    page = html_page(samples.ALL[name]())
    tags.feed(page)
    assert tags.open == [] and tags.links == [] and "http" not in page and "<script" not in page


def test_html_shows_the_source_with_counters(tmp_path: Path) -> None:
    source = tmp_path / "kernel.cu"
    source.write_text("\n".join(f"line {number} <&> text" for number in range(1, 12)))
    page = html_page(samples.wasteful(str(source)))
    assert "line 5 &lt;&amp;&gt; text" in page and "32-way bank conflict" in page and "8.0x" in page


@pytest.mark.parametrize(
    ("counted", "columns"),
    [
        ((), []),
        (("sectors", "ideal_sectors"), ["sectors", "waste"]),
        (("shared_wavefronts", "ideal_shared_wavefronts"), ["waves", "ways"]),
    ],
)
def test_html_explains_the_columns_with_counters_and_leaves_out_others(
    tmp_path: Path, counted: tuple[str, ...], columns: list[str]
) -> None:
    source = tmp_path / "kernel.cu"
    source.write_text("int line;\n")
    line = SourceLine(str(source), 1, "int line;", dict.fromkeys(counted, 4.0))
    page = html_page(samples.verdict(Stage("efficient", "failed", "x", lines=[line]), file=str(source)))
    shown = page.partition("<h2>Source")[2]
    assert shown.startswith(", with what each line moves" if columns else "</h2>")
    for name in ("sectors", "waste", "waves", "ways"):
        assert (f'<td class="number">{name}</td>' in shown) == (name in columns)
        assert (f"<strong>{name}</strong>: {LEGEND[name]}" in shown) == (name in columns)


def test_html_escapes() -> None:
    case = CaseResult("<b>c</b>", "f32", "failed", {}, "crash", ["<script>alert(1)</script>"])
    page = html_page(samples.verdict(Stage("correct", "failed", "x", cases=[case])))
    assert "<script>" not in page and "<b>c" not in page


def test_a_path_that_cannot_be_written_is_one_message(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for write in (save_junit, save_html, save):
        with pytest.raises(GraderError, match="cannot write"):
            write(samples.right(), tmp_path / "file" / "report")


def test_the_picture_is_deterministic() -> None:
    first, second = samples.wrong(), samples.wrong()
    second.seconds, second.stages[0].seconds = 9.9, 8.8
    svg = picture(first, "grader check flash_attention")
    assert svg == picture(second, "grader check flash_attention")
    ET.fromstring(svg)
    assert "http" not in svg.replace("http://www.w3.org", "").replace("https://www.textualize.io", "")
    assert "0.6 s" not in "".join(ET.fromstring(svg).itertext())


def test_the_picture_of_recorded_results(tmp_path: Path) -> None:
    results, out = tmp_path / "results.json", tmp_path / "verdict.svg"
    save(samples.unsafe(), results)
    assert draw([samples.NAME, str(out), "--results", str(results)]) == 0
    assert "memcheck" in out.read_text()
    assert draw([samples.NAME, str(results / "x.svg"), "--results", str(results)]) == 2
    assert draw([samples.NAME, str(out), "--results", str(tmp_path / "none.json")]) == 2
