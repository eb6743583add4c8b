"""Kernels of one file on a real and on a simulated GPU in one process. An error on one does not affect the other."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from grader import load_kernel
from grader.setup.errors import GraderError

SOURCE = """__global__ void add_kernel(const float* x, const float* y, float* out, long long n) {
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i < n) out[i] = x[i] + y[i];
}
extern "C" void add(const float* x, const float* y, float* out, long long n, int threads, cudaStream_t stream) {
    add_kernel<<<(n + threads - 1) / threads, threads, 0, stream>>>(x, y, out, n);
}
// Returns the last launch's error and the type of a pointer's memory: 2 is device memory.
extern "C" void state(const float* x, int* error, int* kind, cudaStream_t) {
    cudaPointerAttributes attributes{};
    int found[2] = {cudaPeekAtLastError(), 0};
    found[1] = cudaPointerGetAttributes(&attributes, x) == cudaSuccess ? attributes.type : -1;
    cudaMemcpy(error, found, 4, cudaMemcpyHostToDevice);
    cudaMemcpy(kind, found + 1, 4, cudaMemcpyHostToDevice);
}
"""

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "add.cu"
    path.write_text(SOURCE)
    return path


def works(kernel, device: str) -> None:
    x, y = torch.rand(1000, device=device), torch.rand(1000, device=device)
    out = torch.full_like(x, torch.nan)
    kernel.add(x, y, out, 1000, 128)
    assert torch.equal(out, x + y)
    error, kind = (torch.full((1,), -7, dtype=torch.int32, device=device) for _ in range(2))
    kernel.state(x, error, kind)
    assert (error.item(), kind.item()) == (0, 2)


def fails(kernel, device: str) -> None:
    x = torch.rand(1000, device=device)
    with pytest.raises(GraderError, match=r"cudaErrorInvalidValue|CUDA error 1:"):
        kernel.add(x, x, torch.empty_like(x), 1000, 2048)


@pytest.mark.parametrize("first", ["cpu", "cuda"])
def test_devices_alternate_and_neither_sees_the_errors_of_the_other(file, first):
    order = [first, "cuda" if first == "cpu" else "cpu"]
    kernels = {device: load_kernel(file, device=device) for device in order}
    for _ in range(3):
        for device in order:
            works(kernels[device], device)
        fails(kernels["cpu"], "cpu")
        works(kernels["cuda"], "cuda")
        fails(kernels["cuda"], "cuda")
        works(kernels["cpu"], "cpu")
        works(kernels["cuda"], "cuda")
    assert torch.ones(4, device="cuda").sum().item() == 4  # torch's own CUDA runtime still works


def test_a_finding_of_the_simulator_does_not_affect_the_gpu(file):
    real, simulated = load_kernel(file, device="cuda"), load_kernel(file, device="cpu")
    x = torch.rand(1000)
    with pytest.raises(GraderError, match="past the end"):
        simulated.add(x, x, torch.empty(999), 1000, 128)
    works(real, "cuda")
    works(simulated, "cpu")
