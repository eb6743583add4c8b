"""Tests of tensor memory (tcgen05): allocation, loads, stores, mma on random numbers, and each fault."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from grader.frontend.rewrite import RewriteError, rewrite
from tests.seeds import SEED
from tests.simulator.formats import product, toward_zero
from tests.simulator.harness import KERNELS, SimulatedKernel
from tests.simulator.wgmma_kernels import Layout

LANES, COLUMNS, IMAGE = 128, 256, 64 * 1024
SWIZZLES = {"none": 0, "128": 2, "64": 4, "32": 6}


@dataclass(frozen=True)
class Form:
    """An mma: shape, number of blocks, types, and the settings of A and B in its instruction descriptor."""

    m: int
    n: int
    blocks: int = 1
    type: str = "bf16"
    d: str = "f32"
    negates: tuple[bool, bool] = (False, False)
    mn_major: tuple[bool, bool] = (False, False)
    from_tensor_memory: bool = False

    @property
    def instruction(self) -> int:
        element = int(self.type == "bf16")
        bits = int(self.d == "f32") << 4 | element << 7 | element << 10 | self.n // 8 << 17 | self.m // 16 << 24
        for i in range(2):
            bits |= self.negates[i] << 13 + i | self.mn_major[i] << 15 + i
        return bits


FORMS = [
    Form(128, 256),
    Form(128, 16, type="f16"),
    Form(64, 40, type="f16", d="f16"),
    Form(256, 256, 2),
    Form(256, 32, 2, "f16", "f16"),
    Form(128, 96, 2),
    Form(128, 48, negates=(True, False), mn_major=(True, False)),
    Form(64, 64, negates=(True, True), mn_major=(False, True)),
    Form(256, 128, 2, "f16", mn_major=(True, True)),
    Form(128, 32, type="f16", from_tensor_memory=True),
    Form(256, 64, 2, from_tensor_memory=True),
]


@pytest.fixture(scope="module")
def kernel() -> SimulatedKernel:
    return SimulatedKernel(KERNELS / "tensor_memory.cu", checks=True)


def draw(type_: str, shape: tuple[int, int], random: np.random.Generator) -> np.ndarray:
    """Return an operand's elements in the order of their addresses, as 16-bit numbers."""
    numbers = (random.standard_normal(shape) * 2.0 ** random.integers(-6, 4, shape)).astype(np.float32)
    return (
        numbers.astype(np.float16).view(np.uint16) if type_ == "f16" else (numbers.view(np.uint32) >> 16).astype("u2")
    )


def numbers(elements: np.ndarray, type_: str) -> np.ndarray:
    if type_ == "f16":
        return elements.view(np.float16).astype(np.float64)
    return (elements.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


def layout_of(mn_major: bool, rows: int, swizzle: str) -> Layout:
    """Return the layout of a matrix that is stored as contiguous operands of 16 elements along k."""
    if not mn_major:
        return Layout(swizzle, False, 128, 256) if swizzle == "none" else Layout(swizzle, False, 16, 8 * int(swizzle))
    if swizzle == "none":
        return Layout(swizzle, True, leading=128 * (rows // 8), stride=128)
    return Layout(swizzle, True, leading=16 * int(swizzle), stride=8 * int(swizzle))


def descriptor(layout: Layout) -> int:
    return (layout.leading >> 4) << 16 | (layout.stride >> 4) << 32 | 1 << 46 | SWIZZLES[layout.swizzle] << 61


def signed(bits: int) -> int:
    return bits - (1 << 64) if bits >> 63 else bits


def cells(form: Form) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return block, lane and column of each element [m, n] of D."""
    row, column = np.meshgrid(np.arange(form.m), np.arange(form.n), indexing="ij")
    each = form.m // form.blocks
    block, lane = row // each, row % each
    if form.m == 64:
        lane = lane // 16 * 32 + lane % 16
    elif form.m == 128 and form.blocks == 2:
        lane, column = lane + 64 * (column >= form.n // 2), column % (form.n // 2)
    return block, lane, column


def expected(form: Form, a: np.ndarray, b: np.ndarray, c: np.ndarray, adds: int) -> np.ndarray:
    """Return [m, n] as the 32 bits of each cell.

    Products are summed in float64, one after another, and rounded once at the end.
    """
    left, right = (
        (-1 if negated else 1) * numbers(x, form.type) for x, negated in zip((a, b), form.negates, strict=True)
    )
    total = product(left, right)
    if form.d == "f16":
        old = (c & 0xFFFF).astype(np.uint16).view(np.float16).astype(np.float64)
        return (total + old * adds).astype(np.float16).view(np.uint16).astype(np.uint32)
    return toward_zero(total + c.view(np.float32).astype(np.float64) * adds).view(np.uint32)


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_mma(kernel: SimulatedKernel, form: Form) -> None:
    random = np.random.default_rng([SEED, FORMS.index(form)])
    for swizzle, adds in (("128", 0), ("none", 1), ("64", 1), ("32", 0)):
        a, b = draw(form.type, (form.m, 16), random), draw(form.type, (form.n, 16), random)
        c = random.standard_normal((form.blocks, LANES, COLUMNS)).astype(np.float32)
        if form.d == "f16":
            c = c.astype(np.float16).view(np.uint16).astype(np.uint32).view(np.float32)
        rows, columns = form.m // form.blocks, form.n // form.blocks
        of_a, of_b = layout_of(form.mn_major[0], rows, swizzle), layout_of(form.mn_major[1], columns, swizzle)
        image = random.integers(0, 256, (form.blocks, IMAGE)).astype(np.uint8)
        words = np.zeros((form.blocks, LANES, 16), np.uint16)
        for block in range(form.blocks):
            of_a.place(image[block, : IMAGE // 2], a[block * rows : (block + 1) * rows])
            of_b.place(image[block, IMAGE // 2 :], b[block * columns : (block + 1) * columns])
            if form.from_tensor_memory:
                words[block] = a[block * rows : (block + 1) * rows]
        out = np.zeros(c.shape, np.uint32)
        outcome = kernel(
            "run_product", image.view(np.uint32).ravel(), words.view(np.uint32).ravel(), c.view(np.uint32).ravel(), out,
            signed(descriptor(of_a)), 0, signed(descriptor(of_b)), IMAGE // 2, form.instruction, adds,
            int(form.from_tensor_memory), form.blocks,
        )  # fmt: skip
        assert outcome.error == 0 and not outcome.report.get("findings"), outcome
        want = c.view(np.uint32).copy()
        place = cells(form)
        want[place] = expected(form, a, b, c.view(np.uint32)[place], adds)
        np.testing.assert_array_equal(out, want)


def test_registers_of_every_shape(kernel: SimulatedKernel) -> None:
    lane, column = np.meshgrid(np.arange(LANES), np.arange(COLUMNS), indexing="ij")
    out = np.zeros((4, 4, 32, 8), np.uint32)
    outcome = kernel("run_shapes", (1000 * lane + column).astype(np.uint32), out)
    assert outcome.error == 0 and not outcome.report.get("findings"), outcome
    warp, thread, register = np.meshgrid(np.arange(4), np.arange(32), np.arange(8), indexing="ij")
    places = [
        (thread, register),
        (16 + thread // 4 + 8 * (thread % 2), thread // 2 % 2 + 2 * register),
        (thread // 4 + 8 * (register % 2), thread % 4 + 4 * (register // 2)),
        (16 + thread // 4 + 8 * (register // 2 % 2), 16 + register % 2 + 2 * (thread % 4) + 8 * (register // 4)),
    ]
    for shape, (row, at) in enumerate(places):
        np.testing.assert_array_equal(out[shape], 1000 * (32 * warp + row) + at)


def test_copies_from_shared_memory(kernel: SimulatedKernel) -> None:
    random = np.random.default_rng(SEED)
    rows = random.integers(0, 1 << 16, (LANES, 16)).astype(np.uint16)
    image = np.zeros(IMAGE, np.uint8)
    Layout("none", False, 128, 256).place(image, rows)
    out = np.zeros((LANES, COLUMNS), np.uint32)
    outcome = kernel("run_copies", image.view(np.uint32), np.full((LANES, COLUMNS), 7, np.uint32), out)
    assert outcome.error == 0 and not outcome.report.get("findings"), outcome
    words = rows.view(np.uint32)
    np.testing.assert_array_equal(out[:, :8], words)
    np.testing.assert_array_equal(out[:, 8:12], words[:, :4])
    assert (out[:, 12:] == 7).all()


@pytest.mark.parametrize(
    ("statement", "says"),
    [
        ('"tcgen05.shift.cta_group::1.down [%0];" :: "r"(d)', "tcgen05.shift.cta_group::1.down is not simulated"),
        ('"tcgen05.cp.cta_group::1.4x256b [%0], %1;" :: "r"(d), "l"(a)', "4x256b is not simulated"),
        ('"tcgen05.mma.cta_group::1.kind::tf32 [%0], %1, %1, %0, 1;" :: "r"(d), "l"(a)', "kind::tf32 is not simulated"),
        ('"tcgen05.mma.ws.cta_group::1.kind::f16 [%0], %1, %1, %0, 1;" :: "r"(d), "l"(a)', "mma.ws.cta_group"),
        (
            '"tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %1, %0, {%0, %0, %0, %0}, 1;" :: "r"(d), "l"(a)',
            "takes [d], a, b, an instruction descriptor and enable-input-d",
        ),
        ('"tcgen05.ld.sync.aligned.32x32b.x2.pack::16b.b32 {%0, %1}, [%2];" : "=r"(x), "=r"(y) : "r"(d)', "pack::16b"),
        ('"tcgen05.ld.sync.aligned.32x32b.x2.b32 {%0}, [%1];" : "=r"(x) : "r"(d)', "takes 2 registers"),
        (
            '"tcgen05.ld.sync.aligned.16x256b.x64.b32 {%0}, [%1];" : "=r"(x) : "r"(d)',
            "16x256b.x64.b32 is not simulated",
        ),
        ('"wgmma.fence.sync.aligned; tcgen05.fence::after_thread_sync;"', "exists only on sm_90a"),
    ],
)
def test_unsupported_features_are_refused_by_name(statement: str, says: str) -> None:
    with pytest.raises(RewriteError) as caught:
        rewrite(f"__global__ void f(unsigned d, unsigned long long a) {{ asm volatile({statement}); }}")
    assert says in caught.value.message
