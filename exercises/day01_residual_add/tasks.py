"""The exercises of day 1."""

from grader.course.task import Bar, Bench, Case, Exercise, Input, Output, between, normal, one_of

WIDE = Bar(
    "global_bytes / requests",
    at_least=250,
    look="Give each thread one 16-byte access: a request of a warp then moves 512 bytes.",
    naive="one element per access",
)


def sum_of_two(x, residual):
    """Add the output of one branch of a layer to its input, the residual connection."""
    return x + residual


residual_add = Exercise(
    operator="add",
    summary=(
        "Add two tensors of n elements: out = x + residual, for f32, f16 and bf16. Add in float and round once. n "
        "may be 0 (write nothing and launch nothing) or more than 2^31, but no test is that large. Each of "
        "the three tensors may start at any element, so addresses are not always multiples of 16. Where they are, "
        "move 16 bytes per access."
    ),
    launchers=(
        "void residual_add_{dtype}(const {T}* x, const {T}* residual, {T}* out, long long n, cudaStream_t stream)"
    ),
    dtypes=("f32", "f16", "bf16"),
    inputs={"x": Input("n", normal(scale=2.0)), "residual": Input("n", normal(mean=0.5))},
    outputs={"out": Output("n")},
    reference=sum_of_two,
    cases=[
        Case("no element", n=0),
        Case("one element", n=1),
        Case("two elements", n=2),
        Case("three elements", n=3),
        Case("127 elements", n=127),
        Case("128 elements", n=128),
        Case("129 elements", n=129),
        Case("257 elements, one more than a block", n=257),
        Case("a prime length", n=10007),
        # 1,025 blocks, even if each of 256 threads adds four elements: more than a block may have threads
        Case("a million elements", n=4 * 256 * 1024 + 1, dtypes=("f32",)),
        Case("all start one element past a 16-byte boundary", n=1000, offsets={"x": 1, "residual": 1, "out": 1}),
        Case("all start three elements past a 16-byte boundary", n=1029, offsets={"x": 3, "residual": 3, "out": 3}),
        Case("shorter than the distance to the next 16-byte boundary", n=2, offsets={"x": 1, "residual": 1, "out": 1}),
        Case("only x is not 16-byte aligned", n=1000, offsets={"x": 1}),
        Case("out has another alignment than the inputs", n=515, offsets={"x": 1, "residual": 1, "out": 2}),
        Case("a random length", n=between(2, 5000)),
    ],
    efficient=Case("counted", n=1 << 16),
    bars=[
        Bar("global_bytes / minimum", at_most=1.02, look="Read and write each element once."),
        Bar(
            "sectors / ideal",
            at_most=1.02,
            look="Let neighboring threads access neighboring addresses.",
            naive="each thread reads consecutive vectors, so accesses are not coalesced",
        ),
        WIDE,
        Bar("launches", at_most=1, look="One kernel is enough."),
        Bar("scratch_bytes", at_most=0, look="The kernel needs no extra memory."),
    ],
    flops=lambda d: d["n"],
    bench=[Bench("small", n=4096), Bench("large", n=16384 * 4096)],
    torch_baseline=lambda x, residual: x + residual,
)


def sum_of_three(x, attention, mlp):
    """Add the outputs of two parallel branches of a layer to its input."""
    return x + attention + mlp


parallel_residual = Exercise(
    summary=(
        "GPT-NeoX runs attention and the MLP on the same input and adds both: out = x + attention + mlp, n elements "
        "each, f32, f16 and bf16. Use one launch that reads each input once and rounds once. Any n (0 writes "
        "nothing), any alignment."
    ),
    launchers=(
        "void parallel_residual_{dtype}(const {T}* x, const {T}* attention, const {T}* mlp, {T}* out, long long n, "
        "cudaStream_t stream)"
    ),
    dtypes=("f32", "f16", "bf16"),
    inputs={
        "x": Input("n", normal(scale=2.0)),
        "attention": Input("n", normal(mean=0.5)),
        "mlp": Input("n", normal(mean=-0.25, scale=1.5)),
    },
    outputs={"out": Output("n")},
    reference=sum_of_three,
    cases=[
        Case("no element", n=0),
        Case("one element", n=1),
        Case("two elements", n=2),
        Case("three elements", n=3),
        Case("127 elements", n=127),
        Case("128 elements", n=128),
        Case("129 elements", n=129),
        Case("a prime length", n=10007),
        Case("a million elements", n=4 * 256 * 1024 + 1, dtypes=("f32",)),  # 1,025 blocks, as in residual_add
        Case(
            "all start one element past a 16-byte boundary",
            n=1000,
            offsets={"x": 1, "attention": 1, "mlp": 1, "out": 1},
        ),
        Case("only mlp is not 16-byte aligned", n=1000, offsets={"mlp": 1}),
        Case(
            "both branches cancel",
            n=1031,
            inputs={"attention": normal(mean=3000.0), "mlp": normal(mean=-3000.0)},
            dtypes=("f16",),
        ),
        Case("a random length", n=between(2, 5000)),
    ],
    efficient=Case("counted", n=1 << 16),
    bars=[
        Bar("global_bytes / minimum", at_most=1.02, look="Three reads and one write per element are enough."),
        Bar("sectors / ideal", at_most=1.02, look="Let neighboring threads access neighboring addresses."),
        WIDE,
        Bar(
            "launches",
            at_most=1,
            look="Use one launch: two would write an intermediate sum and read it again.",
            naive="two launches, the second reads the sum of the first",
        ),
        Bar("scratch_bytes", at_most=0, look="Keep the intermediate sum in a register, not in memory."),
    ],
    flops=lambda d: 2 * d["n"],
    bench=[Bench("small", n=4096), Bench("large", n=16384 * 4096)],
    torch_baseline=lambda x, attention, mlp: x + attention + mlp,
)


def sum_of_views(x, y, rows, cols, x_row_stride, x_col_stride, y_row_stride, y_col_stride):
    """Return x + y, two views that are built with ``as_strided``."""
    return x.as_strided((rows, cols), (x_row_stride, x_col_stride)) + y.as_strided(
        (rows, cols), (y_row_stride, y_col_stride)
    )


def views(name, rows, cols, x, y, **more):
    """Return a case; x and y are the (row stride, column stride) of each view."""
    return Case(
        name,
        rows=rows,
        cols=cols,
        x_row_stride=x[0],
        x_col_stride=x[1],
        y_row_stride=y[0],
        y_col_stride=y[1],
        **more,
    )


strided_add = Exercise(
    summary=(
        "out = x + y, where x and y are views of shape (rows, cols). Each has its own strides, counted in elements: "
        "a view may be transposed, take every second row, leave out the first column, or repeat one row. out is "
        "contiguous. The given kernel has one fault. Find it from the report, and correct it. Write nothing when rows "
        "or cols is 0. rows times a stride may be more than 2^31, but no test is that large."
    ),
    launchers=(
        "void strided_add(const float* x, const float* y, float* out, int rows, int cols, long long x_row_stride, "
        "long long x_col_stride, long long y_row_stride, long long y_col_stride, cudaStream_t stream)"
    ),
    dtypes=("f32",),
    inputs={
        "x": Input("max(0,(rows-1)*x_row_stride+(cols-1)*x_col_stride+1)", normal(scale=2.0)),
        "y": Input("max(0,(rows-1)*y_row_stride+(cols-1)*y_col_stride+1)", normal(mean=1.0)),
    },
    outputs={"out": Output("rows cols")},
    reference=sum_of_views,
    cases=[
        views("no row", 0, 5, (5, 1), (5, 1)),
        views("one element", 1, 1, (1, 1), (1, 1)),
        views("both contiguous", 17, 33, (33, 1), (33, 1)),
        views("x transposed", 19, 23, (1, 19), (23, 1)),
        views("both transposed", 31, 8, (1, 31), (1, 31)),
        views("every second row of x", 9, 127, (254, 1), (127, 1)),
        views("y without its first columns", 9, 128, (128, 1), (131, 1), offsets={"y": 3}),
        views("every third column of y", 5, 129, (129, 1), (387, 3)),
        views("one row of y for all rows of x", 11, 257, (257, 1), (0, 1)),
        views("one column of x for all columns of y", 7, 300, (1, 0), (300, 1)),
        views("views of permuted four-dimensional tensors", 12, 40, (40 * 5, 1), (1, 12)),
        views(
            "random sizes", between(1, 30), between(1, 200), (between(200, 260), 1), (one_of(0, 3, 211), one_of(1, 2))
        ),
        views("more rows than a grid's y dimension allows", 66000, 1, (2, 1), (1, 1)),
    ],
    efficient=views("every second row of x, 64 x 1024", 64, 1024, (2048, 1), (1024, 1)),
    bars=[
        Bar("global_bytes / minimum", at_most=1.02, look="Read each element once."),
        Bar(
            "sectors / ideal",
            at_most=1.02,
            look="Neighboring threads must take neighboring columns: the column stride is usually 1.",
        ),
        Bar("launches", at_most=1, look="Read the views directly; do not copy them to a contiguous tensor first."),
        Bar("scratch_bytes", at_most=0, look="Read the views directly; do not copy them to a contiguous tensor first."),
    ],
    minimum_bytes=lambda d: 12 * d["rows"] * d["cols"],
    flops=lambda d: d["rows"] * d["cols"],
    bench=[
        views("small", 64, 512, (1024, 1), (512, 1)),
        views("large", 16384, 4096, (8192, 1), (4096, 1)),
    ],
    torch_baseline=sum_of_views,
)
strided_add.bench = [Bench(case.name, **case.dims) for case in strided_add.bench]
