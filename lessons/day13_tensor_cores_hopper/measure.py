"""Time each version of the GEMMs and attentions of days 12 and 13, and torch's, on this machine's GPU.

    python lessons/day13_tensor_cores_hopper/measure.py            print tables
    python lessons/day13_tensor_cores_hopper/measure.py --record   also write tensor_cores_gpu.json, which the lesson shows

Versions that differ from a solution in a few words are made from its text, so every row can be reproduced. Each result
is first compared with a matmul or attention in float32. These kernels draw so much power that the GPU lowers its clock
within milliseconds; a kernel that runs right after one of them is up to a sixth slower. Therefore all versions of a
table, torch's included, take turns: a turn takes about ten milliseconds, and before each turn the GPU rests for a tenth
of a second, after which it has its full clock again. The tables show the median of all runs, and the median over the
rounds of the ratio to torch's turn of the same round. Without the rests all versions are slower.
"""  # noqa: E501

from __future__ import annotations

import argparse
import datetime
import itertools
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
AMPERE = HERE.with_name("day12_tensor_cores_ampere")
sys.path.insert(0, str(ROOT))

from grader import load_kernel  # noqa: E402  (in the folder that was added above)
from grader.frontend.course_headers import with_headers  # noqa: E402
from grader.frontend.tokens import Source  # noqa: E402
from grader.judge.timing.sources import write_record  # noqa: E402

ROUNDS, MOST_RUNS, WARMUP = 9, 40, 3
TURN_US, REST = 10_000.0, 0.1
"""Total time of the runs of a turn, in microseconds, and the rest before it, in seconds."""

WAIT_CYCLES = 2_000_000
"""Duration of the kernel that waits while Python enqueues the runs of a turn: about 1 ms."""

Run = Callable[[], Any]

LINEAR = "wgmma_linear.cu"
ATTENTION = "hopper_flash_attention.cu"

LINEAR_STEPS: dict[str, list[tuple[str, str]]] = {
    "4: remote arrivals with .release.cluster": [
        ("mbarrier.arrive.shared::cluster.b64", "mbarrier.arrive.release.cluster.shared::cluster.b64"),
    ],
    "5: the solution": [],
    "5, but one block per SM": [("(tiles + rounds - 1) / rounds;", "tiles < most_clusters ? tiles : most_clusters;")],
    "5, but roles not known to be warp-uniform": [
        ("__shfl_sync(0xffffffffu, threadIdx.x / 128, 0)", "threadIdx.x / 128")
    ],
    "5, but always 256 columns": [("{256, 128, 64}", "{256}")],
    "5, but clusters of four blocks": [("kCluster = 2;", "kCluster = 4;")],
}
"""Variants of the solution by name: pairs (find, replace) for its text and the headers that it includes."""

ATTENTION_STEPS: dict[str, list[tuple[str, str]]] = {
    "2: roles, never ping-pong": [("kPingPong = DIM <= 64;", "kPingPong = false;")],
    "3: roles, always ping-pong": [("kPingPong = DIM <= 64;", "kPingPong = true;")],
    "4: output tiles overwrite q tiles": [("kSeparateOut = DIM <= 128;", "kSeparateOut = false;")],
    "5: the solution": [],
    "5, but all heads at once": [("causal ? std::max(group", "true ? std::max(group")],
    "5, but conditional rescaling": [
        ("m = row_max(m);", "m = row_max(m);\n        if (!((m - maximum[h]) * scale > 8.0f)) m = maximum[h];"),
        (
            "#pragma unroll\n                    for (int e = 0; e < DIM / 2; ++e) o[e] *= correction[e / 2 % 2];",
            "if (__any_sync(0xffffffffu, correction[0] != 1 || correction[1] != 1)) {\n"
            "#pragma unroll\n                    for (int e = 0; e < DIM / 2; ++e) o[e] *= correction[e / 2 % 2];\n}",
        ),
    ],
}


def build_all() -> None:
    """Build all kernels in parallel, each in its own process, and leave them in the build cache."""
    steps = ((LINEAR, LINEAR_STEPS), (ATTENTION, ATTENTION_STEPS))
    files = [*AMPERE.glob("gemm_*.cu"), *HERE.glob("hopper_*.cu"), AMPERE / "attention_f32_tf32x3.cu"]
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        jobs = [pool.submit(build, name, changes) for name, versions in steps for changes in versions.values()]
        jobs += [
            pool.submit(build, path) for path in (*files, ROOT / "solutions" / AMPERE.name / "mma_flash_attention.cu")
        ]
        for job in jobs:
            job.result()


def build(file: str | Path, changes: list[tuple[str, str]] | None = None) -> None:
    """Build a file, or a solution with changes."""
    load_kernel(file, device="cuda") if changes is None else solution(str(file), changes)


def solution(name: str, changes: list[tuple[str, str]]) -> Any:
    """Load a solution with its headers inlined and changes applied."""
    text = (ROOT / "solutions" / HERE.name / name).read_text(encoding="utf-8")
    text = with_headers(text, Source(text), name)
    for find, replace in changes:
        if find not in text:
            raise SystemExit(f"{name} and its headers no longer contain {find!r}: update {Path(__file__).name}")
        text = text.replace(find, replace)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_text(text, encoding="utf-8")
        return load_kernel(path, device="cuda")


def microseconds(run: Run, runs: int) -> list[float]:
    """Return the time of each run by CUDA events, from the end of one run to the end of the next."""
    events = [torch.cuda.Event(enable_timing=True) for _ in range(runs + 1)]
    torch.cuda._sleep(WAIT_CYCLES)
    for event in events:
        run()
        event.record()
    torch.cuda.synchronize()
    return [a.elapsed_time(b) * 1e3 for a, b in itertools.pairwise(events)]


def in_turns(runs: dict[str, Run]) -> dict[str, list[list[float]]]:
    """Return microseconds by name, round and run."""
    often = {}
    for name, run in runs.items():
        us = min(microseconds(run, WARMUP))
        often[name] = max(1, min(MOST_RUNS, round(TURN_US / us)))
    times: dict[str, list[list[float]]] = {name: [] for name in runs}
    for _ in range(ROUNDS):
        for name, run in runs.items():
            time.sleep(REST)
            times[name].append(microseconds(run, often[name]))
    return times


def by_token(x: Tensor) -> Tensor:
    """Reshape [batch, heads, tokens, head_dim] to [batch * tokens, heads, head_dim]."""
    return x.transpose(1, 2).flatten(0, 1)


def table(runs: dict[str, Run], flops: float, torch_name: str, expected: Tensor, outputs: Run) -> list[dict[str, Any]]:
    """Check the result of each run, then return its times."""
    for name, run in runs.items():
        given = run()
        given = outputs() if given is None else by_token(given) if given.dim() == expected.dim() + 1 else given
        off = float(given.float().sub(expected).norm() / expected.norm())
        if not off < 1e-2:
            raise SystemExit(f"{name} has a relative error of {off:.1g}; a wrong kernel is not timed")
    times = in_turns(runs)
    medians = {name: [statistics.median(turn) for turn in turns] for name, turns in times.items()}
    rows = []
    for name, turns in times.items():
        us = statistics.median(itertools.chain(*turns))
        ratio = statistics.median(theirs / ours for theirs, ours in zip(medians[torch_name], medians[name]))
        rows.append(
            {"name": name, "us": round(us, 2), "tflops": round(flops / us / 1e6, 1), "torch_ratio": round(ratio, 3)}
        )
    return rows


def gemms() -> dict[str, list[dict[str, Any]]]:
    """Time y = x w^T in bf16, by size."""
    plain = {
        "1: one tile at a time": load_kernel(HERE / "hopper_linear_1_one_tile.cu", device="cuda"),
        "2: a producer and two consumers": load_kernel(HERE / "hopper_linear_2_producer.cu", device="cuda"),
    }
    steps = {name: solution(LINEAR, changes) for name, changes in LINEAR_STEPS.items()}
    found = {}
    for rows, n in ((512, 4096), (4096, 4096), (8192, 8192)):
        x, w = (torch.randn(size, n, device="cuda", dtype=torch.bfloat16) for size in (rows, n))
        y = torch.empty_like(x)
        operands = x, w, y, rows, n, n

        def plain_run(kernel: Any, operands: tuple[Any, ...] = operands) -> Run:
            return lambda: kernel.linear(*operands)

        def run(kernel: Any, operands: tuple[Any, ...] = operands) -> Run:
            return lambda: kernel.wgmma_linear_bf16(*operands)

        runs: dict[str, Run] = {"torch (cuBLAS)": lambda x=x, w=w, y=y: torch.mm(x, w.T, out=y)}
        in_half = [t.half() for t in (x, w, y)]
        for path in sorted(AMPERE.glob("gemm_*.cu")):
            kernel = load_kernel(path, device="cuda")
            name = "mma.sync " + path.stem.removeprefix("gemm_").replace("_", ": ")
            runs[name] = lambda kernel=kernel, t=in_half, sizes=operands[3:]: kernel.gemm(*t, *sizes) or t[2]
        runs |= {name: plain_run(kernel) for name, kernel in plain.items()}
        runs |= {name: run(kernel) for name, kernel in steps.items()}
        expected = x.float() @ w.float().T
        found[f"{rows} x {n} x {n}"] = table(runs, 2.0 * rows * n**2, "torch (cuBLAS)", expected, lambda y=y: y)
    return found


def attentions() -> dict[str, list[dict[str, Any]]]:
    """Time attention in bf16, by size, with torch's cuDNN and FlashAttention-2 backends."""
    plain = load_kernel(HERE / "hopper_attention_1_one_warpgroup.cu", device="cuda")
    ampere = load_kernel(ROOT / "solutions" / AMPERE.name / "mma_flash_attention.cu", device="cuda")
    steps = {name: solution(ATTENTION, changes) for name, changes in ATTENTION_STEPS.items()}
    taken = torch.zeros(1, dtype=torch.int32, device="cuda")
    found = {}
    for batch, heads, kv_heads, n, d, causal in (
        (4, 16, 16, 4096, 64, False),
        (4, 16, 16, 4096, 128, False),
        (4, 16, 16, 4096, 128, True),
        (1, 16, 16, 16384, 128, True),
        (4, 32, 8, 2048, 128, True),
        (4, 8, 8, 4096, 256, False),
    ):
        scale = d**-0.5
        q = torch.randn(batch * n, heads, d, device="cuda", dtype=torch.bfloat16)
        k, v = (torch.randn(batch * n, kv_heads, d, device="cuda", dtype=torch.bfloat16) for _ in range(2))
        out = torch.empty_like(q)
        starts = torch.arange(0, batch * n + 1, n, device="cuda", dtype=torch.int32)
        by_head = [x.view(batch, n, -1, d).transpose(1, 2).contiguous() for x in (q, k, v)]

        def torchs(backend: Any, by_head: list[Tensor] = by_head, causal: bool = causal) -> Run:
            def run() -> Tensor:
                attend = torch.nn.functional.scaled_dot_product_attention
                with sdpa_kernel(backend):
                    return attend(*by_head, is_causal=causal, enable_gqa=True)

            return run

        def mma(q=q, k=k, v=v, out=out, starts=starts, sizes=(batch, n, heads, kv_heads, d), c=causal, s=scale) -> None:
            ampere.mma_flash_attention_bf16(q, k, v, starts, starts, out, *sizes, q.stride(0), k.stride(0), s, c)

        def hopper(kernel: Any, q=q, k=k, v=v, out=out, starts=starts, c=causal, s=scale, batch=batch, n=n) -> Run:
            sizes = (batch, len(q), len(k), n, q.shape[1], k.shape[1], q.shape[2])
            return lambda: kernel.hopper_flash_attention_bf16(
                q, k, v, starts, starts, out, taken, *sizes, q.stride(0), k.stride(0), s, c
            )

        runs: dict[str, Run] = {
            "torch (cuDNN)": torchs(SDPBackend.CUDNN_ATTENTION),
            "torch (FlashAttention-2)": torchs(SDPBackend.FLASH_ATTENTION),
            "mma.sync": mma,
        }
        if d == 128 and not causal:
            ours = torch.empty_like(by_head[0])

            def simple(by_head=by_head, ours=ours, n=n, heads=batch * heads, s=scale) -> Tensor:
                plain.attention(*by_head, ours, heads, n, s)
                return ours

            runs["1: one warpgroup, one tile at a time"] = simple
        runs |= {name: hopper(kernel) for name, kernel in steps.items()}
        pairs = batch * heads * n * n / (2 if causal else 1)
        name = f"{batch} x {n} tokens, {heads} heads of {d}" + (f" ({kv_heads} of keys)" if kv_heads != heads else "")
        expected = by_token(runs["torch (FlashAttention-2)"]()).float()
        found[name + (", causal" if causal else "")] = table(
            runs, 4 * pairs * d, "torch (cuDNN)", expected, lambda out=out: out
        )
    return found


def attentions_f32() -> dict[str, list[dict[str, Any]]]:
    """Time attention in f32, 4 x 16 heads, 4096 tokens: 3xTF32, plain TF32, and torch's memory-efficient backend."""
    kernel = load_kernel(AMPERE / "attention_f32_tf32x3.cu", device="cuda")
    found = {}
    for d in (64, 128):
        q, k, v = (torch.randn(4, 16, 4096, d, device="cuda") for _ in range(3))
        out = torch.empty_like(q)
        sizes = (64, 4096, 4096, d, d**-0.5, False)

        def torchs(q: Tensor = q, k: Tensor = k, v: Tensor = v) -> Tensor:
            with sdpa_kernel(SDPBackend.EFFICIENT_ATTENTION):
                return torch.nn.functional.scaled_dot_product_attention(q, k, v)

        runs: dict[str, Run] = {
            "torch (memory-efficient)": torchs,
            "3xTF32": lambda q=q, k=k, v=v, out=out, sizes=sizes: kernel.attention(q, k, v, out, *sizes),
            "plain TF32": lambda q=q, k=k, v=v, out=out, sizes=sizes: kernel.attention_tf32(q, k, v, out, *sizes),
        }
        rows = table(runs, 4.0 * 64 * 4096**2 * d, "torch (memory-efficient)", torchs(), lambda out=out: out)
        exact = torch.softmax(q[0, :2].double() @ k[0, :2].double().mT * d**-0.5, -1) @ v[0, :2].double()
        for row in rows:
            given = runs[row["name"]]()
            off = (out if given is None else given)[0, :2].double() - exact
            row["error"] = float(off.norm() / exact.norm())
        found[f"heads of {d}"] = rows
    return found


def main() -> None:
    """Measure, print, and record if requested."""
    parser = argparse.ArgumentParser(
        description="Time tensor-core kernels on the first GPU of the machine that runs this script, which must be a "
        "Hopper."
    )
    parser.add_argument(
        "--record", action="store_true", help="also write tensor_cores_gpu.json, which the lesson shows"
    )
    arguments = parser.parse_args()
    if not torch.cuda.is_available() or torch.cuda.get_device_capability() != (9, 0):
        raise SystemExit("There is no Hopper GPU here. The lesson shows what was recorded on one.")
    build_all()
    torch.manual_seed(12)
    found = {"gemm": gemms(), "attention": attentions(), "attention_f32": attentions_f32()}
    for tables in found.values():
        for title, rows in tables.items():
            print(f"\n{title:50s}{'us':>10s}{'TFLOP/s':>9s}{'x torch':>9s}")
            for row in rows:
                error = f"  error {row['error']:.1e}" if "error" in row else ""
                print(f"{row['name']:50s}{row['us']:10.1f}{row['tflops']:9.0f}{row['torch_ratio']:9.2f}{error}")
    if arguments.record:
        result = {
            "version": 1,
            "gpu": torch.cuda.get_device_name(),
            "torch": torch.__version__,
            "date": datetime.date.today().isoformat(),
            "command": f"python lessons/{HERE.name}/measure.py --record",
            **found,
        }
        path = HERE / "tensor_cores_gpu.json"
        write_record(path, result, ROOT)
        print(f"\nrecorded in {path.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
