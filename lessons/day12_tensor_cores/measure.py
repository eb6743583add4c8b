"""Times of the day's lesson kernels, the product in four versions and float32 attention, beside torch's, on this machine's GPU.

    python lessons/day12_tensor_cores/measure.py            prints a table
    python lessons/day12_tensor_cores/measure.py --record   also writes mma_gpu.json, which the lesson shows

The exercises' solutions are timed by `grader bench`. Errors are the largest difference from float64, of as many rows as fit.
"""

from __future__ import annotations

import argparse
import datetime
import json
import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))

from grader import load_kernel  # noqa: E402  (the course need not be installed)

SIZE = 4096
BATCH, HEADS, LENGTH = 4, 16, 4096
REPEATS = 15
VERSIONS = {
    "1: fragments": "product_1_fragments.cu",
    "2: ldmatrix": "product_2_ldmatrix.cu",
    "3: swizzled tiles": "product_3_swizzle.cu",
    "4: a ring of copies": "product_4_pipeline.cu",
}

Call = Callable[[], torch.Tensor]


def microseconds(call: Call) -> float:
    """The median time of a call, by the GPU's events."""
    for _ in range(3):
        call()
    times = []
    for _ in range(REPEATS):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        call()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end) * 1e3)
    return round(statistics.median(times), 1)


def rows_of(calls: dict[str, Call], flops: float, error: Callable[[torch.Tensor], float], most: float) -> Any:
    """Time, operations and error of each; a wrong kernel stops everything."""
    found = {}
    for name, call in calls.items():
        wrong = error(call())
        if not wrong < most:
            raise SystemExit(f"{name} is wrong by {wrong:.1g}: no times of wrong kernels")
        found[name] = {"us": microseconds(call), "flops": flops, "error": wrong}
    return found


def products() -> Any:
    """x [SIZE, SIZE] times w [SIZE, SIZE], f16."""
    x, w = (torch.randn(SIZE, SIZE, device="cuda").half() for _ in range(2))
    y = torch.empty_like(x)
    expected = x[:256].double() @ w.double().T

    def version(file: str) -> Call:
        kernel = load_kernel(HERE / file, device="cuda")

        def call() -> torch.Tensor:
            kernel.product(x, w, y, SIZE, SIZE, SIZE)
            return y

        return call

    calls = {name: version(file) for name, file in VERSIONS.items()}
    calls["torch (cuBLAS)"] = lambda: torch.nn.functional.linear(x, w)
    return rows_of(calls, 2 * SIZE**3, lambda out: float((out[:256] - expected).abs().max()), 0.5)


def float32_attention(head_dim: int) -> Any:
    """BATCH x HEADS heads, LENGTH queries and keys, no mask, float32."""
    q, k, v = (torch.randn(BATCH, HEADS, LENGTH, head_dim, device="cuda") for _ in range(3))
    out, scale = torch.empty_like(q), head_dim**-0.5
    scores = q[-1, -1].double() @ k[-1, -1].double().T * scale
    expected = torch.softmax(scores, dim=-1) @ v[-1, -1].double()
    kernel = load_kernel(HERE / "attention_f32_tf32x3.cu", device="cuda")

    def ours(launcher: Any) -> Call:
        def call() -> torch.Tensor:
            launcher(q, k, v, out, BATCH * HEADS, LENGTH, LENGTH, head_dim, scale, False)
            return out

        return call

    def torchs() -> torch.Tensor:
        with sdpa_kernel(SDPBackend.EFFICIENT_ATTENTION):
            return scaled_dot_product_attention(q, k, v)

    calls = {
        "three tf32 products": ours(kernel.attention),
        "one tf32 product": ours(kernel.attention_tf32),
        "torch, memory-efficient": torchs,
    }
    flops = 4 * BATCH * HEADS * LENGTH**2 * head_dim
    return rows_of(calls, flops, lambda got: float((got[-1, -1] - expected).abs().max()), 5e-3)


def main() -> None:
    """Measure, print, and record if asked to."""
    parser = argparse.ArgumentParser(description="times of day 12's lesson kernels on this machine's GPU")
    parser.add_argument("--record", action="store_true", help="write mma_gpu.json for the lesson")
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("There is no GPU here. The lesson shows what was recorded on one.")
    groups = {f"product of {SIZE} x {SIZE} x {SIZE}, f16": products()}
    for head_dim in (64, 128):
        name = f"attention in float32, {BATCH} x {HEADS} heads of {head_dim} columns, {LENGTH} queries and keys"
        groups[name] = float32_attention(head_dim)
    for group, rows in groups.items():
        print(group)
        for name, row in rows.items():
            print(
                f"  {name:28s}{row['us']:10.0f} us{row['flops'] / row['us'] / 1e6:8.0f} Tflop/s, error {row['error']:.1e}"
            )
    if arguments.record:
        result = {
            "version": 1,
            "gpu": torch.cuda.get_device_name(),
            "torch": torch.__version__,
            "date": datetime.date.today().isoformat(),
            "command": f"python lessons/{HERE.name}/measure.py --record",
            "groups": groups,
        }
        path = HERE / "mma_gpu.json"
        path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
        print(f"recorded in {path.relative_to(HERE.parents[1])}")


if __name__ == "__main__":
    main()
