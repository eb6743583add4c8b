"""Launch every solution on the GPU, with every case of its exercise. compute-sanitizer runs this program.

Each tensor is allocated with cudaMalloc, because PyTorch's caching allocator would hide reads past the end inside its
pool. Outputs start uninitialized. memcheck and initcheck thus see the same as in a plain CUDA program.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

os.environ.setdefault("PYTORCH_NO_CUDA_MEMORY_CACHING", "1")

from grader.course import Course, Entry
from grader.course.task import Exercise, torch_dtype
from grader.setup.errors import GraderError


def chosen(names: list[str]) -> list[Entry]:
    """Return the exercises with a kernel whose name contains one of ``names`` (default: all).

    A complete name selects only that exercise.
    """
    entries = [entry for entry in Course().exercises if entry.language == "cuda"]
    whole = {entry.name for entry in entries}
    return [
        entry
        for entry in entries
        if not names or any(entry.name == part if part in whole else part in entry.name for part in names)
    ]


def on_gpu(tensor: Any, offset: int) -> Any:
    """Return a copy of a CPU tensor on the GPU, ``offset`` elements past the start of its allocation."""
    import torch

    room = torch.empty(tensor.numel() + offset, dtype=tensor.dtype, device="cuda")[offset:]
    room.copy_(tensor.reshape(-1))
    return room.view(tensor.shape)


def size_of(exercise: Exercise, case: Any, dtype: str, seed: int) -> float:
    """Return the work of a case, for sorting: its operations, or its elements if the task defines no operations."""
    call = exercise.call(case, dtype, exercise.case_seed(seed, case, dtype))
    return exercise.operations(call) or sum(tensor.numel() for tensor in call.tensors.values())


def launch(exercise: Exercise, kernel: Any, case: Any, dtype: str, seed: int) -> None:
    """Launch one case and wait for it."""
    import torch

    call = exercise.call(case, dtype, exercise.case_seed(seed, case, dtype))
    tensors = {name: on_gpu(tensor, case.offsets.get(name, 0)) for name, tensor in call.tensors.items()}
    for name, shape in call.output_shapes.items():
        if name not in tensors:
            offset = case.offsets.get(name, 0)
            room = torch.empty(
                torch.Size(shape).numel() + offset, dtype=torch_dtype(call.output_dtypes[name]), device="cuda"
            )
            tensors[name] = room[offset:].view(shape)
    arguments = [
        tensors[parameter.name] if parameter.is_pointer else call.scalars[parameter.name]
        for parameter in exercise.parameters(dtype)
        if not parameter.is_stream
    ]
    getattr(kernel, exercise.launcher(dtype))(*arguments)
    torch.cuda.synchronize()


def main() -> int:
    """Build all solutions in parallel, then launch them one after another."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="parts of exercise names (default: all)")
    parser.add_argument("--build-only", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--seconds", type=float, default=1e9, help="time limit in seconds; no case of an exercise starts after it"
    )
    arguments = parser.parse_args()
    wanted = chosen(arguments.names)

    from grader.execution.in_process.kernel import load_kernel

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        built = [pool.submit(load_kernel, entry.solution, device="cuda") for entry in wanted]
    if arguments.build_only:
        return 0
    failed = 0
    for entry, future in zip(wanted, built):
        name, exercise = entry.name, entry.load()
        try:
            kernel = future.result()
            # Skip cases in which only the end of a tensor exists, because compute-sanitizer would need all of it.
            whole = [(case, dtype) for case, dtype in exercise.runs() if not case.before]
            runs = sorted(whole, key=lambda run: size_of(exercise, *run, arguments.seed))
            began, launched = time.monotonic(), 0
            for case, dtype in runs:
                if time.monotonic() - began > arguments.seconds:
                    break
                launch(exercise, kernel, case, dtype, arguments.seed)
                launched += 1
            print(f"launched {name}: {launched} of {len(runs)} cases", flush=True)
        except (GraderError, RuntimeError) as error:
            failed += 1
            print(f"FAILED {name}: {error}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
