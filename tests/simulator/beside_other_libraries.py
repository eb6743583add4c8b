"""Use the simulated GPU in a process that has loaded other libraries.

``python -m tests.simulator.beside_other_libraries [LIBRARY | import:MODULE | after:LIBRARY | without:torch]...``

It loads libraries with RTLD_GLOBAL, as ``import torch`` loads NVIDIA's, or imports modules that load libraries so. Then
it calls the CUDA runtime in all ways that lessons use, and checks that the simulator answered each call. ``after:``
loads a library after the simulator. ``without:torch`` skips the calls that need torch, for libraries that are
incompatible with torch.
"""

from __future__ import annotations

import ctypes
import importlib
import sys
import uuid
from pathlib import Path

INVALID_VALUE, OUT_OF_MEMORY, INVALID_DEVICE = 1, 2, 101

SOURCE = """__global__ void double_kernel(float* x, long long n) {
    __shared__ float row[128];
    const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    row[threadIdx.x] = i < n ? x[i] : 0.0f;
    __syncthreads();
    if (i < n FAULT) x[i] = 2 * row[threadIdx.x];
    if (i == 0) printf("doubled %d\\n", (int)n);
}
extern "C" void twice(float* x, long long n, cudaStream_t stream) {
    double_kernel<<<(n + 127) / 128, 128, 0, stream>>>(x, n);
}
extern "C" void too_wide(float* x, long long n, cudaStream_t stream) { double_kernel<<<1, 2048, 0, stream>>>(x, n); }
"""


def use_runtime_api() -> None:
    """Use memory, managed memory, symbols, streams, events, properties, errors and failing launches.

    Use them with and without checks.
    """
    import numpy as np

    from tests.simulator.harness import KERNELS, SimulatedKernel

    for checks in (False, True):
        kernel = SimulatedKernel(KERNELS / "runtime_api.cu", checks=checks)
        x, out = np.arange(1000, dtype=np.float32), np.full(17, -1, dtype=np.int32)
        assert kernel("memory", x, out, 1000).error == 0
        assert out.tolist() == [1] * 17
        out = np.full(15, -1, dtype=np.int32)
        assert kernel("failures", x[:10].copy(), out, 10).error == 0
        expected = [INVALID_VALUE] * 3 + [0] + [INVALID_VALUE] * 5
        assert out.tolist() == [*expected, OUT_OF_MEMORY, 1, INVALID_VALUE, INVALID_DEVICE, 0, 0]
        out = np.full(32, -1, dtype=np.int32)
        assert kernel("queries", out).error == 0
        assert out[:15].tolist() == [1] * 15
        out = np.full(31, -1, dtype=np.int32)
        assert kernel("failing_launches", out).error == INVALID_VALUE
        assert out[:6].tolist() == [*[INVALID_VALUE] * 4, 0, 0]


def use_load_kernel(folder: Path) -> None:
    """Use load_inline as lessons do. Check results, printed text, a finding, and a launch error."""
    import torch

    from grader import load_kernel
    from grader.setup.errors import GraderError, KernelFinding

    path = folder / "twice.cu"
    path.write_text(SOURCE.replace("FAULT", "") + f"// {uuid.uuid4()}\n")
    for checks in (True, False):
        kernel = load_kernel(path, checks=checks)
        x = torch.arange(1000.0)
        kernel.twice(x, 1000)
        assert torch.equal(x, 2 * torch.arange(1000.0))
        try:
            kernel.too_wide(x, 1000)
        except GraderError as error:
            assert "CUDA error 1: the block is too large" in str(error), error
        else:
            raise AssertionError("a launch with a block of 2,048 threads succeeded")
    path.write_text(SOURCE.replace("FAULT", "+ 1") + f"// {uuid.uuid4()}\n")
    try:
        load_kernel(path).twice(torch.arange(1000.0), 1000)
    except KernelFinding as finding:
        assert "twice.cu:6" in str(finding), finding
    else:
        raise AssertionError("a write past the end was not reported")


def main(arguments: list[str]) -> int:
    import tempfile

    later = []
    torch = "without:torch" not in arguments
    for argument in arguments:
        if argument == "without:torch":
            continue
        if argument.startswith("import:"):
            importlib.import_module(argument.removeprefix("import:"))
        elif argument.startswith("after:"):
            later.append(argument.removeprefix("after:"))
        else:
            ctypes.CDLL(argument, mode=ctypes.RTLD_GLOBAL)
    if later:
        from grader.simulator import library

        ctypes.CDLL(str(library.ensure_library()))
        for path in later:
            ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
    with tempfile.TemporaryDirectory() as folder:
        use_runtime_api()
        if torch:
            use_load_kernel(Path(folder))
        use_runtime_api()
    print("the simulator answered all calls")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
