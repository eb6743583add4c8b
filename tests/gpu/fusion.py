"""Day 5's fused kernels compared with the kernels that they replace, on this machine's GPU.

``python -m tests.gpu.fusion [--record]`` times both sides at each size, measures their DRAM and L2 traffic with Nsight
Compute, counts their traffic on the simulator, and prints a table. With ``--record`` it also writes
lessons/day05_fusion/fusion_h200.json, which the lesson shows. ``--again`` updates the simulator's counts of this
record, and needs no GPU.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import io
import json
import shutil
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from grader.course import course_root
from grader.judge.timing.sources import write_record

LESSON = Path(__file__).resolve().parents[2] / "lessons" / "day05_fusion"
RECORD = LESSON / "fusion_h200.json"
sys.path.insert(0, str(LESSON))

import pairs  # noqa: E402  (a module of the lesson)
import torch  # noqa: E402

METRICS = {
    "dram": "dram__bytes.sum",
    "dram_read": "dram__bytes_read.sum",
    "dram_write": "dram__bytes_write.sum",
    "l2": "lts__t_bytes.sum",
    "l2_from_l1_sectors": "lts__t_sectors_srcunit_tex.sum",
}
"""The recorded names of counters, with Nsight Compute's metrics. The last metric counts the 32-byte sectors that
multiprocessors requested from the L2 cache.
"""

REPEATS = 15


def timed(run: Callable[[], None]) -> float:
    """Return the median time of a run in microseconds, launched as a CUDA graph with a cold L2 cache."""
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        run()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    flush = torch.empty(64 * 2**20, dtype=torch.int32, device="cuda")  # five times the L2 cache
    measured = []
    for repeat in range(REPEATS + 3):
        flush.fill_(repeat)
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        measured.append(start.elapsed_time(end) * 1e3)
    return statistics.median(measured[3:])


def profiled(number: int, timeout: float) -> dict[str, dict[str, float]]:
    """Return Nsight Compute's metrics of the unfused and of the fused kernels; empty if it cannot measure."""
    ncu = shutil.which("ncu") or "/usr/local/cuda/bin/ncu"
    command = [ncu, "--target-processes", "application-only", "--clock-control", "none", "--cache-control", "none"]
    command += ["--profile-from-start", "off", "--csv", "--page", "raw", "--print-units", "base"]
    command += ["--metrics", ",".join(METRICS.values())]
    command += [sys.executable, "-m", "tests.gpu.fusion", "--once", str(number)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout)
    except (OSError, subprocess.TimeoutExpired) as problem:
        print(f"ncu: {problem}", flush=True)
        return {}
    lines = [line for line in done.stdout.splitlines() if line.startswith('"')]
    rows = [row for row in csv.DictReader(io.StringIO("\n".join(lines))) if row.get("ID", "").strip()]
    if len(rows) < 3:  # expected: at least two unfused kernels and the fused one
        print(f"ncu's output has too few rows: {(done.stdout + done.stderr)[-800:]}", flush=True)
        return {}
    return {"unfused": summed(rows[:-1]), "fused": summed(rows[-1:])}


def summed(rows: list[dict[str, str]]) -> dict[str, float]:
    """Return the sum of the metrics of several kernels."""
    totals: dict[str, float] = {"kernels": len(rows)}
    for name, metric in METRICS.items():
        totals[name] = sum(float((row.get(metric) or "0").replace(",", "")) for row in rows)
    return totals


def all_sizes() -> list[tuple[str, str, dict[str, Any]]]:
    """Return the sizes: first the small ones, which also run on the simulator, then the large ones."""
    return [(name, "small", sizes) for name, sizes in pairs.SMALL.items()] + pairs.LARGE


def once(number: int) -> None:
    """Run the kernels for Nsight Compute: the unfused ones, then the fused one, each from a cold L2 cache."""
    name, _, sizes = all_sizes()[number]
    pair = pairs.PAIRS[name](pairs.Machine("cuda"), **sizes)
    for run in (pair.unfused, pair.fused):
        run()
        torch.empty(64 * 2**20, dtype=torch.int32, device="cuda").fill_(1)
        torch.cuda.synchronize()
        torch.cuda.cudart().cudaProfilerStart()
        run()
        torch.cuda.synchronize()
        torch.cuda.cudart().cudaProfilerStop()


def simulated(name: str, sizes: dict[str, Any]) -> dict[str, dict[str, int]]:
    """Return the simulator's counters of the unfused and of the fused kernels."""
    machine = pairs.Machine("cpu")
    pair = pairs.PAIRS[name](machine, **sizes)
    counts = {}
    for side, run in (("fused", pair.fused), ("unfused", pair.unfused)):
        machine.reset()
        run()
        counts[side] = dict(machine.totals)
    return counts


def measure(number: int, with_ncu: bool, timeout: float) -> dict[str, Any]:
    """Measure times, errors and bytes of the unfused and of the fused kernels at one size."""
    name, title, sizes = all_sizes()[number]
    pair = pairs.PAIRS[name](pairs.Machine("cuda"), **sizes)
    result: dict[str, Any] = {"name": name, "title": title, "sizes": sizes}
    result["fused_us"], result["unfused_us"] = timed(pair.fused), timed(pair.unfused)
    result["fused_error"], result["unfused_error"] = pair.errors()
    result["fused_least_bytes"], result["unfused_least_bytes"] = pair.least_bytes
    del pair
    torch.cuda.empty_cache()
    if with_ncu and title in ("small", *pairs.PROMISED):
        result["measured"] = profiled(number, timeout)
    if title == "small":
        result["counted"] = simulated(name, sizes)
    return result


def count_again() -> None:
    """Update the simulator's counts in the record."""
    content = json.loads(RECORD.read_text())
    for result in content["results"]:
        if "counted" in result:
            result["counted"] = simulated(result["name"], result["sizes"])
            print(f"{result['name']}, {result['title']}: {result['counted']}", flush=True)
    write_record(RECORD, content, course_root(), renewed=())


def line_of(result: dict[str, Any]) -> str:
    """Print a size on one line."""
    saved, speed = pairs.GOALS[result["name"]]
    measured = result.get("measured") or {}
    text = (
        f"{result['name'] + ', ' + result['title']:32} {result['unfused_us']:9.1f} us -> {result['fused_us']:9.1f} us"
    )
    text += f"  {result['unfused_us'] / result['fused_us']:5.2f}x"
    text += f"  error {result['unfused_error']:.1e} -> {result['fused_error']:.1e}"
    less = 1 - result["fused_least_bytes"] / result["unfused_least_bytes"]
    text += f"  bytes by formula -{less:.0%}"
    for kind in ("dram", "l2"):
        if measured.get("fused") and measured.get("unfused"):
            text += f", {kind} -{1 - measured['fused'][kind] / measured['unfused'][kind]:.0%}"
    if result["title"] in pairs.PROMISED:
        text += f"  (goal: -{saved:.0%}, {speed}x)"
    return text


def main() -> int:
    """Measure all sizes and print one line for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", action="store_true", help="write the figures that the lesson shows")
    parser.add_argument("--again", action="store_true", help="update only the simulator's counts of the record")
    parser.add_argument("--no-ncu", action="store_true", help="measure only times")
    parser.add_argument("--timeout", type=float, default=60.0, help="time limit in seconds for one run of ncu")
    parser.add_argument("--once", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.again:
        count_again()
        return 0
    if not torch.cuda.is_available():
        print("There is no GPU here. The lesson counts the same kernels on the simulator.")
        return 2
    if arguments.once is not None:
        once(arguments.once)
        return 0
    results = []
    for number in range(len(all_sizes())):
        results.append(measure(number, not arguments.no_ncu, arguments.timeout))
        print(line_of(results[-1]), flush=True)
    if arguments.record:
        report = {
            "version": 1,
            "gpu": torch.cuda.get_device_name(),
            "torch": torch.__version__,
            "date": datetime.date.today().isoformat(),
            "command": "python -m tests.gpu.fusion --record",
            "results": results,
        }
        write_record(RECORD, report, course_root())
    missed = [
        result
        for result in results
        if result["title"] in pairs.PROMISED
        and result["unfused_us"] / result["fused_us"] < pairs.GOALS[result["name"]][1]
    ]
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
