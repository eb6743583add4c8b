"""Random accesses to global memory: the checks report a race or an access past the end exactly if a model does.

The model examines every pair of accesses. Two threads race if they access one cell, at least one of them changes it,
at least one access is not atomic, and no barrier of their block separates them. Nothing orders two blocks.

The checks store for each cell the last write and a set of either reads or atomic operations. Therefore a read that is
ordered after an atomic operation hides it, and vice versa. For such programs, the test asserts only that reported races
are races.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.simulator.harness import KERNELS, SimulatedKernel
from tests.simulator.test_random_accesses import ABSENT, SIZE, indices

READ, WRITE, ADD = range(3)  # the same numbers as in the kernel
T = np.arange(64, dtype=np.int32)
NO_THREAD = np.full(64, ABSENT, dtype=np.int32)


@functools.cache
def kernel() -> SimulatedKernel:
    return SimulatedKernel(KERNELS / "random_global_accesses.cu", checks=True)


class Program(NamedTuple):
    """The three accesses of each thread: their cells, and the kind of each access."""

    cells: list[np.ndarray]
    kinds: tuple[int, int, int]
    barriers: int
    blocks: int


@st.composite
def programs(draw) -> Program:
    blocks, threads = draw(st.sampled_from([(2, 1), (2, 32), (3, 31), (2, 48), (1, 64)]))
    kind = st.sampled_from([READ, WRITE, ADD])
    cells = [draw(indices(blocks * threads)) for _ in range(3)]
    return Program(cells, (draw(kind), draw(kind), draw(kind)), draw(st.integers(0, 3)), blocks)


class Truth(NamedTuple):
    between: bool
    """True if threads of different blocks race."""
    within: bool
    past: bool
    """True if an access is past the end."""
    hidden: bool
    """True if a read and an atomic operation of one cell are ordered, so the checks may miss the race with another."""


def truth(program: Program) -> Truth:
    """Return the expected findings, from all pairs of accesses."""
    cell, threads = np.concatenate(program.cells), len(program.cells[0])
    thread = np.tile(np.arange(threads), 3)
    block = thread // (threads // program.blocks)
    phase = np.repeat([0, program.barriers & 1, (program.barriers & 1) + (program.barriers >> 1)], threads)
    kind = np.repeat(program.kinds, threads)

    def same(values: np.ndarray) -> np.ndarray:
        return values[:, None] == values

    harmless = same(kind) & (kind != WRITE)
    touching = same(cell) & (cell != ABSENT) & (cell < SIZE)
    race = touching & ~same(thread) & ~harmless
    ordered = same(thread) | (same(block) & ~same(phase))
    return Truth(
        between=bool((race & ~same(block)).any()),
        within=bool((race & same(block) & same(phase)).any()),
        past=bool((cell >= SIZE).any()),
        hidden=bool((touching & ordered & (kind == ADD) & (kind == READ)[:, None]).any()),
    )


@settings(max_examples=400)
@given(programs(), st.sampled_from(["forward", "reverse", "random:1"]), st.sampled_from([1, 2]))
@example(Program([T, T, T], (WRITE, READ, ADD), 0, 2), "forward", 1)
@example(Program([T // 32 * 32, NO_THREAD, NO_THREAD], (ADD, READ, READ), 0, 2), "forward", 1)
@example(Program([T % 32, T % 32, NO_THREAD], (WRITE, READ, READ), 1, 2), "reverse", 1)
@example(Program([T, NO_THREAD, 63 - T], (WRITE, READ, ADD), 2, 1), "forward", 1)
@example(Program([T, T, T + SIZE - 63], (READ, READ, ADD), 0, 2), "forward", 1)
def test_the_checks_agree_with_the_model(program: Program, schedule: str, workers: int):
    threads = len(program.cells[0]) // program.blocks
    cells, out = np.zeros(SIZE, dtype=np.int32), np.zeros(len(program.cells[0]), dtype=np.int32)
    kinds = program.kinds[0] + 3 * program.kinds[1] + 9 * program.kinds[2]
    kernel().configure(schedule=schedule, workers=workers)
    outcome = kernel()("run", *program.cells, cells, out, program.blocks, threads, kinds, program.barriers)
    found = {finding["kind"] for finding in outcome.report["findings"]}
    true = truth(program)
    assert ("out_of_bounds" in found) == true.past, found
    if true.past:  # an access past the end may end the kernel before the race
        return
    assert found <= {"between_blocks", "within_block", "within_warp"}
    if workers == 1:  # the checks do not store the time of the second reader
        assert true.between or "between_blocks" not in found
        assert true.within or found <= {"between_blocks"}
    assert bool(found) == (true.between or true.within) or true.hidden
    assert found or outcome.error == 0
