"""Kinds of products on tensor cores: each is what its name says, and a number that is none is no other kind."""

from __future__ import annotations

import re

import numpy as np
import pytest

from grader.simulator.library import INCLUDE_DIR
from tests.simulator.harness import SimulatedKernel

SOURCE = """
#include <cuda_runtime.h>
#include "sim/tensor_core.h"

__global__ void multiply(int kind, unsigned* out) {
    sim::Registers d = sim::mma(SIM_HERE, static_cast<sim::Mma>(kind), 0, 0, 0, 0, 0);
    out[threadIdx.x] = static_cast<unsigned>(d.r01);
}
extern "C" void of_kind(int kind, unsigned* out, cudaStream_t stream) { multiply<<<1, 32, 0, stream>>>(kind, out); }
"""
KINDS = re.findall(r"^    (m\d+n\d+k\d+)_\w+,$", (INCLUDE_DIR / "sim/tensor_core.h").read_text(), re.MULTILINE)


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> SimulatedKernel:
    path = tmp_path_factory.mktemp("tensor_core") / "kinds.cu"
    path.write_text(SOURCE)
    return SimulatedKernel(path, checks=True)


@pytest.mark.parametrize("kind", range(len(KINDS)), ids=KINDS)
def test_a_kind_counts_its_operations(kernel: SimulatedKernel, kind: int) -> None:
    outcome = kernel("of_kind", kind, np.zeros(32, dtype=np.int32))
    assert outcome.error == 0 and not outcome.report["findings"]
    m, n, k = map(int, re.findall(r"\d+", KINDS[kind]))
    (counted,) = outcome.report["kernels"][0]["tensor_sites"]
    assert counted[1] == 2 * m * n * k


@pytest.mark.parametrize("kind", [-1, len(KINDS), 1 << 30])
def test_what_is_no_kind_is_refused_by_name(kernel: SimulatedKernel, kind: int) -> None:
    outcome = kernel("of_kind", kind, np.zeros(32, dtype=np.int32))
    assert outcome.error == 715  # cudaErrorIllegalInstruction
    (finding,) = outcome.report["findings"]
    assert finding["kind"] == "illegal_instruction"
    assert finding["detail"] == "a product on tensor cores of a kind that there is not"


def test_the_table_of_loads_is_a_table() -> None:
    """It is the only specification: four kinds of access, each beginning in one column, what it is in another."""
    text = (INCLUDE_DIR / "mma.h").read_text()
    head = text[: text.index("#pragma once")]
    rows = re.findall(r"^//   (\S.*?)  +(\S.*)$", head, re.MULTILINE)
    assert [left for left, _ in rows] == [
        "f16 factors from shared memory",
        "other 16-bit elements",
        "f32 sums, layout along the rows",
        "f32 sums the other way, tf32",
    ]
    assert len({line.index(right) for _, right in rows for line in head.splitlines() if line.endswith(right)}) == 1
