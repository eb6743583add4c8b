"""The description of an exercise: its launchers, inputs, outputs, reference, cases and bars.

Authors describe an exercise in ``exercises/dayNN_topic/tasks.py`` with the classes of this file. Importing this module
does not import torch, so the command line stays fast; a tasks.py may import it.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import math
import random
import re
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from grader.course.inputs import between, computed, constant, evaluate, integers, named, normal, one_of, uniform
from grader.course.tolerance import DEFAULT
from grader.frontend.dtypes import DTYPES, ITEM_BYTES, torch_dtype
from grader.frontend.prototype import Parameter, parse_prototype
from grader.setup.errors import GraderError

__all__ = [
    "Bar",
    "Bench",
    "Call",
    "Case",
    "Exercise",
    "Input",
    "Output",
    "TimeBar",
    "between",
    "computed",
    "constant",
    "integers",
    "normal",
    "one_of",
    "uniform",
]


@dataclass(frozen=True)
class Input:
    """A tensor that the kernel reads. Its shape consists of expressions over the sizes of a case."""

    shape: str
    distribution: Callable[..., Any] = field(default_factory=normal)
    dtype: str | None = None
    """The dtype, by a name of ``grader/frontend/dtypes.py``; None: the dtype of the case."""


@dataclass(frozen=True)
class Output:
    """A tensor that the kernel writes. The caller allocates it and fills it with random NaN (never with zeros)."""

    shape: str
    dtype: str | None = None
    inout: bool = False
    """True if the kernel also reads it. ``start`` draws its initial value, which the reference gets, too."""
    start: Callable[..., Any] = field(default_factory=normal)
    scratch: bool = False
    """True if it is working memory, which is allocated but not compared."""
    tolerance: float | None = None
    """A tolerance for this output that replaces the exercise's."""
    scale: str | Callable[..., Any] = "row"
    """The scale that errors are divided by: the magnitude of the element's "row", or of the whole "tensor".

    It may also be a function, for elements that are differences of larger numbers (gradients). It is called like the
    reference and returns the magnitude of each element's terms, such as the same sum over absolute values.
    
    """


@dataclass(frozen=True, init=False)
class Case:
    """A named test case: sizes, flags, and optionally distributions that replace those of the inputs."""

    name: str
    dims: dict[str, Any]
    dtypes: tuple[str, ...] | None
    inputs: dict[str, Callable[..., Any]]
    offsets: dict[str, int]
    before: dict[str, str]
    """For tensors of which only the last part is allocated: the number of elements before that part.

    Each value is an expression over the sizes. The kernel gets a pointer to where the whole tensor would begin. So its
    indices can exceed 2^31, although only the last part takes memory.
    
    """

    def __init__(
        self,
        name: str,
        *,
        dtypes: Sequence[str] | None = None,
        inputs: Mapping[str, Callable[..., Any]] | None = None,
        offsets: Mapping[str, int] | None = None,
        before: Mapping[str, str] | None = None,
        **dims: Any,
    ) -> None:
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "dims", dims)
        object.__setattr__(self, "dtypes", tuple(dtypes) if dtypes is not None else None)
        object.__setattr__(self, "inputs", dict(inputs or {}))
        object.__setattr__(self, "offsets", dict(offsets or {}))
        object.__setattr__(self, "before", dict(before or {}))


class Bench(Case):
    """A named size for ``grader bench``."""


@dataclass(frozen=True)
class Bar:
    """A limit on counters: an expression over them, and its maximum or minimum.

    The names that an expression may use are listed in ``grader/judge/efficient.py``.
    """

    expression: str
    at_most: float | None = None
    at_least: float | None = None
    look: str = ""
    """Advice for a learner who misses the bar."""
    naive: str = ""
    """The name of a naive version that misses the bar: one of the exercise's wrong kernels."""


@dataclass(frozen=True)
class TimeBar:
    """A limit of the stage *fast*: the maximum time for a size on the named GPU.

    On other GPUs, it applies only if there is a ``share_of_roofline``.
    """

    size: str
    """The name of a ``Bench``."""
    at_most_us: float
    """The maximum of the median that ``grader bench`` measures, in microseconds."""
    gpu: str
    """A word in the GPU's name as the driver reports it, such as H200."""
    dtypes: tuple[str, ...] | None = None
    """The dtypes that the limit applies to; None: all in which the size is timed."""
    look: str = ""
    """Advice for a learner who misses the limit."""
    share_of_roofline: float = 0.0
    """The minimum share of the roofline on other GPUs, which is measured in the same run; 0: no limit there."""


@dataclass(frozen=True)
class Grid:
    """The parameters of ``grader bench --grid`` for an attention kernel."""

    head_dims: tuple[int, ...]
    dims: Callable[[int, int, int, int, bool], dict[str, Any]]
    """A function of (batch, heads, number of queries and keys, head_dim, causal) that returns a case's sizes."""
    tensor_cores: bool = False
    """True if the kernel uses tensor cores."""
    rivals: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    """torch's functions by name, of which the fastest is timed beside the kernel; default: ``torch_baseline``."""


@dataclass
class Call:
    """A case made concrete: its sizes, its drawn inputs, and all arguments of the launcher."""

    case: Case
    dtype: str
    seed: int
    dims: dict[str, Any]
    tensors: dict[str, Any]
    """Inputs and initial values of in-out outputs: CPU tensors by default, rounded to their dtypes, contiguous."""
    scalars: dict[str, Any]
    output_shapes: dict[str, tuple[int, ...]]
    output_dtypes: dict[str, str]
    tensor_dtypes: dict[str, str]
    scratch: frozenset[str] = frozenset()
    """The names of outputs that are working memory and are not compared."""
    before: dict[str, int] = field(default_factory=dict)
    """The evaluated ``Case.before``."""


@dataclass
class Exercise:
    """The complete description of an exercise. See CONTRIBUTING for an example."""

    summary: str
    launchers: str
    inputs: dict[str, Input]
    outputs: dict[str, Output]
    reference: Callable[..., Any]
    cases: list[Case]
    dtypes: tuple[str, ...] = ("f32",)
    scalars: dict[str, Callable[..., Any]] = field(default_factory=dict)
    tolerance: dict[str, float] = field(default_factory=dict)
    trivial: list[Callable[..., Any]] = field(default_factory=list)
    """Functions, called like the reference, that return wrong outputs; a comparison with each must fail."""
    efficient: Case | None = None
    bars: list[Bar] = field(default_factory=list)
    minimum_bytes: Callable[[dict[str, Any]], float] | None = None
    """The minimum bytes that a kernel requests from global memory, for the bars.

    If every kernel must read a row twice, count the row twice.
    """
    distinct_bytes: Callable[..., float] | None = None
    """The bytes that must come from device memory, for the roofline.

    A row counts once even if it is read several times, because a cache may serve it again. The function gets the
    arguments of the reference, and ``item``, the number of bytes of an element. The default is ``minimum_bytes``, or
    the bytes of all tensors if these are fewer.
    
    """
    flops: Callable[[dict[str, Any]], float] | None = None
    flops_of: str = ""
    """The operand type of ``flops``, if it differs from the dtype: with "f8", tensor cores have twice the f16 rate."""
    bench: list[Bench] = field(default_factory=list)
    grid: Grid | None = None
    time_bars: list[TimeBar] = field(default_factory=list)
    torch_baseline: Callable[..., Any] | None = None
    torch_prepare: Callable[..., dict[str, Any]] | None = None
    """A function that returns further arguments for ``torch_baseline``, such as a mask. Its time does not count."""
    operator: str = ""
    """The transformer operator that this kernel implements. ``bench --all`` groups its last table by it."""
    timeout: float = 20.0
    """The time limit of one case on the simulator, in seconds."""
    name: str = ""
    """The full name. This and the following fields are filled in from course.toml, by ``Entry.load``."""
    title: str = ""
    kind: str = ""
    points: int = 0
    architecture: str = "sm_80"
    """The oldest GPU architecture that can run it."""
    difficulty: str = ""
    minutes: int = 0
    needs: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Raise GraderError for a description that contradicts itself."""
        self.dtypes = tuple(self.dtypes)
        self.summary = " ".join(self.summary.split())  # join the lines of tasks.py to one paragraph
        problems = []
        for dtype in self.dtypes:
            if dtype not in DTYPES:
                problems.append(f"unknown dtype {dtype!r}; known: {', '.join(DTYPES)}")
        names = [case.name for case in self.cases]
        for twice in sorted({name for name in names if names.count(name) > 1}):
            problems.append(f"two cases are named {twice!r}")
        if not problems:
            known = set(self.inputs) | set(self.outputs) | set(self.scalars)
            for case in [*self.cases, *self.bench, *([self.efficient] if self.efficient else [])]:
                for parameter in self.parameters(self.dtypes[0]):
                    if not parameter.is_stream and parameter.name not in known and parameter.name not in case.dims:
                        problems.append(f"case {case.name!r} gives no value for the parameter {parameter.name!r}")
        sizes = {size.name: size.dtypes or self.dtypes for size in self.bench}
        for bar in self.time_bars:
            if bar.size not in sizes:
                problems.append(f"a time limit is for {bar.size!r}, which is not one of the task's bench sizes")
            for dtype in set(bar.dtypes or ()) - set(sizes.get(bar.size, bar.dtypes or ())):
                problems.append(f"a time limit for {bar.size!r} is in {dtype}, a dtype that is not timed")
            if not bar.at_most_us > 0 or not bar.gpu.strip():
                problems.append(f"a time limit for {bar.size!r} lacks a positive time or the name of a GPU")
        if problems:
            raise GraderError(f"the task {self.name or self.launchers!r} is invalid: " + "; ".join(problems))

    @property
    def variable(self) -> str:
        """The name without the day: the variable in tasks.py and the file stem."""
        return self.name.rpartition("/")[2]

    def prototype(self, dtype: str) -> str:
        """Return the launcher's declaration for one dtype, on one line."""
        text = self.launchers.replace("{dtype}", dtype).replace("{T}", DTYPES[dtype].c_type)
        return re.sub(r"\s+", " ", text).strip().removesuffix(";")

    def launcher(self, dtype: str) -> str:
        """Return the launcher's name for one dtype."""
        return self.prototype(dtype).partition("(")[0].split()[-1]

    def parameters(self, dtype: str) -> Sequence[Parameter]:
        """Return the launcher's parameters for one dtype."""
        return _parameters(self.prototype(dtype))

    def runs(self) -> list[tuple[Case, str]]:
        """Return all pairs of a case and one of its dtypes."""
        return [(case, dtype) for case in self.cases for dtype in case.dtypes or self.dtypes]

    def timed_sizes(self) -> list[tuple[Bench, str]]:
        """Return each size to time with each of its dtypes."""
        return [(case, dtype) for case in self.bench for dtype in case.dtypes or self.dtypes]

    def case_seed(self, seed: int, case: Case, dtype: str) -> int:
        """Return the seed of one case, derived from the seed of the check, so that cases get different inputs."""
        text = f"{seed}/{self.name}/{case.name}/{dtype}".encode()
        return int.from_bytes(hashlib.sha256(text).digest()[:7], "little")

    def dims_of(self, case: Case, seed: int) -> dict[str, Any]:
        """Return the sizes of a case, with random ones chosen."""
        chooser = random.Random(seed)
        return {
            name: value.choose(chooser) if isinstance(value, (between, one_of)) else value
            for name, value in case.dims.items()
        }

    def scalars_of(self, dims: dict[str, Any]) -> dict[str, Any]:
        """Return the sizes and the scalars derived from them."""
        values = dict(dims)
        for name, derive in self.scalars.items():
            values[name] = derive(dims) if callable(derive) else derive
        return values

    def call(self, case: Case, dtype: str, seed: int, device: str = "cpu", keep_on: str = "cpu") -> Call:
        """Choose sizes and draw inputs on ``device``. ``seed``: the case's seed (see ``case_seed``)."""
        import torch

        dims = self.dims_of(case, seed)
        generator = torch.Generator(device).manual_seed(seed)
        tensors: dict[str, Any] = {}
        dtypes: dict[str, str] = {}
        drawn: list[tuple[str, str, Callable[..., Any], str | None]] = [
            (name, spec.shape, spec.distribution, spec.dtype) for name, spec in self.inputs.items()
        ]
        drawn += [(name, spec.shape, spec.start, spec.dtype) for name, spec in self.outputs.items() if spec.inout]
        values = self.scalars_of(dims)
        for name, shape_text, distribution, own_dtype in drawn:
            shape = shape_of(shape_text, values)
            dtypes[name] = own_dtype or dtype
            rounded = torch_dtype(dtypes[name])
            known = {"shape": shape, "dims": values, "generator": generator, "inputs": tensors, "dtype": rounded}
            distribution = case.inputs.get(name, distribution)
            tensor = torch.as_tensor(distribution(**named(distribution, known)))
            tensors[name] = tensor.to(rounded).expand(shape).contiguous()
        tensors = {name: tensor.to(keep_on) for name, tensor in tensors.items()}
        for parameter in self.parameters(dtype):
            if parameter.type == "float" and isinstance(values.get(parameter.name), float):
                # The kernel gets the value rounded to float, so the reference must get the same value.
                values[parameter.name] = struct.unpack("f", struct.pack("f", values[parameter.name]))[0]
        return Call(
            case=case,
            dtype=dtype,
            seed=seed,
            dims=dims,
            tensors=tensors,
            scalars=values,
            output_shapes={name: shape_of(spec.shape, values) for name, spec in self.outputs.items()},
            output_dtypes={name: spec.dtype or dtype for name, spec in self.outputs.items()},
            tensor_dtypes=dtypes,
            scratch=frozenset(name for name, spec in self.outputs.items() if spec.scratch),
            before={name: int(evaluate(text, values)) for name, text in case.before.items()},
        )

    def expected(self, call: Call) -> dict[str, Any]:
        """Return the reference's results, by output: float64 for floating-point numbers, int64 for integers."""
        return self.outputs_of(self.reference, call)

    def outputs_of(self, function: Callable[..., Any], call: Call) -> dict[str, Any]:
        """Call a function as the reference is called; return its results by output name."""
        import torch

        result = self._call_by_names(function, call)
        compared = [name for name, spec in self.outputs.items() if not spec.scratch]
        if not isinstance(result, Mapping):
            if isinstance(result, tuple) and len(result) == len(compared):
                result = dict(zip(compared, result))
            else:
                result = {compared[0]: result}
        expected = {}
        for name in compared:
            if name not in result:
                raise GraderError(f"the reference of {self.name} does not return {name!r}")
            value = torch.as_tensor(result[name])
            shape = call.output_shapes[name]
            if tuple(value.shape) != shape:
                if value.numel() != math.prod(shape):
                    raise GraderError(
                        f"the reference of {self.name} returns {name!r} with the shape {tuple(value.shape)}, "
                        f"but the task says {shape}"
                    )
                value = value.reshape(shape)
            expected[name] = value.to(torch.float64) if value.is_floating_point() else value.to(torch.int64)
        return expected

    def _call_by_names(self, function: Callable[..., Any], call: Call, **more: Any) -> Any:
        """Call a function with the tensors (as float64 or int64), scalars and ``more`` that its parameters name."""
        import torch

        def upcast(tensor: Any) -> Any:
            if tensor.dtype == torch.bool:
                return tensor.clone()
            return tensor.to(torch.float64) if tensor.is_floating_point() else tensor.to(torch.int64)

        arguments = named(function, {**call.scalars, **more, **call.tensors})
        arguments |= {name: upcast(tensor) for name, tensor in call.tensors.items() if name in arguments}
        parameters = inspect.signature(function).parameters.values()
        needed = {p.name for p in parameters if p.default is p.empty and p.kind is not p.VAR_KEYWORD}
        if missing := needed - arguments.keys():
            raise GraderError(f"the reference of {self.name} has unknown parameters: {', '.join(sorted(missing))}")
        return function(**arguments)

    def tolerance_of(self, name: str, dtype: str) -> float:
        """Return the tolerance of an output: its own, else the exercise's for the dtype, else the dtype's default."""
        own = self.outputs[name].tolerance
        return self.tolerance.get(dtype, DEFAULT.get(dtype, DEFAULT["f32"])) if own is None else own

    def scale_of(self, name: str, call: Call) -> Any:
        """Return the scale of an output's errors: see ``Output.scale``."""
        scale = self.outputs[name].scale
        if isinstance(scale, str):
            return scale
        return self._call_by_names(scale, call).to(torch_dtype("f64")).expand(call.output_shapes[name])

    def least_bytes(self, call: Call) -> float:
        """Return the minimum bytes of any kernel: every input and output once, or the task's ``minimum_bytes``."""
        if self.minimum_bytes is not None:
            return float(self.minimum_bytes(Sizes(call)))
        return self._every_tensor_once(call)

    def roofline_bytes(self, call: Call) -> float:
        """Return the bytes that device memory transfers even with perfect caches: they bound the time from below."""
        if self.distinct_bytes is not None:
            return float(self._call_by_names(self.distinct_bytes, call, item=ITEM_BYTES[call.dtype]))
        return min(self.least_bytes(call), self._every_tensor_once(call))

    def _every_tensor_once(self, call: Call) -> float:
        """Return the bytes of every input read once and every output written once."""
        total = 0
        for name, tensor in call.tensors.items():
            total += tensor.numel() * ITEM_BYTES[call.tensor_dtypes[name]]
        for name, shape in call.output_shapes.items():
            if not self.outputs[name].scratch:
                total += math.prod(shape) * ITEM_BYTES[call.output_dtypes[name]]
        return float(total)

    def operations(self, call: Call) -> float | None:
        """Return the floating-point operations of a case, if the task defines them."""
        return float(self.flops(Sizes(call))) if self.flops is not None else None


class Sizes(dict[str, Any]):
    """The argument of ``minimum_bytes`` and ``flops``: sizes, scalars, and ``item``, the bytes of an element."""

    def __init__(self, call: Call) -> None:
        super().__init__(call.scalars)
        self["item"] = ITEM_BYTES[call.dtype]
        self["dtype"] = call.dtype


@functools.lru_cache(maxsize=256)
def _parameters(prototype: str) -> Sequence[Parameter]:
    """Return the parameters of a declaration."""
    return parse_prototype(prototype).parameters


def shape_of(text: str, dims: Mapping[str, Any]) -> tuple[int, ...]:
    """Evaluate a shape such as ``"rows 2*cols"`` with the sizes ``dims``. An empty text is the shape of one element."""
    tokens = split_shape(text)
    try:
        return tuple(int(evaluate(token, dims)) for token in tokens)
    except Exception as error:
        raise GraderError(f"the shape {text!r} cannot be computed from {dict(dims)}: {error}") from error


def split_shape(text: str) -> list[str]:
    """Split at spaces outside of parentheses, so that ``(heads + 1) head_dim`` is two tokens."""
    tokens: list[str] = []
    depth, token = 0, ""
    for character in text:
        depth += (character in "([") - (character in ")]")
        if character.isspace() and depth == 0:
            tokens.append(token)
            token = ""
        else:
            token += character
    tokens.append(token)
    return [token for token in tokens if token]
