"""What the exercise of day 14 must do."""

import dataclasses

from grader.course.catalog import tasks_of_day
from grader.course.task import Bar

wgmma_linear = tasks_of_day(__file__, "day13_tensor_cores_hopper").wgmma_linear

tcgen05_linear = dataclasses.replace(
    wgmma_linear,
    summary="""\
y = x w^T on the tensor cores of Blackwell (sm_100a): tiles come by the copy engine (TMA) and are counted by mbarriers, products
are tcgen05.mma's, with f32 accumulators in tensor memory, f16 and bf16 in and out. The next tiles are on their way while these are
multiplied. in_features and out_features are multiples of 8, rows is any number; all tensors are 16-byte aligned. in_features is
not 0. (The simulator runs it; nobody here has a GPU to compare it with.)""",
    launchers="void tcgen05_linear_{dtype}(const {T}* x, const {T}* w, {T}* y, int rows, int in_features, "
    "int out_features, cudaStream_t stream)",
    bars=[
        Bar("tensor_operations / flops_needed", at_least=1, look="The products go through tcgen05.mma."),
        *wgmma_linear.bars[1:],
    ],
    bench=[],
)
