"""Blocks on several OS threads.

Check that outputs, reports and printed text are byte for byte the same as if blocks run one after another.
"""

from __future__ import annotations

import functools
import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.simulator.harness import KERNELS, SimulatedKernel
from tests.simulator.test_random_accesses import SIZE, indices

BLOCKS = 13
F, I = np.float32, np.int32  # noqa: E741

CASES: dict[str, tuple[Any, ...]] = {
    "apart": (np.arange(200, dtype=F), np.zeros(64 * BLOCKS, F), BLOCKS, 200),
    "last_block": (np.zeros(BLOCKS, F), np.zeros(1, F), BLOCKS),
    "readers": (np.zeros(64 * BLOCKS, I), BLOCKS, 50),
    "late": (np.zeros(32 * BLOCKS, I), BLOCKS),
    **{f"adds, from {k}": (np.zeros(2, F), 40, k) for k in (0, 1, 7)},
    **{f"prints, from {k}": (np.zeros(BLOCKS, I), BLOCKS, k) for k in (0, 5)},
    **{f"locks, from {k}": (np.ones(1, I), BLOCKS, k) for k in (0, 5)},
    **{f"meeting, from {k}": (np.zeros(BLOCKS, I), BLOCKS, k) for k in (0, 5)},
    **{f"memory, from {k}": (np.zeros(BLOCKS, I), BLOCKS, k) for k in (0, 5)},
    **{f"fault, from {k}, {how}": (np.zeros(BLOCKS, I), BLOCKS, k, how) for k in (0, 6) for how in range(5)},
    **{
        f"conflict, from {k}, {how}": (np.zeros(64 * BLOCKS, I), np.zeros(64 * BLOCKS, I), BLOCKS, k, how)
        for k in (0, 6)
        for how in range(4)
    },
}
UNDEFINED = ("conflict", "locks", "fault", "last_block")
"""Cases that may differ without checks: non-atomic accesses conflict, or a launch ends while later blocks run."""


def outcome(kernel: SimulatedKernel, launcher: str, arguments: tuple[Any, ...], workers: int) -> tuple[Any, ...]:
    kernel.configure(workers=workers, spin_rounds=1000)
    given = [argument.copy() if isinstance(argument, np.ndarray) else argument for argument in arguments]
    result = kernel(launcher, *given)
    outputs = [argument.tobytes() for argument in given if isinstance(argument, np.ndarray)]
    return result.error, result.output, json.dumps(result.report), outputs


@pytest.mark.parametrize("checks", [True, False])
@pytest.mark.parametrize("case", CASES)
def test_blocks_appear_to_run_one_after_another(load, case: str, checks: bool):
    kernel, launcher = load("blocks_in_order", checks), case.split(",")[0]
    expected = outcome(kernel, launcher, CASES[case], 1)
    for workers in (2, 4, 2):
        error, output, report, outputs = outcome(kernel, launcher, CASES[case], workers)
        assert (error, output, report) == expected[:3]
        assert outputs == expected[3] or (not checks and launcher in UNDEFINED)


@functools.cache
def random_accesses() -> SimulatedKernel:
    return SimulatedKernel(KERNELS / "random_global_accesses.cu", checks=True)


@settings(max_examples=100)
@given(st.data(), st.sampled_from([(6, 16), (3, 32), (12, 8)]), st.integers(0, 26), st.integers(0, 3))
def test_random_accesses_have_the_same_result(data, shape: tuple[int, int], kinds: int, barriers: int):
    blocks, threads = shape
    cells = [data.draw(indices(blocks * threads)) for _ in range(3)]
    arguments = (*cells, np.zeros(SIZE, I), np.zeros(blocks * threads, I), blocks, threads, kinds, barriers)
    expected = outcome(random_accesses(), "run", arguments, 1)
    assert outcome(random_accesses(), "run", arguments, 2) == expected
    assert outcome(random_accesses(), "run", arguments, 4) == expected
