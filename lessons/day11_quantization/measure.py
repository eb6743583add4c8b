"""Times of the day's int4 kernels, and of torch's own matmuls, on the GPU of this machine.

    python lessons/day11_quantization/measure.py            prints a table
    python lessons/day11_quantization/measure.py --record   also writes int4_gpu.json, which the lesson shows
    ... --vllm FOLDER                                       also times vLLM's kernel; FOLDER has vLLM's source

One layer of 4096 x 4096 in groups of 128, for 1 and 16 rows. The calls cycle through several layers, together larger
than the L2 cache. They are queued behind a kernel that only waits, so that the device never waits for Python. All
kernels take turns, round by round. Each kernel's result is first compared with the matmul of the dequantized weights.
Two lower bounds of this clock are timed as well: a kernel that does nothing, and one that only reads the words.

vLLM's kernel is built from one file of a clone of vLLM, at the commit ``VLLM_COMMIT``. vLLM need not be installed.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))

from grader import load_kernel  # noqa: E402  (in the folder that was added above)
from grader.course import find  # noqa: E402
from grader.judge.timing.sources import write_record  # noqa: E402

K = N = 4096
GROUP = 128
ROWS = [1, 16]
LAYERS = 16
"""The number of layers that the calls cycle through: 135 MB as int4."""

ROUNDS, RUNS, WARMUP = 10, 20, 5
WAIT_CYCLES = 10_000_000
"""The length of the kernel that only waits: about 5 ms, time for Python to queue the runs of a turn."""

NOTHING, READ = "a kernel that does nothing", "one that only reads the words"

BF16 = "torch, int4"
"""The name of the only matmul here that takes x in bf16."""

VLLM = "vLLM, gptq_gemm"
VLLM_COMMIT = "01a5d18a537b65a156cfa1a77706693a24c869c1"
VLLM_FILE = Path("csrc") / "quantization" / "gptq" / "q_gemm.cu"
VLLM_SHA256 = "c5c4df296f43b584cf1961392ddd52ee330828e8dbc07c0cc0547e9b8e727772"
"""The digest of this file at this commit."""

VLLM_BINDING = """
#include <torch/extension.h>
torch::Tensor gptq_gemm(torch::Tensor x, torch::Tensor qweight, torch::Tensor qzeros, torch::Tensor scales,
                        torch::Tensor g_idx, bool use_exllama, int bits);
void gptq_shuffle(torch::Tensor qweight, torch::Tensor order, int bits);
PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
    module.def("gptq_gemm", &gptq_gemm);
    module.def("gptq_shuffle", &gptq_shuffle);
}
"""

Layer = dict[str, Tensor]
Run = Callable[[Tensor, Layer], Tensor]
"""A function of x [rows, K] and a layer that returns out [rows, N]."""


def build_vllm(folder: Path) -> Any:
    """Build vLLM's kernel from a clone. Return a module with `gptq_gemm` and `gptq_shuffle`."""
    from torch.utils.cpp_extension import load

    file = folder / VLLM_FILE
    if not file.is_file():
        raise SystemExit(f"there is no {file}: clone https://github.com/vllm-project/vllm, and check out {VLLM_COMMIT}")
    if hashlib.sha256(file.read_bytes()).hexdigest() != VLLM_SHA256:
        raise SystemExit(f"{file} is of another commit: check out {VLLM_COMMIT}")
    with tempfile.TemporaryDirectory() as made:
        binding = Path(made) / "binding.cpp"
        binding.write_text(VLLM_BINDING)
        # torch turns these operators off by default, and this file needs them.
        flags = [f"-U__CUDA_NO_{name}__" for name in ("HALF_OPERATORS", "HALF_CONVERSIONS", "HALF2_OPERATORS")]
        sources = [str(file.resolve()), str(binding)]
        return load("vllm_gptq", sources, extra_cuda_cflags=flags, build_directory=made)


def layer() -> Layer:
    """Draw random words as weights. `finished`: dequantized to f16 [N, K]. `theirs`: in torch's int4 format."""
    made = {
        "qweight": torch.randint(-(2**31), 2**31, (K // 8, N), device="cuda").int(),
        "qzeros": torch.randint(-(2**31), 2**31, (K // GROUP, N // 8), device="cuda").int(),
        "scales": torch.empty(K // GROUP, N, device="cuda").uniform_(0.005, 0.02).half(),
        "g_idx": (torch.arange(K, device="cuda") // GROUP).int(),
    }
    finished = find("day11_quantization/gptq_dequantize").load().reference(**made)
    prepare = find("day11_quantization/gptq_linear").load().torch_prepare
    assert prepare is not None
    theirs = prepare(finished[:1], made["qweight"], made["qzeros"], made["scales"], GROUP)
    ours = {**made, "finished": finished.T.contiguous()}
    return {**ours, **{name: theirs[name] for name in ("theirs", "scales_and_zeros") if theirs[name] is not None}}


def runs(vllm: Any) -> dict[str, Run]:
    """Return the timed functions by name. ``vllm`` is the module with vLLM's kernel, or None."""
    lesson = load_kernel(HERE / "gptq.cu", device="cuda")
    solution = load_kernel(HERE.parents[1] / "solutions" / HERE.name / "gptq_linear.cu", device="cuda")
    least = load_kernel(HERE / "least.cu", device="cuda")
    no_bias = torch.empty(0, device="cuda", dtype=torch.float16)
    sums = torch.empty(2048, device="cuda", dtype=torch.int32)

    def words(x: Tensor, w: Layer) -> tuple[list[Tensor], Tensor, list[int]]:
        out = torch.empty(len(x), N, device="cuda", dtype=torch.float16)
        return [x, w["qweight"], w["qzeros"], w["scales"]], out, [len(x), K, N]

    def by_column(x: Tensor, w: Layer) -> Tensor:
        tensors, out, sizes = words(x, w)
        lesson.by_column(*tensors, w["g_idx"], out, *sizes)
        return out

    def by_word(x: Tensor, w: Layer) -> Tensor:
        tensors, out, sizes = words(x, w)
        lesson.by_word(*tensors, out, *sizes, GROUP, False)
        return out

    def tiled(x: Tensor, w: Layer) -> Tensor:
        tensors, out, sizes = words(x, w)
        lesson.tiled(*tensors, out, *sizes, GROUP)
        return out

    def split_k(x: Tensor, w: Layer) -> Tensor:
        tensors, out, sizes = words(x, w)
        out.zero_()
        lesson.split_k(*tensors, out, *sizes, GROUP)
        return out

    def ours(x: Tensor, w: Layer) -> Tensor:
        tensors, out, sizes = words(x, w)
        solution.gptq_linear(*tensors, w["g_idx"], no_bias, out, *sizes, GROUP, False, False)
        return out

    def nothing(x: Tensor, w: Layer) -> Tensor:
        least.nothing()
        return x

    def read(x: Tensor, w: Layer) -> Tensor:
        least.read_words(w["qweight"], sums, w["qweight"].numel() // 4)
        return sums

    found: dict[str, Run] = {
        NOTHING: nothing,
        READ: read,
        "1: a thread for each column": by_column,
        "2: whole words": by_word,
        "3: exllama's tiling": tiled,
        "4: K in parts, atomics": split_k,
        "5: the solution": ours,
        "torch, f16 weights": lambda x, w: torch.nn.functional.linear(x, w["finished"]),
    }
    if vllm is not None:
        in_order = torch.empty(0, device="meta")
        found[VLLM] = lambda x, w: vllm.gptq_gemm(x, w["shuffled"], w["qzeros"], w["scales"], in_order, True, 4)
    if hasattr(torch, "_weight_int4pack_mm"):
        found[BF16] = lambda x, w: torch._weight_int4pack_mm(x, w["theirs"], GROUP, w["scales_and_zeros"])
    return found


def microseconds(run: Run, x: Tensor, layers: list[Layer]) -> list[float]:
    """Return the time of each of RUNS calls, by the GPU's events."""
    for i in range(WARMUP):
        run(x, layers[i % len(layers)])
    torch.cuda.synchronize()
    begin, end = ([torch.cuda.Event(enable_timing=True) for _ in range(RUNS)] for _ in range(2))
    torch.cuda._sleep(WAIT_CYCLES)
    for i in range(RUNS):
        begin[i].record()
        run(x, layers[(i + WARMUP) % len(layers)])
        end[i].record()
    torch.cuda.synchronize()
    return [a.elapsed_time(b) * 1e3 for a, b in zip(begin, end)]


def check(name: str, given: Tensor, expected: Tensor, words: Tensor) -> None:
    """Exit if a result is wrong: a wrong kernel gets no times."""
    if name == READ and int(given.long().sum() - words.long().sum()) % 2**32:
        raise SystemExit(f"{name} did not read them all")
    if name in (NOTHING, READ):
        return
    off = float((given.float() - expected).norm() / expected.norm())
    if not off < 2e-2:
        raise SystemExit(f"{name} is wrong by {off:.1g} for {len(expected)} rows: no times of wrong kernels")


def statistics(times: list[float]) -> dict[str, float]:
    """Return mean, minimum, maximum, standard deviation and percentiles, in microseconds."""
    t = torch.tensor(times, dtype=torch.float64)
    found = {"mean": t.mean(), "min": t.min(), "max": t.max(), "std": t.std()}
    found |= {f"P{p}": t.quantile(p / 100) for p in (50, 90, 95, 99)}
    return {name: round(float(value), 2) for name, value in found.items()}


def measure(vllm: Any) -> dict[str, dict[str, dict[str, float]]]:
    """Return the statistics by number of rows and by name."""
    torch.manual_seed(11)
    layers = [layer() for _ in range(LAYERS)]
    if vllm is not None:
        for each in layers:
            each["shuffled"] = each["qweight"].clone()
            vllm.gptq_shuffle(each["shuffled"], torch.empty(0, device="meta"), 4)
    kernels = runs(vllm)
    found: dict[str, dict[str, dict[str, float]]] = {}
    for rows in ROWS:
        x = torch.randn(rows, K, device="cuda").half()
        expected = torch.nn.functional.linear(x.float(), layers[0]["finished"].float())
        inputs = {name: x.to(torch.bfloat16) if name == BF16 else x for name in kernels}
        times: dict[str, list[float]] = {name: [] for name in kernels}
        for name, run in kernels.items():
            check(name, run(inputs[name], layers[0]), expected, layers[0]["qweight"])
        for _ in range(ROUNDS):
            for name, run in kernels.items():
                times[name] += microseconds(run, inputs[name], layers)
        found[str(rows)] = {name: statistics(values) for name, values in times.items()}
    return found


def main() -> None:
    """Measure and print; with --record also write the record."""
    parser = argparse.ArgumentParser(
        description="Time matmuls with int4 weights on the first GPU of the machine that runs this script."
    )
    parser.add_argument("--record", action="store_true", help="also write int4_gpu.json, which the lesson shows")
    parser.add_argument(
        "--vllm", type=Path, metavar="FOLDER", help="also time the int4 kernel in FOLDER, a clone of vLLM"
    )
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("There is no GPU here. The lesson shows times recorded on one.")
    found = measure(build_vllm(arguments.vllm) if arguments.vllm else None)
    for rows, kernels in found.items():
        names = list(next(iter(kernels.values())))
        print(
            f"{rows + (' row' if rows == '1' else ' rows') + ', microseconds':32s}" + "".join(f"{n:>9s}" for n in names)
        )
        for name, values in kernels.items():
            print(f"{name:32s}" + "".join(f"{values[n]:9.2f}" for n in names))
    if arguments.record:
        result = {
            "version": 1,
            "gpu": torch.cuda.get_device_name(),
            "torch": torch.__version__,
            "date": datetime.date.today().isoformat(),
            "command": f"python lessons/{HERE.name}/measure.py{' --vllm FOLDER' if arguments.vllm else ''} --record",
            **({"vllm": VLLM_COMMIT} if arguments.vllm else {}),
            "layer": {"in_features": K, "out_features": N, "group_size": GROUP},
            "rows": found,
        }
        path = HERE / "int4_gpu.json"
        write_record(path, result, HERE.parents[1])
        print(f"recorded in {path.relative_to(HERE.parents[1])}")


if __name__ == "__main__":
    main()
