"""Tests of floating-point formats of 8, 6 and 4 bits: every bit pattern, and rounding near every representable value.

References are tables from the formats' definitions, and torch's float8.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.simulator.formats import FORMATS, NEAREST, ZERO, Format
from tests.simulator.harness import KERNELS, SimulatedKernel

UP = 2
E8M0 = 2
EACH = pytest.mark.parametrize("name", FORMATS)


def numbers(form: Format) -> np.ndarray:
    """Return test inputs as doubles, with both signs.

    They are every value of the format, every midpoint, the numbers next to these, and numbers out of range.
    """
    finite = np.array([v for v in form.table() if np.isfinite(v)])
    middle = (finite[1:] + finite[:-1]) / 2
    edge = np.array([finite[-1] + (finite[-1] - finite[-2]) / 2, 2 * finite[-1], 1e30, np.inf, np.nan])
    exact = np.concatenate([finite, middle, edge, [finite[1] / 2, finite[1] / 4, 1e-30, 0.0]]).astype(np.float32)
    near = [exact, np.nextafter(exact, np.float32(0)), np.nextafter(exact, np.float32(np.inf))]
    positive = np.concatenate(near).astype(np.float64)
    return np.concatenate([positive, -positive])


def decoded(load: Callable[..., SimulatedKernel], number: int, count: int) -> tuple[np.ndarray, ...]:
    """Return the simulator's conversions of every bit pattern to f32, f64, f16 bits, bf16 bits and int."""
    bits = np.arange(count, dtype=np.uint8)
    out = (
        np.zeros(count, np.float32),
        np.zeros(count),
        np.zeros(count, np.float16),
        np.zeros(count, np.uint16),
        np.zeros(count, np.int32),
    )
    assert load("narrow_float")("decode", number, bits, *out, count).error == 0
    return out


def encoded(
    load: Callable[..., SimulatedKernel], number: int, saturates: bool, rounding: int, values: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the bit patterns to which the simulator converts values, from floats and from doubles."""
    from_f32, from_f64 = np.zeros(len(values), np.uint8), np.zeros(len(values), np.uint8)
    singles = values.astype(np.float32)
    outcome = load("narrow_float")(
        "encode", number, int(saturates), rounding, singles, values, from_f32, from_f64, len(values)
    )
    assert outcome.error == 0
    return from_f32, from_f64


@EACH
def test_every_pattern_has_the_value_of_its_format(load: Callable[..., SimulatedKernel], name: str) -> None:
    form = FORMATS[name]
    table = form.values()
    f32, f64, f16, bf16, i32 = decoded(load, form.number, 2 * form.sign)
    np.testing.assert_array_equal(f32, table)
    np.testing.assert_array_equal(np.signbit(f32[: form.sign]), False)
    assert np.signbit(f32[form.sign])  # -0
    np.testing.assert_array_equal(f64, table)
    np.testing.assert_array_equal(f16, table)
    np.testing.assert_array_equal((bf16.astype(np.uint32) << 16).view(np.float32), table)
    limits = np.iinfo(np.int32)
    whole = np.trunc(np.nan_to_num(table, nan=0, posinf=limits.max, neginf=limits.min))
    np.testing.assert_array_equal(i32, whole.astype(np.int64))


@EACH
@pytest.mark.parametrize("saturates", [True, False])
@pytest.mark.parametrize("rounding", [NEAREST, ZERO])
def test_numbers_round_as_the_table_says(
    load: Callable[..., SimulatedKernel], name: str, saturates: bool, rounding: int
) -> None:
    form = FORMATS[name]
    if form.nan is not None:
        rounding = NEAREST  # cuda_fp8.h has no other rounding
    values = numbers(form)
    from_f32, from_f64 = encoded(load, form.number, saturates, rounding, values)
    np.testing.assert_array_equal(from_f32, [form.encode(v, saturates, rounding, double=False) for v in values])
    np.testing.assert_array_equal(from_f64, [form.encode(v, saturates, rounding, double=True) for v in values])


@pytest.mark.parametrize(("name", "dtype"), [("e4m3", torch.float8_e4m3fn), ("e5m2", torch.float8_e5m2)])
def test_float8_is_that_of_torch(load: Callable[..., SimulatedKernel], name: str, dtype: torch.dtype) -> None:
    """Check every half that is a number and does not overflow, because torch and CUDA differ for the others."""
    form = FORMATS[name]
    halves = np.arange(65536, dtype=np.uint16).view(np.float16).astype(np.float64)
    halves = halves[np.abs(halves) <= form.largest]
    from_f32, _ = encoded(load, form.number, True, NEAREST, halves)
    expected = torch.from_numpy(halves.astype(np.float32)).to(dtype).view(torch.uint8).numpy()
    np.testing.assert_array_equal(from_f32, expected)


def test_e8m0_is_a_power_of_two(load: Callable[..., SimulatedKernel]) -> None:
    f32, f64, _, _, _ = decoded(load, E8M0, 256)
    table = [2.0 ** (p - 127) for p in range(255)] + [np.nan]
    np.testing.assert_array_equal(f32, np.array(table, np.float32))
    np.testing.assert_array_equal(f64, table)


@pytest.mark.parametrize("saturates", [True, False])
@pytest.mark.parametrize("rounding", [ZERO, UP])
def test_e8m0_rounds_magnitudes(load: Callable[..., SimulatedKernel], saturates: bool, rounding: int) -> None:
    powers = 2.0 ** np.arange(-127, 128)
    singles = powers.astype(np.float32)
    near = [singles, np.nextafter(singles, np.float32(0)), np.nextafter(singles, np.float32(np.inf)), -singles]
    values = np.concatenate([*near, np.array([0, np.inf, -np.inf, np.nan, 3e38], np.float32)]).astype(np.float64)

    def pattern(value: float) -> int:
        if np.isnan(value):
            return 255
        size = abs(value)
        if size > 2.0**127:
            return 254 if saturates or (rounding == ZERO and np.isfinite(value)) else 255
        above = int(np.searchsorted(powers, size))  # index of the smallest power >= size
        return above if rounding == UP or powers[above] == size else max(above - 1, 0)

    for got in encoded(load, E8M0, saturates, rounding, values):
        np.testing.assert_array_equal(got, [pattern(v) for v in values])


@pytest.mark.parametrize("number", range(6))
def test_vectors_hold_the_first_value_in_the_lowest_bits(load: Callable[..., SimulatedKernel], number: int) -> None:
    values = np.array([[1, 0.5, 2, 4], [0.25, 8, 1, 1.5], [6, 3, 0.5, 448]], np.float32)
    if number != E8M0:
        values[1:] *= -1
    one, _ = encoded(load, number, True, UP if number == E8M0 else NEAREST, values.ravel().astype(np.float64))
    one = one.reshape(values.shape).astype(np.uint32)
    two, four = np.zeros((3, 2), np.int32), np.zeros(3, np.int32)
    back = np.zeros((3, 2, 4), np.float32)
    assert load("narrow_float")("vectors", number, values, two, four, back, len(values)).error == 0
    stride = 4 if number == 5 else 8
    np.testing.assert_array_equal(two, one[:, ::2] | one[:, 1::2] << stride)
    np.testing.assert_array_equal(four.view(np.uint32), sum(one[:, i] << (stride * i) for i in range(4)))
    singly = decoded(load, number, 256)[0][one]
    np.testing.assert_array_equal(back[:, 0], singly)
    np.testing.assert_array_equal(back[:, 1], singly)


def test_instructions_convert_two_at_a_time(load: Callable[..., SimulatedKernel]) -> None:
    """Check cvt to e4m3x2 and e5m2x2: the last operand is in the lower byte, values saturate, relu clears negatives."""
    e4m3, e5m2 = FORMATS["e4m3"], FORMATS["e5m2"]
    values = np.concatenate([numbers(e4m3), numbers(e5m2)]).astype(np.float32).reshape(-1, 2)
    out = np.zeros((8, len(values)), np.int32)
    assert load("narrow_float")("instructions", values, out, len(values)).error == 0

    def pairs(form: Format, of: np.ndarray) -> np.ndarray:
        each = np.array([form.encode(v, True, NEAREST, double=False) for v in of.ravel().astype(np.float64)])
        return each.reshape(-1, 2) @ [1, 256]

    with np.errstate(over="ignore"):
        halves = values.astype(np.float16)
    np.testing.assert_array_equal(out[0], pairs(e4m3, values))
    np.testing.assert_array_equal(out[1], pairs(e5m2, values))
    np.testing.assert_array_equal(out[2], pairs(e4m3, np.where(values < 0, np.float32(0), values)))
    np.testing.assert_array_equal(out[3], pairs(e4m3, halves))
    np.testing.assert_array_equal(out[4], pairs(e5m2, halves))
    for row, form, patterns in ((5, e4m3, out[0]), (6, e5m2, out[1]), (7, e4m3, out[0])):
        decoded = form.values()[np.stack([patterns & 255, patterns >> 8], axis=1)]
        if row == 7:
            decoded = np.where(decoded < 0, 0, decoded)
        np.testing.assert_array_equal(out[row].view(np.float16).reshape(-1, 2), decoded)


@pytest.mark.skipif(not shutil.which("nvcc"), reason="no nvcc")
def test_nvcc_takes_every_conversion(tmp_path: Path) -> None:
    command = ["nvcc", "-arch=sm_90", "-cubin", "-o", str(tmp_path / "out"), str(KERNELS / "narrow_float.cu")]
    assert subprocess.run(command, capture_output=True, text=True).stderr == ""
