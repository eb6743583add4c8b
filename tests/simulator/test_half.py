"""Tests of half and bfloat16: all 65536 bit patterns of each, compared with numpy and exact fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from tests.simulator.harness import run

PATTERNS = np.arange(65536, dtype=np.uint16)
RNG = np.random.default_rng(7)
FORMATS = ["f16", "bf16"]

pytestmark = pytest.mark.filterwarnings("ignore:invalid value encountered")  # numpy warns about NaNs

# For each format: bits of the significand (including the implicit one), smallest and largest exponent.
SHAPE = {"f16": (11, -14, 15), "bf16": (8, -126, 127)}
INFINITY = {"f16": 0x7C00, "bf16": 0x7F80}
NAN = 0x7FFF


def values(bits: np.ndarray, fmt: str) -> np.ndarray:
    """Return the values of 16-bit patterns as doubles."""
    bits = bits.astype(np.uint16)
    if fmt == "f16":
        return bits.view(np.float16).astype(np.float64)
    return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


def nearest(value: Fraction, fmt: str) -> int:
    """Return the pattern nearest to an exact value, with ties to even, computed by the definition of the format."""
    precision, least, most = SHAPE[fmt]
    sign, size = (0x8000 if value < 0 else 0), abs(value)
    if size == 0:
        return sign
    exponent = max(size.numerator.bit_length() - size.denominator.bit_length(), least)
    while exponent > least and Fraction(2) ** exponent > size:
        exponent -= 1
    while Fraction(2) ** (exponent + 1) <= size:
        exponent += 1
    units = size / Fraction(2) ** (exponent - precision + 1)
    whole = units.numerator // units.denominator
    rest = units - whole
    whole += rest > Fraction(1, 2) or (rest == Fraction(1, 2) and whole % 2 == 1)
    if whole * Fraction(2) ** (exponent - precision + 1) >= Fraction(2) ** (most + 1):
        return sign | INFINITY[fmt]
    return sign | (whole + ((exponent - least) << (precision - 1)))


def is_nan(bits: np.ndarray, fmt: str) -> np.ndarray:
    return (bits & 0x7FFF) > INFINITY[fmt]


def from_floats(numbers: np.ndarray, fmt: str) -> np.ndarray:
    """Return floats rounded to a format: to f16 by numpy, to bfloat16 by torch."""
    if fmt == "f16":
        with np.errstate(over="ignore", invalid="ignore"):
            bits = numbers.astype(np.float16).view(np.uint16)
    else:
        import torch

        bits = torch.from_numpy(numbers.astype(np.float32)).bfloat16().view(torch.int16).numpy().view(np.uint16)
    return np.where(np.isnan(numbers), NAN, bits).astype(np.uint16)


@pytest.mark.parametrize("fmt", FORMATS)
def test_every_pattern_converts_to_its_value(load, fmt):
    floats = np.empty(65536, dtype=np.float32)
    down, truncated = np.empty((2, 65536), dtype=np.int32)
    pair = np.empty(65536, dtype=np.int16)
    run(load("half"), f"to_numbers_{fmt}", PATTERNS.view(np.int16), floats, down, truncated, pair, 65536)
    expected = values(PATTERNS, fmt)
    np.testing.assert_array_equal(floats, expected.astype(np.float32))
    assert np.array_equal(np.signbit(floats), np.signbit(expected)) or np.isnan(expected).any()
    numbers = np.nan_to_num(expected, nan=0.0, posinf=2.0**31 - 1, neginf=-(2.0**31))
    limits = (-(2.0**31), 2.0**31 - 1)
    np.testing.assert_array_equal(down, np.clip(np.floor(numbers), *limits).astype(np.int32))
    np.testing.assert_array_equal(truncated, np.clip(np.trunc(numbers), *limits).astype(np.int32))
    np.testing.assert_array_equal(pair.view(np.uint16), PATTERNS)


def floats_to_round() -> np.ndarray:
    """Return every value of both formats, midpoints between neighbors, floats next to these, and random patterns."""
    exact = np.concatenate([values(PATTERNS, fmt).astype(np.float32) for fmt in FORMATS]).view(np.uint32)
    offsets = [base + step for base in (0, 0x1000, 0x8000) for step in (-1, 0, 1)]
    near = np.concatenate([exact + np.uint32(offset & 0xFFFFFFFF) for offset in offsets])
    return np.concatenate([near, RNG.integers(0, 2**32, 500_000, dtype=np.uint32)]).view(np.float32)


def test_rounding_of_floats(load):
    numbers = floats_to_round()
    out = {name: np.empty(numbers.size, dtype=np.int16) for name in ("h", "hz", "hu", "hp", "b", "bd", "bp")}
    run(load("half"), "round_floats", numbers, *out.values(), numbers.size)
    bits = {name: array.view(np.uint16) for name, array in out.items()}
    np.testing.assert_array_equal(bits["h"], from_floats(numbers, "f16"))
    np.testing.assert_array_equal(bits["hp"], bits["h"])
    np.testing.assert_array_equal(bits["b"], from_floats(numbers, "bf16"))
    np.testing.assert_array_equal(bits["bp"], bits["b"])
    # Directed rounding: the exact value lies between the result and the next number against the rounding's direction.
    finite = np.isfinite(numbers)
    exact = numbers[finite].astype(np.float64)
    zero, up, down = (values(bits[k][finite], f) for k, f in (("hz", "f16"), ("hu", "f16"), ("bd", "bf16")))
    assert (np.abs(zero) <= np.abs(exact)).all() and (up >= exact).all() and (down <= exact).all()
    with np.errstate(over="ignore"):
        assert (np.abs(np.nextafter(zero.astype(np.float16), np.where(exact < 0, -np.inf, np.inf).astype(np.float16)))
                > np.abs(exact))[np.abs(exact) != np.abs(zero)].all()  # fmt: skip
        below = np.nextafter(up.astype(np.float16), np.float16(-np.inf)).astype(np.float64)
    assert (below < exact)[np.isfinite(up)].all()


def test_rounding_of_doubles_and_integers(load):
    doubles = RNG.integers(0, 2**64, 20_000, dtype=np.uint64).view(np.float64)
    # Doubles that round incorrectly if they are rounded to float first.
    tricky = values(PATTERNS[:0x7C00:7], "f16") * (1 + 2.0**-11) * (1 + 2.0**-40)
    doubles = np.concatenate([doubles[np.isfinite(doubles)], tricky, -tricky, tricky * (1 - 2.0**-39)])
    integers = RNG.integers(-(2**63), 2**63 - 1, doubles.size, dtype=np.int64) >> RNG.integers(0, 63, doubles.size)
    out = [np.empty(doubles.size, dtype=np.uint16) for _ in range(4)]
    run(load("half"), "round_others", doubles, integers, *out, doubles.size)
    for bits, fmt in zip(out[:2], FORMATS, strict=True):
        np.testing.assert_array_equal(
            bits, [nearest(Fraction(x), fmt) | (0x8000 if np.signbit(x) else 0) for x in doubles]
        )
    for bits, fmt in zip(out[2:], FORMATS, strict=True):
        np.testing.assert_array_equal(bits, [nearest(Fraction(int(i)), fmt) for i in integers])


OPERATIONS = ["add", "sub", "mul", "div", "fma", "max", "min", "max_nan", "neg", "abs", "saturate", "relu"]


def operands(fmt: str, n: int) -> list[np.ndarray]:
    """Return operands a, b, c: random bit patterns, and triples in which a * b + c cancels."""
    a, b, c = RNG.integers(0, 65536, (3, n)).astype(np.uint16)
    product = values(a, fmt) * values(b, fmt)
    with np.errstate(all="ignore"):
        near = from_floats(-product.astype(np.float32), fmt)
    c[: n // 2] = near[: n // 2] ^ RNG.integers(0, 2, n // 2).astype(np.uint16)
    b[: n // 4] = (a[: n // 4] ^ 0x8000) + RNG.integers(0, 3, n // 4).astype(np.uint16)
    return [a, b, c]


def expected_result(op: str, x: float, y: float, z: float) -> Fraction | float:
    """Return an operation's exact result as a fraction, or as a float if it is infinite or NaN."""
    special = not all(map(np.isfinite, (x, y, z)))
    with np.errstate(all="ignore"):
        if op in ("add", "saturate"):
            return np.float64(x) + y if special else Fraction(x) + Fraction(y)
        if op == "sub":
            return np.float64(x) - y if special else Fraction(x) - Fraction(y)
        if op == "mul":
            return np.float64(x) * y if special else Fraction(x) * Fraction(y)
        if op == "div":
            return np.float64(x) / y if special or y == 0 else Fraction(x) / Fraction(y)
        return np.float64(x) * y + z if special else Fraction(x) * Fraction(y) + Fraction(z)


@pytest.mark.parametrize("fmt", FORMATS)
@pytest.mark.parametrize("op", ["add", "sub", "mul", "div", "fma", "saturate", "relu"])
def test_arithmetic_rounds_once(load, fmt, op):
    n = 6000
    a, b, c = operands(fmt, n)
    out = np.empty(n, dtype=np.int16)
    run(load("half"), f"arithmetic_{fmt}", *(v.view(np.int16) for v in (a, b, c)), out, OPERATIONS.index(op), n)
    bits = out.view(np.uint16)
    x, y, z = (values(v, fmt) for v in (a, b, c))
    uses_third = op in ("fma", "relu")
    for i in range(n):
        exact = expected_result(op, x[i], y[i], z[i] if uses_third else 0.0)
        if isinstance(exact, Fraction):
            pattern = nearest(exact, fmt)
        else:
            pattern = (
                NAN if np.isnan(exact) else (0x8000 if exact < 0 else 0) | (INFINITY[fmt] if np.isinf(exact) else 0)
            )
        if op == "saturate":
            number = values(np.array([pattern]), fmt)[0]
            pattern = nearest(Fraction(min(max(number, 0.0), 1.0)), fmt) if number == number else 0
        if op == "relu" and pattern & 0x8000:
            pattern = 0
        same = bits[i] == pattern or (pattern & 0x7FFF == 0 and bits[i] & 0x7FFF == 0)  # +0 or -0
        assert same, f"{op}({x[i]!r}, {y[i]!r}, {z[i]!r}) = {bits[i]:#06x}, expected {pattern:#06x}"


@pytest.mark.parametrize("fmt", FORMATS)
def test_minimum_maximum_sign(load, fmt):
    a, b, c = operands(fmt, 20_000)
    special = np.array([0, 0x8000, INFINITY[fmt], INFINITY[fmt] | 0x8000, NAN, 0xFFFF, 1, 0x8001], dtype=np.uint16)
    a[:64], b[:64] = np.repeat(special, 8), np.tile(special, 8)
    x, y = values(a, fmt), values(b, fmt)
    results = {}
    for op in ("max", "min", "max_nan", "neg", "abs"):
        out = np.empty(a.size, dtype=np.int16)
        run(
            load("half"), f"arithmetic_{fmt}", *(v.view(np.int16) for v in (a, b, c)), out, OPERATIONS.index(op), a.size
        )
        results[op] = out.view(np.uint16)
    np.testing.assert_array_equal(values(results["max"], fmt), np.fmax(x, y))
    np.testing.assert_array_equal(values(results["min"], fmt), np.fmin(x, y))
    np.testing.assert_array_equal(values(results["max_nan"], fmt), np.maximum(x, y))
    np.testing.assert_array_equal(results["neg"], np.where(np.isnan(x), NAN, a ^ 0x8000))
    np.testing.assert_array_equal(results["abs"], np.where(np.isnan(x), NAN, a & 0x7FFF))
    zeros = (a & 0x7FFF == 0) & (b & 0x7FFF == 0)  # where a and b are both zero, max prefers +0 and min -0
    np.testing.assert_array_equal(results["max"][zeros], (a & b)[zeros])
    np.testing.assert_array_equal(results["min"][zeros], (a | b)[zeros])


@pytest.mark.parametrize("fmt", FORMATS)
def test_pairs_compute_both_halves(load, fmt):
    n = 4096
    a, b, c = operands(fmt, 2 * n)
    b[:64] = a[:64]
    sums, fused, larger = np.empty((3, 2 * n), dtype=np.uint16)
    relations = np.empty(n, dtype=np.int32)
    kernel = load("half")
    run(kernel, f"pairs_{fmt}", a, b, c, sums, fused, larger, relations, n)
    for op, bits in (("add", sums), ("fma", fused), ("max", larger)):
        single = np.empty(2 * n, dtype=np.int16)
        run(kernel, f"arithmetic_{fmt}", *(v.view(np.int16) for v in (a, b, c)), single, OPERATIONS.index(op), 2 * n)
        np.testing.assert_array_equal(bits, single.view(np.uint16))
    x, y = values(a, fmt).reshape(n, 2), values(b, fmt).reshape(n, 2)
    expected = (x == y)[:, 0] * 1 | (x < y).all(1) * 2 | (x >= y).all(1) * 4 | (x == y).all(1) * 8
    x0, y0 = x[:, 0], y[:, 0]
    expected |= (x != y).all(1) * 16 | (x0 < y0) * 32 | (x0 != y0) * 64 | np.isnan(x0) * 128
    expected |= ((x0 < y0) | (x0 > y0)) * 256 | ~(x0 <= y0) * 512 | (x0 == y0) * 1024
    np.testing.assert_array_equal(relations, expected)


FUNCTIONS = [
    np.exp,
    np.log,
    np.sqrt,
    lambda x: 1 / np.sqrt(x),
    lambda x: 1 / x,
    np.exp2,
    np.floor,
    np.rint,
    np.tanh,
    np.sin,
]


@pytest.mark.parametrize("fmt", FORMATS)
@pytest.mark.parametrize("which", range(len(FUNCTIONS)))
def test_functions_of_every_pattern(load, fmt, which):
    out = np.empty(65536, dtype=np.int16)
    run(load("half"), f"functions_{fmt}", PATTERNS.view(np.int16), out, which, 65536)
    with np.errstate(all="ignore"):
        expected = FUNCTIONS[which](values(PATTERNS, fmt))
        bits = from_floats(expected.astype(np.float32), fmt)
    got = out.view(np.uint16)
    assert np.array_equal(is_nan(got, fmt), np.isnan(expected))
    numbers = ~np.isnan(expected)
    apart = np.abs(got[numbers].astype(np.int32) - bits[numbers].astype(np.int32))
    zeros = (got[numbers] & 0x7FFF == 0) & (bits[numbers] & 0x7FFF == 0)
    assert (apart[~zeros] <= 1).all() and (apart[~zeros] == 0).mean() > 0.999


def test_shuffles_atomics_and_cached_loads(load):
    x = RNG.standard_normal(64).astype(np.float16)
    out = np.zeros(66, dtype=np.float16)
    total = np.array([0.0, 2.5], dtype=np.float16)
    bfloat_total = np.zeros(2, dtype=np.uint16)
    run(load("half"), "sum_of_warp", x, out, total, bfloat_total)
    sums = x.reshape(32, 2)
    for distance in (16, 8, 4, 2, 1):
        sums = sums + sums[np.arange(32) ^ distance]
    np.testing.assert_array_equal(out[:64].reshape(32, 2), sums)
    assert total[0] == 32 and bfloat_total[0] == nearest(Fraction(16), "bf16")
    assert out[64] == x[10] and out[65] == np.float16(2.5)
