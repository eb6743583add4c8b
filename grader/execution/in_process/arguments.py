"""Checks of a launcher's arguments against its prototype, and their conversion to C values.

The checks accept any object that behaves like a torch tensor, and do not import torch.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from grader.frontend.dtypes import DTYPES
from grader.frontend.prototype import Parameter, Prototype
from grader.setup.errors import GraderError


class ArgumentError(GraderError):
    """An argument that does not match the launcher's prototype."""


@dataclass(frozen=True)
class Argument:
    """A checked argument. A pointer's ``tensor`` is None for a null pointer; a number's C value is in ``value``."""

    parameter: Parameter
    tensor: Any = None
    value: Any = None


def bind(launcher: Prototype, given: Sequence[Any], named: Mapping[str, Any], device: str) -> list[Argument]:
    """Check the arguments and return one for each parameter except the stream.

    Tensors must be on ``device`` (cpu or cuda).
    """
    parameters = [p for p in launcher.parameters if p.kind != "stream"]
    values = _in_order(launcher, parameters, given, named)
    arguments = [_check(launcher, p, value, device) for p, value in zip(parameters, values)]
    _check_same_gpu(launcher, arguments)
    return arguments


def _in_order(
    launcher: Prototype, parameters: Sequence[Parameter], given: Sequence[Any], named: Mapping[str, Any]
) -> list[Any]:
    names = [p.name for p in parameters]
    for name in named:
        if name not in names:
            raise ArgumentError(f"{launcher.name} has no parameter '{name}'", f"The prototype is {launcher}.")
        if name in names[: len(given)]:
            raise ArgumentError(f"{launcher.name}: '{name}' is given twice", f"The prototype is {launcher}.")
    missing = [p.name or f"number {i}" for i, p in enumerate(parameters, 1) if i > len(given) and p.name not in named]
    if missing or len(given) > len(parameters):
        count = len(given) + len(named)
        wrong = f"{launcher.name} takes {_plural(len(parameters), 'argument')} (do not pass the stream), got {count}"
        if missing:
            wrong += f": missing {', '.join(missing)}"
        raise ArgumentError(wrong, f"The prototype is {launcher}.")
    return [*given, *(named[name] for name in names[len(given) :])]


def _check(launcher: Prototype, parameter: Parameter, value: Any, device: str) -> Argument:
    where = f"{launcher.name}: {parameter.name or parameter.type}"
    if parameter.kind == "pointer":
        if value is None:
            return Argument(parameter)
        return Argument(parameter, tensor=_tensor(where, parameter, value, device))
    return Argument(parameter, value=_number(where, parameter, value))


def is_tensor(value: Any) -> bool:
    """Return whether a value is a torch tensor, without importing torch."""
    return hasattr(value, "data_ptr") and hasattr(value, "is_contiguous") and hasattr(value, "device")


def dtype_name(tensor: Any) -> str:
    """Return the name of a tensor's element type, such as float32."""
    return str(tensor.dtype).removeprefix("torch.")


def _tensor(where: str, parameter: Parameter, value: Any, device: str) -> Any:
    if not is_tensor(value):
        hint = "Convert the array: torch.from_numpy(...)" if type(value).__module__ == "numpy" else ""
        raise ArgumentError(f"{where} must be a torch tensor, got {_kind(value)}", hint)
    if value.device.type != device:
        hint = (
            f"Move the tensor: .to('{device}')"
            if device == "cuda"
            else "Move the tensor (.cpu()), or load the kernel with device='cuda'."
        )
        raise ArgumentError(f"{where} is on {value.device}, and this kernel was loaded for {device}", hint)
    allowed = DTYPES[parameter.dtype].tensors if parameter.dtype in DTYPES else ()  # void* takes any
    if allowed and dtype_name(value) not in allowed:
        raise ArgumentError(
            f"{where} is {parameter.type}, so it takes a tensor of {allowed[0]}, got {dtype_name(value)}",
            f"Convert it: .to(torch.{allowed[0]})" if parameter.const else f"Create it with dtype=torch.{allowed[0]}.",
        )
    if str(value.layout) != "torch.strided":
        raise ArgumentError(f"{where} is a {str(value.layout).removeprefix('torch.')} tensor, a dense one is needed")
    if not value.is_contiguous():
        raise ArgumentError(
            f"{where} is not contiguous: shape {tuple(value.shape)}, strides {tuple(value.stride())}",
            "A kernel gets only the address. Pass .contiguous() for an input; create a new tensor for an output.",
        )
    return value


def _check_same_gpu(launcher: Prototype, arguments: Sequence[Argument]) -> None:
    devices = {str(a.tensor.device): a.parameter.name for a in arguments if a.tensor is not None}
    if len(devices) > 1:
        listed = ", ".join(f"{name} on {device}" for device, name in devices.items())
        raise ArgumentError(f"{launcher.name}: the tensors are on different devices: {listed}")


def _number(where: str, parameter: Parameter, value: Any) -> Any:
    """Return the C value of a number, which may be a tensor with one element."""
    dtype = DTYPES[parameter.dtype]
    if is_tensor(value):
        if value.numel() != 1:
            raise ArgumentError(f"{where} takes a number, got a tensor of shape {tuple(value.shape)}")
        value = value.item()
    taken = "a number"
    convert: Callable[[Any], Any] = float
    if dtype.range:
        taken, convert = "a whole number", operator.index
    elif dtype.name == "bool":
        taken, convert = "True or False", {0: False, 1: True}.__getitem__
    try:
        number = convert(None if isinstance(value, str) else value)  # float would read a text
    except (TypeError, KeyError):
        hint = "Round it: int(...)." if dtype.range and isinstance(value, float) else ""
        raise ArgumentError(f"{where} is {parameter.type}, so it takes {taken}, got {_kind(value)}", hint) from None
    try:
        return dtype.value(number)
    except (ValueError, TypeError) as error:
        got = number if dtype.range else f"{number:g}"
        raise ArgumentError(f"{where} is {parameter.type}, {error}, got {got}") from None


def _kind(value: Any) -> str:
    if value is None:
        return "None"
    if isinstance(value, (bool, int, float, str)):
        return repr(value)
    module = type(value).__module__
    return f"a {module + '.' if module not in ('builtins', '__main__') else ''}{type(value).__qualname__}"


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
