"""The exercises of day 3: embedding lookup, rotary positions, the SwiGLU gate."""

import torch

from grader.course.task import Bar, Bench, Case, Exercise, Input, Output, between, constant, integers, normal, uniform

# ---------------------------------------------------------------------------------------------------------------------
# embedding


def gather_rows(table: torch.Tensor, ids: torch.Tensor, first_row: int) -> torch.Tensor:
    """Return ``table[ids]``, with zeros for ids outside the table. The row of id ``first_row`` is ``table[0]``."""
    ids = torch.where(ids >= 0, ids - first_row, ids)
    known = (ids >= 0) & (ids < table.shape[0])
    rows = table[ids.clamp(0, max(table.shape[0] - 1, 0))]
    return torch.where(known[:, None], rows, torch.zeros_like(rows))


def some_bad_ids(shape, dims, generator):
    """Return ids; every third is outside the table: -1, the vocabulary size or one more, 2^32, or an int64 limit."""
    ids = torch.randint(0, dims["vocabulary"], shape, generator=generator)
    bad = torch.tensor([-1, dims["vocabulary"], dims["vocabulary"] + 1, -(2**63), 2**63 - 1, 2**32])
    ids[::3] = bad[torch.arange(len(ids[::3])) % len(bad)]
    return ids


def distinct_rows(ids, tokens, vocabulary, hidden, item):
    """Return the total bytes of the distinct requested rows, the ids and the output."""
    asked = ids[(ids >= 0) & (ids < vocabulary)].unique().numel()
    return (asked + tokens) * hidden * item + 8 * tokens


embedding = Exercise(
    operator="embedding",
    summary="""Copy row ids[t] of table [vocabulary, hidden] to row t of out [tokens, hidden]. Never use an id outside
    0 .. vocabulary - 1 as an address: its row of out is zeros. The table may have more than 2^31 elements. With no
    tokens there is nothing to do.""",
    launchers="""void embedding_{dtype}(const {T}* table, const long long* ids, {T}* out,
                                        long long tokens, long long vocabulary, int hidden, cudaStream_t stream)""",
    dtypes=("f32", "f16", "bf16"),
    inputs={
        "table": Input("(vocabulary - first_row) hidden", normal(channel_offset=1.0)),
        "ids": Input("tokens", integers(0, "vocabulary"), dtype="i64"),
    },
    outputs={"out": Output("tokens hidden")},
    scalars={"first_row": lambda d: d.get("first_row", 0)},  # for the largest table, only its last rows are allocated
    reference=gather_rows,
    tolerance={"f32": 1e-7, "f16": 1e-7, "bf16": 1e-7},
    cases=[
        Case("one token", tokens=1, vocabulary=1, hidden=1),
        Case("hidden is not a multiple of 16 bytes", tokens=7, vocabulary=13, hidden=129),
        Case("hidden of 3", tokens=129, vocabulary=5, hidden=3),
        Case("two tokens, hidden of 127", tokens=2, vocabulary=2, hidden=127),
        Case("one vector per thread of a warp", tokens=3, vocabulary=3, hidden=128),
        Case("whole vectors", tokens=31, vocabulary=50, hidden=256),
        Case("more tokens than a block may have threads", tokens=1025, vocabulary=50, hidden=4),
        Case("ids outside the table", tokens=40, vocabulary=11, hidden=48, inputs={"ids": some_bad_ids}),
        Case("all tokens have the same id", tokens=20, vocabulary=9, hidden=64, inputs={"ids": constant(8)}),
        Case("table not aligned to 16 bytes", tokens=9, vocabulary=17, hidden=72, offsets={"table": 1}),
        Case("out not aligned to 16 bytes", tokens=9, vocabulary=17, hidden=72, offsets={"out": 1}),
        Case(
            "rows that start beyond element 2^32",
            tokens=5,
            vocabulary=(1 << 27) + 3,
            first_row=1 << 27,
            hidden=264,
            inputs={"ids": integers("first_row", "vocabulary")},
            before={"table": "first_row * hidden"},
        ),
        Case("no tokens", tokens=0, vocabulary=4, hidden=8),
        Case("random sizes", tokens=between(1, 90), vocabulary=between(2, 300), hidden=between(1, 200)),
    ],
    efficient=Case("a prompt of 16 tokens", dtypes=("f16",), tokens=16, vocabulary=32, hidden=4096),
    # The kernel reads the requested rows, not the whole table. A row that is requested twice may come from a cache.
    minimum_bytes=lambda d: d["tokens"] * (2 * d["hidden"] * d["item"] + 8),
    distinct_bytes=distinct_rows,
    bars=[
        Bar(
            "sectors / ideal",
            at_most=1.05,
            look="Let neighboring threads copy neighboring 16-byte pieces of a row.",
        ),
        Bar(
            "requests / (global_bytes / 512)",
            at_most=1.6,
            look="Copy 16 bytes per thread and access, not one element.",
            naive="one thread copies a whole row",
        ),
        Bar("launches", at_most=1),
        Bar("scratch_bytes", at_most=0),
    ],
    flops=lambda d: 0.0,
    bench=[
        Bench("small", tokens=128, vocabulary=32000, hidden=1024),
        Bench("large", tokens=16384, vocabulary=151936, hidden=4096),
    ],
    torch_baseline=lambda table, ids: torch.nn.functional.embedding(ids, table),
)

# ---------------------------------------------------------------------------------------------------------------------
# rope


def rotate_half(x: torch.Tensor, positions: torch.Tensor, rotary_dim: int, theta: float) -> torch.Tensor:
    """Return x rotated as in Qwen2 and GPT-NeoX (Su et al. 2021, section 3.4.2), with angles in float64."""
    half = rotary_dim // 2
    frequency = theta ** (-torch.arange(half, dtype=torch.float64) * 2 / rotary_dim)
    angle = positions.double()[:, None] * frequency  # [tokens, half]
    cos, sin = angle.cos()[:, None, :], angle.sin()[:, None, :]  # the same for each head
    first, second, rest = x[..., :half], x[..., half:rotary_dim], x[..., rotary_dim:]
    return torch.cat([first * cos - second * sin, second * cos + first * sin, rest], dim=-1)


def rope_in_torch(x: torch.Tensor, positions: torch.Tensor, rotary_dim: int, theta: float) -> torch.Tensor:
    """Return x rotated with plain torch operations, with angles in float32 as models compute them."""
    half = rotary_dim // 2
    frequency = theta ** (-torch.arange(half, dtype=torch.float32, device=x.device) * 2 / rotary_dim)
    angle = positions[:, None].float() * frequency
    cos, sin = angle.cos()[:, None, :].to(x.dtype), angle.sin()[:, None, :].to(x.dtype)
    first, second, rest = x[..., :half], x[..., half:rotary_dim], x[..., rotary_dim:]
    return torch.cat([first * cos - second * sin, second * cos + first * sin, rest], dim=-1)


def far_positions(shape):
    """Return positions 131072, 131071 and so on, one per token."""
    return 131072 - torch.arange(shape[0])


rope = Exercise(
    operator="RoPE",
    summary="""Rotate the first rotary_dim channels of each head of x [tokens, heads, head_dim] by the angle
    positions[t] * theta^(-2 i / rotary_dim). Channel i is paired with channel i + rotary_dim / 2 (rotate-half). Copy
    the other channels. rotary_dim is even, at most head_dim, and may be 0. Angles must be right to 1e-6 at position
    131072, where an angle computed in float32 is off by thousandths of a radian. With no tokens there is nothing to
    do.""",
    launchers="""void rope_{dtype}(const {T}* x, const int* positions, {T}* out, int tokens, int heads, int head_dim,
                                   int rotary_dim, float theta, cudaStream_t stream)""",
    dtypes=("f32", "f16", "bf16"),
    inputs={
        "x": Input("tokens heads head_dim", normal(channel_offset=1.0)),
        "positions": Input("tokens", integers(0, 4096), dtype="i32"),
    },
    outputs={"out": Output("tokens heads head_dim")},
    reference=rotate_half,
    tolerance={"f32": 2e-6},
    trivial=[lambda x: x],
    cases=[
        Case("one token, one head", tokens=1, heads=1, head_dim=2, rotary_dim=2, theta=10000.0),
        Case("Qwen2: all channels are rotated", tokens=5, heads=7, head_dim=128, rotary_dim=128, theta=1000000.0),
        Case(
            "GPT-NeoX: a quarter of the channels is rotated",
            tokens=6,
            heads=5,
            head_dim=80,
            rotary_dim=20,
            theta=10000.0,
        ),
        Case(
            "position 131072",
            tokens=3,
            heads=2,
            head_dim=64,
            rotary_dim=64,
            theta=10000.0,
            inputs={"positions": far_positions},
        ),
        Case(
            "position 131072, base 1000000",
            tokens=3,
            heads=2,
            head_dim=128,
            rotary_dim=128,
            theta=1000000.0,
            inputs={"positions": far_positions},
        ),
        Case(
            "position 0 changes nothing",
            tokens=4,
            heads=3,
            head_dim=32,
            rotary_dim=32,
            theta=10000.0,
            inputs={"positions": constant(0)},
        ),
        Case("odd number of pairs", tokens=3, heads=3, head_dim=14, rotary_dim=6, theta=500.0),
        Case("rotary_dim is 0", tokens=2, heads=2, head_dim=16, rotary_dim=0, theta=10000.0),
        Case("127 tokens", tokens=127, heads=1, head_dim=4, rotary_dim=2, theta=10000.0),
        Case("long heads", tokens=3, heads=2, head_dim=304, rotary_dim=288, theta=10000.0),
        Case("129 heads", tokens=1, heads=129, head_dim=6, rotary_dim=6, theta=10000.0),
        Case("more heads than threads", tokens=2, heads=130, head_dim=16, rotary_dim=16, theta=10000.0),
        Case("no tokens", tokens=0, heads=2, head_dim=16, rotary_dim=16, theta=10000.0),
        Case("random sizes", tokens=between(1, 20), heads=between(1, 9), head_dim=64, rotary_dim=64, theta=10000.0),
    ],
    efficient=Case(
        "eight tokens of 32 heads", dtypes=("f16",), tokens=8, heads=32, head_dim=128, rotary_dim=128, theta=10000.0
    ),
    bars=[
        Bar("global_bytes / minimum", at_most=1.05, look="Read x once: let one thread rotate both channels of a pair."),
        Bar("sectors / ideal", at_most=1.05),
        Bar(
            "special_functions / (tokens * rotary_dim / 2)",
            at_most=12,
            look="A pair has the same angle in every head: compute sine and cosine once per token, not per head.",
            naive="each head computes the angles again",
        ),
        Bar("launches", at_most=1),
        Bar("scratch_bytes", at_most=0),
    ],
    flops=lambda d: 3.0 * d["tokens"] * d["heads"] * d["rotary_dim"],
    bench=[
        Bench("small", tokens=512, heads=8, head_dim=128, rotary_dim=128, theta=10000.0),
        Bench("large", tokens=2048, heads=32, head_dim=128, rotary_dim=128, theta=10000.0),
        Bench("512 x 4 x 4096", tokens=512, heads=4, head_dim=4096, rotary_dim=4096, theta=10000.0),
    ],
    torch_baseline=rope_in_torch,
)

# ---------------------------------------------------------------------------------------------------------------------
# swiglu

swiglu = Exercise(
    operator="SwiGLU",
    summary="""out[i] = silu(gate[i]) * up[i], with silu(x) = x / (1 + exp(-x)), for n elements (Shazeer 2020, section
    2). Compute in float32 and round once. Large gates of either sign must not give NaN: silu goes to 0 on the left and
    to x on the right. Any alignment, any n; n may exceed 2^31, but no test is that large. With n = 0 there is nothing to
    do.""",
    launchers="""void swiglu_{dtype}(const {T}* gate, const {T}* up, {T}* out, long long n, cudaStream_t stream)""",
    dtypes=("f32", "f16", "bf16"),
    inputs={"gate": Input("n", normal(scale=2.0, mean=0.5)), "up": Input("n", normal(mean=1.0))},
    outputs={"out": Output("n")},
    reference=lambda gate, up: gate * torch.sigmoid(gate) * up,
    tolerance={"f32": 2e-6},
    trivial=[lambda gate, up: gate * up, lambda gate, up: torch.relu(gate) * up],
    cases=[
        Case("one element", n=1),
        Case("two elements", n=2),
        Case("three elements", n=3),
        Case("127 elements", n=127),
        Case("128 elements", n=128),
        Case("129 elements", n=129),
        Case("257 elements, one more than a block", n=257),
        Case("a prime", n=4099),
        # 1,025 blocks, even if each of 256 threads computes four elements: more than a block may have threads
        Case("a million elements", n=4 * 256 * 1024 + 1, dtypes=("f32",)),
        Case("very negative and very large gates", n=1000, inputs={"gate": uniform(-30000.0, 30000.0)}),
        Case("gates around zero", n=515, inputs={"gate": normal(scale=0.01)}),
        Case("gate not aligned to 16 bytes", n=1029, offsets={"gate": 1}),
        Case("out not aligned to 16 bytes", n=1029, offsets={"out": 3}),
        Case("nothing", n=0),
        Case("random size", n=between(1, 20000)),
    ],
    efficient=Case("a row of 32768", dtypes=("f16",), n=32768),
    bars=[
        Bar("global_bytes / minimum", at_most=1.01),
        Bar(
            "requests / (global_bytes / 512)",
            at_most=1.05,
            look="Move 16 bytes per thread and access: eight f16 elements at once.",
            naive="one element per access",
        ),
        Bar("launches", at_most=1),
        Bar("scratch_bytes", at_most=0),
    ],
    flops=lambda d: 5.0 * d["n"],
    bench=[Bench("small", n=128 * 4864), Bench("large", n=16384 * 4096)],
    torch_baseline=lambda gate, up: torch.nn.functional.silu(gate) * up,
)
