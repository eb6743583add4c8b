"""Tests of the line table of a library: the simulator's reader and pyelftools return the same rows."""

from __future__ import annotations

import pytest
from elftools.elf.elffile import ELFFile

from grader.execution.build.build import compile_kernel
from grader.simulator.line_table import rows
from tests.simulator.harness import COMPILERS, KERNELS


@pytest.mark.parametrize("compiler", COMPILERS)
def test_rows_are_those_of_pyelftools(compiler: str) -> None:
    kernel = compile_kernel(KERNELS / "findings.cu", "cpu", checks=True, compiler=compiler)
    found, expected = [], []
    with open(kernel.library, "rb") as stream:
        dwarf = ELFFile(stream).get_dwarf_info()
        for unit in dwarf.iter_CUs():
            program = dwarf.line_program_for_CU(unit)
            found += list(rows(program))
            states = [entry.state for entry in program.get_entries() if entry.state is not None]
            expected += [(s.address, s.file, s.line, s.column) for s in states if not s.end_sequence]
    assert len(found) > 100 and found == expected
