"""The exercises of day 2."""

import torch

from grader.course.task import Bar, Bench, Case, Exercise, Input, Output, between, integers, normal

DTYPES = ("f32", "f16", "bf16")
COALESCED = Bar("sectors / ideal", at_most=1.02, look="Let neighboring threads access neighboring addresses.")
ONE_LAUNCH = Bar("launches", at_most=1, look="One block can process a whole row: no second kernel is needed.")
NO_SCRATCH = Bar(
    "scratch_bytes", at_most=0, look="Exchange values between threads through shared memory, not global memory."
)


# ---------------------------------------------------------------------------------------------------------- softmax


def softmax_reference(x):
    """Return the softmax, computed in float64, in which the exercise's inputs do not overflow."""
    return torch.softmax(x, dim=-1)


def masked_scores(shape, generator):
    """Return scores with masked places, as in causal attention: -infinity, including the first column."""
    scores = torch.randn(shape, generator=generator) * 2
    hidden = torch.rand(shape, generator=generator) < 0.6
    hidden[:, 0] = True
    hidden[:, -1] = False
    return scores.masked_fill(hidden, float("-inf"))


def rising(shape, generator):
    """Return scores that mostly increase, so that a running maximum changes often."""
    return torch.randn(shape, generator=generator) * 0.1 + torch.linspace(-40, 40, shape[-1])


softmax = Exercise(
    operator="softmax",
    summary=(
        "Softmax of each row: out = exp(x - max) / sum(exp(x - max)), for f32, f16 and bf16, computed in float. "
        "Any number of rows and columns (rows * cols may be more than 2^31, but no test is that large), any "
        "alignment. With no rows or no columns write nothing. A row may contain -infinity, but not everywhere. Read "
        "a row of up to 4,096 elements only once."
    ),
    launchers="void softmax_{dtype}(const {T}* x, {T}* out, int rows, int cols, cudaStream_t stream)",
    dtypes=DTYPES,
    inputs={"x": Input("rows cols", normal(scale=3.0, channel_offset=1.0))},
    outputs={"out": Output("rows cols")},
    reference=softmax_reference,
    cases=[
        Case("no row", rows=0, cols=7),
        Case("no column", rows=3, cols=0),
        Case("one element", rows=1, cols=1),
        Case("two columns", rows=3, cols=2),
        Case("three columns", rows=5, cols=3),
        Case("127 columns", rows=2, cols=127),
        Case("128 columns", rows=2, cols=128),
        Case("129 columns", rows=2, cols=129),
        Case("many short rows", rows=300, cols=17),
        Case("a hidden size", rows=2, cols=4096),
        Case("a prime width", rows=2, cols=5003),
        Case("a row too wide for the registers of a block", rows=1, cols=40000),
        Case("x is not 16-byte aligned", rows=3, cols=1000, offsets={"x": 1}),
        Case("large scores do not overflow", rows=3, cols=777, inputs={"x": normal(scale=50.0)}),
        Case("all scores far below zero", rows=3, cols=300, inputs={"x": normal(mean=-400.0, scale=4.0)}),
        Case("scores that rise along the row", rows=2, cols=1500, inputs={"x": rising}),
        Case("masked scores", rows=4, cols=600, inputs={"x": masked_scores}),
        Case("random sizes", rows=between(1, 6), cols=between(2, 3000)),
    ],
    efficient=Case("counted", rows=8, cols=4096),
    bars=[
        Bar(
            "global_bytes / minimum",
            at_most=1.05,
            look="Read the row once: do not read it again for the sum, or for the output.",
            naive="the row is read from global memory again before it is written",
        ),
        COALESCED,
        Bar(
            "bank_conflict_ways",
            at_most=2.0,
            look="One state per warp in shared memory: there should be no bank conflicts.",
        ),
        ONE_LAUNCH,
        NO_SCRATCH,
    ],
    flops=lambda d: 5 * d["rows"] * d["cols"],
    bench=[Bench("small", rows=64, cols=1024), Bench("large", rows=16384, cols=4096)],
    torch_baseline=lambda x: torch.softmax(x, dim=-1),
)


# ---------------------------------------------------------------------------------------------------------- norms


def rms_norm_reference(x, weight, eps):
    """Return the RMSNorm by its definition: no mean is subtracted."""
    return x * torch.rsqrt(x.square().mean(dim=-1, keepdim=True) + eps) * weight


rms_norm = Exercise(
    operator="RMSNorm",
    summary=(
        "RMSNorm of each row: out = x / sqrt(mean(x^2) + eps) * weight, weight of cols elements, for f32, f16 and "
        "bf16. Sum in float: the square of 300 already overflows f16. Any number of rows and columns (rows * cols may "
        "be more than 2^31, but no test is that large), any alignment. With no rows or no columns write nothing. Read "
        "a row of up to 4,096 elements only once."
    ),
    launchers=(
        "void rms_norm_{dtype}(const {T}* x, const {T}* weight, {T}* out, int rows, int cols, float eps, "
        "cudaStream_t stream)"
    ),
    dtypes=DTYPES,
    inputs={
        "x": Input("rows cols", normal(scale=2.0, channel_offset=1.0)),
        "weight": Input("cols", normal(mean=1.0, scale=0.3)),
    },
    outputs={"out": Output("rows cols")},
    reference=rms_norm_reference,
    cases=[
        Case("no row", rows=0, cols=7, eps=1e-5),
        Case("no column", rows=3, cols=0, eps=1e-5),
        Case("one element", rows=1, cols=1, eps=1e-5),
        Case("two columns", rows=3, cols=2, eps=1e-5),
        Case("three columns", rows=5, cols=3, eps=1e-5),
        Case("127 columns", rows=2, cols=127, eps=1e-5),
        Case("128 columns", rows=2, cols=128, eps=1e-5),
        Case("129 columns", rows=2, cols=129, eps=1e-5),
        Case("many short rows", rows=300, cols=17, eps=1e-5),
        Case("a hidden size", rows=2, cols=4096, eps=1e-6),
        Case("a prime width", rows=2, cols=5003, eps=1e-5),
        Case("a row too wide for the registers of a block", rows=1, cols=40000, eps=1e-5),
        Case("weight is not 16-byte aligned", rows=3, cols=1000, eps=1e-5, offsets={"weight": 1}),
        Case("squares that overflow f16", rows=2, cols=640, eps=1e-5, inputs={"x": normal(scale=400.0, mean=200.0)}),
        Case("x so small that eps dominates", rows=3, cols=256, eps=1e-5, inputs={"x": normal(scale=2e-3)}),
        Case("a large mean is not subtracted", rows=3, cols=512, eps=1e-5, inputs={"x": normal(mean=20.0)}),
        Case("random sizes", rows=between(1, 6), cols=between(2, 3000), eps=1e-5),
    ],
    efficient=Case("counted", rows=8, cols=4096, eps=1e-5),
    bars=[
        # Each row transfers its x, all of weight and its out: 3 rows of bytes. minimum_bytes has only 2 of them per row,
        # because weight is counted once for all rows.
        Bar(
            "global_bytes / minimum",
            at_most=1.55,
            look="Read x once: do not read it again to compute the output.",
            naive="x is read a second time",
        ),
        COALESCED,
        Bar(
            "bank_conflict_ways",
            at_most=2.0,
            look="One sum per warp in shared memory: there should be no bank conflicts.",
        ),
        ONE_LAUNCH,
        NO_SCRATCH,
    ],
    flops=lambda d: 4 * d["rows"] * d["cols"],
    bench=[Bench("small", rows=64, cols=1024, eps=1e-5), Bench("large", rows=16384, cols=4096, eps=1e-5)],
    torch_baseline=lambda x, weight, eps: torch.nn.functional.rms_norm(x, (x.shape[-1],), weight, eps),
)


def layer_norm_reference(x, weight, bias, eps):
    """Return the LayerNorm: first the mean, then the variance around it, in float64."""
    deviation = x - x.mean(dim=-1, keepdim=True)
    return deviation * torch.rsqrt(deviation.square().mean(dim=-1, keepdim=True) + eps) * weight + bias


layer_norm = Exercise(
    operator="LayerNorm",
    summary=(
        "LayerNorm of each row: out = (x - mean) / sqrt(variance + eps) * weight + bias, where the variance divides "
        "by cols, for f32, f16 and bf16. It must be right when the mean is 300 times the standard "
        "deviation; mean(x^2) - mean(x)^2 is not right there. Any number of rows and columns (rows * cols may be more "
        "than 2^31, but no test is that large), any alignment. With no rows or no columns write nothing. Read a row "
        "of up to 4,096 elements only once."
    ),
    launchers=(
        "void layer_norm_{dtype}(const {T}* x, const {T}* weight, const {T}* bias, {T}* out, int rows, int cols, "
        "float eps, cudaStream_t stream)"
    ),
    dtypes=DTYPES,
    inputs={
        "x": Input("rows cols", normal(scale=2.0, channel_offset=1.0)),
        "weight": Input("cols", normal(mean=1.0, scale=0.3)),
        "bias": Input("cols", normal(mean=0.5)),
    },
    outputs={"out": Output("rows cols")},
    reference=layer_norm_reference,
    tolerance={"f32": 1e-4},
    cases=[
        Case("no row", rows=0, cols=7, eps=1e-5),
        Case("no column", rows=3, cols=0, eps=1e-5),
        Case("one element", rows=1, cols=1, eps=1e-5),
        Case("two columns", rows=3, cols=2, eps=1e-5),
        Case("three columns", rows=5, cols=3, eps=1e-5),
        Case("127 columns", rows=2, cols=127, eps=1e-5),
        Case("128 columns", rows=2, cols=128, eps=1e-5),
        Case("129 columns", rows=2, cols=129, eps=1e-5),
        Case("many short rows", rows=300, cols=17, eps=1e-5),
        Case("a hidden size", rows=2, cols=4096, eps=1e-6),
        Case("a prime width", rows=2, cols=5003, eps=1e-5),
        Case("a row too wide for the registers of a block", rows=1, cols=40000, eps=1e-5),
        Case("bias is not 16-byte aligned", rows=3, cols=1000, eps=1e-5, offsets={"bias": 1}),
        Case("a large mean", rows=3, cols=2048, eps=1e-5, inputs={"x": normal(mean=300.0)}),
        Case("a large mean, odd width", rows=3, cols=1201, eps=1e-5, inputs={"x": normal(mean=-300.0)}),
        Case("squares that overflow f16", rows=2, cols=640, eps=1e-5, inputs={"x": normal(scale=400.0)}),
        Case("x so small that eps dominates", rows=3, cols=256, eps=1e-5, inputs={"x": normal(scale=2e-3)}),
        Case("random sizes", rows=between(1, 6), cols=between(2, 3000), eps=1e-5),
    ],
    efficient=Case("counted", rows=8, cols=4096, eps=1e-5),
    bars=[
        # Each row transfers its x, all of weight and bias, and its out: 4 rows of bytes. minimum_bytes has only 2 of
        # them per row, because weight and bias are counted once for all rows.
        Bar(
            "global_bytes / minimum",
            at_most=2.05,
            look="Read x once: do not read it again to compute the output.",
            naive="x is read a second time",
        ),
        COALESCED,
        Bar(
            "bank_conflict_ways",
            at_most=2.0,
            look="One state per warp in shared memory: there should be no bank conflicts.",
        ),
        ONE_LAUNCH,
        NO_SCRATCH,
    ],
    flops=lambda d: 8 * d["rows"] * d["cols"],
    bench=[Bench("small", rows=64, cols=1024, eps=1e-5), Bench("large", rows=16384, cols=4096, eps=1e-5)],
    torch_baseline=lambda x, weight, bias, eps: torch.nn.functional.layer_norm(x, (x.shape[-1],), weight, bias, eps),
)


# ---------------------------------------------------------------------------------------------------------- argmax


def argmax_reference(x):
    """Return the column of the first NaN, or of the first maximum if there is no NaN."""
    return torch.argmax(x, dim=-1)


def with_nans(shape, generator):
    """Return rows with a few NaN each, never in column 0."""
    values = torch.randn(shape, generator=generator)
    holes = torch.rand(shape, generator=generator) < 0.01
    holes[:, -1] = True
    holes[:, 0] = False
    return values.masked_fill(holes, float("nan"))


def infinities(shape, generator):
    """Return rows of -infinity: one has nothing else, the others also have one finite number or +infinity."""
    values = torch.full(shape, float("-inf"))
    for row in range(1, shape[0]):
        col = int(torch.randint(1, shape[1], (1,), generator=generator))
        values[row, col] = -1000.0 if row % 2 else float("inf")
    return values


def signed_zeros(shape, generator):
    """Return rows whose maximum is zero; -0 comes before +0, and both are equal."""
    values = -torch.rand(shape, generator=generator) - 0.5
    values[:, shape[1] // 3] = -0.0
    values[:, shape[1] // 2] = 0.0
    return values


argmax = Exercise(
    operator="argmax",
    summary=(
        "The column of the largest element of each row, as in torch.argmax: the lowest column among equal "
        "elements, and the first NaN if there is one. f32, f16 and bf16 in, int out. Any number of rows and columns "
        "(rows * cols may be more than 2^31, but no test is that large), any alignment. With no rows write nothing; "
        "cols is at least 1."
    ),
    launchers="void argmax_{dtype}(const {T}* x, int* out, int rows, int cols, cudaStream_t stream)",
    dtypes=DTYPES,
    inputs={"x": Input("rows cols", normal(scale=3.0))},
    outputs={"out": Output("rows", dtype="i32")},
    reference=argmax_reference,
    cases=[
        Case("no row", rows=0, cols=7),
        Case("one element", rows=1, cols=1),
        Case("two columns", rows=9, cols=2),
        Case("three columns", rows=9, cols=3),
        Case("127 columns", rows=3, cols=127),
        Case("128 columns", rows=3, cols=128),
        Case("129 columns", rows=3, cols=129),
        Case("many short rows", rows=300, cols=17),
        Case("a hidden size", rows=3, cols=4096),
        Case("a prime width", rows=3, cols=5003),
        Case("a vocabulary, the largest near its end", rows=2, cols=40000, inputs={"x": rising}),
        Case("x is not 16-byte aligned", rows=3, cols=1000, offsets={"x": 1}),
        Case("all below zero", rows=5, cols=1003, inputs={"x": normal(mean=-100.0)}),
        Case("ties", rows=9, cols=2000, inputs={"x": integers(0, 4)}),
        Case(
            "ties far apart",
            rows=9,
            cols=4100,
            inputs={"x": lambda shape, generator: torch.randint(0, 1500, shape, generator=generator) // 1498},
        ),
        Case("NaN", rows=7, cols=1500, inputs={"x": with_nans}),
        Case("rows of -infinity", rows=6, cols=700, inputs={"x": infinities}),
        Case("minus zero equals zero", rows=3, cols=400, inputs={"x": signed_zeros}),
        Case("random sizes", rows=between(2, 6), cols=between(2, 3000)),
    ],
    efficient=Case("counted", rows=8, cols=4096),
    bars=[
        Bar(
            "global_bytes / minimum",
            at_most=1.02,
            look="Read each row once.",
            naive="one pass for the maximum, one for its column",
        ),
        COALESCED,
        Bar(
            "bank_conflict_ways",
            at_most=2.0,
            look="One candidate per warp in shared memory: there should be no bank conflicts.",
        ),
        ONE_LAUNCH,
        NO_SCRATCH,
    ],
    flops=lambda d: d["rows"] * d["cols"],
    bench=[
        Bench("small", rows=64, cols=1024),
        Bench("large", rows=16384, cols=4096),
        Bench("1 x 151936", rows=1, cols=151936),
    ],
    torch_baseline=lambda x: torch.argmax(x, dim=-1),
)


# ------------------------------------------------------------------------------ argmax over several blocks


def rare_ties(shape, generator):
    """Return zeros with a few ones, so far apart that different blocks find them."""
    return torch.randint(0, 900, shape, generator=generator) // 899


vocabulary_argmax = Exercise(
    summary=(
        "Argmax of a few rows as wide as a vocabulary, for greedy decoding: the column of the largest element, "
        "the lowest among equal elements, and the first NaN if there is one. One block cannot keep a GPU busy, so "
        "`splits` blocks (at least 1) share each row and combine in the workspace `partial` [rows, splits], which is "
        "uninitialized. f32, f16 and bf16 in, int out, any alignment, the same answer in every run. With no rows write "
        "nothing; cols is at least 1. Timings on a GPU use 1 x 151,936."
    ),
    launchers=(
        "void vocabulary_argmax_{dtype}(const {T}* x, int* out, unsigned long long* partial, int rows, int cols, "
        "int splits, cudaStream_t stream)"
    ),
    dtypes=DTYPES,
    inputs={"x": Input("rows cols", normal(scale=3.0))},
    outputs={"out": Output("rows", dtype="i32"), "partial": Output("rows splits", dtype="u64", scratch=True)},
    reference=argmax_reference,
    cases=[
        Case("no row", rows=0, cols=7, splits=2),
        Case("one element", rows=1, cols=1, splits=1),
        Case("one part", rows=3, cols=1000, splits=1),
        Case("two parts with one column each", rows=9, cols=2, splits=2),
        Case("more parts than columns", rows=9, cols=3, splits=40),
        Case("a prime width in seven parts", rows=3, cols=5003, splits=7),
        Case("one column more than eight equal parts", rows=2, cols=4097, splits=8),
        Case("the largest near the end", dtypes=("f32",), rows=2, cols=20000, splits=16, inputs={"x": rising}),
        Case("x is not 16-byte aligned", rows=3, cols=1000, splits=3, offsets={"x": 1}),
        Case("all below zero", rows=5, cols=1003, splits=4, inputs={"x": normal(mean=-100.0)}),
        Case("ties", rows=7, cols=2000, splits=5, inputs={"x": integers(0, 4)}),
        Case("ties in different parts", rows=9, cols=4100, splits=16, inputs={"x": rare_ties}),
        Case("NaN", rows=7, cols=1500, splits=6, inputs={"x": with_nans}),
        Case("rows of -infinity", rows=6, cols=700, splits=5, inputs={"x": infinities}),
        Case("minus zero equals zero", rows=3, cols=400, splits=4, inputs={"x": signed_zeros}),
        Case("random sizes", rows=between(2, 6), cols=between(2, 3000), splits=between(1, 20)),
    ],
    efficient=Case("a row of 32,768, 32 parts", dtypes=("f16",), rows=1, cols=32768, splits=32),
    bars=[
        Bar("global_bytes / minimum", at_most=1.1, look="Read each row once."),
        Bar(
            "blocks",
            at_least=32,
            look="One block occupies one of 132 SMs: let `splits` blocks share each row.",
            naive="one block for each row",
        ),
        Bar("sectors / ideal", at_most=1.1, look="Let neighboring threads access neighboring addresses."),
        Bar(
            "launches",
            at_most=3,
            look="Use two kernels: one finds the best of each part, the other combines the parts.",
        ),
        Bar("scratch_bytes", at_most=0, look="Use the workspace `partial` and allocate nothing."),
    ],
    flops=lambda d: d["rows"] * d["cols"],
    bench=[
        Bench("1 x 151936", rows=1, cols=151936, splits=128),
        Bench("16 x 151936", rows=16, cols=151936, splits=32),
    ],
    torch_baseline=lambda x: torch.argmax(x, dim=-1),
)


# ---------------------------------------------------------------------------------------------------------- debug


def row_sums(x):
    """Return the sum of each row."""
    return x.sum(dim=-1)


row_sum_debug = Exercise(
    summary=(
        "The sum of each row. With no columns each sum is 0; with no rows write nothing. A block sums four rows, one "
        "after another. The given kernel has one fault. Find it from the report, and correct it without a second array "
        "or a second launch."
    ),
    launchers="void row_sum_debug(const float* x, float* out, int rows, int cols, cudaStream_t stream)",
    dtypes=("f32",),
    inputs={"x": Input("rows cols", normal(mean=0.5))},
    outputs={"out": Output("rows")},
    reference=row_sums,
    cases=[
        Case("no row", rows=0, cols=7),
        Case("no column", rows=3, cols=0),
        Case("one element", rows=1, cols=1),
        Case("one row", rows=1, cols=1000),
        Case("two rows of two", rows=2, cols=2),
        Case("three rows", rows=3, cols=127),
        Case("as many rows as a block sums", rows=4, cols=128),
        Case("one row more than a block sums", rows=5, cols=129),
        Case("a prime number of rows", rows=37, cols=600),
        Case("wide rows", rows=9, cols=5003),
        Case("random sizes", rows=between(2, 20), cols=between(2, 2000)),
    ],
    efficient=Case("counted", rows=16, cols=1024),
    bars=[
        Bar("global_bytes / minimum", at_most=1.02, look="Read each element once."),
        COALESCED,
        ONE_LAUNCH,
        NO_SCRATCH,
    ],
    flops=lambda d: d["rows"] * d["cols"],
    bench=[Bench("small", rows=64, cols=1024), Bench("large", rows=16384, cols=4096)],
    torch_baseline=lambda x: x.sum(dim=-1),
)
