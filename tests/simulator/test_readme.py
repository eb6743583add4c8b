"""Tests of the README's worked examples: they name existing files, and name each file that mentions the finding."""

from __future__ import annotations

import ast
import re
import textwrap
from pathlib import Path

import pytest

from grader import simulator
from grader.frontend import ptx_instructions

ROOT = Path(__file__).parents[2]
SIMULATOR = Path(simulator.__file__).parent
README = (SIMULATOR / "README.md").read_text()
EXAMPLES = {
    title: text for title, text in re.findall(r"^## Worked example: (.*)\n((?:(?!## ).*\n)*)", README, re.MULTILINE)
}
FINDING = "shuffle_from_inactive_lane"
SUFFIXES = {".py", ".h", ".cpp", ".cu", ".def"}


def files(text: str) -> list[Path]:
    """Return the files that a text names, in order: below the repository or below the simulator."""
    named = re.findall(r"`([\w/]+/[\w.]+\.[a-z]+)`", text)
    return [
        next((place / name for place in (ROOT, SIMULATOR) if (place / name).is_file()), Path(name)) for name in named
    ]


@pytest.mark.parametrize("title", ["an asynchronous PTX instruction", "a finding"])
def test_the_files_of_an_example_exist(title: str) -> None:
    named = files(EXAMPLES[title])
    assert len(named) >= 9
    assert not [str(file) for file in named if not file.is_absolute()]


def test_the_row_of_the_instruction_is_that_of_the_table() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", EXAMPLES["an asynchronous PTX instruction"], re.DOTALL)
    row = ast.literal_eval(textwrap.dedent(code))
    assert row in ptx_instructions._RULES


def test_a_finding_is_named_in_the_listed_files_only() -> None:
    """Check that the first files of the steps are exactly the files that mention the finding."""
    steps = re.split(r"^\d\. ", EXAMPLES["a finding"], flags=re.MULTILINE)[1:]
    listed = [files(step)[0] for step in steps]
    assert len({*listed}) == len(steps) == 7
    places = [path for part in ("grader", "tests") for path in (ROOT / part).rglob("*") if path.suffix in SUFFIXES]
    naming = {path for path in places if FINDING in path.read_text(errors="replace")}
    assert naming - {Path(__file__)} == {*listed}
