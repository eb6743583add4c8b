"""ptxas's resource usage reports, parsed from samples, and from nvcc if it is installed."""

import pytest

from grader.execution.build.resource_usage import parse_ptxas, resource_usage
from grader.frontend.toolchain.compilers import find_nvcc
from grader.setup.errors import BuildError
from grader.verdict import KernelResources

LISTING = """ptxas info    : 0 bytes gmem, 64 bytes cmem[3]
ptxas info    : Compiling entry function '_Z5tiledIfLi32EEvPKT_PS0_i' for 'sm_90a'
ptxas info    : Function properties for _Z5tiledIfLi32EEvPKT_PS0_i
    512 bytes stack frame, 24 bytes spill stores, 40 bytes spill loads
ptxas info    : Used 168 registers, used 1 barriers, 512 bytes cumulative stack size, 4224 bytes smem, 400 bytes cmem[0]
ptxas info    : Compile time = 21.074 ms
ptxas info    : Compiling entry function 'plain' for 'sm_90a'
ptxas info    : Function properties for helper
    8 bytes stack frame, 99 bytes spill stores, 99 bytes spill loads
ptxas info    : Function properties for plain
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 8 registers
"""


def test_a_listing():
    tiled, plain = parse_ptxas(LISTING, "sm_90")
    assert tiled == KernelResources("tiled<float, 32>", "sm_90", 168, 64, static_shared_bytes=4224, stack_bytes=512)
    assert plain == KernelResources("plain", "sm_90", 8)


def test_nothing_to_compile():
    assert parse_ptxas("ptxas info    : 0 bytes gmem\n", "sm_90") == []


KERNELS = """#include <cuda_runtime.h>
template <typename T, int N>
__global__ void reverse(T* x) {
    __shared__ T tile[N];
    tile[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    x[threadIdx.x] = tile[N - 1 - threadIdx.x];
}
__global__ void first(float* x) { x[threadIdx.x] = 0; }
extern "C" void go(float* x, double* y, cudaStream_t stream) {
    reverse<float, 256><<<1, 256, 0, stream>>>(x);
    reverse<double, 128><<<1, 128, 0, stream>>>(y);
    first<<<1, 256, 0, stream>>>(x);
}
"""

needs_nvcc = pytest.mark.skipif(find_nvcc(required=False) is None, reason="nvcc is not installed")


@needs_nvcc
@pytest.mark.parametrize("arch", ["sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120"])
def test_every_architecture(arch, tmp_path):
    (tmp_path / "k.cu").write_text(KERNELS)
    found = {kernel.kernel: kernel for kernel in resource_usage(tmp_path / "k.cu", arch)}
    assert set(found) == {"reverse<float, 256>", "reverse<double, 128>", "first"}
    assert found["reverse<float, 256>"].static_shared_bytes == found["reverse<double, 128>"].static_shared_bytes == 1024
    assert all(0 < kernel.registers < 64 and not kernel.spill_bytes for kernel in found.values())
    assert list(found)[-1] == "first"  # in file order


@needs_nvcc
def test_an_error_is_at_the_learners_line(tmp_path):
    (tmp_path / "k.cu").write_text(KERNELS.replace("tile[threadIdx.x] =", "tile[threadIdx.y] = nope +"))
    with pytest.raises(BuildError, match=r"k\.cu:5:25: error: identifier \"nope\" is undefined"):
        resource_usage(tmp_path / "k.cu", "sm_90")
