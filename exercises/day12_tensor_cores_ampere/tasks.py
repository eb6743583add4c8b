"""The tasks of day 12.

Sequences are concatenated without padding: sequence b has the tokens starts[b] ... starts[b + 1] - 1. The heads of a
token are contiguous, [heads, head_dim], but the stride from token to token may be larger: q, k and v may be slices of
one fused projection.
"""

import torch

from grader.course.task import Bar, Bench, Case, Exercise, Grid, Input, Output, between, normal, one_of

# ---------------------------------------------------------------------------------------------------------- inputs


def starts_of(lengths):
    """Return a generator of starts for sequences of these lengths: the first token of each, and the end of the last."""

    def draw(shape):
        return torch.tensor([0, *lengths]).cumsum(0)

    return draw


def random_starts(tokens):
    """Return a generator of starts that divide the tokens at random; a sequence may get none."""

    def draw(shape, dims, generator):
        cuts = torch.randint(0, dims[tokens] + 1, (shape[0] - 2,), generator=generator).sort().values
        return torch.cat([torch.tensor([0]), cuts, torch.tensor([dims[tokens]])])

    return draw


def equal_shares(tokens):
    """Return a generator of starts that give every sequence the same number of tokens."""

    def draw(shape, dims):
        return torch.arange(shape[0]) * (dims[tokens] // max(shape[0] - 1, 1))

    return draw


def rows_of(heads, values):
    """Return a generator of one row per token. The padding after the last head is NaN: kernels must not use it."""

    def draw(shape, dims, generator):
        drawn = values(shape, dims, generator) if isinstance(values, normal) else values(shape, generator)
        return drawn.masked_fill(torch.arange(shape[1]) >= dims[heads] * dims["head_dim"], torch.nan)

    return draw


def one_direction(shape, generator):
    """Draw queries that all point in about the same direction."""
    return 1 + 0.3 * torch.randn(shape, generator=generator)


def rising(shape, generator):
    """Draw keys whose scores with ``one_direction`` rise along the keys, so that each tile has a new maximum."""
    return torch.linspace(-1, 1, shape[0])[:, None] * 3 + 0.3 * torch.randn(shape, generator=generator)


def falling(shape, generator):
    """Draw keys whose scores with ``one_direction`` fall, so that most weights are much smaller than the first."""
    return -rising(shape, generator)


def nan_from(token):
    """Return a generator of rows that are NaN from row ``token`` on."""

    def draw(shape, generator):
        drawn = torch.randn(shape, generator=generator)
        drawn[token:] = torch.nan
        return drawn

    return draw


# ---------------------------------------------------------------------------------------------------------- references


def by_head(x, heads, head_dim):
    """Reshape [tokens, stride] to [heads, tokens, head_dim]."""
    return x[:, : heads * head_dim].unflatten(1, (heads, head_dim)).transpose(0, 1)


def attention(q, k, v, query_starts, key_starts, heads, kv_heads, head_dim, scale, causal):
    """Return softmax(scale * q k^T) v for each sequence; zeros for a query that sees no key."""
    q, k, v = by_head(q, heads, head_dim), by_head(k, kv_heads, head_dim), by_head(v, kv_heads, head_dim)
    k, v = (x.repeat_interleave(heads // kv_heads, dim=0) for x in (k, v))
    out = torch.zeros_like(q)
    for b in range(len(query_starts) - 1):
        queries, keys = slice(*query_starts[b : b + 2].tolist()), slice(*key_starts[b : b + 2].tolist())
        scores = q[:, queries] @ k[:, keys].transpose(-1, -2) * scale
        if causal:
            n, m = scores.shape[-2:]
            scores = scores.masked_fill(torch.ones(n, m, dtype=torch.bool).triu(m - n + 1), -torch.inf)
        out[:, queries] = torch.nan_to_num(torch.softmax(scores, dim=-1), nan=0.0) @ v[:, keys]
    return out.transpose(0, 1)


def torchs(backend):
    """Return torch's attention with the given backend, for equally long sequences.

    A causal case must have as many keys as queries.
    """

    def attend(q, k, v, batch, heads, kv_heads, head_dim, scale, causal):
        from torch.nn.attention import SDPBackend, sdpa_kernel

        q, k, v = (
            by_head(x, count, head_dim).unflatten(1, (batch, -1)).transpose(0, 1)
            for x, count in ((q, heads), (k, kv_heads), (v, kv_heads))
        )
        with sdpa_kernel(getattr(SDPBackend, backend if q.is_cuda else "MATH")):
            attention = torch.nn.functional.scaled_dot_product_attention
            return attention(q, k, v, is_causal=causal, scale=scale, enable_gqa=heads != kv_heads).transpose(1, 2)

    return attend


# ---------------------------------------------------------------------------------------------------------- sizes


def scale_of(dims):
    """Return the scale: 1 / sqrt(head_dim), unless the case sets it."""
    return dims.get("scale", dims["head_dim"] ** -0.5)


def heads_of(dims):
    """Return the number of query heads: ``heads`` if given, otherwise kv_heads * group."""
    return dims.get("heads", dims["kv_heads"] * dims.get("group", 1))


def pairs(d):
    """Return the number of visible (query, key) pairs per sequence and head, if all sequences have equal lengths."""
    n, m = (d[tokens] // max(d["batch"], 1) for tokens in ("queries", "keys"))
    return sum(max(0, min(m, i + 1 + m - n)) for i in range(n)) if d["causal"] else n * m


def sizes(batch, queries, keys, heads, kv_heads, head_dim=64, causal=False, **more):
    """Return the sizes of a case; ``queries`` and ``keys`` are totals over all sequences."""
    return {
        **dict(batch=batch, queries=queries, keys=keys, heads=heads, kv_heads=kv_heads, head_dim=head_dim),
        **dict(causal=causal, max_queries=queries, q_pad=0, kv_pad=0),
        **more,
    }


def sequences(name, query_lengths, key_lengths, heads=1, kv_heads=1, head_dim=64, causal=False, **more):
    """Return a case with one sequence for each pair of lengths."""
    own = {name: more.pop(name) for name in ("dtypes",) if name in more}
    inputs = {"query_starts": starts_of(query_lengths), "key_starts": starts_of(key_lengths), **more.pop("inputs", {})}
    numbers = sizes(len(query_lengths), sum(query_lengths), sum(key_lengths), heads, kv_heads, head_dim, causal, **more)
    return Case(name, inputs=inputs, **own, **{**numbers, "max_queries": max(query_lengths, default=0)})


def same_lengths(batch, query_len, key_len, heads, kv_heads, head_dim, causal=False):
    """Return the inputs and sizes of a case in which all sequences have the same lengths."""
    numbers = sizes(batch, batch * query_len, batch * key_len, heads, kv_heads, head_dim, causal)
    starts = {"query_starts": equal_shares("queries"), "key_starts": equal_shares("keys")}
    return {"inputs": starts, **numbers, "max_queries": query_len}


mma_flash_attention = Exercise(
    summary="""\
Compute out = softmax(scale * q k^T) v for several sequences at once. Sequence b has queries query_starts[b] ...
query_starts[b + 1] - 1, at most max_queries, and keys likewise. Query head h uses key/value head h / (heads /
kv_heads). The heads of a token are contiguous. The stride from token to token is q_stride or kv_stride elements, and
heads * head_dim in out; between the last head and the next token there may be anything, even NaN. Run both matmuls on
tensor cores with mma.sync: f16 and bf16 in and out, f32 in between; round the weights once, and the output once. Use one
kernel, no working memory, and no access with bank conflicts. head_dim is 4, 8, 64, 80, 96, 128 or 256, scale is
positive, all tensors are 16-byte aligned, and strides are multiples of 8. A head of 4 columns has rows of 8 bytes, which
start at multiples of 8 bytes. With `causal`, query i of n queries and m keys sees the keys up to i + m - n. A query that
sees no key gives zeros. A sequence may have no queries or no keys; without any queries, return at once. The goal on a
GPU is the speed of torch's FlashAttention-2.""",
    launchers="void mma_flash_attention_{dtype}(const {T}* q, const {T}* k, const {T}* v, const int* query_starts, "
    "const int* key_starts, {T}* out, int batch, int max_queries, int heads, int kv_heads, int head_dim, "
    "long long q_stride, long long kv_stride, float scale, bool causal, cudaStream_t stream)",
    dtypes=("f16", "bf16"),
    inputs={
        "query_starts": Input("batch+1", random_starts("queries"), dtype="i32"),
        "key_starts": Input("batch+1", random_starts("keys"), dtype="i32"),
        "q": Input("queries q_stride", rows_of("heads", normal(scale=2.0))),
        "k": Input("keys kv_stride", rows_of("kv_heads", normal())),
        "v": Input("keys kv_stride", rows_of("kv_heads", normal(channel_offset=1.0))),
    },
    outputs={"out": Output("queries heads head_dim")},
    scalars={
        "scale": scale_of,
        "heads": heads_of,
        "q_stride": lambda d: heads_of(d) * d["head_dim"] + d["q_pad"],
        "kv_stride": lambda d: d["kv_heads"] * d["head_dim"] + d["kv_pad"],
    },
    reference=attention,
    cases=[
        sequences("one query, one key", [1], [1]),
        sequences("two queries, three keys", [2], [3], dtypes=["f16"]),
        sequences("lengths that are not multiples of a tile", [129], [67]),
        sequences("one query, many keys", [1], [257], 2, 2, dtypes=["bf16"]),
        sequences("heads that share keys", [37], [70], 8, 2),
        sequences("groups of 7", [23], [40], 14, 2, dtypes=["bf16"]),
        sequences("causal, as many keys as queries", [131], [131], 2, 2, causal=True, dtypes=["f16"]),
        sequences("causal, more keys than queries", [5], [200], 4, 2, causal=True, dtypes=["bf16"]),
        sequences("causal, queries that see no key", [150], [71], causal=True),
        sequences("sequences of different lengths", [3, 70, 1, 33], [9, 70, 130, 40], 2, 1, causal=True),
        sequences("a sequence without queries, one without keys", [9, 0, 12, 5], [20, 16, 0, 5], 2, 1),
        sequences("slices of a fused projection", [17, 30], [17, 30], 4, 2, causal=True, q_pad=256, kv_pad=384),
        sequences("head_dim 4", [33, 2], [70, 5], 4, 2, 4),
        sequences("head_dim 8", [33, 2], [70, 5], 2, 1, 8, True, kv_pad=8),
        sequences("head_dim 80", [65], [66], 2, 1, 80, dtypes=["f16"]),
        sequences("head_dim 96", [40, 25], [33, 100], 2, 2, 96, True, dtypes=["bf16"]),
        sequences("head_dim 128", [67], [150], 2, 1, 128),
        sequences("head_dim 256", [35], [70], 2, 1, 256, True),
        sequences(
            "scores that rise from key to key",
            [34],
            [300],
            inputs={"q": rows_of("heads", one_direction), "k": rows_of("kv_heads", rising)},
        ),
        sequences(
            "scores that fall from key to key",
            [20],
            [200],
            inputs={"q": rows_of("heads", one_direction), "k": rows_of("kv_heads", falling)},
            dtypes=["f16"],
        ),
        sequences("a scale of 0.4", [40], [50], scale=0.4, dtypes=["f16"]),
        sequences("large scores do not overflow", [33], [90], inputs={"q": rows_of("heads", normal(scale=50.0))}),
        sequences(
            "all scores far below zero",
            [33],
            [90],
            inputs={"q": rows_of("heads", normal(mean=2.0)), "k": rows_of("kv_heads", normal(mean=-2.0))},
        ),
        sequences(
            "sums beyond 65504",
            [3],
            [300],
            inputs={
                "q": rows_of("heads", normal(scale=0.01)),
                "v": rows_of("kv_heads", normal(mean=300.0, channel_offset=100.0)),
            },
            dtypes=["f16"],
        ),
        Case(
            "random sizes",
            batch=between(1, 4),
            queries=between(1, 90),
            max_queries=90,
            keys=between(1, 150),
            kv_heads=between(1, 2),
            group=between(1, 5),
            head_dim=one_of(8, 64, 80, 96, 128),
            causal=one_of(False, True),
            q_pad=one_of(0, 8, 192),
            kv_pad=one_of(0, 8, 192),
        ),
        sequences("no keys", [5], [0], dtypes=["f16"]),
        sequences("no queries", [0], [5], dtypes=["f16"]),
        sequences("no sequences", [], [], dtypes=["bf16"]),
    ],
    efficient=Case("128 queries, 256 keys, 2 heads", dtypes=["f16"], **same_lengths(1, 128, 256, 2, 1, 128)),
    bars=[
        Bar("tensor_operations / flops_needed", at_least=1, look="Run both matmuls with mma.sync."),
        Bar("global_bytes / minimum", at_most=2.6, look="Let at least 64 rows of q share each tile of k and v."),
        Bar("sectors / ideal", at_most=1.2, look="Let neighboring threads move neighboring 16 bytes."),
        Bar(
            "shared_wavefronts / (flops_needed / 64)",
            at_most=0.08,
            look="This is the number of shared-memory wavefronts per multiply-add of a warp. Keep scores and weights "
            "in registers.",
        ),
        Bar(
            "bank_conflict_ways",
            at_most=1.05,
            look="Swizzle the chunks of the tiles, or pad their rows.",
            naive="tiles are not swizzled",
        ),
        Bar("launches", at_most=1, look="Compute scores, softmax and weighted sum in one kernel."),
        Bar("scratch_bytes", at_most=0, look="Do not store the scores in global memory."),
    ],
    flops=lambda d: 4 * d["batch"] * heads_of(d) * pairs(d) * d["head_dim"],
    bench=[
        Bench("N 4096, D 64", **same_lengths(4, 4096, 4096, 16, 16, 64)),
        Bench("N 4096, D 128", **same_lengths(4, 4096, 4096, 16, 16, 128)),
        Bench("N 4096, D 128, causal", **same_lengths(4, 4096, 4096, 16, 16, 128, True)),
        Bench("N 4096, D 96", dtypes=["bf16"], **same_lengths(4, 4096, 4096, 16, 16, 96)),
        Bench("N 4096, D 256", dtypes=["bf16"], **same_lengths(4, 4096, 4096, 8, 8, 256)),
        Bench("32 of 8 heads, N 2048, D 128, causal", dtypes=["bf16"], **same_lengths(4, 2048, 2048, 32, 8, 128, True)),
    ],
    grid=Grid(
        (64, 96, 128, 256),
        lambda batch, heads, n, head_dim, causal: same_lengths(batch, n, n, heads, heads, head_dim, causal),
        tensor_cores=True,
        rivals={"FlashAttention-2": torchs("FLASH_ATTENTION"), "cuDNN": torchs("CUDNN_ATTENTION")},
    ),
    torch_baseline=torchs("FLASH_ATTENTION"),
)
