"""Measure the figures of day 15's lesson on the first GPU of the machine that runs this script.

    python lessons/day15_performance/measure.py            print tables
    python lessons/day15_performance/measure.py --record   also write performance_gpu.json, which the lesson shows

Ceilings and latencies; every version of the sum of squares, and a sweep of its loads; the cost of a launch in four
ways; the effect of tiny sizes, the cache, the first call and the clock on a measurement; copies beside kernels; pools
and managed memory; the day's solutions beside torch. It takes about a minute. GPU times are medians by CUDA events;
host times are by the host's clock. The tables and the record name the GPU.
"""

from __future__ import annotations

import argparse
import datetime
import itertools
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT))

from grader import load_kernel  # noqa: E402  (in the folder that was added above)
from grader.judge.timing.sources import write_record  # noqa: E402

Run = Callable[[], Any]
Row = dict[str, Any]

N = 1 << 28
"""Floats of the sum of squares: 1 GiB, twenty times an H200's L2."""
STEPS = {
    "1: one load of 4 bytes": (1, 0, 1),
    "2: one load of 16 bytes": (4, 1, 1),
    "3: four loads of 16 bytes": (4, 4, 1),
    "4: four blocks an SM": (4, 4, 4),
    "5: cp.async in place of registers": (4, 0, 4),
}
"""The lesson's versions: floats per load, loads at a time (0: see squares.cu), blocks of 256 threads per SM."""
WIDTHS, LOADS, BLOCKS = (1, 2, 4), (1, 2, 4, 8), (1, 2, 4, 8)
RUNS, WARMUP = 7, 2


def gpu_us(run: Run, runs: int = RUNS, warmup: int = WARMUP) -> float:
    """Return the median GPU time of a run, without gaps: Python enqueues the runs behind a kernel that waits."""
    for _ in range(warmup):
        run()
    torch.cuda.synchronize()
    events = [torch.cuda.Event(enable_timing=True) for _ in range(runs + 1)]
    torch.cuda._sleep(2_000_000)
    for event in events[:-1]:
        event.record()
        run()
    events[-1].record()
    torch.cuda.synchronize()
    return statistics.median(a.elapsed_time(b) * 1e3 for a, b in itertools.pairwise(events))


def wall_us(run: Run, calls: int, repeats: int = 5) -> float:
    """Return the median host time per call in a row of many, including the end of the last on the GPU."""
    run()
    times = []
    for _ in range(repeats):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(calls):
            run()
        torch.cuda.synchronize()
        times.append((time.perf_counter() - start) / calls * 1e6)
    return statistics.median(times)


def processors() -> int:
    """Return the number of SMs of this GPU."""
    return torch.cuda.get_device_properties(0).multi_processor_count


def ceilings() -> Row:
    """Return the rates that single-purpose kernels reach, in bytes and operations per second."""
    kernel = load_kernel(HERE / "ceilings.cu", device="cuda")
    a, b = torch.zeros(N, device="cuda"), torch.empty(N, device="cuda")
    copied = 2 * a.nbytes / gpu_us(lambda: b.copy_(a)) * 1e6
    out, blocks, rounds = torch.zeros(1, device="cuda"), processors() * 8, 20_000
    adds = 2.0 * blocks * 256 * 8 * rounds / gpu_us(lambda: kernel.multiply_adds(out, blocks, rounds)) * 1e6
    x, w = (torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    y = torch.empty_like(x)
    tensor = 2.0 * 8192**3 / gpu_us(lambda: torch.mm(x, w, out=y)) * 1e6
    return {"copy": copied, "f32": adds, "bf16_tensor": tensor, "latency_ns": latencies(kernel)}


def latencies(kernel: Any) -> dict[str, float]:
    """Return the latency of one load in nanoseconds, by a chain of dependent loads in L2 and in memory."""
    found, hops, apart = {}, 20_000, 32
    for name, lines in (("L2", 1 << 16), ("memory", 1 << 22)):  # lines of 128 bytes: 8 MiB and 512 MiB
        order = torch.randperm(lines, device="cuda").int() * apart
        chain = torch.zeros(lines * apart, dtype=torch.int32, device="cuda")
        chain[order.long()] = order.roll(-1)
        end = torch.zeros(1, dtype=torch.int32, device="cuda")
        found[name] = gpu_us(lambda c=chain, e=end: kernel.chase(c, e, hops), runs=3, warmup=4) * 1e3 / hops
    return found


def sums(x: Tensor) -> Row:
    """Check and time the versions of the sum of squares, and the sweep."""
    kernel = load_kernel(HERE / "squares.cu", device="cuda")
    partials, out = torch.empty(16 * processors(), device="cuda"), torch.empty(1, device="cuda")
    expected = float(sum(part.double().square().sum() for part in x.split(1 << 26)))
    found = torch.zeros(2, dtype=torch.int32, device="cuda")

    def row(width: int, loads: int, blocks: int) -> Row:
        run = lambda: kernel.squares(x, partials, out, x.numel(), width, loads, blocks * processors())  # noqa: E731
        run()
        off = abs(float(out) - expected) / expected
        if not off < 1e-4:
            raise SystemExit(f"squares of {width}, {loads}, {blocks} are wrong by {off:.1g}: no times of wrong kernels")
        us = gpu_us(run, runs=5)
        kernel.residents(found, width, loads, 256, 0)
        fit, registers = found.tolist()
        return {
            "width": width,
            "loads": loads,
            "blocks": blocks,
            "us": round(us, 2),
            "bytes_per_second": x.nbytes / us * 1e6,
            "registers": registers,
            "blocks_that_fit": fit,
        }

    steps = [{"name": name, **row(*how)} for name, how in STEPS.items()]
    sweep = [row(width, loads, blocks) for width in WIDTHS for loads in LOADS for blocks in BLOCKS]
    sizes = []
    for power in range(16, 29, 2):
        part = x[: 1 << power]
        run = lambda part=part: kernel.squares(part, partials, out, part.numel(), 4, 4, 4 * processors())  # noqa: E731
        sizes.append({"bytes": part.nbytes, "us": gpu_us(run, runs=15)})
    return {"n": x.numel(), "steps": steps, "sweep": sweep, "sizes": sizes}


def launch_costs() -> Row:
    """Time an almost empty launch on the host, in several ways; and RMSNorm at a tiny and a large size."""
    kernel = load_kernel(HERE / "launches.cu", device="cuda")
    x, y = torch.zeros(1, device="cuda"), torch.zeros(1, device="cuda")
    kernel.capture(x, 100)
    found = {
        "torch: x + y": wall_us(lambda: x + y, 2000),
        "torch: x.add_(y)": wall_us(lambda: x.add_(y), 2000),
        "our launcher, from Python": wall_us(lambda: kernel.launch(x, 1), 2000),
        "a launch from C++": wall_us(lambda: kernel.launch(x, 2000), 1) / 2000,
        "a node of a graph of 100, replayed": wall_us(lambda: kernel.replay(20), 1) / 2000,
    }
    ours = load_kernel(ROOT / "solutions/day02_reductions/rms_norm.cu", device="cuda")
    ratios = []
    for rows, cols in ((2, 4), (64, 4096), (16384, 4096)):
        a, weight = torch.randn(rows, cols, device="cuda"), torch.ones(cols, device="cuda")
        out = torch.empty_like(a)

        def eager(a: Tensor = a, weight: Tensor = weight) -> Tensor:
            return a * torch.rsqrt(a.pow(2).mean(-1, keepdim=True) + 1e-6) * weight

        def fused(
            a: Tensor = a, weight: Tensor = weight, out: Tensor = out, rows: int = rows, cols: int = cols
        ) -> None:
            ours.rms_norm_f32(a, weight, out, rows, cols, 1e-6)

        calls = 500 if rows < 1000 else 50
        ratios.append(
            {
                "rows": rows,
                "cols": cols,
                "torch_host_us": wall_us(eager, calls),
                "ours_host_us": wall_us(fused, calls),
                "torch_gpu_us": gpu_us(eager, runs=25),
                "ours_gpu_us": gpu_us(fused, runs=25),
            }
        )
    return {"us": found, "rms_norm": ratios}


def first_calls() -> Row:
    """Time the first calls of a new kernel, and the same work repeatedly after a second of rest."""
    kernel = load_kernel(HERE / "features.cu", device="cuda")
    x, out = torch.zeros(1 << 20, device="cuda"), torch.empty(1 << 20, device="cuda")
    calls = []
    for _ in range(6):
        torch.cuda.synchronize()
        start = time.perf_counter()
        kernel.with_scratch(x, out, 1 << 20, True)
        torch.cuda.synchronize()
        calls.append((time.perf_counter() - start) * 1e6)
    ceiling = load_kernel(HERE / "ceilings.cu", device="cuda")
    one, blocks = torch.zeros(1, device="cuda"), processors() * 8
    torch.cuda.synchronize()
    time.sleep(1.5)
    work = []
    for _ in range(40):
        start_event, end_event = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start_event.record()
        ceiling.multiply_adds(one, blocks, 4000)
        end_event.record()
        torch.cuda.synchronize()
        work.append(start_event.elapsed_time(end_event) * 1e3)
    return {"calls_us": calls, "after_rest_us": work}


def copies_beside_kernels(x: Tensor) -> Row:
    """Time copying a GiB from pinned memory and summing it piece by piece, in one stream and in two."""
    kernel = load_kernel(HERE / "squares.cu", device="cuda")
    pieces = 16
    host = torch.empty(x.numel(), pin_memory=True)
    place, partials = torch.empty_like(x), torch.empty(8 * processors(), device="cuda")
    out = torch.empty(pieces, device="cuda")
    size = x.numel() // pieces
    streams = [torch.cuda.Stream() for _ in range(2)]

    def run(count: int) -> None:
        for i in range(pieces):
            with torch.cuda.stream(streams[i % count]):
                part = place[i * size : (i + 1) * size]
                part.copy_(host[i * size : (i + 1) * size], non_blocking=True)
                half = partials[i % 2 * 4 * processors() :][: 4 * processors()]
                for _ in range(8):  # enough work to hide a copy behind
                    kernel.squares(part, half, out[i : i + 1], size, 4, 1, processors())

    return {f"{count} stream{'s' * (count > 1)}": wall_us(lambda c=count: run(c), 1) for count in (1, 2)}


def memory() -> Row:
    """Time calls on the host that allocate working memory or use managed memory."""
    kernel = load_kernel(HERE / "features.cu", device="cuda")
    n = 1 << 20
    x, out = torch.zeros(n, device="cuda"), torch.empty(n, device="cuda")
    return {
        "cudaMalloc, cudaFree": wall_us(lambda: kernel.with_scratch(x, out, n, False), 50),
        "cudaMallocAsync, cudaFreeAsync": wall_us(lambda: kernel.with_scratch(x, out, n, True), 50),
        "managed, touched by the kernel": wall_us(lambda: kernel.shared_with_the_host(out, n, False), 3),
        "managed, prefetched": wall_us(lambda: kernel.shared_with_the_host(out, n, True), 3),
    }


def profile() -> Row:
    """Profile a step of small operations with torch.profiler, eager and as a graph, in microseconds."""
    w = torch.randn(1024, 1024, device="cuda", dtype=torch.bfloat16) / 32
    x = torch.randn(1, 1024, device="cuda", dtype=torch.bfloat16)

    def step() -> Tensor:
        y = x
        for _ in range(4):
            y = y + torch.nn.functional.silu(torch.nn.functional.rms_norm(y, (1024,)) @ w)
        return y

    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    found: Row = {}
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    for name, run in (("eager", step), ("graph", graph.replay)):
        for _ in range(3):
            run()
        torch.cuda.synchronize()
        with torch.profiler.profile(activities=activities) as profiler:
            for _ in range(3):
                run()
            torch.cuda.synchronize()
        kernels = sorted(
            (e.time_range.start, e.time_range.end - e.time_range.start, e.name)
            for e in profiler.events()
            if e.device_type == torch.autograd.DeviceType.CUDA
        )
        first = kernels[0][0] if kernels else 0
        found[name] = {
            "kernels": [[round(start - first, 2), round(length, 2), what[:60]] for start, length, what in kernels],
            "table": [
                [e.key[:60], e.count, round(e.self_cpu_time_total, 1), round(e.self_device_time_total, 1)]
                for e in sorted(profiler.key_averages(), key=lambda e: -e.self_device_time_total)[:6]
            ],
        }
    return found


def solutions(x: Tensor) -> Row:
    """Time the day's solutions and their starting points beside torch, in GPU microseconds."""
    task, solved = "exercises/day15_performance", "solutions/day15_performance"
    rows, cols = 16384, 4096
    a, weight = torch.randn(rows, cols, device="cuda"), torch.rand(cols, device="cuda")
    out = torch.empty_like(a)
    expected = torch.nn.functional.rms_norm(a, (cols,), weight, 1e-5)
    norms = [{"name": "torch", "us": gpu_us(lambda: torch.nn.functional.rms_norm(a, (cols,), weight, 1e-5))}]
    for name, folder in (("waits for each row", task), ("the solution", solved)):
        kernel = load_kernel(ROOT / folder / "pipelined_norm.cu", device="cuda")
        for each in (1, 2, 4):
            run = lambda k=kernel, each=each: k.pipelined_norm(a, weight, out, rows, cols, 1e-5, each * processors())  # noqa: E731
            out.fill_(torch.nan)
            run()
            if not torch.allclose(out, expected, atol=1e-4, rtol=1e-4):
                raise SystemExit(f"pipelined_norm ({name}) is wrong: no times of wrong kernels")
            norms.append({"name": f"{name}, {each} blocks an SM", "us": gpu_us(run)})
    kernel = load_kernel(ROOT / solved / "single_pass_sum.cu", device="cuda")
    totals = []
    for n in (1 << 14, 1 << 20, 1 << 28):
        part, total = x[:n], torch.empty(1, device="cuda")
        partials, counter = torch.empty(-(-n // 4096), device="cuda"), torch.zeros(1, dtype=torch.int32, device="cuda")
        run = lambda p=part, t=total, s=partials, c=counter: kernel.single_pass_sum(p, t, s, c, p.numel())  # noqa: E731
        bits = set()
        for _ in range(5):
            run()
            bits.add(total.view(torch.int32).item())
        totals.append(
            {
                "n": n,
                "us": gpu_us(run, runs=15),
                "torch_us": gpu_us(lambda p=part: p.sum(), runs=15),
                "results": len(bits),
                "error": abs(float(total) - float(part.double().sum())) / float(part.double().abs().sum()),
            }
        )
    return {"pipelined_norm": norms, "single_pass_sum": totals, "shape": [rows, cols]}


def software() -> Row:
    """Return the versions and settings of the measurement: GPU, driver, clock, torch, CUDA."""
    asked = "name,driver_version,clocks.sm,clocks.max.sm,clocks.mem,power.limit"
    try:
        command = ["nvidia-smi", f"--query-gpu={asked}", "--format=csv,noheader", "--id=0"]
        said = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        said = ""
    return {
        "gpu": torch.cuda.get_device_name(),
        "processors": processors(),
        "capability": list(torch.cuda.get_device_capability()),
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "nvidia_smi": dict(zip(asked.split(","), said.split(", "))) if said else {},
    }


def show(found: Row) -> None:
    """Print a summary."""
    top = found["ceilings"]
    print(
        f"{found['gpu']}, torch {found['torch']}: copies {top['copy'] / 1e12:.2f} TB/s, f32 {top['f32'] / 1e12:.1f} "
        f"T/s, ",
        end="",
    )
    print(f"bf16 {top['bf16_tensor'] / 1e12:.0f} T/s; one load: {top['latency_ns']} ns")
    for row in found["sums"]["steps"]:
        print(
            f"  {row['name']:36} {row['us']:8.1f} us {row['bytes_per_second'] / 1e12:6.2f} TB/s, {row['registers']} "
            f"registers"
        )
    best = max(found["sums"]["sweep"], key=lambda row: row["bytes_per_second"])
    print("  the best of the sweep:", best)
    for name, us in {**found["launches"]["us"], **found["memory"], **found["streams"]}.items():
        print(f"  {name:36} {us:10.2f} us")
    for row in [
        *found["launches"]["rms_norm"],
        *found["solutions"]["pipelined_norm"],
        *found["solutions"]["single_pass_sum"],
    ]:
        print(" ", row)


def main() -> None:
    """Measure, print, and record if requested."""
    parser = argparse.ArgumentParser(
        description="Measure the figures of day 15's lesson on the first GPU of the machine that runs this script."
    )
    parser.add_argument("--record", action="store_true", help="also write performance_gpu.json, which the lesson shows")
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("There is no GPU here. The lesson shows what was recorded on one.")
    torch.manual_seed(13)
    began = time.perf_counter()
    found: Row = {**software(), "first": first_calls()}  # before anything else warms the GPU up
    x = torch.randn(N, device="cuda")
    found |= {"ceilings": ceilings(), "sums": sums(x), "launches": launch_costs(), "streams": copies_beside_kernels(x)}
    found |= {"memory": memory(), "profile": profile(), "solutions": solutions(x)}
    show(found)
    print(f"measured in {time.perf_counter() - began:.0f} s")
    if arguments.record:
        result = {
            "version": 1,
            "date": datetime.date.today().isoformat(),
            "command": f"python lessons/{HERE.name}/measure.py --record",
            **found,
        }
        path = HERE / "performance_gpu.json"
        write_record(path, result, ROOT)
        print(f"recorded in {path.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
