"""Tests of TMA: copies of boxes between global and shared memory, compared with a reference in numpy."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.seeds import SEED
from tests.simulator.harness import KERNELS, SimulatedKernel
from tests.simulator.tensor_box import FLOATS, REDUCTIONS, TYPES, Box, reduce, storage

#: The reductions that cp.reduce.async.bulk.tensor allows for each element type.
REDUCES = {
    "u4": ["add", "min", "max", "inc", "dec", "and", "or", "xor"],
    "i4": ["add", "min", "max", "and", "or", "xor"],
    "u8": ["add", "min", "max", "and", "or", "xor"],
    "i8": ["min", "max"],
    "f2": ["add", "min", "max"],
    "f4": ["add"],
    "bf16": ["add", "min", "max"],
}
#: The types and reductions of cp.reduce.async.bulk, in the order in which `reduce_run` of the kernels numbers them.
RUNS = [
    *[("u4", "add"), ("i4", "add"), ("u8", "add"), ("f4", "add"), ("f8", "add"), ("f2", "add"), ("bf16", "add")],
    *[("i8", "min"), ("u8", "max"), ("f2", "max"), ("bf16", "min"), ("i4", "min")],
    *[("u4", "inc"), ("u4", "dec"), ("u4", "and"), ("u8", "or"), ("u4", "xor")],
]


@functools.cache
def built(checks: bool) -> SimulatedKernel:
    return SimulatedKernel(KERNELS / "tensor_copies.cu", checks=checks)


def kernel(checks: bool = False) -> SimulatedKernel:
    built(checks).configure(checks=int(checks), workers=1, schedule="forward")
    return built(checks)


def values(type_: str, count: int, rng: np.random.Generator) -> np.ndarray:
    """Return random elements as bytes. Floats are multiples of 1000 plus multiples of 1/8, so sums are rounded."""
    if type_ not in FLOATS:
        return rng.integers(0, 256, count * storage(type_).itemsize, dtype=np.uint8)
    numbers = (rng.integers(-64, 64, count) / 8 + 1000 * rng.integers(-3, 4, count)).astype(np.float32)
    if type_ == "bf16":
        return (numbers.view(np.uint32) >> 16).astype(np.uint16).view(np.uint8)
    return numbers.astype(type_).view(np.uint8)


def padded(data: np.ndarray) -> np.ndarray:
    """Return bytes padded to 4-byte words, which the kernels take."""
    return np.pad(data, (0, -data.size % 16)).view(np.int32).copy()


@st.composite
def boxes(draw, reduced: bool = False, stored: bool = False) -> Box:
    """Draw random boxes. Boxes of stores and reductions (``stored``) do not begin before the tensor."""
    type_ = draw(st.sampled_from(sorted(REDUCES) if reduced else TYPES))
    item = storage(type_).itemsize
    rank = 2 if reduced else draw(st.integers(1, 5))
    swizzle = draw(st.integers(0, 3))
    row = 16 << swizzle if swizzle else 16 * draw(st.integers(1, 9))
    reduction = REDUCTIONS.index(draw(st.sampled_from(REDUCES[type_]))) if reduced else 0

    def several(strategy: st.SearchStrategy[int]) -> tuple[int, ...]:
        return tuple(draw(strategy) for _ in range(rank - 1))

    size = (draw(st.integers(1, 2 * row // item)), *several(st.integers(1, 6)))
    step = (draw(st.integers(1, 8)), *several(st.integers(1, 3)))
    box = (row // item, *several(st.integers(1, 5)))
    strides: list[int] = []
    extent = size[0] * item
    for n in size[1:]:
        strides.append(-(-extent // 16) * 16 + 16 * draw(st.integers(0, 2)))
        extent = strides[-1] * n
    at = tuple(draw(st.integers(0 if stored or reduced else -b - 1, n + 1)) for n, b in zip(size, box, strict=True))
    at = (at[0] - at[0] % (16 // item), *at[1:])  # rows are aligned to 16 bytes
    fill_nan = type_ in FLOATS and draw(st.booleans())
    return Box(type_, size, tuple(strides), box, step, at, swizzle, fill_nan, reduction)


OFFSETS = st.integers(0, 9).map(lambda lines: 128 * lines)
SEEDS = st.integers(0, 999).map(lambda seed: np.random.default_rng([SEED, seed]))


def loaded(box: Box, memory: np.ndarray, offset: int = 0, by: int = 0, checks: bool = False):
    """Return the bytes in shared memory after a load, and the outcome of the call."""
    tile, error = np.zeros(box.bytes, dtype=np.uint8).view(np.int32), np.ones(1, dtype=np.int32)
    outcome = kernel(checks)("run_load", padded(memory), box.numbers(), tile, error, offset, box.bytes, by)
    return tile.view(np.uint8), int(error[0]), outcome


def stored(box: Box, tile: np.ndarray, memory: np.ndarray, offset: int = 0, checks: bool = False):
    out, error = padded(memory), np.ones(1, dtype=np.int32)
    outcome = kernel(checks)("run_store", tile.view(np.int32).copy(), box.numbers(), out, error, offset, box.bytes)
    return out.view(np.uint8)[: memory.size], int(error[0]), outcome


@given(boxes(), OFFSETS, st.integers(0, 2), SEEDS, st.booleans())
def test_loads_copy_the_box(box, offset, by, rng, checks):
    memory = rng.integers(0, 256, box.extent, dtype=np.uint8)
    tile, error, outcome = loaded(box, memory, offset, by, checks)
    assert error == 0 and outcome.error == 0 and not outcome.report["findings"], outcome
    np.testing.assert_array_equal(tile, box.load(memory, offset))


@given(boxes(stored=True), OFFSETS, SEEDS, st.booleans())
def test_stores_copy_the_box(box, offset, rng, checks):
    memory = rng.integers(0, 256, box.written_extent, dtype=np.uint8)
    tile = rng.integers(0, 256, box.bytes, dtype=np.uint8)
    result, error, outcome = stored(box, tile, memory, offset, checks)
    assert error == 0 and outcome.error == 0 and not outcome.report["findings"], outcome
    np.testing.assert_array_equal(result, box.store(tile, memory, offset))


@given(boxes(reduced=True), OFFSETS, SEEDS, st.booleans())
def test_reductions(box, offset, rng, checks):
    memory = values(box.type, box.written_extent // box.item, rng)
    tile = values(box.type, box.bytes // box.item, rng)
    result, error, outcome = stored(box, tile, memory, offset, checks)
    assert error == 0 and outcome.error == 0 and not outcome.report["findings"], outcome
    np.testing.assert_array_equal(result, box.store(tile, memory, offset))


@pytest.mark.parametrize("which", range(len(RUNS)), ids=[f"{name}.{type_}" for type_, name in RUNS])
def test_reductions_of_runs(which, schedule):
    """Check that three blocks reduce the same operand into one array."""
    type_, name = RUNS[which]
    rng = np.random.default_rng([SEED, which])
    operand, before = values(type_, 64, rng), values(type_, 64, rng)
    run = kernel(checks=True)
    run.configure(**schedule)
    out = padded(before)
    outcome = run("run_reduce", which, padded(operand), out, operand.size, 3)
    assert outcome.error == 0 and not outcome.report["findings"], outcome
    for _ in range(3):
        before = reduce(type_, name, before, operand)
    np.testing.assert_array_equal(out.view(np.uint8)[: before.size], before)


#: A valid tensor map: 64 x 20 floats, boxes of 32 x 8.
RIGHT = Box("f4", (64, 20), (256,), (32, 8), (1, 1), (0, 0), swizzle=3)


def changed(**what: object) -> Box:
    return Box(**{**RIGHT.__dict__, **what})


def test_a_box_is_one_request_of_the_sectors_that_its_rows_touch():
    memory = np.zeros(RIGHT.extent, dtype=np.uint8)
    _, _, outcome = loaded(changed(at=(48, 15)), memory, checks=True)  # 16 of 32 columns, 5 of 8 rows are inside
    (site,) = [s for k in outcome.report["kernels"] for s in k["sites"] if s["access"] == "async read"]
    assert (site["requests"], site["bytes"], site["sectors"], site["ideal_sectors"]) == (1, 5 * 64, 10, 10)
    assert outcome.report["kernels"][0]["touched_bytes_read"] == 5 * 64


@pytest.mark.parametrize(
    ("box", "says"),
    [
        (changed(box=(256 + 32, 8), swizzle=0), "boxDim[0] is 288"),
        (changed(box=(32, 257)), "boxDim[1] is 257"),
        (changed(box=(33, 8), swizzle=0), "a multiple of 16 bytes"),
        (changed(box=(64, 8)), "must not exceed the 128 bytes of the swizzle"),
        (changed(swizzle=2), "must not exceed the 64 bytes of the swizzle"),
        (changed(stride=(264,)), "globalStrides[0] is 264"),
        (changed(step=(1, 9)), "elementStrides[1] is 9"),
        (changed(step=(1, 0)), "elementStrides[1] is 0"),
        (changed(type="i4", fill_nan=True), "not a floating-point type"),
    ],
)
def test_errors_of_encoding_name_the_argument(box, says):
    _, error, outcome = loaded(box, np.zeros(8192, dtype=np.uint8), checks=True)
    (finding,) = outcome.report["findings"]
    assert error == 1 and finding["kind"] == "refused"
    assert says in finding["payload"]["reason"]


@pytest.mark.parametrize("column", [1, -3, 33])
def test_a_box_that_is_not_aligned_to_16_bytes_is_a_finding(column):
    """Check that invalid copies are reported. On an H200, they end with an illegal instruction."""
    _, _, outcome = loaded(changed(at=(column, 0)), np.zeros(8192, dtype=np.uint8), checks=True)
    (finding,) = outcome.report["findings"]
    assert (
        outcome.error
        and finding["kind"] == "instruction_misused"
        and "multiple of 16 bytes" in finding["payload"]["reason"]
    )


@pytest.mark.parametrize(("type_", "wrong"), [("i8", True), ("u8", False), ("i4", False)])
@pytest.mark.parametrize("name", ["and", "or", "xor"])
def test_bitwise_reductions_of_signed_64_bit_integers_are_refused(type_, wrong, name):
    """Check that invalid copies are reported. On an H200, they end with an illegal instruction."""
    box = changed(type=type_, box=(8, 8), swizzle=0, reduction=REDUCTIONS.index(name))
    memory = np.zeros(8192, dtype=np.uint8)
    _, _, outcome = stored(box, np.zeros(box.bytes, dtype=np.uint8), memory, checks=True)
    details = [finding["payload"]["reason"] for finding in outcome.report["findings"]]
    assert [("does not support this reduction" in detail) for detail in details] == [True] * wrong


@pytest.mark.parametrize(("elements", "wrong"), [(61, True), (64, False)])
def test_a_store_ends_at_the_next_multiple_of_16_bytes_after_the_row(elements, wrong):
    box = Box("f4", (elements,), (), (32,), (1,), (32,))
    out, error = np.zeros(elements, dtype=np.int32), np.ones(1, dtype=np.int32)
    tile = np.ones(32, dtype=np.int32)
    outcome = kernel(True)("run_store", tile, box.numbers(), out, error, 0, box.bytes)
    kinds = [finding["kind"] for finding in outcome.report["findings"]]
    assert kinds == ["out_of_bounds"] * wrong, outcome
    assert out[32:].all()


@pytest.mark.parametrize(
    ("box", "what"),
    [(changed(box=(16, 8)), "shorter than the swizzle span"), (changed(swizzle=5), "SWIZZLE_128B_ATOM")],
)
def test_unsupported_features_are_refused_by_name(box, what):
    _, error, outcome = loaded(box, np.zeros(8192, dtype=np.uint8), checks=True)
    assert error == 801 and what in outcome.report["findings"][0]["payload"]["reason"]


@pytest.mark.parametrize("checks", [False, True], ids=["plain", "checked"])
@pytest.mark.parametrize(("m", "n", "k"), [(32, 16, 32), (40, 20, 300), (5, 36, 4)])
def test_a_gemm_through_a_ring_of_stages(load, schedule, checks, m, n, k):
    rng = np.random.default_rng([SEED, m])
    a, b = rng.standard_normal((m, k)).astype(np.float32), rng.standard_normal((n, k)).astype(np.float32)
    c = np.zeros((m, n), dtype=np.float32)
    ring = load("tensor_ring", checks=checks)
    ring.configure(**schedule)
    outcome = ring("run_product", a, b, c, m, n, k)
    assert outcome.error == 0 and not outcome.report["findings"], outcome
    np.testing.assert_allclose(c, a @ b.T, atol=1e-4)


def test_the_driver_s_function_is_found(load):
    out = np.zeros(1, dtype=np.int32)
    outcome = load("tensor_ring")("run_entry_points", out)
    assert out[0] == 15
    assert [f["payload"]["reason"] for f in outcome.report["findings"] if "OnToast" in f["payload"]["reason"]]


def test_the_driver_s_function_can_be_called_by_name(tmp_path):
    """Call cuTensorMapEncodeTiled directly, like a program that is linked with -lcuda."""
    file = tmp_path / "named.cu"
    file.write_text(
        "#include <cuda.h>\n#include <cuda_runtime.h>\n"
        'extern "C" void run(int* out, cudaStream_t stream) {\n'
        "    CUtensorMap map;\n    cuuint64_t size = 0;\n    cuuint32_t box = 16, step = 1;\n"
        "    int error = cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 1, out, &size, nullptr, &box,\n"
        "        &step, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE,\n"
        "        CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);\n"
        "    cudaMemcpy(out, &error, sizeof error, cudaMemcpyHostToDevice);\n}\n"
    )
    out = np.zeros(4, dtype=np.int32)
    outcome = SimulatedKernel(file)("run", out)
    assert out[0] == 1 and "globalDim[0] is 0" in outcome.report["findings"][0]["payload"]["reason"]
