"""Nsight Compute's counters of the day's two solutions, on the GPU of this machine.

    python lessons/day11_quantization/profile_few_rows.py            prints a table
    python lessons/day11_quantization/profile_few_rows.py --record   also writes ncu_gpu.json, which the lesson shows

ncu flushes the caches before each kernel, and excludes the launch overhead.
"""

from __future__ import annotations

import argparse
import datetime
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1])]

from grader.judge.timing import nsight_compute  # noqa: E402
from grader.judge.timing.sources import write_record  # noqa: E402
from grader.setup.errors import GraderError  # noqa: E402  (in the folder that was added above)

METRICS = {
    "us": ("gpu__time_duration.sum", 1e-3),
    "MB read": ("dram__bytes_read.sum", 1e-6),
    "memory, %": ("dram__throughput.avg.pct_of_peak_sustained_elapsed", 1.0),
    "instructions a warp": ("smsp__average_inst_executed_per_warp.ratio", 1.0),
    "issue slots, %": ("smsp__issue_active.avg.pct_of_peak_sustained_active", 1.0),
    "tensor cores, %": ("sm__inst_executed_pipe_tensor.avg.pct_of_peak_sustained_active", 1.0),
    "registers": ("launch__registers_per_thread", 1.0),
}
"""By name: Nsight Compute's metric, and the factor of its base unit (ns, bytes)."""

STALLS = {
    "memory": "long_scoreboard",
    "shared memory": "short_scoreboard",
    "a barrier": "barrier",
    "an instruction": "no_instruction",
    "its turn": "not_selected",
    "a fixed latency": "wait",
}
"""The stall reasons, with Nsight Compute's names: cycles per issued instruction."""

RUNS = {
    "gptq_linear, 1 row, 4096 x 4096": ("gptq_linear", 1, 4096, 4096),
    "gptq_linear, 16 rows, 4096 x 4096": ("gptq_linear", 16, 4096, 4096),
    "gptq_linear, 16 rows, 8192 x 28672": ("gptq_linear", 16, 8192, 28672),
    "ln_qkv_gptq, 16 rows, C 4096": ("ln_qkv_gptq", 16, 4096, 12288),
}


def run(exercise: str, rows: int, k: int, n: int) -> None:
    """Launch a solution three times; the profiler counts one of them."""
    import torch

    from grader import load_kernel

    solution = load_kernel(HERE.parents[1] / "solutions" / HERE.name / f"{exercise}.cu", device="cuda")
    words = [torch.randint(-(2**31), 2**31, size, device="cuda").int() for size in ((k // 8, n), (k // 128, n // 8))]
    layer = [*words, torch.rand(k // 128, n, device="cuda").half(), (torch.arange(k, device="cuda") // 128).int()]
    x, norm = torch.randn(rows, k, device="cuda").half(), torch.randn(2, k, device="cuda").half()
    out, y, no_bias = torch.empty(rows, n, device="cuda").half(), torch.empty_like(x), x[:0]
    for _ in range(3):
        if exercise == "gptq_linear":
            solution.gptq_linear(x, *layer, no_bias, out, rows, k, n, 128, False, False)
        else:
            solution.ln_qkv_gptq(x, norm[0], norm[1], *layer, no_bias, y, out, rows, 1, k, 128, False, False, 1e-5)
    torch.cuda.synchronize()


def profile(name: str) -> dict[str, float]:
    """Return the figures of one run."""
    options = ["--kernel-name", "regex:few_rows", "--launch-skip", "1", "--launch-count", "1"]
    try:
        ((_, figures),) = nsight_compute.count(options, [sys.executable, __file__, "--run", name], METRICS, STALLS)
    except GraderError as error:
        raise SystemExit(f"{name}: {error}\nThe lesson shows recorded figures.") from None
    return figures


def main() -> None:
    """Profile and print; with --record also write the record."""
    parser = argparse.ArgumentParser(
        description="Profile int4 matmuls of few rows with Nsight Compute, and print its figures."
    )
    parser.add_argument("--record", action="store_true", help="also write ncu_gpu.json, which the lesson shows")
    parser.add_argument(
        "--run",
        choices=RUNS,
        help="only launch this kernel, and print no figures: the script calls itself so under ncu",
    )
    arguments = parser.parse_args()
    if arguments.run:
        return run(*RUNS[arguments.run])
    found: dict[str, Any] = {name: profile(name) for name in RUNS}
    for figure in next(iter(found.values())):
        print(f"{figure:30}" + "".join(f"{figures.get(figure, float('nan')):12.2f}" for figures in found.values()))
    if arguments.record:
        import torch

        result = {
            "version": 1,
            "gpu": torch.cuda.get_device_name(),
            "date": datetime.date.today().isoformat(),
            "command": f"python lessons/{HERE.name}/profile_few_rows.py --record",
            "kernels": found,
        }
        write_record(HERE / "ncu_gpu.json", result, HERE.parents[1])
    return None


if __name__ == "__main__":
    main()
