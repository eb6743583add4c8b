"""Source text of kernels with one wgmma.mma_async, and a reference for the layouts of its operands in shared memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

BITS = {"f16": 16, "bf16": 16, "tf32": 32, "e4m3": 8, "e5m2": 8, "s8": 8, "u8": 8}
LINES = {"none": 16, "32": 32, "64": 64, "128": 128}
MODES = {"none": 0, "128": 1, "64": 2, "32": 3}


@dataclass(frozen=True)
class Form:
    """The form of a wgmma instruction.

    ``from_registers``: A is in registers. ``transpose_*``: elements along M or N are contiguous.
    """

    n: int
    d: str
    a: str
    b: str
    from_registers: bool = False
    transpose_a: bool = False
    transpose_b: bool = False
    scale_a: int = 1
    scale_b: int = 1
    immediate: int | None = None
    """The value of scale-d if it is an immediate, otherwise None."""
    constant: bool = False
    """True if the immediate is an operand of the asm statement with the constraint "n"."""
    saturates: bool = False

    @property
    def k(self) -> int:
        return 256 // BITS[self.a]

    @property
    def registers(self) -> int:
        return self.n // (4 if self.d == "f16" else 2)

    @property
    def opcode(self) -> str:
        clamp = ".satfinite" if self.saturates else ""
        return f"wgmma.mma_async.sync.aligned.m64n{self.n}k{self.k}.{self.d}.{self.a}.{self.b}{clamp}"

    @property
    def name(self) -> str:
        parts = [f"n{self.n}", self.d, self.a, self.b, "r" if self.from_registers else "s"]
        parts += ["ta"] * self.transpose_a + ["tb"] * self.transpose_b + ["na"] * (self.scale_a < 0)
        parts += ["nb"] * (self.scale_b < 0) + [f"i{self.immediate}"] * (self.immediate is not None)
        parts += ["operand"] * self.constant
        return "_".join(parts + ["sat"] * self.saturates)

    def statement(self, accumulators: str = "d") -> str:
        """Return the asm statement, with the variables a0 ... a3 or a, b and adds."""
        kind, count = ("f" if self.d == "f32" else "r"), self.registers
        a_count = 4 if self.from_registers else 1
        listed = ", ".join(f"%{i}" for i in range(count))
        a = "{" + ", ".join(f"%{count + i}" for i in range(4)) + "}" if self.from_registers else f"%{count}"
        b, flag = f"%{count + a_count}", f"%{count + a_count + 1}"
        constants = []
        if self.d != "s32":
            constants += [self.scale_a, self.scale_b]
        if self.a in ("f16", "bf16"):
            constants += ([] if self.from_registers else [int(self.transpose_a)]) + [int(self.transpose_b)]
        adds = "p" if self.immediate is None else f"%{count + a_count + 2}" if self.constant else str(self.immediate)
        last = f', "n"({self.immediate})' if self.constant else ""
        text = f"{self.opcode} {{{listed}}}, {a}, {b}, " + ", ".join([adds, *map(str, constants)])
        outputs = ", ".join(f'"+{kind}"({accumulators}[{i}])' for i in range(count))
        inputs = ", ".join(f'"r"(a{i})' for i in range(4)) if self.from_registers else '"l"(a)'
        return (
            f'asm volatile("{{ .reg .pred p; setp.ne.b32 p, {flag}, 0; {text}; }}" : {outputs} : {inputs}, "l"(b), '
            f'"r"(adds){last});'
        )

    def kernel(self) -> str:
        """Return a kernel of one warpgroup, and its launcher ``run_<name>``.

        Its parameters are the contents of shared memory (``image``), descriptors without addresses (``a_bits``,
        ``b_bits``), byte offsets of the operands (``a_start``, ``b_start``), A in registers as [128][4]
        (``registers``), and accumulators as [128][registers] (``c``, ``out``).
        """
        held = "float" if self.d == "f32" else "int"
        count = self.registers
        loads = (
            "unsigned a0 = registers[4 * threadIdx.x], a1 = registers[4 * threadIdx.x + 1],"
            " a2 = registers[4 * threadIdx.x + 2], a3 = registers[4 * threadIdx.x + 3];"
            if self.from_registers
            else "uint64_t a = a_bits | (start + a_start) >> 4;"
        )
        arguments = (
            f"const int* image, int words, long long a_bits, int a_start, long long b_bits, int b_start, "
            f"const int* registers, const {held}* c, {held}* out, int adds"
        )
        return f"""
__global__ void wgmma_{self.name}({arguments}) {{
    extern __shared__ __align__(1024) int memory[];
    for (int i = threadIdx.x; i < words; i += 128) memory[i] = image[i];
    {held} d[{count}];
    for (int i = 0; i < {count}; ++i) d[i] = c[{count} * threadIdx.x + i];
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    const uint64_t start = __cvta_generic_to_shared(memory);
    {loads}
    uint64_t b = b_bits | (start + b_start) >> 4;
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    {self.statement()}
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    for (int i = 0; i < {count}; ++i) out[{count} * threadIdx.x + i] = d[i];
}}
extern "C" void run_{self.name}({arguments}, cudaStream_t stream) {{
    cudaFuncSetAttribute(wgmma_{self.name}, cudaFuncAttributeMaxDynamicSharedMemorySize, 200 * 1024);
    wgmma_{self.name}<<<1, 128, 4 * words, stream>>>(image, words, a_bits, a_start, b_bits, b_start, registers, c, out, adds);
}}
"""  # noqa: E501


def source_of(forms: list[Form]) -> str:
    return "#include <cuda_runtime.h>\n#include <cstdint>\n" + "".join(form.kernel() for form in forms)


@dataclass(frozen=True)
class Layout:
    """The layout of an operand in shared memory: `rows` elements along M or N, from offset `start`."""

    swizzle: str
    mn_major: bool
    leading: int
    stride: int
    start: int = 0

    @property
    def bits(self) -> int:
        """The descriptor without the address."""
        value = (self.leading >> 4) << 16 | (self.stride >> 4) << 32 | MODES[self.swizzle] << 62
        return value - (1 << 64) if value >= 1 << 63 else value

    def offset(self, row: Any, byte_k: Any, bits: int) -> Any:
        """Return the byte offsets of elements (row, k). ``byte_k``: k in bytes. MN-major elements have 16 bits."""
        line = LINES[self.swizzle]
        if not self.mn_major:
            step = self.leading if line == 16 else 16
            at = row % 8 * line + row // 8 * self.stride + byte_k // 16 * step + byte_k % 16
        else:
            k, across = byte_k // 2, line // 2  # elements per swizzled line
            if line == 16:
                at = row // 8 * self.stride + k // 8 * self.leading + k % 8 * 16 + row % 8 * 2
            else:
                at = row // across * self.leading + k // 8 * self.stride + k % 8 * line + row % across * 2
        at += self.start
        mask = {"none": 0, "32": 1, "64": 3, "128": 7}[self.swizzle]
        return at ^ (((at >> 7) & mask) << 4)

    def place(self, image: np.ndarray, elements: np.ndarray) -> None:
        """Write elements [rows, k] into the bytes of the image."""
        rows, k = elements.shape
        size = elements.itemsize
        raw = np.ascontiguousarray(elements).view(np.uint8).reshape(rows, k, size)
        at = self.offset(np.arange(rows)[:, None], size * np.arange(k), 8 * size)
        image[at[..., None] + np.arange(size)] = raw


def words_of(a: np.ndarray) -> np.ndarray:
    """Return A [64, 32 bytes] as the registers of its fragments, [128][4].

    Lane i has four registers: rows i / 4 and i / 4 + 8, and the second 16 bytes of the same rows.
    """
    words = np.ascontiguousarray(a).view(np.uint8).reshape(64, 32).view(np.int32)
    registers = np.zeros((128, 4), np.int32)
    for thread in range(128):
        row = thread // 32 * 16 + thread % 32 // 4
        for r in range(4):
            registers[thread, r] = words[row + r % 2 * 8, r // 2 * 4 + thread % 4]
    return registers


def accumulators(matrix: np.ndarray, d: str) -> np.ndarray:
    """Return [64, n] in threads' registers, [128][registers]: rows i / 4 and i / 4 + 8, two columns of every 8."""
    n = matrix.shape[1]
    dtype = {"f32": np.float32, "f16": np.float16, "s32": np.int32}[d]
    warps = matrix.reshape(4, 2, 8, n // 8, 4, 2)  # warp, row half, i / 4, group of columns, i % 4, column of the pair
    held = np.ascontiguousarray(warps.transpose(0, 2, 4, 3, 1, 5).reshape(128, n // 2), dtype)
    return held.view(np.int32) if d == "f16" else held
