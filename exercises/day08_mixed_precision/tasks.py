"""The exercises of day 8: attention in f16 and bf16.

Shapes: queries and outputs are [batch, heads, query_len, head_dim], keys and values [batch, heads, key_len, head_dim].
All are f16 or bf16. Under a causal mask the queries are the last ones: query i sees the keys up to
i + key_len - query_len.
"""

import torch

from grader.course.task import Bar, Bench, Case, Exercise, Grid, Input, Output, between, normal, one_of


def hidden(query_len, key_len):
    """Return a [query_len, key_len] mask, true where a causal mask hides the key."""
    return torch.ones(query_len, key_len, dtype=torch.bool).triu(key_len - query_len + 1)


def attention(q, k, v, scale, causal):
    """Return softmax(scale * q k^T) v, with zeros for a query that sees no key."""
    scores = q @ k.transpose(-1, -2) * scale
    if causal:
        scores = scores.masked_fill(hidden(q.shape[-2], k.shape[-2]), -torch.inf)
    return torch.nan_to_num(torch.softmax(scores, dim=-1), nan=0.0) @ v


def without_softmax(q, k, v, scale, causal):
    """Return a wrong output, without a softmax: the scores are the weights."""
    scores = q @ k.transpose(-1, -2) * scale
    return (scores.masked_fill(hidden(q.shape[-2], k.shape[-2]), 0.0) if causal else scores) @ v


def scale_of(dims):
    """Return the case's scale, 1 / sqrt(head_dim) by default."""
    return dims.get("scale", dims["head_dim"] ** -0.5)


def rising(shape, generator):
    """Return keys whose scores with ``one_direction`` rise along the keys, so that each tile has a new maximum."""
    steps = torch.linspace(-1, 1, shape[-2])[:, None]
    return steps * 3 + 0.3 * torch.randn(shape, generator=generator)


def falling(shape, generator):
    """Return keys whose scores with ``steep`` fall by more than 88 from tile to tile."""
    return -rising(shape, generator)


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
    """Run torch's FlashAttention-2."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    with sdpa_kernel(SDPBackend.FLASH_ATTENTION if q.is_cuda else SDPBackend.MATH):
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal, scale=scale)


QKV = {
    "q": Input("batch heads query_len head_dim", normal(scale=2.0)),
    "k": Input("batch heads key_len head_dim", normal()),
    "v": Input("batch heads key_len head_dim", normal(channel_offset=1.0)),
}
OUT = {"out": Output("batch heads query_len head_dim")}
PROTOTYPE = (
    "void {name}_{{dtype}}(const {{T}}* q, const {{T}}* k, const {{T}}* v, {{T}}* out, int batch, int heads, int query_len, "
    "int key_len, int head_dim, float scale, bool causal, cudaStream_t stream)"
)
BELOW_ZERO = {"q": normal(mean=2.0), "k": normal(mean=-2.0)}
EQUAL_WEIGHTS = {"q": normal(scale=0.01), "v": normal(mean=300.0, channel_offset=100.0)}
ONE_LAUNCH = Bar("launches", at_most=1, look="Compute scores, softmax and weighted sum in one kernel.")
NO_SCRATCH = Bar("scratch_bytes", at_most=0, look="Do not store the scores in global memory.")


def sizes(batch=1, heads=1, query_len=1, key_len=1, head_dim=64, causal=False, **more):
    """Return the dimensions of the tensors of a test case, by name."""
    return dict(
        batch=batch, heads=heads, query_len=query_len, key_len=key_len, head_dim=head_dim, causal=causal, **more
    )


mixed_precision_attention = Exercise(
    summary="""\
out = softmax(scale * q k^T) v for f16 and bf16, both matmuls on tensor cores through nvcuda::wmma with accumulators
in f32. Maximum, exponentials and sum of each row are f32. The weights are rounded once for the second matmul, the
output once at the end. One kernel, no scratch memory. head_dim is a multiple of 8 up to 128; any lengths. With `causal`,
query i sees the keys up to i + key_len - query_len; a query that sees no key gives zeros. With no keys at all, every
output is zero; with no queries there is nothing to do. The goal on a GPU is at least 0.6 times the speed of torch's
FlashAttention-2.""",
    launchers=PROTOTYPE.format(name="mixed_precision_attention"),
    dtypes=("f16", "bf16"),
    inputs=QKV,
    outputs=OUT,
    scalars={"scale": scale_of},
    reference=attention,
    trivial=[without_softmax],
    cases=[
        Case("one query, one key", **sizes()),
        Case("two queries, three keys", **sizes(query_len=2, key_len=3, head_dim=32)),
        Case("lengths that are not multiples of a tile", **sizes(query_len=129, key_len=67)),
        Case("batches and heads", **sizes(batch=2, heads=2, query_len=19, key_len=37, head_dim=32)),
        Case(
            "scores that rise from key to key",
            inputs={"q": one_direction, "k": rising},
            **sizes(query_len=34, key_len=150),
        ),
        Case("one query, many keys", dtypes=["bf16"], **sizes(heads=2, key_len=257)),
        Case(
            "causal, as many keys as queries", dtypes=["f16"], **sizes(heads=2, query_len=131, key_len=131, causal=True)
        ),
        Case("causal, more keys than queries", **sizes(batch=2, query_len=5, key_len=101, causal=True)),
        Case(
            "causal, queries that see no key",
            dtypes=["bf16"],
            **sizes(heads=2, query_len=150, key_len=71, head_dim=32, causal=True),
        ),
        Case("head_dim 8", **sizes(heads=2, query_len=33, key_len=65, head_dim=8)),
        Case("head_dim 80", dtypes=["f16"], **sizes(heads=2, query_len=33, key_len=65, head_dim=80)),
        Case(
            "head_dim 96, causal, queries that see no key",
            dtypes=["bf16"],
            **sizes(query_len=65, key_len=33, head_dim=96, causal=True),
        ),
        Case("head_dim 128", **sizes(query_len=67, key_len=70, head_dim=128)),
        Case(
            "pointers that are not 16-byte aligned",
            offsets={"q": 1, "k": 2, "v": 3, "out": 1},
            **sizes(query_len=9, key_len=70),
        ),
        Case("a scale of 0.4", dtypes=["f16"], **sizes(query_len=40, key_len=50, head_dim=32, scale=0.4)),
        Case("large scores do not overflow", inputs={"q": normal(scale=50.0)}, **sizes(query_len=33, key_len=90)),
        Case("all scores far below zero", inputs=BELOW_ZERO, **sizes(query_len=33, key_len=90)),
        Case("sums beyond 65504", dtypes=["f16"], inputs=EQUAL_WEIGHTS, **sizes(query_len=3, key_len=300)),
        Case(
            "dot products beyond 65504, before the scale",
            dtypes=["f16"],
            inputs={"q": normal(mean=32.0), "k": normal(mean=32.0)},
            **sizes(query_len=20, key_len=40, head_dim=128, scale=0.002),
        ),
        Case(
            "random sizes",
            batch=between(1, 2),
            heads=between(1, 2),
            query_len=between(1, 100),
            key_len=between(1, 100),
            head_dim=one_of(8, 32, 64, 80, 96, 128),
            causal=one_of(False, True),
        ),
        Case("no keys", dtypes=["f16"], **sizes(query_len=5, key_len=0, head_dim=32)),
        Case("no queries", dtypes=["f16"], **sizes(query_len=0, key_len=5, head_dim=32)),
    ],
    efficient=Case("256 queries, 256 keys", dtypes=["f16"], **sizes(query_len=256, key_len=256, head_dim=128)),
    bars=[
        Bar("tensor_operations / flops_needed", at_least=1, look="Use wmma::mma_sync for both matmuls."),
        Bar("global_bytes / minimum", at_most=2.7, look="Let at least 64 queries share each tile of k and v."),
        Bar("sectors / ideal", at_most=1.2, look="Let neighboring threads read neighboring elements."),
        Bar(
            "shared_wavefronts / (flops_needed / 64)",
            at_most=0.26,
            look="This is the number of shared-memory wavefronts per multiply-add of a warp. Use each loaded fragment "
            "several times.",
        ),
        Bar(
            "bank_conflict_ways",
            at_most=4,
            look="Pad the rows of the tiles by 16 bytes.",
            naive="tiles without padding",
        ),
        ONE_LAUNCH,
        NO_SCRATCH,
    ],
    flops=lambda d: 4 * d["batch"] * d["heads"] * pairs(d) * d["head_dim"],
    bench=[
        Bench("N 1024, D 64", **sizes(4, 16, 1024, 1024, 64)),
        Bench("N 4096, D 64", **sizes(4, 16, 4096, 4096, 64)),
        Bench("N 4096, D 128", **sizes(4, 16, 4096, 4096, 128)),
        Bench("N 4096, D 128, causal", **sizes(4, 16, 4096, 4096, 128, True)),
    ],
    grid=Grid(
        (32, 64, 96, 128),
        lambda batch, heads, n, head_dim, causal: sizes(batch, heads, n, n, head_dim, causal),
        tensor_cores=True,
    ),
    torch_baseline=torch_attention,
)

PLAIN_CASES = [
    Case("one query, one key", **sizes()),
    Case("a few keys", **sizes(heads=2, query_len=5, key_len=7, head_dim=32)),
    Case("lengths that are not multiples of a tile", **sizes(query_len=65, key_len=99, head_dim=32)),
    Case("causal", **sizes(batch=2, query_len=70, key_len=70, head_dim=32, causal=True)),
    Case("causal, queries that see no key", **sizes(query_len=80, key_len=41, head_dim=32, causal=True)),
]
RANDOM = Case(
    "random sizes",
    batch=between(1, 2),
    heads=between(1, 2),
    query_len=between(1, 80),
    key_len=between(5, 100),
    head_dim=one_of(32, 64),
    causal=one_of(False, True),
)

half_attention_debug = Exercise(
    summary="""\
Attention for f16 and bf16 with one thread per query, from a published kernel. head_dim is 32 or 64; mask and empty
input as in mixed_precision_attention. The given kernel has two faults. Find them from the report, and correct both.""",
    launchers=PROTOTYPE.format(name="half_attention_debug"),
    dtypes=("f16", "bf16"),
    inputs=QKV,
    outputs=OUT,
    scalars={"scale": scale_of},
    reference=attention,
    trivial=[without_softmax],
    cases=[
        *PLAIN_CASES,
        Case("scores that rise", inputs={"q": one_direction, "k": rising}, **sizes(query_len=33, key_len=130)),
        Case("large scores do not overflow", inputs={"q": normal(scale=50.0)}, **sizes(query_len=20, key_len=90)),
        Case("sums beyond 65504", dtypes=["f16"], inputs=EQUAL_WEIGHTS, **sizes(query_len=3, key_len=300)),
        Case("a sum of 400 small weights", inputs={"q": normal(scale=0.01)}, **sizes(query_len=3, key_len=400)),
        RANDOM,
        Case("no keys", **sizes(query_len=5, key_len=0, head_dim=32)),
        Case("no queries", **sizes(query_len=0, key_len=5, head_dim=32)),
    ],
    efficient=Case("64 queries, 128 keys", dtypes=["f16"], **sizes(query_len=64, key_len=128, head_dim=32)),
    bars=[ONE_LAUNCH, NO_SCRATCH],
    flops=lambda d: 4 * d["batch"] * d["heads"] * pairs(d) * d["head_dim"],
    torch_baseline=torch_attention,
)

half_flash_attention_debug = Exercise(
    summary="""\
Flash attention for f16 and bf16 that rounds the weights to the type of the values. head_dim is 32 or 64; mask and
empty input as in mixed_precision_attention. The given kernel is wrong for some inputs. Find them and the fault, and
correct it.""",
    launchers=PROTOTYPE.format(name="half_flash_attention_debug"),
    dtypes=("f16", "bf16"),
    inputs=QKV,
    outputs=OUT,
    scalars={"scale": scale_of},
    reference=attention,
    trivial=[without_softmax],
    cases=[
        *PLAIN_CASES,
        Case(
            "scores around 15",
            inputs={"q": normal(mean=1.4, scale=0.5), "k": normal(mean=1.4, scale=0.5)},
            **sizes(query_len=20, key_len=90),
        ),
        Case(
            "scores around -24",
            inputs={"q": normal(mean=1.75, scale=0.5), "k": normal(mean=-1.75, scale=0.5)},
            **sizes(query_len=20, key_len=90),
        ),
        Case("large scores do not overflow", inputs={"q": normal(scale=50.0)}, **sizes(query_len=20, key_len=90)),
        Case(
            "all scores far below zero",
            inputs={"q": normal(mean=4.0), "k": normal(mean=-4.0)},
            **sizes(query_len=20, key_len=80),
        ),
        Case("scores that rise", inputs={"q": one_direction, "k": rising}, **sizes(query_len=33, key_len=130)),
        Case("scores that fall steeply", inputs={"q": steep, "k": falling}, **sizes(query_len=33, key_len=130)),
        RANDOM,
        Case("no keys", **sizes(query_len=5, key_len=0, head_dim=32)),
        Case("no queries", **sizes(query_len=0, key_len=5, head_dim=32)),
    ],
    efficient=Case("64 queries, 128 keys", dtypes=["f16"], **sizes(query_len=64, key_len=128, head_dim=32)),
    bars=[ONE_LAUNCH, NO_SCRATCH],
    flops=lambda d: 4 * d["batch"] * d["heads"] * pairs(d) * d["head_dim"],
    torch_baseline=torch_attention,
)
