"""Content that must not appear in a report about an attack."""

from __future__ import annotations

import csv
import html
import io
import unicodedata
from pathlib import Path

from grader.classroom.tables import write_csv
from grader.report.html import html_page
from grader.report.junit import junit_xml
from grader.report.terminal import as_text
from grader.verdict import Verdict
from grader.verdict.wording.results import as_json


def texts(verdict: Verdict, folder: Path) -> dict[str, str]:
    """Return a verdict in all report formats, by name. feedback.txt contains the text of the terminal report."""
    table = folder / "table.csv"
    cells = [stage.summary for stage in verdict.stages] + [stage.message for stage in verdict.stages]
    cells += [case.printed for stage in verdict.stages for case in stage.cases]
    write_csv(table, [cells])
    return {
        "terminal": as_text(verdict),
        "html": html_page(verdict),
        "junit": junit_xml(verdict),
        "json": as_json(verdict),
        "csv": table.read_bytes().decode("utf-8-sig"),  # the byte order mark is for Excel
    }


def assert_clean(verdict: Verdict, folder: Path, secrets: tuple[str, ...] = ()) -> None:
    """Assert that no report has control or invisible characters, other files' text, tracebacks or formulas."""
    for name, text in texts(verdict, folder).items():
        for told in (text, html.unescape(text)):
            bad = {c for c in told if unicodedata.category(c) in ("Cc", "Cf", "Cs") and c not in "\n\t"}
            if name == "csv":
                bad.discard("\r")  # allowed: it ends the rows of CSV files
            assert not bad, f"{name}: {sorted(map(ascii, bad))}"
            assert "Traceback (most recent call last)" not in told and 'File "/' not in told, name
            for secret in secrets:
                assert secret not in told, name
        if name == "csv":
            for row in csv.reader(io.StringIO(text, newline="")):
                assert not any(unicodedata.normalize("NFKC", cell).lstrip()[:1] in tuple("=+-@") for cell in row)
