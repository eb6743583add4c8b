"""Tests that vector types are loaded and stored in one access each, as on a GPU."""

from __future__ import annotations

import json

import numpy as np
import pytest

from grader.frontend.toolchain.compilers import find_cxx
from grader.simulator.report import Report

RNG = np.random.default_rng(19)


def lines_of(kernel, launcher, *arguments):
    """Return the counters of the lines marked "counted": one line, or a load line and a store line."""
    outcome = kernel(launcher, *arguments)
    assert outcome.error == 0 and not outcome.report["findings"], outcome
    report = Report.from_json(json.dumps(outcome.report), kernel.built.library, source=kernel.built.file)
    return [line for line in report.lines if "counted" in line.source]


# Name, array elements for each thread, their type, bytes in one access, and accesses for each thread and direction.
TYPES = [
    ("float", 1, np.float32, 4, 1),
    ("float2", 2, np.float32, 8, 1),
    ("float4", 4, np.float32, 16, 1),
    ("int2", 2, np.int32, 8, 1),
    ("uint4", 4, np.int32, 16, 1),
    ("double2", 2, np.float64, 16, 1),
    ("half", 1, np.float16, 2, 1),
    ("half2", 2, np.float16, 4, 1),
    ("bfloat162", 2, np.uint16, 4, 1),
    ("uchar4", 4, np.uint8, 4, 1),
    ("short4", 4, np.int16, 8, 1),
    ("double4", 4, np.float64, 16, 2),  # no access is wider than 16 bytes
]


@pytest.mark.parametrize(("name", "count", "dtype", "width", "accesses"), TYPES, ids=[t[0] for t in TYPES])
def test_one_access_for_an_element(load, name, count, dtype, width, accesses):
    x = RNG.integers(0, 100, (32, count)).astype(dtype)
    out = np.zeros_like(x)
    (line,) = lines_of(load("vector_types", checks=True), f"copy_{name}", x, out)
    np.testing.assert_array_equal(out, x)
    assert line.accesses == 2 * 32 * accesses  # loads and stores
    assert line.requests == 2 * accesses
    assert line.global_read_bytes == line.global_written_bytes == 32 * width * accesses
    assert line.sectors == (line.ideal_sectors if accesses == 1 else 2 * line.ideal_sectors)


def test_components_change_in_registers(load):
    x, out = RNG.standard_normal((32, 4)).astype(np.float32), np.zeros((32, 4), dtype=np.float32)
    lines = lines_of(load("vector_types", checks=True), "scale", x, out)
    doubled = 2 * x[:, 0]
    np.testing.assert_array_equal(out, np.stack([doubled, x[:, 1] + doubled, x[:, 3], x[:, 3]], 1))
    assert [(line.accesses, line.requests, line.sectors) for line in lines] == [(32, 1, 16), (32, 1, 16)]


def test_one_component_is_a_narrow_access(load):
    x, out = RNG.standard_normal((32, 4)).astype(np.float32), np.zeros(32, dtype=np.float32)
    (line,) = lines_of(load("vector_types", checks=True), "component", x, out)
    np.testing.assert_array_equal(out, x[:, 1])
    assert line.global_read_bytes == 32 * 4 and line.sectors == 16 + 4


BY_MEMBERS = pytest.mark.skipif(find_cxx().family == "clang", reason="clang++ reads such a structure member by member")


@pytest.mark.parametrize("way", ["uint4", "union", pytest.param("struct", marks=BY_MEMBERS)])
def test_eight_halves_at_once(load, way):
    x, out = RNG.standard_normal((32, 8)).astype(np.float16), np.zeros((32, 8), dtype=np.float16)
    lines = lines_of(load("vector_types", checks=True), f"add_by_{way}", x, out)
    np.testing.assert_array_equal(out, x + x)
    assert [(line.accesses, line.requests, line.sectors) for line in lines] == [(32, 1, 16), (32, 1, 16)]


def test_all_constructors_and_make_functions(load):
    out = np.zeros(18, dtype=np.float32)
    assert load("vector_types")("make_all", out).error == 0
    assert out.tolist() == [7, 8, 9, 3, 11, 14, 16, 20, 255, 21, 0.75, -1, 7, 32, 8, 51, 16, 32]
