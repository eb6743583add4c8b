"""The simulator's tests with each compiler that grades."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tests.machines import table
from tests.machines.machine import Images, Machine
from tests.machines.steps import StepFailed, run_tests

# What compilers can differ in: what they instrument, what they inline, how they lay memory out, what they say.
_TESTS = "tests/simulator tests/building/test_build.py tests/building/test_diagnostics.py"


def try_compilers(images: Images, logs: Path, names: Sequence[str]) -> dict[str, dict[str, str]]:
    """What came of the tests, for each compiler that is named, or for all."""
    rows: dict[str, dict[str, str]] = {}
    for suite, compilers in table.by_suite().items():
        wanted = [compiler for compiler in compilers if not names or compiler in names]
        if not wanted:
            continue
        base = table.descriptions()[table.COMPILERS_ON[suite]]
        packages = (*base.packages, *(compiler.replace("clang++", "clang") for compiler in compilers))
        image = images.get(suite, packages)
        with tempfile.TemporaryDirectory(prefix="machine-", dir=images.folder) as folder:
            machine = Machine(replace(base, packages=packages), image, Path(folder) / "machine", images.folder / "pip")
            for compiler in wanted:
                try:
                    result = run_tests(machine, _TESTS, logs / f"{compiler}.log", GRADER_CXX=compiler)
                except StepFailed as problem:
                    result = f"FAILS: {problem}"
                rows[compiler] = {"simulator": result}
                print(f"{compiler}: {result}", flush=True)
    return rows
