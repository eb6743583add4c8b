"""The exercises of day 6: flash attention, forward and backward.

Shapes: queries and outputs are [batch, heads, query_len, head_dim], keys and values [batch, heads, key_len, head_dim].
Under a causal mask the queries are the last query_len tokens: query i sees the keys up to i + key_len - query_len.
"""

import torch

from grader.course.task import Bar, Bench, Case, Exercise, Grid, Input, Output, between, computed, normal, one_of


def hidden(query_len, key_len):
    """Return a [query_len, key_len] mask, true where a causal mask hides the key."""
    return torch.ones(query_len, key_len, dtype=torch.bool).triu(key_len - query_len + 1)


def scores_of(q, k, scale, causal):
    """Return scale * q k^T [batch, heads, query_len, key_len], -infinity where the mask hides the key."""
    scores = q @ k.transpose(-1, -2) * scale
    return scores.masked_fill(hidden(q.shape[-2], k.shape[-2]), -torch.inf) if causal else scores


def attention(q, k, v, scale, causal):
    """Return softmax(scale * q k^T) v, with zeros for a query that sees no key."""
    weights = torch.softmax(scores_of(q, k, scale, causal), dim=-1)
    return torch.nan_to_num(weights, nan=0.0) @ v


def scale_of(dims):
    """Return the case's scale, 1 / sqrt(head_dim) by default."""
    return dims.get("scale", dims["head_dim"] ** -0.5)


def rising(shape, generator):
    """Return keys whose scores with ``one_direction`` rise along the keys, so that each tile has a new maximum."""
    steps = torch.linspace(-1, 1, shape[-2])[:, None]
    return steps * 3 + 0.3 * torch.randn(shape, generator=generator)


def falling(shape, generator):
    """Return keys whose scores with ``steep`` fall by more than 88 from tile to tile.

    They begin near 0, because a large score has a large rounding error.
    """
    return -3 - rising(shape, generator)


def steep(shape, generator):
    """Return long queries that all point in about the same direction."""
    return 10 * one_direction(shape, generator)


def one_direction(shape, generator):
    """Return queries that all point in about the same direction."""
    return 1 + 0.3 * torch.randn(shape, generator=generator)


def pairs(d):
    """Return the number of visible (query, key) pairs of one head."""
    n, m = d["query_len"], d["key_len"]
    return sum(max(0, min(m, i + 1 + m - n)) for i in range(n)) if d["causal"] else n * m


def torch_attention(q, k, v, scale, causal):
    """Run torch's memory-efficient attention, the only fused backend for float32."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    with sdpa_kernel(SDPBackend.EFFICIENT_ATTENTION if q.is_cuda else SDPBackend.MATH):
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal, scale=scale)


QKV = {
    "q": Input("batch heads query_len head_dim", normal(scale=2.0)),
    "k": Input("batch heads key_len head_dim", normal()),
    "v": Input("batch heads key_len head_dim", normal(channel_offset=1.0)),
}
OUT = {"out": Output("batch heads query_len head_dim")}
PROTOTYPE = (
    "void {name}(const float* q, const float* k, const float* v, float* out, int batch, int heads, int query_len, "
    "int key_len, int head_dim, float scale, bool causal, cudaStream_t stream)"
)


def sizes(batch=1, heads=1, query_len=1, key_len=1, head_dim=64, causal=False, **more):
    """Return the dimensions of the tensors of a test case, by name."""
    return dict(
        batch=batch, heads=heads, query_len=query_len, key_len=key_len, head_dim=head_dim, causal=causal, **more
    )


flash_attention = Exercise(
    summary="""\
out = softmax(scale * q k^T) v for every batch and head, in one kernel that never stores the scores. It uses no
scratch memory, and at least 32 queries share each tile of keys and values. float32, head_dim up to 128, any lengths.
With `causal`, query i sees the keys up to i + key_len - query_len; a query that sees no key gives zeros. With no keys
at all, every output is zero; with no queries there is nothing to do.""",
    launchers=PROTOTYPE.format(name="flash_attention"),
    inputs=QKV,
    outputs=OUT,
    scalars={"scale": scale_of},
    reference=attention,
    tolerance={"f32": 1e-4},  # scores of 100 to 200 have rounding errors of 1e-5
    cases=[
        Case("one query, one key", **sizes()),
        Case("two queries, three keys", **sizes(query_len=2, key_len=3, head_dim=32)),
        Case(
            "scores that rise from key to key",
            inputs={"q": one_direction, "k": rising},
            **sizes(query_len=34, key_len=150),
        ),
        Case("lengths that are not multiples of a tile", **sizes(query_len=129, key_len=127)),
        Case("batches and heads", **sizes(batch=2, heads=3, query_len=19, key_len=37, head_dim=32)),
        Case("one query, many keys", **sizes(heads=2, query_len=1, key_len=257)),
        Case("causal, as many keys as queries", **sizes(heads=2, query_len=131, key_len=131, causal=True)),
        Case("causal, more keys than queries", **sizes(batch=2, query_len=5, key_len=101, causal=True)),
        Case("causal, queries that see no key", **sizes(heads=2, query_len=150, key_len=71, head_dim=32, causal=True)),
        Case("head_dim 80", **sizes(heads=2, query_len=33, key_len=65, head_dim=80)),
        Case(
            "head_dim 96, causal, queries that see no key", **sizes(query_len=65, key_len=33, head_dim=96, causal=True)
        ),
        Case("head_dim 128", **sizes(query_len=67, key_len=70, head_dim=128)),
        Case("head_dim 4", **sizes(heads=2, query_len=9, key_len=37, head_dim=4)),
        Case("head_dim 5", **sizes(heads=2, query_len=35, key_len=66, head_dim=5)),
        Case("head_dim 8, causal", **sizes(heads=2, query_len=9, key_len=37, head_dim=8, causal=True)),
        Case(
            "pointers that are not 16-byte aligned", offsets={"q": 1, "k": 2, "v": 3}, **sizes(query_len=9, key_len=70)
        ),
        Case("a scale of 0.4", **sizes(query_len=40, key_len=50, head_dim=32, scale=0.4)),
        Case("scores that fall steeply", inputs={"q": steep, "k": falling}, **sizes(query_len=33, key_len=130)),
        Case("large scores do not overflow", inputs={"q": normal(scale=35.0)}, **sizes(query_len=33, key_len=90)),
        Case(
            "all scores far below zero",
            inputs={"q": normal(mean=4.0), "k": normal(mean=-4.0)},
            **sizes(query_len=33, key_len=90),
        ),
        Case(
            "random sizes",
            batch=between(1, 2),
            heads=between(1, 3),
            query_len=between(1, 100),
            key_len=between(1, 100),
            head_dim=one_of(32, 64, 80, 96, 128),
            causal=one_of(False, True),
        ),
        Case("no keys", **sizes(query_len=5, key_len=0, head_dim=32)),
        Case("no queries", **sizes(query_len=0, key_len=5, head_dim=32)),
    ],
    efficient=Case("256 queries, 512 keys", **sizes(query_len=256, key_len=512, head_dim=32)),
    bars=[
        Bar(
            "global_bytes / minimum",
            at_most=6.0,
            look="Let more queries share each tile of k and v.",
            naive="tiles of 16 queries load k and v too often",
        ),
        Bar("sectors / ideal", at_most=2.0, look="Let neighboring threads read neighboring floats."),
        Bar("launches", at_most=1, look="Compute scores, softmax and weighted sum in one kernel."),
        Bar(
            "scratch_bytes",
            at_most=0,
            look="Do not store the scores in global memory.",
            naive="scratch memory for the scores",
        ),
    ],
    flops=lambda d: 4 * d["batch"] * d["heads"] * pairs(d) * d["head_dim"],
    bench=[
        Bench("N 1024, D 64", **sizes(4, 16, 1024, 1024, 64)),
        Bench("N 4096, D 64", **sizes(4, 16, 4096, 4096, 64)),
        Bench("N 4096, D 128", **sizes(4, 16, 4096, 4096, 128)),
        Bench("N 4096, D 128, causal", **sizes(4, 16, 4096, 4096, 128, True)),
    ],
    grid=Grid(
        (16, 24, 32, 48, 64, 96, 128),
        lambda batch, heads, n, head_dim, causal: sizes(batch, heads, n, n, head_dim, causal),
    ),
    torch_baseline=torch_attention,
)

flash_attention_tiles = Exercise(
    summary="""\
A correct flash attention whose tiles are far too small: k and v are fetched again for every 8 queries, and each value
read from shared memory is used only once. Choose the tiles, and let a thread own several queries, until global and
shared traffic are below their limits. The block must stay within 48 KB of shared memory. head_dim is 32 or 64; sizes,
mask and empty input as in flash_attention.""",
    launchers=PROTOTYPE.format(name="flash_attention_tiles"),
    inputs=QKV,
    outputs=OUT,
    scalars={"scale": scale_of},
    reference=attention,
    tolerance={"f32": 1e-4},  # scores of 100 to 200 have rounding errors of 1e-5
    cases=[
        Case("one query, one key", **sizes()),
        Case("lengths that are not multiples of a tile", **sizes(query_len=129, key_len=67)),
        Case("batches and heads", **sizes(batch=2, heads=2, query_len=17, key_len=33, head_dim=32)),
        Case("causal", **sizes(query_len=131, key_len=131, causal=True)),
        Case("causal, more keys than queries", **sizes(query_len=3, key_len=127, head_dim=32, causal=True)),
        Case("causal, queries that see no key", **sizes(query_len=140, key_len=61, head_dim=32, causal=True)),
        Case("large scores do not overflow", inputs={"q": normal(scale=35.0)}, **sizes(query_len=33, key_len=90)),
        Case("scores that rise", inputs={"q": one_direction, "k": rising}, **sizes(query_len=20, key_len=130)),
        Case(
            "random sizes",
            batch=between(1, 2),
            heads=between(1, 2),
            query_len=between(1, 150),
            key_len=between(1, 90),
            head_dim=one_of(32, 64),
            causal=one_of(False, True),
        ),
        Case("no keys", **sizes(query_len=5, key_len=0, head_dim=32)),
        Case("no queries", **sizes(query_len=0, key_len=5, head_dim=32)),
    ],
    efficient=Case("256 queries, 256 keys", **sizes(query_len=256, key_len=256)),
    bars=[
        Bar(
            "global_bytes / minimum",
            at_most=1.6,
            look="k and v are fetched once for each tile of queries: make the tile larger.",
            naive="64 queries per block, so k and v are fetched too often",
        ),
        Bar(
            "shared_wavefronts / (flops_needed / 64)",
            at_most=1.0,
            look="Use each value from shared memory for several multiply-adds.",
            naive="one query per lane, so no shared-memory value is reused",
        ),
        Bar("sectors / ideal", at_most=1.5, look="Let neighboring threads read neighboring floats."),
        Bar("launches", at_most=1),
        Bar("scratch_bytes", at_most=0),
    ],
    flops=lambda d: 4 * d["batch"] * d["heads"] * pairs(d) * d["head_dim"],
    bench=[
        Bench("N 1024, D 64", **sizes(4, 16, 1024, 1024, 64)),
        Bench("N 4096, D 64", **sizes(4, 16, 4096, 4096, 64)),
    ],
    torch_baseline=torch_attention,
)

flash_attention_debug = Exercise(
    summary="""\
Flash attention in one pass over the keys. head_dim is 32 or 64; sizes, mask and empty input as in flash_attention.
The given kernel has one fault. Compare the cases that pass with those that fail, find the fault, and correct it. It
must remain a single pass over the keys.""",
    launchers=PROTOTYPE.format(name="flash_attention_debug"),
    inputs=QKV,
    outputs=OUT,
    scalars={"scale": scale_of},
    reference=attention,
    tolerance={"f32": 1e-4},  # scores of 100 to 200 have rounding errors of 1e-5
    cases=[
        Case("one tile of keys", **sizes(heads=2, query_len=40, key_len=32, head_dim=32)),
        Case("two tiles of keys", **sizes(heads=2, query_len=40, key_len=64, head_dim=32)),
        Case("lengths that are not multiples of a tile", **sizes(query_len=65, key_len=99)),
        Case("scores that rise", inputs={"q": one_direction, "k": rising}, **sizes(query_len=33, key_len=130)),
        Case("scores that fall steeply", inputs={"q": steep, "k": falling}, **sizes(query_len=33, key_len=130)),
        Case("causal", **sizes(batch=2, query_len=70, key_len=70, head_dim=32, causal=True)),
        Case("causal, queries that see no key", **sizes(query_len=80, key_len=41, head_dim=32, causal=True)),
        Case("large scores do not overflow", inputs={"q": normal(scale=35.0)}, **sizes(query_len=20, key_len=90)),
        Case("all scores far below zero", inputs={"q": normal(mean=4.0), "k": normal(mean=-4.0)}, **sizes(key_len=80)),
        Case(
            "random sizes",
            batch=between(1, 2),
            heads=between(1, 2),
            query_len=between(1, 100),
            key_len=between(65, 130),
            head_dim=one_of(32, 64),
            causal=one_of(False, True),
        ),
        Case("no keys", **sizes(query_len=5, key_len=0, head_dim=32)),
        Case("no queries", **sizes(query_len=0, key_len=5, head_dim=32)),
    ],
    efficient=Case("256 queries, 512 keys", **sizes(query_len=256, key_len=512, head_dim=32)),
    bars=[
        Bar("global_bytes / minimum", at_most=6.0, look="Let more queries share each tile of k and v."),
        Bar("launches", at_most=1),
        Bar("scratch_bytes", at_most=0, look="Make one pass over the keys, without scratch memory."),
    ],
    flops=lambda d: 4 * d["batch"] * d["heads"] * pairs(d) * d["head_dim"],
    torch_baseline=torch_attention,
)


def lse_of(q, k, scale, causal):
    """Return [batch, heads, query_len]: the log of the sum of exp(scale * score); -infinity if a query sees no key."""
    return torch.logsumexp(scores_of(q, k, scale, causal), dim=-1)


def gradients(q, k, v, dout, scale, causal):
    """Return delta, dq, dk and dv by autograd through the whole score matrix."""
    q, k, v = (tensor.detach().requires_grad_() for tensor in (q, k, v))
    with torch.enable_grad():
        scores = q @ k.transpose(-1, -2) * scale
        if causal:  # masked with -1e300, because autograd through a row of -infinity gives NaN
            mask = hidden(q.shape[-2], k.shape[-2])
            weights = torch.softmax(scores.masked_fill(mask, -1e300), dim=-1).masked_fill(mask, 0.0)
        else:
            weights = torch.softmax(scores, dim=-1)
        out = weights @ v
        dq, dk, dv = torch.autograd.grad(out, (q, k, v), dout)
    return {"delta": (out.detach() * dout).sum(-1), "dq": dq, "dk": dk, "dv": dv}


def magnitudes(q, k, v, dout, scale, causal):
    """Return the sum of the absolute terms of each gradient element, because rounding errors grow with it."""
    weights = torch.nan_to_num(torch.softmax(scores_of(q, k, scale, causal), dim=-1), nan=0.0)
    products = dout.abs() @ v.abs().transpose(-1, -2)
    delta = (dout.abs() * (weights @ v.abs())).sum(-1)
    terms = weights * (products + delta[..., None]) * abs(scale)
    return {
        "delta": delta,
        "dq": terms @ k.abs(),
        "dk": terms.transpose(-1, -2) @ q.abs(),
        "dv": weights.transpose(-1, -2) @ dout.abs(),
    }


def magnitude_of(name):
    """Return a function that computes the ``magnitudes`` of one output."""
    return lambda q, k, v, dout, scale, causal: magnitudes(q, k, v, dout, scale, causal)[name]


def torch_gradients(q, k, v, out, dout, lse, scale, causal):
    """Run torch's memory-efficient backward on a GPU, and autograd on a CPU."""
    if not q.is_cuda:
        return gradients(q, k, v, dout, scale, causal)
    none = torch.zeros((), dtype=torch.int64, device=q.device)
    dq, dk, dv, _ = torch.ops.aten._scaled_dot_product_efficient_attention_backward(
        dout, q, k, v, None, out, lse, none, none, 0.0, [True, True, True, False], causal, scale=scale
    )
    return {"dq": dq, "dk": dk, "dv": dv}


def as_torch_lays_it_out(out):
    """Return ``out`` stored as [batch, query_len, heads, head_dim], the only layout that torch's kernel can read."""
    return {"out": out.transpose(1, 2).contiguous().transpose(1, 2)}


flash_attention_backward = Exercise(
    summary="""\
dq, dk and dv from q, k, v, the forward pass's out and lse, and the gradient dout of out. The scores and their weights
are never stored. delta, the row sums of dout * out, is the only scratch memory, and is checked too. No atomics: every
output has one owner that adds in a fixed order. float32, head_dim up to 128, any lengths, mask as in flash_attention.
A query that sees no key has lse = -infinity and contributes nothing; with no keys dq is zero, with no queries dk and
dv are.""",
    launchers="void flash_attention_backward(const float* q, const float* k, const float* v, const float* out, "
    "const float* dout, const float* lse, float* delta, float* dq, float* dk, float* dv, int batch, int heads, "
    "int query_len, int key_len, int head_dim, float scale, bool causal, cudaStream_t stream)",
    inputs={
        **QKV,
        "dout": Input("batch heads query_len head_dim", normal(channel_offset=0.5)),
        "out": Input("batch heads query_len head_dim", computed(attention)),
        "lse": Input("batch heads query_len", computed(lse_of)),
    },
    outputs={
        "delta": Output("batch heads query_len", scale=magnitude_of("delta")),
        "dq": Output("batch heads query_len head_dim", scale=magnitude_of("dq")),
        "dk": Output("batch heads key_len head_dim", scale=magnitude_of("dk")),
        "dv": Output("batch heads key_len head_dim", scale=magnitude_of("dv")),
    },
    scalars={"scale": scale_of},
    reference=gradients,
    cases=[
        Case("one query, two keys", **sizes(key_len=2)),
        Case("lengths that are not multiples of a tile", **sizes(query_len=67, key_len=65)),
        Case("batches and heads", **sizes(batch=2, heads=2, query_len=9, key_len=19, head_dim=32)),
        Case("causal", **sizes(heads=2, query_len=67, key_len=67, head_dim=32, causal=True)),
        Case("causal, more keys than queries", **sizes(query_len=5, key_len=71, causal=True)),
        Case("causal, queries that see no key", **sizes(query_len=80, key_len=31, head_dim=32, causal=True)),
        Case("head_dim 80", **sizes(query_len=17, key_len=21, head_dim=80)),
        Case("head_dim 4", **sizes(heads=2, query_len=7, key_len=11, head_dim=4)),
        Case("head_dim 5", **sizes(heads=2, query_len=19, key_len=23, head_dim=5)),
        Case("head_dim 8, causal", **sizes(heads=2, query_len=7, key_len=11, head_dim=8, causal=True)),
        Case(
            "pointers that are not 16-byte aligned",
            offsets={"q": 1, "v": 2, "dout": 3},
            **sizes(query_len=9, key_len=7),
        ),
        Case("head_dim 128", **sizes(query_len=21, key_len=17, head_dim=128)),
        Case("large scores do not overflow", inputs={"q": normal(scale=20.0)}, **sizes(query_len=17, key_len=33)),
        Case(
            "random sizes",
            batch=between(1, 2),
            heads=between(1, 2),
            query_len=between(1, 50),
            key_len=between(1, 50),
            head_dim=one_of(32, 64, 80),
            causal=one_of(False, True),
        ),
        Case("no keys", **sizes(query_len=3, key_len=0, head_dim=32)),
        Case("no queries", **sizes(query_len=0, key_len=3, head_dim=32)),
    ],
    efficient=Case("256 queries, 256 keys", **sizes(query_len=256, key_len=256, head_dim=32)),
    bars=[
        Bar(
            "global_bytes / minimum",
            at_most=8.0,
            look="Let more rows share each tile that is fetched.",
            naive="tiles of 16 rows: the other rows are fetched too often",
        ),
        Bar("atomics", at_most=0, look="Give every output one owner that adds in a fixed order."),
        Bar("launches", at_most=3, look="Use three kernels: one for delta, one for dk and dv, one for dq."),
        Bar("scratch_bytes", at_most=0, look="Recompute the weights, tile by tile, from lse."),
    ],
    flops=lambda d: 10 * d["batch"] * d["heads"] * pairs(d) * d["head_dim"],
    bench=[
        Bench("N 1024, D 64", **sizes(4, 16, 1024, 1024, 64)),
        Bench("N 4096, D 64", **sizes(4, 16, 4096, 4096, 64)),
        Bench("N 4096, D 128, causal", **sizes(4, 16, 4096, 4096, 128, True)),
    ],
    torch_baseline=torch_gradients,
    torch_prepare=as_torch_lays_it_out,
)
