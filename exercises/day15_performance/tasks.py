"""The tasks of day 15."""

import math

import torch

from grader.course.task import Bar, Bench, Case, Exercise, Input, Output, between, constant, normal, one_of

COALESCED = Bar("sectors / ideal", at_most=1.02, look="Let neighboring threads access neighboring addresses.")
NO_SCRATCH = Bar(
    "scratch_bytes", at_most=0, look="Allocate nothing: use shared memory and the buffers in the parameters."
)


# ------------------------------------------------------------------------------------------------------- pipelined_norm

pipelined_norm = Exercise(
    summary="""\
Compute the RMSNorm of each row, out = x / sqrt(mean(x^2) + eps) * weight, in f32, with at most max_blocks blocks that
each process many rows. The given kernel loads a row, waits for it, reduces it, stores it, and only then loads the next
row; and it reads weight again for each row. Copy rows asynchronously (cp.async: __pipeline_memcpy_async or
cuda::pipeline) into at least two buffers in shared memory, so that the copy of the next row is in flight while you wait
for the current one, and read weight once per block. cols is a multiple of 4, at most 8192; x, weight and out are
16-byte aligned; max_blocks is at least 1. With no rows or no columns write nothing.""",
    launchers=(
        "void pipelined_norm(const float* x, const float* weight, float* out, int rows, int cols, float eps, "
        "int max_blocks, cudaStream_t stream)"
    ),
    inputs={
        "x": Input("rows cols", normal(scale=2.0, channel_offset=1.0)),
        "weight": Input("cols", normal(mean=1.0, scale=0.3)),
    },
    outputs={"out": Output("rows cols")},
    reference=lambda x, weight, eps: x * torch.rsqrt(x.square().mean(dim=-1, keepdim=True) + eps) * weight,
    cases=[
        Case("no row", rows=0, cols=8, eps=1e-5, max_blocks=4),
        Case("no column", rows=3, cols=0, eps=1e-5, max_blocks=4),
        Case("one row", rows=1, cols=4, eps=1e-5, max_blocks=3),
        Case("two rows, one block", rows=2, cols=128, eps=1e-5, max_blocks=1),
        Case("three rows, one block", rows=3, cols=1028, eps=1e-5, max_blocks=1),
        Case("one row per block", rows=5, cols=252, eps=1e-5, max_blocks=5),
        Case("more blocks than rows", rows=5, cols=516, eps=1e-6, max_blocks=8),
        Case("some blocks process an extra row", rows=17, cols=1000, eps=1e-5, max_blocks=4),
        Case("the widest rows", rows=5, cols=8192, eps=1e-5, max_blocks=2),
        Case(
            "rows of very different magnitudes",
            rows=13,
            cols=260,
            eps=1e-5,
            max_blocks=2,
            inputs={
                "x": lambda shape, generator: (
                    torch.randn(shape, generator=generator) * 4.0 ** torch.arange(shape[0])[:, None]
                ),
            },
        ),
        Case("random sizes", rows=between(2, 20), cols=one_of(64, 380, 1300, 2052), eps=1e-5, max_blocks=between(1, 6)),
    ],
    efficient=Case("96 rows of 1024, 4 blocks", rows=96, cols=1024, eps=1e-5, max_blocks=4),
    bars=[
        Bar(
            "prefetched_bytes / (rows * cols * item)",
            at_least=0.9,
            look="Commit the copy of the next row before you wait for the current one, and let it stay pending "
            "(__pipeline_wait_prior(1)).",
            naive="waits for all copies, including the next row's",
        ),
        Bar(
            "global_bytes / minimum",
            at_most=1.1,
            look="Read weight once per block, and each row once.",
            naive="weight is read again for each row",
        ),
        Bar("blocks / max_blocks", at_most=1, look="Launch at most max_blocks blocks."),
        COALESCED,
        Bar("bank_conflict_ways", at_most=2.0, look="Let neighboring threads access neighboring 16 bytes of a row."),
        Bar("launches", at_most=1),
        NO_SCRATCH,
    ],
    flops=lambda d: 4 * d["rows"] * d["cols"],
    bench=[
        Bench("small", rows=64, cols=1024, eps=1e-5, max_blocks=64),
        Bench("large", rows=16384, cols=4096, eps=1e-5, max_blocks=528),
    ],
    torch_baseline=lambda x, weight, eps: torch.nn.functional.rms_norm(x, (x.shape[-1],), weight, eps),
)


# ------------------------------------------------------------------------------------------------------ single_pass_sum

SLICE = 4096


def slices_of(dims):
    """Return the number of slices of x; the last one may be shorter."""
    return -(-dims["n"] // SLICE)


def slice_sums(x):
    """Return the sum of each slice, the sum of all slices, and the counter, which is 0 again."""
    padded = torch.nn.functional.pad(x, (0, -len(x) % SLICE))
    partials = padded.view(-1, SLICE).sum(dim=1)
    return {"out": partials.sum().view(1), "partials": partials, "counter": torch.zeros(1, dtype=torch.int64)}


single_pass_sum = Exercise(
    summary="""\
Compute the sum of n floats, out[0], in one launch. partials[i] is the sum of slice i, elements 4096 i to 4096 i + 4095,
and out is the sum of partials in an order that depends on n only: the same bits in each run and on each GPU. So do not
use atomicAdd of floats. counter is 0 at the start of the launch and must be 0 at its end, for the next launch or the
next replay of a graph. Either the last block to finish adds the partials, or all blocks synchronize first (cooperative
groups; the simulator runs such a grid with up to about 4,000 threads). With n = 0 the sum is 0, and there are no
partials. x is 16-byte aligned.""",
    launchers="void single_pass_sum(const float* x, float* out, float* partials, int* counter, int n, cudaStream_t "
    "stream)",
    inputs={"x": Input("n", normal(mean=0.5))},
    outputs={
        "out": Output("1"),
        "partials": Output("slices"),
        "counter": Output("1", dtype="i32", inout=True, start=constant(0)),
    },
    scalars={"slices": slices_of},
    reference=slice_sums,
    cases=[
        Case("no elements", n=0),
        Case("one element", n=1),
        Case("two elements", n=2),
        Case("31 elements, one less than a warp", n=31),
        Case("a prime", n=1009),
        Case("one less than two slices", n=8191),
        Case("a slice", n=4096),
        Case("one more than a slice", n=4097),
        Case("a prime number of slices", n=7 * 4096),
        Case("many slices, ragged", n=150_001),
        Case("more slices than a block has threads", n=1200 * 4096 + 5, inputs={"x": constant(0.25)}),
        Case(
            "one large element among small ones",
            n=9000,
            inputs={
                "x": lambda shape: torch.cat([torch.full((shape[0] - 1,), 0.125), torch.tensor([3000.0])]),
            },
        ),
        Case("random size", n=between(2, 60_000)),
    ],
    efficient=Case("200,000 elements", n=200_000),
    bars=[
        Bar(
            "launches",
            at_most=1,
            look="Use one kernel: the last block to finish knows that all partials are complete, and adds them.",
        ),
        Bar(
            "submissions",
            at_most=1,
            look="Reset the counter in the kernel, not with cudaMemsetAsync.",
            naive="the counter is reset by a memset before each launch",
        ),
        Bar(
            "atomics / blocks",
            at_most=1,
            look="Let one thread per block increment the counter.",
            naive="every thread increments the counter",
        ),
        Bar("global_bytes / minimum", at_most=1.02, look="Read x once, and let only one block read partials."),
        COALESCED,
        NO_SCRATCH,
    ],
    flops=lambda d: d["n"],
    bench=[Bench("small", n=1 << 20), Bench("large", n=1 << 27)],
    torch_baseline=lambda x: x.sum(),
)


# --------------------------------------------------------------------------------------------------------- graph_decode


def decode(q, k, v, k_cache, v_cache, prompt, steps, scale):
    """For each step, append the token's key and value to the caches, and attend to all tokens so far."""
    k_cache, v_cache = k_cache.clone(), v_cache.clone()
    k_cache[prompt : prompt + steps], v_cache[prompt : prompt + steps] = k, v
    out = torch.zeros_like(q)
    for step in range(steps):
        known = prompt + step + 1
        weights = torch.softmax(torch.einsum("hd,khd->hk", q[step], k_cache[:known]) * scale, dim=-1)
        out[step] = torch.einsum("hk,khd->hd", weights, v_cache[:known])
    return {"out": out, "k_cache": k_cache, "v_cache": v_cache, "length": torch.tensor([prompt + steps])}


graph_decode = Exercise(
    summary="""\
Compute attention for `steps` tokens, one after another, with a CUDA graph that is captured once and launched `steps`
times. Each step appends k[step] and v[step] to the caches, which hold `prompt` tokens at first, and lets q[step] attend
to all tokens so far. At the end `length` must hold prompt + steps. Before that it may hold anything, and the steps may
use it. The given code has one fault. Find it from the report, and correct it. Keep one graph of one step, and return
nothing to the host: in a real decode only the device knows the next token. prompt or steps may be 0, head_dim is at
most 128, and there is at least one head.""",
    launchers=(
        "void graph_decode(const float* q, const float* k, const float* v, float* k_cache, float* v_cache, float* "
        "out, int* length, "
        "int prompt, int steps, int heads, int head_dim, float scale, cudaStream_t stream)"
    ),
    inputs={name: Input("steps heads head_dim", normal(channel_offset=1.0)) for name in ("q", "k", "v")},
    outputs={
        "k_cache": Output("capacity heads head_dim", inout=True),
        "v_cache": Output("capacity heads head_dim", inout=True),
        "out": Output("steps heads head_dim"),
        "length": Output("1", dtype="i32"),
    },
    scalars={"capacity": lambda d: d["prompt"] + d["steps"] + 2, "scale": lambda d: 1 / math.sqrt(d["head_dim"])},
    reference=decode,
    cases=[
        Case("no step", prompt=5, steps=0, heads=2, head_dim=64),
        Case("one step", prompt=3, steps=1, heads=2, head_dim=32),
        Case("one step, no prompt", prompt=0, steps=1, heads=1, head_dim=64),
        Case("two steps", prompt=7, steps=2, heads=3, head_dim=64),
        Case("eleven steps, no prompt", prompt=0, steps=11, heads=1, head_dim=128),
        Case("head_dim 4", prompt=4, steps=3, heads=2, head_dim=4),
        Case("head_dim 8", prompt=4, steps=3, heads=2, head_dim=8),
        Case("an odd head_dim", prompt=4, steps=3, heads=2, head_dim=37),
        Case("many steps", prompt=13, steps=29, heads=2, head_dim=40),
        Case(
            "random sizes", prompt=between(0, 40), steps=between(2, 6), heads=between(1, 4), head_dim=one_of(16, 64, 96)
        ),
    ],
    efficient=Case("32 steps", prompt=64, steps=32, heads=4, head_dim=64),
    bars=[
        Bar("graphs", at_most=1, look="Capture and instantiate one graph: instantiation takes longer than a step."),
        Bar(
            "submissions - steps",
            at_least=0,
            look="Capture one step, not several: a graph of several steps would fix their number in advance.",
        ),
        Bar("submissions - steps", at_most=2, look="Launch the graph once per step."),
        COALESCED,
        NO_SCRATCH,
    ],
    minimum_bytes=lambda d: 8 * d["heads"] * d["head_dim"] * d["steps"] * (d["prompt"] + (d["steps"] + 1) / 2),
    flops=lambda d: 4 * d["heads"] * d["head_dim"] * d["steps"] * (d["prompt"] + (d["steps"] + 1) / 2),
)
