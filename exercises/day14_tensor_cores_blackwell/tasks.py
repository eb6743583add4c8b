"""The task of day 14."""

import dataclasses

from grader.course.catalog import tasks_of_day
from grader.course.task import Bar

hopper = tasks_of_day(__file__, "day13_tensor_cores_hopper")

tcgen05_linear = dataclasses.replace(
    hopper.wgmma_linear,
    summary="""\
Compute y = x w^T on Blackwell's tensor cores (sm_100a). TMA loads tiles, mbarriers count their bytes, and tcgen05.mma
multiplies them, with f32 accumulators in tensor memory, f16 and bf16 in and out. Load the next tiles while the current
ones are multiplied. in_features and out_features are multiples of 8, rows is any number, all tensors are 16-byte
aligned, and in_features is not 0. Kernels of this exercise have run in the
simulator only, never on a Blackwell GPU.""",
    launchers="void tcgen05_linear_{dtype}(const {T}* x, const {T}* w, {T}* y, int rows, int in_features, "
    "int out_features, cudaStream_t stream)",
    bars=[
        Bar("tensor_operations / flops_needed", at_least=1, look="Multiply with tcgen05.mma."),
        *hopper.wgmma_linear.bars[1:],
    ],
    bench=[],
)
