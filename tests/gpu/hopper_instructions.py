"""Hopper's instructions on a real GPU, compared element by element with the references of the simulator's tests.

    python -m tests.gpu.hopper_instructions [wgmma] [copies]            prints the comparison
    python -m tests.gpu.hopper_instructions [wgmma] [copies] --record   also writes lessons/can_i_believe_this/hopper_h200.json

The kernels, the numpy references and the random cases are those of tests/simulator/test_wgmma.py and
test_tensor_copies.py, where the simulator agrees with the references bit for bit. TMA copies must agree bit for bit
here, too. How the hardware rounds sums of wgmma is not documented. For wgmma the record has the number of equal
elements and the largest difference, relative to the sum of the products' magnitudes.
"""  # noqa: E501

from __future__ import annotations

import argparse
import datetime
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from hypothesis import HealthCheck, given, settings

from grader import load_kernel
from grader.course import course_root
from grader.judge.timing.sources import write_record
from tests.seeds import SEED
from tests.simulator import test_tensor_copies as copies
from tests.simulator import test_wgmma as products
from tests.simulator.harness import KERNELS
from tests.simulator.tensor_box import Box
from tests.simulator.wgmma_kernels import Form, Layout, accumulators, source_of, words_of

RECORD = Path(__file__).resolve().parents[2] / "lessons/can_i_believe_this/hopper_h200.json"
EXAMPLES = 300


class OnGpu:
    """A kernel file whose launchers are called with numpy arrays, which are copied to the GPU and back."""

    def __init__(self, path: Path) -> None:
        self.kernel = load_kernel(path, device="cuda")

    def __call__(self, launcher: str, *arguments: Any) -> None:
        tensors = [torch.from_numpy(a).cuda() if isinstance(a, np.ndarray) else a for a in arguments]
        getattr(self.kernel, launcher)(*tensors)
        torch.cuda.synchronize()
        for array, tensor in zip(arguments, tensors, strict=True):
            if isinstance(array, np.ndarray):
                array[...] = tensor.cpu().numpy()


def boxes(kernel: OnGpu) -> dict[str, dict[str, int]]:
    """Return the number of random boxes that were loaded, stored and reduced, and of those with differences."""
    found = {what: {"compared": 0, "different": 0} for what in ("loads", "stores", "reductions")}
    run = settings(max_examples=EXAMPLES, deadline=None, database=None, suppress_health_check=list(HealthCheck))

    def note(what: str, box: Box, error: int, result: np.ndarray, expected: np.ndarray) -> None:
        found[what]["compared"] += 1
        if error or not np.array_equal(result, expected):
            found[what]["different"] += 1
            print(f"{what}: error {error}, {np.count_nonzero(result != expected)} bytes differ: {box}", file=sys.stderr)

    @run
    @given(copies.boxes(), copies.OFFSETS, copies.SEEDS)
    def loads(box: Box, offset: int, rng: np.random.Generator) -> None:
        memory = rng.integers(0, 256, box.extent, dtype=np.uint8)
        tile, error = np.zeros(box.bytes, dtype=np.uint8).view(np.int32), np.ones(1, dtype=np.int32)
        kernel("run_load", copies.padded(memory), box.numbers(), tile, error, offset, box.bytes, 0)
        note("loads", box, int(error[0]), tile.view(np.uint8), box.load(memory, offset))

    def store(what: str, box: Box, tile: np.ndarray, memory: np.ndarray, offset: int) -> None:
        out, error = copies.padded(memory), np.ones(1, dtype=np.int32)
        kernel("run_store", tile.view(np.int32).copy(), box.numbers(), out, error, offset, box.bytes)
        note(what, box, int(error[0]), out.view(np.uint8)[: memory.size], box.store(tile, memory, offset))

    @run
    @given(copies.boxes(stored=True), copies.OFFSETS, copies.SEEDS)
    def stores(box: Box, offset: int, rng: np.random.Generator) -> None:
        memory = rng.integers(0, 256, box.written_extent, dtype=np.uint8)
        store("stores", box, rng.integers(0, 256, box.bytes, dtype=np.uint8), memory, offset)

    @run
    @given(copies.boxes(reduced=True), copies.OFFSETS, copies.SEEDS)
    def reductions(box: Box, offset: int, rng: np.random.Generator) -> None:
        memory = copies.values(box.type, box.written_extent // box.item, rng)
        store("reductions", box, copies.values(box.type, box.bytes // box.item, rng), memory, offset)

    for compare in (loads, stores, reductions):
        compare()
    return found


def product(kernel: OnGpu, form: Form, of_a: Layout, of_b: Layout, random: np.random.Generator) -> dict[str, float]:
    """Run one wgmma; return the elements, the bitwise equal ones, and the largest difference."""
    a, b = products.draw(form.a, (64, form.k), random), products.draw(form.b, (form.n, form.k), random)
    if form.d == "s32":
        c = random.integers(-(2**31), 2**31, (64, form.n)).astype(np.int32)
    else:
        c = random.standard_normal((64, form.n)).astype({"f32": np.float32, "f16": np.float16}[form.d])
    image = random.integers(0, 256, 192 * 1024).astype(np.uint8)
    half = 96 * 1024
    if not form.from_registers:
        of_a.place(image[:half], a)
    of_b.place(image[half:], b)
    out = np.zeros_like(accumulators(c, form.d))
    kernel(
        f"run_{form.name}", image.view(np.int32), image.size // 4, of_a.bits, of_a.start, of_b.bits, half + of_b.start,
        words_of(a) if form.from_registers else np.zeros((128, 4), np.int32), accumulators(c, form.d), out, 1,
    )  # fmt: skip
    adds = 1 if form.immediate is None else form.immediate
    expected = accumulators(products.expected(form, a, b, c, adds), form.d)
    same = int(np.count_nonzero(out == expected))
    if form.d == "s32":
        return {"elements": out.size, "same": same, "off": 0.0 if same == out.size else float("inf")}
    left, right = np.abs(products.numbers(a, form.a)), np.abs(products.numbers(b, form.b))
    sizes = left @ right.T + adds * np.abs(c.astype(np.float64))
    stored = np.float32 if form.d == "f32" else np.float16

    def flat(words: np.ndarray) -> np.ndarray:
        return words.ravel().view(stored).astype(np.float64)

    given, wanted, size = flat(out), flat(expected), flat(accumulators(sizes.astype(stored), form.d))
    both = np.isfinite(given) & np.isfinite(wanted) & np.isfinite(size) & (size > 0)
    off: float = np.max(np.abs(given - wanted)[both] / size[both], initial=0.0)
    if not np.array_equal(np.isfinite(given), np.isfinite(wanted)):
        off = float("inf")
    return {"elements": given.size, "same": int(np.count_nonzero(given == wanted)), "off": float(off)}


def all_products(kernel: OnGpu) -> dict[str, dict[str, float]]:
    """Return the results of every shape and layout by the types of accumulators and operands."""
    found: dict[str, dict[str, float]] = {}
    for form in products.FORMS:
        random = np.random.default_rng([SEED, products.FORMS.index(form)])
        of_a, of_b = products.layouts(form.transpose_a, 64), products.layouts(bool(form.transpose_b), form.n)
        every = form in products.TRANSPOSED + products.FROM_REGISTERS
        count = max(len(of_a), len(of_b)) if every else 1
        row = found.setdefault(
            f"{form.d} += {form.a} * {form.b}", {"products": 0, "elements": 0, "same": 0, "off": 0.0}
        )
        for i in range(count):
            one = product(kernel, form, of_a[(i - 1) % len(of_a)], of_b[(i - 1) % len(of_b)], random)
            row["products"] += 1
            row["elements"] += one["elements"]
            row["same"] += one["same"]
            row["off"] = max(row["off"], one["off"])
    return found


def main() -> None:
    """Compare and print; with ``--record`` also write the record."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--record", action="store_true", help=f"write {RECORD.name}")
    parser.add_argument("what", nargs="*", choices=("wgmma", "copies", []), help="parts to compare (default: both)")
    arguments = parser.parse_args()
    what = arguments.what or ["wgmma", "copies"]
    if not torch.cuda.is_available() or torch.cuda.get_device_capability() != (9, 0):
        raise SystemExit("There is no Hopper GPU here.")
    print(f"seed {SEED}")
    found: dict[str, Any] = {}
    if "wgmma" in what:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "forms.cu"
            path.write_text(source_of(products.FORMS), encoding="utf-8")
            found["wgmma"] = all_products(OnGpu(path))
        for name, row in found["wgmma"].items():
            same = row["same"] / row["elements"]
            print(f"{name:22s}{row['products']:4.0f} products, {same:7.2%} the same, off {row['off']:.1e}")
    if "copies" in what:
        found["copies"] = boxes(OnGpu(KERNELS / "tensor_copies.cu"))
        for name, counts in found["copies"].items():
            print(f"{name:22s}{counts['compared']:4d} boxes, {counts['different']} different")
    if arguments.record:
        result = {
            "version": 1,
            "gpu": torch.cuda.get_device_name(),
            "torch": torch.__version__,
            "date": datetime.date.today().isoformat(),
            "command": " ".join(["python -m tests.gpu.hopper_instructions", *arguments.what, "--record"]),
            "seed": SEED,
            **found,
        }
        write_record(RECORD, result, course_root())
        print(f"recorded in {RECORD.name}")


if __name__ == "__main__":
    main()
