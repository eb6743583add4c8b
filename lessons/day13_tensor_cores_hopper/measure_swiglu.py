"""Time a gated linear layer, silu(x gate_w^T) * (x up_w^T) in f16, with and without fusion, on this machine's GPU.

    python lessons/day13_tensor_cores_hopper/measure_swiglu.py            print a table
    python lessons/day13_tensor_cores_hopper/measure_swiglu.py --record   also write swiglu_gpu.json for the lesson

The sizes are those of day 5's linear_swiglu. The versions of a size take turns, as in measure.py.
"""

from __future__ import annotations

import argparse
import datetime
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(HERE.with_name("day05_fusion")), str(ROOT)]

import pairs  # noqa: E402  (day 5's sizes)
from measure import Run, table  # noqa: E402

from grader import load_kernel  # noqa: E402
from grader.judge.timing.sources import write_record  # noqa: E402

RECORD = HERE / "swiglu_gpu.json"
SOLUTIONS = ROOT / "solutions"
FILES = {
    "fused": HERE / "swiglu.cu",
    "linear": SOLUTIONS / HERE.name / "wgmma_linear.cu",
    "swiglu": SOLUTIONS / "day03_positions_and_gates" / "swiglu.cu",
    "day5": SOLUTIONS / "day05_fusion" / "linear_swiglu.cu",
}
TORCH, UNFUSED, FUSED, DAY5 = (
    "torch",
    "wgmma_linear twice, then day 3's swiglu",
    "fused",
    "day 5's linear_swiglu (WMMA)",
)


def build_all() -> dict[str, Any]:
    """Build the kernels in parallel."""
    with ThreadPoolExecutor() as pool:
        return dict(zip(FILES, pool.map(lambda file: load_kernel(file, device="cuda"), FILES.values())))


def measured(kernels: dict[str, Any], rows: int, in_features: int, hidden: int) -> list[dict[str, Any]]:
    """Return the times of all versions at one size, each with torch's time divided by its own."""
    x = torch.randn(rows, in_features, device="cuda").half()
    gate_w, up_w = ((torch.randn(hidden, in_features, device="cuda") * in_features**-0.5).half() for _ in range(2))
    gate, up, out = (x.new_empty(rows, hidden) for _ in range(3))

    def with_torch() -> torch.Tensor:
        torch.mm(x, gate_w.T, out=gate)
        torch.mm(x, up_w.T, out=up)
        return torch.nn.functional.silu(gate) * up

    def unfused() -> None:
        kernels["linear"].wgmma_linear_f16(x, gate_w, gate, rows, in_features, hidden)
        kernels["linear"].wgmma_linear_f16(x, up_w, up, rows, in_features, hidden)
        kernels["swiglu"].swiglu_f16(gate, up, out, rows * hidden)

    runs: dict[str, Run] = {
        TORCH: with_torch,
        DAY5: lambda: kernels["day5"].linear_swiglu_f16(x, gate_w, up_w, out, rows, in_features, hidden),
        UNFUSED: unfused,
        FUSED: lambda: kernels["fused"].linear_swiglu_f16(x, gate_w, up_w, out, rows, in_features, hidden),
    }
    wide = x.float()
    expected = torch.nn.functional.silu(wide @ gate_w.float().T) * (wide @ up_w.float().T)
    return table(runs, 4.0 * rows * in_features * hidden, TORCH, expected, lambda: out)


def main() -> None:
    """Measure, print, and record if requested."""
    parser = argparse.ArgumentParser(
        description="Time a gated linear layer with and without fusion on the first GPU of the machine that runs "
        "this script."
    )
    parser.add_argument("--record", action="store_true", help=f"also write {RECORD.name}, which the lesson shows")
    arguments = parser.parse_args()
    if not torch.cuda.is_available() or torch.cuda.get_device_capability() != (9, 0):
        raise SystemExit("There is no Hopper GPU here. The lesson shows what was recorded on one.")
    torch.manual_seed(13)
    kernels = build_all()
    sizes = {}
    for name, what, size in pairs.LARGE:
        if name != "linear_swiglu":
            continue
        rows = measured(kernels, **size)
        us = {row["name"]: row["us"] for row in rows}
        sizes[what] = {**size, "versions": rows, "speedup_by_fusion": round(us[UNFUSED] / us[FUSED], 3)}
        print(f"\n{what}: {size}")
        for row in rows:
            print(
                f"  {row['name']:42}{row['us']:10.1f} us{row['tflops']:6.0f} Tflop/s{row['torch_ratio']:7.2f} x torch"
            )
        print(f"  fusion makes it {us[UNFUSED] / us[FUSED]:.2f} times as fast")
    if arguments.record:
        found = {
            "version": 1,
            "gpu": torch.cuda.get_device_name(),
            "torch": torch.__version__,
            "date": datetime.date.today().isoformat(),
            "command": f"python lessons/{HERE.name}/{Path(__file__).name} --record",
            "sizes": sizes,
        }
        write_record(RECORD, found, ROOT)
        print(f"\nrecorded in {RECORD.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
