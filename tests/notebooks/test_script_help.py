"""The help texts of the lessons' scripts: sentences that fit on a terminal of 80 columns."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

LESSONS = Path(__file__).parents[2] / "lessons"
SCRIPTS = [file for file in sorted(LESSONS.glob("*/*.py")) if '"__main__"' in file.read_text()]


def calls(script: Path, name: str) -> Iterator[dict[str, ast.expr]]:
    """Yield the keyword arguments of each call of a method of ``argparse``."""
    for node in ast.walk(ast.parse(script.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == name:
            yield {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg}


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: f"{script.parent.name}/{script.name}")
def test_every_script_describes_itself(script: Path) -> None:
    (parser,) = calls(script, "ArgumentParser")
    description = ast.unparse(parser["description"])
    if description == "__doc__":
        raw = ast.get_docstring(ast.parse(script.read_text())) or ""
        assert max(map(len, raw.splitlines()[2:])) <= 80 and "formatter_class" in parser
        description = repr(raw.splitlines()[0])
    text = ast.literal_eval(description)
    assert text[0].isupper() and text.endswith(".") and "this machine" not in text


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: f"{script.parent.name}/{script.name}")
def test_every_option_is_described(script: Path) -> None:
    assert all("help" in argument for argument in calls(script, "add_argument"))
