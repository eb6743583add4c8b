"""The exercises of day 7: grouped-query attention, prefill and decode.

Shapes: queries and outputs are [batch, heads, query_len, head_dim], keys and values [batch, kv_heads, key_len,
head_dim]. Query head h uses key/value head h // (heads // kv_heads). In decoding there is one query per sequence. Its
keys are in a cache with room for max_len of them; the first lengths[b] are valid.
"""

import torch

from grader.course.task import (
    Bar,
    Bench,
    Case,
    Exercise,
    Grid,
    Input,
    Output,
    between,
    constant,
    integers,
    normal,
    one_of,
)


def shared_by_group(x, heads):
    """Return [batch, heads, ...] from [batch, kv_heads, ...]: each key/value head repeated for its query heads."""
    return x.repeat_interleave(heads // x.shape[1], dim=1)


def hidden(query_len, key_len):
    """Return a [query_len, key_len] mask, true where a causal mask hides the key."""
    return torch.ones(query_len, key_len, dtype=torch.bool).triu(key_len - query_len + 1)


def attention(q, k, v, scale, causal):
    """Return softmax(scale * q k^T) v with shared key/value heads, and zeros for a query that sees no key."""
    k, v = (shared_by_group(x, q.shape[1]) for x in (k, v))
    scores = q @ k.transpose(-1, -2) * scale
    if causal:
        scores = scores.masked_fill(hidden(q.shape[-2], k.shape[-2]), -torch.inf)
    return torch.nan_to_num(torch.softmax(scores, dim=-1), nan=0.0) @ v


def decode(q, k, v, lengths, scale, first_sequence):
    """Return attention of one query per sequence to its first lengths[b] keys; zeros if lengths[b] is 0."""
    out = torch.zeros_like(q)
    for b, length in enumerate(lengths[first_sequence:].tolist(), first_sequence):
        keys, values = (cache[b - first_sequence, None, :, :length] for cache in (k, v))
        one = attention(q[b, None, :, None], keys, values, scale, causal=False)
        out[b] = one[0, :, 0]
    return out


def scale_of(dims):
    """Return the case's scale, 1 / sqrt(head_dim) by default."""
    return dims.get("scale", dims["head_dim"] ** -0.5)


def heads_of(dims):
    """Return the number of query heads: ``heads`` if given, otherwise kv_heads * group."""
    return dims.get("heads", dims["kv_heads"] * dims.get("group", 1))


def cached(values):
    """Return a cache [batch, kv_heads, max_len, head_dim] whose unused end is NaN: the kernel must not use it."""

    def draw(shape, dims, generator, inputs):
        cache = values(shape, dims, generator)
        unused = torch.arange(shape[2]) >= inputs["lengths"][-shape[0] :, None]
        return cache.masked_fill(unused[:, None, :, None], torch.nan)

    return draw


def every_length(shape, dims):
    """Return lengths 0, 1, 2, ... up to max_len."""
    return torch.arange(shape[0]) % (dims["max_len"] + 1)


def rising(shape, generator):
    """Return keys whose scores with ``one_direction`` rise along the keys, so that each step has a new maximum."""
    steps = torch.linspace(-1, 1, shape[-2])[:, None]
    return steps * 3 + 0.3 * torch.randn(shape, generator=generator)


def rising_cache(shape, dims, generator):
    """Return keys that ``rising`` draws. ``cached`` calls this function and adds the unused part of the cache."""
    return rising(shape, generator)


def one_direction(shape, generator):
    """Return queries that all point in about the same direction."""
    return 1 + 0.3 * torch.randn(shape, generator=generator)


def pairs(d):
    """Return the number of visible (query, key) pairs of one head."""
    n, m = d["query_len"], d["key_len"]
    return sum(max(0, min(m, i + 1 + m - n)) for i in range(n)) if d["causal"] else n * m


def torch_attention(q, k, v, scale, causal):
    """Run torch's fused attention. A causal case must have as many queries as keys."""
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal, scale=scale, enable_gqa=True)


def torch_decode(q, k, v, scale):
    """Run torch's fused attention on full caches, with cuDNN where available."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    backends = [SDPBackend.CUDNN_ATTENTION, SDPBackend.FLASH_ATTENTION, SDPBackend.MATH]
    with sdpa_kernel(backends if q.is_cuda else [SDPBackend.MATH], set_priority=q.is_cuda):
        attend = torch.nn.functional.scaled_dot_product_attention
        return attend(q[:, :, None], k, v, scale=scale, enable_gqa=True)[:, :, 0]


QKV = {
    "q": Input("batch heads query_len head_dim", normal(scale=2.0)),
    "k": Input("batch kv_heads key_len head_dim", normal()),
    "v": Input("batch kv_heads key_len head_dim", normal(channel_offset=1.0)),
}
TOLERANCE = {"f32": 1e-4, "f16": 3e-3, "bf16": 1.6e-2}  # f32: scores near 100 have rounding errors of 1e-5


def sizes(batch=1, heads=1, kv_heads=1, query_len=1, key_len=1, head_dim=64, causal=False, **more):
    """Return the dimensions of the tensors of a test case, by name."""
    return dict(
        batch=batch,
        heads=heads,
        kv_heads=kv_heads,
        query_len=query_len,
        key_len=key_len,
        head_dim=head_dim,
        causal=causal,
        **more,
    )


gqa_prefill = Exercise(
    summary="""\
out = softmax(scale * q k^T) v, where heads query heads share kv_heads key/value heads: query head h uses head h /
(heads / kv_heads). f32, f16 and bf16 in and out; scores, softmax and sums in float. One kernel without scratch
memory. The query heads of a group share each tile of keys, even when there are few queries. head_dim is at most 128
and a multiple of 8, or of 4 in f32. All tensors are 16-byte aligned, and any lengths are allowed. With `causal`,
query i sees the keys up to i + key_len - query_len; a query that sees no key gives zeros. With no keys at all every
output is zero; with no queries there is nothing to do.""",
    launchers="void gqa_prefill_{dtype}(const {T}* q, const {T}* k, const {T}* v, {T}* out, int batch, int heads, "
    "int kv_heads, int query_len, int key_len, int head_dim, float scale, bool causal, cudaStream_t stream)",
    dtypes=("f32", "f16", "bf16"),
    inputs=QKV,
    outputs={"out": Output("batch heads query_len head_dim")},
    scalars={"scale": scale_of, "heads": heads_of},
    reference=attention,
    tolerance=TOLERANCE,
    cases=[
        Case("one query, one key", **sizes()),
        Case("groups of 4", **sizes(1, 8, 2, 5, 13, 32)),
        Case("every head its own key/value head", dtypes=["f16"], **sizes(2, 3, 3, 9, 17, 32)),
        Case("one key/value head for all", dtypes=["bf16"], **sizes(2, 5, 1, 9, 34, 32)),
        Case("groups of 7, batches", dtypes=["f16"], **sizes(2, 14, 2, 10, 11, 32)),
        Case("lengths that are not multiples of a tile", dtypes=["f32"], **sizes(1, 2, 1, 67, 65)),
        Case("causal, as many keys as queries", **sizes(1, 4, 2, 37, 37, 32, True)),
        Case("causal, more keys than queries", dtypes=["bf16"], **sizes(2, 4, 2, 3, 71, 64, True)),
        Case("causal, queries that see no key", dtypes=["f16"], **sizes(1, 6, 2, 50, 21, 32, True)),
        Case("head_dim 4", dtypes=["f32"], **sizes(1, 4, 2, 7, 33, 4)),
        Case("head_dim 8", **sizes(1, 4, 2, 7, 33, 8)),
        Case("head_dim 80", dtypes=["f16"], **sizes(1, 4, 2, 7, 33, 80)),
        Case("head_dim 96, causal", dtypes=["bf16"], **sizes(1, 4, 2, 9, 19, 96, True)),
        Case("head_dim 128", dtypes=["f32", "f16"], **sizes(1, 4, 2, 9, 35, 128)),
        Case("a scale of 0.4", dtypes=["f32"], **sizes(1, 2, 1, 8, 30, 32, scale=0.4)),
        Case(
            "scores that rise from key to key",
            dtypes=["f32"],
            inputs={"q": one_direction, "k": rising},
            **sizes(1, 2, 1, 8, 130, 32),
        ),
        Case("large scores do not overflow", dtypes=["f16"], inputs={"q": normal(scale=50.0)}, **sizes(1, 2, 1, 9, 70)),
        Case(
            "random sizes",
            batch=between(1, 2),
            kv_heads=between(1, 2),
            group=between(1, 5),
            query_len=between(1, 40),
            key_len=between(1, 60),
            head_dim=one_of(8, 32, 64, 80, 96, 128),
            causal=one_of(False, True),
        ),
        Case("no keys", dtypes=["f32"], **sizes(1, 2, 1, 5, 0, 32)),
        Case("no queries", dtypes=["f32"], **sizes(1, 2, 1, 0, 5, 32)),
    ],
    efficient=Case("8 queries, 256 keys, groups of 8", dtypes=["f16"], **sizes(1, 16, 2, 8, 256)),
    bars=[
        Bar(
            "global_bytes / minimum",
            at_most=1.3,
            look="Let all query heads of a group share each tile of k and v.",
            naive="every query head loads the keys again",
        ),
        Bar("sectors / ideal", at_most=1.3, look="Let neighboring threads read neighboring elements."),
        Bar("launches", at_most=1, look="Compute scores, softmax and weighted sum in one kernel."),
        Bar("scratch_bytes", at_most=0, look="Do not store the scores in global memory."),
    ],
    flops=lambda d: 4 * d["batch"] * heads_of(d) * pairs(d) * d["head_dim"],
    bench=[
        Bench("32 of 8 heads, N 2048, causal", dtypes=["f16", "bf16"], **sizes(4, 32, 8, 2048, 2048, 128, True)),
        Bench("28 of 4 heads, N 1024, causal", **sizes(4, 28, 4, 1024, 1024, 128, True)),
        Bench("32 of 8 heads, 16 queries, 8192 keys", dtypes=["bf16"], **sizes(4, 32, 8, 16, 8192, 128)),
    ],
    grid=Grid(
        (32, 64, 96, 128),
        lambda batch, heads, n, head_dim, causal: sizes(batch, heads, heads // 4, n, n, head_dim, causal),
    ),
    torch_baseline=torch_attention,
)


def decoding(batch=1, heads=1, kv_heads=1, max_len=1, head_dim=64, splits=4, **more):
    """Return the dimensions of the tensors of a test case, by name."""
    return dict(batch=batch, heads=heads, kv_heads=kv_heads, max_len=max_len, head_dim=head_dim, splits=splits, **more)


FULL = {"lengths": constant("max_len")}
CACHE = "(batch-first_sequence) kv_heads room head_dim"
"""The shape of the cache. The largest case allocates only the first ``room`` keys of the last sequence."""
PARTS_OF_CACHE = {"first_sequence": lambda d: d.get("first_sequence", 0), "room": lambda d: d.get("room", d["max_len"])}

gqa_decode = Exercise(
    summary="""\
One query per sequence against its KV cache: out[b, h] = softmax(scale * q[b, h] k^T) v over the first lengths[b] keys
of key/value head h / (heads / kv_heads). The cache past these keys must not be used. The keys of a sequence are split
into at most `splits` parts for different blocks. Each part stores its maximum, sum and weighted sum in the scratch
memory partial_stats and partial_out, and a second kernel combines them. Each key and value is fetched once for all
query heads of its group. f32, f16 and bf16, sums in float. head_dim is at most 128 and a multiple of 8, or of 4 in
f32. All tensors are 16-byte aligned; the cache may have more than 2^31 elements. A sequence of length 0 gives zeros;
with no sequences there is nothing to do.""",
    launchers="void gqa_decode_{dtype}(const {T}* q, const {T}* k, const {T}* v, const int* lengths, {T}* out, "
    "float* partial_out, float* partial_stats, int batch, int heads, int kv_heads, int max_len, int head_dim, "
    "int splits, float scale, cudaStream_t stream)",
    dtypes=("f32", "f16", "bf16"),
    inputs={
        "lengths": Input("batch", integers(0, "max_len + 1"), dtype="i32"),
        "q": Input("batch heads head_dim", normal(scale=2.0)),
        "k": Input(CACHE, cached(normal())),
        "v": Input(CACHE, cached(normal(channel_offset=1.0, mean=0.5))),
    },
    outputs={
        "out": Output("batch heads head_dim"),
        "partial_out": Output("batch heads splits head_dim", dtype="f32", scratch=True),
        "partial_stats": Output("batch heads splits 2", dtype="f32", scratch=True),
    },
    scalars={"scale": scale_of, "heads": heads_of, **PARTS_OF_CACHE},
    reference=decode,
    tolerance=TOLERANCE,
    cases=[
        Case("one key", inputs=FULL, **decoding()),
        Case("groups of 4", inputs=FULL, **decoding(1, 8, 2, 150)),
        Case(
            "scores that rise from key to key",
            dtypes=["f32"],
            inputs={**FULL, "q": one_direction, "k": cached(rising_cache)},
            **decoding(1, 2, 1, 300, 32),
        ),
        Case(
            "scores that rise, groups of 8",
            dtypes=["f16"],
            inputs={**FULL, "q": one_direction, "k": cached(rising_cache)},
            **decoding(1, 8, 1, 200, 64, 1),
        ),
        Case("lengths from 0", dtypes=["f16"], inputs={"lengths": every_length}, **decoding(6, 2, 1, 4, 32, 2)),
        Case("129 keys in two parts", dtypes=["bf16"], inputs=FULL, **decoding(1, 4, 2, 129, 64, 2)),
        Case("sequences of different lengths", dtypes=["f32", "bf16"], **decoding(5, 4, 2, 200, 32, 3)),
        Case("one part", dtypes=["f16", "f32"], **decoding(3, 4, 2, 90, 64, 1)),
        Case("more parts than keys", dtypes=["f16"], **decoding(3, 4, 1, 9, 64, 16)),
        Case("many parts", dtypes=["bf16"], inputs=FULL, **decoding(1, 4, 1, 530, 32, 8)),
        Case("groups of 7", dtypes=["f16"], inputs=FULL, **decoding(2, 14, 2, 70, 64)),
        Case("head_dim 4", dtypes=["f32"], inputs=FULL, **decoding(2, 4, 2, 99, 4, 2)),
        Case("head_dim 8", inputs=FULL, **decoding(1, 4, 2, 99, 8, 2)),
        Case("groups of 1 and head_dim 80", dtypes=["f16", "f32"], inputs=FULL, **decoding(1, 2, 2, 99, 80)),
        Case("groups of 12", dtypes=["bf16"], inputs=FULL, **decoding(1, 12, 1, 67, 64)),
        Case("groups of 5, head_dim 96", dtypes=["bf16"], inputs=FULL, **decoding(1, 5, 1, 40, 96)),
        Case("head_dim 128", inputs=FULL, **decoding(1, 4, 1, 131, 128)),
        Case("a scale of 0.4", dtypes=["f32"], inputs=FULL, **decoding(1, 2, 1, 50, 32, scale=0.4)),
        Case(
            "large scores do not overflow",
            dtypes=["f16"],
            inputs={**FULL, "q": normal(scale=50.0)},
            **decoding(1, 2, 1, 150, 64),
        ),
        Case(
            "all scores far below zero",
            dtypes=["bf16"],
            inputs={**FULL, "q": normal(mean=4.0), "k": cached(normal(mean=-4.0))},
            **decoding(1, 2, 1, 90, 64),
        ),
        Case(
            "random sizes",
            batch=between(1, 3),
            kv_heads=between(1, 2),
            group=between(1, 8),
            max_len=between(1, 140),
            head_dim=one_of(8, 32, 64, 80, 96, 128),
            splits=between(1, 5),
        ),
        Case(
            "a sequence that starts beyond element 2^32",
            dtypes=["f16"],
            inputs={"lengths": lambda shape: torch.tensor([0, 41])},
            before={name: "first_sequence * kv_heads * max_len * head_dim" for name in ("k", "v")},
            **decoding(2, 4, 1, 1 << 29, splits=3, first_sequence=1, room=48),
        ),
        Case("no sequences", dtypes=["f16"], **decoding(0, 2, 1, 5)),
    ],
    efficient=Case("1024 keys, groups of 4", dtypes=["f16"], inputs=FULL, **decoding(1, 8, 2, 1024, 64, 4)),
    bars=[
        Bar(
            "global_bytes / minimum",
            at_most=1.15,
            look="Fetch each key once for all query heads of its group.",
            naive="every query head loads the keys and values again",
        ),
        Bar("sectors / ideal", at_most=1.2, look="Let the lanes of a warp read whole rows of k and v."),
        Bar(
            "requests / (global_bytes / 512)",
            at_most=3,
            look="Let a lane load 16 bytes of a key or value, not one element: a warp's request then moves 512 bytes.",
            naive="lanes load one element at a time",
        ),
        Bar(
            "launches", at_most=2, look="Use two kernels: one computes the parts of the keys, the other combines them."
        ),
        Bar(
            "blocks",
            at_least=8,
            look="Split the keys among more blocks: with so few blocks most SMs are idle.",
            naive="the keys are not split",
        ),
        Bar("scratch_bytes", at_most=0, look="Use the scratch memory in the parameters, and allocate none."),
    ],
    flops=lambda d: 4 * d["batch"] * heads_of(d) * d["max_len"] * d["head_dim"],
    bench=[
        Bench("64 sequences, 4096 keys", inputs=FULL, dtypes=["f16", "bf16"], **decoding(64, 32, 8, 4096, 128, 1)),
        Bench("256 sequences, 2048 keys", inputs=FULL, dtypes=["bf16"], **decoding(256, 32, 8, 2048, 128, 1)),
        Bench(
            "64 sequences, 4096 keys, groups of 8", inputs=FULL, dtypes=["bf16"], **decoding(64, 64, 8, 4096, 128, 1)
        ),
        Bench("1 sequence, 32768 keys", inputs=FULL, dtypes=["bf16"], **decoding(1, 32, 8, 32768, 128, 32)),
        Bench("16 sequences, 4096 keys, f32", inputs=FULL, dtypes=["f32"], **decoding(16, 32, 8, 4096, 128, 4)),
    ],
    torch_baseline=torch_decode,
)

gqa_debug = Exercise(
    summary="""\
Grouped-query attention with one warp per query, from a published kernel. f32, head_dim up to 128, any lengths;
shapes, mask and empty input as in gqa_prefill. The given kernel has two faults. Find them from the report, and
correct both.""",
    launchers="void gqa_debug(const float* q, const float* k, const float* v, float* out, int batch, int heads, "
    "int kv_heads, int query_len, int key_len, int head_dim, float scale, bool causal, cudaStream_t stream)",
    inputs=QKV,
    outputs={"out": Output("batch heads query_len head_dim")},
    scalars={"scale": scale_of, "heads": heads_of},
    reference=attention,
    tolerance={"f32": 1e-4},
    cases=[
        Case("one query, one key", **sizes()),
        Case("one sequence", **sizes(1, 4, 2, 3, 17, 32)),
        Case("two sequences", **sizes(2, 4, 2, 3, 17, 32)),
        Case("three sequences, groups of 3", **sizes(3, 6, 2, 2, 5, 80)),
        Case("causal", **sizes(2, 4, 1, 13, 13, 32, True)),
        Case("causal, more keys than queries", **sizes(2, 4, 2, 3, 127, 32, True)),
        Case("causal, queries that see no key", **sizes(2, 2, 1, 9, 4, 32, True)),
        Case("large scores do not overflow", inputs={"q": normal(scale=50.0)}, **sizes(1, 2, 1, 3, 70)),
        Case("scores that rise", inputs={"q": one_direction, "k": rising}, **sizes(1, 2, 1, 3, 130, 32)),
        Case(
            "random sizes",
            batch=between(1, 3),
            kv_heads=between(1, 2),
            group=between(1, 4),
            query_len=between(1, 9),
            key_len=between(1, 40),
            head_dim=between(1, 128),
            causal=one_of(False, True),
        ),
        Case("no keys", **sizes(1, 2, 1, 3, 0, 32)),
        Case("no queries", **sizes(1, 2, 1, 0, 3, 32)),
    ],
    efficient=Case("counted", **sizes(2, 4, 2, 4, 64, 64)),
    bars=[
        Bar("sectors / ideal", at_most=1.5, look="Let neighboring threads read neighboring floats."),
        Bar("launches", at_most=1),
        Bar("scratch_bytes", at_most=0),
    ],
    flops=lambda d: 4 * d["batch"] * heads_of(d) * pairs(d) * d["head_dim"],
    torch_baseline=torch_attention,
)
