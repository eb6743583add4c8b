"""The exercises of day 17.

Numbers of 8 or 4 bits are stored as bytes (u8), so that the grader compares their bit patterns, NaN included. A byte
holds two numbers of 4 bits, the first in its lower half.
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
    computed,
    constant,
    integers,
    normal,
    one_of,
    uniform,
)

# ------------------------------------------------------------------------------------------------------------- formats

E4M3_LARGEST = 448.0
E4M3_NAN = 0x7F
SMALLEST_AMAX = 1e-10


def to_e4m3(x):
    """Convert f32 numbers to bit patterns of e4m3: round to nearest even, saturate, and convert each NaN to 0x7f."""
    patterns = x.clamp(-E4M3_LARGEST, E4M3_LARGEST).to(torch.float8_e4m3fn).view(torch.uint8)
    return torch.where(x.isnan(), E4M3_NAN, patterns.to(torch.int64))


def grouped(x, size):
    """Reshape x [..., columns] to [..., groups, size]; pad the last group with zeros."""
    columns = x.shape[-1]
    return torch.nn.functional.pad(x, (0, -columns % size)).unflatten(-1, (-1, size))


# -------------------------------------------------------------------------------------------------------- fp8_quantize

GROUP = 128


def groups_of(dims):
    """Return the number of groups in a row; the last one may be smaller than the others."""
    return -(-dims["columns"] // GROUP)


def fp8_groups(x, columns):
    """Quantize x to bit patterns [rows, columns] and scales [rows, groups], in f32 as the kernel must."""
    groups = grouped(x.float(), GROUP)
    amax = groups.abs().nan_to_num(nan=0.0, posinf=0.0).amax(dim=-1, keepdim=True).clamp(min=SMALLEST_AMAX)
    largest = torch.full_like(amax, E4M3_LARGEST)
    q = to_e4m3(groups * (largest / amax)).flatten(-2)[..., :columns]
    return {"q": q, "scales": (amax / largest).squeeze(-1)}


def with_places(values):
    """Return a generator of normal numbers that sets each element (row, column) of ``values`` to its value."""

    def draw(shape, generator):
        x = torch.randn(shape, generator=generator)
        for (row, column), value in values.items():
            x[row, column] = value
        return x

    return draw


def zero_groups(shape, generator):
    """Draw normal numbers. In each row, the second group is zero: every third element -0, the others +0."""
    x = torch.randn(shape, generator=generator)
    x[:, 128:256] = 0.0
    x[:, 128:256:3] = -0.0
    return x


def midpoints(shape, generator):
    """Draw numbers halfway between two e4m3 numbers, and 448 once per group, so that the scale is 1."""
    x = torch.randint(8, 16, shape, generator=generator).float() + 0.5
    x *= 2.0 ** torch.randint(-6, 4, shape, generator=generator)
    x[:, ::128] = E4M3_LARGEST
    return x


fp8_quantize = Exercise(
    summary="""\
Quantize x [rows, columns] to e4m3, with one f32 scale for each group of 128 neighbors of a row, in one pass over x. The
last group of a row may be smaller. Let amax be the largest finite |x| of the group, and at least 1e-10. Then q = x *
(448 / amax), computed in float, rounded to the nearest e4m3 (ties to even) and saturated at 448, and scales[row, group]
= amax / 448; scales is [rows, ceil(columns / 128)]. Infinities become +-448, and NaN becomes 0x7f; neither changes the
scale of its group. columns is a multiple of 8, and all tensors are 16-byte aligned. x may have more than 2^31 elements,
but no test is that large. With no rows or no columns there is nothing to do. The goal on a GPU is 0.92 of the bandwidth
of a copy.""",
    launchers="void fp8_quantize(const {T}* x, unsigned char* q, float* scales, int rows, int columns, "
    "cudaStream_t stream)",
    dtypes=("bf16",),
    inputs={"x": Input("rows columns", normal(channel_offset=1.0))},
    outputs={"q": Output("rows columns", dtype="u8"), "scales": Output("rows groups", dtype="f32", tolerance=1e-6)},
    scalars={"groups": groups_of},
    reference=fp8_groups,
    cases=[
        Case("one row of 8", rows=1, columns=8),
        Case("one group", rows=1, columns=128),
        Case("two rows, a group of 8 at the end", rows=2, columns=136),
        Case("13 rows", rows=13, columns=264),
        Case("more groups than a block has warps", rows=3, columns=4104),
        Case("groups of different sizes", inputs={"x": normal(scale=1e4, channel_offset=3e4)}, rows=5, columns=640),
        Case("groups of zeros", inputs={"x": zero_groups}, rows=2, columns=384),
        Case("numbers below 1e-10", inputs={"x": normal(scale=1e-12)}, rows=1, columns=256),
        Case(
            "the largest magnitude of a group is negative",
            inputs={"x": with_places({(0, 127): -9.0, (1, 0): -700.0})},
            rows=2,
            columns=128,
        ),
        Case("halfway between two numbers of e4m3", inputs={"x": midpoints}, rows=2, columns=384),
        Case("NaN", inputs={"x": with_places({(0, 5): torch.nan, (1, 128): -torch.nan})}, rows=2, columns=256),
        Case("infinities", inputs={"x": with_places({(0, 3): torch.inf, (1, 255): -torch.inf})}, rows=2, columns=256),
        Case("random sizes", rows=between(1, 20), columns=one_of(8, 72, 120, 248, 512, 1000)),
        Case("no rows", rows=0, columns=64),
        Case("no columns", rows=3, columns=0),
    ],
    efficient=Case("64 x 1024", rows=64, columns=1024),
    bars=[
        Bar(
            "global_bytes / minimum",
            at_most=1.05,
            look="Read x once: keep a group in registers while you find its amax.",
            naive="x is read a second time",
        ),
        Bar("sectors / ideal", at_most=1.2, look="Let neighboring lanes read and write neighboring elements."),
        Bar(
            "requests * 512 / minimum",
            at_most=4.5,
            look="Read at least 8 bytes, and write at least 4, with each access.",
        ),
        Bar("launches", at_most=1, look="Use one kernel."),
        Bar("scratch_bytes", at_most=0, look="Allocate no memory: the kernel needs only the memory of its arguments."),
    ],
    bench=[
        Bench("16384 x 4096", rows=16384, columns=4096),
        Bench("8192 x 7168", rows=8192, columns=7168),
        Bench("128 x 7168", rows=128, columns=7168),
    ],
    torch_baseline=fp8_groups,
)


# ------------------------------------------------------------------------------------------------- fp8_delayed_scaling


def delayed_scaling(x, history):
    """Quantize x with the scale of the earlier steps; return the bit patterns, that scale, and the amax of x."""
    x, largest = x.float(), torch.full_like(history[:1], E4M3_LARGEST).float()
    earlier = history.float().amax(keepdim=True).clamp(min=SMALLEST_AMAX)
    amax = x.abs().nan_to_num(nan=0.0, posinf=0.0).flatten()
    amax = torch.cat([amax, amax.new_zeros(1)]).amax(keepdim=True)
    return {"q": to_e4m3(x * (largest / earlier)), "scale": earlier / largest, "amax": amax}


def steps_of(*values):
    """Return a generator of exactly these amax values, one per step."""
    return lambda shape: torch.tensor(values, dtype=torch.float32).expand(shape)


def negative_largest(shape, generator):
    """Draw normal numbers whose last element is -50, the largest magnitude."""
    x = torch.randn(shape, generator=generator)
    x[-1] = -50.0
    return x


def not_finite(shape, generator):
    """Draw normal numbers, but make one of them NaN, one infinity and one minus infinity."""
    x = torch.randn(shape, generator=generator)
    x[1], x[9], x[-1] = torch.nan, torch.inf, -torch.inf
    return x


fp8_delayed_scaling = Exercise(
    summary="""\
Quantize x [n] to e4m3 with a scale that is known before x is read, because it comes from earlier training steps.
history [steps] is the amax of each earlier step. Let h be the largest of them, and at least 1e-10: scale = h / 448, and
q = x * (448 / h), computed in float, rounded to the nearest e4m3, and saturated at 448. Infinities become +-448, and
NaN becomes 0x7f. amax [1] is the largest finite |x| of this step, and 0 if there is none; the next step takes it as
history. n is a multiple of 8, steps at least 1, and x and q are 16-byte aligned. x may have more than 2^31 elements, but
no test is that large. With n = 0, scale and amax are still written. The given kernel has several faults. Find them
from the report, and correct them all.""",
    launchers="void fp8_delayed_scaling(const {T}* x, const float* history, unsigned char* q, float* scale, float* amax, "
    "long long n, int steps, cudaStream_t stream)",
    dtypes=("bf16",),
    inputs={"x": Input("n", normal(mean=0.3)), "history": Input("steps", uniform(4.0, 8.0), dtype="f32")},
    outputs={
        "q": Output("n", dtype="u8"),
        "scale": Output("1", dtype="f32", tolerance=1e-6),
        "amax": Output("1", dtype="f32", tolerance=1e-6),
    },
    reference=delayed_scaling,
    cases=[
        Case("eight numbers, one step", n=8, steps=1),
        Case("17 steps", n=1000, steps=17),
        Case("several blocks", n=5000, steps=3),
        Case("the largest step is not the last", inputs={"history": steps_of(2.0, 9.0, 3.0)}, n=256, steps=3),
        Case("x exceeds its history", inputs={"x": normal(scale=20.0)}, n=2056, steps=2),
        Case("the largest magnitude of x is negative", inputs={"x": negative_largest}, n=3000, steps=2),
        Case("NaN and infinities", inputs={"x": not_finite}, n=520, steps=2),
        Case("a history of zeros", inputs={"history": constant(0.0)}, n=128, steps=4),
        Case("random sizes", n=one_of(16, 248, 1024, 2504), steps=between(1, 40)),
        Case("no numbers", n=0, steps=2),
    ],
    efficient=Case("65,536 numbers, 16 steps", n=65536, steps=16),
    bars=[
        Bar("global_bytes / minimum", at_most=1.2, look="Read x once."),
        Bar("sectors / ideal", at_most=1.2, look="Let neighboring lanes read and write neighboring elements."),
        Bar("launches", at_most=2, look="Use one kernel, and at most a second launch that clears amax."),
        Bar("scratch_bytes", at_most=0, look="Allocate no memory: the kernel needs only the memory of its arguments."),
    ],
)

# ------------------------------------------------------------------------------------------ nvfp4_quantize, _dequantize

E2M1_LARGEST = 6.0
NVFP4_GROUP = 16
E2M1 = torch.tensor([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0])


def to_e2m1(x):
    """Convert f32 numbers to bit patterns of e2m1: round to nearest even, saturate at 6."""
    size = x.abs()
    even_up = [(size > 0.25), (size >= 0.75), (size > 1.25), (size >= 1.75), (size > 2.5), (size >= 3.5), (size > 5.0)]
    return sum(step.to(torch.int64) for step in even_up) + 8 * x.signbit().to(torch.int64)


def from_e2m1(patterns):
    """Convert bit patterns of e2m1 to f32 numbers."""
    table = torch.cat([E2M1, -E2M1]).to(patterns.device)
    return table[patterns.long()]


def pairs(patterns):
    """Pack each pair of 4-bit patterns into a byte, the first in its lower half."""
    return patterns[..., ::2] | patterns[..., 1::2] << 4


def from_pairs(bytes_):
    """Unpack each byte into its two 4-bit patterns, the lower half first."""
    return torch.stack([bytes_ & 15, bytes_ >> 4], dim=-1).flatten(-2)


def nvfp4(x, amax):
    """Quantize x to NVFP4: q and scales, computed in f32 with IEEE divisions as the kernel must."""
    groups = x.float().unflatten(-1, (-1, NVFP4_GROUP))
    amax = amax.float()
    factor = torch.where(amax > 0, amax.new_tensor([E4M3_LARGEST * E2M1_LARGEST]) / amax, 0.0)
    scales = to_e4m3(groups.abs().amax(dim=-1) * factor / amax.new_tensor([E2M1_LARGEST]))
    decoded = scales.to(torch.uint8).view(torch.float8_e4m3fn).float()
    inverse = torch.where(decoded > 0, factor / decoded, 0.0)
    return {"q": pairs(to_e2m1(groups * inverse[..., None]).flatten(-2)), "scales": scales}


def nvfp4_numbers(q, scales, amax):
    """Dequantize NVFP4: (e2m1 * scale) * (amax / 2688), in f32, then rounded to bf16."""
    decoded = scales.to(torch.uint8).view(torch.float8_e4m3fn).float()
    exact = from_e2m1(from_pairs(q)).unflatten(-1, (-1, NVFP4_GROUP)) * decoded[..., None]
    amax = amax.float()
    return (exact * (amax / amax.new_tensor([E4M3_LARGEST * E2M1_LARGEST]))).flatten(-2).bfloat16()


def whole_amax(x):
    """Return the largest magnitude of x as a tensor [1]; 0 if x is empty."""
    return torch.cat([x.abs().flatten(), x.new_zeros(1)]).amax(keepdim=True)


def some_empty_groups(shape, generator):
    """Draw rows whose first group is zero, whose second is tiny, and whose third is a thousand times larger."""
    x = torch.randn(shape, generator=generator)
    x[..., :16] = 0.0
    x[..., 16:32] *= 1e-6
    x[..., 32:48] *= 1000.0
    return x


def e2m1_midpoints(shape, generator):
    """Draw numbers halfway between two e2m1 numbers, and 6 once per group: with amax = 2688, all scales are 1."""
    steps = torch.tensor([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0])
    x = steps[torch.randint(0, 7, shape, generator=generator)]
    x *= 1.0 - 2.0 * torch.randint(0, 2, shape, generator=generator)
    x[..., ::16] = 6.0
    return x


nvfp4_quantize = Exercise(
    summary="""\
Quantize x [rows, columns] to NVFP4: e2m1 with an e4m3 scale for each 16 neighbors and one f32 for the whole tensor.
amax [1] is the largest |x| of the tensor, or an estimate of it. In float, with IEEE division and in this order: factor
= 2688 / amax, or 0 if amax is 0; scale = (m * factor) / 6 as e4m3, with m the largest |x| of the 16; q = x * (factor /
scale) as e2m1, or x * 0 if the scale is 0. Both conversions round to nearest even and saturate, at 448 and at 6. q is
[rows, columns / 2], two numbers per byte, the first in its lower half; scales is [rows, columns / 16]. All bits must be
right. x is finite, columns is a multiple of 16, and all tensors are 16-byte aligned. x may have more than 2^31 elements,
but no test is that large. With no rows or no columns there is nothing to do. The goal on a GPU is 0.92 of the bandwidth
of a copy.""",
    launchers="void nvfp4_quantize(const {T}* x, const float* amax, unsigned char* q, unsigned char* scales, int rows, "
    "int columns, cudaStream_t stream)",
    dtypes=("bf16",),
    inputs={
        "x": Input("rows columns", normal(channel_offset=1.0)),
        "amax": Input("1", computed(whole_amax), dtype="f32"),
    },
    outputs={"q": Output("rows columns//2", dtype="u8"), "scales": Output("rows columns//16", dtype="u8")},
    reference=nvfp4,
    cases=[
        Case("one group", rows=1, columns=16),
        Case("two rows of three groups", rows=2, columns=48),
        Case("13 rows", rows=13, columns=176),
        Case("more groups than a block has threads", rows=3, columns=4112),
        Case("groups of zeros, tiny and large numbers", inputs={"x": some_empty_groups}, rows=3, columns=64),
        Case(
            "halfway between two numbers of e2m1",
            inputs={"x": e2m1_midpoints, "amax": constant(2688.0)},
            rows=2,
            columns=64,
        ),
        Case("amax is too small", inputs={"amax": constant(0.5)}, rows=2, columns=160),
        Case("only zeros", inputs={"x": constant(0.0)}, rows=1, columns=32),
        Case("random sizes", rows=between(1, 20), columns=one_of(16, 80, 112, 528)),
        Case("no rows", rows=0, columns=32),
        Case("no columns", rows=2, columns=0),
    ],
    efficient=Case("64 x 1024", rows=64, columns=1024),
    bars=[
        Bar("global_bytes / minimum", at_most=1.05, look="Read x once."),
        Bar(
            "sectors / ideal",
            at_most=1.3,
            look="Let neighboring lanes read neighboring 16 bytes.",
            naive="two bytes per access",
        ),
        Bar("requests * 512 / minimum", at_most=7, look="Read at least 8 bytes with each access."),
        Bar("launches", at_most=1, look="Use one kernel."),
        Bar("scratch_bytes", at_most=0, look="Allocate no memory: the kernel needs only the memory of its arguments."),
    ],
    bench=[
        Bench("16384 x 4096", rows=16384, columns=4096),
        Bench("8192 x 7168", rows=8192, columns=7168),
        Bench("128 x 7168", rows=128, columns=7168),
    ],
    torch_baseline=nvfp4,
)

nvfp4_dequantize = Exercise(
    summary="""\
Convert NVFP4 back to bf16: x = (e2m1 * scale) * (amax / 2688), computed in float in this order, and rounded to bf16. q
is [rows, columns / 2], two numbers of e2m1 per byte, the first in its lower half. scales is [rows, columns / 16], e4m3,
never NaN or negative, and amax is one f32. All bits must be right. columns is a multiple of 16, and all tensors are
16-byte aligned. x may have more than 2^31 elements, but no test is that large. With no rows or no columns there is nothing
to do. The goal on a GPU is 0.92 of the bandwidth of a copy.""",
    launchers="void nvfp4_dequantize(const unsigned char* q, const unsigned char* scales, const float* amax, {T}* x, "
    "int rows, int columns, cudaStream_t stream)",
    dtypes=("bf16",),
    inputs={
        "q": Input("rows columns//2", integers(0, 256), dtype="u8"),
        "scales": Input("rows columns//16", integers(0, 127), dtype="u8"),
        "amax": Input("1", uniform(1.0, 9.0), dtype="f32"),
    },
    outputs={"x": Output("rows columns", tolerance=1e-9)},
    reference=nvfp4_numbers,
    cases=[
        Case("one group", rows=1, columns=16),
        Case("two rows of three groups", rows=2, columns=48),
        Case("13 rows", rows=13, columns=176),
        Case("more groups than a block has threads", rows=3, columns=4112),
        Case("the smallest scales", inputs={"scales": integers(0, 9), "amax": constant(0.01)}, rows=2, columns=256),
        Case("the largest scales", inputs={"scales": integers(120, 127)}, rows=2, columns=256),
        Case("every byte", inputs={"q": lambda shape: torch.arange(256).view(shape)}, rows=1, columns=512),
        Case("random sizes", rows=between(1, 20), columns=one_of(16, 80, 112, 528)),
        Case("no rows", rows=0, columns=32),
        Case("no columns", rows=2, columns=0),
    ],
    efficient=Case("64 x 1024", rows=64, columns=1024),
    bars=[
        Bar("global_bytes / minimum", at_most=1.1, look="Read q and scales once."),
        Bar(
            "sectors / ideal",
            at_most=1.2,
            look="Let neighboring lanes write neighboring 16 bytes.",
            naive="two bytes per access",
        ),
        Bar("requests * 512 / minimum", at_most=7, look="Write at least 8 bytes with each access."),
        Bar("launches", at_most=1, look="Use one kernel."),
        Bar("scratch_bytes", at_most=0, look="Allocate no memory: the kernel needs only the memory of its arguments."),
    ],
    bench=[
        Bench("16384 x 4096", rows=16384, columns=4096),
        Bench("8192 x 7168", rows=8192, columns=7168),
        Bench("128 x 7168", rows=128, columns=7168),
    ],
    torch_baseline=nvfp4_numbers,
)

# ------------------------------------------------------------------------------------------------------------ fp8_gemm


def from_e4m3(patterns):
    """Convert bit patterns of e4m3 to float64 numbers."""
    return patterns.to(torch.uint8).view(torch.float8_e4m3fn).double()


def e4m3_normal(scale, mean=0.0):
    """Return a generator of e4m3 bit patterns of normal numbers that use the full range of the format."""
    return lambda shape, generator: to_e4m3(mean + scale * torch.randn(shape, generator=generator))


FP8_OPERANDS = {
    "x": Input("rows in_features", e4m3_normal(100.0, 20.0), dtype="u8"),
    "w": Input("out_features in_features", e4m3_normal(100.0), dtype="u8"),
}


def torch_fp8(x, w, x_scales, w_scales):
    """Convert the operands to the dtypes and layouts of torch's FP8 matmul."""
    return {
        "left": x.to(torch.uint8).view(torch.float8_e4m3fn),
        "right": w.to(torch.uint8).view(torch.float8_e4m3fn).t(),
        "left_scales": x_scales.float()[:, None].contiguous(),
        "right_scales": w_scales.float()[None, :].contiguous(),
    }


def torch_scaled_mm(left, right, left_scales, right_scales):
    """Run torch's FP8 matmul."""
    return torch._scaled_mm(
        left, right, scale_a=left_scales, scale_b=right_scales, out_dtype=torch.bfloat16, use_fast_accum=True
    )


def matmul_sizes(rows, in_features, out_features):
    """Return the sizes of a matmul."""
    return {"rows": rows, "in_features": in_features, "out_features": out_features}


GEMM_BARS = [
    Bar("tensor_operations / flops_needed", at_least=1, look="Multiply with wgmma."),
    Bar(
        "global_bytes / minimum",
        at_most=2.6,
        look="Let a block compute at least 128 x 128 elements of y.",
        naive="tiles of 64 columns",
    ),
    Bar(
        "sectors / ideal",
        at_most=1.5,
        look="Load whole rows of tiles by TMA. Only stores to y may touch a sector twice.",
    ),
    Bar(
        "bank_conflict_ways", at_most=2.1, look="Store the results to shared memory with the swizzle of the tensor map."
    ),
    Bar("launches", at_most=1, look="Use one kernel."),
    Bar("scratch_bytes", at_most=0, look="Allocate no memory: the kernel needs only the memory of its arguments."),
]

fp8_gemm = Exercise(
    summary="""\
Compute y = X W^T in FP8 on Hopper's tensor cores, with X[i, k] = x[i, k] * x_scales[i] and W[j, k] = w[j, k] *
w_scales[j]. x [rows, in_features] and w [out_features, in_features] are patterns of e4m3, without NaN; the scales are
f32, and y is bf16. TMA loads tiles, wgmma multiplies them with f32 accumulators, and the epilogue applies the scales.
in_features is a multiple of 16 and not 0, out_features a multiple of 8, rows any number, and all tensors are 16-byte
aligned. y may have more than 2^31 elements, but no test is that large. With no rows or no out_features there is nothing to
do. The goal on a GPU is the speed of torch's matmul with one scale per row.""",
    launchers="void fp8_gemm(const unsigned char* x, const unsigned char* w, const float* x_scales, "
    "const float* w_scales, {T}* y, int rows, int in_features, int out_features, cudaStream_t stream)",
    dtypes=("bf16",),
    inputs={
        **FP8_OPERANDS,
        "x_scales": Input("rows", uniform(0.001, 0.01), dtype="f32"),
        "w_scales": Input("out_features", uniform(0.001, 0.01), dtype="f32"),
    },
    outputs={"y": Output("rows out_features")},
    reference=lambda x, w, x_scales, w_scales: (
        (from_e4m3(x) * x_scales[:, None]) @ (from_e4m3(w) * w_scales[:, None]).T
    ),
    cases=[
        Case("one row, eight columns", **matmul_sizes(1, 16, 8)),
        Case("two rows", **matmul_sizes(2, 128, 16)),
        Case("a little more than a tile", **matmul_sizes(131, 144, 264)),
        Case("in_features longer than the ring of tiles", **matmul_sizes(70, 1040, 136)),
        Case("two rows of tiles", **matmul_sizes(300, 160, 40)),
        Case("the smallest numbers", inputs={"x": integers(0, 9), "w": integers(128, 137)}, **matmul_sizes(17, 64, 24)),
        Case("random sizes", rows=between(1, 150), in_features=one_of(16, 112, 240), out_features=one_of(8, 72, 312)),
        Case("no rows", **matmul_sizes(0, 64, 64)),
        Case("no columns", **matmul_sizes(5, 64, 0)),
    ],
    efficient=Case("256 x 256 x 512", **matmul_sizes(256, 256, 512)),
    bars=GEMM_BARS,
    flops=lambda d: 2 * d["rows"] * d["in_features"] * d["out_features"],
    flops_of="f8",
    bench=[
        Bench("4096 x 4096 x 4096", **matmul_sizes(4096, 4096, 4096)),
        Bench("8192 x 8192 x 8192", **matmul_sizes(8192, 8192, 8192)),
        Bench("4096 x 7168 x 2048", **matmul_sizes(4096, 7168, 2048)),
    ],
    torch_baseline=torch_scaled_mm,
    torch_prepare=torch_fp8,
)

# ------------------------------------------------------------------------------------------------------ fp8_block_gemm


def spread(scales, size, length, dim):
    """Repeat each scale ``size`` times along axis ``dim``, and keep the first ``length`` elements."""
    return scales.repeat_interleave(size, dim=dim).narrow(dim, 0, length)


def block_scaled(x, w, x_scales, w_scales):
    """Multiply each operand by its block scales, then multiply the matrices."""
    rows_of_x = from_e4m3(x) * spread(x_scales, GROUP, x.shape[1], 1)
    rows_of_w = from_e4m3(w) * spread(spread(w_scales, GROUP, w.shape[1], 1), GROUP, w.shape[0], 0)
    return rows_of_x @ rows_of_w.T


def rising_scales(shape, generator):
    """Draw scales that rise along the groups of k: the last ones are a thousand times the first ones."""
    exponents = torch.linspace(-10, 0, shape[-1]).expand(shape)
    return torch.rand(shape, generator=generator) * 2.0**exponents


# Timings compare with torch's matmul, which has one scale per row only, so all block scales are equal in benchmarks.
ONE_SCALE = {"x_scales": constant(0.005), "w_scales": constant(0.005)}

fp8_block_gemm = Exercise(
    summary="""\
Compute y = X W^T in FP8 with block scales, as DeepSeek-V3 does: X[i, k] = x[i, k] * x_scales[i, k / 128] and W[j, k] =
w[j, k] * w_scales[j / 128, k / 128]. x [rows, in_features] and w [out_features, in_features] are patterns of e4m3,
without NaN. x_scales is f32 [rows, groups], with groups = ceil(in_features / 128), and w_scales f32 [ceil(out_features /
128), groups]. y is bf16. Let wgmma sum over 128 values of k; multiply these sums by the scales, and add them in f32
registers. in_features is a multiple of 16 and not 0, out_features a multiple of 8, rows any number, and all tensors are
16-byte aligned. y may have more than 2^31 elements, but no test is that large. With no rows or no out_features there is
nothing to do. The goal on an H200 is 1,300 TFLOP/s at 8192 x 8192 x 8192.""",
    launchers="void fp8_block_gemm(const unsigned char* x, const unsigned char* w, const float* x_scales, "
    "const float* w_scales, {T}* y, int rows, int in_features, int out_features, cudaStream_t stream)",
    dtypes=("bf16",),
    inputs={
        **FP8_OPERANDS,
        "x_scales": Input("rows groups", uniform(0.001, 0.01), dtype="f32"),
        "w_scales": Input("column_groups groups", uniform(0.001, 0.01), dtype="f32"),
    },
    outputs={"y": Output("rows out_features")},
    scalars={
        "groups": lambda d: -(-d["in_features"] // GROUP),
        "column_groups": lambda d: -(-d["out_features"] // GROUP),
    },
    reference=block_scaled,
    cases=[
        Case("one row, eight columns", **matmul_sizes(1, 16, 8)),
        Case("two rows, two groups", **matmul_sizes(2, 256, 16)),
        Case("a little more than a tile", **matmul_sizes(131, 144, 136)),
        Case("in_features longer than the ring of tiles", **matmul_sizes(67, 1296, 136)),
        Case("two rows of tiles", **matmul_sizes(300, 160, 40)),
        Case("few tiles, 17 groups of k", **matmul_sizes(20, 2064, 136)),
        Case(
            "scales that differ by a factor of 1000",
            inputs={"x_scales": rising_scales, "w_scales": rising_scales},
            **matmul_sizes(20, 512, 264),
        ),
        Case("random sizes", rows=between(1, 150), in_features=one_of(16, 112, 240), out_features=one_of(8, 72, 312)),
        Case("no rows", **matmul_sizes(0, 64, 64)),
        Case("no columns", **matmul_sizes(5, 64, 0)),
    ],
    efficient=Case("256 x 256 x 512", **matmul_sizes(256, 256, 512)),
    bars=GEMM_BARS,
    flops=lambda d: 2 * d["rows"] * d["in_features"] * d["out_features"],
    flops_of="f8",
    bench=[
        Bench(f"{rows} x {k} x {n}", inputs=ONE_SCALE, **matmul_sizes(rows, k, n))
        for rows, k, n in ((4096, 4096, 4096), (8192, 8192, 8192), (4096, 7168, 2048), (128, 7168, 2048))
    ],
    torch_baseline=torch_scaled_mm,
    torch_prepare=lambda x, w, x_scales, w_scales: torch_fp8(
        x, w, x_scales[:, 0], spread(w_scales[:, 0], GROUP, w.shape[0], 0)
    ),
)

# ---------------------------------------------------------------------------------------------------------- mxfp4_gemm

MX_GROUP = 32
E8M0_BIAS = 127


def mxfp4_weights(w, w_scales):
    """Convert MXFP4 weights to float64 [out_features, in_features]."""
    numbers = from_e2m1(from_pairs(w)).double().unflatten(-1, (-1, MX_GROUP))
    return (numbers * 2.0 ** (w_scales.double() - E8M0_BIAS)[..., None]).flatten(-2)


def mxfp4_bytes(d):
    """Return the minimum bytes of a matmul: each weight, scale and element of x and y once."""
    k, n = d["in_features"], d["out_features"]
    return k * n // 2 + k * n // MX_GROUP + 2 * d["rows"] * (k + n)


mxfp4_gemm = Exercise(
    summary="""\
Compute y = x W^T with bf16 rows and MXFP4 weights: W[j, k] = e2m1(w[j, k]) * 2^(w_scales[j, k / 32] - 127). w is
[out_features, in_features / 2], two patterns of e2m1 per byte, the first in its lower half; w_scales is [out_features,
in_features / 32], patterns of e8m0 from 70 to 180. Convert the weights to bf16 in the main loop, which is exact, and
multiply on tensor cores with f32 sums. This is how GPUs without FP4 tensor cores run such models. in_features is a
multiple of 32, out_features a multiple of 8, rows any number, and x and w are 16-byte aligned. w may have more than 2^31
elements, but no test is that large. With in_features = 0 the result is 0; with no rows or no out_features there is nothing
to do. The goal on a GPU, for 1 and 16 rows, is twice the speed of torch's matmul with bf16 weights.""",
    launchers="void mxfp4_gemm(const {T}* x, const unsigned char* w, const unsigned char* w_scales, {T}* y, int rows, "
    "int in_features, int out_features, cudaStream_t stream)",
    dtypes=("bf16",),
    inputs={
        "x": Input("rows in_features", normal(mean=0.3)),
        "w": Input("out_features in_features//2", integers(0, 256), dtype="u8"),
        "w_scales": Input("out_features in_features//32", integers(115, 125), dtype="u8"),
    },
    outputs={"y": Output("rows out_features")},
    reference=lambda x, w, w_scales: x @ mxfp4_weights(w, w_scales).T,
    cases=[
        Case("one row, one scale, eight columns", **matmul_sizes(1, 32, 8)),
        Case("two rows", **matmul_sizes(2, 256, 24)),
        Case("seven rows", **matmul_sizes(7, 160, 40)),
        Case("nine rows", **matmul_sizes(9, 1120, 16)),
        Case("sixteen rows", **matmul_sizes(16, 96, 136)),
        Case("67 rows", **matmul_sizes(67, 64, 24)),
        Case("the smallest scales", inputs={"w_scales": integers(70, 74)}, **matmul_sizes(3, 128, 16)),
        Case("the largest scales", inputs={"w_scales": integers(176, 181)}, **matmul_sizes(3, 128, 16)),
        Case(
            "every byte", inputs={"w": lambda shape: torch.arange(256).repeat(8).view(shape)}, **matmul_sizes(2, 512, 8)
        ),
        Case("random sizes", rows=between(1, 40), in_features=one_of(32, 160, 544), out_features=one_of(8, 56, 72)),
        Case("no in_features", **matmul_sizes(2, 0, 16)),
        Case("no rows", **matmul_sizes(0, 64, 16)),
        Case("no columns", **matmul_sizes(2, 64, 0)),
    ],
    efficient=Case("16 rows, 512 x 256", **matmul_sizes(16, 512, 256)),
    minimum_bytes=mxfp4_bytes,
    bars=[
        Bar(
            "tensor_operations / flops_needed",
            at_least=1,
            look="Multiply on tensor cores, and use each converted weight for sixteen rows.",
            naive="one thread per output",
        ),
        Bar(
            "global_bytes / minimum", at_most=6, look="Read each weight once, and use each read of x for more columns."
        ),
        Bar("launches", at_most=2, look="Use one kernel, and at most a second one that adds partial sums."),
    ],
    flops=lambda d: 2 * d["rows"] * d["in_features"] * d["out_features"],
    bench=[
        Bench("1 row, 4096 x 4096", **matmul_sizes(1, 4096, 4096)),
        Bench("16 rows, 4096 x 4096", **matmul_sizes(16, 4096, 4096)),
        Bench("1 row, 8192 x 28672", **matmul_sizes(1, 8192, 28672)),
        Bench("16 rows, 8192 x 28672", **matmul_sizes(16, 8192, 28672)),
        Bench("64 rows, 4096 x 4096", **matmul_sizes(64, 4096, 4096)),
    ],
    torch_baseline=lambda x, bf16_weights: torch.nn.functional.linear(x, bf16_weights),
    torch_prepare=lambda w, w_scales: {"bf16_weights": mxfp4_weights(w.long(), w_scales).bfloat16()},
)

# ----------------------------------------------------------------------------------------------- fp4_block_scaled_gemm


def nvfp4_operand(q, scales):
    """Convert NVFP4 without its f32 scale to float64 [rows, columns]."""
    numbers = from_e2m1(from_pairs(q.long())).double().unflatten(-1, (-1, NVFP4_GROUP))
    return (numbers * from_e4m3(scales)[..., None]).flatten(-2)


def rising_patterns(shape, generator):
    """Draw patterns of e4m3 scales that rise along k, from 2^-6 to 256."""
    steps = torch.linspace(8, 120, shape[-1]).round().long()
    return (steps + torch.randint(0, 6, shape, generator=generator)).expand(shape)


def in_first_lane(shape, generator):
    """Draw patterns of e4m3 scales: 1 in every 32nd row, and 0 in all others."""
    return torch.where(torch.arange(shape[0])[:, None] % 32 == 0, 0x38, 0).expand(shape)


ANY_PAIR, ANY_SCALE = integers(0, 256), integers(0, E4M3_NAN)

fp4_block_scaled_gemm = Exercise(
    summary="""\
Compute y = alpha X W^T on Blackwell's tensor cores (sm_100a), with X[i, k] = e2m1(x[i, k]) * e4m3(x_scales[i, k / 16])
and W[j, k] likewise. x is [rows, in_features / 2], two patterns of e2m1 per byte, the first in its lower half; w is
[out_features, in_features / 2]. x_scales [rows, in_features / 16] and w_scales [out_features, in_features / 16] are
patterns of e4m3 from 0 to 0x7e. alpha [1] and y are f32. TMA loads tiles, tcgen05.cp copies scales to tensor memory, and
block-scaled tcgen05.mma multiplies. in_features is a multiple of 64 and not 0, rows and out_features are any numbers, and
all tensors are 16-byte aligned. y may have more than 2^31 elements, but no test is that large. With no rows or no
out_features there is nothing to do. Kernels of this exercise have run in the simulator only, never on a Blackwell
GPU.""",
    launchers="void fp4_block_scaled_gemm(const unsigned char* x, const unsigned char* w, const unsigned char* x_scales, "
    "const unsigned char* w_scales, const float* alpha, {T}* y, int rows, int in_features, int out_features, "
    "cudaStream_t stream)",
    dtypes=("f32",),
    inputs={
        "x": Input("rows in_features//2", ANY_PAIR, dtype="u8"),
        "w": Input("out_features in_features//2", ANY_PAIR, dtype="u8"),
        "x_scales": Input("rows in_features//16", ANY_SCALE, dtype="u8"),
        "w_scales": Input("out_features in_features//16", ANY_SCALE, dtype="u8"),
        "alpha": Input("1", uniform(0.001, 0.01), dtype="f32"),
    },
    outputs={"y": Output("rows out_features")},
    reference=lambda x, w, x_scales, w_scales, alpha: (
        alpha * (nvfp4_operand(x, x_scales) @ nvfp4_operand(w, w_scales).T)
    ),
    cases=[
        Case("one row, one column", **matmul_sizes(1, 64, 1)),
        Case("two rows, two mma", **matmul_sizes(2, 128, 16)),
        Case("one tile", **matmul_sizes(128, 256, 128)),
        Case("a little more than a tile", **matmul_sizes(131, 320, 137)),
        Case("in_features longer than the ring of tiles", **matmul_sizes(35, 1344, 40)),
        Case(
            "scales that rise along k",
            inputs={"x_scales": rising_patterns, "w_scales": rising_patterns},
            **matmul_sizes(17, 512, 24),
        ),
        Case("scales of 0 but in each 32nd row", inputs={"x_scales": in_first_lane}, **matmul_sizes(97, 64, 33)),
        Case("random sizes", rows=between(1, 150), in_features=one_of(64, 192, 448), out_features=between(1, 200)),
        Case("no rows", **matmul_sizes(0, 64, 64)),
        Case("no columns", **matmul_sizes(5, 64, 0)),
    ],
    efficient=Case("256 x 1024 x 256", **matmul_sizes(256, 1024, 256)),
    bars=[
        Bar("tensor_operations / flops_needed", at_least=1, look="Multiply with tcgen05.mma."),
        Bar(
            "global_bytes / minimum",
            at_most=1.7,
            look="Let a block compute at least 128 x 128 elements of y.",
            naive="tiles of 64 columns",
        ),
        Bar(
            "sectors / ideal",
            at_most=1.5,
            look="Load tiles by TMA. Let neighboring lanes load neighboring scales, and store neighboring columns of y.",
        ),
        Bar("launches", at_most=1, look="Use one kernel."),
        Bar("scratch_bytes", at_most=0, look="Allocate no memory: the kernel needs only the memory of its arguments."),
    ],
    flops=lambda d: 2 * d["rows"] * d["in_features"] * d["out_features"],
)

# -------------------------------------------------------------------------------------------------------- fp8_kv_cache


def stored_tokens(shape, generator, inputs):
    """Draw a cache of e4m3 bit patterns: finite numbers in the first lengths[b] positions, NaN after them."""
    patterns = to_e4m3(100 * torch.randn(shape, generator=generator))
    position = torch.arange(shape[2])[None, None, :, None]
    return torch.where(position < inputs["lengths"][:, None, None, None], patterns, E4M3_NAN)


def stored_scales(shape, generator, inputs):
    """Draw the scales of the stored tokens; the unused positions after them have 1e30."""
    scales = 0.005 + 0.01 * torch.rand(shape, generator=generator)
    return torch.where(torch.arange(shape[2]) < inputs["lengths"][:, None, None], scales, 1e30)


def decode_step(q, k_new, v_new, lengths, k_cache, v_cache, k_scales, v_scales, scale):
    """Quantize and append the new token of each sequence, then attend to all its tokens."""
    kept = {}
    sequences = torch.arange(q.shape[0], device=q.device)
    for name, new, cache, scales in (("k", k_new, k_cache, k_scales), ("v", v_new, v_cache, v_scales)):
        quantized = fp8_groups(new, new.shape[-1])
        cache, scales = cache.clone(), scales.clone()
        cache[sequences, :, lengths] = quantized["q"]
        scales[sequences, :, lengths] = quantized["scales"].squeeze(-1).to(scales.dtype)
        kept[f"{name}_cache"], kept[f"{name}_scales"] = cache, scales
    group = q.shape[1] // k_new.shape[1]
    after = torch.arange(k_cache.shape[2], device=q.device) > lengths[:, None, None]  # [batch, 1, max_length]
    keys, values = (
        (from_e4m3(kept[f"{name}_cache"]) * kept[f"{name}_scales"][..., None])
        .masked_fill(after[..., None], 0.0)
        .repeat_interleave(group, dim=1)
        for name in ("k", "v")
    )
    scores = (torch.einsum("bhd,bhnd->bhn", q, keys) * scale).masked_fill(after, -torch.inf)
    kept["out"] = torch.einsum("bhn,bhnd->bhd", scores.softmax(dim=-1), values)
    return kept


def decode_sizes(batch, heads, kv_heads, head_dim, length, splits=1, **more):
    """Return the sizes of a decode step, before which each sequence has at most ``length`` tokens."""
    sizes = {"batch": batch, "heads": heads, "kv_heads": kv_heads, "head_dim": head_dim, "length": length}
    return {**sizes, "max_length": length + 3, "splits": splits, "scale": head_dim**-0.5, **more}


def decode_bytes(d):
    """Return the minimum bytes of a decode step: cached tokens with their scales, queries and outputs, each once."""
    tokens = d["batch"] * d["kv_heads"] * (d["length"] + 1)
    return 2 * tokens * (d["head_dim"] + 4) + 4 * d["batch"] * d["head_dim"] * (d["heads"] + d["kv_heads"])


def torch_bf16_cache(q, k_cache, v_cache, k_scales, v_scales, lengths):
    """Convert the cache to bf16 for torch. All sequences must have the same length."""
    end = int(lengths.max())
    keys, values = (
        (from_e4m3(cache[:, :, :end]) * scales[:, :, :end, None]).bfloat16()
        for cache, scales in ((k_cache, k_scales), (v_cache, v_scales))
    )
    return {"queries": q.bfloat16()[:, :, None], "keys": keys, "values": values}


def torch_bf16_decode(queries, keys, values):
    """Run torch's attention to the tokens of a bf16 cache, without the new token."""
    out = torch.nn.functional.scaled_dot_product_attention(queries, keys, values, enable_gqa=True)
    return {"out": out[:, :, 0]}


ANY_LENGTHS = {"lengths": integers(0, "length + 1")}
STORED = {"dtype": "u8", "inout": True, "start": stored_tokens}
SCALES = {"dtype": "f32", "inout": True, "start": stored_scales, "tolerance": 1e-6}

fp8_kv_cache = Exercise(
    summary="""\
Decode one token of each sequence with a KV cache in e4m3. Sequence b has lengths[b] tokens. First quantize its new key
and value, k_new and v_new [batch, kv_heads, head_dim], with one f32 scale for each head as in fp8_quantize: scale =
amax / 448 with amax at least 1e-10, numbers = x * (448 / amax). Store them at position lengths[b] of k_cache, v_cache
[batch, kv_heads, max_length, head_dim] and k_scales, v_scales [batch, kv_heads, max_length]. Then out = softmax(scale *
q k^T) v over the lengths[b] + 1 tokens, the new one as it was stored. Query head h uses key head h / (heads / kv_heads),
and at most 8 query heads share one. head_dim is 4, 8, 64 or 128, lengths[b] < max_length, k_new and v_new are finite,
and all tensors are 16-byte aligned. Positions after the new one may hold anything, even NaN, and must not change. `parts` f32
[splits, batch * heads, head_dim + 2] is working memory, for kernels that divide the keys of a sequence among `splits`
blocks. The caches may have more than 2^31 elements, but no test is that large. With batch = 0 there is nothing to do. The
goal on a GPU is half the time of a bf16 cache.""",
    launchers="void fp8_kv_cache(const {T}* q, const {T}* k_new, const {T}* v_new, const int* lengths, "
    "unsigned char* k_cache, unsigned char* v_cache, float* k_scales, float* v_scales, float* parts, {T}* out, "
    "int batch, int heads, int kv_heads, int head_dim, int max_length, int splits, float scale, cudaStream_t stream)",
    dtypes=("bf16",),
    inputs={
        "q": Input("batch heads head_dim", normal(scale=2.0)),
        "k_new": Input("batch kv_heads head_dim", normal(channel_offset=1.0)),
        "v_new": Input("batch kv_heads head_dim", normal(channel_offset=1.0)),
        "lengths": Input("batch", constant("length"), dtype="i32"),
    },
    outputs={
        "k_cache": Output("batch kv_heads max_length head_dim", **STORED),
        "v_cache": Output("batch kv_heads max_length head_dim", **STORED),
        "k_scales": Output("batch kv_heads max_length", **SCALES),
        "v_scales": Output("batch kv_heads max_length", **SCALES),
        "out": Output("batch heads head_dim"),
        "parts": Output("splits batch*heads head_dim+2", dtype="f32", scratch=True),
    },
    reference=decode_step,
    cases=[
        Case("the first token", **decode_sizes(1, 1, 1, 64, 0)),
        Case("one earlier token, a group of two", **decode_sizes(2, 2, 1, 128, 1)),
        Case("16 tokens, a whole tile", **decode_sizes(1, 4, 2, 64, 15)),
        Case("sequences of different lengths", inputs=ANY_LENGTHS, **decode_sizes(5, 8, 2, 64, 71)),
        Case("a group of eight", **decode_sizes(2, 8, 1, 128, 67)),
        Case("keys in three parts", inputs=ANY_LENGTHS, **decode_sizes(3, 4, 1, 128, 150, splits=3)),
        Case("more parts than tiles", **decode_sizes(1, 3, 3, 64, 20, splits=7)),
        Case("keys in eleven parts", **decode_sizes(1, 2, 1, 64, 650, splits=11)),
        Case("head_dim 4", inputs=ANY_LENGTHS, **decode_sizes(2, 6, 2, 4, 37)),
        Case("head_dim 8, keys in two parts", inputs=ANY_LENGTHS, **decode_sizes(2, 6, 2, 8, 71, splits=2)),
        Case("the new key is zero", inputs={"k_new": constant(0.0)}, **decode_sizes(1, 2, 1, 64, 4)),
        Case(
            "the new token has the largest score",
            inputs={"k_new": normal(scale=40.0)},
            **decode_sizes(2, 4, 2, 64, 130),
        ),
        Case(
            "random sizes",
            inputs=ANY_LENGTHS,
            batch=between(1, 3),
            heads=one_of(4, 8, 16),
            kv_heads=one_of(2, 4),
            head_dim=one_of(8, 64, 128),
            length=between(1, 90),
            max_length=93,
            splits=between(1, 4),
            scale=0.1,
        ),
        Case("no sequence", **decode_sizes(0, 2, 1, 64, 5)),
    ],
    efficient=Case("4 sequences of 200", **decode_sizes(4, 8, 2, 64, 200, splits=2)),
    minimum_bytes=decode_bytes,
    bars=[
        Bar(
            "global_bytes / minimum",
            at_most=1.6,
            look="Read each key and value once for all query heads of its group.",
            naive="a block for each query head",
        ),
        Bar("sectors / ideal", at_most=1.6, look="Let neighboring lanes read neighboring bytes of a key."),
        Bar("launches", at_most=3, look="Use at most three kernels: append, attend, and combine the parts."),
    ],
    bench=[
        Bench("64 sequences of 4096", **decode_sizes(64, 32, 8, 128, 4096, splits=3)),
        Bench("256 sequences of 2048", **decode_sizes(256, 32, 8, 128, 2048, splits=3)),
        Bench("1 sequence of 32768", **decode_sizes(1, 32, 8, 128, 32768, splits=48)),
    ],
    torch_baseline=torch_bf16_decode,
    torch_prepare=torch_bf16_cache,
)
