"""The memory files of one call: a sealed file with the inputs, and a file with poisoned and guarded outputs.

Poison is the content of an output before the call: random NaN or large numbers. Elements that a kernel does not write
keep it and are detected. Guards are random bytes around an output; a changed guard shows an out-of-bounds write.
"""

from __future__ import annotations

import fcntl
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from grader.course.task import Call
from grader.frontend.dtypes import DTYPES, ITEM_BYTES, torch_dtype
from grader.frontend.prototype import Parameter
from grader.setup.errors import GraderError

GUARD_BYTES = 4096
ALIGNMENT = 256
MOST_REPORT = 32 << 20
"""The maximum size of a report in bytes. It is twice the largest file that a sandboxed process can write."""

_ALL = -1
_POISON = {
    "f64": (~(1 << 51), 0x7FF << 52 | 1),
    "f32": (~(1 << 22), 0x7F800001),
    "f16": (~(1 << 9), 0x7C01),
    "bf16": (~(1 << 6), 0x7F81),
    "i64": (0x1FFFFFFFFFFFFFFF, 0x6000000000000000),
    "i32": (0x1FFFFFFF, 0x60000000),
    "u32": (0x1FFFFFFF, 0x60000000),
    "bool": (_ALL, 0x80),
}
"""Two masks for each dtype, with which the elements of an output are filled before the kernel runs.

An element is random bits, of which the first mask says which to keep; then the bits of the second mask are set. So a
floating-point number becomes a signaling NaN: the first bit of its fraction is 0. Arithmetic on a signaling NaN yields
a quiet NaN, so a kernel that adds to the output changes the bits. An integer becomes so large that, as an index, it is
far out of bounds.
"""


@dataclass(frozen=True)
class Place:
    """The position of a tensor in the input file or the output file."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    start: int
    bytes: int
    shift: int
    before: int = 0
    """The bytes between the launcher's pointer and the first element that exists: see ``Case.before``."""


@dataclass
class Buffers:
    """The memory files of one call, and the tensors' positions in them. Close it after the call."""

    inputs: dict[str, Place]
    outputs: dict[str, Place]
    input_file: int
    output_file: int
    report_file: int
    poison: bytes = b""
    """The contents of the output file before the call."""
    in_out: frozenset[str] = field(default_factory=frozenset)

    def close(self) -> None:
        """Free the memory."""
        for file in (self.input_file, self.output_file, self.report_file):
            if file >= 0:
                os.close(file)
        self.input_file = self.output_file = self.report_file = -1

    def __enter__(self) -> Buffers:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def files(self) -> list[int]:
        """The file descriptors, in the order in which a request sends them."""
        return [self.input_file, self.output_file, self.report_file]

    @property
    def where(self) -> str:
        """The words of a request that tell where the tensors are: none for files of host memory."""
        return ""

    def results(self) -> dict[str, Any]:
        """Return the outputs as tensors, by name."""
        content = self.snapshot()
        return {name: self.tensor(content, name) for name in self.outputs}

    def snapshot(self) -> bytes:
        """Return the current contents of the output file."""
        return _read_all(self.output_file, len(self.poison))

    def report(self) -> bytes:
        """Return the child's report; empty if it is larger than allowed."""
        size = os.fstat(self.report_file).st_size
        return _read_all(self.report_file, size) if size <= MOST_REPORT else b""

    def tensor(self, content: bytes, name: str) -> Any:
        """Return an output as a tensor, from the contents of the output file. A bool tensor is returned as uint8."""
        import torch

        place = self.outputs[name]
        dtype = torch.uint8 if place.dtype == "bool" else torch_dtype(place.dtype)
        if place.bytes == 0:
            return torch.empty(place.shape, dtype=dtype)
        part = bytearray(memoryview(content)[place.start : place.start + place.bytes])
        return torch.frombuffer(part, dtype=dtype).reshape(place.shape)

    def damaged_guards(self, content: bytes) -> dict[str, int]:
        """Return the outputs with a changed guard, each with the position of the first wrong write.

        The position counts elements past the end, from 0; it is negative for a write before the start.
        """
        damage = {}
        for name, place in self.outputs.items():
            before = slice(place.start - GUARD_BYTES, place.start)
            after = slice(place.start + place.bytes, place.start + place.bytes + GUARD_BYTES)
            item = ITEM_BYTES[place.dtype]
            if content[after] != self.poison[after]:
                first = next(i for i, (a, b) in enumerate(zip(content[after], self.poison[after])) if a != b)
                damage[name] = first // item
            elif content[before] != self.poison[before]:
                changed = [i for i, (a, b) in enumerate(zip(content[before], self.poison[before])) if a != b]
                damage[name] = -math.ceil((GUARD_BYTES - changed[-1]) / item)
        return damage

    def lines(self, call: Call, parameters: Sequence[Parameter]) -> list[str]:
        """Return the lines of a request that describe the launcher's arguments, in the order of its parameters."""
        lines = []
        for parameter in parameters:
            place = self.inputs.get(parameter.name) or self.outputs.get(parameter.name)
            if parameter.is_stream:
                lines.append("stream")
            elif place is not None:
                kind = "in" if parameter.name in self.inputs else "out"
                if parameter.name in self.in_out:
                    kind = "inout"
                elif parameter.name in call.scratch:
                    kind = "scratch"
                sizes = " ".join(map(str, [len(place.shape), *place.shape]))
                name = f"{kind} {parameter.name} {place.dtype} {place.start} {place.bytes} {place.shift} {sizes}"
                lines.append(f"{name} before {place.before}" if place.before else name)
            else:
                lines.append(f"value {pack(parameter, call.scalars[parameter.name]).hex()}")
        return lines


def places(call: Call) -> tuple[dict[str, Place], int, dict[str, Place], int]:
    """Lay out a call's inputs and outputs in their files; outputs have guards around them.

    Return the inputs' places, the size of the input file, the outputs' places and the size of the output file.
    """
    inputs: dict[str, Place] = {}
    outputs: dict[str, Place] = {}
    end = 0
    for name, tensor in call.tensors.items():
        if name in call.output_shapes:
            continue
        size = tensor.numel() * tensor.element_size()
        shift = call.case.offsets.get(name, 0) * tensor.element_size()
        before = call.before.get(name, 0) * tensor.element_size()
        inputs[name] = Place(name, call.tensor_dtypes[name], tuple(tensor.shape), end, size, shift, before)
        end = _align(end + size)
    input_bytes, end = end, 0
    for name, shape in call.output_shapes.items():
        dtype = call.output_dtypes[name]
        size = math.prod(shape) * ITEM_BYTES[dtype]
        start = _align(end + GUARD_BYTES)
        shift = call.case.offsets.get(name, 0) * ITEM_BYTES[dtype]
        before = call.before.get(name, 0) * ITEM_BYTES[dtype]
        outputs[name] = Place(name, dtype, shape, start, size, shift, before)
        end = start + size + GUARD_BYTES
    return inputs, input_bytes, outputs, end


def prepare(call: Call, quick: bool = False) -> Buffers:
    """Create the files of one call. With ``quick``, the poison repeats every MB, which saves time for large outputs."""
    inputs, input_bytes, outputs, output_bytes = places(call)
    input_file = _memfd("inputs", input_bytes)
    for name, place in inputs.items():
        _write_all(input_file, as_bytes(call.tensors[name]), place.start)
    fcntl.fcntl(input_file, fcntl.F_ADD_SEALS, _seals("SHRINK", "GROW", "WRITE", "SEAL"))

    poison = poisoned(outputs, output_bytes, quick)
    in_out = frozenset(name for name in call.output_shapes if name in call.tensors)
    for name in in_out:
        place = outputs[name]
        poison[place.start : place.start + place.bytes] = as_bytes(call.tensors[name])
    output_file = _memfd("outputs", output_bytes)
    _write_all(output_file, poison, 0)
    fcntl.fcntl(output_file, fcntl.F_ADD_SEALS, _seals("SHRINK", "GROW", "SEAL"))
    return Buffers(inputs, outputs, input_file, output_file, _memfd("report", 0), bytes(poison), in_out)


def as_bytes(tensor: Any) -> memoryview:
    """Return the bytes of a contiguous CPU tensor."""
    import torch

    if tensor.numel() == 0:
        return memoryview(b"")
    return memoryview(tensor.contiguous().reshape(-1).view(torch.uint8).numpy())


def pack(parameter: Parameter, value: Any) -> bytes:
    """Return the bytes of a number in the launcher's parameter type."""
    try:
        return bytes(DTYPES[parameter.dtype].value(value))
    except (ValueError, TypeError, OverflowError) as error:
        raise GraderError(f"{parameter.name} = {value!r} does not fit into {parameter.type}: {error}") from error


def poisoned(outputs: dict[str, Place], size: int, quick: bool) -> bytearray:
    """Return the first contents of the output file: NaN or large numbers in outputs, random bytes around them."""
    import numpy

    random = numpy.random.Generator(numpy.random.SFC64(int.from_bytes(os.urandom(16), "little")))
    block = min(size, 1 << 20) if quick else size
    content = bytearray(random.bytes(block))
    if block < size:
        content = (content * (size // block + 1))[:size]
    for place in outputs.values():
        bits = 8 * ITEM_BYTES[place.dtype]
        words = numpy.frombuffer(content, f"<u{bits // 8}", math.prod(place.shape), place.start)
        keep, add = (words.dtype.type(mask % (1 << bits)) for mask in _POISON.get(place.dtype, (_ALL, 0)))
        words &= keep
        words |= add
    return content


def poisoned_on(device: Any, outputs: dict[str, Place], size: int) -> Any:
    """Return the same as ``poisoned`` as a uint8 tensor on a device. Its size is a multiple of 4 bytes."""
    import torch

    generator = torch.Generator(device).manual_seed(int.from_bytes(os.urandom(7), "little"))
    random = torch.randint(-(1 << 31), 1 << 31, (-(-size // 4),), dtype=torch.int32, device=device, generator=generator)
    content = random.view(torch.uint8)
    kinds = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    for place in outputs.values():
        item = ITEM_BYTES[place.dtype]
        words = content[place.start : place.start + place.bytes].view(kinds[item])
        for mask, change in zip(_POISON.get(place.dtype, (_ALL, 0)), (words.bitwise_and_, words.bitwise_or_)):
            number = mask % (1 << 8 * item)
            change(number - (1 << 8 * item) if item > 1 and number >> (8 * item - 1) else number)
    return content


def _memfd(name: str, size: int) -> int:
    try:
        file = os.memfd_create(f"grader-{name}", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    except AttributeError as error:
        raise GraderError(
            "running kernels needs Linux (memfd_create)", "On other systems, use Docker or WSL."
        ) from error
    os.ftruncate(file, size)
    return file


def _seals(*names: str) -> int:
    seals = 0
    for name in names:
        seals |= getattr(fcntl, f"F_SEAL_{name}")
    return seals


def _write_all(file: int, content: Any, start: int) -> None:
    view = memoryview(content)
    while len(view):
        written = os.pwrite(file, view[: 1 << 30], start)
        view, start = view[written:], start + written


def _read_all(file: int, size: int) -> bytes:
    content = bytearray(size)
    view, start = memoryview(content), 0
    while start < size:
        read = os.preadv(file, [view[start : start + (1 << 30)]], start)
        if read == 0:
            break
        start += read
    return bytes(content)


def _align(place: int) -> int:
    return (place + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT
