"""Tests of mbarriers, bulk copies and setmaxnreg: correct kernels give correct results in any order of threads."""

from __future__ import annotations

import numpy as np
import pytest

from grader.execution.build.build import compile_kernel
from grader.setup.errors import BuildError
from grader.verdict.wording.findings import message
from tests.simulator.corpus_kernels import CORPUS, CorpusFile, Simulation
from tests.simulator.harness import run

RNG = np.random.default_rng(11)


@pytest.fixture(params=[False, True], ids=["plain", "checked"])
def kernel(load, request):
    return load("mbarrier", checks=request.param)


@pytest.mark.parametrize("tiles", [0, 1, 2, 3, 9])
def test_bulk_copies_that_complete_on_an_mbarrier(kernel, schedule, tiles):
    x = RNG.standard_normal((tiles, 256)).astype(np.float32)
    out = np.zeros_like(x)
    run(kernel, "run_doubled", x, out, tiles, **schedule)
    np.testing.assert_array_equal(out, 2 * x[:, ::-1])


def test_states_of_phases(kernel, schedule):
    out = np.zeros((2, 64), dtype=np.int32)
    run(kernel, "run_states", out, **schedule)
    np.testing.assert_array_equal(out[0], 63 - np.arange(64))
    # The second phase expects 63 arrivals, so the states that they return have 63, 62, ... 1 pending. On a GPU the
    # lanes of a warp arrive together and get the same number.
    assert not kernel.in_order or sorted(out[1]) == [0, *range(1, 64)]
    assert out[1, 7] == 0 and (out[1] >= 0).all() and (out[1] < 64).all()


@pytest.mark.parametrize("rounds", [1, 2, 7])
def test_thread_copies_that_complete_on_an_mbarrier(kernel, schedule, rounds):
    x = RNG.standard_normal((rounds, 32, 4)).astype(np.float32)
    out = np.zeros_like(x)
    run(kernel, "run_copied", x, out, rounds, **schedule)
    np.testing.assert_array_equal(out, x[:, ::-1])


@pytest.mark.parametrize("rows", [1, 2, 5])
def test_bulk_stores(kernel, schedule, rows):
    x = RNG.standard_normal((rows, 128)).astype(np.float32)
    out = np.zeros_like(x)
    run(kernel, "run_stored", x, out, rows, **schedule)
    expected = x + np.float32(1)
    expected[0, 0] += 1
    np.testing.assert_array_equal(out, expected)


def test_one_lane_is_elected(kernel, schedule):
    out = np.zeros(32, dtype=np.int32)
    run(kernel, "run_elected", np.zeros(64, dtype=np.float32), out, **schedule)
    np.testing.assert_array_equal(out, [21011] + 31 * [21000])


@pytest.mark.parametrize("count", [20, 70, 264])
def test_setmaxnregs_count_is_checked_at_compile_time(tmp_path, count):
    file = tmp_path / "registers.cu"
    statement = f'asm volatile("setmaxnreg.dec.sync.aligned.u32 {count};");'
    file.write_text(
        f'__global__ void __launch_bounds__(128, 1) f() {{ {statement} }}\nextern "C" void run() {{ f<<<1, 128>>>(); }}'
    )
    with pytest.raises(BuildError, match="multiple of 8 from 24 to 256"):
        compile_kernel(file, "cpu")


def test_bulk_copies_move_whole_sectors():
    file = CorpusFile.read(CORPUS / "clean" / "warp_specialized.cu")
    kernel = compile_kernel(file.path, "cpu", checks=True, text=file.text())
    error, report, out = Simulation(kernel.libsim).run(kernel, 1024)
    assert error == 0 and not report.findings
    np.testing.assert_array_equal(out, 2 * np.arange(1, 1025).reshape(8, 128)[:, ::-1].ravel() + 1)
    totals = next(k for k in report.kernels if "scale" in k.name).totals
    assert totals["global_read_bytes"] == totals["global_written_bytes"] == 4 * 1024
    assert totals["sectors"] == totals["ideal_sectors"] == 2 * 4 * 1024 / 32


def test_a_deadlocked_wait_reports_what_is_missing():
    file = CorpusFile.read(CORPUS / "synccheck" / "bytes_that_never_arrive.cu")
    kernel = compile_kernel(file.path, "cpu", checks=True, text=file.text())
    _, report, _ = Simulation(kernel.libsim).run(kernel, file.n)
    said = message(report.findings[0])
    assert "128 threads" in said and "0 of 1 arrival missing, 512 bytes missing" in said


def test_warpgroups_share_registers(kernel, schedule):
    x = RNG.standard_normal(128).astype(np.float32)
    out = np.zeros_like(x)
    run(kernel, "run_registers", x, out, **schedule)
    np.testing.assert_array_equal(out, x[::-1])
