"""The exercises of day 9.

Shapes: queries and outputs are [batch, heads, query_len, head_dim], keys and values [batch, heads, key_len,
head_dim]. All heads share one pattern. A query that sees no key gives zeros.
"""

import functools
import itertools

import torch

from grader.course.task import Bar, Bench, Case, Exercise, Input, Output, between, integers, normal, one_of

# ------------------------------------------------------------------------------------------------------ shared helpers


def weighted(q, k, v, scale, counts):
    """Return attention in which query i sees key j ``counts[i, j]`` times: a count of 2 doubles the key's weight."""
    scores = q @ k.transpose(-1, -2) * scale + counts.log()
    return torch.nan_to_num(torch.softmax(scores, dim=-1), nan=0.0) @ v


def with_mask(q, k, v, mask, scale):
    """Return torch's dense attention with a given mask: it computes all scores, also those that the mask hides."""
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=scale)


def scale_of(dims):
    """Return 1 / sqrt(head_dim), or the scale of the case."""
    return dims.get("scale", dims["head_dim"] ** -0.5)


def rising(shape, generator):
    """Draw keys whose scores with the queries of ``one_direction`` rise, so that the maximum changes often."""
    steps = torch.linspace(-1, 1, shape[-2])[:, None]
    return steps * 3 + 0.3 * torch.randn(shape, generator=generator)


def one_direction(shape, generator):
    """Draw queries that all point in about the same direction."""
    return 1 + 0.3 * torch.randn(shape, generator=generator)


QKV = {
    "q": Input("batch heads query_len head_dim", normal(scale=2.0)),
    "k": Input("batch heads key_len head_dim", normal()),
    "v": Input("batch heads key_len head_dim", normal(channel_offset=1.0)),
}
OUT = {"out": Output("batch heads query_len head_dim")}
RISING = {"q": one_direction, "k": rising}
LARGE = {"q": normal(scale=50.0)}
BELOW_ZERO = {"q": normal(mean=3.0), "k": normal(mean=-3.0)}
ONE_LAUNCH = Bar("launches", at_most=1)
NO_SCRATCH = Bar("scratch_bytes", at_most=0, look="Store no mask and no scores in global memory.")


def sizes(batch=1, heads=1, query_len=1, key_len=1, head_dim=64, **more):
    """Return the dimensions of the tensors of a test case, by name."""
    return dict(batch=batch, heads=heads, query_len=query_len, key_len=key_len, head_dim=head_dim, **more)


# ------------------------------------------------------------------------------------------------------ sliding window


def window_mask(query_len, key_len, window):
    """Return a [query_len, key_len] mask, true where query i, at position i + key_len - query_len, sees key j."""
    position = torch.arange(query_len)[:, None] + key_len - query_len
    key = torch.arange(key_len)[None]
    return (key <= position) & (key > position - window)


def windowed(q, k, v, scale, window):
    """Return attention through a sliding window."""
    return weighted(q, k, v, scale, window_mask(q.shape[-2], k.shape[-2], window).to(q.dtype))


def without_window(q, k, v, scale):
    """Return a wrong output: causal attention without a window."""
    return weighted(q, k, v, scale, window_mask(q.shape[-2], k.shape[-2], k.shape[-2] + 1).to(q.dtype))


@functools.cache
def flex(window, query_len, key_len):
    """Compile torch's FlexAttention with the block mask of a sliding window."""
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    def seen(batch, head, query, key):
        position = query + key_len - query_len
        return (key <= position) & (key > position - window)

    mask = create_block_mask(seen, None, None, query_len, key_len, device="cuda")
    compiled = torch.compile(flex_attention)
    return lambda q, k, v, scale: compiled(q, k, v, block_mask=mask, scale=scale)


def torch_window(q, k, v, scale, window):
    """Run FlexAttention on a GPU, and dense attention with a mask on a CPU."""
    if q.is_cuda:
        return flex(window, q.shape[-2], k.shape[-2])(q, k, v, scale)
    mask = window_mask(q.shape[-2], k.shape[-2], window)
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=scale)


def window_pairs(d):
    """Return the number of (query, key) pairs of one head that the window leaves visible."""
    offset = d["key_len"] - d["query_len"]
    return sum(max(0, min(d["window"], i + 1 + offset)) for i in range(d["query_len"]))


sliding_window = Exercise(
    summary="""\
Attention through a sliding window. Query i is at position i + key_len - query_len and sees the last `window` keys up
to and including that position. Inputs and outputs are f16 or bf16, sums are f32. Keys before the window
must cost nothing: do not read them, and compute nothing for them. head_dim is a multiple of 8 up to 128, window at
least 1, scale any number, any lengths. A query that sees no key gives zeros. With no keys all outputs are zero;
with no queries there is nothing to do. On a
GPU, the goal is the speed of torch's FlexAttention for a window of 512 and 8192 keys.""",
    launchers="""void sliding_window_{dtype}(const {T}* q, const {T}* k, const {T}* v, {T}* out, int batch, int heads,
                 int query_len, int key_len, int head_dim, int window, float scale, cudaStream_t stream)""",
    dtypes=("f16", "bf16"),
    inputs=QKV,
    outputs=OUT,
    scalars={"scale": scale_of},
    reference=windowed,
    trivial=[without_window],
    cases=[
        Case("one query, one key", **sizes(window=1)),
        Case(
            "a window of one, so that out is v",
            dtypes=["f16"],
            **sizes(query_len=40, key_len=40, head_dim=32, window=1),
        ),
        Case("a window of three", **sizes(query_len=70, key_len=70, head_dim=32, window=3)),
        Case("windows that start inside a tile", **sizes(heads=2, query_len=150, key_len=150, window=37)),
        Case("a window of whole tiles", dtypes=["bf16"], **sizes(query_len=200, key_len=200, head_dim=32, window=64)),
        Case("a window longer than all keys", dtypes=["f16"], **sizes(query_len=67, key_len=67, window=1000)),
        Case("more keys than queries", **sizes(batch=2, query_len=5, key_len=201, window=50)),
        Case("one query, many keys", dtypes=["bf16"], **sizes(heads=2, key_len=257, window=100)),
        Case("queries that see no key", dtypes=["f16"], **sizes(query_len=150, key_len=71, head_dim=32, window=20)),
        Case("head_dim 8", **sizes(heads=2, query_len=33, key_len=65, head_dim=8, window=20)),
        Case(
            "head_dim 80, more keys than queries",
            dtypes=["f16"],
            **sizes(query_len=33, key_len=65, head_dim=80, window=20),
        ),
        Case("head_dim 96", dtypes=["bf16"], **sizes(query_len=65, key_len=65, head_dim=96, window=40)),
        Case("head_dim 128, more keys than queries", **sizes(query_len=67, key_len=70, head_dim=128, window=30)),
        Case(
            "pointers that are not 16-byte aligned",
            dtypes=["f16"],
            offsets={"q": 1, "k": 2, "v": 3, "out": 1},
            **sizes(query_len=9, key_len=70, window=11),
        ),
        Case("scores that rise", inputs=RISING, **sizes(query_len=100, key_len=150, window=90)),
        Case("a scale below zero", dtypes=["f16"], **sizes(query_len=40, key_len=50, window=30, scale=-0.4)),
        Case(
            "large scores do not overflow", dtypes=["f16"], inputs=LARGE, **sizes(query_len=33, key_len=90, window=40)
        ),
        Case("all scores far below zero", inputs=BELOW_ZERO, **sizes(query_len=33, key_len=90, window=40)),
        Case(
            "random sizes",
            batch=between(1, 2),
            heads=between(1, 2),
            query_len=between(1, 150),
            key_len=between(1, 150),
            head_dim=one_of(32, 64, 128),
            window=between(1, 90),
        ),
        Case("no keys", dtypes=["f16"], **sizes(query_len=5, key_len=0, head_dim=32, window=4)),
        Case("no queries", dtypes=["f16"], **sizes(query_len=0, key_len=5, head_dim=32, window=4)),
    ],
    efficient=Case(
        "1024 keys, window 32", dtypes=["f16"], **sizes(query_len=1024, key_len=1024, head_dim=32, window=32)
    ),
    bars=[
        Bar(
            "global_bytes / minimum",
            at_most=2.0,
            look="Begin at the first key that any query of the block sees, not at key 0.",
            naive="tiles before the window are masked, not skipped",
        ),
        Bar("sectors / ideal", at_most=1.3, look="Let neighboring threads read neighboring elements."),
        ONE_LAUNCH,
        NO_SCRATCH,
    ],
    flops=lambda d: 4 * d["batch"] * d["heads"] * window_pairs(d) * d["head_dim"],
    bench=[
        Bench("window 512 of 8192", **sizes(2, 16, 8192, 8192, 128, window=512)),
        Bench("window 512 of 8192, D 64", **sizes(2, 16, 8192, 8192, 64, window=512)),
    ],
    torch_baseline=torch_window,
)

# --------------------------------------------------------------------------------------------------------- block sparse


def block_offsets(shape, dims, generator):
    """Draw the offsets of the lists: `entries` blocks of keys, spread over the blocks of queries; some get none."""
    blocks, each = shape[0] - 1, -(-dims["key_len"] // dims["block"])
    counts = torch.zeros(blocks, dtype=torch.int64)
    left = dims["entries"]
    order = torch.randperm(blocks, generator=generator).tolist()
    while left > 0:
        for row in order:
            if left > 0 and counts[row] < each:
                counts[row] += 1
                left -= 1
    return torch.cat([torch.zeros(1, dtype=torch.int64), counts.cumsum(0)])


def block_indices(shape, dims, generator, inputs):
    """Draw the blocks of each list, distinct and ascending. The last list always includes the last block of keys."""
    each = -(-dims["key_len"] // dims["block"])
    offsets = inputs["offsets"].tolist()
    rows = [torch.randperm(each, generator=generator)[: b - a].sort().values for a, b in itertools.pairwise(offsets)]
    listed = [row for row in rows if len(row)]
    if listed:
        listed[-1][-1] = each - 1  # always list the last block, so that a fault at the end shows
    return torch.cat([*rows, torch.zeros(0, dtype=torch.int64)])


def block_mask(offsets, indices, block, query_len, key_len, causal):
    """Return a [query_len, key_len] mask, true where a listed block, and the causal mask if any, show the key."""
    mask = torch.zeros(query_len, key_len, dtype=torch.bool)
    for row in range(len(offsets) - 1):
        for column in indices[offsets[row] : offsets[row + 1]].tolist():
            mask[row * block : (row + 1) * block, column * block : (column + 1) * block] = True
    return mask & window_mask(query_len, key_len, key_len + 1) if causal else mask


def by_blocks(q, k, v, offsets, indices, block, scale, causal):
    """Return attention to the keys of the listed blocks."""
    mask = block_mask(offsets, indices, block, q.shape[-2], k.shape[-2], causal)
    return weighted(q, k, v, scale, mask.to(q.dtype))


def dense(q, k, v, scale):
    """Return a wrong output: attention to all keys."""
    return weighted(q, k, v, scale, torch.ones(q.shape[-2], k.shape[-2], dtype=q.dtype))


def blocks(block, entries, causal=False, **more):
    """Return the dimensions of a block-sparse test case, by name. `entries` blocks of the mask are set."""
    return sizes(block=block, entries=entries, causal=causal, **more)


block_sparse = Exercise(
    summary="""\
Attention under a mask of blocks of `block` x `block`, given as lists in CSR format. Block b of queries sees the blocks
of keys indices[offsets[b]] up to indices[offsets[b + 1] - 1]. They are in range, ascending and distinct. The last
blocks may be partial. With `causal`, query i also sees no key after i + key_len - query_len. block is 16, 32 or 64,
head_dim 4, 8, 32 or 64, f32, pointers 16-byte aligned. A query that sees no key, or whose list is empty, gives zeros.
With no queries there is nothing to do.""",
    launchers="""void block_sparse(const float* q, const float* k, const float* v, const int* offsets, const int* indices,
                 float* out, int batch, int heads, int query_len, int key_len, int head_dim, int block, bool causal,
                 float scale, cudaStream_t stream)""",
    inputs={
        **QKV,
        "offsets": Input("(query_len+block-1)//block+1", block_offsets, "i32"),
        "indices": Input("entries", block_indices, "i32"),
    },
    outputs=OUT,
    scalars={"scale": scale_of},
    reference=by_blocks,
    trivial=[dense],
    tolerance={"f32": 1e-4},
    cases=[
        Case("one query, one key", **blocks(16, 1)),
        Case("whole blocks", **blocks(16, 7, query_len=64, key_len=64, head_dim=32)),
        Case("all blocks", **blocks(16, 12, query_len=48, key_len=64, head_dim=32)),
        Case("lengths that are not multiples of a block", **blocks(16, 12, heads=2, query_len=71, key_len=93)),
        Case("rows with no block", **blocks(16, 2, query_len=64, key_len=64, head_dim=32)),
        Case("no block at all", **blocks(16, 0, query_len=20, key_len=20, head_dim=32)),
        Case("no queries", **blocks(16, 0, query_len=0, key_len=20, head_dim=32)),
        Case("blocks of 32", **blocks(32, 5, query_len=99, key_len=99, batch=2, head_dim=32)),
        Case("blocks of 64", **blocks(64, 3, query_len=130, key_len=130)),
        Case("causal", **blocks(16, 16, True, query_len=90, key_len=90, head_dim=32)),
        Case("causal, more keys than queries", **blocks(16, 9, True, query_len=21, key_len=90, head_dim=32)),
        # All 5 x 3 blocks are listed, so only the causal order hides keys from the first 30 queries.
        Case("causal, queries that see no key", **blocks(16, 15, True, query_len=70, key_len=40, head_dim=32)),
        Case("head_dim 4", **blocks(16, 3, heads=2, query_len=20, key_len=37, head_dim=4)),
        Case("head_dim 8, causal", **blocks(16, 3, True, heads=2, query_len=20, key_len=37, head_dim=8)),
        Case("scores that rise", inputs=RISING, **blocks(16, 12, query_len=40, key_len=100, head_dim=32)),
        Case("large scores do not overflow", inputs=LARGE, **blocks(16, 12, query_len=40, key_len=100)),
        Case("all scores far below zero", inputs=BELOW_ZERO, **blocks(16, 12, query_len=40, key_len=100)),
        Case(
            "random sizes",
            batch=between(1, 2),
            heads=between(1, 2),
            query_len=between(49, 100),
            key_len=between(49, 100),
            head_dim=one_of(32, 64),
            block=16,
            entries=between(3, 16),
            causal=one_of(False, True),
        ),
    ],
    efficient=Case("an eighth of the blocks", **blocks(64, 8, query_len=512, key_len=512, head_dim=32)),
    bars=[
        Bar(
            "global_bytes / minimum",
            at_most=1.4,
            look="Do not read blocks that are not in the list.",
            naive="all blocks visited, with a mask",
        ),
        Bar("sectors / ideal", at_most=1.5, look="Let neighboring threads read neighboring floats."),
        ONE_LAUNCH,
        NO_SCRATCH,
    ],
    minimum_bytes=lambda d: (
        4 * d["batch"] * d["heads"] * d["head_dim"] * (2 * d["query_len"] + 2 * d["entries"] * d["block"])
    ),
    flops=lambda d: 4 * d["batch"] * d["heads"] * d["entries"] * d["block"] ** 2 * d["head_dim"],
    bench=[Bench("N 4096, an eighth", **blocks(64, 512, query_len=4096, key_len=4096, batch=2, heads=16))],
    torch_prepare=lambda q, k, offsets, indices, block, causal: {
        "mask": block_mask(offsets.cpu(), indices.cpu(), block, q.shape[-2], k.shape[-2], causal).to(q.device)
    },
    torch_baseline=with_mask,
)

# ------------------------------------------------------------------------------------------------------- lists of keys


def row_offsets(shape, dims, generator):
    """Draw the offsets of the lists: `entries` entries, spread over the queries at random; some get none."""
    rows = shape[0] - 1
    if rows == 0:
        return torch.zeros(1, dtype=torch.int64)
    owners = torch.randint(0, rows, (dims["entries"],), generator=generator)
    return torch.cat([torch.zeros(1, dtype=torch.int64), torch.bincount(owners, minlength=rows).cumsum(0)])


def all_in_row(row):
    """Return a function that draws offsets in which query ``row`` has all entries and the others have none."""

    def offsets(shape, dims):
        return torch.where(torch.arange(shape[0]) <= row, 0, dims["entries"])

    return offsets


def late(shape, dims, generator):
    """Draw forty invalid indices, -1, then valid ones."""
    keys = torch.randint(0, dims["key_len"], shape, generator=generator)
    return torch.where(torch.arange(shape[0]) < 40, -1, keys)


def with_invalid(values, length):
    """Draw ``values``, but make the first one the number of keys and the last one -1: both are just outside."""

    def draw(shape, dims, generator):
        drawn = values(shape, dims, generator).flatten()
        drawn[:1], drawn[-1:] = dims[length], -1
        return drawn.view(shape)

    return draw


def counts_of(offsets, indices, query_len, key_len):
    """Return [query_len, key_len]: the number of times that each query lists each key."""
    counts = torch.zeros(query_len, key_len, dtype=torch.float64)
    for row in range(query_len):
        named = indices[offsets[row] : offsets[row + 1]]
        named = named[(named >= 0) & (named < key_len)]
        counts[row] = torch.bincount(named, minlength=key_len).to(counts.dtype) if key_len else 0
    return counts


def by_lists(q, k, v, offsets, indices, scale):
    """Return attention to listed keys; a key that is listed twice counts twice."""
    keys = k.shape[-2]
    rows = [indices[first:end] for first, end in itertools.pairwise(offsets.tolist())]
    if not rows or not keys:
        return torch.zeros_like(q)
    lists = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=-1)  # [query_len, longest list]
    listed = lists.clamp(0, keys - 1).expand(*q.shape[:2], -1, -1)
    scores = (q @ k.transpose(-1, -2) * scale).gather(-1, listed)
    scores = scores.masked_fill((lists < 0) | (lists >= keys), -torch.inf)
    weights = torch.nan_to_num(torch.softmax(scores, dim=-1), nan=0.0)
    return q.new_zeros(*q.shape[:3], keys).scatter_add(-1, listed, weights) @ v


def once_each(q, k, v, offsets, indices, scale):
    """Return a wrong output: attention that counts each listed key at most once."""
    return weighted(q, k, v, scale, counts_of(offsets, indices, q.shape[-2], k.shape[-2]).clamp(max=1))


def ascending(shape, dims, generator, inputs):
    """Draw valid keys, ascending within each row."""
    keys = torch.randint(0, dims["key_len"], shape, generator=generator)
    offsets = inputs["offsets"].tolist()
    return torch.cat([keys[a:b].sort().values for a, b in itertools.pairwise(offsets)] or [keys])


def lists(entries, **more):
    """Return the dimensions of the tensors of a test case of attention to listed keys, by name."""
    return sizes(entries=entries, **more)


LISTS = {
    **QKV,
    "offsets": Input("query_len+1", row_offsets, "i32"),
    "indices": Input("entries", integers(0, "key_len"), "i32"),
}
SOME_INVALID = {"indices": with_invalid(integers(-5, "key_len + 5"), "key_len")}
ALL_INVALID = {"indices": with_invalid(integers("key_len", "key_len + 9"), "key_len")}
LIST_PROTOTYPE = """void {name}(const float* q, const float* k, const float* v, const int* offsets, const int* indices,
                 float* out, int batch, int heads, int query_len, int key_len, int head_dim, float scale,
                 cudaStream_t stream)"""
LIST_CASES = [
    Case("one query, one key", **lists(1)),
    Case("a few keys per query", **lists(20, query_len=7, key_len=30, head_dim=32)),
    Case("lists of many lengths", **lists(300, heads=2, query_len=19, key_len=64)),
    Case(
        "one long list with rising scores, all other lists empty",
        inputs={**RISING, "offsets": all_in_row(3), "indices": ascending},
        **lists(150, query_len=9, key_len=70),
    ),
    Case(
        "a list that begins with forty invalid indices",
        inputs={"offsets": all_in_row(0), "indices": late},
        **lists(70, query_len=3, key_len=20, head_dim=32),
    ),
    Case("all lists are empty", **lists(0, query_len=5, key_len=9, head_dim=32)),
    Case("no queries", **lists(0, query_len=0, key_len=9, head_dim=32)),
    Case("some invalid indices", inputs=SOME_INVALID, **lists(120, query_len=9, key_len=12, head_dim=32)),
    Case("lists of invalid indices only", inputs=ALL_INVALID, **lists(50, query_len=9, key_len=12, head_dim=32)),
    Case("keys that are listed many times", **lists(100, query_len=5, key_len=4, head_dim=32)),
    Case("batches and heads", **lists(40, batch=2, heads=3, query_len=11, key_len=17, head_dim=32)),
    Case("scores that rise", inputs={**RISING, "indices": ascending}, **lists(400, query_len=5, key_len=100)),
    Case("large scores do not overflow", inputs=LARGE, **lists(200, query_len=9, key_len=50)),
    Case("all scores far below zero", inputs=BELOW_ZERO, **lists(200, query_len=9, key_len=50)),
]

csr_attention = Exercise(
    summary="""\
One attention kernel for any pattern. Query i sees the keys indices[offsets[i]] up to indices[offsets[i + 1] - 1],
in any order. Ignore an index below 0, or not below key_len, and read nothing for it. A key that is listed twice
counts twice. A query whose list is empty, or has no valid index, gives zeros. With no queries there is nothing to
do. f32, head_dim 4, 8, 32, 64 or 128, pointers 16-byte aligned. All heads and all sequences share one pattern.""",
    launchers=LIST_PROTOTYPE.format(name="csr_attention"),
    inputs=LISTS,
    outputs=OUT,
    scalars={"scale": scale_of},
    reference=by_lists,
    trivial=[once_each],
    tolerance={"f32": 1e-4},
    cases=[
        *LIST_CASES,
        Case("head_dim 4", inputs=SOME_INVALID, **lists(150, heads=2, query_len=5, key_len=40, head_dim=4)),
        Case("head_dim 8", inputs=SOME_INVALID, **lists(150, heads=2, query_len=5, key_len=40, head_dim=8)),
        Case("head_dim 128", **lists(120, query_len=10, key_len=33, head_dim=128)),
        Case(
            "random sizes",
            inputs=SOME_INVALID,
            batch=between(1, 2),
            heads=between(1, 3),
            query_len=between(1, 40),
            key_len=between(1, 60),
            head_dim=one_of(32, 64, 128),
            entries=between(1, 400),
        ),
        Case("no keys at all", inputs={"indices": integers(-2, 2)}, **lists(10, query_len=4, key_len=0, head_dim=32)),
    ],
    efficient=Case("16 keys each", **lists(4096, query_len=256, key_len=1024)),
    bars=[
        Bar(
            "global_bytes / minimum",
            at_most=1.2,
            look="For each entry of a list, read one row of k and one row of v, once.",
            naive="one pass over the keys for the maximum, one for the sum",
        ),
        Bar("sectors / ideal", at_most=1.3, look="Let neighboring lanes read neighboring parts of one row."),
        ONE_LAUNCH,
        NO_SCRATCH,
    ],
    minimum_bytes=lambda d: (
        4 * d["batch"] * d["heads"] * (d["head_dim"] * (2 * d["query_len"] + 2 * d["entries"]) + d["entries"])
    ),
    flops=lambda d: 4 * d["batch"] * d["heads"] * d["entries"] * d["head_dim"],
    bench=[Bench("N 4096, 128 keys each", **lists(128 * 4096, query_len=4096, key_len=4096, heads=16))],
    torch_prepare=lambda q, k, offsets, indices: {
        "mask": counts_of(offsets.cpu(), indices.long().cpu(), q.shape[-2], k.shape[-2]).log().to(q)
    },
    torch_baseline=with_mask,
)

csr_attention_debug = Exercise(
    summary="""\
This kernel computes attention to listed keys, as csr_attention does, 32 keys at a time. It has one fault. Find it
from the report, and correct it. head_dim is 32 or 64; everything else, and empty input, as in csr_attention.""",
    launchers=LIST_PROTOTYPE.format(name="csr_attention_debug"),
    inputs=LISTS,
    outputs=OUT,
    scalars={"scale": scale_of},
    reference=by_lists,
    trivial=[once_each],
    tolerance={"f32": 1e-4},
    cases=[
        *LIST_CASES,
        Case(
            "random sizes",
            inputs=SOME_INVALID,
            batch=between(1, 2),
            heads=between(1, 3),
            query_len=between(1, 10),
            key_len=between(40, 60),
            head_dim=one_of(32, 64),
            entries=between(400, 600),
        ),
    ],
    efficient=Case("16 keys each", **lists(1024, query_len=64, key_len=256, head_dim=32)),
    bars=[ONE_LAUNCH, NO_SCRATCH],
    flops=lambda d: 4 * d["batch"] * d["heads"] * d["entries"] * d["head_dim"],
)

# ---------------------------------------------------------------------------------------- global, neighbors and random


def big_bird(query_len, globals, window, random_keys):
    """Return a [query_len, query_len] mask, true where any of the three rules shows the key to the query."""
    position = torch.arange(query_len)
    mask = (position[:, None] - position[None]).abs() <= window
    mask[:globals] = True
    mask[:, :globals] = True
    for row in range(query_len):
        named = random_keys[row]
        mask[row, named[(named >= 0) & (named < query_len)]] = True
    return mask


def by_rules(q, k, v, globals, window, random_keys, scale):
    """Return attention to global, neighboring and random keys."""
    return weighted(q, k, v, scale, big_bird(q.shape[-2], globals, window, random_keys).to(q.dtype))


def counted_twice(q, k, v, globals, window, random_keys, scale):
    """Return a wrong output: a random key that another rule also names counts twice."""
    mask = big_bird(q.shape[-2], globals, window, random_keys[:, :0]).to(q.dtype)
    offsets = torch.arange(q.shape[-2] + 1) * random_keys.shape[1]
    return weighted(q, k, v, scale, mask + counts_of(offsets, random_keys.flatten(), q.shape[-2], k.shape[-2]))


def rules(globals, window, randoms, batch=1, heads=1, len=1, head_dim=64):
    """Return the dimensions of the tensors of a test case of global, neighboring and random keys, by name."""
    return dict(batch=batch, heads=heads, len=len, head_dim=head_dim, globals=globals, window=window, randoms=randoms)


def rule_pairs(d):
    """Return the approximate number of (query, key) pairs that the rules leave visible."""
    return d["len"] * min(d["len"], 2 * d["window"] + 1 + d["globals"] + d["randoms"]) + d["globals"] * d["len"]


global_local_random = Exercise(
    summary="""\
The pattern of long-document encoders, from three rules. Query i sees the keys j with |i - j| <= window. All queries
see the first `globals` keys, and the first `globals` queries see all keys. Query i also sees the `randoms` keys
in random_keys[i]. A key that several rules name, or that is named twice, counts once. Ignore a random key that does
not exist. There are as many queries as keys, f32, head_dim 4, 8, 32, 64 or 128, pointers 16-byte aligned; globals, window
and randoms may be 0. With an empty batch there is nothing to do.""",
    launchers="""void global_local_random(const float* q, const float* k, const float* v, const int* random_keys, float* out,
                 int batch, int heads, int len, int head_dim, int globals, int window, int randoms, float scale,
                 cudaStream_t stream)""",
    inputs={
        "q": Input("batch heads len head_dim", normal(scale=2.0)),
        "k": Input("batch heads len head_dim", normal()),
        "v": Input("batch heads len head_dim", normal(channel_offset=1.0)),
        "random_keys": Input("len randoms", integers(0, "len"), "i32"),
    },
    outputs={"out": Output("batch heads len head_dim")},
    scalars={"scale": scale_of},
    reference=by_rules,
    trivial=[dense, counted_twice],
    tolerance={"f32": 1e-4},
    cases=[
        Case("one key", **rules(0, 0, 0)),
        Case("an empty batch", **rules(1, 1, 1, batch=0, len=3)),
        Case("each query sees only its own key", **rules(0, 0, 0, len=20, head_dim=32)),
        Case("neighbors only", **rules(0, 3, 0, len=40, head_dim=32)),
        Case("global keys only", **rules(2, 0, 0, len=40, head_dim=32)),
        Case("random keys only", **rules(0, 0, 5, len=60, head_dim=32)),
        Case("all three rules", **rules(2, 3, 4, heads=2, len=50)),
        Case("keys that several rules name", **rules(3, 4, 8, len=16, head_dim=32)),
        Case("a window longer than the sequence", **rules(1, 30, 2, len=17, head_dim=32)),
        Case("all keys global", **rules(9, 1, 2, len=9, head_dim=32)),
        Case("more global keys than keys", **rules(9, 1, 2, len=4, head_dim=32)),
        Case(
            "random keys that do not exist",
            inputs={"random_keys": with_invalid(integers(-9, "len + 9"), "len")},
            **rules(1, 1, 6, len=30, head_dim=32),
        ),
        Case("head_dim 4", **rules(2, 3, 4, heads=2, len=37, head_dim=4)),
        Case("head_dim 8", **rules(2, 3, 4, heads=2, len=37, head_dim=8)),
        Case("head_dim 128", **rules(1, 2, 3, batch=2, len=21, head_dim=128)),
        Case("scores that rise", inputs=RISING, **rules(2, 5, 4, len=60)),
        Case("large scores do not overflow", inputs=LARGE, **rules(2, 5, 4, len=40)),
        Case("all scores far below zero", inputs=BELOW_ZERO, **rules(2, 5, 4, len=40)),
        Case(
            "random sizes",
            batch=between(1, 2),
            heads=between(1, 2),
            len=between(1, 60),
            head_dim=one_of(32, 64, 128),
            globals=between(0, 3),
            window=between(0, 6),
            randoms=between(0, 6),
        ),
    ],
    efficient=Case("512 keys", **rules(2, 4, 3, len=512, head_dim=32)),
    bars=[
        Bar(
            "global_bytes / minimum",
            at_most=1.4,
            look="Visit only the keys that the rules name, instead of testing all keys.",
            naive="one pass over the keys for the maximum, one for the sum",
        ),
        Bar("sectors / ideal", at_most=1.3, look="Let neighboring lanes read neighboring parts of one row."),
        ONE_LAUNCH,
        NO_SCRATCH,
    ],
    minimum_bytes=lambda d: 4 * d["batch"] * d["heads"] * d["head_dim"] * (2 * d["len"] + 2 * rule_pairs(d)),
    flops=lambda d: 4 * d["batch"] * d["heads"] * rule_pairs(d) * d["head_dim"],
    bench=[Bench("N 4096", **rules(64, 128, 64, heads=16, len=4096))],
    torch_prepare=lambda q, globals, window, random_keys: {
        "mask": big_bird(q.shape[-2], globals, window, random_keys.long().cpu()).to(q.device)
    },
    torch_baseline=with_mask,
)
