"""Headers and lesson kernels of days 12 and 13, at more sizes than the lesson shows."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor

from grader import load_kernel

LESSONS = Path(__file__).resolve().parents[2] / "lessons"
AMPERE, HOPPER = LESSONS / "day12_tensor_cores_ampere", LESSONS / "day13_tensor_cores_hopper"

TILES = """
#include <cuda_fp16.h>
#include "llmk/async_copy.cuh"
#include "llmk/mma.cuh"
#include "llmk/swizzle.cuh"

// Copy 64 rows, of which `there` exist, to a swizzled tile, and write out what ldmatrix loads from it.
template <int DIM>
__global__ void through_a_tile(const __half* x, __half* out, int stride, int there) {
    extern __shared__ __align__(128) __half tile[];
    const llmk::SwizzledCopier<__half, DIM, 128> copier(stride);
    copier.template copy<64>(tile, x, there);
    __pipeline_commit();
    llmk::cp_async_wait_all_and_sync();
    const int lane = threadIdx.x % 32, first = threadIdx.x / 32 * 16;
    for (int c = 0; c < DIM / 16; ++c) {
        unsigned got[4];
        llmk::ldmatrix_x4(got, tile + first * DIM + llmk::Swizzle<DIM>::offset(lane % 16, lane / 16 * 8, c));
        for (int e = 0; e < 4; ++e) {
            const int row = first + lane / 4 + e % 2 * 8, column = c * 16 + e / 2 * 8 + lane % 4 * 2;
            *reinterpret_cast<unsigned*>(out + row * DIM + column) = got[e];
        }
    }
}

extern "C" void copy_tile(const __half* x, __half* out, int dim, int stride, int there, cudaStream_t stream) {
    const auto kernel = dim == 32    ? through_a_tile<32>
                        : dim == 64  ? through_a_tile<64>
                        : dim == 80  ? through_a_tile<80>
                        : dim == 96  ? through_a_tile<96>
                        : dim == 128 ? through_a_tile<128>
                                     : through_a_tile<256>;
    kernel<<<1, 128, 64 * dim * 2, stream>>>(x, out, stride, there);
}
"""


@pytest.mark.parametrize("there", [64, 23, 0])
@pytest.mark.parametrize("dim", [32, 64, 80, 96, 128, 256])
def test_a_swizzled_tile_holds_what_was_copied_without_bank_conflicts(dim: int, there: int, tmp_path: Path) -> None:
    (tmp_path / "tiles.cu").write_text(TILES, encoding="utf-8")
    kernel = load_kernel(tmp_path / "tiles.cu", device="cpu")
    x = torch.randn(64, dim + 8, generator=torch.Generator().manual_seed(dim)).half()
    out = torch.full((64, dim), torch.nan).half()
    kernel.copy_tile(x, out, dim, dim + 8, there)
    expected = x[:, :dim].clone()
    expected[there:] = 0
    assert torch.equal(out, expected)
    assert kernel.report.totals["bank_conflict_ways"] == 1


def reference(q: Tensor, k: Tensor, v: Tensor, scale: float, causal: bool) -> Tensor:
    """Return attention [heads, tokens, head_dim] in float64, with zeros for a query that sees no key."""
    scores = q.double() @ k.double().mT * scale
    n, m = scores.shape[-2:]
    if causal:
        scores = scores.masked_fill(torch.ones(n, m, dtype=torch.bool).triu(m - n + 1), -torch.inf)
    return torch.nan_to_num(torch.softmax(scores, dim=-1), nan=0.0) @ v.double()


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    ("heads", "queries", "keys", "dim"),
    [(1, 1, 1, 64), (2, 65, 33, 64), (1, 31, 130, 128), (1, 90, 40, 128), (1, 3, 0, 64)],
)
def test_float32_attention_by_3xtf32(heads: int, queries: int, keys: int, dim: int, causal: bool) -> None:
    kernel = load_kernel(AMPERE / "attention_f32_tf32x3.cu", device="cpu")
    generator = torch.Generator().manual_seed(queries + keys)
    q, k, v = (torch.randn(heads, n, dim, generator=generator) for n in (queries, keys, keys))
    expected, off = reference(q, k, v, dim**-0.5, causal), {}
    for name in ("attention", "attention_tf32"):
        out = torch.full_like(q, torch.nan)
        getattr(kernel, name)(q, k, v, out, heads, queries, keys, dim, dim**-0.5, causal)
        off[name] = (out - expected).abs().max().item()
    assert off["attention"] < 5e-6, off
    assert keys == 0 or off["attention_tf32"] > 1e-4, "plain tf32 is less accurate than float32"


@pytest.mark.parametrize("file", sorted(AMPERE.glob("gemm_*.cu")), ids=lambda file: file.stem)
@pytest.mark.parametrize(("m", "n", "k"), [(128, 128, 64), (256, 128, 320)])
def test_each_version_of_the_gemm(file: Path, m: int, n: int, k: int) -> None:
    kernel = load_kernel(file, device="cpu")
    generator = torch.Generator().manual_seed(k)
    x, w = torch.randn(m, k, generator=generator).half(), torch.randn(n, k, generator=generator).half()
    y = torch.full((m, n), torch.nan).half()
    kernel.gemm(x, w, y, m, n, k)
    assert (y - x.double() @ w.double().T).abs().max() < 0.05


@pytest.mark.parametrize("file", sorted(HOPPER.glob("hopper_linear_*.cu")), ids=lambda file: file.stem)
@pytest.mark.parametrize(("rows", "inner", "columns"), [(1, 8, 8), (130, 200, 264)])
def test_each_version_of_hoppers_linear(file: Path, rows: int, inner: int, columns: int) -> None:
    kernel = load_kernel(file, device="cpu")
    generator = torch.Generator().manual_seed(inner)
    x, w = (torch.randn(n, inner, generator=generator).bfloat16() for n in (rows, columns))
    y = torch.zeros(rows, columns).bfloat16()
    kernel.linear(x, w, y, rows, inner, columns)
    expected = x.double() @ w.double().T
    assert ((y - expected).abs() <= 0.01 * expected.abs().max()).all()


def test_hoppers_attention_by_one_warpgroup() -> None:
    kernel = load_kernel(HOPPER / "hopper_attention_1_one_warpgroup.cu", device="cpu")
    generator = torch.Generator().manual_seed(1)
    q, k, v = (torch.randn(2, 256, 128, generator=generator).bfloat16() for _ in range(3))
    out = torch.full_like(q, torch.nan)
    kernel.attention(3 * q, k, v, out, 2, 256, 128**-0.5)
    assert (out - reference(3 * q, k, v, 128**-0.5, causal=False)).abs().max() < 2e-2


@pytest.mark.parametrize(("rows", "features", "dtype"), [(300, 264, torch.float16), (1, 8, torch.bfloat16)])
def test_a_fused_swiglu_has_gate_and_up_in_its_registers(rows: int, features: int, dtype: torch.dtype) -> None:
    kernel = load_kernel(HOPPER / "swiglu.cu", device="cpu")
    generator = torch.Generator().manual_seed(13)
    x, gate_w, up_w = (torch.randn(size, 136, generator=generator).to(dtype) for size in (rows, features, features))
    y = torch.full((rows, features), torch.nan).to(dtype)
    launch = kernel.linear_swiglu_f16 if dtype == torch.float16 else kernel.linear_swiglu_bf16
    launch(x, gate_w, up_w, y, rows, 136, features)
    expected = torch.nn.functional.silu(x.double() @ gate_w.double().T) * (x.double() @ up_w.double().T)
    assert (y - expected).abs().max() < 5e-3 * expected.abs().max()
