"""Tests of atomic operations: the final values are right, and each thread's addition returns a different value."""

from __future__ import annotations

import functools

import numpy as np
import pytest

BLOCKS, THREADS = 5, 96
N = BLOCKS * THREADS
VALUES = np.arange(N) * 37 % 101 - 20

_INITIAL = np.array([3, 0, 2**30, -(2**30), -1, 0, 0, 0, -5, 0, 1000, 0, 0])


def expected_cells(dtype: type, bits: int) -> list[int]:
    mask = 2**bits - 1
    values = [int(v) & mask for v in VALUES]
    signed = np.issubdtype(dtype, np.signedinteger)

    def ordered(numbers: list[int], pick) -> int:
        if signed:
            return int(pick([n - 2**bits if n >= 2 ** (bits - 1) else n for n in numbers])) & mask
        return pick(numbers)

    initial = [int(v) & mask for v in _INITIAL]
    return [
        (initial[0] + sum(values)) & mask,
        values[-1],
        ordered([initial[2], *values], min),
        ordered([initial[3], *values], max),
        functools.reduce(lambda a, b: a & b, [v | 8 for v in values], initial[4]),
        functools.reduce(lambda a, b: a | b, values, initial[5]),
        functools.reduce(lambda a, b: a ^ b, values, initial[6]),
        3 * N & mask,
        ordered([initial[8], *values], max),
        N & mask,
    ]


@pytest.mark.parametrize(
    ("launcher", "dtype"), [("atomics_int", np.int32), ("atomics_unsigned", np.uint32), ("atomics_long", np.uint64)]
)
def test_integer_atomics(load, schedule, launcher, dtype):
    kernel = load("atomics")
    kernel.configure(**schedule)
    bits = np.dtype(dtype).itemsize * 8
    carrier = np.int32 if bits == 32 else np.int64
    cells, old = _INITIAL.astype(carrier), np.zeros(N, dtype=carrier)
    assert kernel(launcher, cells, old, BLOCKS, THREADS).error == 0
    got = [int(c) & (2**bits - 1) for c in cells]
    expected = expected_cells(dtype, bits)
    if not kernel.in_order or schedule != {"workers": 1, "schedule": "forward"}:
        got[1] = expected[1]  # any thread may exchange last
    assert got[:10] == expected
    seen = sorted(int(o) for o in old)
    assert seen[0] <= 3 <= seen[-1]
    if bits == 32:
        assert cells[10] == 1000 - 2 * N
    if launcher == "atomics_unsigned":
        assert cells[11] == N % 11
        assert cells[12] == (-N) % 11


def test_signed_long_minimum_and_maximum(load):
    cells = np.zeros(2, dtype=np.int64)
    assert load("atomics")("atomics_signed_long", cells, BLOCKS, THREADS).error == 0
    np.testing.assert_array_equal(cells, [int(VALUES.min()) << 33, int(VALUES.max()) << 33])


def test_float_atomics(load, schedule):
    kernel = load("atomics")
    kernel.configure(**schedule)
    cells, old = np.zeros(2, dtype=np.float32), np.zeros(N, dtype=np.float32)
    assert kernel("atomics_float", cells, old, BLOCKS, THREADS).error == 0
    assert cells[0] == VALUES.sum()
    assert cells[1] in VALUES
    doubles = np.zeros(1)
    assert kernel("atomics_double", doubles, BLOCKS, THREADS).error == 0
    assert doubles[0] == VALUES.sum()


def test_half_rounds_to_nearest_even(load):
    cells = np.array([0, 0, 0, 0], dtype=np.float16)
    assert load("atomics")("atomics_half", cells, 1, 1024).error == 0
    assert load("atomics")("atomics_half", cells, 2, 1024).error == 0
    # 512 + 0.25, 2048 + 1 and 1024 + 0.5 are halfway between two f16 numbers, and round to the even one.
    np.testing.assert_array_equal(cells, [512, 2048, 2048, -1024])


def test_bfloat16_rounds_to_nearest_even(load):
    cells = np.zeros(4, dtype=np.uint16)
    assert load("atomics")("atomics_bfloat16", cells, 1, 400).error == 0
    values = (cells.astype(np.uint32) << 16).view(np.float32)
    np.testing.assert_array_equal(values, [64, 256, 256, -128])


def test_compare_and_swap_of_two_bytes(load):
    cells = np.array([0x00050007], dtype=np.int32)
    assert load("atomics")("atomics_short", cells, 2, 100).error == 0
    assert cells[0] == (5 + 200) << 16 | 7


def test_shared_memory(load, schedule):
    kernel = load("atomics")
    kernel.configure(**schedule)
    x, bins = np.random.default_rng(0).integers(0, 1 << 20, 5000).astype(np.int32), np.zeros(16, dtype=np.int32)
    assert kernel("histogram", x, bins, len(x)).error == 0
    np.testing.assert_array_equal(bins, np.bincount(x & 15, minlength=16))


OPERATIONS = ["add", "sub", "min", "max", "exch", "cas", "and", "or", "xor", "inc", "dec"]
"""The operations in the order of the enumeration in one_atomic.cu."""
AFTER = {
    "add": lambda cell, operand, compare: cell + operand,
    "sub": lambda cell, operand, compare: cell - operand,
    "min": lambda cell, operand, compare: min(cell, operand),
    "max": lambda cell, operand, compare: max(cell, operand),
    "exch": lambda cell, operand, compare: operand,
    "cas": lambda cell, operand, compare: operand if cell == compare else cell,
    "and": lambda cell, operand, compare: cell & operand,
    "or": lambda cell, operand, compare: cell | operand,
    "xor": lambda cell, operand, compare: cell ^ operand,
    "inc": lambda cell, operand, compare: 0 if cell >= operand else cell + 1,
    "dec": lambda cell, operand, compare: operand if cell == 0 or cell > operand else cell - 1,
}
OF_ALL = ["add", "min", "max", "exch", "cas", "and", "or", "xor"]
HAS = {
    "int": (np.int32, [*OF_ALL, "sub"]),
    "unsigned": (np.uint32, [*OF_ALL, "sub", "inc", "dec"]),
    "unsigned_long": (np.uint64, OF_ALL),
    "signed_long": (np.int64, ["min", "max"]),
    "float": (np.float32, ["add", "exch"]),
    "double": (np.float64, ["add"]),
}


@pytest.mark.parametrize(("name", "operation"), [(name, op) for name, (_, ops) in HAS.items() for op in ops])
def test_each_operation_returns_the_old_value(load, name, operation):
    dtype = HAS[name][0]
    whole = np.issubdtype(dtype, np.integer)
    largest = int(np.iinfo(dtype).max) if whole else 100
    values = [0, 1, 5, 7, largest] if whole else [0.5, -3.25, 100.0]
    bits = 8 * np.dtype(dtype).itemsize
    # Atomics on a GPU compute modulo 2^bits.
    signed = whole and np.iinfo(dtype).min < 0
    for cell in values:
        for operand in values:
            x = np.array([cell, 0, operand, 5], dtype=dtype)
            carried = x if not whole else x.view(np.int32 if bits == 32 else np.int64)
            assert load("one_atomic")(f"one_{name}", carried, OPERATIONS.index(operation)).error == 0
            after = AFTER[operation](cell, operand, 5)
            if whole:
                after &= 2**bits - 1
                after -= 2**bits if signed and after > largest else 0
            assert (x[1], x[0]) == (cell, after), f"{operation} of {operand} to {cell}"


@pytest.mark.parametrize("name", ["half2", "bfloat162"])
def test_pairs_return_the_old_value(load, name):
    pairs = np.array([1.5, -2.0, 0.0, 0.0, 0.25, 8.0], dtype=np.float32)
    if name == "half2":
        x = pairs.astype(np.float16)
        assert load("one_atomic")("one_half2", x, OPERATIONS.index("add")).error == 0
        seen = x.astype(np.float32)
    else:
        x = (pairs.view(np.uint32) >> 16).astype(np.uint16)
        assert load("one_atomic")("one_bfloat162", x, OPERATIONS.index("add")).error == 0
        seen = (x.astype(np.uint32) << 16).view(np.float32)
    np.testing.assert_array_equal(seen, [1.75, 6.0, 1.5, -2.0, 0.25, 8.0])
