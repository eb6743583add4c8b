"""Reference models of the simulator's arithmetic: floating-point formats of 8, 6 and 4 bits, and sums of products."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

NEAREST, ZERO = 0, 1


@dataclass(frozen=True)
class Format:
    """A signed floating-point format, as its specification defines it."""

    number: int
    exponent_bits: int
    mantissa_bits: int
    largest: float
    infinity: int | None = None
    nan: int | None = None

    @property
    def sign(self) -> int:
        return 1 << (self.exponent_bits + self.mantissa_bits)

    def table(self) -> list[float]:
        """Return the value of each bit pattern with sign 0, from the definition of the format."""
        bias = 2 ** (self.exponent_bits - 1) - 1
        values = []
        for pattern in range(self.sign):
            exponent, mantissa = pattern >> self.mantissa_bits, pattern % (1 << self.mantissa_bits)
            hidden = 0 if exponent == 0 else 1
            values.append(2.0 ** (max(exponent, 1) - bias) * (hidden + mantissa / 2**self.mantissa_bits))
        return [v if v <= self.largest else np.inf if p == self.infinity else np.nan for p, v in enumerate(values)]

    def values(self) -> np.ndarray:
        """Return the value of each bit pattern."""
        return np.array(self.table() + [-value for value in self.table()])

    def encode(self, value: float, saturates: bool, rounding: int, double: bool) -> int:
        """Return the bit pattern to which a number is rounded, by a search in the table."""
        sign = self.sign if np.signbit(value) else 0
        finite = [v for v in self.table() if np.isfinite(v)]
        if np.isnan(value):
            if self.nan is None:
                return len(finite) - 1
            if double:  # NaN keeps its sign, and in e5m2 the upper two bits of its payload
                return sign | (0x7E if self.infinity else self.nan)
            return self.nan
        size = abs(value)
        below = sum(v <= size for v in finite) - 1
        if below == len(finite) - 1:
            next_value = finite[-1] + (finite[-1] - finite[-2])  # the next value, if there were a larger exponent
            up = rounding == NEAREST and _up(size, finite[-1], next_value, below)
            if not up or saturates or self.nan is None:
                return sign | below
            return sign | (self.nan if self.infinity is None else self.infinity)
        up = rounding == NEAREST and _up(size, finite[below], finite[below + 1], below)
        return sign | (below + up)


def _up(size: float, below: float, above: float, pattern: int) -> bool:
    """Return whether a number rounds up: it is nearer to `above`, or halfway and `above` is even."""
    return size > (below + above) / 2 or (size == (below + above) / 2 and pattern % 2 == 1)


FORMATS = {
    "e4m3": Format(0, 4, 3, 448.0, nan=0x7F),
    "e5m2": Format(1, 5, 2, 57344.0, infinity=0x7C, nan=0x7F),
    "e2m3": Format(3, 2, 3, 7.5),
    "e3m2": Format(4, 3, 2, 28.0),
    "e2m1": Format(5, 2, 1, 6.0),
}


def product(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return left times right transposed, in float64. The products are added one after another."""
    total = np.zeros((len(left), len(right)))
    for k in range(left.shape[1]):
        total += left[:, k, None] * right[None, :, k]
    return total


def toward_zero(exact: np.ndarray) -> np.ndarray:
    """Return float64 numbers as float32, rounded toward zero."""
    rounded = exact.astype(np.float32)
    away = np.abs(rounded.astype(np.float64)) > np.abs(exact)
    return np.where(away, np.nextafter(rounded, np.float32(0)), rounded)
