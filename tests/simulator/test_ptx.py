"""Tests of inline PTX: the result of each instruction, and the lane that holds each element of a matrix."""

from __future__ import annotations

import numpy as np
import pytest

from grader.frontend.ptx_instructions import (
    EXAMPLES,
    function_for,
    tensor_access,
    tensor_product,
    wgmma_form,
)
from tests.simulator.harness import run

RNG = np.random.default_rng(3)
LANE = np.arange(32)
GROUP, PAIR = LANE // 4, LANE % 4

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


@pytest.fixture(params=[False, True], ids=["plain", "checked"])
def kernel(load, request):
    return load("ptx", checks=request.param)


# ------------------------------------------------------------------------------------------------------- tensor cores


def factor_a(matrix: np.ndarray, per_register: int) -> np.ndarray:
    """Return each lane's registers for a 16 x k operand A of mma.sync, as [lane, register, element]."""
    registers = []
    for block in range(0, matrix.shape[1], 4 * per_register):
        for row in (GROUP, GROUP + 8):
            columns = block + per_register * PAIR[:, None] + np.arange(per_register)
            registers.append(matrix[row[:, None], columns])
    return np.stack(registers, axis=1)


def factor_b(matrix: np.ndarray, per_register: int) -> np.ndarray:
    """Return each lane's registers for a k x 8 operand B of mma.sync."""
    registers = []
    for block in range(0, matrix.shape[0], 4 * per_register):
        rows = block + per_register * PAIR[:, None] + np.arange(per_register)
        registers.append(matrix[rows, GROUP[:, None]])
    return np.stack(registers, axis=1)


def sums(matrix: np.ndarray) -> np.ndarray:
    """Return each lane's four accumulators of mma.sync, for a 16 x 8 matrix."""
    columns = 2 * PAIR[:, None] + np.array([0, 1])
    return np.hstack([matrix[GROUP[:, None], columns], matrix[GROUP[:, None] + 8, columns]])


def as_words(registers: np.ndarray, count: int) -> np.ndarray:
    """Return registers as int32, padded with zeros to `count` for each lane."""
    words = np.ascontiguousarray(registers).reshape(32, -1).view(np.int32)
    return np.ascontiguousarray(np.hstack([words, np.zeros((32, count - words.shape[1]), dtype=np.int32)]))


def bfloat16_bits(x: np.ndarray) -> np.ndarray:
    return (x.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)


@pytest.mark.parametrize(("kind", "k", "name"), [(0, 16, "f16"), (1, 16, "bf16"), (2, 8, "tf32"), (3, 8, "f16, k = 8")])
def test_mma_with_float_accumulators(kernel, kind, k, name):
    a, b, c = (RNG.integers(-8, 9, shape).astype(np.float32) / 4 for shape in ((16, k), (k, 8), (16, 8)))
    per_register = 1 if kind == 2 else 2
    convert = {1: bfloat16_bits, 2: lambda x: x.astype(np.float32)}.get(kind, lambda x: x.astype(np.float16))
    ra, rb = as_words(convert(factor_a(a, per_register)), 4), as_words(convert(factor_b(b, per_register)), 2)
    d = np.zeros((32, 4), dtype=np.float32)
    run(kernel, "multiply_floats", ra, rb, np.ascontiguousarray(sums(c)), d, kind)
    np.testing.assert_array_equal(d, sums(a @ b + c))


def test_tf32_ignores_the_low_bits(kernel):
    a, b = np.full((16, 8), 1 + 2.0**-12), np.ones((8, 8))
    d = np.zeros((32, 4), dtype=np.float32)
    words = [as_words(factor_a(a, 1).astype(np.float32), 4), as_words(factor_b(b, 1).astype(np.float32), 2)]
    run(kernel, "multiply_floats", *words, np.zeros((32, 4), dtype=np.float32), d, 2)
    assert (d == 8).all()


def test_mma_with_half_accumulators(kernel):
    a, b, c = (RNG.standard_normal(shape).astype(np.float16) for shape in ((16, 16), (16, 8), (16, 8)))
    d = np.zeros((32, 2), dtype=np.int32)
    rc = np.ascontiguousarray(sums(c)).view(np.int32)
    run(kernel, "multiply_halves", as_words(factor_a(a, 2), 4), as_words(factor_b(b, 2), 2), rc, d)
    exact = a.astype(np.float64) @ b.astype(np.float64) + c.astype(np.float64)
    np.testing.assert_array_equal(d.view(np.float16), sums(exact.astype(np.float16)))


@pytest.mark.parametrize("is_signed", [0, 1])
def test_mma_of_8_bit_integers(kernel, is_signed):
    dtype = np.int8 if is_signed else np.uint8
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    a, b = RNG.integers(low, high + 1, (16, 32)), RNG.integers(low, high + 1, (32, 8))
    c = RNG.integers(-1000, 1000, (16, 8), dtype=np.int32)
    d = np.zeros((32, 4), dtype=np.int32)
    words = as_words(factor_a(a.astype(dtype), 4), 4), as_words(factor_b(b.astype(dtype), 4), 2)
    run(kernel, "multiply_integers", *words, np.ascontiguousarray(sums(c)), d, is_signed)
    np.testing.assert_array_equal(d, sums(a @ b + c))


def test_mma_of_doubles(kernel):
    a, b, c = RNG.standard_normal((8, 4)), RNG.standard_normal((4, 8)), RNG.standard_normal((8, 8))
    d = np.zeros((32, 2))
    rc = np.ascontiguousarray(sums(np.vstack([c, c]))[:, :2])
    arguments = np.ascontiguousarray(a[GROUP, PAIR]), np.ascontiguousarray(b[PAIR, GROUP])
    run(kernel, "multiply_doubles", *arguments, rc, d)
    np.testing.assert_allclose(d, sums(np.vstack([a @ b + c] * 2))[:, :2], rtol=1e-12, atol=1e-13)


def test_matrices_move_between_memory_and_lanes(kernel):
    tiles = np.arange(256, dtype=np.int16).reshape(4, 8, 8)
    loaded, transposed = np.zeros((2, 32, 4), dtype=np.int32)
    two, one, moved = np.zeros((32, 2), dtype=np.int32), np.zeros(32, dtype=np.int32), np.zeros(32, dtype=np.int32)
    stored, stored_transposed = np.zeros((2, 4, 8, 8), dtype=np.int16)
    run(kernel, "move_matrices", tiles, loaded, transposed, two, one, stored, stored_transposed, moved)

    def pairs(matrices: np.ndarray) -> np.ndarray:
        """Return the pair of elements that each lane holds of each 8x8 matrix."""
        picked = matrices[:, GROUP[:, None], 2 * PAIR[:, None] + np.array([0, 1])]
        return np.ascontiguousarray(picked.transpose(1, 0, 2)).view(np.int32)[:, :, 0]

    turned = tiles.transpose(0, 2, 1)
    np.testing.assert_array_equal(loaded, pairs(tiles))
    np.testing.assert_array_equal(transposed, pairs(turned))
    np.testing.assert_array_equal(two, pairs(tiles)[:, :2])
    np.testing.assert_array_equal(one, pairs(turned)[:, 0])
    np.testing.assert_array_equal(moved, pairs(turned)[:, 2])
    np.testing.assert_array_equal(stored, tiles)
    np.testing.assert_array_equal(stored_transposed, turned)


# ------------------------------------------------------------------------------------------------------------- memory


@pytest.mark.parametrize("last_bytes", [512, 500, 12, 0])
def test_asynchronous_copies_fill_with_zeros(kernel, last_bytes):
    tiles = 5
    x = RNG.standard_normal((tiles, 128)).astype(np.float32)
    out = np.zeros(32, dtype=np.float32)
    run(kernel, "sum_tiles", x, out, tiles, last_bytes)
    kept = x.copy()
    kept[-1, last_bytes // 4 :] = 0
    np.testing.assert_allclose(out, np.roll(kept.reshape(tiles, 32, 4).sum((0, 2)), -1), rtol=1e-5, atol=1e-5)


def test_small_asynchronous_copies(kernel):
    x = RNG.standard_normal(96).astype(np.float32)
    out = np.zeros(96, dtype=np.float32)
    run(kernel, "copy_small", x, out)
    np.testing.assert_array_equal(out, np.concatenate([x[31::-1], x[32:]]))


def test_loads_stores_atomics(kernel):
    x = RNG.standard_normal((32, 4)).astype(np.float32)
    out = np.zeros(65, dtype=np.float32)
    words = RNG.integers(0, 2**31, 69).astype(np.int32)
    before = words.copy()
    words[64:69] = before[64:69] = [10, 0, 7, 0, 0]
    shorts = np.zeros(32, dtype=np.int16)
    run(kernel, "load_and_store", x, out, words, shorts)
    np.testing.assert_array_equal(out[:64].reshape(32, 2), x[:, [1, 0]])
    assert out[64] == 16
    np.testing.assert_array_equal(words[32:64], before[:32] >> 8 & 255)
    np.testing.assert_array_equal(shorts, before[:32].astype(np.uint32).astype(np.uint16).view(np.int16))
    assert words[64:69].tolist() == [10 + 64, 10 + 62, 9, 5, 9 + 16 * 5]


# --------------------------------------------------------------------------------------------------------- arithmetic


def permuted(a: int, b: int, selector: int) -> int:
    """Return prmt's result. A nibble of the selector selects a byte, or 8 copies of the byte's sign bit."""
    both, out = a | b << 32, 0
    for i in range(4):
        pick = selector >> (4 * i) & 15
        byte = both >> (8 * (pick & 7)) & 255
        out |= ((255 if byte & 128 else 0) if pick & 8 else byte) << (8 * i)
    return out


def test_integer_arithmetic(kernel):
    n = 64
    a, b, c = RNG.integers(0, 2**32, (3, n), dtype=np.uint32)
    out = np.zeros((17, n), dtype=np.int32)
    run(kernel, "compute_words", *(v.view(np.int32) for v in (a, b, c)), out, n)
    x, y, z = (v.astype(object) for v in (a, b, c))

    def signed(v):
        return np.array([int(i) - 2**32 if int(i) >> 31 else int(i) for i in v], dtype=object)

    field = x >> 5 & 127
    shift = np.array([int(i) & 63 for i in z], dtype=object)
    expected = [
        (x & y) | (x & z) | (y & z),
        (x & 0x000F000F) | 0x64006400,
        (x & 0xFFFF) | ((y & 0xFFFF) << 16),
        field,
        np.array([int(f) - 128 if f & 64 else int(f) for f in field], dtype=object),
        (y & ~0xF00) | ((x & 15) << 8),
        np.array(
            [((int(q) << 32 | int(p)) << (int(s) & 31)) >> 32 for p, q, s in zip(x, y, z, strict=True)], dtype=object
        ),
        x * y + z,
        x * y >> 32,
        (x * y >> 32) ^ (x * y & 0xFFFFFFFF),
        np.array([int(v) >> min(int(s), 31) for v, s in zip(signed(x), shift, strict=True)], dtype=object),
        np.array([int(v) << int(s) if s < 32 else 0 for v, s in zip(x, shift, strict=True)], dtype=object),
        np.array([int(v).bit_count() for v in x], dtype=object),
        np.where(x < y, z + 1, z - 1) ^ np.where(signed(x) >= signed(y), 0x80, 0),
        (x >> 16) | ((x & 0xFFFF) << 16),
        z + sum((x >> s & 255) * (y >> s & 255) for s in (0, 8, 16, 24)),
        np.array([permuted(int(i), int(j), int(k)) for i, j, k in zip(x, y, z, strict=True)], dtype=object),
    ]
    for row, want in zip(out.view(np.uint32), expected, strict=True):
        np.testing.assert_array_equal(row, np.array([int(w) & 0xFFFFFFFF for w in want], dtype=np.uint32))


def test_float_arithmetic(kernel):
    n = 128
    x, y = RNG.standard_normal((2, n)).astype(np.float32)
    out, packed = np.zeros((9, n), dtype=np.float32), np.zeros((6, n), dtype=np.int32)
    run(kernel, "compute_floats", x, y, out, packed, n)
    wide = x.astype(np.float64)
    close = [(0, np.exp2(wide)), (1, 1 / wide), (2, 1 / np.abs(wide)), (3, np.tanh(wide)), (6, np.log2(wide * wide))]
    for row, expected in close:
        np.testing.assert_allclose(out[row], expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(out[4], (wide * y + 1).astype(np.float32))
    np.testing.assert_array_equal(out[5], np.maximum(x, y))
    np.testing.assert_array_equal(out[7], np.maximum(x, y))
    half = x.astype(np.float16)
    np.testing.assert_array_equal(out[8], half.astype(np.float32))
    np.testing.assert_array_equal(packed[0].view(np.float16).reshape(n, 2), np.stack([x, y], 1).astype(np.float16))
    rounded = np.stack([x, y], 1).view(np.uint32).astype(np.uint64)
    bits = (rounded + 0x7FFF + (rounded >> 16 & 1)) >> 16
    np.testing.assert_array_equal(packed[1].view(np.uint16).reshape(n, 2), bits)
    np.testing.assert_array_equal(packed[2].view(np.uint32), (x.view(np.uint32) + 0x1000) & np.uint32(0xFFFFE000))
    np.testing.assert_array_equal(packed[3], np.trunc(x * np.float32(100)).astype(np.int32))
    pairs = packed[0].view(np.float16).astype(np.float64)
    np.testing.assert_array_equal(packed[4].view(np.float16), (pairs * pairs + pairs).astype(np.float16))
    np.testing.assert_array_equal(packed[5].view(np.float16), (pairs + 1).astype(np.float16))


def test_warp_instructions(kernel):
    out = np.zeros((6, 32), dtype=np.int32)
    run(kernel, "talk", out)
    np.testing.assert_array_equal(out[0], (LANE ^ 3) * 10)
    np.testing.assert_array_equal(out[1], np.where(LANE < 16, LANE + 16 + 100, LANE))
    assert (out[2].view(np.uint32) == 0xAAAAAAAA).all() and (out[3] == 496).all()
    np.testing.assert_array_equal(out[4].view(np.uint32), (1 << LANE.astype(np.uint64)) - 1)
    assert (out[5] == 32).all()


def test_named_barriers(kernel):
    out = np.zeros(64, dtype=np.float32)
    run(kernel, "hand_over", out)
    np.testing.assert_array_equal(out, 2.0 * np.arange(63, -1, -1))


# ------------------------------------------------------------------------------------------------------------- tables


def test_examples_in_messages_are_known():
    known = (function_for, wgmma_form, tensor_access, tensor_product)
    for example in EXAMPLES.values():
        for opcode in example.split(" or "):
            assert any(form(opcode) for form in known), opcode


@pytest.mark.parametrize(
    "opcode",
    ["wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.bf16.bf16", "mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64", "ld.global.v3.f32", "cvt.rn.f8.f32",  # noqa: E501
     "cp.async.bulk.tensor.2d.shared::cluster.global.tile", "mul.u32", "ld"],
)  # fmt: skip
def test_unsupported_instructions_are_unknown(opcode):
    assert function_for(opcode) is None
