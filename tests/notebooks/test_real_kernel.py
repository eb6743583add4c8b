"""A kernel that runs on the simulator, shown by a lesson's functions: counters, source, pictures of accesses."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.report.notebook import counts, requests, show

KERNELS = """#include <cuda_runtime.h>

// in, out: [32, 32]
template <int kColumns>
__global__ void transpose(const float* in, float* out) {
    __shared__ float tile[32][kColumns];
    tile[threadIdx.y][threadIdx.x] = in[threadIdx.y * 32 + threadIdx.x];
    __syncthreads();
    out[threadIdx.y * 32 + threadIdx.x] = tile[threadIdx.x][threadIdx.y];
}

extern "C" void with_conflicts(const float* in, float* out, cudaStream_t stream) {
    transpose<32><<<1, dim3(32, 32), 0, stream>>>(in, out);
}

extern "C" void without_conflicts(const float* in, float* out, cudaStream_t stream) {
    transpose<33><<<1, dim3(32, 32), 0, stream>>>(in, out);
}
"""


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory):  # type: ignore[no-untyped-def]
    """Load the kernels of this file."""
    from grader import load_kernel

    path: Path = tmp_path_factory.mktemp("kernels") / "transpose.cu"
    path.write_text(KERNELS)
    return load_kernel(path, device="cpu")


@pytest.mark.parametrize(("launcher", "ways"), [("with_conflicts", 32), ("without_conflicts", 1)])
def test_pictures_agree_with_counters(kernel, launcher: str, ways: int) -> None:  # type: ignore[no-untyped-def]
    import torch

    x, out = torch.randn(32, 32), torch.empty(32, 32)
    getattr(kernel, launcher)(x, out)
    assert torch.equal(out, x.t())
    assert counts(kernel.report)["bank_conflict_ways"] == ways
    recorded = requests(kernel.report, line=9, space="shared")
    assert all(request.wavefronts() == ways and len(request.addresses) == 32 for request in recorded)
    (first, *_) = requests(kernel.report, line=7, space="global")
    assert (len(first.sectors()), first.ideal_sectors(), first.name, first.write) == (4, 4, "in", False)
    text = str(show(kernel.report))
    assert ("32-way bank conflict" in text) == (ways == 32)
    assert "out[threadIdx.y * 32 + threadIdx.x] = tile" in text
