"""The tasks of day 13."""

import dataclasses

import torch

from grader.course.catalog import tasks_of_day
from grader.course.task import Bar, Bench, Case, Exercise, Input, Output, between, normal, one_of

ampere = tasks_of_day(__file__, "day12_tensor_cores_ampere")

# --------------------------------------------------------------------------------------------------------- wgmma_linear


def one_way_then_back(shape, generator):
    """Draw weights near 10 in the first half of the columns and near -10 in the second half."""
    sign = torch.where(torch.arange(shape[1]) < shape[1] // 2, 10.0, -10.0)
    return sign + torch.randn(shape, generator=generator)


wgmma_linear = Exercise(
    summary="""\
Compute y = x w^T on Hopper's tensor cores. TMA loads tiles, mbarriers count their bytes, and wgmma multiplies them,
with f32 accumulators, f16 and bf16 in and out. Load the next tiles while the current ones are multiplied. in_features
and out_features are multiples of 8, rows is any number, all tensors are 16-byte aligned, and in_features is not 0. The
goal on a GPU is the speed of cuBLAS.""",
    launchers="void wgmma_linear_{dtype}(const {T}* x, const {T}* w, {T}* y, int rows, int in_features, "
    "int out_features, cudaStream_t stream)",
    dtypes=("f16", "bf16"),
    inputs={
        "x": Input("rows in_features", normal(channel_offset=0.5)),
        "w": Input("out_features in_features", normal(scale=0.5)),
    },
    outputs={"y": Output("rows out_features")},
    reference=lambda x, w: x @ w.T,
    cases=[
        Case("one row, eight columns", rows=1, in_features=8, out_features=8),
        Case("one tile", rows=128, in_features=64, out_features=256),
        Case("a little more than a tile", dtypes=["bf16"], rows=129, in_features=72, out_features=264),
        Case("in_features longer than the ring of tiles", rows=70, in_features=840, out_features=136),
        Case(
            "in_features not a multiple of a tile, several tiles of y",
            dtypes=["f16"],
            rows=300,
            in_features=200,
            out_features=520,
        ),
        Case("a single column of tiles", rows=400, in_features=128, out_features=40),
        Case("more tiles than resident blocks", dtypes=["bf16"], rows=2, in_features=8, out_features=16904),
        Case(
            "partial sums beyond 65504",
            dtypes=["f16"],
            inputs={"x": lambda shape, generator: 20 + torch.randn(shape, generator=generator), "w": one_way_then_back},
            rows=33,
            in_features=1024,
            out_features=24,
        ),
        Case(
            "random sizes",
            rows=between(1, 400),
            in_features=one_of(8, 56, 64, 120, 256),
            out_features=one_of(8, 72, 256, 312),
        ),
        Case("no rows", dtypes=["f16"], rows=0, in_features=64, out_features=64),
        Case("no columns", dtypes=["bf16"], rows=5, in_features=64, out_features=0),
    ],
    efficient=Case("256 x 256 x 512", dtypes=["f16"], rows=256, in_features=256, out_features=512),
    bars=[
        Bar("tensor_operations / flops_needed", at_least=1, look="Multiply with wgmma."),
        Bar(
            "global_bytes / minimum",
            at_most=2.1,
            look="Let a block compute at least 128 x 128 elements of y.",
            naive="64 columns of y per block: x is fetched too often",
        ),
        Bar(
            "sectors / ideal",
            at_most=1.3,
            look="Load whole rows of tiles by TMA. Only stores to y may touch a sector twice.",
        ),
        Bar(
            "bank_conflict_ways",
            at_most=1.05,
            look="Store the results to shared memory with the swizzle of the tensor map.",
        ),
        Bar("launches", at_most=1, look="Use one kernel."),
        Bar("scratch_bytes", at_most=0, look="Allocate no memory: the kernel needs only the memory of its arguments."),
    ],
    flops=lambda d: 2 * d["rows"] * d["in_features"] * d["out_features"],
    bench=[
        Bench(f"{rows} x {n} x {n}", rows=rows, in_features=n, out_features=n)
        for rows, n in ((512, 4096), (2048, 2048), (4096, 4096), (8192, 8192))
    ],
    torch_baseline=lambda x, w: torch.nn.functional.linear(x, w),
)


# ----------------------------------------------------------------------------------------------- hopper_flash_attention

hopper_flash_attention = dataclasses.replace(
    ampere.mma_flash_attention,
    summary="""\
Compute out = softmax(scale * q k^T) v for several sequences at once, as in mma_flash_attention, on Hopper: TMA loads
tiles, and wgmma computes both matmuls. Sequence b has queries query_starts[b] ... query_starts[b + 1] - 1, at most
max_queries, and keys likewise; queries and keys are totals over all sequences. Query head h uses key/value head h /
(heads / kv_heads). The heads of a token are contiguous. The stride from token to token is q_stride or kv_stride
elements, and heads * head_dim in out. head_dim is a multiple of 8 up to 256, and not 4: the strides of a tensor map are
multiples of 16 bytes. scale is positive, all tensors are 16-byte aligned, and strides are multiples of 8. With `causal`,
query i of n queries and m keys sees the keys up to i + m - n. A query that sees no key gives zeros. Rows of another
sequence, and what lies between the last head and the next token, may hold anything, even NaN. `taken` is one int of
uninitialized working memory, for blocks that distribute work dynamically. The goal on a GPU is the speed of cuDNN.""",
    launchers="void hopper_flash_attention_{dtype}(const {T}* q, const {T}* k, const {T}* v, const int* query_starts, "
    "const int* key_starts, {T}* out, int* taken, int batch, int queries, int keys, int max_queries, int heads, "
    "int kv_heads, int head_dim, long long q_stride, long long kv_stride, float scale, bool causal, cudaStream_t "
    "stream)",
    outputs={"out": Output("queries heads head_dim"), "taken": Output("1", dtype="i32", scratch=True)},
    cases=[
        *(case for case in ampere.mma_flash_attention.cases if case.name != "head_dim 4"),
        ampere.sequences("head_dim 136", [20], [30], head_dim=136, dtypes=["f16"]),
        ampere.sequences(
            "keys of another sequence are NaN",
            [40, 0],
            [37, 50],
            inputs={name: ampere.nan_from(37) for name in ("k", "v")},
        ),
        ampere.sequences("more tiles of queries than resident blocks", [1] * 70, [3] * 70, 2, 1),
    ],
    bars=[
        Bar("tensor_operations / flops_needed", at_least=1, look="Run both matmuls with wgmma."),
        Bar("global_bytes / minimum", at_most=2.6, look="Let at least 64 rows of q share each tile of k and v."),
        Bar(
            "sectors / ideal",
            at_most=1.2,
            look="Load whole rows of tiles by TMA. Only stores to out may touch a sector twice.",
        ),
        Bar(
            "bank_conflict_ways",
            at_most=1.05,
            look="Store the results to shared memory with the swizzle of the tensor map.",
            naive="the stored tile is not swizzled",
        ),
        Bar("launches", at_most=1, look="Compute scores, softmax and weighted sum in one kernel."),
        Bar("scratch_bytes", at_most=32, look="Do not store the scores in global memory."),
    ],
    grid=dataclasses.replace(ampere.mma_flash_attention.grid, head_dims=(16, 24, 32, 48, 64, 96, 128, 256)),
    torch_baseline=ampere.torchs("CUDNN_ATTENTION"),
)
