"""What CONTRIBUTING says of the layers is what ``lint-imports`` proves."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
CHAPTER = (ROOT / "CONTRIBUTING.md").read_text().partition("## How the grader is laid out")[2].partition("\n## ")[0]


def test_the_picture_shows_the_layers_of_the_contract() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (layers,) = (contract["layers"] for contract in contracts if contract["type"] == "layers")
    rows = CHAPTER.split("```")[1].strip().splitlines()
    shown = [set(re.split(r"\s{3,}", row)[:-1]) for row in rows]
    assert shown == [set(layer.split(" | ")) for layer in layers]


def test_the_files_that_it_names_exist() -> None:
    named = set(re.findall(r"`([a-z_]+/[\w./]+)`", CHAPTER))
    assert len(named) > 20
    assert not [name for name in named if not any((place / name).exists() for place in (ROOT, ROOT / "grader"))]
