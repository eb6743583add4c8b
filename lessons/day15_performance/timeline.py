"""Record the timeline of a small decoder on this machine's GPU: launches on the host, kernels on the device, gaps.

    python lessons/day15_performance/timeline.py               print the tables
    python lessons/day15_performance/timeline.py --record      also write timeline_gpu.json, which the lesson reads
    python lessons/day15_performance/timeline.py --run eager   only run the decoder, for another profiler

The decoder reads a token's row of a table, runs eight layers, and picks the next token, which the host reads. *eager*
launches every kernel from Python; *graph* replays a CUDA graph. torch.profiler records with CUPTI, as Nsight Systems
does, and the tables have the columns of ``nsys stats``: cuda_api_sum, cuda_gpu_kern_sum and cuda_kern_exec_sum.
"""

from __future__ import annotations

import argparse
import datetime
import itertools
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT))

import torch  # noqa: E402

from grader.judge.timing.sources import write_record  # noqa: E402

LAYERS, WIDTH, VOCABULARY = 8, 1024, 32768
WARMUP, TOKENS, TIMED = 5, 10, 100
"""Numbers of tokens: before the profile, in the profile, and timed without a profiler."""

Event = dict[str, Any]
Row = dict[str, Any]


def decoders() -> dict[str, Callable[[], int]]:
    """Return two functions that compute the next token and return it: eager, and as a CUDA graph."""
    generator = torch.Generator("cuda").manual_seed(15)
    bf16 = {"device": "cuda", "dtype": torch.bfloat16}
    table = torch.randn(VOCABULARY, WIDTH, generator=generator, **bf16)
    weights = [torch.randn(WIDTH, WIDTH, generator=generator, **bf16) / 32 for _ in range(LAYERS)]
    token = torch.zeros(1, dtype=torch.int64, device="cuda")

    def step() -> None:
        x = torch.nn.functional.embedding(token, table)
        for w in weights:
            x = x + torch.nn.functional.silu(torch.nn.functional.rms_norm(x, (WIDTH,)) @ w)
        token.copy_((x @ table.T).argmax(-1))

    beside, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    with torch.cuda.stream(beside):
        for _ in range(3):
            step()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        step()

    def next_token(run: Callable[[], None]) -> int:
        run()
        return int(token)

    return {"eager": lambda: next_token(step), "graph": lambda: next_token(graph.replay)}


def events_of(run: Callable[[], int]) -> list[Event]:
    """Return the CUDA calls, kernels and copies of ``TOKENS`` tokens as torch.profiler's events."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profiler:
        for _ in range(TOKENS):
            run()
        torch.cuda.synchronize()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        profiler.export_chrome_trace(str(path))
        events: list[Event] = json.loads(path.read_text(encoding="utf-8"))["traceEvents"]
    return events


def sums(events: Iterable[Event]) -> list[Row]:
    """Return a row for each name with the columns of ``nsys stats``, the largest total first; times in us."""
    durations: dict[str, list[float]] = {}
    for event in events:
        durations.setdefault(event["name"], []).append(event["dur"])
    whole = sum(map(sum, durations.values()))
    rows = [
        {
            "percent": 100 * sum(times) / whole,
            "total": sum(times),
            "count": len(times),
            "avg": statistics.mean(times),
            "med": statistics.median(times),
            "min": min(times),
            "max": max(times),
            "name": name,
        }
        for name, times in durations.items()
    ]
    return sorted(rows, key=lambda row: -row["total"])


def summary(events: list[Event]) -> Row:
    """Return the tables of a timeline, the gaps between kernels, and the events of one token, in microseconds."""
    complete = sorted((event for event in events if event.get("ph") == "X"), key=lambda event: event["ts"])
    kernels = [event for event in complete if event.get("cat") == "kernel"]
    device = [event for event in complete if event.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]
    calls = [event for event in complete if event.get("cat") in ("cuda_runtime", "cuda_driver")]
    if not kernels or not calls:
        raise SystemExit("The profiler recorded no kernels: CUPTI is not available here.")
    call_of = {event.get("args", {}).get("correlation"): event for event in calls}
    first_kernel: dict[int, Event] = {}  # of each call: a graph's launch has many
    for event in kernels:
        first_kernel.setdefault(event["args"]["correlation"], event)
    launched = [(call_of[number], event) for number, event in first_kernel.items() if number in call_of]
    gaps = [max(0.0, after["ts"] - end_of(before)) for before, after in itertools.pairwise(kernels)]
    copies = [event for event in device if "DtoH" in event["name"]]  # the last event of each token
    first, last = (end_of(copies[len(copies) // 2 - back]) for back in (1, 0))
    one = [[round(event["ts"] - first, 2), round(event["dur"], 2), short(event["name"])] for event in calls]
    two = [[round(event["ts"] - first, 2), round(event["dur"], 2), short(event["name"])] for event in device]
    return {
        "span": end_of(device[-1]) - min(event["ts"] for event in calls),
        "busy": sum(event["dur"] for event in device),
        "kernels": len(kernels),
        "cuda_api_sum": sums(calls),
        "cuda_gpu_kern_sum": [row | {"name": short(row["name"])} for row in sums(kernels)],
        "cuda_kern_exec_sum": {
            "api": statistics.mean(call["dur"] for call, _ in launched),
            "queue": statistics.mean(max(0.0, kernel["ts"] - end_of(call)) for call, kernel in launched),
            "kernel": statistics.mean(kernel["dur"] for _, kernel in launched),
        },
        "gaps": {"med": statistics.median(gaps), "avg": statistics.mean(gaps), "max": max(gaps)},
        "one_token": {
            "us": last - first,
            "host": [event for event in one if 0 <= event[0] < last - first],
            "device": [event for event in two if 0 <= event[0] < last - first],
        },
    }


def end_of(event: Event) -> float:
    """Return the end of an event in microseconds."""
    return float(event["ts"] + event["dur"])


def short(name: str) -> str:
    """Return a kernel's name without return type and namespaces, at most 80 characters long."""
    for part in ("void ", "at::native::", "(anonymous namespace)::", "cub::", "detail::"):
        name = name.replace(part, "")
    return name[:80]


def rounded(value: Any) -> Any:
    """Return a record with all numbers rounded to three digits after the point."""
    if isinstance(value, dict):
        return {key: rounded(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [rounded(inner) for inner in value]
    return round(value, 3) if isinstance(value, float) else value


def show(name: str, found: Row) -> None:
    """Print the tables of one timeline."""
    print(f"\n{name}: {found['us_per_token']:.1f} us per token, {found['span'] / TOKENS:.1f} us under the profiler")
    print(
        f"the device is busy for {found['busy'] / found['span']:.0%}, {found['kernels'] / TOKENS:.0f} kernels a token"
    )
    for report, label in (("cuda_api_sum", "Num Calls"), ("cuda_gpu_kern_sum", "Instances")):
        print(f"{report}\n  Time (%)  Total (us) {label:>10}   Avg (us)   Med (us)   Max (us)  Name")
        for row in found[report][:6]:
            print(
                f"  {row['percent']:8.1f}{row['total']:12.1f}{row['count']:11}{row['avg']:11.2f}{row['med']:11.2f}"
                f"{row['max']:11.2f}  {row['name'][:60]}"
            )
    print("cuda_kern_exec_sum, averages in us: ", end="")
    print(", ".join(f"{key[0].upper()}Avg {value:.2f}" for key, value in found["cuda_kern_exec_sum"].items()))
    print("gaps between kernels in us: ", ", ".join(f"{key} {value:.2f}" for key, value in found["gaps"].items()))


def main() -> None:
    """Profile, print, and record if requested; or only run the decoder."""
    parser = argparse.ArgumentParser(
        description="Print the timeline of a small decoder on the first GPU of the machine that runs this script."
    )
    parser.add_argument("--record", action="store_true", help="also write timeline_gpu.json, which the lesson shows")
    parser.add_argument(
        "--run", choices=("eager", "graph"), help="only run the decoder, so that another profiler can record it"
    )
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("There is no GPU here. The lesson shows what was recorded on one.")
    found: Row = {}
    for name, run in decoders().items():
        if arguments.run not in (None, name):
            continue
        for _ in range(WARMUP):
            run()
        torch.cuda.synchronize()
        began = time.perf_counter()
        for _ in range(TIMED):
            run()
        us = (time.perf_counter() - began) / TIMED * 1e6
        if arguments.run:
            print(f"{name}: {us:.1f} us per token")
            continue
        events_of(run)  # the first profile of a process starts CUPTI, which delays launches
        found[name] = {"us_per_token": us, **summary(events_of(run))}
        show(name, found[name])
    if arguments.record and found:
        result = {
            "version": 1,
            "gpu": torch.cuda.get_device_name(),
            "torch": torch.__version__,
            "date": datetime.date.today().isoformat(),
            "command": f"python lessons/{HERE.name}/timeline.py --record",
            "tokens": TOKENS,
            **rounded(found),
        }
        path = HERE / "timeline_gpu.json"
        write_record(path, result, ROOT)
        print(f"recorded in {path.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
