"""Tests of static and dynamic shared memory and its limits."""

from __future__ import annotations

import numpy as np
import pytest

INVALID_VALUE = 1


@pytest.mark.parametrize("n", [1, 7, 256, 4000])
def test_arrays_of_all_kinds(load, schedule, n):
    kernel = load("shared_memory")
    kernel.configure(**schedule)
    out = np.zeros(256, dtype=np.float32)
    assert kernel("arrays", out, n).error == 0
    t = np.arange(256)
    expected = t // 32 * 32 + 31 - t % 32 + 5 + t % 3 * 100 + n - 1 - t % n + (t + 1) % 256 + 2 * ((t + 1) % 256)
    np.testing.assert_array_equal(out, expected)


def test_blocks_start_with_fresh_memory(load):
    out = np.zeros(64, dtype=np.int32)
    assert load("shared_memory")("fresh", out, 32).error == 0
    np.testing.assert_array_equal(out, -1)


def test_alignment_and_address_spaces(load):
    out = np.full(6, -1, dtype=np.int32)
    assert load("shared_memory")("addresses", out).error == 0
    np.testing.assert_array_equal(out, [0, 0, 0, 0, 1, 1])


@pytest.mark.parametrize(("over", "error"), [(False, 0), (True, INVALID_VALUE)])
def test_static_memory_ends_at_48_kb(load, over, error):
    out = np.zeros(1, dtype=np.int32)
    assert load("shared_memory")("static_limit", out, over).error == error
    assert out[0] == (0 if over else 1)


@pytest.mark.parametrize(("dynamic", "error"), [(0, 0), (8 << 10, 0), ((8 << 10) + 16, INVALID_VALUE)])
def test_static_and_dynamic_memory_share_the_limit(load, dynamic, error):
    out = np.zeros(1, dtype=np.int32)
    assert load("shared_memory")("both_kinds", out, dynamic).error == error
    assert out[0] == (1 if error == 0 else 0)


@pytest.mark.parametrize(
    ("dynamic", "allowed", "error"),
    [
        (48 << 10, -1, 0),
        ((48 << 10) + 1, -1, INVALID_VALUE),
        (100 << 10, 100 << 10, 0),
        ((100 << 10) + 1, 100 << 10, INVALID_VALUE),
        (227 << 10, 227 << 10, 0),
        (1, (227 << 10) + 1, INVALID_VALUE),
    ],
)
def test_dynamic_memory_needs_the_attribute(load, dynamic, allowed, error):
    out = np.zeros(1, dtype=np.int32)
    assert load("shared_memory")("dynamic_limit", out, dynamic, allowed).error == error
    assert out[0] == (3 if error == 0 else 0)
