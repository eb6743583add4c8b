"""Time bounds of kernels with known work, and properties of every bound."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from grader.execution.in_process.kernel import load_kernel
from grader.frontend.toolchain.gpus import GPUS, PER_CYCLE, find_gpu
from grader.judge.timing.floor import OPERATIONS_PER_CYCLE
from grader.judge.timing.limiter import LAUNCH_US, time_bound
from grader.simulator.line_counters import KernelCounters
from grader.simulator.report import Report
from grader.verdict import TimeBound
from grader.verdict.wording import limits

SOURCE = Path(__file__).with_name("limited.cu")
H200 = find_gpu("H200")
N = 1 << 16


@functools.cache
def library():
    return load_kernel(SOURCE, device="cpu", operations=True)


@functools.cache
def report(launcher: str) -> Report:
    kernel = library()
    calls: dict[str, Callable[[], object]] = {
        "copy": lambda: kernel.copy(torch.zeros(N), torch.empty(N), N),
        "copy_twice": lambda: kernel.copy_twice(torch.zeros(N), torch.empty(N), torch.empty(N), N),
        "cleared_and_read": lambda: kernel.cleared_and_read(torch.empty(N), torch.empty(N), N),
        "conflicts": lambda: kernel.conflicts(torch.zeros(1024), torch.empty(32)),
        "pairs": lambda: kernel.pairs(torch.zeros(512, dtype=torch.float16), torch.empty(512, dtype=torch.float16)),
        "mma": lambda: kernel.mma(torch.zeros(128, dtype=torch.int32), torch.empty(128)),
    }
    if launcher in calls:
        calls[launcher]()
    else:
        getattr(kernel, launcher)(torch.zeros(256), torch.empty(256))
    return kernel.report


def bound(launcher: str, name: str = "H200") -> TimeBound:
    return time_bound(report(launcher).kernels, find_gpu(name))


def unit(found: TimeBound, name: str) -> tuple[float, float]:
    """Return the work of a unit and its time in microseconds."""
    (time,) = (time for time in found.units if time.unit == name)
    return time.work, time.microseconds


def test_a_copy_is_limited_by_dram():
    found = bound("copy")
    assert found.limiter.unit == "dram"
    assert unit(found, "dram") == pytest.approx((4 * N, 4 * N / 4.8e12 * 1e6))  # the L2 cache can hold the output
    assert unit(found, "l1") == (2 * 4 * N / 128, pytest.approx(2 * 4 * N / 128 / 64 / 1.98e9 * 1e6))  # 64 blocks


def test_writes_beyond_the_l2_cache_go_to_dram():
    found = time_bound(report("copy").kernels, GPUS["T4"])
    more = KernelCounters("big", launches=1, blocks=1, threads=1, totals={"touched_bytes_written": 6 * 2**20})
    assert (
        unit(time_bound([*report("copy").kernels, more], GPUS["T4"]), "dram")[0] == unit(found, "dram")[0] + 2 * 2**20
    )


def test_reads_of_an_earlier_launchs_output_need_no_dram():
    assert unit(bound("copy_twice"), "dram")[0] == 4 * N
    assert unit(bound("copy_twice"), "l2")[0] == 2 * 4 * N  # both reads come from the L2 cache
    assert unit(bound("copy_twice"), "launches") == (2, 2 * LAUNCH_US)


def test_reads_of_memory_cleared_by_memset_need_no_dram():
    assert unit(bound("cleared_and_read"), "dram")[0] == 0


def test_bank_conflicts_are_limited_by_shared_memory():
    found = bound("conflicts")
    assert found.limiter.unit == "shared"
    joined = 8 * 32 * 32 / 4  # the bound assumes 16-byte reads, which transfer four words at once
    assert unit(found, "shared")[0] == 4 * (joined + 32)
    assert report("conflicts").totals["shared_wavefronts"] == 4 * (8 * 32 * 32 + 32)
    # The blocks run in parallel, each on its own multiprocessor.
    assert unit(found, "shared")[1] == pytest.approx((joined + 32) / 1.98e9 * 1e6)


def test_sines_are_limited_by_the_special_function_units():
    found = bound("sines")
    assert found.limiter.unit == "special"
    assert unit(found, "special") == (4 * 256 * 64, pytest.approx(256 * 64 / 16 / 1.98e9 * 1e6))


def test_a_chain_of_multiplications_is_limited_by_fp32():
    found = bound("products")
    assert found.limiter.unit == "f32"
    assert unit(found, "f32") == (4 * 256 * 512, pytest.approx(256 * 512 / 256 / 1.98e9 * 1e6))
    assert unit(bound("products", "A100"), "f32")[1] == pytest.approx(256 * 512 / 128 / 1.41e9 * 1e6)


def test_a_warp_takes_as_long_for_one_lane():
    assert report("one_lane").totals["flops"] == report("products").totals["flops"] / 32
    assert unit(bound("one_lane"), "f32") == unit(bound("products"), "f32")


def test_a_grid_that_fits_the_simulated_device_could_be_larger_on_another():
    kernel = load_kernel(SOURCE.with_name("fills_device.cu"), device="cpu", operations=True)
    kernel.fill(torch.zeros(256), torch.empty(256))
    found = time_bound(kernel.report.kernels, H200)
    assert unit(found, "l2") == (1024, pytest.approx(1024 / 64 / 132 / 1.98e9 * 1e6))
    assert "multiprocessors" not in limits.text(found)
    assert (
        bound("products").blocks == 4
    )  # the other library, which asked for the device's properties, has no effect here


def test_pairs_of_16_bits_have_their_own_rate():
    found = bound("pairs")
    assert found.limiter.unit == "f16"
    assert unit(found, "f16") == (4 * 256 * 64 * 4, pytest.approx(256 * 64 * 4 / 512 / 1.98e9 * 1e6))
    assert unit(found, "f32")[0] == 0


def test_mma_is_limited_by_tensor_cores():
    found = bound("mma")
    assert found.limiter.unit == "tensor"
    assert unit(found, "tensor") == (4 * 4 * 64 * 4096, pytest.approx(4 * 64 * 4096 / 4096 / 1.98e9 * 1e6))
    assert report("mma").totals["tensor_operations_f16"] == report("mma").totals["tensor_operations"]
    by_card = {name: unit(bound("mma", name), "tensor")[1] * GPUS[name].clock for name in ("L4", "RTX 4090")}
    assert by_card["RTX 4090"] == pytest.approx(2 * by_card["L4"])  # the RTX 4090 accumulates in f32 at half the rate


def test_tensor_operations_of_unknown_type_get_the_fastest_rate():
    kernel = KernelCounters("k", launches=1, blocks=132, threads=132 * 128, totals={"tensor_operations": 8192.0 * 132})
    assert unit(time_bound([kernel], H200), "tensor")[1] == pytest.approx(1e6 / 1.98e9)


@pytest.mark.parametrize("name", GPUS)
@pytest.mark.parametrize("launcher", ["copy", "conflicts", "mma", "pairs"])
def test_a_bound_is_never_negative_and_grows_with_every_counter(launcher, name):
    kernels = report(launcher).kernels
    before = time_bound(kernels, GPUS[name])
    assert all(time.microseconds >= 0 and time.work >= 0 for time in before.units)
    for counter in kernels[0].totals:
        more = dict(kernels[0].totals)
        more[counter] = 2 * more[counter] + 1
        changed = dataclasses.replace(kernels[0], totals=more)
        after = time_bound([changed], GPUS[name])
        assert all(b.microseconds >= a.microseconds for a, b in zip(before.units, after.units)), counter


def test_more_blocks_never_take_longer_for_the_same_work():
    few, many = (
        time_bound(
            [KernelCounters("k", 1, blocks, 32 * blocks, totals={"warp_flops": 1e9, "least_wavefronts": 1e6})], H200
        )
        for blocks in (2, 200)
    )
    assert few.microseconds > many.microseconds
    assert all(a.microseconds >= b.microseconds for a, b in zip(few.units, many.units))


def test_no_kernel_takes_no_time():
    nothing = time_bound([], H200)
    assert nothing.microseconds == 0
    assert limits.text(nothing) == "The simulator counted no work that takes time on an H200."


def test_the_sentence_names_unit_gpu_size_and_that_it_is_a_bound():
    found = time_bound(report("products").kernels, H200, "counted", "f32", {"n": 256})
    said = limits.text(found)
    assert said.startswith("On an H200, FP32 arithmetic limits this kernel: it takes at least 0.259 us (others: ")
    assert "Its blocks use only 4 of the 132 multiprocessors." in said
    assert "launch alone takes at least 0.5 us" in said
    assert said.endswith(
        "a lower bound for the counted case, 'counted' (f32, n=256), not a prediction: a real run takes longer."
    )
    without = [KernelCounters("k", 1, 200, 200, totals={"first_read_bytes": 4.8e9})]
    assert "DRAM limits this kernel: it takes at least 1,000 us. Arithmetic was not counted." in limits.text(
        time_bound(without, H200)
    )


@pytest.mark.parametrize("known", GPUS.values(), ids=lambda known: known.name)
def test_rates_of_a_cycle_agree_with_the_data_sheet(known):
    """Rates computed with the maximum clock are at least the data sheet's, and only slightly higher."""
    per_second = known.sms * known.clock
    assert 0.99 <= per_second * 2 * known.per_cycle.f32 / known.f32 < 1.3
    assert 0.99 <= per_second * known.tensor("f16") / known.f16_tensor < 1.3


def test_the_floor_uses_the_fastest_gpu_of_each_family():
    for arch, cycle in PER_CYCLE.items():
        major = int(arch.removeprefix("sm_")) // 10
        assert cycle.tensor["f16"] <= OPERATIONS_PER_CYCLE.get(major, cycle.tensor["f16"])
