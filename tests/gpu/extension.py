"""The PyTorch extension that day 1 shows, built by ``load_inline`` and run on a real GPU, beside ``load_kernel``.

    python -m tests.gpu.extension            prints build times, and times of a call in Python
    python -m tests.gpu.extension --record   also writes lessons/day01_residual_add/extension_gpu.json, for the lesson

Both build the same kernel, each time in an empty folder, so that nothing comes from a cache. Outputs must equal torch's
bit for bit, and the extension must refuse tensors of other shapes, dtypes and devices.
"""

from __future__ import annotations

import argparse
import datetime
import json
import statistics
import tempfile
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from grader import load_kernel
from grader.course import course_root
from grader.judge.timing.sources import write_record
from tests.notebooks.test_extension import arguments_of_load_inline

RECORD = course_root() / "lessons" / "day01_residual_add" / "extension_gpu.json"
BUILDS = 3
CALLS = 200
LENGTHS = (0, 1, 255, 256, 257, 1_000_003)
PLAIN = r"""
#include <cuda_runtime.h>

__global__ void add_kernel(const float* x, const float* residual, float* out, long long n) {
    const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < n) out[i] = x[i] + residual[i];
}

extern "C" void add(const float* x, const float* residual, float* out, long long n, cudaStream_t stream) {
    if (n > 0) add_kernel<<<(n + 255) / 256, 256, 0, stream>>>(x, residual, out, n);
}
"""


def built_extension(folder: Path) -> Any:
    """Build the lesson's extension in ``folder``; return the module."""
    from torch.utils.cpp_extension import load_inline

    arguments = arguments_of_load_inline()
    arguments["name"] = f"residual_add_{uuid.uuid4().hex}"  # a process cannot import two modules of one name
    return load_inline(**arguments, build_directory=str(folder))


def built_kernel(folder: Path) -> Any:
    """Build the same kernel as a file of the course, whose text is in no cache; return the loaded kernel."""
    file = folder / "add.cu"
    file.write_text(f"// {uuid.uuid4().hex}\n{PLAIN}")
    return load_kernel(file, device="cuda")


def timed_builds(build: Callable[[Path], Any]) -> tuple[Any, list[float]]:
    """Build several times in empty folders; return the last result, and the seconds of each build."""
    seconds = []
    for _ in range(BUILDS):
        with tempfile.TemporaryDirectory() as folder:
            began = time.perf_counter()
            result = build(Path(folder))
            seconds.append(round(time.perf_counter() - began, 2))
    return result, seconds


def microseconds(call: Callable[[], object]) -> float:
    """Return the median time of a call in Python, until it returns and without the kernel's own time."""
    times = []
    for _ in range(CALLS):
        torch.cuda.synchronize()
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return round(1e6 * statistics.median(times), 2)


def refused(add: Callable[..., object], *tensors: torch.Tensor) -> bool:
    """Return whether the extension raises an error for these tensors."""
    try:
        add(*tensors)
    except RuntimeError:
        return True
    return False


def main() -> None:
    """Build, compare and time both, and print or record the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", action="store_true", help=f"write {RECORD.name}")
    record = parser.parse_args().record
    if not torch.cuda.is_available():
        parser.error("this needs a GPU, and torch with CUDA")
    extension, extension_seconds = timed_builds(built_extension)
    kernel, kernel_seconds = timed_builds(built_kernel)
    torch.manual_seed(1)
    for n in LENGTHS:
        x, residual, out = (torch.randn(n, device="cuda") for _ in range(3))
        kernel.add(x, residual, out, n)
        assert torch.equal(extension.add(x, residual), x + residual), f"the extension is wrong for n = {n}"
        assert torch.equal(out, x + residual), f"the kernel is wrong for n = {n}"
    x, residual, out = (torch.randn(1024, device="cuda") for _ in range(3))
    assert refused(extension.add, x, residual[1:]) and refused(extension.add, x.half(), residual.half())
    assert refused(extension.add, x.cpu(), residual.cpu())
    found = {
        "version": 1,
        "gpu": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "date": datetime.date.today().isoformat(),
        "command": "python -m tests.gpu.extension --record",
        "build_seconds": {"extension": extension_seconds, "load_kernel": kernel_seconds},
        "call_us": {
            "extension": microseconds(lambda: extension.add(x, residual)),
            "load_kernel": microseconds(lambda: kernel.add(x, residual, out, 1024)),
            "torch": microseconds(lambda: torch.add(x, residual)),
        },
    }
    print(json.dumps(found, indent=1))
    if record:
        write_record(RECORD, found, course_root())


if __name__ == "__main__":
    main()
