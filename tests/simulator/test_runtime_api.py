"""Tests of the CUDA runtime API in launchers and in complete programs."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from tests.simulator.harness import KERNELS

INVALID_VALUE, OUT_OF_MEMORY, INVALID_DEVICE, INVALID_HANDLE = 1, 2, 101, 400


def test_memory(load):
    x, out = np.arange(1000, dtype=np.float32), np.full(17, -1, dtype=np.int32)
    assert load("runtime_api")("memory", x, out, 1000).error == 0
    np.testing.assert_array_equal(out, 1)
    np.testing.assert_array_equal(x, np.arange(1000) * (np.arange(1000) % 4 + 1))


def test_failures_say_what_cuda_says(load):
    x, out = np.zeros(10, dtype=np.float32), np.full(17, -1, dtype=np.int32)
    assert load("runtime_api")("failures", x, out, 10).error == 0
    expected = [INVALID_VALUE] * 3 + [0] + [INVALID_VALUE] * 5 + [OUT_OF_MEMORY, 1, INVALID_VALUE, INVALID_DEVICE, 0, 0]
    expected += [INVALID_HANDLE] * 2
    np.testing.assert_array_equal(out, expected)


def test_streams_events_properties_occupancy(load):
    out = np.full(32, -1, dtype=np.int32)
    assert load("runtime_api")("queries", out).error == 0
    np.testing.assert_array_equal(out[:15], 1)
    np.testing.assert_array_equal(out[30:], 1)


@pytest.mark.parametrize("n", [3, 100])
def test_kernels_by_address(load, n):
    x, y = np.arange(n, dtype=np.float32), np.ones(n, dtype=np.float32)
    assert load("runtime_api")("by_address", 2.0, x, y, n).error == 0
    np.testing.assert_array_equal(y, 2 * np.arange(n) + 1 + 3 + (10 if n > 5 else 20))


def test_kernels_launch_kernels(load):
    out = np.zeros(4, dtype=np.int32)
    assert load("nested_launch")("nested", out).error == 0
    np.testing.assert_array_equal(out, [1, 2, 3, 4])


def test_a_program_with_a_main():
    code = """
import ctypes
from tests.simulator.harness import KERNELS
from grader.execution.build.build import compile_kernel
built = compile_kernel(KERNELS / "program.cu", "cpu", checks=False)
raise SystemExit(ctypes.CDLL(str(built.library)).grader_call_main(None))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done
    assert (KERNELS / "program.cu").exists()
    assert done.stdout == "host 1\ndevice 7\nhost 2: sum 4950\ndevice 8\n", done.stdout


def test_clocks(load):
    out = np.zeros(64, dtype=np.int32)
    assert load("runtime_api")("clocks", out).error == 0
    np.testing.assert_array_equal(out, 1)


def test_launches_that_cuda_refuses(load):
    out = np.full(31, -1, dtype=np.int32)
    assert load("runtime_api")("failing_launches", out).error == INVALID_VALUE
    expected = [*[INVALID_VALUE] * 4, 0, 0]
    np.testing.assert_array_equal(out[:6], expected)
