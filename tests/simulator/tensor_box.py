"""A reference for TMA copies of boxes, which computes them element by element as PTX and the CUDA guide describe them.

It is slow and simple, for comparison with the simulator. Dimension 0 is the innermost.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

#: The numpy type for each value of the enum CUtensorMapDataType. bfloat16 is the upper half of a float32.
TYPES = ["u1", "u2", "u4", "i4", "u8", "i8", "f2", "f4", "f8", "bf16"]
FLOATS = ("f2", "f4", "f8", "bf16")
REDUCTIONS = ["", "add", "min", "max", "inc", "dec", "and", "or", "xor"]


def storage(type_: str) -> np.dtype:
    """Return the numpy type in which elements are stored."""
    return np.dtype("u2" if type_ == "bf16" else type_)


@dataclass(frozen=True)
class Box:
    """A tensor map and the coordinates of a box. Sizes, boxes and coordinates are in elements, strides in bytes."""

    type: str
    size: tuple[int, ...]
    stride: tuple[int, ...]  # strides of dimensions 1 and higher
    box: tuple[int, ...]
    step: tuple[int, ...]
    at: tuple[int, ...]
    swizzle: int = 0  # 0: none; otherwise rows of 16 << swizzle bytes
    fill_nan: bool = False
    reduction: int = 0

    @property
    def item(self) -> int:
        """The size of an element in bytes."""
        return storage(self.type).itemsize

    @property
    def counts(self) -> tuple[int, ...]:
        """The number of elements that are copied along each dimension. The innermost dimension's step has no effect."""
        return (self.box[0], *(-(-b // max(1, s)) for b, s in zip(self.box[1:], self.step[1:], strict=True)))

    @property
    def bytes(self) -> int:
        """The size of the box in shared memory, in bytes."""
        return int(np.prod(self.counts)) * self.item

    @property
    def extent(self) -> int:
        """The size of the tensor in global memory in bytes, including gaps between rows."""
        strides = (self.item, *self.stride)
        return sum((n - 1) * s for n, s in zip(self.size, strides, strict=True)) + self.item

    def numbers(self) -> np.ndarray:
        """Return the array of numbers that the kernels of tensor_copies.cu read."""

        def five(values: tuple[int, ...]) -> list[int]:
            return [*values, *[1] * (5 - len(values))]

        head = [TYPES.index(self.type), len(self.size), self.swizzle, int(self.fill_nan), self.reduction]
        rest = [self.size, self.stride, self.box, self.step, self.at]
        return np.array(head + [n for part in rest for n in five(part)], dtype=np.int32)

    @property
    def written_extent(self) -> int:
        """The offset in bytes of the end of the memory that a store may write.

        The hardware writes rows up to the next multiple of 16 bytes, beyond the end of the tensor's row.
        """
        return -(-self.extent // 16) * 16

    def elements(self, start: int, written: bool = False) -> Iterator[tuple[int, int | None]]:
        """Yield for each element its byte offset in shared memory and in the tensor (None if it is outside).

        ``start`` is the shared-memory address of the box, on which the swizzle depends. If ``written``, a row ends at
        the next multiple of 16 bytes, as on an H200; this is not documented.
        """
        row = -(-self.size[0] * self.item // 16) * 16 // self.item if written else self.size[0]
        sizes = (row, *self.size[1:])
        strides = (self.item, *self.stride)
        steps = (1, *self.step[1:])
        order = itertools.product(*(range(n) for n in reversed(self.counts)))
        for linear, reversed_index in enumerate(order):
            index = reversed_index[::-1]
            at = [a + i * s for a, i, s in zip(self.at, index, steps, strict=True)]
            inside = all(0 <= a < n for a, n in zip(at, sizes, strict=True))
            address = start + linear * self.item
            address ^= (address >> 7 & (1 << self.swizzle) - 1) << 4
            yield address - start, sum(a * s for a, s in zip(at, strides, strict=True)) if inside else None

    def load(self, tensor: np.ndarray, start: int) -> np.ndarray:
        """Return the box's bytes in shared memory after a load from a tensor."""
        tile = np.zeros(self.bytes, dtype=np.uint8)
        nan = np.frombuffer((b"\xf7\x7f" * 4)[: self.item], dtype=np.uint8)
        for place, source in self.elements(start):
            if source is not None:
                tile[place : place + self.item] = tensor[source : source + self.item]
            elif self.fill_nan:
                tile[place : place + self.item] = nan
        return tile

    def store(self, tile: np.ndarray, tensor: np.ndarray, start: int) -> np.ndarray:
        """Return the tensor's bytes after the box is stored or reduced into them."""
        result = tensor.copy()
        for place, target in self.elements(start, written=True):
            if target is None:
                continue
            new = tile[place : place + self.item]
            if self.reduction:
                new = reduce(self.type, REDUCTIONS[self.reduction], result[target : target + self.item], new)
            result[target : target + self.item] = new
        return result


def _to_float(bits: np.ndarray) -> np.ndarray:
    return (bits.astype(np.uint32) << 16).view(np.float32)


def _to_bfloat16(values: np.ndarray) -> np.ndarray:
    """Round to the nearest bfloat16, ties to even. NaN is not supported."""
    bits = values.view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def reduce(type_: str, name: str, before: np.ndarray, operand: np.ndarray) -> np.ndarray:
    """Return the memory's contents, as bytes, after a reduction with an operand."""
    a, b = before.view(storage(type_)), operand.view(storage(type_))
    if type_ == "bf16":
        x, y = _to_float(a), _to_float(b)
        return _to_bfloat16({"add": np.add, "min": np.fmin, "max": np.fmax}[name](x, y)).view(np.uint8)
    functions = {
        "add": np.add,
        "min": np.fmin,
        "max": np.fmax,
        "inc": lambda p, q: np.where(p >= q, 0, p + np.uint32(1)).astype(p.dtype),
        "dec": lambda p, q: np.where((p == 0) | (p > q), q, p - np.uint32(1)).astype(p.dtype),
        "and": np.bitwise_and,
        "or": np.bitwise_or,
        "xor": np.bitwise_xor,
    }
    with np.errstate(over="ignore"):
        return np.asarray(functions[name](a, b), dtype=a.dtype).view(np.uint8)
