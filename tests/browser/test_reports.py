"""The page written by ``grader check --html`` in a browser: self-contained and accessible."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.report.html import save_html
from tests.browser.conftest import DESKTOP, PHONE, OpenPage, file_url, violations
from tests.report import samples

VERDICTS = [samples.right, samples.wrong, samples.unsafe, samples.wasteful, samples.does_not_build]
BROKEN = """() => [...document.querySelectorAll('td.number, .worst td, .worst th, .date')].filter(part => {
    const range = document.createRange();
    range.selectNodeContents(part);
    return new Set([...range.getClientRects()].map(box => Math.round(box.bottom))).size > 1;
}).map(part => part.innerText)"""
"""JavaScript that returns the numbers, positions and dates that are broken over two lines."""


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desk", "phone"])
def test_accessibility(
    open_page: OpenPage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: tuple[int, int], theme: str
) -> None:
    source = tmp_path / samples.FILE
    source.parent.mkdir(parents=True)
    source.write_text("\n".join(f"    const float value{number} = {number}.0f;  // a line" for number in range(1, 80)))
    monkeypatch.chdir(tmp_path)
    page = open_page(size, color_scheme=theme)
    found = []
    for verdict in VERDICTS:
        report = tmp_path / f"{verdict.__name__}.html"
        save_html(verdict(), report)
        page.goto(file_url(report))
        found += [f"{report.name}: {violation}" for violation in violations(page)]
        assert page.evaluate(BROKEN) == []
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), (
            f"{report.name} scrolls sideways"
        )
    assert not found, "\n".join(found)
