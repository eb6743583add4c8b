"""Every kind of finding in the simulator's table is registered in Python, and has a title, a message and advice."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from grader import simulator
from grader.verdict import Finding, Memory
from grader.verdict.findings import FAMILIES, KINDS, FindingKind
from grader.verdict.wording import catalog, findings, outputs

REPORT = Path(simulator.__file__).parent / "checks" / "report"
TABLE = re.findall(r"^FINDING\((\w+), (\w+), (\w+)\)$", (REPORT / "finding_kinds.def").read_text(), re.MULTILINE)
EVERY = [pytest.param(kind, id=kind.name) for kind in KINDS.values()]


def payload_fields() -> dict[str, list[str]]:
    """Return the fields of each payload in the simulator's header."""
    text = (REPORT / "finding_kinds.h").read_text()
    structs = re.findall(r"^struct (\w+) \{\n(.*?)^\};", text, re.MULTILINE | re.DOTALL)
    fields = {name: re.search(r"FIELDS\(\d+, (.*?)\)", body) for name, body in structs}
    return {name: found[1].split(", ") if found else [] for name, found in fields.items()}


def test_names_are_unique() -> None:
    assert len(KINDS) == sum(map(len, FAMILIES.values()))
    assert len({kind.title for kind in KINDS.values()}) == len(KINDS)


def test_the_simulator_has_the_same_kinds() -> None:
    assert {(name, check) for name, check, _ in TABLE} == {
        (kind.name, kind.check) for kind in KINDS.values() if kind.check != "report"
    }


@pytest.mark.parametrize(("name", "payload"), [(name, payload) for name, _, payload in TABLE])
def test_the_simulator_sends_the_same_payload(name: str, payload: str) -> None:
    kind = KINDS[name].payload
    assert (kind.__name__ if kind else "NoPayload") == payload
    required = kind.__struct_fields__[: len(kind.__struct_fields__) - len(kind.__struct_defaults__)] if kind else ()
    assert sorted(payload_fields()[payload]) == sorted(required)


@pytest.mark.parametrize("kind", EVERY)
def test_a_kind_has_all_its_texts(kind: FindingKind) -> None:
    made = catalog.sample(kind)
    message, said = findings.message(made), findings.text(made)
    assert message.startswith(kind.title) and message.count(kind.title) == 1
    assert message.count("kernel.cu:31") == 1 or kind.name == "output_not_written" or kind.check == "report"
    assert f"Why it matters: {findings.why(made)}" in said and f"Fix: {findings.fix(made)}" in said
    for text in (findings.why(made), findings.fix(made)):
        assert text[0].isupper() and text[-1] in ".)" and "  " not in text
    assert kind.title[0].islower() or kind.title.startswith("tcgen05")


@pytest.mark.parametrize("kind", EVERY)
def test_a_kind_without_its_payload_still_has_a_message(kind: FindingKind) -> None:
    assert findings.message(Finding(check=kind.check, kind=kind.name)).startswith(kind.title)


def test_the_fix_of_an_access_before_the_start_is_about_negative_indices() -> None:
    made = catalog.sample(KINDS["out_of_bounds"])
    assert made.memory and "if (i < n)" in findings.fix(made)
    made.memory.offset = -4
    assert findings.fix(made).startswith("Check that the index is not negative")


def test_the_catalog_has_every_kind() -> None:
    page = catalog.page()
    for kind in KINDS.values():
        assert f"`{kind.name}`" in page and findings.fix(catalog.sample(kind)) in page
    for diagnosis in outputs.LOOKS:
        assert outputs.looks(catalog.sample_diagnosis(diagnosis)) in page


def test_an_access_past_a_local_variable_does_not_name_an_array() -> None:
    """The compilers' checks of variables that are not arrays report neither the variable nor its size."""
    past = Finding(check="memcheck", kind="out_of_bounds", memory=Memory(kind="local", space="local"))
    assert findings.message(past) == "out-of-bounds access: access outside the bounds of a local variable"
    assert "elements in the variable" in findings.fix(past)


def test_an_uninitialized_read_of_allocated_memory_asks_for_the_size_of_the_copy() -> None:
    """A copy of n bytes in place of n elements leaves three quarters of the memory uninitialized."""
    for kind, asks in (("cudaMalloc", True), ("tensor", False)):
        read = Finding(check="initcheck", kind="uninitialized_read", memory=Memory(kind=kind, space="global"))
        assert ("check that the size is in bytes" in findings.fix(read)) == asks
