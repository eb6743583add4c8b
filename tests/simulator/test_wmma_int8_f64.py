"""Tests of WMMA on 8-bit integers and doubles: products equal numpy's bit for bit, and sums saturate."""

from __future__ import annotations

import re

import numpy as np
import pytest

RNG = np.random.default_rng(11)
LAUNCHERS = ["s8_16x16x16_00", "s8_16x16x16_01", "u8_32x8x16_10", "s8_8x32x16_11", "f64_8x8x4_01", "f64_8x8x4_10"]


def stored(matrix: np.ndarray, by_row: bool) -> np.ndarray:
    """Return a matrix as it lies in memory, with rows (or columns) 48 elements apart."""
    lines = matrix if by_row else matrix.T
    memory = np.full((32, 48), 77, dtype=matrix.dtype)
    memory[: lines.shape[0], : lines.shape[1]] = lines
    return memory


@pytest.mark.parametrize("by_row", [False, True])
@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_products(load, launcher, by_row):
    kind, m, n, k, columns_a, columns_b = re.fullmatch(r"(\w+)_(\d+)x(\d+)x(\d+)_(\d)(\d)", launcher).groups()
    m, n, k = int(m), int(n), int(k)
    dtype, sums = {"s8": (np.int8, np.int32), "u8": (np.uint8, np.int32), "f64": (np.float64, np.float64)}[kind]
    a, b, c = (RNG.integers(0 if kind == "u8" else -128, 128, shape) for shape in ((m, k), (k, n), (m, n)))
    out = np.full((32, 48), 5, dtype=sums)
    arguments = stored(a.astype(dtype), columns_a == "0"), stored(b.astype(dtype), columns_b == "0")
    outcome = load("wmma_int8_f64", checks=True)(launcher, *arguments, stored(c.astype(sums), by_row), out, by_row)
    assert outcome.error == 0 and not outcome.report["findings"], outcome
    (counted,) = outcome.report["kernels"]
    assert sum(operations for _, operations in counted["tensor_sites"]) == 2 * m * n * k
    expected = np.full((32, 48), 5, dtype=sums)
    lines = a @ b + c if by_row else (a @ b + c).T
    expected[: lines.shape[0], : lines.shape[1]] = lines
    np.testing.assert_array_equal(out, expected)


def test_sums_that_saturate(load):
    sums, of_asm = np.zeros((16, 16), dtype=np.int32), np.zeros((32, 4), dtype=np.int32)
    assert load("wmma_int8_f64", checks=True)("saturating", sums, of_asm).error == 0
    assert (sums == 2**31 - 1).all()  # the exact sum 2,147,483,000 + 16 * 200 exceeds this
    assert (of_asm[:, :3] == -(2**31)).all() and (of_asm[:, 3] == 7 - 16 * 200).all()
