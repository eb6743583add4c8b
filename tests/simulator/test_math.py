"""Tests of device math functions, compared with numpy.

The result must be exact if CUDA's function is exact. Otherwise its error must be about as large as on a GPU.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from tests.simulator.harness import run

RNG = np.random.default_rng(11)
N = 4096

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # numpy warns about infinities and NaN


def of_floats(load, which: int, a, b=None, c=None) -> np.ndarray:
    a = np.asarray(a, dtype=np.float32)
    b = np.ones_like(a) if b is None else np.asarray(b, dtype=np.float32)
    c = np.ones_like(a) if c is None else np.asarray(c, dtype=np.float32)
    out = np.empty_like(a)
    run(load("math"), "of_floats", a, b, c, out, which, a.size)
    return out


SPECIAL = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 3.4e38, 1.0, -1.0], dtype=np.float32)


def numbers(scale: float) -> np.ndarray:
    return np.concatenate([(RNG.standard_normal(N) * scale).astype(np.float32), SPECIAL])


def wide(x: np.ndarray) -> np.ndarray:
    return x.astype(np.float64)


# Each row: name, number in math.cu, scale of the arguments, the function in double, maximum relative error.
ACCURATE = [
    ("rsqrtf", 8, 100, lambda a: 1 / np.sqrt(a), 2.4e-7),
    ("__frcp_rn", 7, 100, lambda a: 1 / a, 6e-8),
    ("exp10f", 10, 5, lambda a: np.power(10.0, a), 2.4e-7),
    ("sinpif", 11, 1000, lambda a: np.sin(np.pi * (a - 2 * np.rint(a / 2))), 1e-6),
    ("cospif", 12, 1000, lambda a: np.cos(np.pi * (a - 2 * np.rint(a / 2))), 1e-6),
    ("normcdff", 15, 2, lambda a: np.vectorize(lambda v: 0.5 * math.erfc(-v / math.sqrt(2)))(a), 1e-6),
    ("erff", 26, 1, np.vectorize(math.erf), 1e-6),
    ("tanhf", 27, 1, np.tanh, 1e-6),
    ("rcbrtf", 28, 10, lambda a: 1 / np.cbrt(a), 1e-6),
]


def test_inverse_error_functions(load):
    """Compare with the C library's erfc, erf and the normal distribution, which each function inverts."""
    a = np.concatenate([np.linspace(1e-4, 1.9999, 300), [1e-30, 1e-38]]).astype(np.float32)
    inverse = of_floats(load, 30, a)
    np.testing.assert_allclose(np.vectorize(math.erfc)(wide(inverse)), wide(a), rtol=3e-5)
    np.testing.assert_allclose(of_floats(load, 31, [0.5, -0.1, 0.9]), [0.47693628, -0.08885599, 1.1630871], rtol=2e-7)
    np.testing.assert_allclose(of_floats(load, 32, a[:300] / 2), -math.sqrt(2) * inverse[:300], rtol=1e-6, atol=1e-7)
    np.testing.assert_array_equal(of_floats(load, 30, [0, 2, -1, 3]), [np.inf, -np.inf, np.nan, np.nan])
    np.testing.assert_array_equal(of_floats(load, 31, [0, 1, -1, 2]), [0, np.inf, -np.inf, np.nan])


@pytest.mark.parametrize(("name", "which", "scale", "function", "error"), ACCURATE)
def test_accurate_functions(load, name, which, scale, function, error):
    x = numbers(scale)
    np.testing.assert_allclose(of_floats(load, which, x), function(wide(x)).astype(np.float32), rtol=error, atol=1e-9)


def test_fast_functions_are_accurate_near_zero(load):
    x = numbers(2.0)
    np.testing.assert_allclose(of_floats(load, 0, x), np.exp(wide(x)).astype(np.float32), rtol=1e-6)
    np.testing.assert_allclose(of_floats(load, 4, x[:N]), np.sin(wide(x[:N])), atol=1e-6)
    np.testing.assert_allclose(of_floats(load, 5, x[:N]), np.cos(wide(x[:N])), atol=1e-6)
    positive = np.abs(x)
    np.testing.assert_allclose(of_floats(load, 1, positive), np.log(wide(positive)), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(of_floats(load, 2, positive), np.log2(wide(positive)), rtol=1e-6, atol=1e-6)
    powers = of_floats(load, 3, positive[:N], x[:N])
    np.testing.assert_allclose(powers, np.power(wide(positive[:N]), wide(x[:N])), rtol=1e-5)
    np.testing.assert_allclose(of_floats(load, 13, x[:N]), np.sin(wide(x[:N])) + np.cos(wide(x[:N])), atol=2e-6)
    np.testing.assert_allclose(of_floats(load, 14, x[:N]), np.sin(wide(x[:N])) - np.cos(wide(x[:N])), atol=1e-6)
    np.testing.assert_allclose(of_floats(load, 24, x[:N] / 4), np.tan(wide(x[:N] / 4)), rtol=1e-3)


def test_fast_functions_are_inaccurate_for_large_arguments_as_on_a_gpu(load):
    angles = np.arange(131072 - 4096, 131072, dtype=np.float32)
    errors = np.abs(of_floats(load, 4, angles) - np.sin(wide(angles)))
    assert (
        1e-4 < errors.max() < 2e-2
    )  # __sinf converts the angle to turns and rounds it to a float: an error of up to 2^-10 turns
    exponents = np.linspace(60, 88, 1000, dtype=np.float32)
    relative = of_floats(load, 0, exponents) / np.exp(wide(exponents)) - 1
    assert 1e-6 < np.abs(relative).max() < 1e-4


def test_division_clamping_extremes(load):
    a, b = numbers(10), np.roll(numbers(10), 1)
    got, expected = of_floats(load, 6, a, b), (a / b).astype(np.float32)
    small = np.abs(b) < 2.0**126
    # __fdividef has errors up to two units in the last place.
    np.testing.assert_allclose(got[small], expected[small], rtol=2.4e-7)
    assert of_floats(load, 6, [3.0], [2.0**127])[0] == 0
    np.testing.assert_array_equal(of_floats(load, 9, a), np.clip(np.nan_to_num(a, nan=0.0), 0, 1))
    np.testing.assert_array_equal(of_floats(load, 16, a, b), np.fmax(a, b) - np.fmin(a, b))
    np.testing.assert_array_equal(of_floats(load, 17, a, b, a), np.fmax(a, b) + np.fmin(b, a))
    kinds = np.select([np.isnan(a), np.isinf(a)], [1.0, 2.0], 3.0)
    np.testing.assert_array_equal(of_floats(load, 33, a), kinds)
    np.testing.assert_array_equal(of_floats(load, 29, a), np.where(np.isnan(a), a, np.copysign(np.inf, a)))


def directed(exact: Fraction, mode: str) -> float:
    """Return an exact value rounded to float in the given direction."""
    value = np.float32(float(exact))
    while Fraction(float(value)) > exact:
        value = np.nextafter(value, np.float32(-np.inf))
    above = value if Fraction(float(value)) == exact else np.nextafter(value, np.float32(np.inf))
    while Fraction(float(above)) < exact:
        value, above = above, np.nextafter(above, np.float32(np.inf))
    if mode == "nearest":
        low, high = exact - Fraction(float(value)), Fraction(float(above)) - exact
        if low == high:
            return float(value if value.view(np.uint32) % 2 == 0 else above)
        return float(value if low < high else above)
    return float({"down": value, "up": above, "zero": value if exact > 0 else above}[mode])


@pytest.mark.parametrize(
    ("which", "mode", "exact"),
    [
        (18, "nearest", lambda a, b, c: a * b + c),
        (19, "zero", lambda a, b, c: a * b + c),
        (20, "up", lambda a, b, c: a + b),
        (21, "down", lambda a, b, c: a * b),
        (22, "zero", lambda a, b, c: a / b),
    ],
)
def test_named_rounding_is_exact(load, which, mode, exact):
    a, b = RNG.standard_normal((2, 2000)).astype(np.float32)
    c = (-(wide(a) * wide(b)) * (1 + RNG.integers(-2, 3, 2000) * 2.0**-24)).astype(np.float32)
    got = of_floats(load, which, a, b, c)
    for x, y, z, value in zip(a, b, c, got, strict=True):
        true = exact(Fraction(float(x)), Fraction(float(y)), Fraction(float(z)))
        assert float(value) == directed(true, mode), (x, y, z)


def test_square_root_rounded_up(load):
    x = np.abs(RNG.standard_normal(2000)).astype(np.float32)
    got = of_floats(load, 23, x)
    assert all(Fraction(float(r)) ** 2 >= Fraction(float(v)) for r, v in zip(got, x, strict=True))
    below = np.nextafter(got, np.float32(0))
    assert all(Fraction(float(r)) ** 2 < Fraction(float(v)) for r, v in zip(below, x, strict=True))


def as_signed(x: int, bits: int = 32) -> int:
    x &= (1 << bits) - 1
    return x - (1 << bits) if x >> (bits - 1) else x


def lanes(x: int, bits: int, signed: bool = False) -> list[int]:
    parts = [x >> shift & ((1 << bits) - 1) for shift in range(0, 32, bits)]
    return [as_signed(p, bits) for p in parts] if signed else parts


def pack(parts, bits: int) -> int:
    return sum((int(p) & ((1 << bits) - 1)) << (bits * i) for i, p in enumerate(parts))


def each(a: int, b: int, bits: int, function, signed: bool = False) -> int:
    return pack([function(x, y) for x, y in zip(lanes(a, bits, signed), lanes(b, bits, signed), strict=True)], bits)


def byte_perm(a: int, b: int, selector: int) -> int:
    both = a | b << 32
    out = 0
    for i in range(4):
        out |= (both >> (8 * (selector >> (4 * i) & 7)) & 255) << (8 * i)
    return out


def lowest_bit(x: int) -> int:
    return (x & -x).bit_length()


INTEGER_FUNCTIONS = [
    lambda a, b, c: 32 - a.bit_length(),
    lambda a, b, c: a.bit_count(),
    lambda a, b, c: lowest_bit(a),
    lambda a, b, c: int(f"{a:032b}"[::-1], 2),
    lambda a, b, c: as_signed(a, 24) * as_signed(b, 24),
    lambda a, b, c: (a & 0xFFFFFF) * (b & 0xFFFFFF),
    lambda a, b, c: as_signed(a) * as_signed(b) >> 32,
    lambda a, b, c: a * b >> 32,
    byte_perm,
    lambda a, b, c: (b << 32 | a) << (c & 31) >> 32,
    lambda a, b, c: (b << 32 | a) >> (c & 31),
    lambda a, b, c: (b << 32 | a) << min(c & 63, 32) >> 32,
    lambda a, b, c: (b << 32 | a) >> min(c & 63, 32),
    lambda a, b, c: c + sum(x * y for x, y in zip(lanes(a, 8, True), lanes(b, 8, True), strict=True)),
    lambda a, b, c: c + sum(x * y for x, y in zip(lanes(a, 8), lanes(b, 8), strict=True)),
    lambda a, b, c: each(a, b, 8, lambda x, y: x + y),
    lambda a, b, c: each(a, b, 16, lambda x, y: x - y),
    lambda a, b, c: each(a, b, 8, max, signed=True),
    lambda a, b, c: each(a, b, 16, min),
    lambda a, b, c: each(a, b, 8, lambda x, y: -(x == y)),
    lambda a, b, c: c + abs(as_signed(a) - as_signed(b)),
    lambda a, b, c: as_signed(a) + as_signed(b) >> 1,
    lambda a, b, c: a + b + 1 >> 1,
    lambda a, b, c: max(as_signed(a), as_signed(b)),
    lambda a, b, c: min(a, b),
    lambda a, b, c: max(a, b),
    lambda a, b, c: abs(as_signed(a)),
    lambda a, b, c: a,
    lambda a, b, c: c + sum(x * y for x, y in zip(lanes(a, 16, True), lanes(b, 8, True)[:2], strict=True)),
    lambda a, b, c: 64 - (a << 20).bit_length() + (a << 32 | b).bit_count() + (lowest_bit(b) + 32 if b else 0),
]


@pytest.mark.parametrize("which", range(len(INTEGER_FUNCTIONS)))
def test_integer_functions(load, which):
    a, b, c = RNG.integers(0, 2**32, (3, 1000), dtype=np.uint32)
    a[:3], b[:3], c[:3] = (0, 1, 0xFFFFFFFF), (0, 0x80000000, 0xFFFFFFFF), (0, 32, 63)
    a[3:40], b[3:40] = RNG.integers(0, 64, (2, 37), dtype=np.uint32)
    b[40:60] = a[40:60] ^ 0x00FF0000
    out = np.empty(a.size, dtype=np.int32)
    run(load("math"), "of_integers", *(v.view(np.int32) for v in (a, b, c)), out, which, a.size)
    function = INTEGER_FUNCTIONS[which]
    expected = [function(int(x), int(y), int(z)) & 0xFFFFFFFF for x, y, z in zip(a, b, c, strict=True)]
    np.testing.assert_array_equal(out.view(np.uint32), np.array(expected, dtype=np.uint32))


def test_conversions_saturate(load):
    x = np.concatenate([SPECIAL, (RNG.standard_normal(500) * 10.0 ** RNG.integers(-2, 22, 500)).astype(np.float32)])
    x = np.concatenate([x, np.array([0.5, 1.5, 2.5, -0.5, -1.5, 2147483648.0, -2147483648.0], dtype=np.float32)])
    numbers = RNG.integers(-(2**63), 2**63 - 1, x.size, dtype=np.int64) >> RNG.integers(0, 63, x.size)
    as_int, as_long = np.empty((x.size, 4), dtype=np.int32), np.empty((x.size, 2), dtype=np.int64)
    as_float = np.empty((x.size, 4), dtype=np.float32)
    run(load("math"), "convert", x, numbers, as_int, as_long, as_float, x.size)
    for i, value in enumerate(wide(x)):
        if np.isnan(value):
            assert as_int[i].tolist() == [0, 0, 0, 0] and as_long[i].tolist() == [-(2**63), -(2**63)]
            continue
        limited = max(min(value, 1e30), -1e30)
        rounded = [round(limited), math.trunc(limited), math.floor(limited)]
        assert as_int[i, :3].tolist() == [max(min(r, 2**31 - 1), -(2**31)) for r in rounded]
        assert int(as_int[i, 3]) & 0xFFFFFFFF == max(min(math.ceil(limited), 2**32 - 1), 0)
        assert as_long[i, 0] == max(min(round(limited), 2**63 - 1), -(2**63))
        assert int(as_long[i, 1]) & (2**64 - 1) == max(min(math.trunc(limited), 2**64 - 1), 0)
    for i, number in enumerate(numbers.tolist()):
        low = as_signed(number)
        expected = [
            directed(Fraction(number), "nearest"),
            directed(Fraction(number), "down"),
            directed(Fraction(low), "up"),
            directed(Fraction(number % 2**64), "zero"),
        ]
        assert as_float[i].tolist() == expected, number
