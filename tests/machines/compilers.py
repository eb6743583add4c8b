"""The simulator's tests with each supported compiler."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tests.machines import table
from tests.machines.machine import Images, Machine
from tests.machines.steps import StepFailed, run_tests

# Tests of behavior in which compilers may differ: instrumentation, inlining, memory layout, arithmetic.
_NAMES = ("corpus", "counters", "faults", "half", "half_by_value", "language", "math", "operations", "runtime_api")
_NAMES += ("shared_memory", "structures_by_value", "symbols", "vector_types", "warp", "wmma")
_TESTS = " ".join(f"tests/simulator/test_{name}.py" for name in _NAMES)


def try_compilers(images: Images, logs: Path, names: Sequence[str]) -> dict[str, dict[str, str]]:
    """Return the test results for each named compiler, or for all."""
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
                # Some tests run the programs g++ and clang++, so link the wanted compiler under this name.
                plain = compiler.partition("-")[0]
                named = f"mkdir -p ~/{compiler} && ln -sf /usr/bin/{compiler} ~/{compiler}/{plain}"
                path = f"/home/{base.user}/{compiler}:/usr/local/bin:/usr/bin:/bin"
                try:
                    result = run_tests(machine, _TESTS, logs / f"{compiler}.log", named, PATH=path, GRADER_CXX=plain)
                except StepFailed as problem:
                    result = f"FAILS: {problem}"
                rows[compiler] = {"simulator": result}
                print(f"{compiler}: {result}", flush=True)
    return rows
