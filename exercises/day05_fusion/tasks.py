"""The exercises of day 5: chains of kernels, each to be fused into one."""

import dataclasses

import torch

from grader.course.task import Bar, Bench, Case, Exercise, Input, Output, between, normal, one_of, uniform

ONE_LAUNCH = Bar("launches", at_most=1, look="Fuse all steps into one kernel.")
NO_SCRATCH = Bar("scratch_bytes", at_most=0, look="Do not store intermediate results in global memory.")

# ---------------------------------------------------------------------------------------------------- rms_norm_linear


def normed_linear(x, norm_weight, weight, eps):
    """Apply RMSNorm to the rows of x, then the linear layer."""
    mean_square = (x * x).sum(dim=-1, keepdim=True) / max(x.shape[-1], 1)
    return x * torch.rsqrt(mean_square + eps) * norm_weight @ weight.T


def torch_normed_linear(x, norm_weight, weight, eps):
    """Run RMSNorm and the linear layer in torch, one after the other."""
    return torch.nn.functional.linear(torch.nn.functional.rms_norm(x, (x.shape[-1],), norm_weight, eps), weight)


rms_norm_linear = Exercise(
    summary="""out = (x / sqrt(mean(x^2) + eps) * norm_weight) weight^T for x [rows, in_features] and weight
    [out_features, in_features], in one kernel. It reads each row of x once for each tile of outputs, and stores
    only out. f16 and bf16 with accumulators in f32; squares of x, and x times norm_weight, may be too large for its
    dtype. Any sizes. With no in_features every output is 0; with no rows or no out_features there is nothing to do.""",
    launchers="""void rms_norm_linear_{dtype}(const {T}* x, const {T}* norm_weight, const {T}* weight, {T}* out, int rows,
                 int in_features, int out_features, float eps, cudaStream_t stream)""",
    dtypes=("f16", "bf16"),
    inputs={
        "x": Input("rows in_features", normal(mean=0.3)),
        "norm_weight": Input("in_features", normal(mean=1.0, scale=0.5)),
        "weight": Input("out_features in_features", normal(scale=0.5, channel_offset=0.5)),
    },
    outputs={"out": Output("rows out_features")},
    scalars={"eps": lambda d: d.get("eps", 1e-5)},
    reference=normed_linear,
    tolerance={"bf16": 2.4e-2},  # a kernel may round weight times norm_weight to bf16
    trivial=[
        lambda x, weight: x @ weight.T,
        lambda x, weight, eps: normed_linear(x, torch.ones_like(x[:1]), weight, eps),
    ],
    cases=[
        Case("all sizes are 1", rows=1, in_features=1, out_features=1),
        Case("two rows, three features", rows=2, in_features=3, out_features=2),
        Case("one row", rows=1, in_features=129, out_features=67),
        Case("one row, its length a multiple of 16 bytes", dtypes=("f16",), rows=1, in_features=136, out_features=40),
        Case("sixteen rows", dtypes=("bf16",), rows=16, in_features=200, out_features=72),
        Case("sixty-four rows", dtypes=("f16",), rows=64, in_features=136, out_features=40),
        Case("one input feature", rows=37, in_features=1, out_features=35),
        Case("one output feature", rows=37, in_features=40, out_features=1),
        Case("whole tiles", rows=128, in_features=64, out_features=128),
        Case("sizes one more than whole tiles", rows=129, in_features=65, out_features=33),
        Case("sizes one less than whole tiles", rows=31, in_features=63, out_features=127),
        Case("a long row", rows=5, in_features=1000, out_features=24),
        Case(
            "large x: its squares and products overflow f16",
            inputs={"x": uniform(-40000.0, 40000.0), "norm_weight": normal(mean=4.0)},
            rows=19,
            in_features=200,
            out_features=40,
        ),
        Case(
            "small x, so that eps matters", inputs={"x": normal(scale=2e-3)}, rows=23, in_features=72, out_features=40
        ),
        Case("an eps of 0.25", inputs={"x": normal(scale=0.5)}, rows=9, in_features=80, out_features=17, eps=0.25),
        Case("norm_weight not 16-byte aligned", offsets={"norm_weight": 1}, rows=9, in_features=64, out_features=16),
        Case("no rows", rows=0, in_features=8, out_features=8),
        Case("no output features", rows=5, in_features=8, out_features=0),
        Case("no input features: out is zero", rows=5, in_features=0, out_features=9),
        Case("random sizes", rows=between(1, 140), in_features=between(1, 140), out_features=between(1, 140)),
    ],
    efficient=Case("256 x 256 -> 64", dtypes=("f16",), rows=256, in_features=256, out_features=64),
    bars=[
        Bar(
            "global_bytes / minimum",
            at_most=1.7,
            look="Most of the bytes are x. Read it once: sum its squares while its tiles are in shared memory.",
            naive="x read twice",
        ),
        Bar("sectors / ideal", at_most=1.3, look="Let neighboring threads copy neighboring columns."),
        Bar(
            "bank_conflict_ways",
            at_most=2.1,
            look="Pad the rows of the tiles by 16 bytes.",
            naive="rows without padding",
        ),
        ONE_LAUNCH,
        NO_SCRATCH,
    ],
    flops=lambda d: 2.0 * d["rows"] * d["in_features"] * d["out_features"],
    bench=[
        Bench("narrow", rows=32768, in_features=4096, out_features=128),
        Bench("wide", rows=4096, in_features=4096, out_features=4096),
        *(Bench(f"{rows} of wide", rows=rows, in_features=4096, out_features=4096) for rows in (1, 16, 64)),
    ],
    torch_baseline=torch_normed_linear,
)

# ------------------------------------------------------------------------------------------------------ linear_swiglu


def gated_linear(x, gate_weight, up_weight):
    """Return silu(x gate_weight^T) * (x up_weight^T)."""
    return torch.nn.functional.silu(x @ gate_weight.T) * (x @ up_weight.T)


linear_swiglu = Exercise(
    summary="""out = silu(x gate_weight^T) * (x up_weight^T), with silu(g) = g / (1 + exp(-g)), for x [rows,
    in_features] and both weights [hidden, in_features]: the first half of the MLP of Qwen2 and Llama. One kernel
    reads a tile of x once for both matmuls and stores neither result. f16 and bf16 with accumulators in f32,
    rounded once. Any sizes. With no in_features every output is 0; with no rows or hidden features there is nothing
    to do.""",
    launchers="""void linear_swiglu_{dtype}(const {T}* x, const {T}* gate_weight, const {T}* up_weight, {T}* out, int rows,
                 int in_features, int hidden, cudaStream_t stream)""",
    dtypes=("f16", "bf16"),
    inputs={
        "x": Input("rows in_features", normal(mean=0.3)),
        "gate_weight": Input("hidden in_features", normal(scale=0.3)),
        "up_weight": Input("hidden in_features", normal(scale=0.5, channel_offset=0.5)),
    },
    outputs={"out": Output("rows hidden")},
    reference=gated_linear,
    trivial=[
        lambda x, up_weight: x @ up_weight.T,
        lambda x, gate_weight: torch.nn.functional.silu(x @ gate_weight.T),
        lambda x, gate_weight, up_weight: gated_linear(x, up_weight, gate_weight),
    ],
    cases=[
        Case("all sizes are 1", rows=1, in_features=1, hidden=1),
        Case("two rows, three features", rows=2, in_features=3, hidden=2),
        Case("one row", rows=1, in_features=129, hidden=67),
        Case("one row, its length a multiple of 16 bytes", dtypes=("f16",), rows=1, in_features=136, hidden=40),
        Case("sixteen rows", dtypes=("bf16",), rows=16, in_features=200, hidden=72),
        Case("sixty-four rows", dtypes=("f16",), rows=64, in_features=136, hidden=40),
        Case("one input feature", rows=37, in_features=1, hidden=35),
        Case("one output feature", rows=37, in_features=40, hidden=1),
        Case("whole tiles", rows=128, in_features=64, hidden=64),
        Case("sizes one more than whole tiles", rows=129, in_features=65, hidden=65),
        Case("sizes one less than whole tiles", rows=31, in_features=63, hidden=127),
        Case("a long row", rows=5, in_features=600, hidden=24),
        Case(
            "large gates, far below and far above zero",
            inputs={"gate_weight": normal(scale=12.0)},
            rows=33,
            in_features=64,
            hidden=40,
        ),
        Case(
            "gate and up overflow f16, their product does not",
            dtypes=("f16",),
            inputs={"x": uniform(100.0, 200.0), "gate_weight": uniform(-8.0, -4.0), "up_weight": uniform(2.0, 4.0)},
            rows=9,
            in_features=150,
            hidden=24,
        ),
        Case("out not 16-byte aligned", offsets={"out": 1}, rows=9, in_features=64, hidden=16),
        Case("no rows", rows=0, in_features=8, hidden=8),
        Case("no hidden features", rows=5, in_features=8, hidden=0),
        Case("no input features: out is zero", rows=5, in_features=0, hidden=9),
        Case("random sizes", rows=between(1, 140), in_features=between(1, 140), hidden=between(1, 140)),
    ],
    efficient=Case("128 x 128 -> 128", dtypes=("f16",), rows=128, in_features=128, hidden=128),
    bars=[
        Bar(
            "global_bytes / minimum",
            at_most=1.9,
            look="Read a tile of x once for the gate and the up projection, and combine their sums in registers.",
            naive="the two matrix products run one after the other",
        ),
        Bar("sectors / ideal", at_most=1.3, look="Let neighboring threads copy neighboring columns."),
        Bar(
            "bank_conflict_ways",
            at_most=2.1,
            look="Pad the rows of the tiles by 16 bytes.",
            naive="rows without padding",
        ),
        ONE_LAUNCH,
        NO_SCRATCH,
    ],
    flops=lambda d: 4.0 * d["rows"] * d["in_features"] * d["hidden"],
    bench=[
        Bench("small model", rows=32768, in_features=256, hidden=1024),
        Bench("wide", rows=4096, in_features=4096, hidden=11008),
        *(Bench(f"{rows} of wide", rows=rows, in_features=4096, hidden=11008) for rows in (1, 16, 64)),
    ],
    torch_baseline=lambda x, gate_weight, up_weight: torch.nn.functional.silu(x @ gate_weight.T) * (x @ up_weight.T),
)

# -------------------------------------------------------------------------------------------------------- linear_gelu


def gelu_of_linear(x, weight, bias):
    """Return gelu(x weight^T + bias), the exact gelu: v times the normal distribution's CDF at v."""
    return torch.nn.functional.gelu(x @ weight.T + bias)


linear_gelu = Exercise(
    summary="""out = gelu(x weight^T + bias) for x [rows, in_features], weight [out_features, in_features] and bias
    [out_features], with the exact gelu(v) = v / 2 (1 + erf(v / sqrt(2))): the first half of the MLP of GPT-NeoX.
    One kernel applies bias and GELU in registers, before it stores out and nothing else. f32, f16 and bf16; sums
    and GELU in f32, rounded once. Any sizes. With no in_features out is gelu(bias); with no rows or no out_features
    there is nothing to do.""",
    launchers="""void linear_gelu_{dtype}(const {T}* x, const {T}* weight, const {T}* bias, {T}* out, int rows,
                 int in_features, int out_features, cudaStream_t stream)""",
    dtypes=("f32", "f16", "bf16"),
    inputs={
        "x": Input("rows in_features", normal(mean=0.3)),
        "weight": Input("out_features in_features", normal(scale=0.1)),
        "bias": Input("out_features", normal()),
    },
    outputs={"out": Output("rows out_features")},
    reference=gelu_of_linear,
    trivial=[
        lambda x, weight, bias: x @ weight.T + bias,
        lambda x, weight: torch.nn.functional.gelu(x @ weight.T),
        lambda x, weight, bias: torch.nn.functional.gelu(x @ weight.T) + bias,
    ],
    cases=[
        Case("all sizes are 1", rows=1, in_features=1, out_features=1),
        Case("two rows, three features", rows=2, in_features=3, out_features=2),
        Case("one row", rows=1, in_features=129, out_features=67),
        Case("one input feature", rows=37, in_features=1, out_features=35),
        Case("one output feature", rows=37, in_features=40, out_features=1),
        Case("whole tiles", rows=128, in_features=64, out_features=128),
        Case("sizes one more than whole tiles", dtypes=("f32", "f16"), rows=129, in_features=65, out_features=129),
        Case("sizes one less than whole tiles", dtypes=("bf16",), rows=31, in_features=63, out_features=127),
        Case("sixteen rows", rows=16, in_features=200, out_features=40),
        Case(
            "sums far below and far above zero",
            inputs={"weight": normal(scale=12.0)},
            rows=33,
            in_features=64,
            out_features=40,
        ),
        Case(
            "sums near zero, where the exact gelu differs from its tanh approximation",
            dtypes=("f32",),
            inputs={"x": uniform(-1.0, 1.0), "weight": uniform(-0.4, 0.4), "bias": uniform(-2.5, 2.5)},
            rows=24,
            in_features=9,
            out_features=36,
        ),
        Case(
            "sums that overflow f16 before the bias is added",
            dtypes=("f16",),
            inputs={"x": uniform(100.0, 101.0), "weight": uniform(8.0, 8.1), "bias": uniform(-60000.0, -59000.0)},
            rows=9,
            in_features=96,
            out_features=24,
        ),
        Case("out not 16-byte aligned", offsets={"out": 1}, rows=9, in_features=64, out_features=16),
        Case("no rows", rows=0, in_features=8, out_features=8),
        Case("no output features", rows=5, in_features=8, out_features=0),
        Case("no input features: out is gelu(bias)", rows=5, in_features=0, out_features=9),
        Case("random sizes", rows=between(1, 140), in_features=between(1, 140), out_features=between(1, 140)),
    ],
    efficient=Case("128 x 128 -> 128", dtypes=("f16",), rows=128, in_features=128, out_features=128),
    bars=[
        Bar(
            "global_written_bytes / (item * rows * out_features)",
            at_most=1.0,
            look="Write only the finished outputs, each once.",
            naive="unfinished sums are stored",
        ),
        Bar(
            "global_bytes / minimum",
            at_most=1.9,
            look="Do not read the sums back for the bias or the GELU. If that is not the cause, make the tiles larger.",
        ),
        Bar("sectors / ideal", at_most=1.3, look="Let neighboring threads copy neighboring columns."),
        Bar("bank_conflict_ways", at_most=2.1, look="Pad the rows of the tiles by 16 bytes."),
        ONE_LAUNCH,
        NO_SCRATCH,
    ],
    flops=lambda d: 2.0 * d["rows"] * d["in_features"] * d["out_features"],
    bench=[
        Bench("1 row, 2560 -> 10240", rows=1, in_features=2560, out_features=10240),
        Bench("512 rows, 2560 -> 10240", rows=512, in_features=2560, out_features=10240),
        Bench("32768 rows, 256 -> 1024", rows=32768, in_features=256, out_features=1024),
    ],
    torch_baseline=lambda x, weight, bias: torch.nn.functional.gelu(torch.nn.functional.linear(x, weight, bias)),
)

# ------------------------------------------------------------------------------------------------------- rms_norm_qkv


def normed_qkv(x, norm_weight, q_weight, k_weight, v_weight, q_bias, k_bias, v_bias, eps):
    """Apply RMSNorm to the rows of x, then three linear layers."""
    mean_square = (x * x).sum(dim=-1, keepdim=True) / max(x.shape[-1], 1)
    normed = x * torch.rsqrt(mean_square + eps) * norm_weight
    return normed @ q_weight.T + q_bias, normed @ k_weight.T + k_bias, normed @ v_weight.T + v_bias


def torch_normed_qkv(x, norm_weight, q_weight, k_weight, v_weight, q_bias, k_bias, v_bias, eps):
    """Run RMSNorm and the three linear layers in torch, one after the other."""
    normed = torch.nn.functional.rms_norm(x, (x.shape[-1],), norm_weight, eps)
    linear = torch.nn.functional.linear
    return linear(normed, q_weight, q_bias), linear(normed, k_weight, k_bias), linear(normed, v_weight, v_bias)


def decoding(rows, in_features, q_features, kv_features, **more):
    """Return the dimensions of the tensors of a test case, by name."""
    return dict(rows=rows, in_features=in_features, q_features=q_features, kv_features=kv_features, **more)


WEIGHT = normal(scale=0.5, channel_offset=0.5)

rms_norm_qkv = Exercise(
    summary="""q, k and v = normed weight^T + bias, each with its own weight and bias, for normed = x /
    sqrt(mean(x^2) + eps) * norm_weight and 1 to 16 rows of x, as when a model decodes: the first step of an
    attention block, in one kernel. With grouped-query attention q is wider than k and v. f16 and bf16 with sums in
    f32, and the same result in every run. Each weight is read once for all rows, 16 bytes at a time where rows are
    aligned, by enough blocks for a GPU. Squares of x, and x times norm_weight, may be too large for its dtype. Any
    sizes; the result must also be right for more than 16 rows. With no in_features the outputs are the biases; with no
    rows there is nothing to do.""",
    launchers="""void rms_norm_qkv_{dtype}(const {T}* x, const {T}* norm_weight, const {T}* q_weight, const {T}* k_weight,
                 const {T}* v_weight, const {T}* q_bias, const {T}* k_bias, const {T}* v_bias, {T}* q, {T}* k, {T}* v,
                 int rows, int in_features, int q_features, int kv_features, float eps, cudaStream_t stream)""",
    dtypes=("f16", "bf16"),
    inputs={
        "x": Input("rows in_features", normal(mean=0.3)),
        "norm_weight": Input("in_features", normal(mean=1.0, scale=0.5)),
        "q_weight": Input("q_features in_features", WEIGHT),
        "k_weight": Input("kv_features in_features", WEIGHT),
        "v_weight": Input("kv_features in_features", WEIGHT),
        "q_bias": Input("q_features", normal(scale=3.0)),
        "k_bias": Input("kv_features", normal(scale=3.0)),
        "v_bias": Input("kv_features", normal(scale=3.0)),
    },
    outputs={
        "q": Output("rows q_features"),
        "k": Output("rows kv_features"),
        "v": Output("rows kv_features"),
    },
    scalars={"eps": lambda d: d.get("eps", 1e-6)},
    reference=normed_qkv,
    tolerance={"bf16": 2.4e-2},  # a kernel may round weight times norm_weight to bf16
    cases=[
        Case("all sizes are 1", **decoding(1, 1, 1, 1)),
        Case("one row, odd sizes", **decoding(1, 129, 67, 13)),
        Case("two rows, three features", **decoding(2, 3, 2, 1)),
        Case("one input feature", **decoding(3, 1, 35, 5)),
        Case("seven rows", **decoding(7, 72, 24, 8)),
        Case("eight rows, whole tiles", **decoding(8, 256, 64, 16)),
        Case("nine rows", **decoding(9, 520, 21, 11)),
        Case("sixteen rows", **decoding(16, 96, 40, 9)),
        Case("seventeen rows", **decoding(17, 40, 9, 3)),
        Case("keys and values as wide as queries", **decoding(2, 80, 33, 33)),
        Case("more output features than the blocks of one wave compute", dtypes=("f16",), **decoding(1, 8, 33_800, 40)),
        Case("eleven rows, many features", dtypes=("bf16",), **decoding(11, 72, 1500, 317)),
        Case(
            "large x: its squares and products overflow f16",
            inputs={"x": uniform(-40000.0, 40000.0), "norm_weight": normal(mean=4.0)},
            **decoding(3, 200, 24, 8),
        ),
        Case("small x, so that eps matters", inputs={"x": normal(scale=5e-4)}, **decoding(4, 72, 16, 8)),
        Case("an eps of 0.25", inputs={"x": normal(scale=0.5)}, **decoding(2, 80, 17, 4, eps=0.25)),
        Case("norm_weight not 16-byte aligned", offsets={"norm_weight": 1}, **decoding(2, 64, 16, 8)),
        Case("v_weight and v not 16-byte aligned", offsets={"v_weight": 1, "v": 1}, **decoding(2, 64, 16, 8)),
        Case("no rows", **decoding(0, 8, 8, 8)),
        Case("no keys", **decoding(2, 8, 8, 0)),
        Case("no input features: q, k and v are the biases", **decoding(3, 0, 9, 4)),
        Case(
            "random sizes",
            rows=between(1, 16),
            in_features=between(1, 300),
            q_features=between(1, 50),
            kv_features=between(1, 20),
        ),
    ],
    efficient=Case("4 rows, 512 -> 896 + 2 x 128", dtypes=("f16",), **decoding(4, 512, 896, 128)),
    bars=[
        Bar(
            "global_bytes / minimum",
            at_most=1.9,
            look="Read each weight once for all rows, and use each loaded value of x and norm_weight for several "
            "features.",
        ),
        Bar("blocks", at_least=100, look="Distribute the 1152 features over at least as many blocks as a GPU has SMs."),
        Bar(
            "requests * 512 / minimum",
            at_most=5,
            look="Load 16 bytes per lane: a request of the warp then moves 512 bytes.",
        ),
        Bar("sectors / ideal", at_most=1.2, look="Let each request read whole 32-byte sectors of a row."),
        dataclasses.replace(ONE_LAUNCH, naive="two kernels"),
        NO_SCRATCH,
    ],
    flops=lambda d: 2.0 * d["rows"] * d["in_features"] * (d["q_features"] + 2 * d["kv_features"]),
    bench=[
        Bench("1 row, Qwen2 0.5B", **decoding(1, 896, 896, 128)),
        Bench("1 row, Qwen2 1.5B", **decoding(1, 1536, 1536, 256)),
        Bench("16 rows, Qwen2 1.5B", **decoding(16, 1536, 1536, 256)),
        Bench("1 row, Llama 8B", **decoding(1, 4096, 4096, 1024)),
        Bench("16 rows, Llama 8B", **decoding(16, 4096, 4096, 1024)),
    ],
    torch_baseline=torch_normed_qkv,
)

# ----------------------------------------------------------------------------------------------------- scores_softmax


def scores_of(q, k, scale, causal):
    """Return scale * q k^T. If causal, the keys after i + key_len - query_len have -infinity for query i."""
    scores = q @ k.transpose(-1, -2) * scale
    if causal:
        n, m = scores.shape[-2:]
        hidden = torch.ones(n, m, dtype=torch.bool, device=q.device).triu(m - n + 1)
        scores = scores.masked_fill(hidden, -torch.inf)
    return scores


def attention_weights(q, k, scale, causal):
    """Return softmax(scale * q k^T), with zeros for a query that sees no key."""
    return torch.nan_to_num(torch.softmax(scores_of(q, k, scale, causal), dim=-1), nan=0.0)


def visible_pairs(d):
    """Return the number of visible (query, key) pairs of one head."""
    n, m = d["query_len"], d["key_len"]
    return sum(max(0, min(m, i + 1 + m - n)) for i in range(n)) if d["causal"] else n * m


def sizes(batch=1, heads=1, query_len=1, key_len=1, head_dim=64, causal=False, **more):
    """Return the dimensions of the tensors of a test case, by name."""
    return dict(
        batch=batch, heads=heads, query_len=query_len, key_len=key_len, head_dim=head_dim, causal=causal, **more
    )


def rising(shape, generator):
    """Return keys whose scores with ``one_direction`` rise along the keys, so that each tile has a new maximum."""
    return torch.linspace(-1, 1, shape[-2])[:, None] + 0.1 * torch.randn(shape, generator=generator)


def one_direction(shape, generator):
    """Return queries that all point in about the same direction."""
    return 1 + 0.3 * torch.randn(shape, generator=generator)


scores_softmax = Exercise(
    summary="""out = softmax(scale * q k^T) for every batch and head, in one kernel that writes each weight once and
    reads none. It walks over the keys twice: first for the maximum and the sum, then to compute and write the weights.
    f16 with f32 scores, head_dim up to 128, any number of keys. With `causal`, query i sees the keys up to i + key_len
    - query_len; hidden keys, and queries that see no key, get zeros. With no queries or no keys there is nothing to
    do.""",
    launchers="""void scores_softmax(const __half* q, const __half* k, __half* out, int batch, int heads, int query_len,
                 int key_len, int head_dim, float scale, bool causal, cudaStream_t stream)""",
    dtypes=("f16",),
    inputs={
        "q": Input("batch heads query_len head_dim", normal(scale=1.5)),
        "k": Input("batch heads key_len head_dim", normal()),
    },
    outputs={"out": Output("batch heads query_len key_len")},
    scalars={"scale": lambda d: d.get("scale", d["head_dim"] ** -0.5)},
    reference=attention_weights,
    tolerance={"f16": 5e-3},  # scores near 100 have f32 rounding errors of 1e-5; small weights are subnormal in f16
    cases=[
        Case("one query, one key", **sizes()),
        Case("two queries, three keys", **sizes(query_len=2, key_len=3, head_dim=32)),
        Case(
            "scores that rise from key to key",
            inputs={"q": one_direction, "k": rising},
            **sizes(query_len=34, key_len=200),
        ),
        Case("lengths that are not multiples of a tile", **sizes(query_len=129, key_len=127)),
        Case("batches and heads", **sizes(batch=2, heads=3, query_len=19, key_len=37, head_dim=32)),
        Case("more scores per row than shared memory holds", **sizes(query_len=3, key_len=4099, head_dim=16)),
        Case("causal, as many keys as queries", **sizes(heads=2, query_len=131, key_len=131, causal=True)),
        Case("causal, more keys than queries", **sizes(batch=2, query_len=5, key_len=136, causal=True)),
        Case("causal, queries that see no key", **sizes(query_len=150, key_len=72, head_dim=32, causal=True)),
        Case("head_dim 128", **sizes(query_len=40, key_len=72, head_dim=128)),
        Case("head_dim 80", **sizes(heads=2, query_len=33, key_len=64, head_dim=80)),
        Case("head_dim 5", **sizes(heads=2, query_len=35, key_len=66, head_dim=5)),
        Case("pointers that are not 16-byte aligned", offsets={"q": 1, "k": 2}, **sizes(query_len=9, key_len=72)),
        Case("out not 16-byte aligned", offsets={"out": 1}, **sizes(query_len=9, key_len=72)),
        Case("a scale of 0.4", **sizes(query_len=40, key_len=56, head_dim=32, scale=0.4)),
        Case("large scores do not overflow", inputs={"q": normal(scale=50.0)}, **sizes(query_len=33, key_len=96)),
        Case(
            "all scores far below zero",
            inputs={"q": normal(mean=8.0), "k": normal(mean=-8.0)},
            **sizes(query_len=33, key_len=96),
        ),
        Case(
            "random sizes",
            batch=between(1, 2),
            heads=between(1, 2),
            query_len=between(1, 100),
            key_len=between(1, 150),
            head_dim=one_of(32, 64, 80, 128),
            causal=one_of(False, True),
        ),
        Case("no keys", **sizes(query_len=5, key_len=0, head_dim=32)),
        Case("no queries", **sizes(query_len=0, key_len=5, head_dim=32)),
    ],
    efficient=Case("256 queries, 512 keys, head_dim 8", **sizes(query_len=256, key_len=512, head_dim=8)),
    bars=[
        Bar(
            "global_written_bytes / (item * query_len * key_len)",
            at_most=1.0,
            look="Write only the finished weights, each once.",
        ),
        Bar(
            "global_read_bytes / (item * query_len * key_len)",
            at_most=0.8,
            look="Do not store scores and read them back. Recompute them from q and k for the second walk, "
            "with at least 32 queries per tile of keys.",
            naive="scores are written, read back and written again",
        ),
        Bar("sectors / ideal", at_most=1.3, look="Let neighboring threads write neighboring weights."),
        ONE_LAUNCH,
        NO_SCRATCH,
    ],
    flops=lambda d: (
        2.0 * d["batch"] * d["heads"] * visible_pairs(d) * d["head_dim"]
    ),  # operations of one walk over the keys
    bench=[
        Bench("N 4096, D 64", **sizes(2, 16, 4096, 4096, 64)),
        Bench("N 4096, D 64, causal", **sizes(2, 16, 4096, 4096, 64, True)),
        Bench("N 2048, D 128", **sizes(8, 16, 2048, 2048, 128)),
    ],
    torch_baseline=lambda q, k, scale, causal: torch.softmax(scores_of(q, k, scale, causal), dim=-1),
)
