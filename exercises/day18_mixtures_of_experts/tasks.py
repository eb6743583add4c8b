"""The tasks of day 18.

A layer has `experts` experts, and each token goes to top_k of them. A *pair* is a token with one of its experts: pair
t * top_k + j is token t with the expert of its j-th largest logit. Sorted by expert, pairs become rows: offsets[e] is
the first row of expert e, and offsets[experts] is the number of rows.
"""

import itertools

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

NO_SCRATCH = Bar("scratch_bytes", at_most=0, look="Use the memory in the parameters, and allocate none.")
COALESCED = Bar("sectors / ideal", at_most=1.25, look="Let neighboring threads access neighboring addresses.")


# ------------------------------------------------------------------------------------------------------------ moe_router


def route(logits, top_k, softmax_first, normalize):
    """Return the chosen experts of each token and their weights, in the order of their logits, largest first."""
    order = torch.sort(logits, dim=-1, descending=True, stable=True)
    chosen, ids = order.values[:, :top_k], order.indices[:, :top_k]
    if not softmax_first:
        return torch.softmax(chosen, dim=-1), ids
    weights = torch.softmax(logits, dim=-1).gather(1, ids)
    return (weights / weights.sum(dim=-1, keepdim=True) if normalize else weights), ids


def torch_route(logits, top_k, softmax_first, normalize):
    """Route with torch's topk, whose ids are not compared because it breaks ties in any order."""
    if not softmax_first:
        chosen, ids = torch.topk(logits.float(), top_k, dim=-1)
        return {"weights": torch.softmax(chosen, dim=-1), "ids of torch": ids}
    weights, ids = torch.topk(torch.softmax(logits.float(), dim=-1), top_k, dim=-1)
    return {"weights": weights / weights.sum(dim=-1, keepdim=True) if normalize else weights, "ids of torch": ids}


def router(tokens, experts, top_k, softmax_first=True, normalize=True, **more):
    """Return the dimensions of the tensors of a test case, by name."""
    return dict(tokens=tokens, experts=experts, top_k=top_k, softmax_first=softmax_first, normalize=normalize, **more)


def large_logits(shape, generator):
    """Draw logits near 300 for even tokens and near -300 for odd ones: exp of them overflows, or is 0."""
    sign = torch.where(torch.arange(shape[0]) % 2 == 0, 300.0, -300.0)[:, None]
    return sign + 2 * torch.randn(shape, generator=generator)


def largest_at_the_ends(shape, generator):
    """Draw logits whose largest is that of the last expert and whose second largest that of the first."""
    logits = torch.randn(shape, generator=generator)
    logits[:, -1], logits[:, 0] = 9.0, 8.0
    return logits


moe_router = Exercise(
    summary="""\
Route tokens to experts. For each row of logits [tokens, experts], ids [tokens, top_k] are the experts with the largest
logits, the largest first; among equal logits the lower expert comes first. weights [tokens, top_k] (float) depend on two
flags. With softmax_first, take the softmax over all experts and keep the values of the chosen ones; with normalize as
well, divide these by their sum. Without softmax_first, take the softmax over the chosen logits alone. Logits are
finite, of any size. There are 1 to 1024 experts, and top_k is at most 32 and at most `experts`. With no tokens or top_k = 0
there is nothing to do.""",
    launchers="void moe_router_{dtype}(const {T}* logits, float* weights, int* ids, int tokens, int experts, int top_k, "
    "bool softmax_first, bool normalize, cudaStream_t stream)",
    dtypes=("f32", "f16", "bf16"),
    inputs={"logits": Input("tokens experts", normal(scale=2.0))},
    outputs={"weights": Output("tokens top_k", dtype="f32"), "ids": Output("tokens top_k", dtype="i32")},
    reference=route,
    tolerance={"f16": 2e-5, "bf16": 2e-5},
    cases=[
        Case("one token, one expert", **router(1, 1, 1)),
        Case("two experts, both chosen", **router(3, 2, 2)),
        Case("8 experts, softmax over the chosen", **router(37, 8, 2, softmax_first=False, normalize=False)),
        Case("60 experts, softmax over all", dtypes=["bf16"], **router(9, 60, 4, normalize=False)),
        Case("64 experts, normalized", dtypes=["f32"], **router(9, 64, 6)),
        Case("129 experts, 8 chosen", dtypes=["f32"], **router(5, 129, 8, normalize=False)),
        Case("1000 experts, 32 chosen", dtypes=["bf16"], **router(2, 1000, 32)),
        Case(
            "the first and the last expert have the largest logits",
            dtypes=["f32"],
            inputs={"logits": largest_at_the_ends},
            **router(5, 67, 3),
        ),
        Case("ties", inputs={"logits": integers(-1, 2)}, **router(11, 40, 5, normalize=False)),
        Case("logits of 300 and -300", inputs={"logits": large_logits}, **router(6, 16, 4, normalize=False)),
        Case(
            "random sizes",
            tokens=between(2, 30),
            experts=between(8, 300),
            top_k=between(1, 8),
            softmax_first=one_of(True, False),
            normalize=one_of(True, False),
        ),
        Case("no tokens", dtypes=["f32"], **router(0, 8, 2)),
    ],
    efficient=Case("512 tokens, 64 experts, 6 chosen", dtypes=["bf16"], **router(512, 64, 6)),
    bars=[
        Bar(
            "global_bytes / minimum",
            at_most=1.1,
            look="Read each logit once, and keep it in a register.",
            naive="the logits are read again in each round",
        ),
        COALESCED,
        Bar("launches", at_most=1, look="Use one kernel: softmax and top-k read the same logits."),
        NO_SCRATCH,
    ],
    flops=lambda d: 2 * d["tokens"] * d["experts"],
    bench=[
        Bench("1 token, 64 experts, 6 chosen", **router(1, 64, 6)),
        Bench("16384 tokens, 64 experts, 6 chosen", **router(16384, 64, 6)),
        Bench("16384 tokens, 256 experts, 8 chosen", **router(16384, 256, 8)),
    ],
    torch_baseline=torch_route,
)


# -------------------------------------------------------------------------------------------------------- exclusive_scan


def prefix_sums(x):
    """Return the n + 1 exclusive prefix sums, which wrap around like 32-bit integers."""
    sums = torch.cat([x.new_zeros(1), torch.cumsum(x, dim=0)])
    return (sums + 2**31) % 2**32 - 2**31


exclusive_scan = Exercise(
    summary="""\
Compute the exclusive prefix sums of n ints in one pass: out[i] = x[0] + ... + x[i - 1], so out[0] = 0, and out[n] is the
sum of all. Sums wrap as unsigned arithmetic does. Read x once, and write out once: blocks learn the sums before their
tile by decoupled look-back. `state` is n / 1024 + 2 words of uninitialized working memory; clear the words that you use
with cudaMemsetAsync. With n = 0 there is one sum, 0. x and out are 16-byte aligned.""",
    launchers="void exclusive_scan(const int* x, int* out, unsigned long long* state, int n, cudaStream_t stream)",
    dtypes=("i32",),
    inputs={"x": Input("n", integers(-50, 200))},
    outputs={"out": Output("(n + 1)"), "state": Output("(n//1024 + 2)", dtype="u64", scratch=True)},
    reference=prefix_sums,
    cases=[
        Case("no elements", n=0),
        Case("one element", n=1),
        Case("two elements", n=2),
        Case("four elements", n=4),
        Case("a prime", n=1009),
        Case("one less than 4096", n=4095),
        Case("4096", n=4096),
        Case("4097", n=4097),
        Case("negative sums", n=9001, inputs={"x": integers(-200, 3)}),
        Case("sums beyond 2^31", n=5000, inputs={"x": integers(2**30, 2**31)}),
        Case("many tiles, ragged", n=150_001),
        Case("random size", n=between(2, 30_000)),
    ],
    efficient=Case("200,000 elements", n=200_000),
    bars=[
        Bar(
            "global_bytes / minimum",
            at_most=1.05,
            look="Keep the tile in registers while you look back.",
            naive="the tile is read again after the look-back",
        ),
        Bar("sectors / ideal", at_most=1.05, look="Let neighboring threads access neighboring addresses."),
        Bar("requests * 512 / minimum", at_most=1.3, look="Move 16 bytes with each access."),
        Bar(
            "bank_conflict_ways",
            at_most=2,
            look="Let the threads of a warp access different banks, for example by padding.",
        ),
        Bar("launches", at_most=1, look="Use one kernel: the blocks exchange their sums through `state`."),
        NO_SCRATCH,
    ],
    minimum_bytes=lambda d: 8 * d["n"] + 4,
    flops=lambda d: d["n"],
    bench=[Bench("1,048,576", n=1 << 20), Bench("268,435,456", n=1 << 28)],
    torch_baseline=lambda x: torch.cumsum(x, dim=0, dtype=torch.int32),
)


# ----------------------------------------------------------------------------------------------------------- moe_permute


def distinct_experts(shape, dims, generator):
    """Draw top_k different experts for each token."""
    return torch.rand(shape[0], dims["experts"], generator=generator).argsort(dim=1)[:, : shape[1]]


def the_same_experts(shape):
    """Return ids by which all tokens choose the same experts, so that the other experts have no tokens."""
    return torch.arange(shape[1]).flip(0).expand(shape)


def rows_by_expert(ids, experts):
    """Return offsets (the first row of each expert, and the end of the last), and the row of each pair."""
    flat = ids.flatten()
    rows_of = torch.empty_like(flat)
    rows_of[torch.argsort(flat, stable=True)] = torch.arange(len(flat), device=ids.device)
    counts = torch.bincount(flat, minlength=experts)
    offsets = torch.cat([counts.new_zeros(1), torch.cumsum(counts, dim=0)])
    return offsets, rows_of.view(ids.shape)


def permute(x, ids, experts, top_k):
    """Return the rows of x sorted by expert, the offsets, and the row of each pair."""
    offsets, rows_of = rows_by_expert(ids, experts)
    out = torch.empty(ids.numel(), x.shape[1], dtype=x.dtype)
    out[rows_of.flatten()] = x.repeat_interleave(top_k, dim=0)
    return {"out": out, "offsets": offsets, "rows_of": rows_of}


def torch_permute(x, ids, experts, top_k):
    """Sort the pairs by expert with torch, and gather their rows of x."""
    order = torch.argsort(ids.flatten(), stable=True)
    rows_of = torch.empty_like(order)
    rows_of[order] = torch.arange(order.numel(), device=order.device)
    counts = torch.bincount(ids.flatten(), minlength=experts)
    return {"out": x[order // top_k], "counts": counts, "rows_of": rows_of}


def permuted(tokens, experts, top_k, hidden, **more):
    """Return the dimensions of the tensors of a test case, by name."""
    return dict(tokens=tokens, experts=experts, top_k=top_k, hidden=hidden, **more)


moe_permute = Exercise(
    summary="""\
Sort tokens by expert. ids [tokens, top_k] names the experts of each token, all different within a token. Pair (t, j)
gets row rows_of[t, j] of out, which becomes a copy of x[t]. Rows are sorted by expert, and pairs of one expert keep
their order: by t, then by j. offsets [experts + 1] are the first row of each expert, followed by the number of all
rows. The result is the same in every run. `work` is uninitialized working memory: (chunks + 1) * experts ints, where a
chunk is 256 pairs. There are 1 to 1024 experts, hidden is a multiple of 8, all tensors are 16-byte aligned, and tokens
* top_k fits an int. out may have more than 2^31 elements, but no test is that large. With no tokens, write only
offsets, which are all zero.""",
    launchers="void moe_permute_{dtype}(const {T}* x, const int* ids, {T}* out, int* offsets, int* rows_of, int* work, "
    "int tokens, int experts, int top_k, int hidden, cudaStream_t stream)",
    dtypes=("f32", "f16", "bf16"),
    inputs={
        "x": Input("tokens hidden", normal(channel_offset=1.0)),
        "ids": Input("tokens top_k", distinct_experts, dtype="i32"),
    },
    outputs={
        "out": Output("(tokens*top_k) hidden"),
        "offsets": Output("(experts + 1)", dtype="i32"),
        "rows_of": Output("tokens top_k", dtype="i32"),
        "work": Output("(((tokens*top_k + 255)//256 + 1)*experts)", dtype="i32", scratch=True),
    },
    reference=permute,
    trivial=[lambda x, ids, experts, top_k: permute(x, ids.flip(0), experts, top_k)],
    cases=[
        Case("one token, one expert", **permuted(1, 1, 1, 8)),
        Case("two tokens, two experts", **permuted(2, 2, 1, 16)),
        Case("three experts per token", dtypes=["f32"], **permuted(5, 7, 3, 8)),
        Case("41 pairs, more than a warp", dtypes=["f32"], **permuted(41, 3, 1, 8)),
        Case("524 pairs, more than two chunks", **permuted(131, 11, 4, 24)),
        Case("experts without a token", inputs={"ids": the_same_experts}, dtypes=["bf16"], **permuted(97, 64, 2, 8)),
        Case("more experts than threads", dtypes=["bf16"], **permuted(9, 1024, 8, 40)),
        Case("more than 32 chunks", dtypes=["bf16"], **permuted(8500, 5, 1, 8)),
        Case("wide rows", dtypes=["bf16"], **permuted(4, 4, 2, 2056)),
        Case(
            "random sizes",
            tokens=between(2, 200),
            experts=between(8, 70),
            top_k=between(1, 8),
            hidden=one_of(8, 56, 136),
        ),
        Case("no tokens", dtypes=["f32"], **permuted(0, 6, 2, 8)),
    ],
    efficient=Case("256 tokens, 16 experts, 4 each", dtypes=["bf16"], **permuted(256, 16, 4, 512)),
    minimum_bytes=lambda d: (
        d["item"] * d["tokens"] * d["hidden"] * (1 + d["top_k"]) + 8 * d["tokens"] * d["top_k"] + 4 * d["experts"] + 4
    ),
    bars=[
        Bar(
            "global_bytes / minimum",
            at_most=1.15,
            look="Read the row of a token once, and write it top_k times.",
            naive="the row of a token is read for each of its pairs",
        ),
        COALESCED,
        Bar("requests * 512 / minimum", at_most=2.8, look="Copy 16 bytes per access."),
        Bar("launches", at_most=4, look="Use at most four kernels: histogram, scan, ranks and copy."),
        NO_SCRATCH,
    ],
    bench=[
        Bench("64 tokens, 64 experts, 6 each", **permuted(64, 64, 6, 2048)),
        Bench("8192 tokens, 64 experts, 6 each", **permuted(8192, 64, 6, 2048)),
        Bench("16384 tokens, 128 experts, 8 each", **permuted(16384, 128, 8, 4096)),
    ],
    torch_baseline=torch_permute,
)


# ----------------------------------------------------------------------------------------------------------- moe_combine


def shuffled_rows(shape, dims, generator):
    """Draw a different row of y for each pair, in random order."""
    return torch.randperm(shape[0] * shape[1], generator=generator).view(shape)


def some_dropped(shape, dims, generator):
    """Draw ``shuffled_rows``, but drop (row -1) every third pair, and all pairs of the last token."""
    rows = shuffled_rows(shape, dims, generator)
    dropped = (torch.arange(rows.numel()).view(shape) % 3 == 0) | (torch.arange(shape[0]) == shape[0] - 1)[:, None]
    return torch.where(dropped, -1, rows)


def only_first_rows(shape, dims, generator):
    """Draw rows of the first half of y only; two pairs read each of them."""
    half = shape[0] * shape[1] // 2
    return torch.randperm(half, generator=generator).repeat(2)[: shape[0] * shape[1]].view(shape)


def nan_in_the_second_half(shape, generator):
    """Draw rows whose second half is NaN, because no pair may read those."""
    rows = torch.randn(shape, generator=generator)
    rows[shape[0] // 2 :] = torch.nan
    return rows


def canceling_rows(shape, generator):
    """Draw rows that are alternately near 1000 and near -1000, so that the terms of a token's sum cancel."""
    sign = torch.where(torch.arange(shape[0]) % 2 == 0, 1000.0, -1000.0)[:, None]
    return sign + 8 * torch.randint(-4, 5, shape, generator=generator)


def combine(y, rows_of, weights, base, has_base):
    """Return, for each token, the weighted sum of the rows of its pairs, plus the base if ``has_base``."""
    there = (rows_of >= 0)[:, :, None]
    rows = torch.where(there, y[rows_of.clamp(min=0)], 0.0)
    out = (weights[:, :, None] * rows).sum(dim=1)
    return out + base if has_base else out


def combined(tokens, top_k, hidden, has_base=False, **more):
    """Return the dimensions of the tensors of a test case, by name."""
    return dict(tokens=tokens, top_k=top_k, hidden=hidden, has_base=has_base, **more)


moe_combine = Exercise(
    summary="""\
Combine the results of each token's experts: out[t] is the sum of weights[t, j] * y[rows_of[t, j]] over j, plus base[t] if
has_base (base is the result of shared experts). y has tokens * top_k rows. A row of -1 means that the pair was dropped:
it adds nothing, whatever its weight. Sum in float, in the order of j, and round once, so that every run gives the same
bits. hidden is a multiple of 8, and all tensors are 16-byte aligned. y may have more than 2^31 elements, but no
test is that large. With no tokens or hidden = 0 there is nothing to do; with top_k = 0 the result is the base, or zero.""",
    launchers="void moe_combine_{dtype}(const {T}* y, const int* rows_of, const float* weights, const {T}* base, {T}* "
    "out, int tokens, int top_k, int hidden, bool has_base, cudaStream_t stream)",
    dtypes=("f32", "f16", "bf16"),
    inputs={
        "y": Input("(tokens*top_k) hidden", normal(channel_offset=1.0)),
        "rows_of": Input("tokens top_k", shuffled_rows, dtype="i32"),
        "weights": Input("tokens top_k", uniform(0.1, 1.0), dtype="f32"),
        "base": Input("(tokens*has_base) hidden", normal(mean=0.5)),
    },
    outputs={"out": Output("tokens hidden")},
    reference=combine,
    cases=[
        Case("one token, one expert", **combined(1, 1, 8)),
        Case("two experts", **combined(2, 2, 16)),
        Case("six experts and a base", **combined(13, 6, 72, True)),
        Case("wide rows", dtypes=["bf16"], **combined(3, 4, 2056)),
        Case("dropped pairs", inputs={"rows_of": some_dropped}, **combined(11, 5, 24)),
        Case("dropped pairs and a base", dtypes=["bf16"], inputs={"rows_of": some_dropped}, **combined(5, 3, 40, True)),
        Case(
            "NaN in rows that no pair reads",
            dtypes=["f32"],
            inputs={"y": nan_in_the_second_half, "rows_of": only_first_rows},
            **combined(10, 4, 16),
        ),
        Case(
            "terms of 1000 that cancel",
            dtypes=["bf16"],
            inputs={
                "y": canceling_rows,
                "weights": constant(0.7),
                "rows_of": lambda shape: torch.arange(shape[0] * shape[1]).view(shape),
            },
            **combined(7, 6, 64),
        ),
        Case(
            "random sizes",
            tokens=between(2, 40),
            top_k=between(1, 9),
            hidden=one_of(8, 56, 136, 1032),
            has_base=one_of(False, True),
        ),
        Case("no experts, a base", dtypes=["bf16"], **combined(3, 0, 16, True)),
        Case("no tokens", dtypes=["f32"], **combined(0, 2, 8)),
    ],
    efficient=Case("128 tokens, 6 experts", dtypes=["bf16"], **combined(128, 6, 512)),
    minimum_bytes=lambda d: (
        d["item"] * d["tokens"] * d["hidden"] * (1 + d["top_k"] + d["has_base"]) + 8 * d["tokens"] * d["top_k"]
    ),
    bars=[
        Bar("global_bytes / minimum", at_most=1.15, look="Keep the sums in registers until all rows are added."),
        COALESCED,
        Bar(
            "requests * 512 / minimum",
            at_most=6.5,
            look="Move 16 bytes with each access.",
            naive="one element per access",
        ),
        Bar("atomics", at_most=0, look="Use no atomics: let each token gather the rows of its pairs."),
        Bar("launches", at_most=1),
        NO_SCRATCH,
    ],
    flops=lambda d: 2 * d["tokens"] * d["top_k"] * d["hidden"],
    bench=[
        Bench("64 tokens, 6 experts", **combined(64, 6, 2048)),
        Bench("8192 tokens, 6 experts", **combined(8192, 6, 2048)),
        Bench("16384 tokens, 8 experts", **combined(16384, 8, 4096)),
    ],
    torch_baseline=lambda y, rows_of, weights: torch.einsum("tk,tkc->tc", weights.to(y.dtype), y[rows_of]),
)


# ----------------------------------------------------------------------------------------------------------- lost_tokens


def places_with_capacity(ids, experts, capacity):
    """Return the place of each token, the token in each place, and the number of tokens that each expert keeps."""
    _, rank = rows_by_expert(ids[:, None], experts)
    offsets, _ = rows_by_expert(ids[:, None], experts)
    rank = rank[:, 0] - offsets[ids]
    places = torch.where(rank < capacity, ids * capacity + rank, -1)
    slots = torch.full((experts * capacity,), -1)
    slots[places[places >= 0]] = torch.arange(len(ids))[places >= 0]
    return {"places": places, "slots": slots, "kept": offsets.diff().clamp(max=capacity)}


def places(tokens, experts, capacity, **more):
    """Return the dimensions of the tensors of a test case, by name."""
    return dict(tokens=tokens, experts=experts, capacity=capacity, **more)


lost_tokens = Exercise(
    summary="""\
Give each token a place in the buffer of its expert. Token t goes to expert ids[t]. Expert e has `capacity` places, from
e * capacity on. The tokens of an expert take its places in increasing order. places[t] is the place of token
t, or -1 if its expert has none left. slots [experts * capacity] is the token in each place, or -1. kept[e] is the number
of tokens that expert e keeps. The given kernel has one fault. Find it from the report, and correct it. The result is the
same in every run. With no tokens all slots are -1; with capacity = 0 all places are -1.""",
    launchers="void lost_tokens(const int* ids, int* places, int* slots, int* kept, int tokens, int experts, int capacity, "
    "cudaStream_t stream)",
    dtypes=("i32",),
    inputs={"ids": Input("tokens", integers(0, "experts"))},
    outputs={"places": Output("tokens"), "slots": Output("(experts*capacity)"), "kept": Output("experts")},
    reference=places_with_capacity,
    cases=[
        Case("one token", **places(1, 1, 1)),
        Case("two tokens, two experts", **places(2, 2, 2)),
        Case("a warp of tokens", **places(31, 3, 20)),
        Case("several warps", **places(127, 5, 40)),
        Case("several warps, more tokens than places", **places(128, 2, 30)),
        Case("all tokens choose one expert", inputs={"ids": constant(1)}, **places(101, 3, 50)),
        Case("several rounds", **places(389, 4, 120)),
        Case("several rounds, more tokens than places", **places(500, 3, 100)),
        Case("random sizes", tokens=between(2, 700), experts=between(1, 9), capacity=between(1, 90)),
        Case("capacity is 0", **places(40, 2, 0)),
        Case("no tokens", **places(0, 3, 4)),
    ],
    efficient=Case("1024 tokens, 8 experts", **places(1024, 8, 160)),
    bars=[
        Bar("launches", at_most=1),
        Bar(
            "atomics",
            at_most=0,
            look="Use no atomics, because their order differs from run to run. Count the earlier tokens instead.",
        ),
        NO_SCRATCH,
    ],
)


# ---------------------------------------------------------------------------------------------------------- grouped_gemm


def offsets_of(counts):
    """Return offsets for groups of these sizes: the first row of each group, and the end of the last."""
    counts = torch.as_tensor(counts)
    return torch.cat([counts.new_zeros(1), torch.cumsum(counts, dim=0)])


def random_groups(shape, dims, generator):
    """Draw offsets: each row chooses an expert at random; about a third of the experts get no row."""
    experts = shape[0] - 1
    open_for = torch.rand(experts, generator=generator) < 0.7
    open_for[torch.randint(0, experts, (1,), generator=generator)] = True
    choices = torch.where(open_for)[0]
    chosen = choices[torch.randint(0, len(choices), (dims["rows"],), generator=generator)]
    return offsets_of(torch.bincount(chosen, minlength=experts))


def sized(*counts):
    """Return a generator of the offsets for groups of these sizes."""
    return lambda: offsets_of(counts)


def nan_from(first, end):
    """Return a generator of weights that are NaN for the experts first ... end - 1."""

    def draw(shape, generator):
        weights = 0.5 * torch.randn(shape, generator=generator)
        weights[first:end] = torch.nan
        return weights

    return draw


def groups(counts, in_features, out_features, **more):
    """Return the sizes and inputs of a case with groups of these sizes."""
    inputs = {"offsets": sized(*counts), **more.pop("inputs", {})}
    return dict(
        rows=sum(counts),
        experts=len(counts),
        in_features=in_features,
        out_features=out_features,
        inputs=inputs,
        **more,
    )


def balanced(rows, experts, in_features, out_features):
    """Return the sizes and inputs of a benchmark in which each row chooses an expert at random."""
    inputs = {"offsets": every_expert}
    return dict(rows=rows, experts=experts, in_features=in_features, out_features=out_features, inputs=inputs)


def every_expert(shape, dims, generator):
    """Draw offsets: each row chooses one of all experts, with equal probability."""
    experts = shape[0] - 1
    chosen = torch.randint(0, experts, (dims["rows"],), generator=generator)
    return offsets_of(torch.bincount(chosen, minlength=experts))


def by_group(x, offsets, multiply):
    """Apply multiply(rows, expert) to the rows of each expert, unless it has none, and concatenate the results."""
    bounds = offsets.tolist()
    parts = [multiply(x[first:end], e) for e, (first, end) in enumerate(itertools.pairwise(bounds)) if end > first]
    return torch.cat(parts) if parts else multiply(x, 0)


def torch_grouped(x, w, offsets):
    """Run torch's grouped matmul on a GPU, or a loop over experts if it is not available."""
    if x.is_cuda and hasattr(torch, "_grouped_mm"):
        return torch._grouped_mm(x, w.transpose(1, 2), offs=offsets[1:].int())
    return by_group(x, offsets, lambda rows, e: rows @ w[e].T)


grouped_gemm = Exercise(
    summary="""\
Compute a grouped matmul on tensor cores, in one launch: expert e multiplies its rows, y[r] = x[r] w[e]^T for offsets[e]
<= r < offsets[e + 1]. w is [experts, out_features, in_features]. Groups have any size, also none; offsets [experts + 1]
increases from 0 to rows, and is in GPU memory only. f16 and bf16 in and out, sums in f32. in_features and out_features
are multiples of 8, there are 1 to 1024 experts, all tensors are 16-byte aligned, and in_features is not 0. w may have
more than 2^31 elements, but no test is that large. Weights of an expert without rows may hold anything, even NaN. With no
rows or no out_features there is nothing to do.""",
    launchers="void grouped_gemm_{dtype}(const {T}* x, const {T}* w, const int* offsets, {T}* y, int rows, int experts, "
    "int in_features, int out_features, cudaStream_t stream)",
    dtypes=("f16", "bf16"),
    inputs={
        "x": Input("rows in_features", normal(channel_offset=0.5)),
        "w": Input("experts out_features in_features", normal(scale=0.5)),
        "offsets": Input("(experts + 1)", random_groups, dtype="i32"),
    },
    outputs={"y": Output("rows out_features")},
    reference=lambda x, w, offsets: by_group(x, offsets, lambda rows, e: rows @ w[e].T),
    cases=[
        Case("one row, eight columns", **groups([1], 8, 8)),
        Case("two experts", dtypes=["f16"], **groups([2, 3], 16, 24)),
        Case("empty groups, also the first and the last", dtypes=["bf16"], **groups([0, 17, 0, 0, 64, 1, 0], 72, 40)),
        Case("groups of whole tiles", dtypes=["f16"], **groups([128, 256], 64, 256)),
        Case("groups one row larger than a tile", dtypes=["bf16"], **groups([129, 65, 257], 136, 264)),
        Case("in_features longer than the ring of tiles", dtypes=["f16"], **groups([5, 70], 840, 72)),
        Case("more experts than a warp has lanes", dtypes=["bf16"], **groups([1, 0, 2, 0] * 10 + [7], 24, 16)),
        Case("more tiles than the GPU has SMs", dtypes=["bf16"], **groups([3, 0, 2], 8, 18_000)),
        Case(
            "weights of an expert without rows are NaN",
            dtypes=["f16"],
            **groups([33, 0, 20], 64, 64, inputs={"w": nan_from(1, 2)}),
        ),
        Case("more rows of tiles than a panel", dtypes=["f16"], **groups([1300], 24, 520)),
        Case(
            "random sizes",
            rows=between(1, 300),
            experts=between(1, 12),
            in_features=one_of(8, 56, 64, 200),
            out_features=one_of(8, 72, 264),
        ),
        Case("no rows", dtypes=["f16"], **groups([0, 0], 64, 64)),
        Case("no columns", dtypes=["bf16"], **groups([3, 2], 64, 0)),
    ],
    efficient=Case("groups of 256, 0, 64 and 192", dtypes=["f16"], **groups([256, 0, 64, 192], 256, 512)),
    bars=[
        Bar("tensor_operations / flops_needed", at_least=1, look="Multiply on tensor cores."),
        Bar(
            "tensor_operations / flops_needed",
            at_most=1.2,
            look="Pad a group to the next tile, not to the largest group, and skip warpgroups without rows.",
            naive="warpgroups without rows multiply, too",
        ),
        Bar("global_bytes / minimum", at_most=1.8, look="Let a block compute at least 128 x 128 elements of y."),
        Bar("sectors / ideal", at_most=1.3, look="Let neighboring threads access neighboring addresses."),
        Bar(
            "bank_conflict_ways",
            at_most=1.05,
            look="Store the results to shared memory with the swizzle of the tensor map.",
        ),
        Bar("launches", at_most=1, look="Use one launch for all experts, because the host does not know the groups."),
        NO_SCRATCH,
    ],
    flops=lambda d: 2 * d["rows"] * d["in_features"] * d["out_features"],
    bench=[
        Bench("8 experts, 8192 rows, 4096 to 14336", **balanced(8192, 8, 4096, 14336)),
        Bench("64 experts, 8192 rows, 2048 to 1408", **balanced(8192, 64, 2048, 1408)),
        Bench("128 experts, 16384 rows, 4096 to 1536", **balanced(16384, 128, 4096, 1536)),
    ],
    torch_baseline=torch_grouped,
)


# ------------------------------------------------------------------------------------------------------------ moe_swiglu


def swiglu_of(x, w):
    """Return silu(x g^T) * (x u^T) for w = [g, u]."""
    gate, up = (x @ w.T).chunk(2, dim=-1)
    return torch.nn.functional.silu(gate) * up


def gated(counts, in_features, intermediate, **more):
    """Return the sizes and inputs of a case with groups of these sizes."""
    sizes = groups(counts, in_features, 0, **more)
    del sizes["out_features"]
    return {**sizes, "intermediate": intermediate}


def gated_bench(rows, experts, in_features, intermediate):
    """Return the sizes and inputs of a benchmark in which each row chooses an expert at random."""
    sizes = balanced(rows, experts, in_features, 0)
    del sizes["out_features"]
    return {**sizes, "intermediate": intermediate}


def torch_swiglu(x, w, offsets):
    """Run torch's grouped matmul for gate and up, then silu(gate) * up."""
    gate, up = torch_grouped(x, w, offsets).chunk(2, dim=-1)
    return torch.nn.functional.silu(gate) * up


moe_swiglu = Exercise(
    summary="""\
Compute the first half of all experts in one launch, on tensor cores: y[r] = silu(x[r] g^T) * (x[r] u^T) for offsets[e] <=
r < offsets[e + 1], where w[e] [2 * intermediate, in_features] is g above u. Groups have any size, also none; offsets
[experts + 1] increases from 0 to rows, and is in GPU memory only. f16 and bf16 in and out; sums, silu and the product
in f32, rounded once. in_features and intermediate are multiples of 8, there are 1 to 1024 experts, all tensors are
16-byte aligned, and in_features is not 0. w may have more than 2^31 elements, but no test is that large. With no rows or
intermediate = 0 there is nothing to do.""",
    launchers="void moe_swiglu_{dtype}(const {T}* x, const {T}* w, const int* offsets, {T}* y, int rows, int experts, "
    "int in_features, int intermediate, cudaStream_t stream)",
    dtypes=("f16", "bf16"),
    inputs={
        "x": Input("rows in_features", normal(channel_offset=0.5)),
        "w": Input("experts (2*intermediate) in_features", normal(scale="0.7 / in_features**0.5")),
        "offsets": Input("(experts + 1)", random_groups, dtype="i32"),
    },
    outputs={"y": Output("rows intermediate")},
    reference=lambda x, w, offsets: by_group(x, offsets, lambda rows, e: swiglu_of(rows, w[e])),
    trivial=[
        lambda x, w, offsets: by_group(x, offsets, lambda rows, e: swiglu_of(rows, w[e].roll(w.shape[1] // 2, 0)))
    ],
    cases=[
        Case("one row, eight columns", **gated([1], 8, 8)),
        Case("two experts", dtypes=["f16"], **gated([2, 3], 16, 24)),
        Case("empty groups, also the first and the last", dtypes=["bf16"], **gated([0, 17, 0, 0, 64, 1, 0], 72, 40)),
        Case("groups of whole tiles", dtypes=["f16"], **gated([128, 256], 64, 128)),
        Case("groups one row larger than a tile", dtypes=["bf16"], **gated([129, 65], 136, 136)),
        Case("in_features longer than the ring of tiles", dtypes=["f16"], **gated([5, 70], 840, 72)),
        Case("more tiles than the GPU has SMs", dtypes=["bf16"], **gated([3, 0, 2], 8, 9_000)),
        Case(
            "large gates do not overflow",
            dtypes=["bf16"],
            **gated([7, 9], 64, 40, inputs={"w": normal(scale=8.0)}),
        ),
        Case(
            "random sizes",
            rows=between(1, 300),
            experts=between(1, 12),
            in_features=one_of(8, 56, 64, 200),
            intermediate=one_of(8, 72, 136),
        ),
        Case("no rows", dtypes=["f16"], **gated([0, 0], 64, 64)),
        Case("no columns", dtypes=["bf16"], **gated([3, 2], 64, 0)),
    ],
    efficient=Case("groups of 256, 0, 64 and 192", dtypes=["f16"], **gated([256, 0, 64, 192], 256, 256)),
    bars=[
        Bar("tensor_operations / flops_needed", at_least=1, look="Multiply on tensor cores."),
        Bar(
            "tensor_operations / flops_needed",
            at_most=1.2,
            look="Pad a group to the next tile, not to the largest group, and skip warpgroups without rows.",
            naive="warpgroups without rows multiply, too",
        ),
        Bar(
            "global_bytes / minimum",
            at_most=1.9,
            look="Compute gate and up of the same columns in one tile, so that neither is written to memory.",
        ),
        Bar("sectors / ideal", at_most=1.3, look="Let neighboring threads access neighboring addresses."),
        Bar(
            "bank_conflict_ways",
            at_most=1.05,
            look="Store the results to shared memory with the swizzle of the tensor map.",
        ),
        Bar("launches", at_most=1, look="Use one launch for all experts, and for gate and up."),
        NO_SCRATCH,
    ],
    flops=lambda d: 4 * d["rows"] * d["in_features"] * d["intermediate"],
    bench=[
        Bench("8 experts, 8192 rows, 4096 to 14336", **gated_bench(8192, 8, 4096, 14336)),
        Bench("64 experts, 8192 rows, 2048 to 1408", **gated_bench(8192, 64, 2048, 1408)),
        Bench("128 experts, 16384 rows, 4096 to 1536", **gated_bench(16384, 128, 4096, 1536)),
    ],
    torch_baseline=torch_swiglu,
)


# ------------------------------------------------------------------------------------------------------------ moe_decode


def exactly_chosen(shape, dims, generator):
    """Draw the experts of each token: `chosen` experts are in use altogether, and each token has different ones."""
    tokens, top_k = shape
    chosen = torch.randperm(dims["experts"], generator=generator)[: dims["chosen"]]
    return chosen[(torch.arange(tokens * top_k) % dims["chosen"]).view(shape)]


def nan_where_not_chosen(scale):
    """Return a generator of weights that are NaN for every expert that no token chose."""

    def draw(shape, inputs, generator):
        weights = scale * torch.randn(shape, generator=generator)
        idle = torch.ones(shape[0], dtype=torch.bool)
        idle[inputs["ids"].flatten().long()] = False
        weights[idle] = torch.nan
        return weights

    return draw


def whole_layer(x, ids, weights, gate_up, down):
    """Return, for each token, the weighted sum of the results of its experts."""
    out = torch.zeros_like(x)
    for e in torch.unique(ids).tolist():
        token, place = torch.where(ids == e)
        out[token] += weights[token, place, None].to(x.dtype) * (swiglu_of(x[token], gate_up[e]) @ down[e].T)
    return out


def torch_layer(x, ids, weights, gate_up, down):
    """Gather the weights of each pair's expert, then run batched matmuls, without a copy to the host."""
    pairs = x.repeat_interleave(ids.shape[1], dim=0)[:, :, None]
    chosen = ids.flatten()
    gate, up = torch.bmm(gate_up[chosen], pairs).chunk(2, dim=1)
    y = torch.bmm(down[chosen], torch.nn.functional.silu(gate) * up)
    return (weights.flatten()[:, None].to(x.dtype) * y[:, :, 0]).view(*ids.shape, -1).sum(dim=1)


def expert_bytes(hidden, intermediate, item):
    """Return the bytes of one expert's weights: gate, up and down."""
    return 3 * hidden * intermediate * item


def decoded(tokens, experts, top_k, hidden, intermediate, chosen=0, **more):
    """Return the sizes of a case in which `chosen` experts are in use altogether (default: top_k)."""
    return dict(
        tokens=tokens,
        experts=experts,
        top_k=top_k,
        hidden=hidden,
        intermediate=intermediate,
        chosen=chosen or top_k,
        **more,
    )


moe_decode = Exercise(
    summary="""\
Compute the routed experts of a layer for 1 to 64 tokens, in at most two launches: out[t] is the sum over j of weights[t,
j] * (silu(x[t] g^T) * (x[t] u^T)) d^T, where e = ids[t, j], gate_up[e] [2 * intermediate, hidden] is g above u, and d =
down[e] [hidden, intermediate]. The ids of a token are all different. Read the weights of a chosen expert once, for all
tokens that chose it, and touch no other expert: its weights may be NaN. Sum in float, without atomics on floats, so that
every run gives the same bits. `middle` [tokens * top_k, intermediate] is working memory. There are 1 to 1024
experts; top_k is 1 to 16; hidden and intermediate are multiples of 8 and not 0; all tensors are 16-byte aligned. The
weights may have more than 2^31 elements, but no test is that large. With no tokens there is nothing to do.""",
    launchers="void moe_decode_{dtype}(const {T}* x, const int* ids, const float* weights, const {T}* gate_up, const {T}* "
    "down, {T}* middle, {T}* out, int tokens, int experts, int top_k, int hidden, int intermediate, cudaStream_t stream)",
    dtypes=("f16", "bf16"),
    inputs={
        "x": Input("tokens hidden", normal(channel_offset=0.5)),
        "ids": Input("tokens top_k", exactly_chosen, dtype="i32"),
        "weights": Input("tokens top_k", uniform(0.1, 1.0), dtype="f32"),
        "gate_up": Input("experts (2*intermediate) hidden", normal(scale="1.0 / hidden**0.5")),
        "down": Input("experts hidden intermediate", normal(scale="1.0 / intermediate**0.5")),
    },
    outputs={
        "middle": Output("(tokens*top_k) intermediate", scratch=True),
        "out": Output("tokens hidden"),
    },
    reference=whole_layer,
    trivial=[lambda x, ids, weights, gate_up, down: whole_layer(x, ids, weights.flip(0).roll(1, 1), gate_up, down)],
    cases=[
        Case("one token, one expert", **decoded(1, 1, 1, 8, 8)),
        Case("one token, three experts", dtypes=["bf16"], **decoded(1, 7, 3, 72, 40)),
        Case("two tokens, the same experts", dtypes=["f16"], **decoded(2, 5, 2, 64, 104)),
        Case("17 tokens, the same expert", dtypes=["bf16"], **decoded(17, 3, 1, 40, 24)),
        Case("64 tokens, the same experts", dtypes=["f16"], **decoded(64, 4, 2, 48, 32)),
        Case("64 tokens, many experts", dtypes=["bf16"], **decoded(64, 70, 3, 40, 24, chosen=37)),
        Case("many columns of k", dtypes=["f16"], **decoded(3, 6, 2, 840, 200, chosen=5)),
        Case(
            "experts that no token chose are NaN",
            dtypes=["f16"],
            inputs={"gate_up": nan_where_not_chosen(0.1), "down": nan_where_not_chosen(0.2)},
            **decoded(5, 9, 2, 64, 32, chosen=4),
        ),
        Case(
            "large gates do not overflow",
            dtypes=["bf16"],
            inputs={"gate_up": normal(scale=6.0)},
            **decoded(4, 5, 2, 64, 24, chosen=3),
        ),
        Case("more tiles than warps", dtypes=["f16"], **decoded(2, 2, 1, 8, 9_000, chosen=2)),
        Case(
            "random sizes",
            tokens=between(1, 64),
            experts=between(9, 20),
            top_k=between(1, 4),
            chosen=between(4, 9),
            hidden=one_of(8, 56, 136),
            intermediate=one_of(16, 72, 120),
        ),
        Case("no tokens", dtypes=["f16"], **decoded(0, 4, 2, 16, 8)),
    ],
    efficient=Case("8 tokens, 4 of 6 experts", dtypes=["bf16"], **decoded(8, 6, 2, 256, 512, chosen=4)),
    minimum_bytes=lambda d: (
        d["chosen"] * expert_bytes(d["hidden"], d["intermediate"], d["item"])
        + 2 * d["tokens"] * d["hidden"] * d["item"]
        + d["tokens"] * d["top_k"] * (8 + 2 * d["intermediate"] * d["item"])
    ),
    distinct_bytes=lambda ids, hidden, intermediate, item: (
        len(torch.unique(ids)) * expert_bytes(hidden, intermediate, item)
    ),
    bars=[
        Bar(
            "global_bytes / minimum",
            at_most=2.2,
            look="Read the weights of an expert once, for all tokens that chose it.",
            naive="every pair reads the weights of its expert",
        ),
        Bar("sectors / ideal", at_most=1.25, look="Let the lanes that share a row of weights read neighboring bytes."),
        Bar("bank_conflict_ways", at_most=4, look="Let the lanes of a warp access different banks."),
        Bar(
            "launches",
            at_most=2,
            look="Use two kernels: one for gate and up, one for down that also adds the results of the experts.",
        ),
        NO_SCRATCH,
    ],
    flops=lambda d: 6 * d["tokens"] * d["top_k"] * d["hidden"] * d["intermediate"],
    bench=[
        Bench("1 token, 64 experts, 6 each", **decoded(1, 64, 6, 2048, 1408)),
        Bench("8 tokens, 48 of 64 experts", **decoded(8, 64, 6, 2048, 1408, chosen=48)),
        Bench("64 tokens, 64 experts, 6 each", **decoded(64, 64, 6, 2048, 1408, chosen=64)),
    ],
    torch_baseline=torch_layer,
)
