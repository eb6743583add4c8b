"""Profile the day's Hopper kernels and the library's with Nsight Compute on this machine's GPU.

    python lessons/day13_tensor_cores_hopper/profile_tensor_cores.py            print tables
    python lessons/day13_tensor_cores_hopper/profile_tensor_cores.py --record   also write ncu_gpu.json, which the lesson shows

ncu runs each kernel many times by itself, so the GPU has its full clock. Suppose two kernels take equally many cycles
here, but one of them takes more time in measure.py: then the GPU's clock was lower there while that kernel ran.
"""  # noqa: E501

from __future__ import annotations

import argparse
import datetime
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT))

from grader.judge.timing import nsight_compute  # noqa: E402
from grader.judge.timing.sources import write_record  # noqa: E402
from grader.setup.errors import GraderError  # noqa: E402  (in the folder that was added above)

METRICS = {
    "us": ("gpu__time_duration.sum", 1e-3),
    "GHz": ("sm__cycles_elapsed.avg.per_second", 1e-9),
    "thousand cycles": ("sm__cycles_elapsed.max", 1e-3),
    "tensor cores, %": ("sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active", 1.0),
    "exponentials, %": ("sm__inst_executed_pipe_xu.avg.pct_of_peak_sustained_active", 1.0),
    "issue slots, %": ("smsp__issue_active.avg.pct_of_peak_sustained_active", 1.0),
    "million instructions": ("smsp__inst_executed.sum", 1e-6),
    "MB that SMs received": ("l1tex__m_xbar2l1tex_read_bytes.sum", 1e-6),
    "MB read from L2": ("lts__t_sectors_op_read.sum", 32e-6),
    "L2, %": ("lts__throughput.avg.pct_of_peak_sustained_elapsed", 1.0),
    "memory, %": ("dram__throughput.avg.pct_of_peak_sustained_elapsed", 1.0),
    "registers": ("launch__registers_per_thread", 1.0),
    "threads of a block": ("launch__block_size", 1.0),
    "blocks": ("launch__grid_size", 1.0),
    "waves": ("launch__waves_per_multiprocessor", 1.0),
    "occupancy, %": ("sm__warps_active.avg.pct_of_peak_sustained_active", 1.0),
}
"""Nsight Compute metrics by name, with the factor for their base unit (ns, Hz, bytes, sectors)."""

STALLS = {
    "a barrier": "barrier",
    "the tensor cores": "gmma",
    "memory": "long_scoreboard",
    "shared memory": "short_scoreboard",
    "the queue to them": "mio_throttle",
    "a fixed latency": "wait",
    "the dispatcher": "dispatch_stall",
    "its turn": "not_selected",
}
"""Nsight Compute's warp stall reasons by name, in cycles per issued instruction."""

LINEAR, CUBLAS, HOPPER, CUDNN = "wgmma_linear", "cuBLAS", "hopper_flash_attention", "cuDNN"
SIZES: dict[str, tuple[tuple[str, str], tuple[int, ...]]] = {
    "4096 x 4096 x 4096": ((LINEAR, CUBLAS), (4096,)),
    "4 x 4096 tokens, 16 heads of 128": ((HOPPER, CUDNN), (4, 16, 4096, 128, False)),
    "4 x 4096 tokens, 16 heads of 128, causal": ((HOPPER, CUDNN), (4, 16, 4096, 128, True)),
    "4 x 4096 tokens, 8 heads of 256": ((HOPPER, CUDNN), (4, 8, 4096, 256, False)),
}
"""Kernels and sizes by the name in measure.py: [n], or [batch, heads, tokens, head_dim, causal]."""


def linear(n: int) -> tuple[Callable[[], Any], ...]:
    """Return two functions that compute y = x w^T of [n, n] in bf16: the solution's and torch's."""
    import torch

    from grader import load_kernel

    kernel = load_kernel(ROOT / "solutions" / HERE.name / "wgmma_linear.cu", device="cuda")
    x, w = (torch.randn(n, n, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    y = torch.empty_like(x)
    return lambda: kernel.wgmma_linear_bf16(x, w, y, n, n, n), lambda: torch.mm(x, w.T, out=y)


def attention(batch: int, heads: int, n: int, d: int, causal: bool) -> tuple[Callable[[], Any], ...]:
    """Return two functions that run attention in bf16: the solution's on [batch * n, heads, d], and torch's."""
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel

    from grader import load_kernel

    kernel = load_kernel(ROOT / "solutions" / HERE.name / "hopper_flash_attention.cu", device="cuda")
    q, k, v = (torch.randn(batch * n, heads, d, device="cuda", dtype=torch.bfloat16) for _ in range(3))
    out, taken = torch.empty_like(q), torch.zeros(1, dtype=torch.int32, device="cuda")
    starts = torch.arange(0, batch * n + 1, n, device="cuda", dtype=torch.int32)
    sizes = (batch, batch * n, batch * n, n, heads, heads, d, heads * d, heads * d)
    by_head = [x.view(batch, n, heads, d).transpose(1, 2).contiguous() for x in (q, k, v)]

    def ours() -> None:
        kernel.hopper_flash_attention_bf16(q, k, v, starts, starts, out, taken, *sizes, d**-0.5, causal)

    def theirs() -> None:
        with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
            torch.nn.functional.scaled_dot_product_attention(*by_head, is_causal=causal)

    return ours, theirs


def run() -> None:
    """Launch each kernel of SIZES in order, with profiling on for one launch of each."""
    import torch

    torch.manual_seed(12)
    for (_, rival), sizes in SIZES.values():
        for once in (linear if rival == CUBLAS else attention)(*sizes):
            once()
            torch.cuda.synchronize()
            torch.cuda.profiler.start()
            once()
            torch.cuda.synchronize()
            torch.cuda.profiler.stop()


def profile() -> dict[str, dict[str, dict[str, Any]]]:
    """Return the metrics by size and kernel."""
    program = [sys.executable, __file__, "--run"]
    try:
        seen = nsight_compute.count(["--profile-from-start", "off"], program, METRICS, STALLS)
    except GraderError as error:
        raise SystemExit(f"{error}\nThe lesson shows what was recorded.") from None
    who = [(size, name) for size, (both, _) in SIZES.items() for name in both]
    if len(seen) != len(who):
        raise SystemExit(f"ncu saw {[kernel for kernel, _ in seen]} instead of {len(who)} kernels")
    found: dict[str, dict[str, dict[str, Any]]] = {size: {} for size in SIZES}
    for (size, name), (kernel, figures) in zip(who, seen):
        found[size][name] = {"kernel": kernel.split("(")[0].removeprefix("void "), **figures}
    return found


def main() -> None:
    """Profile, print, and record if requested."""
    parser = argparse.ArgumentParser(
        description="Profile the kernels for Hopper with Nsight Compute, and print its figures."
    )
    parser.add_argument("--record", action="store_true", help="also write ncu_gpu.json, which the lesson shows")
    parser.add_argument(
        "--run",
        action="store_true",
        help="only launch the kernels, and print no figures: the script calls itself so under ncu",
    )
    arguments = parser.parse_args()
    if arguments.run:
        return run()
    found = profile()
    for size, kernels in found.items():
        print(f"\n{size}: " + ", ".join(f"{name} ({values['kernel']})" for name, values in kernels.items()))
        for figure in list(next(iter(kernels.values())))[1:]:
            print(f"{figure:32}" + "".join(f"{values[figure]:12,.2f}" for values in kernels.values()))
    if arguments.record:
        import torch

        version = subprocess.run(["ncu", "--version"], capture_output=True, text=True).stdout.split("Version ")[-1]
        driver = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader", "--id=0"]
        result = {
            "version": 1,
            "gpu": torch.cuda.get_device_name(),
            "driver": subprocess.run(driver, capture_output=True, text=True).stdout.strip(),
            "torch": torch.__version__,
            "ncu": version.split()[0],
            "date": datetime.date.today().isoformat(),
            "command": f"python lessons/{HERE.name}/{Path(__file__).name} --record",
            "sizes": found,
        }
        write_record(HERE / "ncu_gpu.json", result, ROOT)
    return None


if __name__ == "__main__":
    main()
