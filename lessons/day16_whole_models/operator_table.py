"""Time every operator of a transformer beside torch's.

Each operator is timed per dtype, with small and with large tensors. A whole
layer is timed with fused and with separate operators.

    cd lessons/day16_whole_models
    python operator_table.py                      print the table, on a GPU
    python operator_table.py --only RoPE,softmax  only some operators
    python operator_table.py --device cpu         test the smallest sizes on the
                                                  simulator, without times

An operator, its inputs, torch's version, and its bytes and operations come from
its exercise; the kernel is that exercise's solution. All times are medians of
one run, after a warm-up:

- *device*: between two events, with launches queued beforehand and inputs that
  are not in the L2 cache: the kernel alone.
- *called*: a call from Python in a long row of calls without synchronization:
  what a program sees if the host is slower.
- *copy*: the bytes that the operator must move, at the rate of a
  device-to-device copy.
- *floor*: the time of *copy*, or the operator's operations at the rate of
  torch's matmul in the same dtype, whichever is longer. Both rates are measured
  in the same run.

torch.compile is timed where it can fuse something. A matmul or an attention is
one library call with and without it.
"""

from __future__ import annotations

import argparse
import datetime
import functools
import math
import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(ROOT), str(HERE)]

import fused_layer  # noqa: E402
import torch  # noqa: E402

from grader import load_kernel  # noqa: E402
from grader.course import Course  # noqa: E402
from grader.course.inputs import named  # noqa: E402
from grader.course.task import Call, Case, Exercise, Input, Output, torch_dtype  # noqa: E402
from grader.execution.build.build import build, compile_directly, plan_kernel  # noqa: E402
from grader.judge.timing.bench import rotation  # noqa: E402
from grader.judge.timing.events import time_on_gpu  # noqa: E402
from grader.judge.timing.machine import Machine, measure_machine  # noqa: E402
from grader.judge.timing.sources import write_record  # noqa: E402

RECORD = HERE / "operators_gpu.json"
ALL, SHORT = ("f32", "f16", "bf16"), ("f16", "bf16")
RUNS, CALLS, SEED = 100, 200, 14
LIMIT = {"f32": 5e-3, "f16": 3e-2, "bf16": 1e-1}
"""The difference from torch, relative to the norm, above which a time is meaningless."""

GELU = Exercise(
    name="day16_whole_models/operators",
    summary="GELU, element by element",
    launchers="void gelu_{dtype}(const {T}* x, {T}* out, long long n, cudaStream_t stream)",
    dtypes=ALL,
    inputs={"x": Input("n")},
    outputs={"out": Output("n")},
    reference=lambda x: torch.nn.functional.gelu(x),
    torch_baseline=lambda x: torch.nn.functional.gelu(x),
    flops=lambda d: 8 * d["n"],
    cases=[],
)
"""The one operator without an exercise: its kernel is this day's."""


@dataclass(frozen=True)
class Size:
    """One operator at one size."""

    operator: str
    exercise: str
    """The exercise whose solution is the kernel: "day02_reductions/softmax"."""
    name: str
    dims: dict[str, Any]
    dtypes: tuple[str, ...] = ALL
    small: bool = False
    """True if it is so small that the simulator runs it at once."""
    compiled: bool = False
    """True if torch.compile can fuse something."""
    inputs: dict[str, Callable[..., Any]] = field(default_factory=dict)


def sizes() -> Iterator[Size]:
    """Return the whole table. Small sizes are those of a first test, large ones those of a prompt."""
    wide = {"rows": 512, "cols": 4096}
    for operator, exercise in (
        ("add", "day01_residual_add/residual_add"),
        ("SwiGLU", "day03_positions_and_gates/swiglu"),
    ):
        yield Size(operator, exercise, "2 x 3", {"n": 6}, small=True)
        yield Size(operator, exercise, "512 x 4096", {"n": 512 * 4096}, compiled=operator != "add")
    yield Size("GELU", GELU.name, "2 x 3", {"n": 6}, small=True)
    yield Size("GELU", GELU.name, "512 x 4096", {"n": 512 * 4096}, compiled=True)
    for operator, exercise, more in (
        ("softmax", "day02_reductions/softmax", {}),
        ("RMSNorm", "day02_reductions/rms_norm", {"eps": 1e-5}),
        ("LayerNorm", "day02_reductions/layer_norm", {"eps": 1e-5}),
    ):
        yield Size(operator, exercise, "1 x 4", {"rows": 1, "cols": 4, **more}, small=True)
        yield Size(operator, exercise, "512 x 4096", {**wide, **more}, compiled=True)
    yield Size("argmax", "day02_reductions/argmax", "1 x 4", {"rows": 1, "cols": 4}, small=True)
    yield Size("argmax", "day02_reductions/argmax", "512 x 4096", wide, compiled=True)
    vocabulary = {"rows": 1, "cols": 151936, "splits": 128}
    yield Size("argmax", "day02_reductions/vocabulary_argmax", "1 x 151936", vocabulary)
    embedding = "day03_positions_and_gates/embedding"
    yield Size("embedding", embedding, "1 of 2 x 3", {"tokens": 1, "vocabulary": 2, "hidden": 3}, small=True)
    yield Size("embedding", embedding, "50 of 512 x 4096", {"tokens": 50, "vocabulary": 512, "hidden": 4096})
    yield Size("embedding", embedding, "512 of 151936 x 4096", {"tokens": 512, "vocabulary": 151936, "hidden": 4096})
    for name, tokens, heads, head_dim in (("2 x 1 x 4", 2, 1, 4), ("512 x 4 x 4096", 512, 4, 4096)):
        turned = {"tokens": tokens, "heads": heads, "head_dim": head_dim, "rotary_dim": head_dim, "theta": 10000.0}
        yield Size("RoPE", "day03_positions_and_gates/rope", name, turned, small=tokens == 2, compiled=tokens > 2)
    for name, rows, k, n in (("2 x 4 -> 3", 2, 4, 3), ("1 x 4096 -> 4096", 1, 4096, 4096)):
        product = {"rows": rows, "in_features": k, "out_features": n}
        yield Size("linear", "day04_linear/linear", name, product, ("f32",), small=k == 4)
        yield Size("linear", "day04_linear/linear_decode", name, {**product, "has_bias": True}, SHORT, small=k == 4)
    product = {"rows": 512, "in_features": 4096, "out_features": 4096}
    yield Size("linear", "day04_linear/linear_register_tiled", "512 x 4096 -> 4096", product, ("f32",))
    yield Size("linear", "day13_tensor_cores_hopper/wgmma_linear", "512 x 4096 -> 4096", product, SHORT)
    few = {"batch": 1, "heads": 4, "kv_heads": 2, "head_dim": 32}
    many = {"batch": 1, "heads": 28, "kv_heads": 4, "head_dim": 128, "causal": True}
    prefill = "day07_grouped_query_attention/gqa_prefill"
    name = "5 queries, 11 keys, 4 of 2 heads"
    yield Size("prefill", prefill, name, {**few, "query_len": 5, "key_len": 11, "causal": False}, small=True)
    name = "N 1024, 28 of 4 heads, causal"
    yield Size("prefill", prefill, name, {**many, "query_len": 1024, "key_len": 1024}, ("f32",))
    packed = {**many, "queries": 1024, "keys": 1024, "max_queries": 1024, "q_pad": 0, "kv_pad": 0}
    yield Size("prefill", "day13_tensor_cores_hopper/hopper_flash_attention", name, packed, SHORT)
    decode = "day07_grouped_query_attention/gqa_decode"
    full = {"lengths": lambda shape, dims: torch.full(shape, dims["max_len"], dtype=torch.int32)}
    yield Size("decode", decode, "11 keys, 4 of 2 heads", {**few, "max_len": 11, "splits": 1}, small=True, inputs=full)
    users = {"batch": 16, "heads": 32, "kv_heads": 8, "head_dim": 128, "max_len": 4096, "splits": 4}
    yield Size("decode", decode, "16 x 4096 keys, 32 of 8 heads", users, inputs=full)


# ---------------------------------------------------------------------------------------------------------- kernels


class Kernels:
    """Kernel files, built in parallel before they are needed."""

    def __init__(self, device: str) -> None:
        self.device = device
        self._loaded: dict[Path, Any] = {}

    @staticmethod
    def file(exercise: str) -> Path:
        """Return the solution of an exercise; for GELU, this day's own file."""
        return ROOT / ("lessons" if exercise == GELU.name else "solutions") / f"{exercise}.cu"

    def build(self, exercises: set[str]) -> dict[str, str]:
        """Build the kernels, at most eight at a time; return the first line of each error, by exercise."""
        if self.device == "cpu":
            return {}
        major, minor = torch.cuda.get_device_capability()

        def one(exercise: str) -> str:
            try:
                build(plan_kernel(self.file(exercise), "cuda", False, arch=f"sm_{major}{minor}"), compile_directly)
            except Exception as problem:  # the others can still be measured
                return first_line(problem)
            return ""

        with ThreadPoolExecutor(8) as pool:
            return {name: why for name, why in zip(sorted(exercises), pool.map(one, sorted(exercises))) if why}

    def load(self, exercise: str) -> Any:
        """Return the kernel of an exercise."""
        file = self.file(exercise)
        if file not in self._loaded:
            self._loaded[file] = load_kernel(file, device=self.device, checks=False)
        return self._loaded[file]

    def launch(self, exercise: str, launcher: str, *arguments: Any) -> None:
        """Call the operator once."""
        getattr(self.load(exercise), launcher)(*arguments)


def first_line(problem: BaseException) -> str:
    """Return an error's message in one line."""
    return f"{type(problem).__name__}: {(str(problem).strip() or 'no message').splitlines()[0][:200]}"


# --------------------------------------------------------------------------------------------------------- one size


def exercise_of(size: Size) -> Exercise:
    """Return the operator's definition."""
    return GELU if size.exercise == GELU.name else Course().find(size.exercise).load()


def drawn(task: Exercise, size: Size, dtype: str, device: str) -> Call:
    """Return the inputs on the device, generated there where possible."""
    case = Case(size.name, inputs=size.inputs, **size.dims)
    seed = task.case_seed(SEED, case, dtype)
    try:
        with torch.device(device):
            return task.call(case, dtype, seed, device=device, keep_on=device)
    except (RuntimeError, TypeError):  # some distributions can only create their tensors on the CPU
        return task.call(case, dtype, seed, keep_on=device)


def arguments_of(task: Exercise, call: Call, device: str) -> tuple[list[Any], dict[str, Any]]:
    """Return the launcher's arguments, with copies of the inputs and new outputs; and the outputs by name."""
    tensors = {name: tensor.clone() for name, tensor in call.tensors.items()}
    outputs: dict[str, Any] = {}
    for name, shape in call.output_shapes.items():
        outputs[name] = torch.empty(shape, dtype=torch_dtype(call.output_dtypes[name]), device=device)
    named = {**call.scalars, **outputs, **tensors}
    return [named[p.name] for p in task.parameters(call.dtype) if not p.is_stream], outputs


def difference(task: Exercise, outputs: dict[str, Any], theirs: Any) -> float:
    """Return the difference from torch's output relative to the norm; for integers, the share that differs."""
    ours = next(outputs[name] for name, spec in task.outputs.items() if not spec.scratch)
    if ours.numel() != theirs.numel():
        return math.inf
    ours, theirs = ours.reshape(-1).cpu(), theirs.reshape(-1).cpu()
    if not ours.dtype.is_floating_point:
        return float((ours.long() != theirs.long()).double().mean())
    ours, theirs = ours.double(), theirs.double()
    return float((ours - theirs).norm() / theirs.norm().clamp(min=1e-30))


def called(function: Callable[[], Any]) -> float:
    """Return microseconds per call from Python in a row of many, including the end of the last."""
    for _ in range(10):
        function()
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(CALLS):
        function()
    torch.cuda.synchronize()
    return (time.perf_counter() - begin) / CALLS * 1e6


def measure(size: Size, dtype: str, kernels: Kernels, machine: Machine | None, compiled: bool) -> dict[str, Any]:
    """Measure one row of the table; without a GPU, check the output only."""
    task = exercise_of(size)
    call = drawn(task, size, dtype, kernels.device)
    baseline = task.torch_baseline
    assert baseline is not None
    given = named(baseline, {**call.scalars, **call.tensors})
    arguments, outputs = arguments_of(task, call, kernels.device)
    launch = getattr(kernels.load(size.exercise), task.launcher(dtype))
    launch(*arguments)
    found: dict[str, Any] = {"difference": float(f"{difference(task, outputs, baseline(**given)):.3g}")}
    if not found["difference"] <= LIMIT[dtype]:
        raise ValueError(f"the output differs from torch's by {found['difference']:.2g} of its norm")
    if machine is None:
        return found
    held = sum(tensor.nbytes for tensor in call.tensors.values())
    sets, flush = rotation(held, machine.l2_bytes)
    copies = [arguments_of(task, call, kernels.device)[0] for _ in range(sets)]
    found["device_us"] = median([functools.partial(launch, *copy) for copy in copies], flush)
    found["called_us"] = called(functools.partial(launch, *arguments))
    del copies
    theirs = [
        {name: value.clone() if torch.is_tensor(value) else value for name, value in given.items()} for _ in range(sets)
    ]
    found["eager_device_us"] = median([functools.partial(baseline, **each) for each in theirs], flush)
    found["eager_called_us"] = called(functools.partial(baseline, **given))
    if compiled and size.compiled:
        torch._dynamo.reset()
        fused = torch.compile(baseline, dynamic=False)
        found["compiled_device_us"] = median([functools.partial(fused, **each) for each in theirs], flush)
    moved, operations = task.roofline_bytes(call), task.operations(call) or 0
    copy_us = moved / (machine.copy_gigabytes_per_second or math.inf) * 1e-3
    found |= {"bytes": moved, "operations": operations, "copy_us": copy_us}
    peak = machine.product_gigaflops[dtype]
    found["floor_us"] = max(copy_us, operations / peak * 1e-3)
    return {key: float(f"{value:.4g}") if isinstance(value, float) else value for key, value in found.items()}


def median(functions: list[Callable[[], Any]], flush: int) -> float:
    """Return the time of a call on the device, in microseconds."""
    return statistics.median(time_on_gpu(functions, RUNS, flush))


# -------------------------------------------------------------------------------------------------------- the table


def table(
    only: list[str], device: str, compiled: bool = True, show: Callable[[str], None] = print
) -> tuple[Machine | None, dict[str, Any]]:
    """Return all rows, and the layers, whose names contain one of ``only``. A failed row has a ``problem`` instead."""
    chosen = [size for size in sizes() if wanted(size.operator, only) and (size.small or device == "cuda")]
    layers = [layer for layer in fused_layer.LAYERS if wanted("layers", only) and (layer.small or device == "cuda")]
    kernels = Kernels(device)
    needed = {size.exercise for size in chosen} | {name for layer in layers for name in fused_layer.kernels(layer)}
    begin = time.perf_counter()
    broken = kernels.build(needed)
    for name, why in broken.items():
        show(f"{name} does not build: {why}")
    machine = measure_machine() if device == "cuda" else None
    show(f"built and warm after {time.perf_counter() - begin:.0f} s")
    rows = []
    for size in chosen:
        for dtype in size.dtypes:
            row: dict[str, Any] = {
                "operator": size.operator,
                "kernel": size.exercise,
                "dtype": dtype,
                "size": size.name,
            }
            try:
                if size.exercise in broken:
                    raise ValueError(f"does not build: {broken[size.exercise]}")
                row |= measure(size, dtype, kernels, machine, compiled)
            except Exception as problem:  # one failing operator must not lose the others' figures
                row["problem"] = first_line(problem)
            rows.append(row)
            show(line_of(row))
            if device == "cuda":
                torch.cuda.empty_cache()
    found: dict[str, Any] = {"rows": rows, "layers": []}
    for layer in layers:
        found["layers"].append(fused_layer.measure(layer, device, kernels.launch))
        show(fused_layer.line_of(found["layers"][-1]))
    return machine, found


def wanted(name: str, only: list[str]) -> bool:
    """Return True if one of the words is in a name."""
    return not only or any(word.lower() in name.lower() for word in only)


HEAD = (
    f"{'operator':10} {'dtype':5} {'size':32} {'device us':>9} {'of floor':>8} {'copy us':>8} {'x eager':>8} "
    f"{'x compiled':>10} "
    f"{'called us':>9} {'torch':>7}"
)
"""The heading of the lines of ``line_of``."""


def line_of(row: dict[str, Any]) -> str:
    """Format a row of the table."""
    head = f"{row['operator']:10} {row['dtype']:5} {row['size']:32} "
    if "problem" in row:
        return head + row["problem"]
    if "device_us" not in row:
        return head + f"correct: differs from torch's result by {row['difference']:.1e} of its norm"
    us = row["device_us"]
    compiled = f"{row['compiled_device_us'] / us:10.2f}" if "compiled_device_us" in row else f"{'':10}"
    return head + (
        f"{us:9.2f} {row['floor_us'] / us:8.0%} {row['copy_us']:8.2f} {row['eager_device_us'] / us:8.2f} {compiled} "
        f"{row['called_us']:9.1f} {row['eager_called_us']:7.1f}"
    )


def main() -> int:
    """Measure, print, and record if requested; the exit code is 0 if every row has its figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", action="store_true", help=f"also write {RECORD.name}, which the lesson shows")
    parser.add_argument(
        "--only",
        default="",
        help="only operators whose name contains one of these words, separated by commas; 'layers' selects "
        "the fused layers",
    )
    parser.add_argument(
        "--device", choices=("cuda", "cpu"), default="cuda", help="cuda: time on a GPU; cpu: test on the simulator"
    )
    parser.add_argument(
        "--no-compile", action="store_true", help="leave torch.compile out, which takes most of the time"
    )
    parser.add_argument("--out", type=Path, help="also write the figures to this file")
    arguments = parser.parse_args()
    only = [word for word in arguments.only.split(",") if word]
    names = {size.operator for size in sizes()} | {"layers"}
    if unknown := [word for word in only if not any(wanted(name, [word]) for name in names)]:
        parser.error(f"no operator has {unknown[0]!r} in its name: {', '.join(sorted(names))}")
    if arguments.record and (only or arguments.device == "cpu" or arguments.no_compile):
        parser.error("--record keeps the whole table of a GPU: leave --only, --no-compile and --device cpu out")
    if arguments.device == "cuda" and not torch.cuda.is_available():
        parser.error("there is no GPU here: --device cpu tries the smallest sizes on the simulator")
    begin = time.perf_counter()
    print(HEAD)
    machine, found = table(only, arguments.device, not arguments.no_compile, functools.partial(print, flush=True))
    seconds = time.perf_counter() - begin
    print(f"{seconds:.0f} s")
    where = [path for path in (arguments.out, RECORD if arguments.record else None) if path]
    if machine is not None and where:
        major, minor = torch.cuda.get_device_capability()
        some = Kernels.file("day01_residual_add/residual_add")
        content: dict[str, Any] = {
            "version": 1,
            "gpu": machine.device,
            "driver": machine.driver,
            "torch": machine.torch,
            "cuda": machine.cuda,
            "compiler": str(plan_kernel(some, "cuda", False, arch=f"sm_{major}{minor}").compiler),
            "python": platform.python_version(),
            "date": datetime.date.today().isoformat(),
            "command": f"python lessons/{HERE.name}/{Path(__file__).name} --record",
            "seconds": round(seconds),
            "copy_gigabytes_per_second": round(machine.copy_gigabytes_per_second or 0),
            "product_gigaflops": {name: round(value) for name, value in machine.product_gigaflops.items()},
            **found,
        }
        for path in where:
            write_record(path, content, ROOT)
            print(f"written: {path}")
    return 1 if any("problem" in row for row in (*found["rows"], *found["layers"])) else 0


if __name__ == "__main__":
    sys.exit(main())
