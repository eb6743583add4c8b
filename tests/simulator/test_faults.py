"""Tests that faulty kernels return a CUDA error, and that the process can continue."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from grader.simulator.report import Report
from grader.verdict.findings.barriers import EndlessLoop
from tests.simulator.harness import SimulatedKernel

ILLEGAL_ADDRESS, TIMEOUT, ASSERT, STACK, MISALIGNED, FAILURE = 700, 702, 710, 714, 716, 719


@pytest.fixture
def faults(load):
    kernel = load("faults")
    yield kernel
    kernel.configure(watchdog_seconds=10, spin_rounds=100000)
    out = np.zeros(32, dtype=np.int32)
    assert kernel("fine", out).error == 0, "the next launch must work"
    np.testing.assert_array_equal(out, range(32))


def ints(n: int = 64) -> np.ndarray:
    return np.zeros(n, dtype=np.int32)


@pytest.mark.parametrize("offset", [2**40, -(2**44), 2**55])
def test_wild_pointers(faults, offset):
    assert faults("wild", ints(), offset).error == ILLEGAL_ADDRESS


def test_null_pointer(faults):
    assert faults("null_pointer", ints(), 0).error == ILLEGAL_ADDRESS


def test_misaligned_vector(faults):
    x, out = np.arange(32, dtype=np.float32), np.zeros(1, dtype=np.float32)
    assert faults("misaligned", x, out, 4).error == 0
    assert out[0] == 4 + 5 + 6 + 7
    # Without checks, the compiler may split the misaligned access, so that it does not fault.
    assert faults("misaligned", x, out, 3).error in (0, MISALIGNED)


def test_misaligned_and_wild_atomics(faults):
    assert faults("misaligned_atomic", ints()).error == MISALIGNED
    assert faults("wild_atomic", ints()).error == ILLEGAL_ADDRESS


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="this system may not trap divisions by zero")
def test_division_by_zero(faults):
    import platform

    error = faults("divide", np.array([1, 2, 0, 3], dtype=np.int32), ints()).error
    assert error == (0 if platform.machine() in ("aarch64", "arm64") else FAILURE)


def test_recursion_works_until_the_stack_overflows(faults):
    assert faults("recursion", ints(), 50).error == 0
    assert faults("recursion", ints(), 1_000_000).error == STACK


def test_a_local_array_that_is_larger_than_the_stack(faults):
    assert faults("big_local", ints(), 1 << 20).error == STACK


@pytest.mark.parametrize("launcher", ["forever", "stuck", "wait_for_ever", "barrier_for_ever"])
@pytest.mark.parametrize("workers", [1, 2])
def test_infinite_loops(faults, launcher, workers):
    """Check only that the kernels end, because their time depends on the machine's load."""
    faults.configure(workers=workers, watchdog_seconds=0.3)
    assert faults(launcher, ints()).error == TIMEOUT


ENDLESS = """__device__ __noinline__ float sum(const float* x) {
    float s = 0;
    for (int j = 0; j < 4; ++j) s += x[j];
    return s;
}
__global__ void no_access_kernel(float* x, int n) {
    float s = 0;
    for (unsigned i = n; i >= 0; --i) s += i;
    x[0] = s;
}
__global__ void calls_kernel(float* x, int n) {
    int i = 0;
    while (i < n) x[4] = sum(x);
}
extern "C" void no_access(float* x, int n, cudaStream_t stream) { no_access_kernel<<<1, 1, 0, stream>>>(x, n); }
extern "C" void calls(float* x, int n, cudaStream_t stream) { calls_kernel<<<1, 1, 0, stream>>>(x, n); }
"""


@pytest.mark.parametrize(("launcher", "lines", "loop"), [("no_access", {8}, 8), ("calls", {3, 13}, 13)])
def test_the_endless_loop_is_named(tmp_path: Path, launcher: str, lines: set[int], loop: int) -> None:
    """Name the loop and a line in it, where the loop accesses no memory or calls a function."""
    file = tmp_path / "endless.cu"
    file.write_text(ENDLESS)
    kernel = SimulatedKernel(file, checks=True)
    kernel.configure(watchdog_seconds=0.3)
    try:
        outcome = kernel(launcher, np.zeros(8, dtype=np.float32), 1)
    finally:
        kernel.configure(watchdog_seconds=10)
    (finding,) = Report.from_json(json.dumps(outcome.report), kernel.built.library, file).findings
    assert outcome.error == TIMEOUT and finding.kind == "infinite_loop"
    assert finding.line in lines and finding.payload == EndlessLoop(reason="", loop=f"endless.cu:{loop}")


def test_unsuccessful_polls_are_counted_not_timed(faults):
    """Check that the deadlock limit counts unsuccessful polls, and that the count restarts when a thread progresses."""
    faults.configure(watchdog_seconds=1000, spin_rounds=1000)
    assert faults("wait_for_ever", ints()).error == TIMEOUT
    turn = ints()
    assert faults("take_turns", turn, 3000, 20).error == 0
    assert turn[0] == 6000
    assert faults("take_turns", ints(), 1, 100000).error == TIMEOUT


@pytest.mark.parametrize("launcher", ["barrier_and_warp", "masks_differ"])
def test_deadlocks_are_detected_at_once(faults, launcher):
    faults.configure(watchdog_seconds=1000)
    assert faults(launcher, ints(192)).error == TIMEOUT


def test_different_intrinsics_do_not_synchronize(faults):
    assert faults("kinds_differ", ints()).error == FAILURE


def test_a_lane_outside_its_own_mask_does_not_hang(faults):
    assert faults("not_in_mask", ints()).error in (0, FAILURE, TIMEOUT)


def test_a_trap_fails_the_launch(faults):
    assert faults("trap", ints()).error == FAILURE


def test_a_failed_assertion_names_its_line(faults):
    outcome = faults("assertion", np.array([1, 2, 5, 4, 5, 6, 7, 8], dtype=np.int32))
    assert outcome.error == ASSERT
    assert "thread 0\nthread 1\nthread 2\n" in outcome.output
    assert "thread: [2,0,0] Assertion `x[threadIdx.x] != 5` failed." in outcome.output
    assert "faults.cu:" in outcome.output


def test_exceptions_do_not_leave_a_kernel(faults):
    assert faults("throws", ints()).error == FAILURE


def test_calls_after_a_fault_fail_until_a_reset(faults):
    out, errors = np.full(64, -1, dtype=np.int32), np.full(5, -1, dtype=np.int32)
    assert faults("fault_then_fine", out, errors).error == FAILURE
    np.testing.assert_array_equal(errors, [1, 0, FAILURE, FAILURE, FAILURE])
    np.testing.assert_array_equal(out[:32], -1)


def test_repeated_faults_leak_no_memory(faults):
    for _ in range(50):
        assert faults("null_pointer", ints(), 0).error == ILLEGAL_ADDRESS
        assert faults("barrier_and_warp", ints(192)).error == TIMEOUT


def test_the_process_keeps_its_own_signal_handlers(faults):
    caught = []
    faults.configure(watchdog_seconds=0.3)
    previous = signal.signal(signal.SIGVTALRM, lambda *_: caught.append(1))
    try:
        faults("null_pointer", ints(), 0)
        faults("stuck", ints())
        signal.raise_signal(signal.SIGVTALRM)
        assert caught == [1]
    finally:
        signal.signal(signal.SIGVTALRM, previous)


def test_a_crash_of_the_process_itself_is_still_a_crash():
    code = """
import ctypes, numpy as np
from tests.simulator.harness import KERNELS, SimulatedKernel
kernel = SimulatedKernel(KERNELS / "faults.cu")
assert kernel("null_pointer", np.zeros(64, dtype=np.int32), 0).error == 700
ctypes.string_at(8)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60)
    assert done.returncode == -signal.SIGSEGV


def test_an_interrupt_ends_the_launch(faults):
    faults.configure(watchdog_seconds=1000)
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    # Restore SIGINT, because processes that a shell starts in the background ignore it.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            timer.start()
            faults("forever", ints())
    finally:
        signal.signal(signal.SIGINT, before)
