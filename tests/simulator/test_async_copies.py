"""The sectors of copies by cp.async, as Nsight Compute counts them on an H200.

``python -m tests.gpu.compare_counters async_copies`` compares the sums of such copies with Nsight Compute's.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from tests.simulator.harness import KERNELS, SimulatedKernel

PITCH = 8192
SIDE_BY_SIDE = {2: 16, 4: 16, 8: 16, 16: 16, 32: 16}
HALF_THE_ROWS = {2: 24, 4: 20, 8: 18, 16: 18, 32: 16}
MEASURED = [
    # bytes between the rows, offset of the first row, distance in global memory, sectors for each length of a row
    (0, 0, None, SIDE_BY_SIDE),
    (0, 0, PITCH, SIDE_BY_SIDE),
    (0, 16, None, {2: 20, 4: 20, 8: 20, 16: 20, 32: 20}),
    (0, 16, PITCH, {2: 32, 4: 24, 8: 20, 16: 20, 32: 20}),
    (16, 0, None, HALF_THE_ROWS),
    (16, 0, PITCH, HALF_THE_ROWS),
    (16, 16, None, {**HALF_THE_ROWS, 32: 20}),
    (16, 16, PITCH, {**HALF_THE_ROWS, 32: 20}),
    (32, 0, None, SIDE_BY_SIDE),
    (32, 0, PITCH, SIDE_BY_SIDE),
    (32, 16, None, {2: 32, 4: 24, 8: 20, 16: 20, 32: 20}),
    (32, 16, PITCH, {2: 32, 4: 24, 8: 20, 16: 20, 32: 20}),
    (48, 0, None, HALF_THE_ROWS),
    (48, 0, PITCH, HALF_THE_ROWS),
    (48, 16, None, {**HALF_THE_ROWS, 32: 20}),
    (48, 16, PITCH, {**HALF_THE_ROWS, 32: 20}),
]


@cache
def kernel() -> SimulatedKernel:
    return SimulatedKernel(KERNELS / "async_copies.cu", checks=True)


def counted(*pattern: int) -> dict[str, int]:
    """Return the counters of the copies of one pattern."""
    source, out = np.arange(4 * PITCH, dtype=np.float32), np.zeros(128, dtype=np.float32)
    outcome = kernel()("copy_rows", source, out, *pattern)
    _, lanes, _, _, pitch = pattern
    assert outcome.error == 0 and not outcome.report["findings"]
    rows = [source[pitch // 4 * row :][: 4 * lanes] for row in range(32 // lanes)]
    assert np.array_equal(out, np.concatenate(rows))
    sites = [site for each in outcome.report["kernels"] for site in each["sites"]]
    (reads,) = (site for site in sites if site["space"] == "global" and "read" in site["access"])
    return reads


@pytest.mark.parametrize(("padding", "start", "pitch", "measured"), MEASURED)
def test_copies_that_bypass_l1_count_the_sectors_of_both_memories(
    padding: int, start: int, pitch: int | None, measured: dict[int, int]
) -> None:
    sectors = {}
    for lanes in measured:
        reads = counted(True, lanes, padding, start, pitch or 16 * lanes)
        assert (reads["requests"], reads["bytes"], reads["ideal_sectors"]) == (1, 512, 16)
        sectors[lanes] = reads["sectors"]
    assert sectors == measured


@pytest.mark.parametrize(("padding", "start", "pitch", "measured"), MEASURED)
def test_copies_through_l1_count_the_sectors_that_they_read(
    padding: int, start: int, pitch: int | None, measured: dict[int, int]
) -> None:
    for lanes in measured:
        assert counted(False, lanes, padding, start, pitch or 16 * lanes)["sectors"] == 16
