"""grades.csv and similar.csv: they read back unchanged and contain no formulas."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from grader.classroom.cells import no_formula
from grader.classroom.csv_files import number_in, read_csv
from grader.classroom.result import StudentResult
from grader.classroom.similar import Pair
from grader.classroom.tables import write_csv, write_grades, write_similar
from grader.cli.app import run
from grader.course import Course

HOSTILE = 'O"Neill","=HYPERLINK(1)",'
"""Unless it is escaped, this text fills three cells, one of them with a formula."""


def rows(path: Path) -> list[list[str]]:
    with path.open(newline="", encoding="utf-8-sig") as file:
        return list(csv.reader(file))


def test_a_name_stays_in_its_cell(course: Course, hand_in, tmp_path: Path, capsys) -> None:
    """Two students submit the same long kernel. One of them has a hostile name and an editor that writes UTF-16."""
    long = "__global__ void f(float* a) {\n" + "".join(f"    a[{k}] += {k} - a[{k + 1}];\n" for k in range(20)) + "}\n"
    hand_in("ann", long)
    folder = hand_in(HOSTILE, "")
    (folder / HOSTILE / "twice.cu").write_bytes(long.encode("utf-16"))
    out = tmp_path / "out"
    assert run(["grade", str(folder), "--out", str(out), "--workers", "1"]) == 0, capsys.readouterr()
    assert rows(out / "similar.csv")[1:] == [["day01_start/twice", HOSTILE, "ann", "1"]]
    assert [row[:2] for row in rows(out / "grades.csv")[1:]] == [[HOSTILE, "0"], ["ann", "0"]]


@pytest.mark.parametrize("first", ["=", "+", "-", "@", "\t", "\r", "＝", "＋", "－", "＠", "﹦", "−", " =", "\u3000="])
def test_no_cell_is_a_formula(tmp_path: Path, first: str) -> None:
    name = f"{first}cmd()"
    result = StudentResult(name, name, "key", remarks=[name])
    write_similar(tmp_path, [Pair("twice", name, "ann", 0.9)])
    for row in rows(write_grades(tmp_path, [result])) + rows(tmp_path / "similar.csv"):
        assert all(cell[:1] in ("'", "?") for cell in row if "cmd()" in cell), row


def test_other_cells_stay_as_they_are() -> None:
    for text in ("", "ann", "O'Neill", "Zoë -1", "1-2", "小明"):
        assert no_formula(text) == text


def test_separators_of_other_locales_begin_no_cell(tmp_path: Path) -> None:
    """Spreadsheets use the semicolon as the separator in locales with a decimal comma."""
    write_csv(tmp_path / "x.csv", [["ann;=cmd()", 1.5]])
    assert (tmp_path / "x.csv").read_text("utf-8-sig") == '"ann;=cmd()","1.5"\n'


def test_excel_reads_the_tables_as_utf_8(tmp_path: Path) -> None:
    """Excel reads a file without a byte order mark in the encoding of the system."""
    path = write_grades(tmp_path, [StudentResult("Zoë", "zoe", "key")])
    assert path.read_bytes().startswith(b'\xef\xbb\xbf"student"') and "Zoë".encode() in path.read_bytes()
    assert read_csv(path, "")[0][0] == "student"


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ('student,submitted\r\n"Lee, Zoë",1;2\r\n', "utf-8-sig"),
        ('student;submitted\r\nLee, Zoë;"1;2"\r\n', "utf-8"),
        ("student\tsubmitted\r\nLee, Zoë\t1;2\r\n", "utf-16"),
    ],
)
def test_tables_that_excel_writes(tmp_path: Path, text: str, encoding: str) -> None:
    (tmp_path / "x.csv").write_bytes(text.encode(encoding))
    assert read_csv(tmp_path / "x.csv", "") == [["student", "submitted"], ["Lee, Zoë", "1;2"]]


@pytest.mark.parametrize(
    ("text", "number"),
    [("10.50", 10.5), ("10,50", 10.5), ("1,000.00", 1000), ("1.000,00", 1000), ("12", 12), ("-", None), ("", None)],
)
def test_numbers_of_learning_platforms(text: str, number: float | None) -> None:
    assert number_in(text) == number
