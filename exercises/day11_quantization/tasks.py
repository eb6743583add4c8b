"""The exercises of day 11.

A layer of int4 weights is stored as in GPTQ's checkpoints, `in_features` K by `out_features` N, both multiples of 8:

    qweight  int32 [K / 8, N]        eight weights per word, along K: bits 4 j ... 4 j + 3 of word (i, n) are q[8 i + j,
    n] qzeros   int32 [groups, N / 8]   eight zeros per word, along N, stored minus 1: bits 4 j ... of (g, i) are
    zero[g, 8 i + j] - 1 scales   f16   [groups, N]
    g_idx    int32 [K]               the group of each k
    w[k, n] = (q[k, n] - zero[g_idx[k], n]) * scales[g_idx[k], n]

There are ceil(K / group_size) groups. Without act_order, g_idx[k] is k / group_size; with act_order, it
may be any group.
"""

import torch

from grader.course.task import (
    Bar,
    Bench,
    Case,
    Exercise,
    Input,
    Output,
    between,
    constant,
    integers,
    normal,
    one_of,
    uniform,
)

# ---------------------------------------------------------------------------------------------------------------- inputs


def groups_of(dims):
    """Return the number of groups; the last one may be smaller than the others."""
    return -(-dims["in_features"] // dims["group_size"])


def groups_in_order(dims):
    """Return the group of each k without act_order: [in_features]."""
    return torch.arange(dims["in_features"]) // dims["group_size"]


def group_indices(shape, dims, generator):
    """Return the group of each k: k / group_size, or shuffled if the case has act_order."""
    groups = groups_in_order(dims)
    return groups[torch.randperm(shape[0], generator=generator)] if dims["act_order"] else groups


def last_group_first(dims):
    """Return the groups in reverse order, so that neighbors share a group which is not k / group_size."""
    return groups_in_order(dims).flip(0)


WORDS = integers(-(2**31), 2**31)  # a random word, that is eight random nibbles
WEIGHTS = {
    "qweight": Input("in_features//8 out_features", WORDS, dtype="i32"),
    "qzeros": Input("groups out_features//8", WORDS, dtype="i32"),
    "scales": Input("groups out_features", uniform(0.005, 0.02), dtype="f16"),
    "g_idx": Input("in_features", group_indices, dtype="i32"),
}
LAYER = {
    "x": Input("rows in_features", normal(mean=0.3)),
    **WEIGHTS,
    "bias": Input("out_features*has_bias", normal(scale=3.0)),
}
DERIVED = {"groups": groups_of}
ZERO_IS_16 = {"qzeros": constant(-1)}
POSITIVE = {
    "qzeros": constant(0),
    "x": normal(mean=1.0, scale=0.3),
}  # all zeros are 1, so nearly all weights are positive


def canceling(shape, generator):
    """Draw rows whose second half is about minus the first half: partial sums exceed 65504, final sums are small."""
    half = 300 + torch.randn((shape[0], shape[1] // 2), generator=generator)
    return torch.cat([half, -half + 5 * torch.randn(half.shape, generator=generator)], dim=1)


def packed(q):
    """Pack q [K, n] into words [K / 8, n]: nibble j of word i holds row 8 i + j."""
    shifts = 4 * torch.arange(8)[:, None]
    words = (q.view(-1, 8, q.shape[1]) << shifts).sum(dim=1)
    return (words + 2**31) % 2**32 - 2**31


def same_weights_twice(shape, dims, generator):
    """Draw weights in which the second half of the rows repeats the first half."""
    q = torch.randint(0, 16, (4 * shape[0], shape[1]), generator=generator)
    return packed(torch.cat([q, q]))


# ------------------------------------------------------------------------------------------------------------- references


def nibbles(words, dim):
    """Unpack the eight nibbles of each word, lowest first; axis ``dim`` becomes eight times as long."""
    shifts = 4 * torch.arange(8, device=words.device)
    found = words.unsqueeze(dim + 1) >> (shifts[:, None] if dim == 0 else shifts) & 15
    return found.flatten(dim, dim + 1)


def dequantize(qweight, qzeros, scales, g_idx):
    """Return w [in_features, out_features], in the dtype of the scales."""
    zeros = nibbles(qzeros, 1) + 1
    return (nibbles(qweight, 0) - zeros[g_idx]).to(scales.dtype) * scales[g_idx]


def linear(x, qweight, qzeros, scales, g_idx, bias, has_bias):
    """Return x w, plus the bias if ``has_bias``."""
    out = x @ dequantize(qweight, qzeros, scales, g_idx)
    return out + bias if has_bias else out


def ln_qkv(x, weight, beta, qweight, qzeros, scales, g_idx, bias, has_bias, eps):
    """Apply LayerNorm, then the projections to query, key and value: out [3, batch, length, in_features]."""
    normal_x = torch.nn.functional.layer_norm(x, x.shape[-1:], weight, beta, eps)
    out = linear(normal_x, qweight, qzeros, scales, g_idx, bias, has_bias)
    return out.unflatten(-1, (3, -1)).movedim(-2, 0)


def layer_bytes(d):
    """Return the minimum bytes of a matmul: each weight, zero, scale and element of x and out once."""
    k, n, groups = d["in_features"], d["out_features"], groups_of(d)
    return k * n // 2 + groups * n * 5 // 2 + 2 * d["rows"] * (k + n) + 4 * k * d["act_order"] + 2 * n * d["has_bias"]


def layer_flops(d):
    """Return the floating-point operations of a matmul: two per multiply-add."""
    return 2.0 * d["rows"] * d["in_features"] * d["out_features"]


# The int4 matmul of torch (`tinygemm`) has another layout and another formula: (q - 8) * scale + zero, in bf16.


def torch_int4(x, qweight, qzeros, scales, group_size):
    """Convert x and the weights to the layout of torch's int4 matmul. If it is not available, dequantize to f16."""
    k = qweight.shape[0] * 8
    if not (qweight.is_cuda and hasattr(torch, "_weight_int4pack_mm")):
        g_idx = torch.arange(k, device=qweight.device) // group_size
        return {"rows_of_x": x, "theirs": dequantize(qweight, qzeros, scales, g_idx), "scales_and_zeros": None}
    q = nibbles(qweight, 0).T.contiguous()
    bytes_ = (q[:, ::2] << 4 | q[:, 1::2]).to(torch.uint8)
    zeros = (8 - (nibbles(qzeros, 1) + 1)) * scales
    return {
        "rows_of_x": x.to(torch.bfloat16),
        "theirs": torch._convert_weight_to_int4pack(bytes_, 8),
        "scales_and_zeros": torch.stack([scales, zeros], dim=-1).to(torch.bfloat16).contiguous(),
    }


def torch_linear(rows_of_x, theirs, scales_and_zeros, group_size):
    """Run torch's int4 matmul on bf16 rows."""
    if scales_and_zeros is None:
        return rows_of_x @ theirs
    return torch._weight_int4pack_mm(rows_of_x, theirs, group_size, scales_and_zeros)


def torch_finished(qweight, qzeros, scales, g_idx):
    """Dequantize all weights before the timing, to [out_features, in_features] as in torch.nn.Linear."""
    return {"finished": dequantize(qweight, qzeros, scales, g_idx).T.contiguous()}


def torch_ln_qkv(x, weight, beta, finished, eps):
    """Run torch's LayerNorm, then its f16 matmul with the dequantized weights."""
    normal_x = torch.nn.functional.layer_norm(x, x.shape[-1:], weight, beta, eps)
    out = torch.nn.functional.linear(normal_x, finished)
    return out.unflatten(-1, (3, -1)).movedim(-2, 0)


# -------------------------------------------------------------------------------------------------------------- exercises

ONE_LAUNCH = Bar(
    "launches", at_most=1, look="Use one kernel: storing dequantized weights takes four times as many bytes."
)
NO_SCRATCH = Bar("scratch_bytes", at_most=0, look="Do not store dequantized weights in global memory.")


def layer(in_features, out_features, group_size, act_order=False, **more):
    """Return the dimensions of the tensors of a test case, by name."""
    return dict(in_features=in_features, out_features=out_features, group_size=group_size, act_order=act_order, **more)


gptq_dequantize = Exercise(
    summary="""\
Dequantize int4 weights in GPTQ's format to f16: w[k, n] = (q - zero) * scale, rounded once. qweight [in_features /
8, out_features] packs eight q per word along k. qzeros [groups, out_features / 8] packs eight zeros along n, each
stored minus 1, so zero is 1 ... 16. scales is [groups, out_features], and g_idx [in_features] is the group of each
k. in_features and out_features are multiples of 8, groups have any size and any order, and all tensors are 16-byte
aligned. There may be more than 2^31 weights, but no test is that large. Without weights there is nothing to do.""",
    launchers="void gptq_dequantize(const int* qweight, const int* qzeros, const {T}* scales, const int* g_idx, {T}* out, "
    "int in_features, int out_features, cudaStream_t stream)",
    dtypes=("f16",),
    inputs=WEIGHTS,
    outputs={"out": Output("in_features out_features")},
    scalars=DERIVED,
    reference=dequantize,
    tolerance={"f16": 6e-4},
    cases=[
        Case("one word, eight columns", **layer(8, 8, 8)),
        Case("groups of 128", **layer(256, 40, 128)),
        Case("one group", **layer(136, 24, 136)),
        Case("in_features not a multiple of the group size", **layer(128, 72, 48)),
        Case("groups that end within a word", **layer(72, 16, 13)),
        Case("groups of 1", **layer(24, 32, 1)),
        Case("groups of 2", **layer(64, 8, 2)),
        Case("act-order", **layer(128, 136, 32, True)),
        Case("act-order by whole words", inputs={"g_idx": last_group_first}, **layer(96, 16, 16, True)),
        Case("every zero is 16", inputs=ZERO_IS_16, **layer(32, 16, 16)),
        Case("every zero is 1", inputs={"qzeros": constant(0)}, **layer(32, 16, 16)),
        Case("many columns", **layer(16, 1032, 16)),
        Case(
            "random sizes",
            in_features=one_of(8, 40, 72, 104, 136),
            out_features=one_of(8, 24, 56, 88, 264),
            group_size=between(1, 60),
            act_order=one_of(False, True),
        ),
        Case("no rows of weights", **layer(0, 16, 8)),
        Case("no columns", **layer(16, 0, 8)),
    ],
    efficient=Case("256 x 512, groups of 128", **layer(256, 512, 128)),
    minimum_bytes=lambda d: (
        d["in_features"] * d["out_features"] * 5 // 2 + groups_of(d) * d["out_features"] * 5 // 2 + 4 * d["in_features"]
    ),
    bars=[
        Bar(
            "global_bytes / minimum",
            at_most=1.35,
            look="Read a scale once for the eight weights of a word, if they are in the same group.",
            naive="scales and zeros are loaded for every row",
        ),
        Bar("sectors / ideal", at_most=1.25, look="Let neighboring lanes write neighboring columns."),
        Bar("requests * 512 / minimum", at_most=4, look="Move 16 bytes with each access where possible."),
        Bar("launches", at_most=1),
        Bar("scratch_bytes", at_most=0),
    ],
    bench=[
        Bench("4096 x 4096, groups of 128", **layer(4096, 4096, 128)),
        Bench("4096 x 12288, groups of 128, act-order", **layer(4096, 12288, 128, True)),
    ],
    torch_baseline=dequantize,
)

LINEAR = (
    "void {name}(const {{T}}* x, const int* qweight, const int* qzeros, const {{T}}* scales, const int* g_idx, "
    "const {{T}}* bias, {{T}}* out, int rows, int in_features, int out_features, int group_size, bool act_order, "
    "bool has_bias, cudaStream_t stream)"
)


def few(rows, in_features, out_features, group_size, act_order=False, has_bias=False):
    """Return the dimensions of the tensors of a test case of gptq_linear, by name."""
    return layer(in_features, out_features, group_size, act_order, rows=rows, has_bias=has_bias)


gptq_linear = Exercise(
    summary="""\
out = x w, plus the bias if has_bias, for 1 to 16 rows of f16 and int4 weights in GPTQ's format: w[k, n] = (q -
zero) * scale. qweight is [in_features / 8, out_features], qzeros [groups, out_features / 8] (zeros stored minus 1),
scales [groups, out_features], g_idx [in_features]. Without act_order the group of k is k / group_size. Sum in float
and round once at the end; the result is the same in every run. in_features and out_features are multiples of 8,
tensors 16-byte aligned, groups of any size. There may be more than 2^31 weights, but no test is that large. With
in_features = 0 the result is the bias, or zero; with no rows or no out_features there is nothing to do. On a GPU,
the goal is twice the speed of torch's int4 matmul, and more than the speed of its matmul with 16-bit weights.""",
    launchers=LINEAR.format(name="gptq_linear"),
    dtypes=("f16",),
    inputs=LAYER,
    outputs={"out": Output("rows out_features")},
    scalars=DERIVED,
    reference=linear,
    trivial=[lambda x, qweight, qzeros, scales, g_idx: x @ dequantize(qweight, qzeros - 1, scales, g_idx)],
    cases=[
        Case("one row, one word, eight columns", **few(1, 8, 8, 8)),
        Case("one row, groups of 128", **few(1, 512, 136, 128)),
        Case("two rows, a bias", **few(2, 256, 72, 64, has_bias=True)),
        Case("three rows, 127 words", **few(3, 1016, 24, 128)),
        Case("eight rows", **few(8, 264, 40, 32, has_bias=True)),
        Case("nine rows", **few(9, 160, 64, 96)),
        Case("sixteen rows", **few(16, 384, 96, 128, has_bias=True)),
        Case("rows of x too long for shared memory", **few(16, 5120, 8, 128)),
        Case("one group", **few(5, 200, 48, 200)),
        Case("in_features not a multiple of the group size", **few(4, 320, 32, 72)),
        Case("65 groups of 32", **few(2, 2080, 16, 32)),
        Case("groups that end within a word", **few(3, 144, 56, 13)),
        Case("groups of 1", **few(2, 40, 16, 1)),
        Case("groups of 8, eleven rows", **few(11, 72, 104, 8)),
        Case("act-order", **few(7, 256, 40, 64, True)),
        Case("act-order by whole words", inputs={"g_idx": last_group_first}, **few(2, 96, 16, 16, True, True)),
        Case("act-order, groups of 128, twelve rows", **few(12, 256, 24, 128, True)),
        Case("every zero is 16", inputs=ZERO_IS_16, **few(2, 128, 16, 64)),
        Case("a sum of 4096 terms of one sign", inputs=POSITIVE, **few(2, 4096, 16, 128)),
        Case(
            "partial sums beyond 65504",
            inputs={"x": canceling, "qweight": same_weights_twice, "scales": constant(1.0), "qzeros": constant(0)},
            **few(2, 512, 24, 512),
        ),
        Case("many columns", **few(1, 16, 1032, 16)),
        Case(
            "random sizes",
            rows=between(1, 16),
            in_features=one_of(8, 40, 72, 136, 264, 520),
            out_features=one_of(8, 24, 56, 88),
            group_size=one_of(5, 8, 32, 64, 100),
            act_order=one_of(False, True),
            has_bias=one_of(False, True),
        ),
        Case("no rows", **few(0, 16, 16, 8)),
        Case("no columns", **few(2, 16, 0, 8)),
        Case("no input features: out is the bias", **few(3, 0, 16, 8, has_bias=True)),
    ],
    efficient=Case("2 rows, 1024 x 256, groups of 128", **few(2, 1024, 256, 128)),
    minimum_bytes=layer_bytes,
    bars=[
        Bar(
            "global_bytes / minimum",
            at_most=1.8,
            look="Read each weight once. Every block reads x, so let a block compute more columns.",
        ),
        Bar("sectors / ideal", at_most=1.2, look="Let neighboring lanes read neighboring columns."),
        Bar(
            "requests * 512 / minimum",
            at_most=7,
            look="Load 8 or 16 bytes of qweight with each access.",
            naive="each lane loads one column, so loads have 4 bytes",
        ),
        Bar(
            "conversions / (in_features * out_features)",
            at_most=0.05,
            look="Avoid conversion instructions: put the four bits of a weight into the bits of an f16 number (0x6400 | q "
            "is 1024 + q).",
            naive="each weight is converted from int to half",
        ),
        Bar("launches", at_most=2, look="Use one kernel, and at most a second one that adds partial sums."),
        NO_SCRATCH,
    ],
    flops=layer_flops,
    bench=[
        Bench("1 row, 4096 x 4096", **few(1, 4096, 4096, 128)),
        Bench("16 rows, 4096 x 4096", **few(16, 4096, 4096, 128)),
        Bench("1 row, 4096 x 12288", **few(1, 4096, 12288, 128)),
        Bench("16 rows, 4096 x 12288", **few(16, 4096, 12288, 128)),
        Bench("1 row, 11008 x 4096", **few(1, 11008, 4096, 128)),
        Bench("1 row, 8192 x 28672", **few(1, 8192, 28672, 128)),
        Bench("16 rows, 8192 x 28672", **few(16, 8192, 28672, 128)),
    ],
    torch_baseline=torch_linear,
    torch_prepare=torch_int4,
)

QKV = (
    "void ln_qkv_gptq(const {T}* x, const {T}* weight, const {T}* beta, const int* qweight, const int* qzeros, "
    "const {T}* scales, const int* g_idx, const {T}* bias, {T}* normalized, {T}* out, int batch, int length, "
    "int in_features, int group_size, bool act_order, bool has_bias, float eps, cudaStream_t stream)"
)


def qkv(batch, length, in_features, group_size, act_order=False, has_bias=False, eps=1e-5):
    """Return the dimensions of the tensors of a test case of ln_qkv_gptq, by name."""
    return layer(
        in_features, 3 * in_features, group_size, act_order, batch=batch, length=length, has_bias=has_bias, eps=eps
    )


def qkv_rows(d):
    """Return the sizes, and the number of rows of x: batch * length."""
    return {**d, "rows": d["batch"] * d["length"]}


ln_qkv_gptq = Exercise(
    summary="""\
LayerNorm and the QKV projection: y = LayerNorm(x) * weight + beta over the last axis of x [batch, length, C], then
out = y w, plus the bias if has_bias. C is in_features; weight and beta are [C], bias [3 C]. w [C, 3 C] is int4 in
GPTQ's format: qweight [C / 8, 3 C], qzeros [groups, 3 C / 8] with zeros stored minus 1, scales [groups, 3 C], g_idx
[C], groups = ceil(C / group_size). out is [3, batch, length, C]: queries, keys, values. Compute mean and variance
by Welford's method in float, so that a large mean costs no precision. You may round y to f16; sum in float. For up to
16 rows (batch * length) use one kernel. For more, use tensor cores for the matmul; the scratch memory `normalized`
[batch, length, C] may hold y. C is a multiple of 8, tensors 16-byte aligned, groups of any size. With no rows or C
= 0 there is nothing to do. The goal on a GPU at C = 4096: 0.02 ms for 1 and for 16 rows, and 0.25 ms or 70 % of
the roofline for 2048 rows.""",
    launchers=QKV,
    dtypes=("f16",),
    inputs={
        "x": Input("batch length in_features", normal(mean=0.5, channel_offset=0.5)),
        "weight": Input("in_features", normal(mean=1.0, scale=0.3)),
        "beta": Input("in_features", normal(scale=0.5)),
        **WEIGHTS,
        "bias": Input("3*in_features*has_bias", normal(scale=3.0)),
    },
    outputs={
        "out": Output("3 batch length in_features"),
        "normalized": Output("batch length in_features", scratch=True),
    },
    scalars={**DERIVED, "out_features": lambda d: 3 * d["in_features"]},
    reference=ln_qkv,
    cases=[
        Case("one row of 8", **qkv(1, 1, 8, 8)),
        Case("one row, groups of 128", **qkv(1, 1, 384, 128)),
        Case("two sequences of three rows, a bias", **qkv(2, 3, 72, 32, has_bias=True)),
        Case("sixteen rows", **qkv(2, 8, 136, 64)),
        Case("seventeen rows", **qkv(1, 17, 64, 32, has_bias=True)),
        Case("a mean of 60", inputs={"x": normal(mean=60.0, scale=0.5)}, **qkv(1, 2, 256, 128)),
        Case("a mean of 60, prefill", inputs={"x": normal(mean=60.0, scale=0.5)}, **qkv(1, 66, 64, 64)),
        Case("a row without variance", inputs={"x": constant(3.0)}, **qkv(1, 2, 40, 8, eps=0.01)),
        Case("C that is not a multiple of a tile", **qkv(1, 3, 104, 24)),
        Case("groups that end within a word", **qkv(1, 2, 56, 13, has_bias=True)),
        Case("act-order", **qkv(1, 4, 128, 32, True)),
        Case("groups of 1", **qkv(1, 1, 24, 1)),
        Case("prefill, more rows than a tile", **qkv(2, 67, 64, 32, has_bias=True)),
        Case("prefill, two tiles, groups of 64", **qkv(1, 130, 128, 64)),
        Case("prefill, act-order", **qkv(1, 70, 40, 8, True)),
        Case("prefill, groups that end within a word", **qkv(1, 65, 72, 20)),
        Case("a sum of 1024 terms", inputs={"beta": normal(mean=2.0), "qzeros": constant(0)}, **qkv(1, 1, 1024, 128)),
        Case(
            "random sizes",
            batch=between(1, 3),
            length=between(1, 30),
            in_features=one_of(8, 24, 40, 72, 120),
            group_size=one_of(3, 8, 32, 50, 128),
            act_order=one_of(False, True),
            has_bias=one_of(False, True),
            eps=1e-5,
        ),
        Case("no rows", **qkv(0, 4, 16, 8)),
        Case("no columns", **qkv(2, 2, 0, 8)),
    ],
    efficient=Case("256 rows, C 128", **qkv(1, 256, 128, 64)),
    minimum_bytes=lambda d: layer_bytes(qkv_rows(d)),
    bars=[
        Bar(
            "tensor_operations / flops_needed",
            at_least=1,
            look="Compute the matmul with mma.sync or wmma.",
            naive="no tensor cores",
        ),
        Bar(
            "global_bytes / minimum",
            at_most=4.5,
            look="Compute tiles of at least 64 rows by 64 columns, so that each weight and each row of y is fetched "
            "less often.",
        ),
        Bar("sectors / ideal", at_most=1.3, look="Let neighboring lanes read neighboring elements."),
        Bar("bank_conflict_ways", at_most=2.1, look="Pad the rows of the tiles in shared memory by 16 bytes."),
        Bar(
            "launches", at_most=3, look="Use at most three kernels: LayerNorm, perhaps dequantization, and the matmul."
        ),
    ],
    flops=lambda d: layer_flops(qkv_rows(d)),
    bench=[
        Bench("1 row, C 4096", **qkv(1, 1, 4096, 128)),
        Bench("16 rows, C 4096", **qkv(16, 1, 4096, 128)),
        Bench("2048 rows, C 4096", **qkv(1, 2048, 4096, 128)),
    ],
    torch_baseline=torch_ln_qkv,
    torch_prepare=torch_finished,
)

gptq_split_k = Exercise(
    summary="""\
A linear layer with int4 weights that divides K into `splits` parts, so that a layer with few columns fills the GPU.
Sum in float and round once at the end; the result has the same bits in every run. `partial` f32 [splits, rows,
out_features] is scratch memory that may hold anything. w = (q - zero) * scale as in gptq_linear, without bias and
act_order; up to 16 rows, in_features and out_features multiples of 8, groups of any size. With in_features = 0 the
result is zero; with no rows or no out_features there is nothing to do. The given kernel has several faults. Find
them from the report, and correct them all.""",
    launchers="void gptq_split_k(const {T}* x, const int* qweight, const int* qzeros, const {T}* scales, float* partial, "
    "{T}* out, int rows, int in_features, int out_features, int group_size, int splits, cudaStream_t stream)",
    dtypes=("f16",),
    inputs={name: spec for name, spec in LAYER.items() if name not in ("g_idx", "bias")},
    outputs={
        "out": Output("rows out_features"),
        "partial": Output("splits rows out_features", dtype="f32", scratch=True),
    },
    scalars={**DERIVED, "act_order": lambda d: False, "has_bias": lambda d: False},
    reference=lambda x, qweight, qzeros, scales, group_size: (
        x @ dequantize(qweight, qzeros, scales, torch.arange(x.shape[1]) // group_size)
    ),
    cases=[
        Case("one part", rows=1, in_features=64, out_features=24, group_size=32, splits=1),
        Case("two parts", rows=2, in_features=256, out_features=40, group_size=128, splits=2),
        Case("seven parts, sixteen rows", rows=16, in_features=264, out_features=16, group_size=64, splits=7),
        Case("groups that end within a word", rows=3, in_features=72, out_features=136, group_size=13, splits=3),
        Case("more parts than words", rows=2, in_features=16, out_features=8, group_size=8, splits=5),
        Case(
            "a sum of 4096 terms of one sign",
            inputs=POSITIVE,
            rows=2,
            in_features=4096,
            out_features=16,
            group_size=128,
            splits=1,
        ),
        Case(
            "partial sums beyond 65504",
            inputs={"x": canceling, "qweight": same_weights_twice, "scales": constant(1.0), "qzeros": constant(0)},
            rows=2,
            in_features=512,
            out_features=24,
            group_size=512,
            splits=2,
        ),
        Case(
            "random sizes",
            rows=between(1, 16),
            in_features=one_of(8, 40, 136, 264),
            out_features=one_of(8, 24, 88),
            group_size=one_of(5, 8, 32, 100),
            splits=between(1, 6),
        ),
        Case("no in_features", rows=2, in_features=0, out_features=16, group_size=8, splits=3),
        Case("no rows", rows=0, in_features=16, out_features=16, group_size=8, splits=2),
        Case("no columns", rows=2, in_features=16, out_features=0, group_size=8, splits=2),
    ],
    efficient=Case("2 rows, 512 x 256", rows=2, in_features=512, out_features=256, group_size=128, splits=4),
    bars=[
        Bar(
            "atomics",
            at_most=0,
            look="Sums by atomics are rounded differently in each run, because their order varies. Store parts, and "
            "add them in order.",
        ),
        Bar("launches", at_most=2, look="Use two kernels: one computes the partial sums, the other adds them."),
        NO_SCRATCH,
    ],
    flops=layer_flops,
)

# ------------------------------------------------------------------------------------------------ w8a16_linear, w8a8_linear

INT8 = integers(-128, 128)
INT8_SCALES = uniform(0.0005, 0.01)
ONE_LAUNCH = Bar("launches", at_most=1, look="Do everything in one kernel.")


def matrices(rows, in_features, out_features):
    """Return the dimensions of the tensors of a test case of w8a16_linear and w8a8_linear, by name."""
    return {"rows": rows, "in_features": in_features, "out_features": out_features}


def torch_dequantized(x, weight, scales):
    """Return the weights in f16, for torch's matmul."""
    return {"dense": (weight * scales[:, None]).to(x.dtype)}


def torch_int8(x, x_scales, weight, w_scales):
    """Compute the int8 matmul of torch, then apply the scales in further kernels."""
    return (torch._int_mm(x, weight.T) * x_scales[:, None] * w_scales).half()


w8a16_linear = Exercise(
    summary="""\
out = x w^T for 1 to 16 rows of f16, with int8 weights: w[n, k] = weight[n, k] * scales[n], one f32 scale for each output
feature. Sum in float, apply the scale to the sum, and round once at the end; the result is the same in every run. The
kernel is bound by reading the weights: read each once for all rows, 16 bytes at a time if rows are aligned. The result
must also be right for more than 16 rows, for any sizes, and for tensors that are not 16-byte aligned. There may be more
than 2^31 weights, but no test is that large. With in_features = 0 the result is zero; with no rows or no out_features there
is nothing to do. On a GPU, the goal is 1.2 times the speed of torch's matmul with 16-bit weights.""",
    launchers="void w8a16_linear(const {T}* x, const int8_t* weight, const float* scales, {T}* out, int rows, "
    "int in_features, int out_features, cudaStream_t stream)",
    dtypes=("f16",),
    inputs={
        "x": Input("rows in_features", normal(mean=0.3)),
        "weight": Input("out_features in_features", INT8, dtype="i8"),
        "scales": Input("out_features", INT8_SCALES, dtype="f32"),
    },
    outputs={"out": Output("rows out_features")},
    reference=lambda x, weight, scales: x @ (weight * scales[:, None]).T,
    trivial=[lambda x, weight, scales: x @ (weight * scales.mean()).T],
    cases=[
        Case("all sizes are 1", **matrices(1, 1, 1)),
        Case("one row, 16 columns", **matrices(1, 16, 5)),
        Case("one row", **matrices(1, 144, 67)),
        Case("one input feature", **matrices(3, 1, 35)),
        Case("one output feature", **matrices(2, 1000, 1)),
        Case("seven rows, odd sizes", **matrices(7, 71, 101)),
        Case("eight rows, long sums", **matrices(8, 1040, 24)),
        Case("nine rows", **matrices(9, 96, 33)),
        Case("sixteen rows", **matrices(16, 528, 40)),
        Case("seventeen rows", **matrices(17, 48, 9)),
        Case("511 input features", **matrices(2, 511, 8)),
        Case("many features", **matrices(2, 80, 8197)),
        Case("every weight is -128", inputs={"weight": constant(-128)}, **matrices(2, 64, 16)),
        Case("weight not 16-byte aligned", offsets={"weight": 1}, **matrices(2, 64, 16)),
        Case("x not 16-byte aligned", offsets={"x": 1}, **matrices(2, 64, 16)),
        Case(
            "sums beyond 65504 before the scale",
            inputs={"x": normal(mean=20.0), "weight": integers(60, 128), "scales": constant(0.0001)},
            **matrices(3, 512, 24),
        ),
        Case("a sum of 2000 terms of one sign", inputs={"weight": integers(1, 128)}, **matrices(2, 2000, 16)),
        Case("random sizes", rows=between(1, 16), in_features=between(1, 300), out_features=between(1, 60)),
        Case("no rows", **matrices(0, 16, 8)),
        Case("no output features", **matrices(2, 16, 0)),
        Case("no input features", **matrices(3, 0, 9)),
    ],
    efficient=Case("4 rows, 1024 -> 256", **matrices(4, 1024, 256)),
    bars=[
        Bar(
            "global_bytes / minimum",
            at_most=1.8,
            look="Read each weight once for all rows, and use each loaded value of x for several features.",
            naive="the weights are read again for each row",
        ),
        Bar("sectors / ideal", at_most=1.3, look="Let each request read whole 32-byte sectors of a row."),
        Bar("requests * 512 / minimum", at_most=7, look="Load 16 weights with each access."),
        Bar(
            "conversions / (in_features * out_features)",
            at_most=0.05,
            look="Avoid conversion instructions: the byte q + 128 below the byte 0x64 is the f16 number 1152 + q.",
            naive="each weight is converted from int to half",
        ),
        ONE_LAUNCH,
        NO_SCRATCH,
    ],
    flops=layer_flops,
    bench=[
        Bench("1 row, 4096 x 4096", **matrices(1, 4096, 4096)),
        Bench("16 rows, 4096 x 4096", **matrices(16, 4096, 4096)),
        Bench("1 row, 4096 x 12288", **matrices(1, 4096, 12288)),
        Bench("1 row, 896 x 151936", **matrices(1, 896, 151936)),
    ],
    torch_baseline=lambda x, dense: torch.nn.functional.linear(x, dense),
    torch_prepare=torch_dequantized,
)

w8a8_linear = Exercise(
    summary="""\
out[m, n] = (sum over k of x[m, k] * weight[n, k]) * x_scales[m] * w_scales[n] for prompts: x and weight are int8, with an
f32 scale for each token (row of x) and each channel (row of weight). Sum in int32 on tensor cores (mma.sync m16n8k32 with
s8 operands), apply both scales to the sum, and round once to f16. in_features is at most 131,072, so that no sum exceeds
int32. Any sizes, and tensors that are not 16-byte aligned. There may be more than 2^31 outputs, but no test is that large.
With in_features = 0 the result is zero; with no rows or no out_features there is nothing to do. On a GPU, the goal is 0.8
times the speed of torch's int8 matmul with the same scales.""",
    launchers="void w8a8_linear(const int8_t* x, const float* x_scales, const int8_t* weight, const float* w_scales, "
    "{T}* out, int rows, int in_features, int out_features, cudaStream_t stream)",
    dtypes=("f16",),
    inputs={
        "x": Input("rows in_features", INT8, dtype="i8"),
        "x_scales": Input("rows", INT8_SCALES, dtype="f32"),
        "weight": Input("out_features in_features", INT8, dtype="i8"),
        "w_scales": Input("out_features", INT8_SCALES, dtype="f32"),
    },
    outputs={"out": Output("rows out_features")},
    reference=lambda x, x_scales, weight, w_scales: (x * x_scales[:, None]) @ (weight * w_scales[:, None]).T,
    trivial=[lambda x, x_scales, weight, w_scales: (x * x_scales.mean()) @ (weight * w_scales[:, None]).T],
    cases=[
        Case("all sizes are 1", **matrices(1, 1, 1)),
        Case("two rows, odd sizes", **matrices(2, 3, 5)),
        Case("one mma", **matrices(16, 32, 8)),
        Case("half a step of columns", **matrices(16, 16, 8)),
        Case("one row", **matrices(1, 160, 40)),
        Case("a little more than a tile", **matrices(131, 64, 133)),
        Case("127 of everything", **matrices(127, 127, 127)),
        Case("several steps", **matrices(20, 400, 24)),
        Case("1009 input features", **matrices(3, 1009, 9)),
        Case("x not 16-byte aligned", offsets={"x": 1}, **matrices(5, 64, 16)),
        Case("weight not 16-byte aligned", offsets={"weight": 3}, **matrices(5, 64, 16)),
        Case("out not 4-byte aligned", offsets={"out": 1}, **matrices(5, 48, 16)),
        Case(
            "sums beyond 32767",
            inputs={"x": integers(90, 128), "weight": integers(90, 128), "x_scales": constant(0.001)},
            **matrices(4, 512, 16),
        ),
        Case("every value is -128", inputs={"x": constant(-128), "weight": constant(-128)}, **matrices(3, 96, 16)),
        Case("random sizes", rows=between(1, 70), in_features=between(1, 150), out_features=between(1, 70)),
        Case("no rows", **matrices(0, 32, 8)),
        Case("no output features", **matrices(5, 32, 0)),
        Case("no input features", **matrices(3, 0, 9)),
    ],
    efficient=Case("256 x 128 x 256", **matrices(256, 128, 256)),
    bars=[
        Bar(
            "tensor_operations / flops_needed",
            at_least=1,
            look="Do the whole GEMM with mma.sync.",
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
    flops=layer_flops,
    flops_of="f8",  # tensor cores multiply int8 at the rate of f8
    bench=[
        Bench("4096 x 4096 x 4096", **matrices(4096, 4096, 4096)),
        Bench("2048 x 4096 x 12288", **matrices(2048, 4096, 12288)),
        Bench("512 x 4096 x 4096", **matrices(512, 4096, 4096)),
    ],
    torch_baseline=torch_int8,
)
