"""grader/README.md describes the same layers of packages that ``lint-imports`` enforces."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "grader" / "README.md").read_text()


def test_the_list_of_rooms_matches_the_contract() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    rooms = next(contract["layers"] for contract in contracts if contract["name"] == "The rooms of the grader")
    rows = README.split("```")[1].strip().splitlines()
    assert [row.split()[0] for row in rows] == rooms
    assert {path.parent.name for path in (ROOT / "grader").glob("*/__init__.py")} == set(rooms)


def test_the_files_that_it_names_exist() -> None:
    named = set(re.findall(r"`([a-z_]+/[\w./]+)`", README))
    assert len(named) > 40
    assert not [name for name in named if not any((place / name).exists() for place in (ROOT, ROOT / "grader"))]


@pytest.mark.parametrize("what", ["an exercise's name", "a finding"])
def test_the_functions_of_a_walk_exist(what: str) -> None:
    rows = README.split(f"### The walk of {what}")[1].split("```")[1].strip().splitlines()
    assert len(rows) > 10
    for file, function in (row.split()[:2] for row in rows):
        text = (ROOT / "grader" / file).read_text()
        defined = rf"def {function}\(" if file.endswith(".py") else rf"\n[\w*: ]* \*?{function}\("
        assert re.search(defined, text), (file, function)
