"""The files of a new exercise from a finished solution: the skeleton, and a first description for tasks.py."""

from __future__ import annotations

import re

from grader.frontend.dtypes import DTYPES
from grader.frontend.prototype import Parameter, Prototype, find_launchers
from grader.frontend.tokens import Source, closing
from grader.setup.errors import GraderError

TASK = '''

def {name}_reference({inputs}):
    """TODO: what {outputs} must be, in float64."""
    raise NotImplementedError("the reference is not written yet")


{name} = Exercise(
    summary="",
    launchers="{launchers}",{dtypes}
    inputs={{{given}}},
    outputs={{{written}}},
    reference={name}_reference,
    cases=[
        Case("no element", {none}),
        Case("a random size", {drawn}),
    ],
)
'''
FLOATING = ("f16", "bf16", "f32", "f64")


def skeleton(text: str) -> str:
    """Return a solution with the body of each kernel and launcher replaced by a TODO."""
    source = Source(text)
    tokens = source.tokens
    bodies: list[tuple[int, int, str]] = []
    for i, token in enumerate(tokens):
        launcher = token.text == "extern" and tokens[i + 1].text == '"C"' and tokens[i + 2].text != "{"
        if token.text == "__global__" or launcher:
            opened = next((j for j in range(i, len(tokens)) if tokens[j].text in ("{", ";")), None)
            end = closing(tokens, opened) if opened is not None else None
            if opened is not None and end is not None:
                what = "start the kernel on the stream, but not for empty input" if launcher else "what one thread does"
                bodies.append((tokens[opened].end, tokens[end].start, what))
    for start, end, what in reversed(bodies):
        text = f"{text[:start]}\n    // TODO: {what}\n{text[end:]}"
    return text


def task(text: str, name: str) -> str:
    """Return a description for tasks.py, with the launchers of the solution.

    Shapes and cases are guesses: each tensor gets all integer parameters as its sizes.

    Raises:
        GraderError: the solution has no launcher of that name.
    """
    launchers = {launcher.name: launcher for launcher in find_launchers(text)}
    dtypes = [dtype for dtype in DTYPES if f"{name}_{dtype}" in launchers]
    if name not in launchers and not dtypes:
        there = ", ".join(launchers) or "none"
        raise GraderError(
            f'the solution has no launcher extern "C" void {name}(...); its launchers: {there}',
            f"Name it {name}, or {name}_f32, {name}_f16, ... for several dtypes.",
        )
    one = launchers[f"{name}_{dtypes[0]}"] if dtypes else launchers[name]
    main = dtypes[0] if dtypes else next((p.dtype for p in one.parameters if p.dtype in FLOATING), "f32")
    pointers = [p for p in one.parameters if p.is_pointer]
    sizes = [p.name for p in one.parameters if p.kind == "scalar" and p.dtype not in (*FLOATING, "bool")]
    others = [f"{p.name}=1" for p in one.parameters if p.kind == "scalar" and p.name not in sizes]
    shape = " ".join(sizes) or "1"
    inputs = [p for p in pointers if p.const]
    outputs = [p for p in pointers if not p.const]
    several = tuple(dtypes) or (main,)
    listed = str(several).replace("'", '"')
    return TASK.format(
        name=name,
        inputs=", ".join(p.name for p in inputs),
        outputs=", ".join(p.name for p in outputs),
        launchers=_prototype(one, name, main if dtypes else ""),
        dtypes="" if several == ("f32",) else f"\n    dtypes={listed},",
        given=", ".join(f'"{p.name}": Input({_tensor(p, shape, main)})' for p in inputs),
        written=", ".join(f'"{p.name}": Output({_tensor(p, shape, main)})' for p in outputs),
        none=", ".join([*(f"{size}=0" for size in sizes), *others]),
        drawn=", ".join([*(f"{size}=between(2, {3000 if len(sizes) == 1 else 60})" for size in sizes), *others]),
    )


def _tensor(parameter: Parameter, shape: str, main: str) -> str:
    return f'"{shape}"' if parameter.dtype == main else f'"{shape}", dtype="{parameter.dtype}"'


def _prototype(launcher: Prototype, name: str, dtype: str) -> str:
    """Return the prototype. Replace a ``dtype`` by ``{dtype}`` in the name and by ``{T}`` in pointer types."""
    text = str(launcher)
    if dtype:
        text = text.replace(f"{name}_{dtype}(", f"{name}_{{dtype}}(")
        text = re.sub(rf"{re.escape(DTYPES[dtype].c_type)}(?=\*)", "{T}", text)
    return text
