"""Descriptions of machines (machines.toml), their results (recorded.json), and the table of them in tests/README.md."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

from tests.machines import containerfile
from tests.machines.machine import ROOT, Description

RECORDED = Path(__file__).parent / "recorded.json"
README = ROOT / "tests" / "README.md"
BEGIN, END = "<!-- machines: made by python -m tests.machines --record -->", "<!-- end of machines -->"
EMULATED = ("arm64",)
COMPILERS_ON = {"bookworm": "debian12", "trixie": "debian13", "testing": "testing"}


def _read() -> dict[str, Any]:
    return tomllib.loads((Path(__file__).parent / "machines.toml").read_text(encoding="utf-8"))


def descriptions() -> dict[str, Description]:
    """Return the machines by name."""
    text = _read()
    entries = {name: text["defaults"] | entry for name, entry in text["machine"].items()}
    for entry in entries.values():
        if entry.pop("containerfile", False):
            container = containerfile.read()
            for part in ("suite", "packages", "user", "folder"):
                entry[part] = getattr(container, part)
        entry["packages"], entry["run"] = tuple(entry["packages"]), tuple(entry["run"])
    return {name: Description(name=name, **entry) for name, entry in entries.items()}


def by_suite() -> dict[str, list[str]]:
    """Return the compilers of machines.toml by the Debian release that contains them."""
    return _read()["compilers"]


def compilers() -> list[str]:
    return [compiler for names in by_suite().values() for compiler in names]


def recorded() -> dict[str, dict[str, dict[str, str]]]:
    return json.loads(RECORDED.read_text(encoding="utf-8"))


def record(kind: str, rows: dict[str, dict[str, str]]) -> None:
    """Store new rows in recorded.json, and write the table again."""
    everything = recorded()
    known = {"machines": descriptions(), "compilers": compilers(), "emulated": EMULATED}[kind]
    merged = everything.get(kind, {}) | rows
    everything[kind] = {name: merged[name] for name in known if name in merged}
    RECORDED.write_text(json.dumps(everything, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    text = README.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    README.write_text(f"{before}{render()}{after}", encoding="utf-8")


def render() -> str:
    """Return the table of tests/README.md, between its markers."""
    everything = recorded()
    emulated = everything["emulated"]["arm64"]["verdicts"]
    lines = [
        BEGIN,
        "| machine | properties | Python, compiler, torch | `.venv` | result |",
        "| --- | --- | --- | --- | --- |",
    ]
    for name, row in everything["machines"].items():
        has = f"{row.get('Python', '?')}, {row.get('compiler', '?')}, {row.get('torch', '?')}"
        size = f"{int(row['megabytes']) / 1000:.1f} GB" if "megabytes" in row else "?"
        lines.append(f"| {name} | {_difference(descriptions()[name])} | {has} | {size} | {_outcome(row)} |")
    lines += ["", "| compiler | tests of the simulator |", "| --- | --- |"]
    lines += [f"| {name} | {row['simulator']} |" for name, row in everything["compilers"].items()]
    lines += ["", f"On an emulated arm64 processor, solutions and skeletons (`--arm64`): {emulated}."]
    return "\n".join([*lines, END])


def _outcome(row: dict[str, str]) -> str:
    names = {
        "container": "the Containerfile's steps",
        "demo": "`make demo`",
        "lab": "`make lab`",
        "lesson": "lessons 1 and 6",
        "moved": "a renamed folder",
        "paths": "tests of cli, loading and setup",
        "test": "`make test`",
        "wheel": "a wheel, `grader init`, `grader demo`",
    }
    said = [(text, row[step]) for step, text in names.items() if step in row]
    good = ", ".join(text for text, result in said if result == "passes")
    rest = [f"{text}: {result.partition(': see')[0]}" for text, result in said if result != "passes"]
    return "; ".join([*([f"{good} pass"] if good else []), *rest])


def _difference(machine: Description) -> str:
    names = {"bookworm": "Debian 12", "trixie": "Debian 13", "testing": "Debian testing"}
    words = [names[machine.suite], "root" if machine.user == "root" else "an ordinary user"]
    if machine.source == "zip":
        words.append("no .git")
    if "git" not in machine.packages:
        words.append("no git")
    if " " in machine.folder:
        words.append("a path with a space and an umlaut")
    if machine.home != "writable":
        words.append("a read-only home folder")
    if "container" in machine.run:
        words.append("as the Containerfile says")
    if machine.locale:
        words.append(f"LC_ALL={machine.locale}")
    if "g++" not in machine.packages:
        words.append("clang++ alone")
    return ", ".join(words)
