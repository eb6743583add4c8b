"""Tests of mma shapes: each row of the table gives the right result and counters, and other shapes are refused."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import torch

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
SHAPES = [
    (int(m), int(n), int(k), *types)
    for m, n, k, *types in re.findall(
        r"^SIM_MMA\( *(\d+), *(\d+), *(\d+), *(\w+), *(\w+), *(\w+)\)$",
        (INCLUDE_DIR / "sim/mma_shapes.def").read_text(),
        re.MULTILINE,
    )
]
EACH_SHAPE = pytest.mark.parametrize("shape", SHAPES, ids=lambda s: f"m{s[0]}n{s[1]}k{s[2]}_{'_'.join(s[3:])}")
BITS = {"f16": 16, "bf16": 16, "tf32": 32, "f32": 32, "f64": 64, "s8": 8, "u8": 8, "s32": 32, "e4m3": 8, "e5m2": 8}
FLOAT8 = {"e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2}


def registers(shape: tuple) -> tuple[int, int, int]:
    """Return the number of registers of a lane for A, B and C (32 bits; 64 bits for f64)."""
    m, n, k, d, a, b = shape
    each = max(BITS[d], 32)
    return m * k * BITS[a] // 32 // each, n * k * BITS[b] // 32 // each, m * n * BITS[d] // 32 // each


def opcode(shape: tuple) -> str:
    m, n, k, d, a, b = shape
    return f"mma.sync.aligned.m{m}n{n}k{k}.row.col.{d}.{a}.{b}.{d}"


def kernel_of(number: int, shape: tuple) -> str:
    """Return a kernel that executes one instruction with the given registers of each lane."""
    count_a, count_b, count_d = registers(shape)
    kind, type_ = {"f64": ("d", "double")}.get(shape[3], ("r", "unsigned"))
    result, held = ("f", "float") if shape[3] == "f32" else (kind, type_)
    lists, first = [], 0
    for count in (count_d, count_a, count_b, count_d):
        lists.append("{" + ", ".join(f"%{first + i}" for i in range(count)) + "}")
        first += count
    inputs = [f'"{kind}"(a[{count_a} * lane + {i}])' for i in range(count_a)]
    inputs += [f'"{kind}"(b[{count_b} * lane + {i}])' for i in range(count_b)]
    inputs += [f'"{result}"(c[{count_d} * lane + {i}])' for i in range(count_d)]
    outputs = ", ".join(f'"={result}"(r[{i}])' for i in range(count_d))
    return f"""
__global__ void multiply_{number}(const {type_}* a, const {type_}* b, const {held}* c, {held}* d) {{
    int lane = threadIdx.x;
    {held} r[{count_d}];
    asm volatile("{opcode(shape)} {", ".join(lists)};" : {outputs} : {", ".join(inputs)});
    for (int i = 0; i < {count_d}; ++i) d[{count_d} * lane + i] = r[i];
}}
extern "C" void shape_{number}(const {type_}* a, const {type_}* b, const {held}* c, {held}* d, cudaStream_t stream) {{
    multiply_{number}<<<1, 32, 0, stream>>>(a, b, c, d);
}}
"""


EVERY_SHAPE = "#include <cuda_runtime.h>\n" + "".join(kernel_of(i, shape) for i, shape in enumerate(SHAPES))


def fragment(matrix: np.ndarray, type_: str) -> np.ndarray:
    """Return an operand's registers, [lane][register]. Lane 4 g + t has rows g and g + 8, and word t along k.

    ``matrix`` is A as [M, K], or B transposed, as [N, K].
    """
    rows, k = matrix.shape
    each = max(1, 32 // BITS[type_])
    held = []
    for lane in range(32):
        g, t = lane // 4, lane % 4
        words = [
            encode(matrix[row, first + t * each :][:each], type_)
            for first in range(0, k, 4 * each)
            for row in range(g, rows, 8)
        ]
        held.append(np.concatenate(words))
    return np.stack(held)


def encode(values: np.ndarray, type_: str) -> np.ndarray:
    """Return the bit patterns that represent numbers in registers."""
    if type_ == "f64":
        return values.astype(np.float64)
    if type_ in ("f16", "s8", "u8"):
        return values.astype({"f16": np.float16, "s8": np.int8, "u8": np.uint8}[type_]).view(np.int32)
    if type_ == "bf16":
        return (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16).view(np.int32)
    if type_ in FLOAT8:
        return torch.from_numpy(values).to(FLOAT8[type_]).view(torch.uint8).numpy().copy().view(np.int32)
    return values.astype(np.float32).view(np.int32)


def accumulators(matrix: np.ndarray, type_: str) -> np.ndarray:
    """Return the lanes' registers of C or D: rows g and g + 8, columns 2t and 2t + 1."""
    held = [matrix[lane // 4 :: 8, 2 * (lane % 4) : 2 * (lane % 4) + 2].ravel() for lane in range(32)]
    dtype = {"f16": np.float16, "f32": np.float32, "f64": np.float64, "s32": np.int32}[type_]
    numbers = np.stack(held).astype(dtype)
    return numbers.view(np.int32) if type_ == "f16" else numbers


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> SimulatedKernel:
    path = tmp_path_factory.mktemp("tensor_core") / "kinds.cu"
    path.write_text(SOURCE)
    return SimulatedKernel(path, checks=True)


@pytest.fixture(scope="module")
def every_shape(tmp_path_factory: pytest.TempPathFactory) -> SimulatedKernel:
    path = tmp_path_factory.mktemp("tensor_core") / "every_shape.cu"
    path.write_text(EVERY_SHAPE)
    return SimulatedKernel(path, checks=True)


@EACH_SHAPE
def test_mma_multiplies_the_matrices_and_is_counted(every_shape: SimulatedKernel, shape: tuple) -> None:
    """Use small integers: every format represents the inputs and all sums exactly."""
    m, n, k, d, a, b = shape
    random = np.random.default_rng(SHAPES.index(shape))
    lowest = {"u8": 0}
    end = 9 if {a, b} & set(FLOAT8) else 10  # e5m2 does not hold 9
    left = random.integers(lowest.get(a, 1 - end), end, (m, k))
    right = random.integers(lowest.get(b, 1 - end), end, (k, n))
    added = random.integers(-50, 50, (m, n))
    if a == "u8":
        left[0, 0] = 255  # unsigned
    if b == "s8":
        right[0, 0] = -128
    out = np.zeros_like(accumulators(added, d))
    outcome = every_shape(
        f"shape_{SHAPES.index(shape)}", fragment(left, a), fragment(right.T, b), accumulators(added, d), out
    )
    assert outcome.error == 0 and not outcome.report["findings"]
    np.testing.assert_array_equal(out, accumulators(left @ right + added, d))
    (counted,) = outcome.report["kernels"][0]["tensor_sites"]
    assert counted[1] == 2 * m * n * k


@pytest.mark.skipif(not shutil.which("nvcc"), reason="no nvcc")
def test_nvcc_takes_every_shape(tmp_path: Path) -> None:
    (tmp_path / "every_shape.cu").write_text(EVERY_SHAPE)
    command = ["nvcc", "-arch=sm_90", "-cubin", "-o", str(tmp_path / "out"), str(tmp_path / "every_shape.cu")]
    assert subprocess.run(command, capture_output=True, text=True).stderr == ""


@pytest.mark.parametrize("kind", [-1, len(SHAPES), 1 << 30])
def test_unknown_kinds_are_refused_by_name(kernel: SimulatedKernel, kind: int) -> None:
    outcome = kernel("of_kind", kind, np.zeros(32, dtype=np.int32))
    assert outcome.error == 715  # cudaErrorIllegalInstruction
    (finding,) = outcome.report["findings"]
    assert finding["kind"] == "illegal_instruction"
    assert finding["payload"]["reason"] == "unsupported mma shape or types"
