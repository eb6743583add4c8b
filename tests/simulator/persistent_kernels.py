"""A generator of persistent kernels: right ones, and ones with a planted fault and the lines where it must be reported.

A kernel is one launch whose blocks compute tiles in stages. A tile waits for counters in global memory that count the
finished tiles of the stage before. Kernels differ in the number of stages, bands, tiles, blocks and threads, in the
order of the tiles (a queue, or a fixed order), and in the operations of the counters (``STYLES``).
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

STYLES = {
    "ptx": (
        'asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(counter) : "memory");',
        'asm volatile("red.release.gpu.global.add.u32 [%0], %1;" ::"l"(counter), "r"(1u) : "memory");',
    ),
    "atomic_ref": (
        "value = Atomic(*counter).load(cuda::memory_order_acquire);",
        "Atomic(*counter).fetch_add(1u, cuda::memory_order_release);",
    ),
    "fences": (
        "value = *static_cast<volatile unsigned*>(counter); __threadfence();",
        "__threadfence(); atomicAdd(counter, 1u);",
    ),
}
"""The load that acquires and the addition that releases."""

WEAKER = {
    "ptx": (("ld.acquire.gpu", "ld.relaxed.gpu"), ("red.release.gpu", "red.relaxed.gpu")),
    "atomic_ref": (("memory_order_acquire", "memory_order_relaxed"), ("memory_order_release", "memory_order_relaxed")),
    "fences": ((" __threadfence();", ""), ("__threadfence(); ", "")),
}
"""Replacements after which the load does not acquire, and the addition does not release."""

RACE = {"between_blocks"}
ENDLESS = {"infinite_loop"}


@dataclass
class Persistent:
    """One kernel, as the text of a namespace with the launcher ``name``."""

    name: str
    lines: list[str]
    marks: dict[int, set[str]] = field(default_factory=dict)
    """The possible kinds of the findings at each line; empty for a right kernel."""

    @property
    def text(self) -> str:
        body = "\n".join(self.lines)
        return f'namespace {self.name}_ {{\n#line 1 "{self.name}.cu"\n{body}\n}}\nusing {self.name}_::{self.name};\n'


@dataclass(frozen=True)
class Shape:
    """The parameters of a kernel in stages. A tile of a stage reads all tiles of its band in the stage before."""

    stages: int
    bands: int
    tiles: int
    """The tiles of a band in each stage."""
    blocks: int
    threads: int
    style: str
    queue: bool
    """True if blocks take tiles from a queue; False if block b computes tiles b, b + blocks, ..."""


def draw(rng: random.Random, **given: object) -> Shape:
    """Draw a shape. At least two blocks work on each band."""
    values: dict[str, object] = {
        "stages": rng.choice([2, 3]),
        "bands": rng.randint(2, 4),
        "tiles": rng.randint(3, 6),
        "blocks": rng.randint(3, 8),
        "threads": rng.choice([32, 64]),
        "style": rng.choice(list(STYLES)),
        "queue": rng.random() < 0.6,
    }
    return Shape(**{**values, **given})  # type: ignore[arg-type]


PRELUDE = "#include <cuda/atomic>\n#include <cuda_runtime.h>\nusing Atomic = cuda::atomic_ref<unsigned, cuda::thread_scope_device>;\n"  # noqa: E501


def counter_at(stage: int, index: str) -> str:
    """Return the declaration of a pointer to a counter."""
    return f"unsigned* counter = &finished[{stage}][{index}];"


def poll(load: str, counter: str, count: str) -> str:
    """Return a loop in which thread 0 waits until the counter has reached ``count``."""
    loop = f"for (unsigned value = 0; value < {count};)"
    return f"if (threadIdx.x == 0) {loop} {{ unsigned* counter = &{counter}; {load} }}"


def staged(name: str, shape: Shape) -> Persistent:
    """Return a right kernel. A comment names each line that a fault changes or that a finding may name."""
    load, add = STYLES[shape.style]
    s, all_tiles = shape, shape.stages * shape.bands * shape.tiles
    lines = [
        f"constexpr int kBands = {s.bands}, kTiles = {s.tiles}, kThreads = {s.threads}, kAll = {all_tiles};",
        "constexpr int kOfStage = kBands * kTiles;",
        f"__device__ unsigned queue, finished[{s.stages}][kBands];",
        f"__device__ float values[{s.stages}][kBands][kTiles][kThreads];",
        "__global__ void clear() {",
        "    queue = 0;  // clear the queue",
        f"    for (int i = 0; i < {s.stages} * kBands; ++i)",
        "        finished[i / kBands][i % kBands] = 0;  // clear the counters",
        "}",
        "__global__ void persistent(const float* x) {",
        "    __shared__ int ticket;",
        "    for (int own = blockIdx.x;; own += gridDim.x) {",
    ]
    if s.queue:
        lines += [
            "        __syncthreads();",
            "        if (threadIdx.x == 0) ticket = static_cast<int>(atomicAdd(&queue, 1u));",
            "        __syncthreads();",
            "        const int place = ticket;",
        ]
    else:
        lines += ["        const int place = own;"]
    lines += [
        "        if (place >= kAll) return;",
        "        const int tile = place;  // order",
        "        const int band = tile / kTiles % kBands, column = tile % kTiles;",
        "        float sum = x[threadIdx.x];",
    ]
    for stage in range(s.stages):
        lines += [f"        if (tile / kOfStage == {stage}) {{"]
        if stage:
            lines += [
                f"            {poll(load, f'finished[{stage - 1}][band]', 'kTiles')}  // wait {stage}",
                f"            __syncthreads();  // after the wait {stage}",
                "            for (int t = 0; t < kTiles; ++t)",
                f"                sum += values[{stage - 1}][band][t][(threadIdx.x + t) % kThreads];  // read {stage}",
            ]
        lines += [
            f"            values[{stage}][band][column][threadIdx.x] = sum;  // write {stage}",
            f"            __syncthreads();  // before the addition {stage}",
            f"            if (threadIdx.x == 0) {{ {counter_at(stage, 'band')} {add} }}  // addition {stage}",
            "        }",
        ]
    lines += [
        "    }",
        "}",
        "__global__ void finish(float* out, int n) {",
        f"    for (int i = threadIdx.x; i < n; i += 32) out[i] = values[{s.stages - 1}][0][0][i % kThreads];",
        "}",
        f'extern "C" void {name}(const float* x, float* out, int n, cudaStream_t stream) {{',
        "    for (int step = 0; step < 2; ++step) {",
        "        clear<<<1, 1, 0, stream>>>();  // clear",
        f"        persistent<<<{s.blocks}, kThreads, 0, stream>>>(x);",
        "    }",
        "    finish<<<1, 32, 0, stream>>>(out, n);",
        "}",
    ]
    return Persistent(name, lines)


def line_of(kernel: Persistent, comment: str) -> int:
    """Return the number of the line with this comment."""
    [number] = [i for i, line in enumerate(kernel.lines, 1) if line.endswith(f"// {comment}")]
    return number


def change(kernel: Persistent, comment: str, find: str, replace: str) -> None:
    """Replace a text in the line with this comment."""
    at = line_of(kernel, comment) - 1
    assert find in kernel.lines[at], (find, kernel.lines[at])
    kernel.lines[at] = kernel.lines[at].replace(find, replace)


def remove(kernel: Persistent, comment: str) -> None:
    """Remove the code of the line with this comment."""
    kernel.lines[line_of(kernel, comment) - 1] = f"            // {comment}"


def expect_race(kernel: Persistent, stage: int) -> None:
    """Mark the read in ``stage`` and the write in the stage before."""
    kernel.marks = {line_of(kernel, f"read {stage}"): RACE, line_of(kernel, f"write {stage - 1}"): RACE}


def expect_endless(kernel: Persistent, shape: Shape, stage: int) -> None:
    """Mark the wait in ``stage``, and those of later stages, which then do not end either: one of them is reported."""
    kernel.marks = {line_of(kernel, f"wait {each}"): ENDLESS for each in range(stage, shape.stages)}


Plant = Callable[[Persistent, Shape, int], None]
"""Plants a fault between stage - 1 and stage."""


def no_wait(kernel: Persistent, shape: Shape, stage: int) -> None:
    remove(kernel, f"wait {stage}")
    expect_race(kernel, stage)


def wait_for_too_few(kernel: Persistent, shape: Shape, stage: int) -> None:
    change(kernel, f"wait {stage}", "< kTiles", "< kTiles - 1")
    expect_race(kernel, stage)


def wait_for_one(kernel: Persistent, shape: Shape, stage: int) -> None:
    change(kernel, f"wait {stage}", "< kTiles", "< 1")
    expect_race(kernel, stage)


def wait_for_the_first_band(kernel: Persistent, shape: Shape, stage: int) -> None:
    change(kernel, f"wait {stage}", "[band]", "[0]")
    expect_race(kernel, stage)


def relaxed_load(kernel: Persistent, shape: Shape, stage: int) -> None:
    change(kernel, f"wait {stage}", *WEAKER[shape.style][0])
    expect_race(kernel, stage)


def relaxed_addition(kernel: Persistent, shape: Shape, stage: int) -> None:
    change(kernel, f"addition {stage - 1}", *WEAKER[shape.style][1])
    expect_race(kernel, stage)


def no_barrier_after_the_wait(kernel: Persistent, shape: Shape, stage: int) -> None:
    remove(kernel, f"after the wait {stage}")
    expect_race(kernel, stage)


def no_barrier_before_the_addition(kernel: Persistent, shape: Shape, stage: int) -> None:
    remove(kernel, f"before the addition {stage - 1}")
    expect_race(kernel, stage)


def all_threads_add(kernel: Persistent, shape: Shape, stage: int) -> None:
    change(kernel, f"addition {stage - 1}", "if (threadIdx.x == 0) ", "")
    expect_race(kernel, stage)


def addition_before_the_write(kernel: Persistent, shape: Shape, stage: int) -> None:
    write, addition = (line_of(kernel, f"{what} {stage - 1}") - 1 for what in ("write", "addition"))
    kernel.lines[write], kernel.lines[addition] = kernel.lines[addition], kernel.lines[write]
    expect_race(kernel, stage)


def counters_not_cleared(kernel: Persistent, shape: Shape, stage: int) -> None:
    change(kernel, "clear the counters", "= 0;  //", "+= 0;  //")
    for each in range(1, shape.stages):
        for what in (f"read {each}", f"write {each - 1}"):
            kernel.marks[line_of(kernel, what)] = RACE


def wait_for_too_many(kernel: Persistent, shape: Shape, stage: int) -> None:
    change(kernel, f"wait {stage}", "< kTiles", "< kTiles + 1")
    expect_endless(kernel, shape, stage)


def wait_for_the_own_stage(kernel: Persistent, shape: Shape, stage: int) -> None:
    change(kernel, f"wait {stage}", f"finished[{stage - 1}]", f"finished[{stage}]")
    expect_endless(kernel, shape, stage)


def no_addition(kernel: Persistent, shape: Shape, stage: int) -> None:
    remove(kernel, f"addition {stage - 1}")
    expect_endless(kernel, shape, stage)


def addition_to_another_band(kernel: Persistent, shape: Shape, stage: int) -> None:
    change(kernel, f"addition {stage - 1}", "[band]", "[0]")
    expect_race(kernel, stage)  # the first band is read too early,
    kernel.marks[line_of(kernel, f"wait {stage}")] = ENDLESS  # and the others are awaited forever


def last_stage_first(kernel: Persistent, shape: Shape, stage: int) -> None:
    change(kernel, "order", "place;", "kAll - 1 - place;")
    expect_endless(kernel, shape, shape.stages - 1)


STAGED: dict[str, Plant] = {
    plant.__name__: plant
    for plant in (
        no_wait,
        wait_for_too_few,
        wait_for_one,
        wait_for_the_first_band,
        relaxed_load,
        relaxed_addition,
        no_barrier_after_the_wait,
        no_barrier_before_the_addition,
        all_threads_add,
        addition_before_the_write,
        counters_not_cleared,
        wait_for_too_many,
        wait_for_the_own_stage,
        no_addition,
        addition_to_another_band,
        last_stage_first,
    )
}


def ring(name: str, shape: Shape, slots: int, free: str) -> Persistent:
    """Return a kernel of two stages whose first results are in a ring of ``slots`` bands.

    ``free`` is the number of tiles of an earlier band that must be finished before its slot is overwritten.
    """
    kernel = staged(name, Shape(2, shape.bands, shape.tiles, shape.blocks, shape.threads, shape.style, True))
    text = "\n".join(kernel.lines)
    text = re.sub(r"values\[0\]\[band\]", f"values[0][band % {slots}]", text)
    text = text.replace("const int tile = place;  // order", f"const int tile = in_turn(place, {slots});  // order")
    text = text.replace(
        "            values[0]",
        f"            if (band >= {slots}) {{\n"
        f"                {poll(STYLES[shape.style][0], f'finished[1][band - {slots}]', free)}  // slot\n"
        "                __syncthreads();\n"
        "            }\n"
        "            values[0]",
    )
    turn = (
        "// The tiles of `slots` bands of stage 0, then bands of both stages in turn.\n"
        "__device__ int in_turn(int place, int slots) {\n"
        "    int step = place / kTiles, column = place % kTiles, ahead = slots < kBands ? slots : kBands;\n"
        "    if (step < ahead) return place;\n"
        "    step -= ahead;\n"
        "    const int pairs = kBands - ahead;\n"
        "    const bool first = step < 2 * pairs && step % 2;\n"
        "    const int band = step < 2 * pairs ? step / 2 + (first ? ahead : 0) : step - pairs;\n"
        "    return (first ? 0 : kOfStage) + band * kTiles + column;\n"
        "}\n"
    )
    text = text.replace("__global__ void clear()", turn + "__global__ void clear()")
    return Persistent(name, text.split("\n"))


def neighbors(name: str, shape: Shape, waits: tuple[int, ...]) -> Persistent:
    """Return a kernel whose tile t reads the first results of tiles t - 1, t and t + 1, and waits for some of them."""
    kernel = staged(
        name, Shape(2, 1, shape.tiles + shape.blocks, shape.blocks, shape.threads, shape.style, shape.queue)
    )
    text = "\n".join(kernel.lines).replace("finished[2][kBands]", "finished[2][kTiles]")
    text = text.replace("2 * kBands; ++i)", "2 * kTiles; ++i)")
    text = text.replace("finished[i / kBands][i % kBands]", "finished[i / kTiles][i % kTiles]")
    text = text.replace(
        "= &finished[0][band]; " + STYLES[shape.style][1], "= &finished[0][column]; " + STYLES[shape.style][1]
    )
    text = text.replace("= &finished[1][band]; ", "= &finished[1][column]; ")
    load = STYLES[shape.style][0]
    waits_for = [poll(load, f"finished[0][(column + {w} + kTiles) % kTiles]", "1") for w in waits]
    text = text.replace(poll(load, "finished[0][band]", "kTiles"), " ".join(waits_for))
    text = text.replace(
        "for (int t = 0; t < kTiles; ++t)", "for (int t = column + kTiles - 1; t < column + kTiles + 2; ++t)"
    )
    text = text.replace("values[0][band][t][", "values[0][band][t % kTiles][")
    return Persistent(name, text.split("\n"))


def waiting_blocks(name: str, consumers: int, producers: int) -> Persistent:
    """Return a kernel whose first blocks wait for the last ones. 16 blocks are resident at once."""
    lines = [
        "__device__ unsigned finished;",
        f"__device__ float values[{producers}];",
        "__global__ void clear() { finished = 0; }",
        "__global__ void persistent(const float* x, float* out, int n) {",
        f"    const int producer = static_cast<int>(blockIdx.x) - {consumers};",
        "    if (producer >= 0) {",
        "        values[producer] = x[producer];",
        "        Atomic(finished).fetch_add(1u, cuda::memory_order_release);",
        "        return;",
        "    }",
        f"    while (Atomic(finished).load(cuda::memory_order_acquire) < {producers});  // wait",
        f"    for (int i = blockIdx.x; i < n; i += {consumers}) out[i] = values[i % {producers}];",
        "}",
        f'extern "C" void {name}(const float* x, float* out, int n, cudaStream_t stream) {{',
        "    cudaFuncSetAttribute(persistent, cudaFuncAttributeMaxDynamicSharedMemorySize, 100 << 10);",
        "    clear<<<1, 1, 0, stream>>>();",
        f"    persistent<<<{consumers + producers}, 1, 100 << 10, stream>>>(x, out, n);",
        "}",
    ]
    return Persistent(name, lines)


def right_kernels(seed: int) -> Iterator[Persistent]:
    """Yield kernels without a fault."""
    rng = random.Random(seed)
    for style in STYLES:
        for queue in (True, False):
            for stages in (2, 3):
                for number in range(2):
                    yield staged(
                        f"right_{style}_{queue}_{stages}_{number}", draw(rng, style=style, queue=queue, stages=stages)
                    )
    for number in range(6):
        yield ring(f"right_ring_{number}", draw(rng, bands=rng.randint(3, 6)), 1 + number % 3, "kTiles")
        yield neighbors(f"right_neighbors_{number}", draw(rng, queue=number % 2 == 0), (-1, 0, 1))
    for consumers in range(1, 5):
        yield waiting_blocks(f"right_waiting_{consumers}", 4 * consumers - 1, 17 - 4 * consumers)


def faulty_kernels(seed: int) -> Iterator[Persistent]:
    """Yield kernels with one fault each."""
    rng = random.Random(seed)
    for name, plant in STAGED.items():
        for number in range(6):
            shape = draw(rng, style=list(STYLES)[number % 3], queue=number % 2 == 0)
            kernel = staged(f"{name}_{number}", shape)
            plant(kernel, shape, rng.randint(1, shape.stages - 1))
            yield kernel
    for number in range(6):
        kernel = ring(f"slot_overwritten_{number}", draw(rng, bands=rng.randint(4, 6)), 1 + number % 2, "0")
        kernel.marks = {line_of(kernel, "write 0"): RACE, line_of(kernel, "read 1"): RACE}
        yield kernel
        kernel = ring(
            f"slot_awaited_too_briefly_{number}", draw(rng, bands=rng.randint(4, 6)), 1 + number % 2, "kTiles - 1"
        )
        kernel.marks = {line_of(kernel, "write 0"): RACE, line_of(kernel, "read 1"): RACE}
        yield kernel
        waits = [(-1, 0), (0, 1), (-1, 1)][number % 3]
        kernel = neighbors(f"neighbor_not_awaited_{number}", draw(rng, queue=number % 2 == 0), waits)
        expect_race(kernel, 1)
        yield kernel
        kernel = waiting_blocks(f"too_many_blocks_{number}", 16 + 3 * number, 2 + number)
        kernel.marks = {line_of(kernel, "wait"): ENDLESS}
        yield kernel
