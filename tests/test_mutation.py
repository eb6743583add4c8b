"""The command that changes what decides a verdict: its changes are changes, and what it recorded is good enough."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests import mutation


def test_each_change_is_one_and_still_a_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mutation, "ROOT", tmp_path)
    (tmp_path / "small.py").write_text(
        'LIMIT: int = 3\n\n\ndef f(a: "int", b: int) -> bool:\n    """Text."""\n    print(-a)\n    return a < LIMIT or b\n'
    )
    found = list(mutation.mutants("small.py"))
    assert [(mutant.line, mutant.name) for mutant in found] == [
        (1, "3 -> 4"),
        (6, "print(-a) -> None"),
        (6, "-a -> +a"),
        (7, "return a < LIMIT or b -> return None"),
        (7, "a < LIMIT or b -> a < LIMIT and b"),
        (7, "a < LIMIT or b -> False or b"),
        (7, "a < LIMIT or b -> a < LIMIT or False"),
        (7, "a < LIMIT -> a <= LIMIT"),
    ]
    names: dict[str, object] = {}
    exec(found[0].code, names)
    assert names["LIMIT"] == 4


def test_of_a_pattern_each_alternative_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mutation, "ROOT", tmp_path)
    (tmp_path / "small.py").write_text('import re\nWORD = re.compile(r"a|(?:[(|)]|\\||c)d")\n')
    patterns = []
    for mutant in mutation.mutants("small.py"):
        names: dict[str, re.Pattern[str]] = {}
        exec(mutant.code, names)
        patterns.append(names["WORD"].pattern)
    assert sorted(patterns) == sorted([r"(?:[(|)]|\||c)d", "a", r"a|(?:\||c)d", "a|(?:[(|)]|c)d", r"a|(?:[(|)]|\|)d"])
    before = "x" * 300 + "|that|" + "y" * 300
    assert mutation._what_differs(before, before.replace("that|", "")) == (
        f"{'x' * 19}|that|{'y' * 20}",
        f"{'x' * 19}|{'y' * 20}",
    )


def test_each_change_of_a_cxx_file_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mutation, "ROOT", tmp_path)
    (tmp_path / "part").mkdir()
    (tmp_path / "part" / "other.h").write_text("#pragma once\n")
    (tmp_path / "part" / "small.cpp").write_text(
        '#include "other.h"\nint f(int a) {  // 7\n    if (a < 3) return 1;\n    g("a < 3");\n    return a && true;\n}\n'
    )
    found = list(mutation.mutants("part/small.cpp"))
    assert [(mutant.line, mutant.after) for mutant in found] == [
        (3, "if (a <= 3) return 1;"),
        (3, "if (a < 4) return 1;"),
        (3, "if (a < 3) return 2;"),
        (3, "if (!(a < 3)) return 1;"),
        (4, ""),
        (5, "return a || true;"),
        (5, "return a && false;"),
    ]
    course = tmp_path / "copy" / "course"
    course.parent.mkdir()
    mutation.beside(found[4], course)
    assert (
        'g("a < 3")' not in (course / "part" / "small.cpp").read_text() and (course / "part" / "other.h").is_symlink()
    )
    assert 'g("a < 3")' in (tmp_path / "part" / "small.cpp").read_text()
    assert not mutation.compiles(found[0]), "nobody knows g"


def test_a_survivor_wants_a_reason() -> None:
    row = {"file": "a.py", "changes": 10, "noticed": 9, "survivors": ["1 -> 2"]}
    assert mutation.unexplained(row, {}) == ["1 -> 2"]
    assert mutation.unexplained(row, {"a.py": {"1 -> 2": "it is a limit on what is printed"}}) == []


def test_what_was_recorded_is_good_enough() -> None:
    rows = json.loads(mutation.RECORD.read_text())["files"]
    files = {row["file"] for row in rows}
    assert files == {*mutation.TARGETS, *mutation.CXX_TARGETS}, "run `python -m tests.mutation --record`"
    assert mutation.judge(rows) == 0, "run `python -m tests.mutation --record`"
