"""What each exercise of day 14 must do."""

import torch

from grader.course.task import Bar, Case, Exercise, Input, Output, between, normal, one_of


def second_half(
    x, attention, norm_weight, norm_bias, up, up_bias, down, down_bias, hidden, feed_forward, eps, parallel
):
    """x + attention + mlp(norm(x)), or the norm of x + attention where the residual is serial."""
    read = x if parallel else x + attention
    y = torch.nn.functional.layer_norm(read, (hidden,), norm_weight, norm_bias, eps) if hidden else read
    inside = torch.nn.functional.gelu(y @ up.T + up_bias)
    return x + attention + inside @ down.T + down_bias


def block(rows, hidden, feed_forward, parallel, eps=1e-5):
    """The sizes of a case."""
    return dict(rows=rows, hidden=hidden, feed_forward=feed_forward, parallel=parallel, eps=eps)


def weight_bytes(d):
    """Every weight once, and three rows of activations each time."""
    c, f = d["hidden"], d["feed_forward"]
    return 4 * (2 * c * f + 3 * c + f + 3 * d["rows"] * c)


neox_parallel_residual = Exercise(
    summary="""\
The second half of a GPT-NeoX block: out = x + attention + mlp(norm(r)), with mlp(y) = down gelu(up y + up_bias) + down_bias, the exact
GELU, and norm a LayerNorm with norm_weight, norm_bias and eps. What r is says config.json's use_parallel_residual, which comes here as `parallel`: x itself in
the parallel residual, x + attention in the serial one. The kernel that you get was tried with one checkpoint and writes nonsense with another.
f32; any rows, hidden and feed_forward whose vectors fit into shared memory; with no rows there is nothing to do.""",
    launchers="void neox_parallel_residual(const float* x, const float* attention, const float* norm_weight, "
    "const float* norm_bias, const float* up, const float* up_bias, const float* down, const float* down_bias, "
    "float* out, int rows, int hidden, int feed_forward, float eps, bool parallel, cudaStream_t stream)",
    inputs={
        "x": Input("rows hidden", normal(mean=0.5)),
        "attention": Input("rows hidden", normal(channel_offset=1.0)),
        "norm_weight": Input("hidden", normal(mean=1.0, scale=0.3)),
        "norm_bias": Input("hidden", normal(scale=0.5)),
        "up": Input("feed_forward hidden", normal(scale=0.3)),
        "up_bias": Input("feed_forward", normal()),
        "down": Input("hidden feed_forward", normal(scale=0.3)),
        "down_bias": Input("hidden", normal()),
    },
    outputs={"out": Output("rows hidden")},
    reference=second_half,
    trivial=[lambda x, attention: x + attention],
    cases=[
        Case("serial, one row", **block(1, 64, 256, False)),
        Case("serial, rows and sizes that nothing divides", **block(3, 67, 129, False)),
        Case("parallel, one row", **block(1, 64, 256, True)),
        Case("parallel, rows and sizes that nothing divides", **block(5, 129, 67, True)),
        Case("parallel, a large mean", inputs={"x": normal(mean=300.0)}, **block(2, 128, 64, True)),
        Case("a large eps", **block(2, 31, 64, True, eps=0.5)),
        Case("two channels", **block(2, 2, 3, False)),
        Case(
            "random sizes",
            **block(between(1, 4), between(2, 140), between(1, 200), one_of(False, True)),
        ),
        Case("no row", **block(0, 64, 32, True)),
    ],
    efficient=Case("one row, 128 x 512", **block(1, 128, 512, True)),
    minimum_bytes=weight_bytes,
    bars=[
        Bar("global_bytes / minimum", at_most=1.15, look="Is a weight read twice?"),
        Bar("sectors / ideal", at_most=1.15, look="The lanes of a warp should read a row of the weights side by side."),
        Bar("launches", at_most=1, look="What is inside the MLP can stay in shared memory."),
        Bar("scratch_bytes", at_most=0, look="What is inside the MLP can stay in shared memory."),
    ],
    flops=lambda d: 4.0 * d["rows"] * d["hidden"] * d["feed_forward"],
)
