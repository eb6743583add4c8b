"""Tests of WMMA: products of every shape, type and layout, compared with numpy; fragment layouts; memory accesses."""

from __future__ import annotations

import numpy as np
import pytest

from tests.simulator.harness import run

RNG = np.random.default_rng(5)
SHAPES = [(16, 16, 16), (32, 8, 16), (8, 32, 16)]


@pytest.fixture(params=[False, True], ids=["plain", "checked"])
def kernel(load, request):
    return load("wmma", checks=request.param)


def bfloat16(x: np.ndarray) -> np.ndarray:
    """Return floats truncated to 8 significant bits, which are exact bfloat16 values."""
    return (np.ascontiguousarray(x, dtype=np.float32).view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)


def stored(matrix: np.ndarray, ld: int, by_row: bool, dtype) -> np.ndarray:
    """Return a matrix as it lies in memory: rows or columns are `ld` elements apart, with other values in gaps."""
    lines = matrix if by_row else matrix.T
    memory = np.full((32, ld), 777, dtype=np.float32)
    memory[: lines.shape[0], : lines.shape[1]] = lines
    if dtype == "bf16":
        return (memory.view(np.uint32) >> 16).astype(np.uint16)
    return memory.astype(dtype)


CASES = [
    *[(f"f16_{m}x{n}x{k}", (m, n, k), np.float16, np.float32) for m, n, k in SHAPES],
    *[(f"bf16_{m}x{n}x{k}", (m, n, k), "bf16", np.float32) for m, n, k in SHAPES],
    ("tf32_16x16x8", (16, 16, 8), np.float32, np.float32),
    ("f16_sums_16x16x16", (16, 16, 16), np.float16, np.float16),
    ("f16_sums_8x32x16", (8, 32, 16), np.float16, np.float16),
]


@pytest.mark.parametrize("shared", [False, True], ids=["global", "shared"])
@pytest.mark.parametrize("layouts", range(8))
@pytest.mark.parametrize(("launcher", "shape", "dtype", "sum_type"), CASES, ids=[c[0] for c in CASES])
def test_products(kernel, launcher, shape, dtype, sum_type, layouts, shared):
    m, n, k = shape
    a_by_row, b_by_row, sums_by_row = not layouts & 1, not layouts & 2, bool(layouts & 4)
    a, b, c = (bfloat16(RNG.standard_normal(s)) for s in ((m, k), (k, n), (m, n)))
    lda, ldb, ldc = 40, 48, 36
    out = np.full((32, ldc), 555, dtype=sum_type)
    arguments = (
        stored(a, lda, a_by_row, dtype),
        stored(b, ldb, b_by_row, dtype),
        stored(c, ldc, sums_by_row, sum_type),
    )
    outcome = run(kernel, launcher, *arguments, out, lda, ldb, ldc, layouts, shared)
    if kernel.checks:
        (counted,) = outcome.report["kernels"]
        assert sum(operations for _, operations in counted["tensor_sites"]) == 2 * m * n * k
    expected = a.astype(np.float64) @ b.astype(np.float64) + c
    lines = expected if sums_by_row else expected.T
    rows, columns = lines.shape
    tolerance = 1e-6 if sum_type == np.float32 else 2e-3
    np.testing.assert_allclose(out[:rows, :columns], lines, atol=tolerance * 8, rtol=tolerance)
    assert (out[rows:] == 555).all() and (out[:, columns:] == 555).all()


def test_the_layout_of_fragments(kernel):
    numbers = np.arange(256, dtype=np.float32)
    a, b = np.zeros((2, 32, 16), dtype=np.float32)
    sums, counts = np.zeros((32, 8), dtype=np.float32), np.zeros(7, dtype=np.float32)
    run(kernel, "who_owns", numbers.astype(np.float16), numbers, a, b, sums, counts)
    assert counts.tolist() == [16, 8, 16, 4, 16, 4, 8]
    lane = np.arange(32)[:, None]
    group, pair = lane // 4, 2 * (lane % 4) + np.array([0, 1])
    places = [(0, 0), (8, 0), (0, 8), (8, 8)]
    by_row = np.hstack([16 * (group + row) + pair + column for row, column in places])
    np.testing.assert_array_equal(sums, by_row)
    np.testing.assert_array_equal(a, np.hstack([by_row, by_row]))  # f16 operands are stored twice
    # matrix_b in row_major: the column is the number of the lane's group of four. The two elements of a pair, and the
    # first two tiles, are neighbors along k.
    by_column = np.hstack([16 * (pair + k) + group + n for k, n in places])
    np.testing.assert_array_equal(b, np.hstack([by_column, by_column]))


def test_epilogue_through_the_elements(kernel):
    a, b = RNG.standard_normal((2, 16, 16)).astype(np.float16)
    out = np.zeros((16, 16), dtype=np.float16)
    run(kernel, "scale_and_clamp", a, b, out)
    expected = np.maximum((a.astype(np.float64) @ b.T.astype(np.float64) + 1) / 2, 0)
    np.testing.assert_allclose(out, expected, atol=2e-3, rtol=1e-3)


def test_sums_are_truncated_not_rounded(kernel):
    """Check 1 + 2^-24 + 2^-24 + ... in one product: the tensor core truncates sums to a float."""
    a = np.zeros((16, 16), dtype=np.float16)
    a[:, 0], a[:, 1] = 1, 2.0**-12
    b = np.zeros((16, 16), dtype=np.float16)
    b[0], b[1] = 1, 1.5 * 2.0**-12
    out, zero = np.zeros((32, 16), dtype=np.float32), np.zeros((32, 16), dtype=np.float32)
    big = np.zeros((32, 16), dtype=np.float16)
    big_a, big_b = big.copy(), big.copy()
    big_a[:16], big_b[:16] = a, b
    run(kernel, "f16_16x16x16", big_a, big_b, zero, out, 16, 16, 16, 4, False)
    assert (out[:16] == 1.0).all()  # rounding to nearest would give 1 + 2^-23


def test_tf32_rounds_to_ten_bits(kernel):
    x = np.concatenate([RNG.standard_normal(500), [np.inf, -np.inf, np.nan, 0.0, 1 + 2.0**-11, 1 + 2.0**-12]])
    x = x.astype(np.float32)
    out = np.empty_like(x)
    run(kernel, "round_tf32", x, out, x.size)
    bits = x[:500].view(np.uint32)
    np.testing.assert_array_equal(out[:500].view(np.uint32), (bits + 0x1000) & np.uint32(0xFFFFE000))
    np.testing.assert_array_equal(
        out[500:], np.array([np.inf, -np.inf, np.nan, 0.0, 1 + 2.0**-10, 1.0], dtype=np.float32)
    )
