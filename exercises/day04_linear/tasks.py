"""The exercises of day 4: the transpose, and the linear layer in three steps towards tensor cores and for decoding."""

import torch

from grader.course.task import Bar, Bench, Case, Exercise, Input, Output, between, normal

ONE_LAUNCH = Bar("launches", at_most=1)
NO_SCRATCH = Bar("scratch_bytes", at_most=0)

# ---------------------------------------------------------------------------------------------------------- transpose

transpose = Exercise(
    summary="""out[c, r] = in[r, c] for in [rows, cols]. The given kernel is right, but neighboring threads write
    addresses that are a whole row apart. Move whole sectors on both sides, without bank conflicts. Any rows and cols;
    rows * cols may exceed 2^31, but no test is that large. If either is 0 there is nothing to do.""",
    launchers="void transpose(const float* in, float* out, int rows, int cols, cudaStream_t stream)",
    # `in` is a Python keyword, so the reference takes it from the keyword arguments.
    inputs={"in": Input("rows cols", normal(channel_offset=1.0))},
    outputs={"out": Output("cols rows")},
    reference=lambda **given: given["in"].T.contiguous(),
    tolerance={"f32": 1e-7},
    cases=[
        Case("one element", rows=1, cols=1),
        Case("one row", rows=1, cols=130),
        Case("one column", rows=130, cols=1),
        Case("two rows, three columns", rows=2, cols=3),
        Case("127 rows, two columns", rows=127, cols=2),
        Case("128 rows, 129 columns", rows=128, cols=129),
        Case("one tile", rows=32, cols=32),
        Case("sizes one more than whole tiles", rows=33, cols=65),
        Case("sizes one less than whole tiles", rows=31, cols=95),
        Case("wide", rows=3, cols=1031),
        Case("tall", rows=1031, cols=5),
        Case("no rows", rows=0, cols=5),
        Case("no columns", rows=5, cols=0),
        Case("random sizes", rows=between(2, 150), cols=between(2, 150)),
    ],
    efficient=Case("128 x 256", rows=128, cols=256),
    bars=[
        Bar(
            "sectors / ideal",
            at_most=1.05,
            look="Neighboring threads should read, and also write, neighboring columns of one row.",
            naive="the naive kernel",
        ),
        Bar(
            "bank_conflict_ways",
            at_most=1.1,
            look="All elements of a column of a [32][32] tile are in one bank: pad its rows.",
            naive="no padding",
        ),
        Bar("global_bytes / minimum", at_most=1.01),
        ONE_LAUNCH,
        NO_SCRATCH,
    ],
    flops=lambda d: 0.0,
    bench=[Bench("small", rows=1024, cols=1024), Bench("large", rows=16384, cols=8192)],
    torch_baseline=lambda **given: given["in"].T.contiguous(),
)

# ------------------------------------------------------------------------------------------------------------- linear

LINEAR = """void {name}(const {{T}}* x, const {{T}}* weight, const {{T}}* bias, {{T}}* out, int rows, int in_features,
                        int out_features, cudaStream_t stream)"""
LINEAR_INPUTS = {
    "x": Input("rows in_features", normal(mean=0.3)),
    "weight": Input("out_features in_features", normal(scale=0.5, channel_offset=0.5)),
    "bias": Input("out_features", normal(scale=3.0)),
}


def linear_layer(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """Return x weight^T + bias."""
    return x @ weight.T + bias


def linear_operations(d) -> float:
    """Return the number of floating-point operations: two per multiply-add."""
    return 2.0 * d["rows"] * d["in_features"] * d["out_features"]


RAGGED = [
    Case("all sizes are 1", rows=1, in_features=1, out_features=1),
    Case("two rows, three features", rows=2, in_features=3, out_features=2),
    Case("one row", rows=1, in_features=129, out_features=67),
    Case("one input feature", rows=37, in_features=1, out_features=35),
    Case("one output feature", rows=37, in_features=40, out_features=1),
    Case("whole tiles", rows=64, in_features=64, out_features=128),
    Case("sizes one more than whole tiles", rows=33, in_features=65, out_features=129),
    Case("sizes one less than whole tiles", rows=31, in_features=63, out_features=127),
    Case("primes", rows=53, in_features=71, out_features=101),
    Case("no rows", rows=0, in_features=8, out_features=8),
    Case("no output features", rows=5, in_features=8, out_features=0),
    Case("no input features: out is the bias", rows=5, in_features=0, out_features=9),
    Case("random sizes", rows=between(1, 90), in_features=between(1, 90), out_features=between(1, 140)),
]
LINEAR_BENCH = [
    Bench("small", rows=128, in_features=1024, out_features=4096),
    Bench("large", rows=4096, in_features=4096, out_features=4096),
    Bench("512 x 4096 x 4096", rows=512, in_features=4096, out_features=4096),
]

linear = Exercise(
    summary="""out = x weight^T + bias for x [rows, in_features] and weight [out_features, in_features], as
    torch.nn.Linear stores it. Read each value from global memory once per tile of outputs, not once per output. Any
    sizes. With in_features = 0 the result is the bias; with no rows or no out_features there is nothing to do.""",
    launchers=LINEAR.format(name="linear"),
    inputs=LINEAR_INPUTS,
    outputs={"out": Output("rows out_features")},
    reference=linear_layer,
    trivial=[lambda x, weight: x @ weight.T],
    cases=RAGGED,
    efficient=Case("128 x 128 x 128", rows=128, in_features=128, out_features=128),
    bars=[
        Bar(
            "global_bytes / minimum",
            at_most=3.5,
            look="Compute tiles of 32 x 32 outputs or more: then the 128 x 128 outputs take only 4 reads of each input.",
        ),
        Bar("sectors / ideal", at_most=1.1, look="Load both tiles along in_features, where addresses are contiguous."),
        Bar(
            "bank_conflict_ways",
            at_most=1.2,
            look="Do the lanes of a warp read one column of a tile, in different rows? Then pad the rows.",
            naive="a bank conflict in every step",
        ),
        ONE_LAUNCH,
        NO_SCRATCH,
    ],
    flops=linear_operations,
    bench=LINEAR_BENCH,
    torch_baseline=lambda x, weight, bias: torch.nn.functional.linear(x, weight, bias),
)

linear_register_tiled = Exercise(
    operator="linear",
    summary="""The same linear layer. The given kernel computes one output per thread: each multiply-add loads two
    values from shared memory, and these loads limit its speed. Let each thread compute a small tile of outputs in
    registers, so that it uses each loaded value several times. Any sizes, and empty input, as in linear.""",
    launchers=LINEAR.format(name="linear_register_tiled"),
    inputs=LINEAR_INPUTS,
    outputs={"out": Output("rows out_features")},
    reference=linear_layer,
    trivial=[lambda x, weight: x @ weight.T],
    cases=RAGGED,
    efficient=Case("256 x 64 x 256", rows=256, in_features=64, out_features=256),
    bars=[
        Bar(
            "shared_wavefronts / (flops_needed / 64)",
            at_most=0.25,
            look="This is the number of shared-memory wavefronts per multiply-add of a warp. 4 x 4 outputs per thread "
            "need more than 0.25 in any layout: compute more outputs per thread.",
            naive="4 x 4 outputs per thread",
        ),
        Bar("global_bytes / minimum", at_most=3.2, look="Use tiles of 64 x 64 outputs or more."),
        Bar(
            "stack_bytes",
            at_most=0,
            look="An array stays in registers if the compiler knows each index: #pragma unroll the loops over it.",
        ),
        ONE_LAUNCH,
        NO_SCRATCH,
    ],
    flops=linear_operations,
    bench=LINEAR_BENCH,
    torch_baseline=lambda x, weight, bias: torch.nn.functional.linear(x, weight, bias),
)

linear_wmma = Exercise(
    operator="linear",
    summary="""The same linear layer for f16 and bf16, with f32 accumulators and one rounding at the end, on tensor
    cores through nvcuda::wmma. Any sizes, and empty input, as in linear: elements outside the matrices are zero. On a
    GPU, aim for at least half the speed of cuBLAS at sizes of 4096.""",
    launchers=LINEAR.format(name="linear_wmma_{dtype}"),
    dtypes=("f16", "bf16"),
    inputs=LINEAR_INPUTS,
    outputs={"out": Output("rows out_features")},
    reference=linear_layer,
    trivial=[lambda x, weight: x @ weight.T],
    cases=[
        *RAGGED,
        Case("sums that need more precision than f16", rows=20, in_features=1500, out_features=24),
    ],
    efficient=Case("256 x 64 x 256", dtypes=("f16",), rows=256, in_features=64, out_features=256),
    bars=[
        Bar(
            "tensor_operations / flops_needed",
            at_least=1,
            look="Do the whole GEMM with wmma::mma_sync.",
            naive="no tensor cores",
        ),
        Bar("global_bytes / minimum", at_most=3.2, look="Use tiles of 64 x 64 outputs or more."),
        Bar(
            "bank_conflict_ways",
            at_most=2.1,
            look="Pad the rows of the tiles by 16 bytes.",
            naive="rows without padding",
        ),
        ONE_LAUNCH,
        NO_SCRATCH,
    ],
    flops=linear_operations,
    bench=LINEAR_BENCH,
    torch_baseline=lambda x, weight, bias: torch.nn.functional.linear(x, weight, bias),
)

# ------------------------------------------------------------------------------------------------------ linear_decode


def few(rows, in_features, out_features, has_bias=True, **more):
    """Return the dimensions of the tensors of a test case, by name."""
    return dict(rows=rows, in_features=in_features, out_features=out_features, has_bias=has_bias, **more)


def layer_with_or_without(x, weight, bias, has_bias):
    """Return x weight^T, plus the bias if ``has_bias``."""
    return x @ weight.T + (bias if has_bias else 0.0)


def torch_layer(x, weight, bias, has_bias):
    """Return torch's linear layer, with the bias if ``has_bias``."""
    return torch.nn.functional.linear(x, weight, bias if has_bias else None)


linear_decode = Exercise(
    summary="""out = x weight^T (+ bias if has_bias) for 1 to 16 rows, as in decoding: f16 and bf16, f32 sums and one
    rounding, the same result in every run. The kernel is bound by reading the weights. Read each weight once for all
    rows, 16 bytes at a time if rows are aligned, with enough blocks for a GPU even if there are only 896 features.
    The result must also be right for more than 16 rows. With no in_features out is the bias, or zero; with no rows or
    no out_features there is nothing to do.""",
    launchers="""void linear_decode_{dtype}(const {T}* x, const {T}* weight, const {T}* bias, {T}* out, int rows,
                 int in_features, int out_features, bool has_bias, cudaStream_t stream)""",
    dtypes=("f16", "bf16"),
    inputs=LINEAR_INPUTS,
    outputs={"out": Output("rows out_features")},
    reference=layer_with_or_without,
    trivial=[lambda x, weight: x @ weight.T],
    cases=[
        Case("all sizes are 1", **few(1, 1, 1)),
        Case("one row, three features", **few(1, 3, 2)),
        Case("one row", **few(1, 136, 67)),
        Case("one row, no bias", **few(1, 128, 40, False)),
        Case("one input feature", **few(3, 1, 35)),
        Case("one output feature", **few(2, 1000, 1)),
        Case("seven rows, odd sizes", **few(7, 71, 101)),
        Case("eight rows", **few(8, 264, 24)),
        Case("nine rows", **few(9, 96, 33, False)),
        Case("sixteen rows", **few(16, 520, 17)),
        Case("seventeen rows", **few(17, 40, 9)),
        Case("511 input features", **few(2, 511, 8)),
        Case("more output features than the blocks of one wave compute", dtypes=("f16",), **few(1, 8, 33_800)),
        Case("nine rows, many features", **few(9, 72, 2139)),
        Case("weight not 16-byte aligned", offsets={"weight": 1}, **few(2, 64, 16)),
        Case("x and out not 16-byte aligned", offsets={"x": 1, "out": 3}, **few(2, 64, 16)),
        Case("sums that need more precision than f16", **few(4, 2000, 24)),
        Case("no rows", **few(0, 8, 8)),
        Case("no output features", **few(3, 8, 0)),
        Case("no input features: out is the bias", **few(3, 0, 9)),
        Case(
            "random sizes", rows=between(1, 16), in_features=between(1, 300), out_features=between(1, 60), has_bias=True
        ),
    ],
    efficient=Case("4 rows, 512 -> 896", dtypes=("f16",), **few(4, 512, 896)),
    bars=[
        Bar(
            "global_bytes / minimum",
            at_most=1.6,
            look="Read each weight once for all rows, and use each loaded value of x for several features.",
            naive="the weights are read again for each row",
        ),
        Bar(
            "blocks",
            at_least=100,
            look="Divide 896 features among as many blocks as a GPU has SMs.",
            naive="each tile is computed by one warp, even if there are few tiles",
        ),
        Bar(
            "requests * 512 / minimum",
            at_most=4,
            look="Load 16 bytes per lane: a request of the warp then moves 512 bytes.",
        ),
        Bar("sectors / ideal", at_most=1.2, look="Let each request read whole 32-byte sectors of a row."),
        ONE_LAUNCH,
        NO_SCRATCH,
    ],
    flops=linear_operations,
    bench=[
        Bench("1 row, 896 -> 896", **few(1, 896, 896)),
        Bench("1 row, 4864 -> 896", **few(1, 4864, 896, False)),
        Bench("1 row, 896 -> 151936", **few(1, 896, 151936, False)),
        Bench("1 row, 4096 -> 4096", **few(1, 4096, 4096, False)),
        Bench("16 rows, 4096 -> 4096", **few(16, 4096, 4096, False)),
        Bench("1 row, 8960 -> 1536", **few(1, 8960, 1536, False)),
    ],
    torch_baseline=torch_layer,
)
