"""Distributions of inputs: small objects that a task names, and that fill a tensor with random numbers.

A distribution is any callable. It may have any of these parameters:

- ``shape`` is the tensor's shape, a tuple.
- ``dims`` is a dict of the case's sizes.
- ``generator`` is a torch.Generator on the CPU. Use it for every random number, so that a printed seed reproduces the
  run.
- ``inputs`` are the tensors drawn before this one, by name, in the order of the task.
- ``dtype`` is the torch dtype to which the tensor will be rounded.

It returns a CPU tensor of any dtype, with this shape or a shape that broadcasts to it. The tensor is then rounded to
the case's dtype; the reference sees the rounded values. An argument of the distributions below may be a number or an
expression over the sizes, such as ``integers(0, "vocabulary")``.

The defaults are not plain N(0, 1) everywhere, because the mean of many such numbers is nearly zero, so an output of
zeros would be nearly right. With an offset per channel and larger queries, a trivial kernel is far off.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import CodeType
from typing import Any

Number = float | int | str
"""A number, or a Python expression over the sizes of a case."""


def evaluate(expression: Number, dims: Mapping[str, Any]) -> Any:
    """Return the value of a number or of an expression over the sizes (``"heads * 2"``)."""
    if not isinstance(expression, str):
        return expression
    return eval(_compiled(expression), {"__builtins__": {}, "min": min, "max": max, "abs": abs, "int": int}, dict(dims))


@functools.lru_cache(maxsize=1024)
def _compiled(expression: str) -> CodeType:
    """Compile an expression. Cached, because all cases use the same few expressions."""
    return compile(expression.strip(), "<expression>", "eval")


def named(function: Callable[..., Any], available: Mapping[str, Any]) -> dict[str, Any]:
    """Return those of the available arguments that a function's parameters name; all if it has ``**kwargs``."""
    parameters = inspect.signature(function).parameters
    if any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values()):
        return dict(available)
    return {name: value for name, value in available.items() if name in parameters}


@dataclass(frozen=True)
class normal:
    """A normal distribution. ``channel_offset``: the deviation of a random constant added per channel (last axis)."""

    scale: Number = 1.0
    mean: Number = 0.0
    channel_offset: Number = 0.0

    def __call__(self, shape: tuple[int, ...], dims: Mapping[str, Any], generator: Any) -> Any:
        """Return a float32 tensor."""
        import torch

        values = torch.randn(shape, generator=generator) * float(evaluate(self.scale, dims))
        values += float(evaluate(self.mean, dims))
        offset = float(evaluate(self.channel_offset, dims))
        if offset and shape:
            values += torch.randn(shape[-1:], generator=generator) * offset
        return values


@dataclass(frozen=True)
class uniform:
    """A uniform distribution between two numbers."""

    low: Number = 0.0
    high: Number = 1.0

    def __call__(self, shape: tuple[int, ...], dims: Mapping[str, Any], generator: Any) -> Any:
        """Return a float32 tensor."""
        import torch

        low, high = float(evaluate(self.low, dims)), float(evaluate(self.high, dims))
        return torch.rand(shape, generator=generator) * (high - low) + low


@dataclass(frozen=True)
class integers:
    """Integers from ``low`` up to, but excluding, ``high``."""

    low: Number = 0
    high: Number = 2

    def __call__(self, shape: tuple[int, ...], dims: Mapping[str, Any], generator: Any) -> Any:
        """Return an int64 tensor."""
        import torch

        low, high = int(evaluate(self.low, dims)), int(evaluate(self.high, dims))
        return torch.randint(low, max(high, low + 1), shape, generator=generator)


@dataclass(frozen=True)
class constant:
    """The same number everywhere."""

    value: Number = 0.0

    def __call__(self, shape: tuple[int, ...], dims: Mapping[str, Any]) -> Any:
        """Return a float64 tensor."""
        import torch

        return torch.full(shape, float(evaluate(self.value, dims)), dtype=torch.float64)


@dataclass(frozen=True)
class computed:
    """An input computed from inputs drawn before it, such as a log-sum-exp of queries and keys or packed weights.

    The function gets the inputs and sizes that it names, floating-point tensors as float64 and integers as int64.
    """

    function: Callable[..., Any]

    def __call__(self, dims: Mapping[str, Any], inputs: Mapping[str, Any]) -> Any:
        """Return the tensor that the function computes, in the dtype that it returns."""
        import torch

        upcast = {
            name: tensor.to(torch.float64) if tensor.is_floating_point() else tensor.to(torch.int64)
            for name, tensor in inputs.items()
        }
        return self.function(**named(self.function, {**dims, **upcast}))


@dataclass(frozen=True)
class between:
    """A random size, drawn for every run from ``low`` to ``high``, both included."""

    low: int
    high: int

    def choose(self, random: Any) -> int:
        """Return one of the sizes, by a ``random.Random``."""
        return random.randint(self.low, self.high)


@dataclass(frozen=True, init=False)
class one_of:
    """A random size or flag, drawn for every run from a list."""

    values: tuple[Any, ...]

    def __init__(self, *values: Any) -> None:
        object.__setattr__(self, "values", values)

    def choose(self, random: Any) -> Any:
        """Return one of the values, by a ``random.Random``."""
        return random.choice(self.values)
