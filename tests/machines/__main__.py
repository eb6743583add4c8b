"""Create fresh Debian machines and run the steps of a new user there: ``python -m tests.machines [NAME...]``.

It needs root, debootstrap and a network. A machine takes some minutes, and half an hour more with the complete test
suite. ``--record`` writes the results to recorded.json and to the table of tests/README.md. ``--compilers`` runs the
simulator's tests with each compiler in machines.toml instead, and ``--arm64`` has an emulated processor run solutions
and skeletons (arm64.py; it needs no root).
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from datetime import date
from pathlib import Path

from tests.machines import table
from tests.machines.arm64 import lacking
from tests.machines.compilers import try_compilers
from tests.machines.machine import ROOT, Images, Machine, MachineError
from tests.machines.steps import STEPS, StepFailed, counts, facts


def main() -> int:
    descriptions = table.descriptions()
    parser = argparse.ArgumentParser(prog="python -m tests.machines", description=__doc__)
    parser.add_argument("names", nargs="*", help=f"machines (default: all): {', '.join(descriptions)}")
    parser.add_argument(
        "--images", type=Path, default=Path("/var/tmp/llm-kernels-machines"), help="folder for Debian images"
    )
    parser.add_argument("--logs", type=Path, help="folder for the output of commands")
    parser.add_argument("--run", help="the steps to run instead of the machine's own: demo,lab,lesson,test")
    parser.add_argument("--record", action="store_true", help="write recorded.json and the table of tests/README.md")
    parser.add_argument("--compilers", action="store_true", help="try the compilers instead")
    parser.add_argument(
        "--arm64", action="store_true", help="run solutions and skeletons on an emulated arm64 processor instead"
    )
    asked = parser.parse_args()
    unknown = set(asked.names) - set(descriptions) - (set(table.compilers()) if asked.compilers else set())
    if unknown:
        parser.error(f"no machine is called {', '.join(sorted(unknown))}; there are {', '.join(descriptions)}")
    logs = asked.logs or Path(tempfile.mkdtemp(prefix="machines-"))
    logs.mkdir(parents=True, exist_ok=True)
    if asked.arm64:
        return try_arm64(logs / "arm64.log", asked.record)
    try:
        images = Images(asked.images)
        if asked.compilers:
            rows = try_compilers(images, logs, asked.names)
        else:
            rows = {}
            for name in asked.names or descriptions:
                rows[name] = try_machine(name, images, logs, asked.run)
                if asked.record:
                    table.record("machines", rows)
    except MachineError as problem:
        print(f"machines: {problem}", file=sys.stderr)
        return 2
    if asked.record and asked.compilers:
        table.record("compilers", rows)
    return 1 if any(value.startswith("FAILS") for row in rows.values() for value in row.values()) else 0


def made_from() -> dict[str, str]:
    """Return the date and the commit."""
    commit = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    return {"date": date.today().isoformat(), "commit": commit.stdout.strip()}


def try_machine(name: str, images: Images, logs: Path, steps: str | None) -> dict[str, str]:
    """Create a machine, run its steps and remove it; return the result of each step."""
    description = table.descriptions()[name]
    image = images.get(description.suite, description.packages)
    row = made_from()
    with tempfile.TemporaryDirectory(prefix="machine-", dir=images.folder) as folder:
        machine = Machine(description, image, Path(folder) / "machine", images.folder / "pip")
        for step in steps.split(",") if steps else description.run:
            try:
                row[step] = STEPS[step](machine, logs / f"{name}.{step}.log")
            except StepFailed as problem:
                row[step] = f"FAILS: {problem}"
            print(f"{name}: {step}: {row[step]}", flush=True)
        try:
            row |= facts(machine, logs / f"{name}.facts.log")
        except StepFailed as problem:
            print(f"{name}: {problem}", flush=True)
    return row


def try_arm64(log: Path, record: bool) -> int:
    """Run every solution and skeleton on an emulated processor; return the results."""
    if lacking():
        print(f"machines: {lacking()}", file=sys.stderr)
        return 2
    asked = ["-p", "tests.machines.arm64", "tests/exercises/test_verdicts.py", "-n", "auto", "--timeout", "3000"]
    argv = [sys.executable, "-m", "pytest", *asked, "-k", "solution or skeleton"]
    with log.open("w") as output:
        done = subprocess.run(argv, cwd=ROOT, stdout=output, stderr=subprocess.STDOUT)
    result = counts(log)
    print(f"arm64: {result}: see {log}")
    if record:
        table.record("emulated", {"arm64": {**made_from(), "verdicts": result}})
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
