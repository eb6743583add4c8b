"""Lower bounds of times from the simulator's counters, compared with times measured on an H200.

Each bound must be below the time. ``python -m tests.gpu.bounds --record`` runs kernels on the simulator: the solutions,
the skeletons of *optimize* exercises, and the versions of day 4's lesson. It uses the case of the stage *efficient*,
the small sizes of ``grader bench``, and middle sizes (``MIDDLE``). It writes lessons/can_i_believe_this/bounds.json and
needs no GPU.

``python -m tests.gpu.bounds --time --record`` times the same calls with the same inputs on this machine's GPU, with a
cold L2 cache. It also measures the time between two launches. It writes bounds_h200.json to the same folder.
``grader.report.notebook.bounds`` draws both files.
"""

from __future__ import annotations

import argparse
import datetime
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from grader.course import Course, course_root
from grader.course.task import Case
from grader.execution.in_process.kernel import load_kernel
from grader.frontend.toolchain.gpus import find_gpu
from grader.judge.timing.limiter import time_bound
from grader.judge.timing.sources import write_record
from grader.setup.errors import GraderError
from tests.gpu.counted import Counted, build_ahead, counted, of_case, replace_rows, runnable
from tests.gpu.launch_solutions import on_gpu

FOLDER = course_root() / "lessons" / "can_i_believe_this"
COUNTED, TIMED = FOLDER / "bounds.json", FOLDER / "bounds_h200.json"
GPU = "H200"

SMALL = "small"
"""The name of the bench sizes that the simulator runs, in seconds each. Day 4's matrix products would take minutes, so
they are excluded.
"""

_ATTENTION = {"batch": 1, "heads": 4, "query_len": 512, "key_len": 512}
_PACKED = {"batch": 1, "heads": 8, "kv_heads": 8, "queries": 1024, "keys": 1024, "max_queries": 1024}
_PRODUCT = {"rows": 128, "in_features": 512, "out_features": 1024}
_ROWS = {"rows": 1024, "cols": 4096}
MIDDLE: dict[str, dict[str, Any]] = {
    "residual_add": {"n": 1 << 23},
    "parallel_residual": {"n": 1 << 23},
    "softmax": _ROWS,
    "rms_norm": _ROWS,
    "layer_norm": _ROWS,
    "argmax": _ROWS,
    "row_sum_debug": _ROWS,
    "embedding": {"tokens": 4096},
    "rope": {"tokens": 2048},
    "swiglu": {"n": 1 << 23},
    "transpose": {"rows": 4096, "cols": 2048},
    "linear": _PRODUCT,
    "linear_register_tiled": _PRODUCT,
    "linear_wmma": _PRODUCT,
    "rms_norm_linear": {"rows": 4096, "in_features": 512, "out_features": 128},
    "linear_swiglu": {"rows": 1024, "in_features": 256, "hidden": 1024},
    "scores_softmax": {"batch": 1, "heads": 4, "query_len": 1024, "key_len": 1024},
    "flash_attention": _ATTENTION,
    "flash_attention_tiles": _ATTENTION,
    "flash_attention_backward": _ATTENTION,
    "gqa_prefill": {"batch": 1, "heads": 8, "kv_heads": 2, "query_len": 512, "key_len": 512},
    "gqa_decode": {"batch": 64, "heads": 32, "kv_heads": 8, "max_len": 256},
    "mixed_precision_attention": {"batch": 1, "heads": 8, "query_len": 1024, "key_len": 1024},
    "sliding_window": {"batch": 1, "heads": 8, "query_len": 1024, "key_len": 1024, "window": 256},
    "gptq_dequantize": {"in_features": 2048, "out_features": 4096},
    "gptq_linear": {"in_features": 2048, "out_features": 4096},
    "ln_qkv_gptq": {"in_features": 1024, "out_features": 3072, "batch": 16},
    "mma_flash_attention": _PACKED,
    "hopper_flash_attention": _PACKED,
    "wgmma_linear": {"rows": 1024, "in_features": 512, "out_features": 2048},
}
"""The dimensions that turn an exercise's first bench size, in its first dtype, into its middle size."""


def calls(names: list[str]) -> Iterator[tuple[str, Counted]]:
    """Yield each call with the name of its size. Small sizes have the names of the lessons' h200.json."""
    for item in counted(names):
        yield "counted", item
    for entry in Course().exercises:
        if names and not any(part in entry.name for part in names):
            continue
        exercise = entry.load()
        files = {"": entry.solution} | ({" (as given)": entry.skeleton} if entry.kind == "optimize" else {})
        sizes: list[Case] = [
            case for case in exercise.bench if case.name == SMALL and not case.dims.keys() >= _PRODUCT.keys()
        ]
        if entry.variable in MIDDLE:
            first = exercise.bench[0]
            dtypes, dims = (first.dtypes or exercise.dtypes)[:1], {**first.dims, **MIDDLE[entry.variable]}
            sizes.append(Case("middle", dtypes=dtypes, inputs=first.inputs, **dims))
        for case in sizes:
            for dtype in case.dtypes or exercise.dtypes:
                for what, file in files.items():
                    yield case.name, of_case(entry, exercise, case, dtype, file, f"{entry.name} {dtype}{what}")


def count(names: list[str]) -> list[dict[str, Any]]:
    """Return a row for each call: the counted work, and the time bound on the GPU."""
    rows = []
    for size, item in calls(names):
        began = time.monotonic()
        kernel = load_kernel(item.file, device="cpu", operations=True)
        item.call(kernel, "cpu")
        bound = time_bound(kernel.report.kernels, find_gpu(GPU), size)
        assert bound.limiter is not None
        units = {unit.unit: [float(f"{unit.work:.6g}"), float(f"{unit.microseconds:.4g}")] for unit in bound.units}
        rows.append(
            {
                "name": item.name,
                "size": size,
                "limiter": bound.limiter.unit,
                "bound_us": bound.microseconds,
                "units": units,
            }
        )
        seconds = time.monotonic() - began
        print(
            f"{item.name:60} {size:28.28} {bound.limiter.unit:8} {bound.microseconds:9.3f} us  ({seconds:.1f} s)",
            flush=True,
        )
    return rows


def measure(names: list[str], seconds: float) -> dict[str, Any]:
    """Return the median and minimum times of the same calls on this machine's GPU."""
    import torch

    from grader.judge.timing.events import percentiles, time_on_gpu

    wanted = {(row["name"], row["size"]) for row in json.loads(COUNTED.read_text())["rows"]}
    items = [(size, item) for size, item in calls(names) if (item.name, size) in wanted and list(runnable([item]))]
    build_ahead(item.file for _, item in items)
    kernels = {file: load_kernel(file, device="cuda") for file in {item.file for _, item in items}}
    print(f"{len(kernels)} files are built, {len(items)} calls are timed", flush=True)
    began = time.monotonic()
    flush = 2 * int(torch.cuda.get_device_properties(0).L2_cache_size)
    rows = []
    for size, item in items:
        if time.monotonic() - began > seconds:
            print(f"{len(items) - len(rows)} of {len(items)} calls were not timed: {seconds:.0f} s are over")
            break
        arguments = [on_gpu(v, o) if hasattr(v, "numel") else v for v, o in zip(item.arguments, item.offsets)]
        times = time_on_gpu([getattr(kernels[item.file], item.launcher).prepared(*arguments)], 30, flush)
        row = {"name": item.name, "size": size, "median_us": percentiles(times)["median_us"], "minimum_us": min(times)}
        rows.append({key: float(f"{value:.5g}") if isinstance(value, float) else value for key, value in row.items()})
        print(f"{item.name:60} {size:28.28} {row['median_us']:9.2f} us", flush=True)
    return {"launch_us": launch_after_launch(), "rows": rows}


def launch_after_launch() -> float:
    """Return the microseconds between tiny kernels in a CUDA graph. The host does not launch them one by one."""
    import torch

    launches, x = 1000, torch.zeros(1, device="cuda")
    x.add_(1)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(launches):
            x.add_(1)
    graph.replay()
    best = float("inf")
    for _ in range(5):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        best = min(best, start.elapsed_time(end) * 1e3 / launches)
    return float(f"{best:.4g}")


def violations(bounds: list[dict[str, Any]], times: list[dict[str, Any]]) -> list[str]:
    """Return a line for each time that is shorter than its lower bound, which would be an error."""
    fastest = {(row["name"], row["size"]): row["minimum_us"] for row in times}
    return [
        f"{row['name']}, {row['size']}: {fastest[key]:.4g} us, less than the bound of {row['bound_us']:.4g} us"
        for row in bounds
        if (key := (row["name"], row["size"])) in fastest and fastest[key] < row["bound_us"]
    ]


def main() -> int:
    """Count or time the calls, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="parts of names: replace only their rows (default: all)")
    parser.add_argument("--time", action="store_true", help="time the counted calls on this machine's GPU")
    parser.add_argument("--seconds", type=float, default=110, help="time limit; no call is timed after it")
    parser.add_argument("--record", action="store_true", help=f"write {COUNTED.name}, or with --time {TIMED.name}")
    parser.add_argument("--out", type=Path, help="write the results to this file instead")
    arguments = parser.parse_args()
    content: dict[str, Any] = {"version": 1, "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d")}
    content["command"] = "python -m tests.gpu.bounds" + (" --time" if arguments.time else "") + " --record"
    wrong: list[str] = []
    if arguments.time:
        import torch

        if not torch.cuda.is_available():
            raise GraderError("this machine has no GPU to measure times on", "Omit --time to count on the simulator.")
        content["gpu"] = torch.cuda.get_device_name()
        content |= measure(arguments.names, arguments.seconds)
        wrong = violations(json.loads(COUNTED.read_text())["rows"], content["rows"])
        print("\n".join(wrong) or f"each of {len(content['rows'])} bounds lies below its time")
    else:
        content |= {"gpu": find_gpu(GPU).name, "rows": count(arguments.names)}
    where = [arguments.out] if arguments.out else []
    where += [TIMED if arguments.time else COUNTED] if arguments.record else []
    measured = msgspec.to_builtins(content)
    for path in where:
        files = [item.file for _, item in calls(arguments.names)] if arguments.names else None
        renewed = replace_rows(path, measured["rows"], files) if files is not None else None
        write_record(path, measured, course_root(), renewed)
    return 1 if wrong else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except GraderError as error:
        sys.exit(str(error))
