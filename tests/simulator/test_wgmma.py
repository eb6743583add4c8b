"""Tests of wgmma: each form agrees bit for bit with a reference that models layouts, fragments and rounding."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from grader.execution.build.build import compile_kernel
from grader.setup.errors import BuildError
from grader.verdict.wording.findings import advice, message
from tests.seeds import SEED
from tests.simulator.corpus_kernels import CORPUS, CorpusFile, Simulation
from tests.simulator.formats import FORMATS, product, toward_zero
from tests.simulator.harness import KERNELS, SimulatedKernel
from tests.simulator.wgmma_kernels import LINES, Form, Layout, accumulators, source_of, words_of

FLOATS = [("f32", "f16", "f16"), ("f16", "f16", "f16"), ("f32", "bf16", "bf16"), ("f32", "tf32", "tf32")]
FLOATS += [(d, a, b) for d in ("f32", "f16") for a in ("e4m3", "e5m2") for b in ("e4m3", "e5m2")]
INTEGERS = [("s32", a, b) for a in ("s8", "u8") for b in ("s8", "u8")]

SHAPES = [Form(n, "f32", "bf16", "bf16") for n in range(8, 257, 8)]
TYPES = [Form(24, *types, from_registers=r) for types in FLOATS + INTEGERS for r in (False, True)]
TYPES += [Form(32, "s32", "s8", "u8", saturates=True), Form(16, "f16", "f16", "f16")]
TRANSPOSED = [
    Form(n, "f32", type_, type_, transpose_a=ta, transpose_b=tb)
    for n, type_ in ((128, "bf16"), (40, "f16"))
    for ta in (False, True)
    for tb in (False, True)
]
FROM_REGISTERS = [Form(128, "f32", t, t, from_registers=True, transpose_b=tb) for t in ("bf16", "f16") for tb in (0, 1)]
SIGNS = [Form(16, "f32", "f16", "f16", scale_a=a, scale_b=b) for a, b in ((-1, 1), (1, -1), (-1, -1))]
SIGNS += [Form(16, "f32", "e4m3", "e5m2", scale_a=-1), Form(16, "f32", "tf32", "tf32", scale_b=-1)]
IMMEDIATE = [
    Form(8, "f32", "bf16", "bf16", immediate=i, constant=constant) for i in (0, 1) for constant in (False, True)
]
FORMS = list(dict.fromkeys(SHAPES + TYPES + TRANSPOSED + FROM_REGISTERS + SIGNS + IMMEDIATE))
ROOT = Path(__file__).parents[2]
NVCC = pytest.mark.skipif(not shutil.which("nvcc"), reason="no nvcc")


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("wgmma") / "forms.cu"
    path.write_text(source_of(FORMS))
    return path


@pytest.fixture(scope="module", params=[False, True], ids=["plain", "checked"])
def kernel(request: pytest.FixtureRequest, path: Path) -> SimulatedKernel:
    return SimulatedKernel(path, checks=request.param)


# ---------------------------------------------------------------------------------------------------------- reference


def eight_bits(type_: str) -> np.ndarray:
    """Return the value of each code of an 8-bit format."""
    return FORMATS[type_].values()


def draw(type_: str, shape: tuple[int, int], random: np.random.Generator) -> np.ndarray:
    """Return random elements of a type, as they are stored in memory."""
    if type_ in ("s8", "u8"):
        return random.integers(0, 256, shape).astype(np.uint8)
    if type_ in ("e4m3", "e5m2"):
        usable = np.flatnonzero(np.isfinite(eight_bits(type_)))
        return random.choice(usable, shape).astype(np.uint8)
    numbers = (random.standard_normal(shape) * 2.0 ** random.integers(-12, 8, shape)).astype(np.float32)
    if type_ == "f16":
        return numbers.astype(np.float16)
    return numbers if type_ == "tf32" else (numbers.view(np.uint32) >> 16).astype(np.uint16)


def numbers(elements: np.ndarray, type_: str) -> np.ndarray:
    """Return the values that tensor cores use for elements."""
    if type_ in ("e4m3", "e5m2"):
        return eight_bits(type_)[elements]
    if type_ == "s8":
        return elements.view(np.int8).astype(np.float64)
    if type_ == "bf16":
        return (elements.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    if type_ == "tf32":
        return (elements.view(np.uint32) & ~np.uint32(0x1FFF)).view(np.float32).astype(np.float64)
    return elements.astype(np.float64)


def aligned_sum(left: np.ndarray, right: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Return the sums of c and the products, each cut to 14 bits below the largest exponent among them."""
    terms = np.concatenate([left[:, None, :] * right[None, :, :], c[:, :, None]], axis=2)
    _, exponent = np.frexp(np.abs(terms).max(axis=2))  # terms are fractions in [1/2, 1) times 2^exponent
    unit = 2.0 ** (exponent - 14)
    return (np.trunc(terms / unit[:, :, None]).sum(axis=2) * unit).astype(np.float32)


def expected(form: Form, a: np.ndarray, b: np.ndarray, c: np.ndarray, adds: int) -> np.ndarray:
    """Return D [64, n]: products are summed in float64, one after another, and rounded once at the end."""
    left, right = form.scale_a * numbers(a, form.a), form.scale_b * numbers(b, form.b)
    if form.a in ("e4m3", "e5m2") and form.d == "f32":
        return aligned_sum(left, right, c.astype(np.float64) * (adds != 0))
    total = product(left, right)
    if adds:
        total += c.astype(np.float64)
    if form.d == "s32":
        if form.saturates:
            return np.clip(total, -(2**31), 2**31 - 1).astype(np.int64).astype(np.int32)
        return (total.astype(np.int64) & 0xFFFFFFFF).astype(np.uint32).view(np.int32)
    if form.d == "f16":
        with np.errstate(over="ignore"):
            return total.astype(np.float16)
    return toward_zero(total)


def layouts(mn_major: bool, rows: int, k_bytes: int = 32) -> list[Layout]:
    """Return layouts of an operand with different swizzles, strides and start offsets."""
    found = []
    for swizzle, line in LINES.items():
        if mn_major:
            across = line // 2
            groups = -(-rows // across)
            if line == 16:
                found += [
                    Layout(swizzle, True, leading=128 * groups, stride=128),
                    Layout(swizzle, True, 128, 256, 48),
                ]
            else:
                found += [
                    Layout(swizzle, True, leading=16 * line, stride=8 * line),
                    Layout(swizzle, True, leading=8 * line, stride=8 * line * groups, start=1024),
                ]
        elif line == 16:
            found += [Layout(swizzle, False, 128, 256), Layout(swizzle, False, 16 * rows, 128, start=80)]
        else:
            # Tiles with one or several swizzled lines per row, and every start offset along k.
            found += [Layout(swizzle, False, 16, 8 * line, start) for start in range(0, line, k_bytes)]
            found += [Layout(swizzle, False, 0, 16 * line, start=2048)]
    return found


def run(
    kernel: SimulatedKernel, form: Form, layout_a: Layout, layout_b: Layout, random: np.random.Generator, adds: int = 1
) -> None:
    a, b = draw(form.a, (64, form.k), random), draw(form.b, (form.n, form.k), random)
    if form.d == "s32":
        c = random.integers(-(2**31), 2**31, (64, form.n)).astype(np.int32)
    else:
        c = random.standard_normal((64, form.n)).astype({"f32": np.float32, "f16": np.float16}[form.d])
    image = random.integers(0, 256, 192 * 1024).astype(np.uint8)
    out = multiplied(kernel, form, layout_a, layout_b, a, b, c, adds, image)
    if form.immediate is not None:
        adds = form.immediate
    np.testing.assert_array_equal(out, accumulators(expected(form, a, b, c, adds), form.d))


def multiplied(
    kernel: SimulatedKernel,
    form: Form,
    layout_a: Layout,
    layout_b: Layout,
    a: np.ndarray,
    b: np.ndarray,
    c: np.ndarray,
    adds: int,
    image: np.ndarray,
) -> np.ndarray:
    """Return the accumulators of a wgmma whose operands are placed in an image of shared memory."""
    half = 96 * 1024
    if not form.from_registers:
        layout_a.place(image[:half], a)
    layout_b.place(image[half:], b)
    out = np.zeros_like(accumulators(c, form.d))
    outcome = kernel(
        f"run_{form.name}", image.view(np.int32), image.size // 4, layout_a.bits, layout_a.start, layout_b.bits,
        half + layout_b.start, words_of(a) if form.from_registers else np.zeros((128, 4), np.int32),
        accumulators(c, form.d), out, adds,
    )  # fmt: skip
    assert outcome.error == 0 and not outcome.report.get("findings"), outcome
    return out


# -------------------------------------------------------------------------------------------------------------- forms


@pytest.mark.parametrize("form", FORMS, ids=lambda f: f.name)
def test_each_form_agrees_with_the_reference(kernel: SimulatedKernel, form: Form) -> None:
    random = np.random.default_rng([SEED, FORMS.index(form)])
    a, b = layouts(form.transpose_a, 64)[-1], layouts(bool(form.transpose_b), form.n)[-1]
    for adds in (0, 1):
        run(kernel, form, a, b, random, adds)


@pytest.mark.parametrize("form", TRANSPOSED + FROM_REGISTERS, ids=lambda f: f.name)
def test_every_layout_gives_the_expected_product(kernel: SimulatedKernel, form: Form) -> None:
    random = np.random.default_rng([SEED, FORMS.index(form)])
    of_a, of_b = layouts(form.transpose_a, 64), layouts(bool(form.transpose_b), form.n)
    for i in range(max(len(of_a), len(of_b))):
        run(kernel, form, of_a[i % len(of_a)], of_b[i % len(of_b)], random)


def test_sums_of_8_bit_products_keep_14_bits(kernel: SimulatedKernel) -> None:
    """Check that adding 1 changes a sum of 2^13, but not of 2^14, whose 14 bits do not reach down to 1."""
    form = Form(24, "f32", "e4m3", "e4m3")
    layout, image = Layout("32", False, 0, 256), np.zeros(192 * 1024, np.uint8)
    one = 0x38
    for start, more in ((2.0**13, 32.0), (2.0**14, 0.0)):
        c = np.full((64, 24), start, np.float32)
        a, b = np.full((64, 32), one, np.uint8), np.full((24, 32), one, np.uint8)
        np.testing.assert_array_equal(multiplied(kernel, form, layout, layout, a, b, c, 1, image), start + more)


@pytest.mark.parametrize("type_", ["e4m3", "e5m2"])
def test_every_code_of_8_bits_is_decoded(kernel: SimulatedKernel, type_: str) -> None:
    """Check all codes: A contains them, and B is a part of the identity matrix, which copies them to D."""
    form = Form(24, "f32", type_, type_)
    one = {"e4m3": 0x38, "e5m2": 0x3C}[type_]
    layout, image = Layout("32", False, 0, 256), np.zeros(192 * 1024, np.uint8)
    seen: dict[int, float] = {}
    for first in range(0, 32, 24):
        codes = np.arange(64 * 32).reshape(64, 32).astype(np.uint8)
        b = np.zeros((24, 32), np.uint8)
        for column in range(min(24, 32 - first)):
            b[column, first + column] = one
        # NaN and infinity propagate along k, so each row has at most one of them.
        strange = ~np.isfinite(eight_bits(type_)[codes])
        for row in range(64):
            for k in np.flatnonzero(strange[row]):
                codes[row, k] = 0
        out = multiplied(kernel, form, layout, layout, codes, b, np.zeros((64, 24), np.float32), 0, image)
        want = np.zeros((64, 24))
        count = min(24, 32 - first)
        want[:, :count] = eight_bits(type_)[codes][:, first : first + count]
        np.testing.assert_array_equal(out, accumulators(want, "f32"))
        seen |= dict.fromkeys(codes[:, first : first + count].ravel().tolist(), 0.0)
    finite = np.flatnonzero(np.isfinite(eight_bits(type_)))
    assert set(finite) <= set(seen)


def test_nan_and_infinity_propagate(kernel: SimulatedKernel) -> None:
    form = Form(24, "f32", "e5m2", "e4m3")
    layout = Layout("32", False, 0, 256)
    a, b = np.zeros((64, 32), np.uint8), np.zeros((24, 32), np.uint8)
    a[3, 0], a[4, 1], b[5, 2] = 0x7C, 0x7D, 0xFF  # infinity, and NaN in both formats
    a[:, 2] = 0x3C
    b[:, 0] = 0xB8  # -1
    image = np.zeros(192 * 1024, np.uint8)
    out = multiplied(kernel, form, layout, layout, a, b, np.zeros((64, 24), np.float32), 0, image)
    want = np.zeros((64, 24))
    want[3], want[4], want[:, 5] = -np.inf, np.nan, np.nan
    np.testing.assert_array_equal(out, accumulators(want, "f32"))


@pytest.mark.parametrize("from_registers", [False, True])
def test_wgmma_is_counted(path: Path, from_registers: bool) -> None:
    kernel = SimulatedKernel(path, checks=True)
    form = Form(128, "f32", "bf16", "bf16", from_registers)
    layout, out = Layout("128", False, 0, 1024), np.zeros((128, 64), np.float32)
    outcome = kernel(f"run_{form.name}", np.zeros(16384, np.int32), 16384, layout.bits, 0, layout.bits, 32768,
                     np.zeros((128, 4), np.int32), np.zeros((128, 64), np.float32), out, 0)  # fmt: skip
    (counted,) = outcome.report["kernels"]
    assert [n for _, n in counted["tensor_sites"]] == [2 * 64 * 128 * 16]
    assert [n for _, n in counted["operand_sites"]] == [((0 if from_registers else 64) + 128) * 32]


@pytest.mark.parametrize("mn_major", [False, True])
def test_no_layout_has_bank_conflicts(mn_major: bool) -> None:
    """Check that the 8 pieces of 16 bytes of each core matrix are in different groups of four banks.

    A core matrix then takes one wavefront.
    """
    for layout in layouts(mn_major, 64):
        for group in range(8):
            for k in range(2):
                pieces = [
                    layout.offset(8 * group, 2 * (8 * k + i), 16)
                    if mn_major
                    else layout.offset(8 * group + i, 16 * k, 16)
                    for i in range(8)
                ]
                assert len({at // 16 % 8 for at in pieces}) == 8, layout


# --------------------------------------------------------------------------------------------------------- asynchrony


def of_the_corpus(name: str, clean: bool, tmp_path: Path) -> SimulatedKernel:
    """Return a kernel of the corpus without checks, so that a fault is visible only in the results."""
    file = tmp_path / f"{'clean' if clean else 'faulty'}.cu"
    file.write_text(("#define CLEAN\n" if clean else "") + CorpusFile.read(CORPUS / f"{name}.cu").text())
    return SimulatedKernel(file)


def results(name: str, clean: bool, tmp_path: Path) -> np.ndarray:
    x, out = np.arange(1, 513).astype(np.float32), np.zeros(512, np.float32)
    assert of_the_corpus(name, clean, tmp_path)("run", x, out, 512).error == 0
    return out


def test_accumulators_are_nan_until_the_wait(tmp_path: Path) -> None:
    name = "synccheck/wgmma_accumulators_read_too_early"
    assert np.isnan(results(name, False, tmp_path)).all()
    assert np.isfinite(results(name, True, tmp_path)).all()


def test_operands_are_read_when_wgmma_completes(tmp_path: Path) -> None:
    name = "racecheck/wgmma_operands_overwritten"
    assert (results(name, False, tmp_path) != results(name, True, tmp_path)).any()


def test_accumulators_that_changed_end_the_launch(tmp_path: Path) -> None:
    kernel = of_the_corpus("synccheck/wgmma_accumulators_rescaled_too_early", False, tmp_path)
    outcome = kernel("run", np.ones(512, np.float32), np.zeros(512, np.float32), 512)
    assert outcome.error == 719  # cudaErrorLaunchFailure
    (finding,) = outcome.report["findings"]
    assert "before wgmma.wait_group" in finding["payload"]["reason"]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("synccheck/wgmma_accumulators_read_too_early", "use of accumulators of a running wgmma"),
        ("synccheck/wgmma_fence_before_the_scaling", "there is no wgmma_fence between the read of an accumulator at"),
        ("synccheck/wgmma_without_fence", "there is no wgmma_fence between the threads' writes to the accumulators"),
        ("synccheck/wgmma_at_exit", "the block ends before a warp has waited"),
        ("racecheck/wgmma_operands_overwritten", "may still be reading"),
        ("racecheck/wgmma_without_proxy_fence", "missing proxy fence: wgmma (wgmma.mma_async) reads"),
        ("memcheck/wgmma_descriptor_past_end", "16-byte read by wgmma (wgmma.mma_async)"),
    ],
)
def test_texts_of_findings(name: str, says: str) -> None:
    file = CorpusFile.read(CORPUS / f"{name}.cu")
    kernel = compile_kernel(file.path, "cpu", checks=True, text=file.text())
    _, report, _ = Simulation(kernel.libsim).run(kernel, file.n)
    assert says in message(report.findings[0]) and advice(report.findings[0])


# ------------------------------------------------------------------------------------------------------------ refusals


@pytest.mark.parametrize(
    ("statement", "says"),
    [
        ("m64n12k16.f32.f16.f16 {%0, %1}, %2, %3, p, 1, 1, 0, 0", "is not simulated"),
        ("m64n264k16.f32.f16.f16 {%0, %1}, %2, %3, p, 1, 1, 0, 0", "is not simulated"),
        ("m64n8k8.f32.f16.f16 {%0, %1}, %2, %3, p, 1, 1, 0, 0", "is not simulated"),
        ("m64n8k16.bf16.bf16.bf16 {%0, %1}, %2, %3, p, 1, 1, 0, 0", "is not simulated"),
        ("m64n40k32.s32.s8.s8 {%0, %1}, %2, %3, p", "is not simulated"),
        ("m64n8k16.f32.f16.f16.satfinite {%0, %1}, %2, %3, p, 1, 1, 0, 0", "is not simulated"),
        ("m64n8k16.f32.f16.f16 {%0, %1}, %2, %3, p, 1, 1", "4 constants"),
        ("m64n8k8.f32.tf32.tf32 {%0, %1}, %2, %3, p, 1, 1, 0, 0", "2 constants"),
        ("m64n8k16.f32.f16.f16 {%0, %1}, %2, %3, %4, 1, 1, 0, 0", "predicate"),
        ("m64n8k16.f32.f16.f16 {%0, %1}, %2, %3, p, 1, 1, 0, 0", "another number of accumulators"),
        ("m64n8k16.f16.f16.f16 {%0, %1}, %2, %3, p, 2, 1, 0, 0", "1 or -1"),
        ("m64n8k16.f16.f16.f16 {%0, %1}, %2, %3, p, 1, 1, 0, 2", "0 or 1"),
    ],
)
def test_invalid_forms_are_refused(tmp_path: Path, statement: str, says: str) -> None:
    file = tmp_path / "form.cu"
    file.write_text(f"""__global__ void f(unsigned long long a, unsigned long long b, int adds) {{
    unsigned d[2] = {{}};
    asm volatile("{{ .reg .pred p; setp.ne.b32 p, %4, 0; wgmma.mma_async.sync.aligned.{statement}; }}"
                 : "+r"(d[0]), "+r"(d[1]) : "l"(a), "l"(b), "r"(adds));
}}
extern "C" void run() {{ f<<<1, 128>>>(0, 0, 0); }}
""")
    with pytest.raises(BuildError, match=re.escape(says)):
        compile_kernel(file, "cpu")


# ---------------------------------------------------------------------------------------------------------------- nvcc


def nvcc(*arguments: str) -> str:
    target = ["-gencode=arch=compute_90a,code=sm_90a", "-I", str(ROOT / "lessons")]
    command = ["nvcc", "-std=c++17", *target, "-cubin", *arguments, "-o", "/dev/null"]
    done = subprocess.run(command, capture_output=True, text=True)
    return "" if done.returncode == 0 else done.stdout + done.stderr


@NVCC
def test_nvcc_takes_every_form(path: Path) -> None:
    assert nvcc(str(path)) == nvcc(str(KERNELS / "wgmma_product.cu")) == ""
