"""NVIDIA's libraries beside the course's kernels, on this machine's GPU.

    python -m tests.gpu.libraries day02_reductions    CUB's ArgMax over a whole vector, and vocabulary_argmax
    python -m tests.gpu.libraries day04_linear        cuBLAS and cuBLASLt, and the solutions of day 4
    python -m tests.gpu.libraries day15_performance   a cuDNN graph with plans by length, and the attentions of days 12 and 13
    python -m tests.gpu.libraries DAY --record        also writes libraries_gpu.json, which the lesson shows

All functions of a table take turns, each with a cold L2 cache; the figures are medians after a warm-up.
"""  # noqa: E501

from __future__ import annotations

import argparse
import datetime
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import torch

from grader import load_kernel
from grader.course import course_root
from grader.execution.programs.build import Options, build_cuda
from grader.execution.programs.files import unit
from grader.judge.timing.sources import write_record
from grader.setup.errors import GraderError

ROOT = course_root()
FILE = "libraries_gpu.json"
PROGRAMS = {
    "day02_reductions": (
        ("lessons/day02_reductions/device_argmax.cu", "solutions/day02_reductions/vocabulary_argmax.cu"),
        (("151936",), ("16777216",)),
    ),
    "day04_linear": (
        (
            "lessons/day04_linear/cublas.cu",
            "solutions/day04_linear/linear_wmma.cu",
            "solutions/day04_linear/linear_register_tiled.cu",
        ),
        (("4096", "4096", "4096"), ("512", "4096", "4096"), ("16", "4096", "4096")),
    ),
}
"""For each day, the files of a program, and its arguments for each size."""

ATTENTION = "day15_performance"
LENGTHS, HEADS, HEAD_DIM, STEP = (500, 1000, 2000, 4000), 32, 128, 512
ROUNDS, WARMUP = 30, 5


def program_rows(day: str) -> list[dict[str, Any]]:
    """Build the program of a day, run it for each size, and return a row for each line that has a time."""
    files, sizes = PROGRAMS[day]
    program = build_cuda([unit(ROOT / file, (ROOT / "lessons",), ()) for file in files], Options())
    rows = []
    for size in sizes:
        done = subprocess.run([str(program), *size], capture_output=True, text=True)
        print(f"{' x '.join(size)}\n{done.stdout}{done.stderr}", flush=True)
        if done.returncode != 0:
            raise SystemExit(f"{files[0]} {' '.join(size)} ended with status {done.returncode}")
        rows += timed_lines(done.stdout, " x ".join(size))
    return rows


def timed_lines(text: str, size: str) -> list[dict[str, Any]]:
    """Return a row for each line of a program's output that has a time, and an error if the line has one."""
    found = re.finditer(r"^(?P<name>.*?) +(?:error (?P<error>\S+) +)?(?P<us>[0-9.]+) us$", text, re.MULTILINE)
    return [
        {"size": size, "name": line["name"], "us": float(line["us"])}
        | ({"error": float(line["error"])} if line["error"] else {})
        for line in found
    ]


def in_turns(functions: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """Return the median time of each function in microseconds, by CUDA events."""
    flush = torch.empty(2**28, dtype=torch.int32, device="cuda")  # long enough to hide the host's part of a call
    times: dict[str, list[float]] = {name: [] for name in functions}
    for turn in range(WARMUP + ROUNDS):
        for name, function in functions.items():
            flush.fill_(turn)
            start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            start.record()
            function()
            end.record()
            torch.cuda.synchronize()
            if turn >= WARMUP:
                times[name].append(start.elapsed_time(end) * 1e3)
    return {name: statistics.median(all_times) for name, all_times in times.items()}


def attention_rows() -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Time attention at each length; return the rows, and the versions of cuDNN and its front end."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    sys.path.insert(0, str(ROOT / "lessons" / ATTENTION))
    from cudnn_plans import MISSING, Attention, PlanCache, frontend

    cudnn = frontend()
    versions = {"cudnn": torch.backends.cudnn.version(), "cudnn_frontend": getattr(cudnn, "__version__", None)}
    if cudnn is None:
        print(MISSING, flush=True)
        versions["note"] = MISSING
    handle = cudnn.create_handle() if cudnn else None
    mma = load_kernel(ROOT / "solutions/day12_tensor_cores_ampere/mma_flash_attention.cu", device="cuda")
    hopper = None
    if torch.cuda.get_device_capability()[0] == 9:
        hopper = load_kernel(ROOT / "solutions/day13_tensor_cores_hopper/hopper_flash_attention.cu", device="cuda")
    taken = torch.zeros(1, dtype=torch.int32, device="cuda")
    exact, steps = (
        PlanCache(lambda length: Attention(cudnn, handle, length, HEADS, HEAD_DIM), step) for step in (1, STEP)
    )
    generator = torch.Generator("cuda").manual_seed(0)
    if cudnn:
        exact.plan(64)  # loads cuDNN
    rows: list[dict[str, Any]] = []
    for n in LENGTHS:
        longest = steps.padded(n)
        # Behind the last token there are zeros, which a causal mask hides from the tokens.
        padded = [torch.zeros(longest, HEADS, HEAD_DIM, dtype=torch.bfloat16, device="cuda") for _ in range(3)]
        for tensor in padded:
            tensor[:n] = torch.randn(n, HEADS, HEAD_DIM, generator=generator, device="cuda")
        q, k, v = (tensor[:n] for tensor in padded)
        outputs = {name: torch.empty_like(padded[0]) for name in ("plan", "padded", "mma", "hopper")}
        starts = torch.tensor([0, n], dtype=torch.int32, device="cuda")
        by_head = [tensor.transpose(0, 1)[None] for tensor in (q, k, v)]
        scale, token = HEAD_DIM**-0.5, q.stride(0)
        functions: dict[str, Callable[[], Any]] = {}
        size = f"{n} tokens"
        if cudnn:
            began = time.perf_counter()
            exact.plan(n)
            torch.cuda.synchronize()
            seconds = time.perf_counter() - began
            rows.append({"size": size, "name": "cuDNN, building the plan on the host", "us": seconds * 1e6})
            functions["cuDNN, a plan for this length"] = lambda q=q, k=k, v=v, o=outputs["plan"], n=n: exact.plan(n)(
                q, k, v, o[:n]
            )
            functions[f"cuDNN, a plan for the next multiple of {STEP}"] = lambda p=padded, o=outputs["padded"], n=n: (
                steps.plan(n)(*p, o)
            )

        def torchs(by_head: list[torch.Tensor] = by_head) -> torch.Tensor:
            with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
                return torch.nn.functional.scaled_dot_product_attention(*by_head, is_causal=True)

        functions["torch, cuDNN backend"] = torchs
        sizes = (1, n, HEADS, HEADS, HEAD_DIM, token, token, scale, True)
        functions["mma_flash_attention (day 12)"] = lambda q=q, k=k, v=v, s=starts, o=outputs["mma"], z=sizes: (
            mma.mma_flash_attention_bf16(q, k, v, s, s, o, *z)
        )
        if hopper is not None:
            run = hopper.hopper_flash_attention_bf16
            more = (taken, 1, n, n, *sizes[1:])
            functions["hopper_flash_attention (day 13)"] = (
                lambda q=q, k=k, v=v, s=starts, o=outputs["hopper"], z=more, run=run: run(q, k, v, s, s, o, *z)
            )
        expected = torch.nn.functional.scaled_dot_product_attention(*(x.float() for x in by_head), is_causal=True)
        expected = expected[0].transpose(0, 1)
        for function in functions.values():
            function()
        torch.cuda.synchronize()
        used = (["plan", "padded"] if cudnn else []) + ["mma"] + (["hopper"] if hopper is not None else [])
        for name in used:
            error = (outputs[name][:n].float() - expected).norm() / expected.norm()
            if not error < 0.01:
                raise SystemExit(f"{name} is wrong at length {n}: relative error {error:.1e}")
        rows += [{"size": size, "name": name, "us": us} for name, us in in_turns(functions).items()]
        print(f"{size}: {rows[-len(functions) - bool(cudnn) :]}", flush=True)
    return rows, versions


def main() -> None:
    """Measure and print; with --record also write the record."""
    parser = argparse.ArgumentParser(description="NVIDIA's libraries beside the course's kernels")
    parser.add_argument("day", choices=[*PROGRAMS, ATTENTION])
    parser.add_argument("--record", action="store_true", help=f"write {FILE} for the lesson")
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("There is no GPU here. The lessons run the same programs on the simulator.")
    versions: dict[str, Any] = {}
    try:
        if arguments.day == ATTENTION:
            rows, versions = attention_rows()
        else:
            rows = program_rows(arguments.day)
    except GraderError as error:
        raise SystemExit(str(error)) from None
    if arguments.record:
        result = {
            "version": 1,
            "gpu": torch.cuda.get_device_name(),
            "torch": torch.__version__,
            "cuda": torch.version.cuda,
            **versions,
            "date": datetime.date.today().isoformat(),
            "command": f"python -m tests.gpu.libraries {arguments.day} --record",
            "rows": rows,
        }
        write_record(ROOT / "lessons" / arguments.day / FILE, result, ROOT)


if __name__ == "__main__":
    main()
