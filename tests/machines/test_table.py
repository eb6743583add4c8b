"""The table of machines in tests/README.md shows the recorded results."""

from __future__ import annotations

from tests.machines import table
from tests.machines.steps import STEPS


def test_the_readme_shows_the_record() -> None:
    assert table.render() in table.README.read_text(encoding="utf-8"), "run `python -m tests.machines --record`"


def test_every_machine_and_every_compiler_is_recorded() -> None:
    recorded = table.recorded()
    assert list(recorded["machines"]) == list(table.descriptions())
    assert list(recorded["compilers"]) == table.compilers()
    assert tuple(recorded["emulated"]) == table.EMULATED
    for name, row in recorded["machines"].items():
        assert set(table.descriptions()[name].run) <= set(row), name


def test_descriptions_name_existing_settings() -> None:
    for name, machine in table.descriptions().items():
        assert set(machine.run) <= set(STEPS), name
        assert machine.suite in table.by_suite() and machine.home in ("writable", "read-only"), name
        assert machine.source in ("clone", "zip"), name
