"""Times and memory of the day's kernels and of torch's attention, on the GPU of this machine.

    python lessons/day06_flash_attention/measure.py            prints a table
    python lessons/day06_flash_attention/measure.py --record   also writes attention_gpu.json, which the lesson plots

One batch of 16 heads, head_dim 64, no mask, as many keys as queries. All rows are float32 except the last two: torch's
FlashAttention-2 and cuDNN take only 16-bit inputs, and show the speed of tensor cores.
"""

from __future__ import annotations

import argparse
import datetime
import json
import statistics
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))

from grader import load_kernel  # noqa: E402  (in the folder that was added above)
from grader.judge.timing.sources import write_record  # noqa: E402

LENGTHS = [1024, 2048, 4096, 8192]
LONG = 65536
HEADS, HEAD_DIM = 16, 64
REPEATS = 9
VERSIONS = {
    "1: three passes": "attention_1_three_passes.cu",
    "2: one pass": "attention_2_one_pass.cu",
    "3: tiles": "attention_3_tiles.cu",
    "4: register tiles": "attention_4_register_tiles.cu",
}
TORCH = {
    "torch, unfused": (SDPBackend.MATH, torch.float32),
    "torch, memory-efficient": (SDPBackend.EFFICIENT_ATTENTION, torch.float32),
    "torch, FlashAttention-2 (bf16)": (SDPBackend.FLASH_ATTENTION, torch.bfloat16),
    "torch, cuDNN (bf16)": (SDPBackend.CUDNN_ATTENTION, torch.bfloat16),
}

Run = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]
"""A function of q, k, v, each [1, heads, length, head_dim], that returns out. It allocates what it needs."""


def version(file: str) -> Run:
    """Return a function that runs one of the lesson's kernels."""
    kernel = load_kernel(HERE / file, device="cuda")

    def run(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        length = q.shape[2]
        out = torch.empty_like(q)
        scores = [torch.empty(HEADS, length, length, device=q.device)] if "three_passes" in file else []
        kernel.attention(q, k, v, *scores, out, HEADS, length, length, HEAD_DIM, HEAD_DIM**-0.5, False)
        return out

    return run


def solution() -> Run:
    """Return a function that runs the solution of flash_attention."""
    kernel = load_kernel(HERE.parents[1] / "solutions" / HERE.name / "flash_attention.cu", device="cuda")

    def run(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        length = q.shape[2]
        out = torch.empty_like(q)
        kernel.flash_attention(q, k, v, out, 1, HEADS, length, length, HEAD_DIM, HEAD_DIM**-0.5, False)
        return out

    return run


def torch_attention(backend: SDPBackend, dtype: torch.dtype) -> Run:
    """Return a function that runs one of torch's attentions."""

    def run(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        with sdpa_kernel(backend):
            return scaled_dot_product_attention(q.to(dtype), k.to(dtype), v.to(dtype))

    return run


def microseconds(run: Run, inputs: list[torch.Tensor]) -> float:
    """Return the median time of a call, by CUDA events."""
    run(*inputs)
    times = []
    for _ in range(REPEATS):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        run(*inputs)
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end) * 1e3)
    return statistics.median(times)


def peak_bytes(run: Run, inputs: list[torch.Tensor]) -> int:
    """Return the peak memory that a call allocates: its output and its scratch memory, without its inputs."""
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    run(*inputs)
    torch.cuda.synchronize()
    return torch.cuda.max_memory_allocated() - before


def long_sequence(length: int = LONG) -> dict[str, float]:
    """Return time, error and memory of the solution where the scores of one head alone would fill 17 GB.

    Another thread watches the free memory of the device while the kernel runs, so it sees every allocation of the
    launcher. The result also has torch's allocated memory before the call, and its peak during the call.
    """
    run = solution()
    q, k, v = (torch.randn(1, HEADS, length, HEAD_DIM, device="cuda") for _ in range(3))
    run(q[:, :, :64].contiguous(), k[:, :, :64].contiguous(), v[:, :, :64].contiguous())  # load the kernel
    torch.cuda.synchronize()
    out_bytes = q.numel() * q.element_size()
    torch.cuda.empty_cache()
    least, over = [torch.cuda.mem_get_info()[0]], threading.Event()
    before, torch_before = least[0], torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()

    def watch() -> None:
        while not over.is_set():
            least[0] = min(least[0], torch.cuda.mem_get_info()[0])
            time.sleep(0.001)

    watcher = threading.Thread(target=watch)
    watcher.start()
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    out = run(q, k, v)
    end.record()
    torch.cuda.synchronize()
    over.set()
    watcher.join()
    torch_peak = torch.cuda.max_memory_allocated()
    rows = torch.randint(0, length, (8,), device="cuda")
    worst = 0.0
    for head in range(HEADS):
        scores = q[0, head, rows].double() @ k[0, head].double().T * HEAD_DIM**-0.5
        expected = torch.softmax(scores, dim=-1) @ v[0, head].double()
        worst = max(worst, float((out[0, head, rows] - expected).abs().max()))
    return {
        "length": length,
        "us": start.elapsed_time(end) * 1e3,
        "device_bytes": before - least[0],
        "torch_before_bytes": torch_before,
        "torch_peak_bytes": torch_peak,
        "out_bytes": out_bytes,
        "scores_bytes": 4 * HEADS * length**2,
        "largest_error": worst,
    }


def measure() -> dict[str, dict[str, list[float]]]:
    """Return times in microseconds and memory in bytes, by name, for each length."""
    runs = {name: (version(file), torch.float32) for name, file in VERSIONS.items()}
    runs["the solution"] = (solution(), torch.float32)
    runs |= {name: (torch_attention(*which), which[1]) for name, which in TORCH.items()}
    found: dict[str, dict[str, list[float]]] = {name: {"us": [], "bytes": []} for name in runs}
    for length in LENGTHS:
        whole = [torch.randn(1, HEADS, length, HEAD_DIM, device="cuda") for _ in range(3)]
        expected = runs["torch, memory-efficient"][0](*whole)
        for name, (run, dtype) in runs.items():
            inputs = [tensor.to(dtype) for tensor in whole]
            error = (run(*inputs).float() - expected).abs().max().item()
            if not error < (1e-3 if dtype == torch.float32 else 3e-2):
                raise SystemExit(f"{name} is wrong by {error:.1g} at {length} queries, so nothing is measured")
            found[name]["us"].append(round(microseconds(run, inputs), 1))
            found[name]["bytes"].append(peak_bytes(run, inputs))
    return found


def main() -> None:
    """Measure and print; with --record, also write the file."""
    parser = argparse.ArgumentParser(
        description="Measure the time and memory of attention on the first GPU of the machine that runs this script."
    )
    parser.add_argument("--record", action="store_true", help="also write attention_gpu.json, which the lesson shows")
    parser.add_argument("--only-long", action="store_true", help=f"only measure the memory at {LONG} queries and keys")
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("No GPU found. The lesson shows recorded measurements.")
    far = long_sequence()
    print(
        f"{LONG} queries and keys, {HEADS} heads: {far['us'] / 1e3:.0f} ms; "
        f"device memory used {far['device_bytes'] / 1e6:,.0f} MB, "
        f"out is {far['out_bytes'] / 1e6:,.0f} MB, the scores would be {far['scores_bytes'] / 1e9:,.0f} GB; "
        f"largest error of 128 rows {far['largest_error']:.1e}"
    )
    if not far["largest_error"] < 1e-3 or far["device_bytes"] > far["out_bytes"] + 64e6:
        raise SystemExit("The result is wrong, or the kernel used more than O(N) memory.")
    path = HERE / "attention_gpu.json"
    if arguments.only_long:
        if arguments.record:
            known = json.loads(path.read_text(encoding="utf-8"))
            write_record(path, {**known, "long": far}, HERE.parents[1], renewed=())
        return
    found = measure()
    print(f"{'microseconds':32s}" + "".join(f"{length:>10d}" for length in LENGTHS))
    for name, values in found.items():
        print(f"{name:32s}" + "".join(f"{us:10.0f}" for us in values["us"]))
    if arguments.record:
        result = {
            "version": 1,
            "gpu": torch.cuda.get_device_name(),
            "torch": torch.__version__,
            "date": datetime.date.today().isoformat(),
            "command": f"python lessons/{HERE.name}/measure.py --record",
            "shape": {"batch": 1, "heads": HEADS, "head_dim": HEAD_DIM},
            "lengths": LENGTHS,
            "kernels": found,
            "long": far,
        }
        write_record(path, result, HERE.parents[1])
        print(f"recorded in {path.relative_to(HERE.parents[1])}")


if __name__ == "__main__":
    main()
