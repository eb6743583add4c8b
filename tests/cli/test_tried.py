"""`grader doctor` lists the kinds of machines on which the course has not been tested."""

from __future__ import annotations

import webbrowser

import pytest

from grader.cli import doctor, tried
from tests.machines import table

HERE = {"system": "Linux", "processor": "x86_64", "release": "6.12", "library": "glibc", "python": (3, 13)}


@pytest.mark.parametrize(
    ("other", "says"),
    [
        ({}, []),
        ({"system": "Darwin", "processor": "arm64"}, ["Darwin was not tested, and kernels do not run there"]),
        (
            {"processor": "aarch64"},
            ["only solutions and skeletons on the simulator, in an emulator and without a sandbox"],
        ),
        ({"processor": "riscv64"}, ["riscv64 was not tested."]),
        ({"release": "5.15.90.1-microsoft-standard-WSL2"}, ["WSL was not tested"]),
        ({"library": "", "python": (3, 12)}, ["other than glibc", "Python 3.12 was only partly tested"]),
    ],
)
def test_untested_kinds_of_machines_are_listed(other: dict[str, str], says: list[str]) -> None:
    said = tried.untested(**(HERE | other))  # type: ignore[arg-type]
    assert len(said) == len(says) and all(part in sentence for part, sentence in zip(says, said))


def test_the_pythons_are_those_of_the_recorded_machines() -> None:
    recorded = [row["Python"] for row in table.recorded()["machines"].values()]
    assert {tuple(map(int, version.split(".")[:2])) for version in recorded} == set(tried.PYTHONS)


def test_a_machine_without_a_browser(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> None:
        raise webbrowser.Error("could not locate runnable browser")

    monkeypatch.setattr(webbrowser, "get", none)
    found = doctor.browser()
    assert found.status == doctor.OPTIONAL and "prints an address" in found.advice
