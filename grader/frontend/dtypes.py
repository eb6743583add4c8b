"""A table of the element types of tensors and the types of scalar arguments, with their names in C++ and torch."""

from __future__ import annotations

import ctypes
import math
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

CValue = Any
"""A ctypes number. Its bytes are passed to C++."""


@dataclass(frozen=True)
class DType:
    """An element type or scalar type."""

    name: str
    """The course's short name: f32, i64..."""
    c_type: str
    """The name in C++, as an exercise's prototype spells it: float, long long..."""
    torch: str
    """The name of the torch dtype: float32, int64..."""
    bytes: int
    number: Callable[[Any], CValue] | None
    """The function that converts a Python number to a ctypes number; None if no parameter passes the type by value."""
    also: tuple[str, ...] = ()
    """Other torch dtypes that a pointer of this type accepts.

    Unsigned types accept signed tensors of the same size, because torch lacks many operations for unsigned types.
    """
    largest: float = math.inf
    """The largest finite number, for a floating-point type."""

    @property
    def tensors(self) -> tuple[str, ...]:
        """The names of all torch dtypes that a pointer of this type accepts."""
        return self.torch, *self.also

    @property
    def range(self) -> tuple[int, int] | None:
        """The smallest and the largest number of an integer type; None for other types."""
        bits = 8 * self.bytes
        return {"i": (-(1 << bits - 1), (1 << bits - 1) - 1), "u": (0, (1 << bits) - 1)}.get(self.name[0])

    def value(self, number: Any) -> CValue:
        """Convert a number to its C++ representation; raise ValueError or TypeError if the type cannot hold it."""
        if self.number is None:
            raise TypeError("this type cannot be passed by value")
        if self.range:
            low, high = self.range
            if not low <= (number := int(number)) <= high:
                raise ValueError(f"from {low} to {high}")
        elif self.name != "bool":
            number = float(number)
            if math.isfinite(number) and abs(number) > self.largest:
                raise ValueError(f"at most {self.largest:.6g}")
        return self.number(number)


def _half(number: float) -> ctypes.c_uint16:
    return ctypes.c_uint16.from_buffer_copy(struct.pack("=e", number))


def _bfloat16(number: float) -> ctypes.c_uint16:
    """Convert a number to bfloat16, rounded to nearest even."""
    (bits,) = struct.unpack("=I", struct.pack("=f", number))
    if math.isnan(number):
        return ctypes.c_uint16((bits >> 16) | 0x40)
    return ctypes.c_uint16((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16)


DTYPES = {
    dtype.name: dtype
    for dtype in (
        DType("f64", "double", "float64", 8, ctypes.c_double),
        DType("f32", "float", "float32", 4, ctypes.c_float, largest=3.4028234663852886e38),
        DType("f16", "__half", "float16", 2, _half, largest=65504.0),
        DType("bf16", "__nv_bfloat16", "bfloat16", 2, _bfloat16, largest=3.3895313892515355e38),
        DType("f8e4m3", "__nv_fp8_e4m3", "float8_e4m3fn", 1, None),
        DType("f8e5m2", "__nv_fp8_e5m2", "float8_e5m2", 1, None),
        DType("i64", "long long", "int64", 8, ctypes.c_int64),
        DType("u64", "unsigned long long", "uint64", 8, ctypes.c_uint64, ("int64",)),
        DType("i32", "int", "int32", 4, ctypes.c_int32),
        DType("u32", "unsigned int", "uint32", 4, ctypes.c_uint32, ("int32",)),
        DType("i16", "short", "int16", 2, ctypes.c_int16),
        DType("u16", "unsigned short", "uint16", 2, ctypes.c_uint16, ("int16",)),
        DType("i8", "signed char", "int8", 1, ctypes.c_int8),
        DType("u8", "unsigned char", "uint8", 1, ctypes.c_uint8),
        DType("bool", "bool", "bool", 1, ctypes.c_bool),
    )
}
ITEM_BYTES = {dtype.name: dtype.bytes for dtype in DTYPES.values()}
"""The size of an element in bytes, by the type's short name."""


def torch_dtype(name: str) -> Any:
    """Return the torch dtype for a short name, such as ``torch.float16`` for ``"f16"``."""
    import torch

    return getattr(torch, DTYPES[name].torch)
