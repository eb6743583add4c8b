"""The exercises of day 10.

A cache consists of pages: [pages, kv_heads, page_size, head_dim]. A sequence's keys need not be contiguous: key i of
sequence b is row i % page_size of page block_tables[b, i // page_size]. The table has max_pages entries per sequence;
the entries past its last key may hold anything. A page may belong to several sequences. page_size is 8, 16, 32 or 64.
"""

import torch

from grader.course.python_task import PythonExercise, said
from grader.course.task import Bar, Bench, Case, Exercise, Input, Output, between, constant, integers, normal, one_of


def scale_of(dims):
    """Return 1 / sqrt(head_dim), or the scale of the case."""
    return dims.get("scale", dims["head_dim"] ** -0.5)


def heads_of(dims):
    """Return the number of query heads: ``heads`` if given, otherwise kv_heads * group."""
    return dims.get("heads", dims["kv_heads"] * dims.get("group", 1))


def pages_of(dims):
    """Return the number of pages: enough for all sequences, and three that no sequence uses."""
    return dims.get("pages", dims["batch"] * dims["max_pages"] + 3)


def first_page_of(dims):
    """Return the index of the first page in memory. The largest caches have only their last pages in memory."""
    return dims.get("first_page", 0)


BEFORE = {name: "first_page * kv_heads * page_size * head_dim" for name in ("k_cache", "v_cache")}
"""For each cache, the elements before its first page in memory, which are not allocated (see ``first_page_of``)."""


# ---------------------------------------------------------------------------------------------------------------- inputs


def tables(shape, dims, generator, inputs):
    """Draw a block table: each sequence has random pages of its own, and unused entries are -1."""
    batch, max_pages = shape
    pages = torch.randperm(pages_of(dims), generator=generator)[: batch * max_pages].view(shape) + first_page_of(dims)
    needed = -(-inputs["lengths"] // dims["page_size"])
    return pages.masked_fill(torch.arange(max_pages) >= needed[:, None], -1)


def tables_far_away(shape, dims, generator, inputs):
    """Draw block tables whose unused entries are 2^31 - 1."""
    found = tables(shape, dims, generator, inputs)
    return found.masked_fill(found < 0, 2**31 - 1)


def shared_prefix(shape, dims, generator, inputs):
    """Draw block tables in which all sequences share their first pages; each has a last page of its own."""
    found = tables(shape, dims, generator, inputs)
    needed = -(-inputs["lengths"] // dims["page_size"])
    common = max(int(needed.min()) - 1, 0)
    found[:, :common] = found[:1, :common]
    return found


def paged(values):
    """Return a function that draws a cache. Slots that hold no token are NaN, because a kernel must not use them."""

    def draw(shape, dims, generator, inputs):
        cache = values(shape, dims, generator)
        page_size, block_tables = shape[2], inputs["block_tables"].long() - first_page_of(dims)
        keys = torch.arange(block_tables.shape[1] * page_size)
        slots = block_tables[:, keys // page_size] * page_size + keys % page_size
        used = torch.zeros(shape[0] * page_size, dtype=torch.bool)
        used[slots[keys < inputs["lengths"][:, None]]] = True
        used = used.view(shape[0], page_size)
        return cache.masked_fill(~used[:, None, :, None], torch.nan)

    return draw


def full(shape, dims):
    """Return lengths that fill all pages of the block table."""
    return torch.full(shape, dims["max_pages"] * dims["page_size"])


def ragged(shape, dims, generator):
    """Draw random lengths below the maximum."""
    most = dims["max_pages"] * dims["page_size"]
    return torch.randint(1, max(most, 2), shape, generator=generator)


def every_length(shape, dims):
    """Return the lengths 0, 1, 2, ... up to the maximum."""
    return torch.arange(shape[0]) % (dims["max_pages"] * dims["page_size"] + 1)


def about_a_page(shape, dims):
    """Return the lengths around one page and around two pages: one key fewer, equal, and one key more."""
    size = dims["page_size"]
    return torch.tensor([size - 1, size, size + 1, 2 * size - 1, 2 * size, 2 * size + 1])[: shape[0]]


def starts(shape, dims, generator):
    """Draw the first query of each sequence: a random division of the tokens; a sequence may get none."""
    cuts = torch.randint(0, dims["tokens"] + 1, (shape[0] - 2,), generator=generator).sort().values
    return torch.cat([torch.tensor([0]), cuts, torch.tensor([dims["tokens"]])])


def lengths_after(shape, dims, generator, inputs):
    """Draw the number of keys of each sequence: its new tokens, and a random number of earlier ones."""
    new = inputs["query_starts"].diff()
    most = dims["max_pages"] * dims["page_size"]
    return new + (torch.rand(shape, generator=generator) * (most - new + 1)).long().clamp(max=most)


def fewer_keys_than_queries(shape, dims, inputs):
    """Return half as many keys as queries, so that the first queries of a sequence see no key."""
    return (inputs["query_starts"].diff() // 2).clamp(min=0)


def slots_of(shape, dims, generator):
    """Draw distinct slots; about a tenth of the tokens are padding, with slot -1."""
    first = first_page_of(dims)
    slots = torch.randperm((dims["pages"] - first) * dims["page_size"], generator=generator)[: shape[0]]
    slots += first * dims["page_size"]
    padding = torch.rand(shape, generator=generator) < 0.1
    return slots.masked_fill(padding, -1)


def slots_outside(shape, dims, generator):
    """Draw distinct slots; every third one is just past the end of the cache."""
    slots = slots_of(shape, dims, generator)
    slots[::3] = dims["pages"] * dims["page_size"] + torch.arange(shape[0])[::3]
    return slots


# ------------------------------------------------------------------------------------------------------------- references


def gathered(cache, table, length):
    """Return the first ``length`` keys (or values) of one sequence: [kv_heads, length, head_dim]."""
    page_size = cache.shape[2]
    pages = cache[table[: -(-length // page_size)].long()]
    return pages.transpose(0, 1).reshape(cache.shape[1], -1, cache.shape[3])[:, :length]


def attention(q, k, v, scale, hidden=None):
    """Return attention of q [heads, n, d] to k and v [kv_heads, m, d]; zeros for a query that sees no key."""
    k, v = (x.repeat_interleave(q.shape[0] // x.shape[0], dim=0) for x in (k, v))
    scores = q @ k.transpose(-1, -2) * scale
    if hidden is not None:
        scores = scores.masked_fill(hidden, -torch.inf)
    return torch.nan_to_num(torch.softmax(scores, dim=-1), nan=0.0) @ v


def paged_decode(q, k_cache, v_cache, block_tables, lengths, scale, first_page):
    """Return attention of one query per sequence to the keys in its pages."""
    out = torch.zeros_like(q)
    block_tables = block_tables - first_page
    for b, length in enumerate(lengths.tolist()):
        k, v = (gathered(cache, block_tables[b], length) for cache in (k_cache, v_cache))
        out[b] = attention(q[b, :, None], k, v, scale)[:, 0]
    return out


def paged_queries(q, k_cache, v_cache, block_tables, lengths, query_starts, scale, first_page):
    """Return causal attention of each sequence's queries to the keys in its pages; the last query sees all keys."""
    out = torch.zeros_like(q)
    block_tables = block_tables - first_page
    bounds = query_starts.tolist()
    for b, length in enumerate(lengths.tolist()):
        first, end = bounds[b], bounds[b + 1]
        k, v = (gathered(cache, block_tables[b], length) for cache in (k_cache, v_cache))
        hidden = torch.ones(end - first, length, dtype=torch.bool).triu(length - (end - first) + 1)
        out[first:end] = attention(q[first:end].transpose(0, 1), k, v, scale, hidden).transpose(0, 1)
    return out


def appended(k, v, slots, k_cache, v_cache, first_page):
    """Return both caches with the new rows in their slots."""
    k_cache, v_cache = k_cache.clone(), v_cache.clone()
    page_size = k_cache.shape[2]
    for token, slot in enumerate((slots - first_page * page_size).tolist()):
        if 0 <= slot < k_cache.shape[0] * page_size:
            k_cache[slot // page_size, :, slot % page_size] = k[token]
            v_cache[slot // page_size, :, slot % page_size] = v[token]
    return {"k_cache": k_cache, "v_cache": v_cache}


def torch_append(k, v, slots, k_cache, v_cache):
    """Append with torch's indexed assignment, which needs slots that are all valid."""
    page, offset = slots // k_cache.shape[2], slots % k_cache.shape[2]
    k_cache[page, :, offset] = k
    v_cache[page, :, offset] = v
    return k_cache, v_cache


def torch_paged(q, k_cache, v_cache, block_tables, scale):
    """Gather all pages, then run fused attention: torch has paged attention only in FlexAttention."""
    batch, kv_heads, head_dim = q.shape[0], k_cache.shape[1], k_cache.shape[3]
    k, v = (
        cache[block_tables.long()].transpose(1, 2).reshape(batch, kv_heads, -1, head_dim)
        for cache in (k_cache, v_cache)
    )
    attend = torch.nn.functional.scaled_dot_product_attention
    return attend(q[:, :, None], k, v, scale=scale, enable_gqa=True)[:, :, 0]


# -------------------------------------------------------------------------------------------------------------- exercises


def appending(tokens, kv_heads=2, head_dim=64, pages=8, page_size=16):
    """Return the dimensions of the tensors of a test case, by name."""
    return dict(tokens=tokens, kv_heads=kv_heads, head_dim=head_dim, pages=pages, page_size=page_size)


def valid_slots(shape, dims, generator):
    """Draw distinct slots without padding."""
    return torch.randperm(dims["pages"] * dims["page_size"], generator=generator)[: shape[0]]


kv_cache_append = Exercise(
    summary="""\
Write the new keys and values of some tokens into the pages of the cache. A slot is the place of one token: row slot
% page_size of page slot / page_size, for every head. Token t goes to slot slots[t]. Skip a slot outside the cache
(such as -1, for padding), and compute no address from it. All other slots are distinct. f32, f16 and bf16. head_dim is
a multiple of 8, or of 4 in f32, and all tensors are 16-byte aligned. The cache may have more than 2^31 elements. With
no tokens there is nothing to do.""",
    launchers="void kv_cache_append_{dtype}(const {T}* k, const {T}* v, const long long* slots, {T}* k_cache, {T}* v_cache, "
    "int tokens, int kv_heads, int head_dim, long long pages, int page_size, cudaStream_t stream)",
    dtypes=("f32", "f16", "bf16"),
    inputs={
        "k": Input("tokens kv_heads head_dim", normal()),
        "v": Input("tokens kv_heads head_dim", normal(channel_offset=1.0)),
        "slots": Input("tokens", slots_of, dtype="i64"),
    },
    outputs={
        "k_cache": Output("(pages - first_page) kv_heads page_size head_dim", inout=True),
        "v_cache": Output(
            "(pages - first_page) kv_heads page_size head_dim", inout=True, start=normal(channel_offset=1.0)
        ),
    },
    scalars={"first_page": first_page_of},
    reference=appended,
    tolerance={"f32": 1e-7, "f16": 1e-7, "bf16": 1e-7},
    cases=[
        Case("one token", inputs={"slots": constant(19)}, **appending(1)),
        Case("many tokens", **appending(127)),
        Case("slots outside the cache", inputs={"slots": slots_outside}, **appending(30)),
        Case("only padding", dtypes=["f16"], inputs={"slots": constant(-1)}, **appending(5)),
        Case("pages of 8", dtypes=["bf16"], **appending(21, 3, 32, 5, 8)),
        Case("pages of 64, head_dim 80", dtypes=["f16"], **appending(67, 1, 80, 2, 64)),
        Case("head_dim 4", dtypes=["f32"], **appending(13, 5, 4, 2, 16)),
        Case("head_dim 8", **appending(13, 5, 8, 2, 16)),
        Case("head_dim 96", dtypes=["f32"], **appending(13, 5, 96, 2, 16)),
        Case(
            "pages that start beyond element 2^32",
            before=BEFORE,
            first_page=1 << 27,
            **appending(9, pages=(1 << 27) + 3),
        ),
        Case("many heads", dtypes=["bf16"], **appending(3, 37, 128, 2, 8)),
        Case(
            "random sizes",
            tokens=between(1, 40),
            kv_heads=between(1, 9),
            head_dim=one_of(8, 32, 64, 80, 96, 128),
            pages=between(5, 9),
            page_size=one_of(8, 16, 32, 64),
        ),
        Case("no tokens", dtypes=["f32"], **appending(0)),
    ],
    efficient=Case(
        "256 tokens", dtypes=["f16"], inputs={"slots": valid_slots}, **appending(256, 4, 64, pages=16, page_size=16)
    ),
    minimum_bytes=lambda d: 4 * d["tokens"] * d["kv_heads"] * d["head_dim"] * 2 + 8 * d["tokens"],
    bars=[
        Bar("global_bytes / minimum", at_most=1.05, look="Read and write only the rows of the appended tokens."),
        Bar("sectors / ideal", at_most=1.1, look="Let the lanes of a warp copy whole rows of head_dim elements."),
        Bar(
            "requests * 512 / minimum",
            at_most=1.5,
            look="Move 16 bytes with each access, and let no warp without work read the slots.",
            naive="one element per access",
        ),
        Bar("launches", at_most=1),
        Bar("scratch_bytes", at_most=0),
    ],
    bench=[
        Bench("64 tokens", dtypes=["bf16"], inputs={"slots": valid_slots}, **appending(64, 8, 128, 16384, 16)),
        Bench("16384 tokens", dtypes=["bf16"], inputs={"slots": valid_slots}, **appending(16384, 8, 128, 16384, 16)),
    ],
    torch_baseline=torch_append,
)

PAGED = {
    "lengths": Input("batch", integers(0, "max_pages * page_size + 1"), dtype="i32"),
    "block_tables": Input("batch max_pages", tables, dtype="i32"),
    "q": Input("batch heads head_dim", normal(scale=2.0)),
    "k_cache": Input("pages kv_heads page_size head_dim", paged(normal())),
    "v_cache": Input("pages kv_heads page_size head_dim", paged(normal(channel_offset=1.0, mean=0.5))),
}
DERIVED = {"scale": scale_of, "heads": heads_of, "pages": pages_of, "first_page": first_page_of}
FULL = {"lengths": full}
RAGGED = {"lengths": ragged}


def decoding(batch, heads, kv_heads, max_pages, page_size=16, head_dim=64, **more):
    """Return the dimensions of the tensors of a test case, by name."""
    return dict(
        batch=batch,
        heads=heads,
        kv_heads=kv_heads,
        max_pages=max_pages,
        page_size=page_size,
        head_dim=head_dim,
        **more,
    )


def decode_cases(**more):
    """Return the cases that both decode exercises share."""
    return [
        Case("one page", inputs=FULL, **decoding(1, 2, 1, 1, **more)),
        Case("no sequences", dtypes=["bf16"], inputs=FULL, **decoding(0, 2, 1, 3, **more)),
        Case("groups of 4, several pages", inputs=RAGGED, **decoding(2, 8, 2, 7, **more)),
        Case("large scores do not overflow", inputs={**FULL, "q": normal(scale=50.0)}, **decoding(1, 2, 1, 9, **more)),
        Case(
            "lengths from 0", dtypes=["f16"], inputs={"lengths": every_length}, **decoding(19, 2, 1, 2, 8, 32, **more)
        ),
        Case(
            "lengths around one and two pages",
            dtypes=["bf16"],
            inputs={"lengths": about_a_page},
            **decoding(6, 2, 1, 3, 32, 32, **more),
        ),
        Case(
            "a shared prefix",
            dtypes=["f16"],
            inputs={**RAGGED, "block_tables": shared_prefix},
            **decoding(4, 4, 2, 6, **more),
        ),
        Case(
            "unused table entries are 2^31 - 1",
            inputs={**RAGGED, "block_tables": tables_far_away},
            **decoding(3, 4, 2, 9, **more),
        ),
        Case(
            "pages that start beyond element 2^32",
            inputs=RAGGED,
            before=BEFORE,
            **decoding(2, 4, 2, 3, first_page=1 << 27, **more),
        ),
        Case("pages of 8", dtypes=["bf16"], inputs=RAGGED, **decoding(2, 4, 1, 21, 8, **more)),
        Case("pages of 64", dtypes=["f16"], inputs=RAGGED, **decoding(2, 4, 1, 3, 64, **more)),
        Case("groups of 7", dtypes=["f16"], inputs=RAGGED, **decoding(2, 14, 2, 5, **more)),
        Case("groups of 12", dtypes=["bf16"], inputs=RAGGED, **decoding(1, 12, 1, 5, **more)),
        Case("head_dim 8", inputs=RAGGED, **decoding(2, 4, 2, 5, 16, 8, **more)),
        Case("groups of 1, head_dim 80", dtypes=["bf16"], inputs=RAGGED, **decoding(2, 2, 2, 5, 16, 80, **more)),
        Case("head_dim 96", dtypes=["f16"], inputs=RAGGED, **decoding(1, 4, 2, 5, 16, 96, **more)),
        Case("head_dim 128", inputs=RAGGED, **decoding(2, 4, 1, 9, 16, 128, **more)),
        Case("a scale of 0.4", dtypes=["bf16"], inputs=FULL, **decoding(1, 2, 1, 4, scale=0.4, **more)),
        Case(
            "all scores far below zero",
            dtypes=["f16"],
            inputs={**FULL, "q": normal(mean=4.0), "k_cache": paged(normal(mean=-4.0))},
            **decoding(1, 2, 1, 5, **more),
        ),
        Case(
            "random sizes",
            batch=between(1, 3),
            kv_heads=between(1, 2),
            group=between(1, 8),
            max_pages=between(1, 6),
            page_size=one_of(8, 16, 32, 64),
            head_dim=one_of(8, 32, 64, 80, 96, 128),
            **({"splits": between(1, 5)} if more else {}),
        ),
    ]


def cache_bytes(d):
    """Return the minimum bytes of a decode step: all 16-bit keys, values, queries and outputs, and the tables."""
    keys = d["batch"] * d["max_pages"] * d["page_size"]
    rows = 2 * keys * d["kv_heads"] + 2 * d["batch"] * heads_of(d)
    return 2 * rows * d["head_dim"] + 4 * d["batch"] * (d["max_pages"] + 1)


def decode_flops(d):
    """Return the floating-point operations of both matmuls, for sequences of the maximum length."""
    return 4 * d["batch"] * heads_of(d) * d["max_pages"] * d["page_size"] * d["head_dim"]


DECODE_PARAMETERS = (
    "const {T}* q, const {T}* k_cache, const {T}* v_cache, const int* block_tables, const int* lengths, {T}* out, "
)

paged_attention = Exercise(
    summary="""\
One query per sequence attends to a paged cache: out[b, h] = softmax(scale * q[b, h] k^T) v over the first
lengths[b] keys. Key i of sequence b is row i % page_size of page block_tables[b, i / page_size]. Query head h uses
key/value head h / (heads / kv_heads). Fetch each key and value once for all query heads of its group, without
gathering the pages first. Table entries past the last key, and unused slots, may hold anything. f16 and bf16 in and
out, sums in float. head_dim is a multiple of 8 up to 128, page_size 8, 16, 32 or 64, and all tensors are 16-byte
aligned. The cache may have more than 2^31 elements. A sequence of length 0 gives zeros; with no sequences there is
nothing to do.""",
    launchers="void paged_attention_{dtype}("
    + DECODE_PARAMETERS
    + "int batch, int heads, int kv_heads, int head_dim, int page_size, int max_pages, float scale, cudaStream_t stream)",
    dtypes=("f16", "bf16"),
    inputs=PAGED,
    outputs={"out": Output("batch heads head_dim")},
    scalars=DERIVED,
    reference=paged_decode,
    cases=decode_cases(),
    efficient=Case("16 pages of 16, groups of 4", dtypes=["f16"], inputs=FULL, **decoding(2, 8, 2, 16)),
    minimum_bytes=cache_bytes,
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
            look="Let a lane load 16 bytes of a key or a value, not one element: a warp's request then moves 512 bytes.",
            naive="lanes load one element at a time",
        ),
        Bar("launches", at_most=1, look="Use one kernel that reads the pages in place: do not gather them first."),
        Bar("scratch_bytes", at_most=0, look="Read the pages in place: do not gather them first."),
    ],
    flops=decode_flops,
    bench=[
        Bench("64 sequences, 4096 keys, pages of 16", inputs=FULL, **decoding(64, 32, 8, 256, 16, 128)),
        Bench(
            "256 sequences, 2048 keys, pages of 64", dtypes=["bf16"], inputs=FULL, **decoding(256, 32, 8, 32, 64, 128)
        ),
        Bench("64 sequences, 4096 keys, pages of 8", dtypes=["bf16"], inputs=FULL, **decoding(64, 32, 8, 512, 8, 128)),
    ],
    torch_baseline=torch_paged,
)

paged_attention_split = Exercise(
    summary="""\
paged_attention for few sequences with long contexts. Different blocks process at most `splits` parts of a
sequence's keys. They store their maxima, sums and weighted sums in the scratch memory partial_out and
partial_stats, and a second kernel combines them. f16 and bf16 in and out, sums in float. head_dim is a multiple
of 8 up to 128, page_size 8, 16, 32 or 64, and all tensors are 16-byte aligned. The cache may have more than 2^31
elements. A sequence of length 0 gives zeros; with no sequences there is nothing to do.""",
    launchers="void paged_attention_split_{dtype}("
    + DECODE_PARAMETERS
    + "float* partial_out, float* partial_stats, int batch, int heads, int kv_heads, int head_dim, int page_size, "
    "int max_pages, int splits, float scale, cudaStream_t stream)",
    dtypes=("f16", "bf16"),
    inputs=PAGED,
    outputs={
        "out": Output("batch heads head_dim"),
        "partial_out": Output("batch heads splits head_dim", dtype="f32", scratch=True),
        "partial_stats": Output("batch heads splits 2", dtype="f32", scratch=True),
    },
    scalars=DERIVED,
    reference=paged_decode,
    cases=[
        Case("several parts", inputs=FULL, **decoding(1, 4, 2, 19, splits=4)),
        Case("one part", dtypes=["f16"], inputs=RAGGED, **decoding(2, 4, 2, 5, splits=1)),
        Case("more parts than keys", dtypes=["bf16"], inputs=FULL, **decoding(2, 4, 2, 1, 8, splits=9)),
        *decode_cases(splits=3),
    ],
    efficient=Case("64 pages of 16, groups of 4", dtypes=["f16"], inputs=FULL, **decoding(1, 8, 2, 64, splits=4)),
    minimum_bytes=cache_bytes,
    bars=[
        Bar("global_bytes / minimum", at_most=1.15, look="Fetch each key once for all query heads of its group."),
        Bar("sectors / ideal", at_most=1.2, look="Let the lanes of a warp read whole rows of k and v."),
        Bar(
            "requests / (global_bytes / 512)",
            at_most=3,
            look="Let a lane load 16 bytes of a key or a value, not one element: a warp's request then moves 512 bytes.",
            naive="lanes load one element at a time",
        ),
        Bar(
            "launches", at_most=2, look="Use two kernels: one computes the parts of the keys, the other combines them."
        ),
        Bar(
            "blocks",
            at_least=8,
            look="Split the keys among more blocks: with this few, most SMs are idle.",
            naive="the keys are not split",
        ),
        Bar("scratch_bytes", at_most=0, look="Use the scratch memory in the parameters, and allocate none."),
    ],
    flops=decode_flops,
    bench=[
        Bench("64 sequences, 4096 keys", dtypes=["bf16"], inputs=FULL, **decoding(64, 32, 8, 256, 16, 128, splits=2)),
        Bench("4 sequences, 32768 keys", dtypes=["bf16"], inputs=FULL, **decoding(4, 32, 8, 2048, 16, 128, splits=16)),
        Bench("1 sequence, 131072 keys", dtypes=["bf16"], inputs=FULL, **decoding(1, 32, 8, 8192, 16, 128, splits=64)),
    ],
    torch_baseline=torch_paged,
)


def prefilling(batch, tokens, heads, kv_heads, max_pages, page_size=16, head_dim=64, **more):
    """Return the dimensions of the tensors of a test case, by name."""
    return dict(
        batch=batch,
        tokens=tokens,
        max_queries=tokens,
        heads=heads,
        kv_heads=kv_heads,
        max_pages=max_pages,
        page_size=page_size,
        head_dim=head_dim,
        **more,
    )


def prefill_pairs(d):
    """Return the visible (query, key) pairs of one head, if all sequences are full and have equally many queries."""
    each, keys = d["tokens"] // max(d["batch"], 1), d["max_pages"] * d["page_size"]
    return d["batch"] * sum(keys - i for i in range(each))


def equal_shares(shape, dims):
    """Return the first query of each sequence, if all sequences have equally many queries."""
    return torch.arange(shape[0]) * (dims["tokens"] // (shape[0] - 1))


paged_prefill = Exercise(
    summary="""\
Causal attention of the new queries of several sequences, stored one after another without padding. Sequence b has
the rows query_starts[b] ... query_starts[b + 1] - 1 of q (at most max_queries), and lengths[b] keys in its pages,
its new ones included. The last query of a sequence sees all its keys, the query before it all but the last key, and so
on. A query that sees no key gives zeros. Use one kernel, in which the query heads of a group share each tile of keys.
f16 and bf16 in and out, float in between. head_dim is a multiple of 8 up to 128, page_size 8, 16, 32 or 64, and all tensors
are 16-byte aligned. The cache may have more than 2^31 elements. A sequence may have no queries; with no tokens
there is nothing to do.""",
    launchers="void paged_prefill_{dtype}(const {T}* q, const {T}* k_cache, const {T}* v_cache, const int* block_tables, "
    "const int* lengths, const int* query_starts, {T}* out, int batch, int tokens, int heads, int kv_heads, int head_dim, "
    "int page_size, int max_pages, int max_queries, float scale, cudaStream_t stream)",
    dtypes=("f16", "bf16"),
    inputs={
        "query_starts": Input("batch+1", starts, dtype="i32"),
        "lengths": Input("batch", lengths_after, dtype="i32"),
        "block_tables": PAGED["block_tables"],
        "q": Input("tokens heads head_dim", normal(scale=2.0)),
        "k_cache": PAGED["k_cache"],
        "v_cache": PAGED["v_cache"],
    },
    outputs={"out": Output("tokens heads head_dim")},
    scalars=DERIVED,
    reference=paged_queries,
    cases=[
        Case("one sequence, one query", **prefilling(1, 1, 2, 1, 2)),
        Case("one sequence, groups of 4", **prefilling(1, 19, 4, 1, 3)),
        Case(
            "queries that see no key",
            dtypes=["f16"],
            inputs={"lengths": fewer_keys_than_queries},
            **prefilling(2, 31, 2, 1, 2),
        ),
        Case(
            "large scores do not overflow",
            dtypes=["f16"],
            inputs={"q": normal(scale=50.0)},
            **prefilling(1, 9, 2, 1, 4),
        ),
        Case("three sequences", **prefilling(3, 37, 4, 2, 4)),
        Case(
            "one query per sequence",
            dtypes=["bf16"],
            inputs={"query_starts": equal_shares},
            **prefilling(5, 5, 4, 2, 4, 8),
        ),
        Case(
            "a sequence without queries",
            dtypes=["f16"],
            # The second sequence has 16 keys, one whole page: its second table entry is unused.
            inputs={
                "query_starts": lambda shape: torch.tensor([0, 7, 7, 12]),
                "lengths": lambda shape: torch.tensor([20, 16, 9]),
            },
            **prefilling(3, 12, 4, 2, 2),
        ),
        Case("more rows than a tile", dtypes=["bf16"], **prefilling(2, 90, 2, 1, 6)),
        Case(
            "pages that start beyond element 2^32",
            dtypes=["f16"],
            before=BEFORE,
            **prefilling(2, 9, 4, 2, 3, first_page=1 << 27),
        ),
        Case("pages of 8", dtypes=["f16"], **prefilling(2, 11, 4, 2, 9, 8)),
        Case("pages of 64, groups of 7", dtypes=["bf16"], **prefilling(2, 13, 14, 2, 2, 64, 32)),
        Case("head_dim 8", **prefilling(2, 9, 2, 2, 3, 16, 8)),
        Case("head_dim 80", dtypes=["f16"], **prefilling(2, 9, 2, 2, 3, 16, 80)),
        Case("head_dim 128", **prefilling(2, 9, 4, 2, 4, 16, 128)),
        Case("a scale of 0.4", dtypes=["bf16"], **prefilling(1, 9, 2, 1, 2, scale=0.4)),
        Case(
            "random sizes",
            batch=between(1, 4),
            tokens=between(1, 32),
            max_queries=32,
            kv_heads=between(1, 2),
            group=between(1, 5),
            max_pages=between(4, 6),
            page_size=one_of(8, 16, 32, 64),
            head_dim=one_of(8, 32, 64, 80, 96, 128),
        ),
        Case("no tokens", dtypes=["f16"], **prefilling(2, 0, 2, 1, 2)),
    ],
    efficient=Case(
        "2 sequences with 8 queries and 192 keys, groups of 8",
        dtypes=["f16"],
        inputs={"lengths": full, "query_starts": equal_shares},
        **prefilling(2, 16, 16, 2, 12),
    ),
    minimum_bytes=lambda d: (
        cache_bytes({**d, "batch": d["batch"]}) + 4 * (d["tokens"] - d["batch"]) * heads_of(d) * d["head_dim"]
    ),
    bars=[
        Bar(
            "global_bytes / minimum",
            at_most=1.3,
            look="Let all query heads of a group share each tile of k and v.",
            naive="16 rows per block: k and v are fetched too often",
        ),
        Bar("sectors / ideal", at_most=1.3, look="Let neighboring threads read neighboring elements."),
        Bar("launches", at_most=1, look="Use one kernel that reads the pages in place: do not gather them first."),
        Bar("scratch_bytes", at_most=0, look="Read the pages in place: do not gather them first."),
    ],
    flops=lambda d: 4 * heads_of(d) * prefill_pairs(d) * d["head_dim"],
    bench=[
        Bench(
            "4 sequences, 1024 queries each",
            dtypes=["bf16"],
            inputs={"lengths": full, "query_starts": equal_shares},
            **{**prefilling(4, 4096, 32, 8, 64, 16, 128), "max_queries": 1024},
        ),
        Bench(
            "16 sequences, 16 queries each, 4096 keys",
            dtypes=["bf16"],
            inputs={"lengths": full, "query_starts": equal_shares},
            **{**prefilling(16, 256, 32, 8, 256, 16, 128), "max_queries": 16},
        ),
    ],
)


# ----------------------------------------------------------------------------------------------------- block_allocator


class PagesModel:
    """The reference of block_allocator: a mock cache, in which every token is a new number.

    After each operation, every sequence must read back its own tokens through its table and hold no more pages than
    they take, and no page may be lost.
    """

    def __init__(self, pages, page_size):
        self.pages, self.page_size = pages, page_size
        self.memory = [None] * (pages * page_size)
        self.tokens = 0
        self.texts = {}  # the tokens of each sequence in use
        self.tables = {}  # the pages of each sequence in use, as read after the last operation
        self.free_pages = pages
        self.numbers = {}  # the name of each number ever returned

    def judge(self, operation, outcome, views):
        """Return what is wrong after an operation, or an empty text."""
        name = operation.arguments[0] if operation.arguments else None
        if name is not None and name not in self.texts:
            expected = "KeyError"
        else:
            expected = "OutOfPages" if operation.method == "append" and self.lacking(*operation.arguments) else ""
        raised = outcome.raised
        if raised is not None and expected not in raised.names:
            return f"it raises {said(raised)}" + (f", not {expected}" if expected else "")
        if expected:
            if raised is None:
                why = "the sequence is not in use" if expected == "KeyError" else self.lacking(*operation.arguments)
                return f"it does not raise {expected}, although {why}"
            return self.unchanged(expected, views)
        return getattr(self, f"after_{operation.method}")(operation, outcome.value) or self.compare(views)

    def shared_with(self, name):
        """Return another sequence that holds the last page of a sequence; None if there is none."""
        last = self.tables[name][-1:]
        return next(
            (other for other, table in self.tables.items() if other != name and [*last] and last[0] in table), None
        )

    def copies(self, name, tokens):
        """Return whether an append writes to a page of another sequence, so that it needs a copy."""
        return bool(tokens) and len(self.texts[name]) % self.page_size != 0 and self.shared_with(name) is not None

    def lacking(self, name, tokens):
        """Return why an append does not fit, or an empty text."""
        full = -(-(len(self.texts[name]) + tokens) // self.page_size)
        needed = full - len(self.tables[name]) + self.copies(name, tokens)
        why = f"the pages that it needs are {needed}, and the free ones {self.free_pages}"
        return why if needed > self.free_pages else ""

    def after_create(self, operation, value, text=()):
        """Check the number of a new sequence."""
        if type(value) is not int:
            return f"it returns {shown(value)}, not a number"
        if value in self.numbers:
            return f"it returns {value}, the number of {self.numbers[value]}: never use a number twice"
        self.numbers[value], self.texts[operation.target] = operation.target, list(text)
        return ""

    def after_fork(self, operation, value):
        """Check the number of a second sequence with the same tokens."""
        return self.after_create(operation, value, self.texts[operation.arguments[0]])

    def after_free(self, operation, value):
        """Remove a sequence."""
        del self.texts[operation.arguments[0]], self.tables[operation.arguments[0]]
        return ""

    def after_append(self, operation, value):
        """Check the slots and the copy, and write the tokens to the mock cache."""
        name, tokens = operation.arguments
        fields = value.get("fields", {}) if isinstance(value, dict) else {}
        slots, copy = fields.get("slots"), fields.get("copy")
        if not numbers(slots) or not (copy is None or (numbers(copy) and len(copy) == 2)):
            return f"it returns {shown(value)}, not Appended(slots, copy) with lists of numbers"
        other = self.shared_with(name)
        if self.copies(name, tokens):
            shared = self.tables[name][-1]
            if copy is None:
                return f"it requests no copy of page {shared}, which {other} also holds"
            if copy[0] != shared:
                return f"it requests a copy of page {copy[0]}; the page that {other} also holds is {shared}"
        elif copy is not None:
            return f"it requests a copy of page {copy[0]}, but writes to no page of another sequence"
        if len(slots) != tokens:
            return f"it returns {len(slots)} slots for {tokens} tokens"
        pages = [slot // self.page_size for slot in slots] + ([copy[1]] if copy else [])
        for page in pages:
            if not 0 <= page < self.pages:
                return f"page {page} is outside the cache of {self.pages} pages"
            for holder, table in self.tables.items():
                if page in table and (holder != name or (copy is not None and page == copy[1])):
                    return f"it returns page {page}, which {holder} already holds"
        if copy:
            old, new = (page * self.page_size for page in copy)
            self.memory[new : new + self.page_size] = self.memory[old : old + self.page_size]
        for slot in slots:
            self.tokens += 1
            self.memory[slot] = self.tokens
            self.texts[name].append(self.tokens)
        return ""

    def unchanged(self, error, views):
        """Check that a failed operation has changed nothing."""
        for name, table in self.tables.items():
            if views["table"][name].value != table:
                return (
                    f"it raises {error}, but changes the table of {name} from {table} to {told(views['table'][name])}"
                )
        free = views["free_pages"][""]
        if free.value != self.free_pages:
            return f"it raises {error}, but changes free_pages from {self.free_pages} to {told(free)}"
        return ""

    def compare(self, views):
        """Check that each sequence reads back its tokens, and that every page is held or free."""
        self.tables = {}
        for name, text in self.texts.items():
            table = views["table"][name].value
            if views["table"][name].raised or not numbers(table):
                return f"then table({name}) is {told(views['table'][name])}, not a list of pages"
            needed = -(-len(text) // self.page_size)
            if len(table) != needed:
                return f"then {name} has {len(text)} tokens and the table {table}: it needs {needed} pages of {self.page_size}"
            if len(set(table)) != len(table) or not all(0 <= page < self.pages for page in table):
                return f"then {name} has the table {table}, with a page twice or outside the cache of {self.pages}"
            for at, token in enumerate(text):
                page, row = table[at // self.page_size], at % self.page_size
                if self.memory[page * self.page_size + row] != token:
                    return f"then token {at} of {name} is not in row {row} of page {page}, where its table {table} places it"
            self.tables[name] = table
        held, free = len({page for table in self.tables.values() for page in table}), views["free_pages"][""]
        self.free_pages = self.pages - held
        if type(free.value) is not int or free.value != self.free_pages:
            return f"then {held} of {self.pages} pages are held, but free_pages is {told(free)}"
        return ""


def numbers(value):
    """Return whether a value is a list of integers."""
    return isinstance(value, list) and all(type(item) is int for item in value)


def shown(value):
    """Return a value of the learner's code as text."""
    return value["type"] if isinstance(value, dict) else repr(value)


def told(seen):
    """Return an outcome as text: its value, or its exception."""
    return said(seen.raised) if seen.raised else shown(seen.value)


def random_operations(chooser):
    """Return 30 operations. A few use a sequence that was freed."""
    made, used, lines = [], [], []
    for _ in range(30):
        kind = chooser.choice(["create", "fork", "free", *5 * ["append"]]) if used else "create"
        name = chooser.choice(made if made and chooser.random() < 0.03 else used or [""])
        if kind in ("create", "fork") and len(used) < 6:
            made.append(f"s{len(made)}")
            used += [made[-1]] if kind == "create" or name in used else []
            lines.append(f"{made[-1]} = create()" if kind == "create" else f"{made[-1]} = fork({name})")
        elif kind == "free":
            used = [other for other in used if other != name]
            lines.append(f"free({name})")
        else:
            lines.append(f"append({name}, {chooser.choice([0, 1, 1, 1, 2, 3, 5, 7])})")
    return "; ".join(lines)


block_allocator = PythonExercise(
    summary="""
        Write the allocator of a KV cache: it allocates pages of page_size tokens to sequences. A sequence of n tokens
        holds ceil(n / page_size) pages, none if it is empty; token t is in page table[t // page_size], row
        t % page_size. fork(a) creates a sequence that shares all pages of a. Before a sequence writes to a page that
        another sequence also holds, it gets a page of its own, and append requests the copy. A page is free when no
        sequence holds it. An operation that raises an exception changes nothing.
    """,
    reference=PagesModel,
    creates="BlockAllocator",
    methods=("create", "append", "fork", "free", "table", "free_pages"),
    views=("free_pages", "table"),
    instance="cache",
    cases=[
        Case(name, pages=pages, page_size=page_size, operations=operations)
        for name, pages, page_size, operations in (
            ("a page is filled slot by slot", 4, 3, "a = create(); append(a, 1); append(a, 1); append(a, 1)"),
            (
                "a new page only when the last one is full",
                4,
                3,
                "a = create(); append(a, 3); append(a, 1); append(a, 5)",
            ),
            ("no tokens take no page", 1, 4, "a = create(); append(a, 0); b = create(); append(b, 4)"),
            (
                "freed pages are allocated again",
                2,
                2,
                "a = create(); append(a, 4); free(a); b = create(); append(b, 4)",
            ),
            (
                "no page is allocated twice",
                4,
                2,
                "a = create(); append(a, 1); b = create(); append(b, 1); free(a); c = create(); append(c, 1)",
            ),
            (
                "an append that does not fit",
                3,
                2,
                "a = create(); append(a, 3); append(a, 4); append(a, 1); append(a, 2)",
            ),
            ("a fork takes no page", 2, 4, "a = create(); append(a, 5); b = fork(a); c = fork(b)"),
            (
                "a write to a shared page gets a copy",
                3,
                4,
                "a = create(); append(a, 5); b = fork(a); append(b, 1); append(a, 1)",
            ),
            (
                "a copy needs a page as well",
                2,
                4,
                "a = create(); append(a, 5); b = fork(a); append(b, 1); append(b, 1)",
            ),
            ("full pages stay shared", 3, 2, "a = create(); append(a, 4); b = fork(a); append(b, 2)"),
            (
                "the last owner writes without a copy",
                2,
                4,
                "a = create(); append(a, 2); b = fork(a); free(a); append(b, 1)",
            ),
            (
                "free keeps the pages of the other owner",
                3,
                2,
                "a = create(); append(a, 3); b = fork(a); free(a); c = create(); append(c, 2)",
            ),
            ("a sequence is freed twice", 2, 2, "a = create(); append(a, 3); free(a); free(a)"),
            ("operations on a freed sequence", 2, 2, "a = create(); free(a); append(a, 1); b = create(); fork(a)"),
            ("a cache without pages", 0, 2, "a = create(); append(a, 0); append(a, 1)"),
        )
    ]
    + [Case("random operations", pages=between(1, 12), page_size=between(1, 5), operations=random_operations)],
)
