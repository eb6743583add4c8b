"""Tests of block-scaled tcgen05.mma: results for random elements and scales of each kind, and refused operands."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from grader.frontend.rewrite import RewriteError, rewrite
from tests.seeds import SEED
from tests.simulator.formats import FORMATS, product, toward_zero
from tests.simulator.harness import KERNELS, Outcome, SimulatedKernel
from tests.simulator.test_tensor_memory import descriptor
from tests.simulator.wgmma_kernels import Layout

ROWS, COLUMNS, IMAGE = 128, 256, 64 * 1024
B_AT, SCALES_AT = 16 * 1024, 48 * 1024
CODES = {"e4m3": 0, "e5m2": 1, "e2m3": 3, "e3m2": 4, "e2m1": 5}
BITS = {"e4m3": 8, "e5m2": 8, "e2m3": 6, "e3m2": 6, "e2m1": 4}


@dataclass(frozen=True)
class Form:
    """The kind of a block-scaled mma. ``number`` selects its opcode in block_scale.cu."""

    number: int
    scales: int
    n: int
    a: str = "e2m1"
    b: str = "e2m1"
    scale: str = "e8m0"
    ids: tuple[int, int] = (0, 0)
    negates: tuple[bool, bool] = (False, False)

    @property
    def is_mxf8f6f4(self) -> bool:
        return self.number < 2

    @property
    def depth(self) -> int:
        return 32 if self.is_mxf8f6f4 else 64

    @property
    def instruction(self) -> int:
        a, b = (CODES[x] if self.is_mxf8f6f4 else 1 for x in (self.a, self.b))
        bits = self.ids[1] << 4 | a << 7 | b << 10 | self.negates[0] << 13 | self.negates[1] << 14
        return bits | self.n // 8 << 17 | (self.scale == "e8m0") << 23 | 1 << 27 | self.ids[0] << 29


FORMS = [
    Form(0, 1, 256, "e4m3", "e5m2", ids=(3, 1)),
    Form(1, 1, 40, "e2m3", "e2m1", ids=(0, 2)),
    Form(1, 1, 8, "e3m2", "e4m3", negates=(True, False)),
    Form(2, 2, 72, ids=(2, 0)),
    Form(3, 2, 136, ids=(0, 2), negates=(False, True)),
    Form(4, 4, 16, scale="e4m3"),
    Form(4, 4, 32),
    Form(5, 4, 248, scale="e4m3"),
]


@pytest.fixture(scope="module")
def kernel() -> SimulatedKernel:
    return SimulatedKernel(KERNELS / "block_scale.cu", checks=True)


def elements(name: str, rows: int, depth: int, random: np.random.Generator) -> np.ndarray:
    """Return random bit patterns of an element type, without NaN and infinity."""
    patterns = random.integers(0, 1 << BITS[name], (rows, depth)).astype(np.uint8)
    largest = {"e4m3": 0x7E, "e5m2": 0x7B}.get(name, 0xFF)
    sign = 1 << BITS[name] - 1
    return np.where((patterns & (sign - 1)) > largest, patterns & sign, patterns).astype(np.uint8)


def decoded(patterns: np.ndarray, name: str) -> np.ndarray:
    """Return in float64 the numbers that bit patterns of finite elements, or of scales, represent."""
    if name == "e8m0":
        return np.where(patterns == 0xFF, np.nan, 2.0 ** (patterns.astype(np.int64) - 127))
    return FORMATS[name].values()[patterns]


def packed(patterns: np.ndarray, name: str, is_mxf8f6f4: bool) -> np.ndarray:
    """Return rows of 32 bytes in shared memory. 16 bytes hold 16 elements, or 32 for kind::mxf4."""
    each = 16 if is_mxf8f6f4 else 32
    bits = np.unpackbits(patterns[..., None], axis=-1, bitorder="little")[..., : BITS[name]]
    bits = bits.reshape(len(patterns), -1, each * BITS[name])
    padded = np.zeros((*bits.shape[:2], 128), np.uint8)
    padded[..., : bits.shape[2]] = bits
    return np.packbits(padded, axis=-1, bitorder="little").reshape(len(patterns), 32)


def scale_bytes(words: np.ndarray) -> np.ndarray:
    """Return the bytes [512] or [1024] of scales [rows, 4]: 32 lanes of 16 bytes for each 128 rows."""
    whole = np.zeros((-(-len(words) // 128) * 128, 4), np.uint8)
    whole[: len(words)] = words
    return whole.reshape(-1, 4, 32, 4).transpose(0, 2, 1, 3).ravel()


@dataclass
class Drawn:
    """The operands of an mma: bit patterns [rows, depth], scales [rows, 4], and accumulators."""

    a: np.ndarray
    b: np.ndarray
    a_scales: np.ndarray
    b_scales: np.ndarray
    c: np.ndarray


def draw(form: Form, random: np.random.Generator) -> Drawn:
    low, high = (118, 137) if form.scale == "e8m0" else (0, 0x7F)
    return Drawn(
        elements(form.a, ROWS, form.depth, random),
        elements(form.b, form.n, form.depth, random),
        random.integers(low, high, (ROWS, 4)).astype(np.uint8),
        random.integers(low, high, (form.n, 4)).astype(np.uint8),
        random.standard_normal((ROWS, COLUMNS)).astype(np.float32),
    )


def scaled(form: Form, patterns: np.ndarray, words: np.ndarray, is_b: bool) -> np.ndarray:
    """Return [rows, depth] in float64, each element times its scale, which is exact."""
    chosen = words[:, form.ids[is_b] :][:, : form.scales]
    factors = decoded(chosen, form.scale).repeat(form.depth // form.scales, axis=1)
    return (-1 if form.negates[is_b] else 1) * decoded(patterns, form.b if is_b else form.a) * factors


def expected(form: Form, drawn: Drawn, adds: int) -> np.ndarray:
    """Return the bits [128, n] of the results: float64 sums, truncated once to f32."""
    left, right = scaled(form, drawn.a, drawn.a_scales, False), scaled(form, drawn.b, drawn.b_scales, True)
    return toward_zero(product(left, right) + drawn.c[:, : form.n].astype(np.float64) * adds).view(np.uint32)


def run(
    kernel: SimulatedKernel,
    form: Form,
    drawn: Drawn,
    adds: int = 0,
    instruction: int | None = None,
    swizzle: str = "128",
    spoiled: int = -1,
) -> tuple[Outcome, np.ndarray]:
    layout = Layout("none", False, 128, 256) if swizzle == "none" else Layout(swizzle, False, 16, 8 * int(swizzle))
    image = np.random.default_rng(SEED).integers(0, 256, IMAGE).astype(np.uint8)
    for at, patterns, name in ((0, drawn.a, form.a), (B_AT, drawn.b, form.b)):
        rows = np.ascontiguousarray(packed(patterns, name, form.is_mxf8f6f4)).view(np.uint16)
        layout.place(image[at : at + 32 * 1024], rows)
    for at, words in ((SCALES_AT, drawn.a_scales), (SCALES_AT + 512, drawn.b_scales)):
        placed = scale_bytes(words)
        image[at : at + len(placed)] = placed
    out = np.zeros((ROWS, COLUMNS), np.uint32)
    smem = descriptor(layout)
    smem -= 1 << 64 if smem >> 63 else 0
    bits = form.instruction if instruction is None else instruction
    bits -= 1 << 32 if bits >> 31 else 0
    outcome = kernel(
        "run_product",
        image.view(np.uint32),
        drawn.c.view(np.uint32).ravel(),
        out,
        smem,
        smem,
        bits,
        adds,
        form.number,
        spoiled,
    )
    return outcome, out


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_mma(kernel: SimulatedKernel, form: Form) -> None:
    random = np.random.default_rng([SEED, FORMS.index(form)])
    for swizzle, adds in (("128", 0), ("none", 1)):
        drawn = draw(form, random)
        outcome, out = run(kernel, form, drawn, adds, swizzle=swizzle)
        assert outcome.error == 0 and not outcome.report.get("findings"), outcome
        np.testing.assert_array_equal(out[:, : form.n], expected(form, drawn, adds))
        np.testing.assert_array_equal(out[:, form.n :], drawn.c.view(np.uint32)[:, form.n :])


def test_another_id_selects_other_scales(kernel: SimulatedKernel) -> None:
    form, drawn = FORMS[3], draw(FORMS[3], np.random.default_rng(SEED))
    _, right = run(kernel, form, drawn)
    outcome, wrong = run(kernel, form, drawn, instruction=form.instruction & ~(3 << 29))
    assert outcome.error == 0 and (right[:, : form.n] != wrong[:, : form.n]).any()


def test_nan_scales_make_their_row_nan(kernel: SimulatedKernel) -> None:
    for form, nan in ((FORMS[5], 0x7F), (FORMS[6], 0xFF)):
        drawn = draw(form, np.random.default_rng(SEED))
        drawn.a_scales[5, 3] = nan
        _, out = run(kernel, form, drawn)
        is_nan = np.isnan(out[:, : form.n].view(np.float32))
        assert is_nan[5].all() and not np.delete(is_nan, 5, 0).any()


def test_copies_that_differ_between_warps_are_nan(kernel: SimulatedKernel) -> None:
    for form, spoils in ((FORMS[5], True), (FORMS[2], False)):  # FORMS[2] does not read the last byte of a row's scales
        drawn = draw(form, np.random.default_rng(SEED))
        outcome, out = run(kernel, form, drawn, spoiled=9)
        assert outcome.error == 0 and not outcome.report.get("findings"), outcome
        is_nan = np.isnan(out[:, : form.n].view(np.float32))
        assert is_nan[9].all() == spoils and not np.delete(is_nan, 9, 0).any()


@pytest.mark.parametrize(
    ("number", "change", "says"),
    [
        (0, 1 << 31, "bits 0-3, 6, 24-26 and 31 must be 0"),
        (5, 1 << 2, "sparse MMAs"),
        (0, 1 << 8, "must be e4m3 (0), e5m2 (1)"),
        (3, 4 << 7, "must be e2m1 (1)"),
        (3, 1 << 15, "only with K-major operands"),
        (3, 3 << 27, "M is 128"),
        (3, 1 << 23, "bit 23 may be 0 (ue4m3) only for kind::mxf4nvf4"),
        (5, 2 << 29, "with scale_vec::4X it must be 0"),
        (3, 1 << 4, "with scale_vec::2X it must be 0 or 2"),
    ],
)
def test_wrong_fields_of_the_instruction_descriptor(
    kernel: SimulatedKernel, number: int, change: int, says: str
) -> None:
    form = FORMS[number]
    outcome, _ = run(kernel, form, draw(form, np.random.default_rng(SEED)), instruction=form.instruction ^ change)
    assert says in str(outcome.report.get("findings")), outcome


@pytest.mark.parametrize(
    ("opcode", "operands", "says"),
    [
        ("kind::mxf4nvf4.block_scale", "[%0], %1, %1, %0, [%0], [%0], p", "is not simulated"),
        ("kind::mxf4.block_scale.scale_vec::4X", "[%0], %1, %1, %0, [%0], [%0], p", "is not simulated"),
        ("kind::mxf4.block_scale", "[%0], %1, %1, %0, %0, %0, p", "[scale-A], [scale-B]"),
        ("kind::mxf4.block_scale", "[%0], [%0], %1, %0, [%0], [%0], p", "A in shared memory"),
        ("kind::mxf4.block_scale", "[%0], %1, %1, %0, [%0], [%0], %0", "must be a predicate"),
    ],
)
def test_other_forms_are_refused_by_name(opcode: str, operands: str, says: str) -> None:
    statement = f'"{{ .reg .pred p; tcgen05.mma.cta_group::1.{opcode} {operands}; }}" :: "r"(d), "l"(a)'
    with pytest.raises(RewriteError) as caught:
        rewrite(f"__global__ void f(unsigned d, unsigned long long a) {{ asm volatile({statement}); }}")
    assert says in caught.value.message
