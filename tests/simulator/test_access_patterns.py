"""The simulator's counters compared with counts derived by hand, for one access pattern at a time."""

from __future__ import annotations

import re
from functools import cache

import pytest

from grader.execution.build.build import compile_kernel
from grader.frontend.toolchain.compilers import find_cxx
from grader.simulator.line_counters import LineCounters
from grader.simulator.report import Report
from tests.simulator.corpus_kernels import Simulation
from tests.simulator.harness import KERNELS

SOURCE = KERNELS / "access_patterns.cu"
LINES = SOURCE.read_text().splitlines()
WAYS_OF_STRIDES = {1: 1, 2: 2, 3: 1, 4: 4, 8: 8, 16: 16, 17: 1}
_KERNEL = re.compile(r"^__global__ void (\w+)_kernel\(const (\w+)\* x, \w+\* out, int \w+\)", re.MULTILINE)


def with_launchers() -> str:
    """Return the source with a launcher ``name`` for each ``name_kernel`` that has none, and for each stride."""
    text = SOURCE.read_text()
    kernels = [(name, name + "_kernel", dtype) for name, dtype in _KERNEL.findall(text) if name != "shared_stride"]
    kernels += [(f"shared_stride_{stride}", f"shared_stride_kernel<{stride}>", "float") for stride in WAYS_OF_STRIDES]
    return text + "".join(
        f'extern "C" void {name}(const {dtype}* x, {dtype}* out, int n, cudaStream_t stream) '
        f"{{ {kernel}<<<1, 32, 0, stream>>>(x, out, n); }}\n"
        for name, kernel, dtype in kernels
        if f'extern "C" void {name}(' not in text
    )


@cache
def built(compiler: str | None = None):
    return compile_kernel(SOURCE, "cpu", checks=True, compiler=compiler, text=with_launchers())


@cache
def report(launcher: str, n: int = 1024, **settings: object) -> Report:
    kernel = built()
    error, found, _ = Simulation(kernel.libsim).run(kernel, n, launcher, SOURCE, **settings)
    assert error == 0
    return found


def line(launcher: str, text: str, n: int = 1024) -> LineCounters:
    """Return the counters of the line of the launcher's kernel that contains the text."""
    start = next(i for i, row in enumerate(LINES) if f" {launcher}_kernel(" in row or f"void {launcher}(" in row)
    number = next(i for i in range(start, len(LINES)) if text in LINES[i]) + 1
    return next(entry for entry in report(launcher, n).lines if entry.line == number)


@pytest.mark.parametrize(
    ("launcher", "sectors", "ideal", "bytes_read"),
    [
        ("coalesced", 4, 4, 128),
        ("strided", 32, 4, 128),
        ("stride_two", 8, 4, 128),
        ("reversed", 4, 4, 128),
        ("scattered", len({i * i % 32 for i in range(32)}), 4, 4 * len({i * i % 32 for i in range(32)})),
        ("uniform", 1, 1, 4),
        ("shifted", 5, 4, 128),
        ("guarded", 2, 2, 40),
    ],
)
def test_sectors_of_loads(launcher, sectors, ideal, bytes_read):
    totals = report(launcher).totals
    stored = 2 if launcher == "guarded" else 4
    assert totals["requests"] == 2
    assert totals["sectors"] - stored == sectors
    assert totals["ideal_sectors"] - stored == ideal
    assert totals["global_read_bytes"] == bytes_read
    assert totals["global_written_bytes"] == (40 if launcher == "guarded" else 128)


def test_vector_accesses_touch_sixteen_sectors():
    totals = report("vectors").totals
    assert (totals["requests"], totals["sectors"], totals["ideal_sectors"]) == (2, 32, 32)
    assert totals["global_bytes"] == 1024


def test_halves_touch_two_sectors():
    totals = report("halves").totals
    assert (totals["requests"], totals["sectors"], totals["ideal_sectors"]) == (2, 4, 4)


@pytest.mark.skipif(find_cxx().family == "clang", reason="clang++ merges the stores of both branches")
def test_branches_have_separate_requests():
    odd, even = line("branches", "out[threadIdx.x] = x"), line("branches", "out[threadIdx.x] = -x")
    for entry in (odd, even):
        assert (entry.requests, entry.accesses, entry.lanes_per_request) == (2, 32, 16)
        assert entry.sectors == 8


@pytest.mark.parametrize("n", [32, 1000, 1024, 40000])
def test_each_iteration_of_a_loop_is_a_request(n):
    loop = line("loop", "sum += x[i]", n)
    assert loop.requests == -(-n // 32)
    assert loop.accesses == n
    assert loop.sectors == -(-n * 4 // 32)


def test_transpose_through_32_columns_has_32_way_conflicts():
    assert report("transpose_32").totals["bank_conflict_ways"] == 32
    read = line("transpose_32", "tile[threadIdx.x][row]")
    assert (read.shared_requests, read.shared_wavefronts, read.ideal_shared_wavefronts) == (32, 1024, 32)
    write = line("transpose_32", "tile[row][threadIdx.x] =")
    assert (write.shared_wavefronts, write.bank_conflict_ways) == (32, 1)


def test_transpose_through_33_columns_has_no_conflicts():
    totals = report("transpose_33").totals
    assert totals["bank_conflict_ways"] == 1
    assert totals["shared_wavefronts"] == totals["ideal_wavefronts"] == 64


@pytest.mark.parametrize(("stride", "ways"), list(WAYS_OF_STRIDES.items()))
def test_strides_in_shared_memory(stride, ways):
    launcher = f"shared_stride_{stride}"
    read = next(entry for entry in report(launcher).lines if "tile[threadIdx.x * STRIDE]" in entry.source)
    assert (read.shared_requests, read.shared_wavefronts) == (1, ways)


def test_lanes_that_read_the_same_word_do_not_conflict():
    read = line("shared_broadcast", "tile[7]")
    assert (read.shared_requests, read.shared_wavefronts, read.ideal_shared_wavefronts) == (2, 2, 2)


@pytest.mark.parametrize(("launcher", "wavefronts"), [("shared_float4", 8), ("shared_float2", 4)])
def test_vectors_in_shared_memory(launcher, wavefronts):
    totals = report(launcher).totals
    assert totals["shared_wavefronts"] == totals["ideal_wavefronts"] == wavefronts
    assert totals["bank_conflict_ways"] == 1


def test_vectors_in_one_column_conflict_within_each_quarter():
    read = line("shared_float4_column", "tile[threadIdx.x][0]")
    assert (read.shared_wavefronts, read.ideal_shared_wavefronts) == (32, 4)
    assert read.bank_conflict_ways == 8


@pytest.mark.parametrize(("lanes", "wavefronts"), [(32, 2), (17, 2), (16, 1), (1, 1)])
def test_lanes_that_read_the_same_16_bytes_take_a_wavefront_for_each_half(lanes, wavefronts):
    read = line("shared_float4_broadcast", "tile[lanes % 8]", lanes)
    assert (read.shared_requests, read.shared_wavefronts, read.ideal_shared_wavefronts) == (1, wavefronts, wavefronts)
    assert read.bank_conflict_ways == 1


def test_halves_share_words():
    totals = report("shared_halves").totals
    assert totals["shared_wavefronts"] == totals["ideal_wavefronts"] == 3


def test_atomics():
    totals = report("atomics").totals
    assert totals["atomics"] == 32
    entry = line("atomics", "atomicAdd")
    assert (entry.requests, entry.sectors, entry.global_written_bytes) == (2, 5, 32)


@pytest.mark.parametrize(
    ("place", "wavefronts", "ideal"), [("[lane]", 1, 1), ("[0]", 32, 32), ("[lane / 4]", 4, 4), ("[32 * lane]", 32, 1)]
)
def test_shared_memory_atomics_process_one_lane_of_each_bank_at_a_time(place, wavefronts, ideal):
    entry = line("shared_atomics", f"atomicAdd(&bins{place}, 1)")
    assert (entry.atomics, entry.shared_requests) == (32, 1)
    assert (entry.shared_wavefronts, entry.ideal_shared_wavefronts) == (wavefronts, ideal)
    assert entry.bank_conflict_ways == wavefronts / ideal


@pytest.mark.parametrize("n", [1, 127, 128, 1000])
def test_totals_of_a_launch(n):
    totals = report("many_blocks", n).totals
    warps = -(-n // 32)
    assert totals["launches"] == 1
    assert totals["global_read_bytes"] == 4 * n + 4 * warps
    assert totals["global_written_bytes"] == 4 * n
    sectors = -(-n * 4 // 32)
    assert totals["touched_bytes_read"] == totals["touched_bytes_written"] == 32 * sectors
    assert totals["touched_bytes"] == 64 * sectors
    assert totals["requests"] == 3 * warps


def test_long_loops_stay_aligned():
    read = line("long_loop", "sum += tile")
    assert (read.shared_requests, read.accesses, read.shared_wavefronts) == (5000, 160000, 5000)


@pytest.mark.parametrize("settings", [{"schedule": "reverse"}, {"schedule": "random:5"}, {"workers": 2}])
@pytest.mark.parametrize("launcher", ["many_blocks", "long_loop", "transpose_32", "warps", "branches"])
def test_counts_do_not_depend_on_the_schedule(launcher, settings):
    expected, found = report(launcher), report(launcher, **settings)
    assert found.totals == expected.totals
    assert [entry.counters for entry in found.lines] == [entry.counters for entry in expected.lines]


def test_warps_are_counted_one_by_one():
    totals = report("warps").totals
    assert (totals["requests"], totals["shared_requests"], totals["barriers"]) == (16, 16, 1)
    assert totals["sectors"] == 64


def test_barriers_are_counted_at_their_line():
    assert line("warps", "__syncthreads").barriers == 1
    assert report("warps").totals["barriers"] == 1


def test_asynchronous_copies_are_loads_and_stores():
    copy = line("async_copies", "__pipeline_memcpy_async")
    assert (copy.requests, copy.sectors, copy.global_read_bytes) == (1, 16, 512)
    assert (copy.shared_requests, copy.shared_wavefronts) == (1, 4)


def test_prefetched_bytes_are_counted():
    totals = report("prefetched_copies").totals
    assert (totals["async_bytes"], totals["prefetched_bytes"]) == (3 * 512, 512)
    assert report("async_copies").totals["prefetched_bytes"] == 0


def test_early_bytes_were_in_flight_when_another_block_was_read():
    totals = report("early_copies").totals
    assert (totals["async_bytes"], totals["early_bytes"]) == (5 * 512, 3 * 512)
    assert report("prefetched_copies").totals["early_bytes"] == 0


def test_the_launch_of_a_graph_is_one_submission():
    totals = report("replays").totals
    assert (totals["launches"], totals["submissions"], totals["graphs"]) == (7, 5, 1)


def test_constant_memory_is_counted_separately():
    totals = report("constants").totals
    assert totals["constant_bytes"] == 4
    assert totals["global_read_bytes"] == 128


def test_copies_by_the_host_are_counted_as_host_traffic():
    totals = report("host_copies").totals
    assert totals["copied_bytes"] == totals["global_bytes"] == 128 + 128 + 128 + 100 + 60
    assert totals["host_bytes"] == 100 + 60
    assert report("scratch").totals["host_bytes"] == 0


def test_memcpy_in_a_kernel_is_a_load_and_a_store():
    copy = line("copy_words", "std::memcpy")
    assert (copy.requests, copy.sectors) == (2, 8)
    assert (copy.global_read_bytes, copy.global_written_bytes) == (128, 128)


def test_scratch_memory_is_the_peak():
    totals = report("scratch").totals
    assert totals["scratch_bytes"] == 1300 + 400
    assert totals["launches"] == 3


def test_requests_are_recorded_on_request():
    found = report("strided", trace=2)
    load = next(request for request in found.trace if request.name == "x")
    assert load.addresses == {lane: lane * 128 for lane in range(32)}
    assert (load.space, load.write, load.size, load.warp, load.block) == ("global", False, 4, 0, [0, 0, 0])
    assert "x[threadIdx.x * 32]" in LINES[load.line - 1]
    loop = report("long_loop", trace=2)
    reads = [request for request in loop.trace if request.space == "shared" and not request.write]
    assert [request.index for request in reads] == [0, 1]
    first = min(reads[0].addresses.values())
    assert {lane: address - first for lane, address in reads[0].addresses.items()} == {i: 4 * i for i in range(32)}
    assert not report("strided").trace


def test_kernels_are_counted_separately():
    kernels = {kernel.name: kernel for kernel in report("scratch").kernels}
    assert kernels["scratch_kernel"].launches == 2
    assert kernels["scratch_kernel"].block == [32, 1, 1]
    assert kernels["keep_kernel"].totals["global_read_bytes"] == 128
