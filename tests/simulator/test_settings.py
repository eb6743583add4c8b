"""Tests of settings, of device memory, and of the simulator in a process with several threads."""

from __future__ import annotations

import ctypes
import itertools
import threading

import numpy as np
import pytest


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("workers", "0"),
        ("workers", "two"),
        ("workers", ""),
        ("checks", "2"),
        ("schedule", "sideways"),
        ("schedule", "random:"),
        ("schedule", "random:x"),
        ("watchdog_seconds", "-1"),
        ("spin_rounds", "1"),
        ("stack_kilobytes", "1"),
        ("arena_megabytes", "0"),
        ("same_value_races", "2"),
        ("no_such_setting", "1"),
    ],
)
def test_bad_settings_are_refused(load, key, value):
    assert load("faults").sim.sim_configure(key.encode(), value.encode()) == -1


def test_larger_stacks(load):
    kernel = load("faults")
    x = np.zeros(64, dtype=np.int32)
    assert kernel("recursion", x, 5000).error != 0
    kernel.configure(stack_kilobytes=4096)
    try:
        assert kernel("recursion", x, 5000).error == 0
    finally:
        kernel.configure(stack_kilobytes=0)
    assert kernel("recursion", x, 5000).error != 0


def test_tensors_are_aligned_separate_and_poisoned(load):
    sim = load("faults").sim
    sim.sim_reset()
    shape = (ctypes.c_int64 * 1)(0)
    places = []
    for number, (size, offset) in enumerate([(1, 0), (1000, 0), (0, 0), (64, 4), (1 << 20, 12), (5, 0)]):
        shape[0] = size
        address = sim.sim_tensor_alloc(b"t%d" % number, b"u8", 1, shape, size, offset)
        assert address % 256 == offset
        content = ctypes.string_at(address, size)
        assert content == b"\xff" * size
        places.append((address, size))
    places.sort()
    for (low, size), (high, _) in itertools.pairwise(places):
        assert high - (low + size) >= 4096, "red zones must lie between tensors"
    sim.sim_reset()


def test_memory_is_available_again_after_a_reset(load):
    sim = load("faults").sim
    shape = (ctypes.c_int64 * 1)(0)
    first = None
    for _ in range(5):
        sim.sim_reset()
        address = sim.sim_tensor_alloc(b"large", b"u8", 1, shape, 1 << 26, 0)
        assert address
        first = first or address
        assert address == first
    sim.sim_reset()


def test_a_tensor_that_does_not_fit(load):
    shape = (ctypes.c_int64 * 1)(0)
    assert not load("faults").sim.sim_tensor_alloc(b"huge", b"u8", 1, shape, 1 << 62, 0)


def test_launches_from_several_threads_take_turns(load):
    kernel = load("barriers")
    entry = kernel._library.grader_call_neighbors
    shape = (ctypes.c_int64 * 1)(0)
    kernel.sim.sim_reset()
    addresses = [kernel.sim.sim_tensor_alloc(b"out", b"i32", 1, shape, 4 * 256 * 4, 0) for _ in range(4)]
    errors = []

    def work(address: int) -> None:
        values = [ctypes.c_void_p(address), ctypes.c_int(4), ctypes.c_int(256), ctypes.c_int(5), ctypes.c_void_p(None)]
        arguments = (ctypes.c_void_p * 5)(*(ctypes.addressof(v) for v in values))
        for _ in range(20):
            errors.append(entry(arguments))

    threads = [threading.Thread(target=work, args=(address,)) for address in addresses]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(errors) == {0}
    for address in addresses:
        out = np.frombuffer(ctypes.string_at(address, 4 * 256 * 4), dtype=np.int32).reshape(4, 256)
        np.testing.assert_array_equal(out, np.tile((np.arange(256) + 5) % 256, (4, 1)))
    kernel.sim.sim_reset()
