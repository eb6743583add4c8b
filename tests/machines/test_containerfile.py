"""The Containerfile matches the steps of `python -m tests.machines container`, and the dev container uses it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.machines import containerfile, table
from tests.machines.machine import ROOT


def test_every_line_is_parsed() -> None:
    steps = containerfile.read()
    machine = table.descriptions()["container"]
    assert (machine.suite, machine.user, machine.folder) == (steps.suite, steps.user, steps.folder)
    assert set(table.descriptions()["debian13"].packages) <= set(machine.packages)
    assert [line for line, _ in steps.run] == ['make TORCH="$TORCH"'] and steps.command.startswith("jupyter lab")
    assert steps.environment["PATH"].startswith(f"{steps.folder}/.venv/bin:")


@pytest.mark.parametrize(
    ("line", "other"),
    [
        ("FROM debian:trixie-slim", "FROM python:slim"),
        ("g++ git make", "g++ $(cat packages)"),
        ("WORKDIR /home", "WORKDIR /srv"),
        ("USER learner", "USER root"),
        ("RUN make", "SHELL make"),
    ],
)
def test_an_unsupported_line_is_an_error(tmp_path: Path, line: str, other: str) -> None:
    text = containerfile.FILE.read_text()
    assert text.count(line) == 1
    (tmp_path / "Containerfile").write_text(text.replace(line, other))
    with pytest.raises(containerfile.NotUnderstood):
        containerfile.read(tmp_path / "Containerfile")


def test_the_dev_container_is_the_same_machine() -> None:
    file = ROOT / ".devcontainer" / "devcontainer.json"
    settings = json.loads(file.read_text())
    build = settings["build"]
    assert (file.parent / build["dockerfile"]).resolve() == containerfile.FILE
    assert (file.parent / build["context"]).resolve() == ROOT
    assert f"AS {build['target']}\n" in containerfile.FILE.read_text()
    assert settings["remoteUser"] == containerfile.read().user and settings["postCreateCommand"] == "make"
