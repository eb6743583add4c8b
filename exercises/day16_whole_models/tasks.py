"""The tasks of day 16."""

import dataclasses

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


def second_half(
    x, attention, norm_weight, norm_bias, up, up_bias, down, down_bias, hidden, feed_forward, eps, parallel
):
    """Return x + attention + mlp(norm(r)), with r = x if ``parallel``, otherwise r = x + attention."""
    read = x if parallel else x + attention
    y = torch.nn.functional.layer_norm(read, (hidden,), norm_weight, norm_bias, eps) if hidden else read
    inside = torch.nn.functional.gelu(y @ up.T + up_bias)
    return x + attention + inside @ down.T + down_bias


def block(rows, hidden, feed_forward, parallel, eps=1e-5):
    """Return the dimensions of the tensors of a test case, by name."""
    return dict(rows=rows, hidden=hidden, feed_forward=feed_forward, parallel=parallel, eps=eps)


def weight_bytes(d):
    """Return the minimum bytes: every weight once, and three vectors per row (x, attention and out)."""
    c, f = d["hidden"], d["feed_forward"]
    return 4 * (2 * c * f + 3 * c + f + 3 * d["rows"] * c)


neox_parallel_residual = Exercise(
    summary="""\
Fix the second half of a GPT-NeoX block: out = x + attention + mlp(norm(r)), with mlp(y) = down gelu(up y + up_bias) +
down_bias, the exact GELU, and norm a LayerNorm with norm_weight, norm_bias and eps. config.json's
use_parallel_residual, here `parallel`, selects r: x in the parallel residual, x + attention in the serial one. The
given kernel has one fault. Find it from the report, and correct it. All tensors are f32. There is any number of rows; a
row of hidden and a row of feed_forward fit into shared memory together. With no rows, return at once.""",
    launchers="void neox_parallel_residual(const float* x, const float* attention, const float* norm_weight, "
    "const float* norm_bias, const float* up, const float* up_bias, const float* down, const float* down_bias, "
    "float* out, int rows, int hidden, int feed_forward, float eps, bool parallel, cudaStream_t stream)",
    inputs={
        "x": Input("rows hidden", normal(mean=0.5)),
        "attention": Input("rows hidden", normal(channel_offset=1.0)),
        "norm_weight": Input("hidden", normal(mean=1.0, scale=0.3)),
        "norm_bias": Input("hidden", normal(scale=0.5)),
        "up": Input("feed_forward hidden", normal(scale=0.3)),
        "up_bias": Input("feed_forward", normal()),
        "down": Input("hidden feed_forward", normal(scale=0.3)),
        "down_bias": Input("hidden", normal()),
    },
    outputs={"out": Output("rows hidden")},
    reference=second_half,
    trivial=[lambda x, attention: x + attention],
    cases=[
        Case("serial, one row", **block(1, 64, 256, False)),
        Case("serial, odd sizes", **block(3, 67, 129, False)),
        Case("parallel, one row", **block(1, 64, 256, True)),
        Case("parallel, odd sizes", **block(5, 129, 67, True)),
        Case("parallel, a large mean", inputs={"x": normal(mean=300.0)}, **block(2, 128, 64, True)),
        Case("a large eps", **block(2, 31, 64, True, eps=0.5)),
        Case("two channels", **block(2, 2, 3, False)),
        Case(
            "random sizes",
            **block(between(1, 4), between(2, 140), between(1, 200), one_of(False, True)),
        ),
        Case("no row", **block(0, 64, 32, True)),
    ],
    efficient=Case("one row, 128 x 512", **block(1, 128, 512, True)),
    minimum_bytes=weight_bytes,
    bars=[
        Bar("global_bytes / minimum", at_most=1.15, look="Read each weight once."),
        Bar(
            "sectors / ideal",
            at_most=1.15,
            look="Let the lanes of a warp read neighboring elements of a row of the weights.",
        ),
        Bar("launches", at_most=1, look="Keep the intermediate values of the MLP in shared memory."),
        Bar("scratch_bytes", at_most=0, look="Keep the intermediate values of the MLP in shared memory."),
    ],
    flops=lambda d: 4.0 * d["rows"] * d["hidden"] * d["feed_forward"],
)


# --------------------------------------------------------------------------------------------------------- qwen2_decode


def pages_in_use(shape, dims, inputs, generator):
    """Draw a block table: each sequence has random pages of its own, never page 0; unused entries are -1."""
    tables = 1 + torch.randperm(max(dims["pages"] - 1, 0), generator=generator)[: shape[0] * shape[1]].view(shape)
    needed = -(-inputs["lengths"] // dims["page_size"])
    return torch.where(torch.arange(shape[1]) < needed[:, None], tables, -1)


def turned(x, positions, theta):
    """Apply RoPE with the rotate-half pairing to x [batch, heads, head_dim]."""
    half = x.shape[-1] // 2
    angle = positions[:, None] * theta ** (-torch.arange(half, dtype=torch.float64) / half)
    cos, sin = angle.cos()[:, None], angle.sin()[:, None]
    first, second = x.split(half, dim=-1)
    return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)


def normed(x, weight, eps):
    """Return the RMSNorm of the last axis of x, times the weight."""
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * weight


def one_step(
    ids, lengths, block_tables, table, norm_1, qkv_weight, qkv_bias, out_weight, norm_2, gate_up_weight, down_weight, last_norm,
    k_cache, v_cache, heads, kv_heads, head_dim, page_size, layers, eps, theta,
):  # fmt: skip
    """Return the logits and the caches after one token of each sequence has passed all layers."""
    k_cache, v_cache, x = k_cache.clone(), v_cache.clone(), table[ids]
    for i in range(layers):
        rows = normed(x, norm_1[i], eps) @ qkv_weight[i].T + qkv_bias[i]
        q, k, v = rows.view(-1, heads + 2 * kv_heads, head_dim).split([heads, kv_heads, kv_heads], dim=1)
        q, k = turned(q, lengths - 1, theta), turned(k, lengths - 1, theta)
        attended = torch.zeros_like(q)
        for b, length in enumerate(lengths.tolist()):
            at = torch.arange(length)
            page, row = block_tables[b, at // page_size], at % page_size
            k_cache[i, page[-1], :, row[-1]], v_cache[i, page[-1], :, row[-1]] = k[b], v[b]
            keys, values = (
                cache[i, page, :, row].repeat_interleave(heads // kv_heads, dim=1) for cache in (k_cache, v_cache)
            )
            shares = torch.softmax(torch.einsum("hd,nhd->hn", q[b], keys) * head_dim**-0.5, dim=-1)
            attended[b] = torch.einsum("hn,nhd->hd", shares, values)
        x = x + attended.flatten(1) @ out_weight[i].T
        gate, up = (normed(x, norm_2[i], eps) @ gate_up_weight[i].T).chunk(2, dim=-1)
        x = x + (torch.nn.functional.silu(gate) * up) @ down_weight[i].T
    return {"logits": normed(x, last_norm, eps) @ table.T, "k_cache": k_cache, "v_cache": v_cache}


def model(layers=1, batch=1, longest=5, heads=4, kv_heads=2, head_dim=8, hidden=24, feed_forward=40, **more):
    """Return the sizes of a case; ``longest`` is the maximum number of keys of a sequence, including the new one."""
    sizes = dict(layers=layers, batch=batch, longest=longest, heads=heads, kv_heads=kv_heads, head_dim=head_dim)
    sizes |= dict(hidden=hidden, feed_forward=feed_forward, vocabulary=37, page_size=4, eps=1e-6, theta=10000.0)
    return {**sizes, **more}


def step_bytes(d):
    """Return the bytes of a step: every weight, an embedding row per token, and ``longest`` keys and values per sequence."""
    c, f, q, kv = d["hidden"], d["feed_forward"], d["heads"] * d["head_dim"], d["kv_heads"] * d["head_dim"]
    layer = 2 * c + (c + 1) * (q + 2 * kv) + c * q + 3 * c * f + 2 * d["batch"] * d["longest"] * kv
    return 4 * (d["layers"] * layer + c + d["vocabulary"] * (c + d["batch"]) + d["batch"] * c)


FULL = {"lengths": constant("longest")}

qwen2_decode = Exercise(
    summary="""\
Compute one decode step of a whole Qwen2 in f32. The newest token of each sequence goes through all layers, its keys and
values go to the paged caches, and the result is logits [batch, vocabulary]. The kernels of all operators are given and
correct. Three parts are missing. First, the position of the new token (lengths includes it). Second, its place in the
cache [layers, pages, kv_heads, page_size, head_dim], where block_tables[b, i] is the page of positions i * page_size
and up. Third, the launches of each layer in order, all in the given stream: x = x + attention(norm_1(x)), then x = x +
mlp(norm_2(x)); at the end the last norm, and the embedding table as the output layer. q, k and v have biases;
attention's output layer and the MLP have none. `work` has room for all intermediate tensors, and nothing goes through
the host. With no layers, the logits are those of the normalized embedding; with no sequences, return at once.""",
    launchers="void qwen2_decode(const int* ids, const int* lengths, const int* block_tables, const float* table, "
    "const float* norm_1, "
    "const float* qkv_weight, const float* qkv_bias, const float* out_weight, const float* norm_2, const float* "
    "gate_up_weight, "
    "const float* down_weight, const float* last_norm, float* k_cache, float* v_cache, float* logits, float* work, "
    "int batch, "
    "int layers, int vocabulary, int hidden, int heads, int kv_heads, int head_dim, int feed_forward, int pages, int "
    "page_size, "
    "int max_pages, float eps, float theta, cudaStream_t stream)",
    inputs={
        "ids": Input("batch", integers(0, "vocabulary"), dtype="i32"),
        "lengths": Input("batch", integers(1, "longest + 1"), dtype="i32"),
        "block_tables": Input("batch max_pages", pages_in_use, dtype="i32"),
        "table": Input("vocabulary hidden", normal()),
        "norm_1": Input("layers hidden", normal(mean=1.0, scale=0.3)),
        "qkv_weight": Input("layers (heads+2*kv_heads)*head_dim hidden", normal(scale=0.3)),
        "qkv_bias": Input("layers (heads+2*kv_heads)*head_dim", normal()),
        "out_weight": Input("layers hidden heads*head_dim", normal(scale=0.3)),
        "norm_2": Input("layers hidden", normal(mean=1.0, scale=0.3)),
        "gate_up_weight": Input("layers 2*feed_forward hidden", normal(scale=0.3)),
        "down_weight": Input("layers hidden feed_forward", normal(scale=0.2)),
        "last_norm": Input("hidden", normal(mean=1.0, scale=0.5)),
    },
    outputs={
        "logits": Output("batch vocabulary"),
        "k_cache": Output("layers pages kv_heads page_size head_dim", inout=True),
        "v_cache": Output("layers pages kv_heads page_size head_dim", inout=True),
        "work": Output("batch*(3*hidden+2*(heads+kv_heads)*head_dim+3*feed_forward)", scratch=True),
    },
    scalars={
        "max_pages": lambda d: -(-d["longest"] // d["page_size"]),
        "pages": lambda d: d["batch"] * (-(-d["longest"] // d["page_size"]) + 1),
    },
    reference=one_step,
    cases=[
        Case("no layers", **model(layers=0)),
        Case("one layer, the first token", **model(longest=1)),
        Case("one layer, some tokens before it", inputs=FULL, **model()),
        Case("two layers, the first token", **model(layers=2, longest=1)),
        Case("two layers, the new token begins a page", inputs=FULL, **model(layers=2, longest=9)),
        Case("three sequences of different lengths", **model(layers=2, batch=3, longest=11)),
        Case("groups of 7", inputs=FULL, **model(longest=6, heads=7, kv_heads=1)),
        Case(
            "every query head has its own key/value head, odd sizes",
            **model(1, 2, 5, 3, 3, 6, hidden=33, feed_forward=131),
        ),
        Case("head_dim 128", **model(longest=3, heads=2, kv_heads=1, head_dim=128, hidden=16)),
        Case("a large eps, another theta", inputs=FULL, **model(eps=0.5, theta=50.0)),
        Case(
            "random sizes",
            **model(between(1, 2), between(1, 2), between(1, 9), 4, one_of(1, 2, 4), one_of(8, 10), between(8, 40)),
        ),
        Case("no sequence", **model(batch=0)),
    ],
    efficient=Case("two layers, 2 sequences", inputs=FULL, **model(2, 2, 12, hidden=32, feed_forward=64)),
    minimum_bytes=step_bytes,
    bars=[
        Bar(
            "global_bytes / minimum",
            at_most=7,
            look="Compute each linear layer once, and only for the rows of the tokens.",
        ),
        Bar(
            "launches - 16 * layers",
            at_most=4,
            look="Run all sequences in one launch: batch is a dimension of the grid.",
        ),
        Bar(
            "submissions - launches",
            at_most=0,
            look="Do not clear or copy buffers: every kernel writes all of its output.",
            naive="buffers that are overwritten are cleared first in every layer",
        ),
        Bar("scratch_bytes", at_most=0, look="Allocate nothing: `work` has room for all intermediate tensors."),
    ],
    flops=lambda d: 2.0 * d["batch"] * (step_bytes(d) / 4 - d["hidden"]),
)


# --------------------------------------------------------------------------------------------------------- fits_in_fp16


def gated_half(x, norm_weight, gate_up, down, hidden, eps):
    """Return x + down(silu(gate(y)) * up(y)) with y = rms_norm(x)."""
    if not hidden:
        return x
    gate, up = (normed(x, norm_weight, eps) @ gate_up.T).chunk(2, dim=-1)
    return x + (torch.nn.functional.silu(gate) * up) @ down.T


def half_block(rows, hidden, feed_forward, eps=1e-6):
    """Return the dimensions of the tensors of a test case, by name."""
    return dict(rows=rows, hidden=hidden, feed_forward=feed_forward, eps=eps)


def one_channel_of_thousands(shape, generator):
    """Draw rows of small numbers in which one channel is 3,000, as in large models."""
    x = torch.randn(shape, generator=generator)
    x[:, shape[1] // 3] = 3000.0
    return x


def large_ones_first(shape, generator):
    """Draw weights of one sign per row: the first 32 terms of a sum exceed 1,024, so f16 loses each later term."""
    sizes = torch.where(torch.arange(shape[1]) < 32, 24.0, 0.0065)
    signs = torch.randint(0, 2, (shape[0], 1), generator=generator) * 2 - 1
    return signs * sizes * (0.9 + 0.2 * torch.rand(shape, generator=generator))


fits_in_fp16 = Exercise(
    summary="""\
Fix the second half of a Qwen2 block in f16, out = x + down(silu(gate(y)) * up(y)) with y = x / sqrt(mean(x^2) + eps) *
norm_weight. gate and up are the two halves of gate_up, and no layer has a bias. The kernel keeps all intermediate
values in f16, so some rows are infinite, and others have larger errors than rounding the result to f16 explains.
transformers' own f16 block, with sums in f32, has relative errors of 1e-4 to 1e-3 where it does not overflow. The
kernel has four kinds of intermediate values. Widen to f32 those that need it, and no others: wider values take more
bytes. Any rows; a row of hidden and of feed_forward fits into shared memory; out fits into f16.""",
    launchers="void fits_in_fp16(const __half* x, const __half* norm_weight, const __half* gate_up, const __half* "
    "down, __half* out, "
    "int rows, int hidden, int feed_forward, float eps, cudaStream_t stream)",
    dtypes=("f16",),
    inputs={
        "x": Input("rows hidden", normal(channel_offset=1.0)),
        "norm_weight": Input("hidden", normal(mean=1.0, scale=0.3)),
        "gate_up": Input("2*feed_forward hidden", normal(scale=0.2)),
        "down": Input("hidden feed_forward", normal(scale=0.2)),
    },
    outputs={"out": Output("rows hidden")},
    reference=gated_half,
    trivial=[lambda x: x],
    tolerance={"f16": 1.5e-3},
    cases=[
        Case("ordinary numbers", **half_block(2, 64, 96)),
        Case("x of magnitude 300", inputs={"x": normal(scale=300.0)}, **half_block(2, 64, 48)),
        Case("one channel of 3,000", inputs={"x": one_channel_of_thousands}, **half_block(2, 96, 32)),
        Case("x of magnitude 1e-4, a tiny eps", inputs={"x": normal(scale=1e-4)}, **half_block(1, 64, 32, 1e-12)),
        Case(
            "a gate and an up of hundreds",
            inputs={"gate_up": normal(scale=25.0), "down": normal(scale=1e-3)},
            **half_block(2, 128, 64),
        ),
        Case(
            "large products first, then small ones",
            inputs={"x": uniform(0.5, 1.5), "gate_up": uniform(0.02, 0.1), "down": large_ones_first},
            **half_block(1, 128, 1024),
        ),
        Case("odd sizes", **half_block(3, 67, 129)),
        Case("two channels", **half_block(2, 2, 3)),
        Case("random sizes", **half_block(between(1, 3), between(2, 140), between(1, 150))),
        Case("no row", **half_block(0, 64, 32)),
    ],
    efficient=Case("one row, 128 x 512", **half_block(1, 128, 512)),
    minimum_bytes=lambda d: 2 * (3 * d["hidden"] * d["feed_forward"] + d["hidden"] + 2 * d["rows"] * d["hidden"]),
    bars=[
        Bar("global_bytes / minimum", at_most=1.15, look="Read each weight once."),
        Bar(
            "shared_bytes / (rows * hidden * feed_forward)",
            at_most=9,
            look="Store y in f16: it is read twice per feature.",
        ),
        Bar("launches", at_most=1, look="Keep the intermediate values of the MLP in shared memory."),
        Bar("scratch_bytes", at_most=0, look="Keep the intermediate values of the MLP in shared memory."),
    ],
    flops=lambda d: 6.0 * d["rows"] * d["hidden"] * d["feed_forward"],
)


# --------------------------------------------------------------------------------------------------- persistent_counters


def mlp_of_rows(x, up, down):
    """Return down silu(up x) for each row of x."""
    return torch.nn.functional.silu(x @ up.T) @ down.T


def rows_of(rows, hidden, feed_forward, **more):
    """Return the dimensions of the tensors of a test case, by name."""
    return dict(rows=rows, hidden=hidden, feed_forward=feed_forward, **more)


def all_once(d):
    """Return the minimum bytes: each weight and each number of x and out once, those of inside twice."""
    return 4 * (2 * d["hidden"] * d["feed_forward"] + 2 * d["rows"] * (d["hidden"] + d["feed_forward"]))


persistent_counters = Exercise(
    summary="""\
Compute a two-layer MLP in one launch: inside = silu(up x) and out = down inside, for each row of x. Launch one block
per multiprocessor. The blocks take tiles from a queue in global memory until it is empty. A tile of out waits for the
tiles of inside that it reads, and for no others: a counter per band of rows counts those that are finished. Do not
synchronize the whole grid. llmk/persistent.cuh has compute_tile for a tile of 4 rows and 32 columns; write the queue,
the waits, the counters and the launch. `inside` [rows, feed_forward] is working memory for the first layer. `state` is
rows + 1 words of uninitialized memory for the queue and the counters, so clear it before each launch. There is any
number of rows. With no rows, return at once.""",
    launchers="void persistent_counters(const float* x, const float* up, const float* down, float* inside, float* out, "
    "unsigned* state, int rows, int hidden, int feed_forward, cudaStream_t stream)",
    inputs={
        "x": Input("rows hidden", normal()),
        "up": Input("feed_forward hidden", normal(scale=0.3)),
        "down": Input("hidden feed_forward", normal(scale=0.3)),
    },
    outputs={
        "inside": Output("rows feed_forward", scratch=True),
        "out": Output("rows hidden"),
        "state": Output("(rows + 1)", dtype="u32", scratch=True),
    },
    reference=mlp_of_rows,
    cases=[
        Case("one row, one tile of each layer", **rows_of(1, 2, 31)),
        Case("one row, several tiles", **rows_of(1, 67, 129)),
        Case("two bands of rows", **rows_of(7, 64, 96)),
        Case("more tiles than blocks", **rows_of(13, 67, 129)),
        Case("long rows", **rows_of(2, 300, 520)),
        Case("many bands, one tile of each layer", **rows_of(41, 31, 32)),
        Case("random sizes", **rows_of(between(1, 15), between(1, 140), between(1, 150))),
        Case("no rows", **rows_of(0, 64, 96)),
    ],
    efficient=Case("8 rows, 128 x 256", **rows_of(8, 128, 256)),
    minimum_bytes=all_once,
    bars=[
        Bar(
            "global_bytes / minimum",
            at_most=2.6,
            look="Multiply each weight that a tile reads with several rows.",
            naive="a tile has one row",
        ),
        Bar("sectors / ideal", at_most=1.25, look="Let neighboring threads access neighboring addresses."),
        Bar("launches", at_most=1, look="Use one kernel: its blocks take the tiles of both layers."),
        Bar("submissions - launches", at_most=1, look="Clear the queue and the counters with one cudaMemsetAsync."),
        Bar("scratch_bytes", at_most=0, look="Use `inside` and `state`, and allocate no memory."),
    ],
    flops=lambda d: 4.0 * d["rows"] * d["hidden"] * d["feed_forward"],
)


# ------------------------------------------------------------------------------------------------------ two_bands_debug

two_bands_debug = dataclasses.replace(
    persistent_counters,
    summary="""\
Fix a two-layer MLP in one launch: inside = silu(up x) and out = down inside, for each row of x. Blocks take tiles from a
queue, and counters in global memory order them, as in persistent_counters. But `inside` [2, 4, feed_forward] has room
for two bands of 4 rows only: band b uses slot b % 2. The given kernel has one fault. Find it from the report, and
correct it. Keep the queue and the two slots: all bands would not fit into the L2 cache. `state` is rows + 1 words of
uninitialized memory. There is any number of rows. With no rows, return at once.""",
    launchers="void two_bands_debug(const float* x, const float* up, const float* down, float* inside, float* out, "
    "unsigned* state, int rows, int hidden, int feed_forward, cudaStream_t stream)",
    outputs=persistent_counters.outputs | {"inside": Output("(8*feed_forward)", scratch=True)},
    cases=[
        Case("one row", **rows_of(1, 2, 31)),
        Case("one band, several tiles", **rows_of(3, 67, 129)),
        Case("two bands", **rows_of(7, 64, 96)),
        Case("three bands", **rows_of(11, 67, 129)),
        Case("many bands, several tiles", **rows_of(41, 40, 70)),
        Case("many bands, one tile of each layer", **rows_of(31, 31, 32)),
        Case("random sizes", **rows_of(between(1, 15), between(1, 140), between(1, 150))),
        Case("no rows", **rows_of(0, 64, 96)),
    ],
    bars=[
        Bar("global_bytes / minimum", at_most=2.6, look="Multiply each weight that a tile reads with several rows."),
        Bar("launches", at_most=1, look="Use one kernel: its blocks take the tiles of both layers."),
        Bar("scratch_bytes", at_most=0, look="Use `inside` and `state`, and allocate no memory."),
    ],
)


# --------------------------------------------------------------------------------------------------- persistent_pipeline


def chain_of_matmuls(x, weights):
    """Return max(W x, 0) for each matrix in turn."""
    for matrix in weights:
        x = torch.relu(matrix @ x)
    return x


def chain(layers, n):
    """Return the dimensions of the tensors of a test case, by name."""
    return dict(layers=layers, n=n)


persistent_pipeline = Exercise(
    summary="""\
Compute a chain of matmuls for one token in one launch: h = max(W h, 0) for each of the matrices weights[0], weights[1],
and so on, with h = x at first; out is the last h. Each layer needs the whole h of the layer before, so all blocks wait for
each other between two layers. Before that wait, start asynchronous copies of weights of the next layer to shared
memory, as many rows as fit. All tensors are f32 and 16-byte aligned, n is a multiple of 4 up to 4096. There is at least one
layer. `hidden` [2, n] is the workspace. With n = 0 there is nothing to do.""",
    launchers="void persistent_pipeline(const float* x, const float* weights, float* hidden, float* out, int layers, int n, "
    "cudaStream_t stream)",
    inputs={
        "x": Input("n", uniform(0.5, 1.5)),
        "weights": Input("layers n n", normal(scale="(2.0 / max(n, 1))**0.5")),
    },
    outputs={"out": Output("n"), "hidden": Output("2 n", scratch=True)},
    reference=chain_of_matmuls,
    trivial=[lambda x, weights: torch.relu(weights[-1] @ x) if len(weights) > 1 else x],
    cases=[
        Case("one layer", **chain(1, 64)),
        Case("two layers", **chain(2, 64)),
        Case("seven layers", **chain(7, 36)),
        Case("fewer rows than warps", **chain(3, 4)),
        Case("rows that do not divide by the warps", **chain(3, 132)),
        Case("more rows than one copy ahead", **chain(3, 644)),
        Case("random sizes", **chain(between(1, 5), one_of(8, 52, 100, 260))),
        Case("no columns", **chain(2, 0)),
    ],
    efficient=Case("4 layers, n = 512", **chain(4, 512)),
    minimum_bytes=lambda d: 4 * (d["layers"] * d["n"] * (d["n"] + 2)),
    bars=[
        Bar("global_bytes / minimum", at_most=1.2, look="Read each weight once."),
        Bar("sectors / ideal", at_most=1.1, look="Let the lanes of a warp read neighboring bytes of a row."),
        Bar(
            "early_bytes / ((layers - 1) * n * n * 4)",
            at_least=0.4,
            look="Start to copy weights of the next layer before the grid barrier of this layer: weights depend on nothing.",
            naive="weights are asked for after the wait",
        ),
        Bar("launches", at_most=1, look="Compute all layers in one cooperative launch, with one block per SM."),
        Bar("submissions", at_most=1, look="Neither clear nor copy buffers."),
        Bar("scratch_bytes", at_most=0, look="Allocate nothing: `hidden` has room for two layers."),
    ],
    flops=lambda d: 2.0 * d["layers"] * d["n"] ** 2,
    bench=[Bench("16 layers, n = 2048", **chain(16, 2048)), Bench("8 layers, n = 4096", **chain(8, 4096))],
    torch_baseline=chain_of_matmuls,
)


# ----------------------------------------------------------------------------------------------------- persistent_layer


def matrices_of(weights, hidden, heads, kv_heads, head_dim, inter):
    """Return the four matrices of a layer, which are one after the other in ``weights``."""
    shapes = (
        ((heads + 2 * kv_heads) * head_dim, hidden), (hidden, heads * head_dim), (2 * inter, hidden), (hidden, inter)
    )  # fmt: skip
    parts = weights.split([rows * columns for rows, columns in shapes])
    return [part.view(shape) for part, shape in zip(parts, shapes, strict=True)]


def layer_weights(dims, generator):
    """Draw the matrices of a layer: a row of n columns has a standard deviation of 1 / sqrt(n)."""
    hidden, attended, inter = dims["hidden"], dims["heads"] * dims["head_dim"], dims["inter"]
    sizes = [((dims["heads"] + 2 * dims["kv_heads"]) * dims["head_dim"], hidden)]
    sizes += [(hidden, attended), (2 * inter, hidden), (hidden, inter)]
    drawn = [torch.randn(rows * columns, generator=generator, device=generator.device) for rows, columns in sizes]
    return torch.cat([part / max(columns, 1) ** 0.5 for part, (_, columns) in zip(drawn, sizes, strict=True)])


def angles(shape, generator):
    """Draw an angle for each pair of columns; return its cosine and sine."""
    angle = 6.28 * torch.rand(shape[0], generator=generator, device=generator.device)
    return torch.stack([angle.cos(), angle.sin()], dim=1)


def pages_of_a_sequence(shape, dims, generator):
    """Draw the pages of a sequence in random order; one page of the cache belongs to no sequence."""
    return torch.randperm(dims["pages"], generator=generator, device=generator.device)[: shape[0]]


def first_epoch(generator):
    """Draw an epoch as after some launches. No block has finished."""
    return torch.tensor([int(torch.randint(16, 100_000, (1,), generator=generator, device=generator.device)), 0])


def words_of_earlier_launches(epochs):
    """Return a generator of words: any data in the lower 32 bits, ``epochs(state[0], draw)`` in the upper ones."""

    def words(shape, inputs, generator):
        def draw(low, high):
            return torch.randint(low, high, shape, generator=generator, device=generator.device)

        return epochs(int(inputs["state"][0]), draw) << 32 | draw(0, 2**32)

    return words


def decoder_layer(
    x, norms, weights, rope, table, k_cache, v_cache, state, hidden, heads, kv_heads, head_dim, inter, page_size, past, eps
):  # fmt: skip
    """Return the layer's output for one token, the caches with its key and value, and the next launch's state."""
    k_cache, v_cache = k_cache.clone(), v_cache.clone()
    qkv, output, gate_up, down = matrices_of(weights, hidden, heads, kv_heads, head_dim, inter)
    rows = (qkv @ normed(x, norms[0], eps)).view(-1, head_dim // 2, 2)
    even, odd = rows[: heads + kv_heads].unbind(-1)
    cos, sin = rope.unbind(-1)
    turned = torch.stack([even * cos - odd * sin, odd * cos + even * sin], dim=-1)
    q, k, v = torch.cat([turned, rows[heads + kv_heads :]]).flatten(1).split([heads, kv_heads, kv_heads])
    at = torch.arange(past + 1, device=x.device)
    page, row = table[at // page_size], at % page_size
    k_cache[page[-1], :, row[-1]], v_cache[page[-1], :, row[-1]] = k, v
    all_keys, values = (cache[page, :, row].repeat_interleave(heads // kv_heads, dim=1) for cache in (k_cache, v_cache))
    shares = torch.softmax(torch.einsum("hd,nhd->hn", q, all_keys) * head_dim**-0.5, dim=-1)
    x = x + output @ torch.einsum("hn,nhd->hd", shares, values).flatten()
    gate, up = (gate_up @ normed(x, norms[1], eps)).view(-1, 2).unbind(-1)
    x = x + down @ (torch.nn.functional.silu(gate) * up)
    return {"out": x, "k_cache": k_cache, "v_cache": v_cache, "state": state + torch.tensor([16, 0], device=x.device)}


def torch_decoder_layer(x, norms, weights, rope, table, k_cache, v_cache, hidden, heads, kv_heads, head_dim, inter, page_size, past, eps):  # fmt: skip
    """Compute the layer with torch's operators. The cache is gathered, as without a paged kernel."""
    functional = torch.nn.functional
    qkv, output, gate_up, down = matrices_of(weights, hidden, heads, kv_heads, head_dim, inter)
    y = functional.rms_norm(x, (hidden,), norms[0].to(x.dtype), eps)
    rows = functional.linear(y, qkv).view(-1, head_dim // 2, 2)
    even, odd = rows[: heads + kv_heads].unbind(-1)
    cos, sin = rope.to(x.dtype).unbind(-1)
    turned = torch.stack([even * cos - odd * sin, odd * cos + even * sin], dim=-1).flatten(1)
    q, k, v = turned[:heads], turned[heads:], rows[heads + kv_heads :].flatten(1)
    page, row = table[past // page_size :][:1], past % page_size  # a vector, so that nothing goes through the host
    k_cache[page, :, row], v_cache[page, :, row] = k, v
    all_keys, values = (cache[table].transpose(0, 1).flatten(1, 2)[:, : past + 1] for cache in (k_cache, v_cache))
    attended = functional.scaled_dot_product_attention(
        q[None, :, None], all_keys[None], values[None], enable_gqa=True
    ).flatten()
    x = x + functional.linear(attended, output)
    gate, up = (
        functional.linear(functional.rms_norm(x, (hidden,), norms[1].to(x.dtype), eps), gate_up).view(-1, 2).unbind(-1)
    )
    return x + functional.linear(functional.silu(gate) * up, down)


def layer(hidden=64, heads=4, kv_heads=2, head_dim=16, inter=96, past=8, page_size=4, eps=1e-6):
    """Return the dimensions of the tensors of a test case, by name."""
    return dict(
        hidden=hidden, heads=heads, kv_heads=kv_heads, head_dim=head_dim, inter=inter, past=past, page_size=page_size, eps=eps
    )  # fmt: skip


def layer_bytes(d):
    """Return the bytes of a layer: every weight once, the keys and values once, and the vectors."""
    qkv, kv = (d["heads"] + 2 * d["kv_heads"]) * d["head_dim"], d["kv_heads"] * d["head_dim"]
    matrices = d["hidden"] * (qkv + d["heads"] * d["head_dim"] + 3 * d["inter"])
    return d["item"] * (matrices + 2 * (d["past"] + 1) * kv + 2 * d["hidden"]) + 8 * d["hidden"] + 4 * d["head_dim"]


persistent_layer = Exercise(
    summary="""\
Compute one decoder layer for one token in one launch: x = x + output(attention(norm_1(x))), then out = x + down(silu(gate)
* up) with gate and up of norm_2(x). The norms are RMSNorms, x / sqrt(mean(x^2) + eps) * weight. `weights` has four
row-major matrices, one after the other: q, k and v together [(heads + 2 * kv_heads) * head_dim, hidden], output [hidden,
heads * head_dim], gate and up [2 * inter, hidden] in turn (row 2 i is gate i, row 2 i + 1 is up i), and down [hidden,
inter]. RoPE rotates columns 2 p and 2 p + 1 of each query and key by rope[p] (cosine, sine). Store the new key and value
at position `past` of the paged cache, which has `past` keys, and attend to all past + 1 positions. table[i] is the page
of positions i * page_size and up. Query head h uses key/value head h / (heads / kv_heads). `words` is the workspace,
with the words of earlier launches: their upper 32 bits are below state[0]. At the end add 16 to state[0]. state[1] is 0
at the start of a launch and must be 0 again at its end. hidden is a multiple of 8 up to 2560; inter, a multiple of 8,
and heads * head_dim are at most 10240; head_dim is a multiple of 8 up to 256, page_size a power of 2. For the first
token, past is 0. All tensors are 16-byte aligned.""",
    launchers="void persistent_layer_{dtype}(const {T}* x, const float* norms, const {T}* weights, const float* rope, const "
    "int* table, {T}* k_cache, {T}* v_cache, {T}* out, long long* words, int* state, int hidden, int heads, int kv_heads, "
    "int head_dim, int inter, int page_size, int pages, int past, float eps, cudaStream_t stream)",
    dtypes=("f16", "bf16"),
    inputs={
        "x": Input("hidden", normal(channel_offset=0.5)),
        "norms": Input("2 hidden", normal(mean=1.0, scale=0.3), dtype="f32"),
        "weights": Input("hidden*(2*(heads+kv_heads)*head_dim+3*inter)", layer_weights),
        "rope": Input("head_dim//2 2", angles, dtype="f32"),
        "table": Input("past//page_size+1", pages_of_a_sequence, dtype="i32"),
    },
    outputs={
        "out": Output("hidden"),
        "k_cache": Output("pages kv_heads page_size head_dim", inout=True),
        "v_cache": Output("pages kv_heads page_size head_dim", inout=True),
        "state": Output("2", dtype="i32", inout=True, start=first_epoch),
        "words": Output(
            "hidden+(heads+2*kv_heads)*head_dim+16*heads*(head_dim+2)+inter//2",
            dtype="i64",
            inout=True,
            scratch=True,
            start=words_of_earlier_launches(lambda first, draw: first - draw(1, 17)),
        ),
    },
    scalars={"pages": lambda d: d["past"] // d["page_size"] + 2},
    reference=decoder_layer,
    trivial=[
        lambda x, k_cache, v_cache, state: {"out": x, "k_cache": k_cache, "v_cache": v_cache, "state": state},
    ],
    cases=[
        Case("the first token", dtypes=["f16"], **layer(past=0)),
        Case("some keys in three pages", **layer()),
        Case("the new key begins a page", dtypes=["bf16"], **layer(past=12)),
        Case("groups of 7", dtypes=["bf16"], **layer(56, 7, 1, 8, 40, past=5)),
        Case("every query head has its own key/value head", dtypes=["f16"], **layer(40, 3, 3, 24, 72, past=4)),
        Case("300 keys, 3 parts", dtypes=["f16"], **layer(past=299, page_size=16)),
        Case("rows of more than one warp", dtypes=["bf16"], **layer(8, 2, 1, 16, 2_640, past=1)),
        Case("wide rows of x", dtypes=["f16"], **layer(1_288, 1, 1, 64, 8, past=2)),
        Case("fewer rows than blocks", dtypes=["bf16"], **layer(8, 1, 1, 8, 8, past=1)),
        Case("large scores", dtypes=["f16"], inputs={"k_cache": normal(scale=30.0)}, **layer(past=19)),
        Case("a large eps", dtypes=["bf16"], **layer(eps=0.5)),
        Case(
            "all words have an epoch of the launch before",
            dtypes=["f16"],
            inputs={"words": words_of_earlier_launches(lambda first, draw: first - 14 + draw(0, 1))},
            **layer(),
        ),
        Case(
            "all words have an epoch of the first launch",
            dtypes=["bf16"],
            inputs={"words": words_of_earlier_launches(lambda first, draw: 2 + draw(0, 1))},
            **layer(),
        ),
        Case(
            "random sizes",
            **layer(one_of(32, 72, 136), 4, one_of(1, 2, 4), one_of(8, 16, 40), one_of(8, 56, 104), between(0, 40)),
        ),
    ],
    efficient=Case("hidden 256, inter 512", dtypes=["bf16"], **layer(256, 4, 2, 32, 512, past=39, page_size=8)),
    minimum_bytes=layer_bytes,
    distinct_bytes=lambda hidden, heads, kv_heads, head_dim, inter, past, item: layer_bytes(
        dict(hidden=hidden, heads=heads, kv_heads=kv_heads, head_dim=head_dim, inter=inter, past=past, item=item)
    ),
    bars=[
        Bar("global_bytes / minimum", at_most=5, look="Read each weight once."),
        Bar("sectors / ideal", at_most=2, look="Let the lanes of a warp read neighboring bytes of a row."),
        Bar(
            "early_bytes / (hidden * (heads * head_dim + 3 * inter) * item)",
            at_least=0.25,
            look="Ask for the weights of the next matrix before its input is ready: weights depend on nothing.",
            naive="weights are asked for when their input is ready",
        ),
        Bar("launches", at_most=1, look="Compute the whole layer in one kernel, with one block per SM."),
        Bar("submissions", at_most=1, look="Neither clear nor copy buffers: words with an epoch need no zeros."),
        Bar("scratch_bytes", at_most=0, look="Allocate nothing: `words` has room for everything that blocks exchange."),
    ],
    flops=lambda d: 2 * layer_bytes(d) / d["item"],
    bench=[
        Bench("Qwen2 1.5B, 512 keys", **layer(1536, 12, 2, 128, 8960, 511, 16)),
        Bench("Llama 3.2 1B, 512 keys", **layer(2048, 32, 8, 64, 8192, 511, 16)),
        Bench("2.8B, 32 heads of 80, 512 keys", **layer(2560, 32, 32, 80, 10_240, 511, 16)),
    ],
    torch_baseline=torch_decoder_layer,
)
