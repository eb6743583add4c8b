"""The diagnosis of wrong outputs that would be right if one input were read in another way (such as transposed)."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest
import torch

from grader.course import find
from grader.course.task import Call, Exercise
from grader.judge.comparison.compare import compare
from grader.judge.misread import explain, misread
from grader.verdict.wording.outputs import looks


def linear(name: str = "primes") -> tuple[Exercise, Call]:
    exercise = find("day04_linear/linear").load()
    case = next(case for case in exercise.cases if case.name == name)
    return exercise, exercise.call(case, "f32", 7)


def in_tiles(tile: int, source: Callable[[int, int], tuple[int, int]]) -> Callable[[torch.Tensor], torch.Tensor]:
    """Return a function that misreads tiles: element (y, x) of a tile is read from ``source(y, x)``; 0 outside."""

    def read(tensor: torch.Tensor) -> torch.Tensor:
        rows, columns = tensor.shape
        found = torch.zeros_like(tensor)
        for row in range(rows):
            for column in range(columns):
                y, x = source(row % tile, column % tile)
                y, x = row - row % tile + y, column - column % tile + x
                if y < rows and x < columns:
                    found[row, column] = tensor[y, x]
        return found

    return read


MISTAKES: dict[str, tuple[tuple[str, ...], Callable[[torch.Tensor], torch.Tensor], str]] = {
    "a turned tile": (("weight",), in_tiles(32, lambda y, x: (x, y)), "weight had rows and columns exchanged within"),
    "a turned tile of x": (("x",), in_tiles(16, lambda y, x: (x, y)), "x had rows and columns exchanged within"),
    "x for the row": (("weight",), in_tiles(16, lambda y, x: (x, x)), "if every row of a tile of weight were"),
    "y for the column": (("x",), in_tiles(32, lambda y, x: (y, y)), "if every column of a tile of x were"),
    "both": (("x", "weight"), in_tiles(32, lambda y, x: (x, y)), "x and weight had rows and columns exchanged within"),
    "no bias": (("bias",), torch.zeros_like, "bias were all zeros"),
    "the other layout": (("weight",), lambda w: w.reshape(w.shape[::-1]).T, "weight were read with its last two sizes"),
    "no partial tile": (("x",), lambda x: x * (torch.arange(71) < 64), "last columns of x were zeros"),
}


def test_a_causal_mask_that_is_ignored_is_named() -> None:
    exercise = find("day06_flash_attention/flash_attention").load()
    case = next(case for case in exercise.cases if case.dims.get("causal") is True)
    for wanted, says in ((True, "right if there were no causal mask"), (False, "right if there were a causal mask")):
        call = exercise.call(case, "f32", 7)
        call.dims["causal"] = wanted
        call.scalars["causal"] = wanted
        other = dataclasses.replace(call, scalars={**call.scalars, "causal": not wanted})
        (name,) = exercise.outputs
        actual = exercise.outputs_of(exercise.reference, other)[name].float()
        want = exercise.outputs_of(exercise.reference, call)[name]
        output = compare(name, actual, want, "f32", 1e-5, inputs=call.tensors)
        output.diagnosis = None
        explain(exercise, call, output, actual)
        assert output.diagnosis is not None and says in looks(output.diagnosis)


@pytest.mark.parametrize("name", MISTAKES)
@pytest.mark.parametrize("case", ["primes", "whole tiles"])
def test_mistakes(name: str, case: str) -> None:
    keys, spoil, says = MISTAKES[name]
    if (name, case) == ("no partial tile", "whole tiles"):
        return
    exercise, call = linear(case)
    tensors = call.tensors | {key: spoil(call.tensors[key]).contiguous() for key in keys}
    actual = exercise.expected(dataclasses.replace(call, tensors=tensors))["out"].float()
    found = misread(exercise, call, "out", actual)
    assert found is not None and says in looks(found)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda out: out + 0.01 * torch.randn(out.shape, generator=torch.Generator().manual_seed(1)),
        lambda out: out.flip(0),
        lambda out: out * torch.linspace(0.5, 1.5, out.shape[1]),
    ],
)
def test_other_wrong_outputs_are_not_called_misread(spoil: Callable[[torch.Tensor], torch.Tensor]) -> None:
    exercise, call = linear()
    assert misread(exercise, call, "out", spoil(exercise.expected(call)["out"].float())) is None


def test_a_transposed_tile_with_another_wrong_element_is_not_called_one() -> None:
    exercise, call = linear()
    tensors = call.tensors | {"weight": MISTAKES["a turned tile"][1](call.tensors["weight"])}
    actual = exercise.expected(dataclasses.replace(call, tensors=tensors))["out"].float()
    actual[3, 4] += 1
    assert misread(exercise, call, "out", actual) is None


def test_large_inputs_are_skipped() -> None:
    exercise, call = linear()
    call.tensors["x"] = torch.zeros(53, 710)
    assert misread(exercise, call, "out", torch.zeros(53, 101)) is None


@pytest.mark.parametrize(
    ("case", "spoil", "says"),
    [
        ("primes", lambda out, bias: out - bias, "bias were all zeros"),  # more specific than "wrong columns"
        ("primes", lambda out, bias: out + bias, "each column is wrong by a constant"),
        ("primes", lambda out, bias: out * 2, "every element is 2 times"),
        ("all sizes are 1", lambda out, bias: out - bias, ""),  # a single number may be right by chance
    ],
)
def test_descriptions_of_outputs(
    case: str, spoil: Callable[[torch.Tensor, torch.Tensor], torch.Tensor], says: str
) -> None:
    exercise, call = linear(case)
    wanted = exercise.expected(call)["out"]
    actual = spoil(wanted, call.tensors["bias"].double()).float()
    output = compare("out", actual, wanted, "f32", 2e-5)
    explain(exercise, call, output, actual)
    if says:
        assert output.diagnosis is not None and says in looks(output.diagnosis)
    else:
        assert output.diagnosis is None
