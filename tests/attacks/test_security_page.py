"""Check that the attacks that SECURITY.md names exist."""

from __future__ import annotations

import re

from grader.course import course_root
from tests.attacks.conftest import HERE
from tests.attacks.test_python import ATTACKS as PYTHON_ATTACKS

PAGE = (course_root() / "SECURITY.md").read_text(encoding="utf-8")
ATTACKS = set(PYTHON_ATTACKS) | {
    path.stem for folder in ("run", "compile", "submission_sandbox", "gpu") for path in (HERE / folder).glob("*.cu")
}
OTHER_NAMES = {"not_its_memory", "not_its_stack", "illegal_address", "host_access", "load_kernel", "stack_bytes"}


def named() -> set[str]:
    """Return the names with an underscore that the page marks as code, and those in lists of attacks."""
    return {name for name in re.findall(r"`([a-z]+(?:_[a-z]+)+)`", PAGE)} - OTHER_NAMES


def test_each_attack_that_the_page_names_exists() -> None:
    assert named() <= ATTACKS
    assert len(named()) > 50


def test_each_promise_names_an_attack() -> None:
    """Check that each sentence in the lists of promises names an attack or a test, or says that nothing is promised."""
    for title, end in (
        ("## What is promised", "In the tier **none**"),
        ("## What a submission can touch", "All of this is implemented in"),
    ):
        part = PAGE[PAGE.index(title) : PAGE.index(end, PAGE.index(title))]
        items = re.findall(r"^- \*\*(.+?)\*\*(.*?)(?=^- \*\*|\Z)", part, re.MULTILINE | re.DOTALL)
        assert len(items) >= 8
        for name, text in items:
            if name.rstrip(".") not in ("File metadata", "Parsing"):
                assert set(re.findall(r"`(\w+)`", text)) & ATTACKS, name
    part = PAGE[PAGE.index("In a jail, only one instruction") : PAGE.index("## On a real GPU")]
    for sentence in part.split(". "):
        assert set(re.findall(r"`(\w+)`", sentence)) & ATTACKS, sentence
