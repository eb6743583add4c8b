"""The diagnosis of common mistakes in attention kernels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch

from grader.course import find
from grader.course.task import Call, Exercise
from grader.judge.attention_mistakes import recognize
from grader.judge.comparison.compare import compare
from grader.judge.correct import drop_doubtful_rounding
from grader.judge.misread import explain
from grader.verdict import FAILED, CaseResult, Diagnosis, OutputResult
from grader.verdict.wording.outputs import looks


@dataclass
class Attention:
    """An attention by its definition, with settings that a wrong kernel has."""

    seen: Callable[[int, int, int], int] = lambda i, queries, keys: i + 1 + keys - queries
    """The number of keys that query i sees under a causal mask."""
    scale: Callable[[float, int], float] = lambda scale, head_dim: scale
    keys: Callable[[int], slice] = lambda keys: slice(0, keys)
    zeros: int = 0
    """The number of keys of zeros that follow the last key."""

    def __call__(self, call: Call) -> torch.Tensor:
        q, k, v = (call.tensors[name].double() for name in ("q", "k", "v"))
        queries, keys = q.shape[-2], k.shape[-2]
        k, v = (torch.nn.functional.pad(tensor, (0, 0, 0, self.zeros)) for tensor in (k, v))
        scores = q @ k.mT * self.scale(call.scalars["scale"], q.shape[-1])
        column = torch.arange(keys + self.zeros)
        last = torch.tensor([self.seen(i, queries, keys) if call.dims["causal"] else keys for i in range(queries)])
        visible = column < last[:, None]
        part = self.keys(keys)
        visible &= (column >= part.start) & (column < part.stop + self.zeros)
        weights = torch.softmax(scores.masked_fill(~visible, -torch.inf), dim=-1).nan_to_num(0.0)
        return (weights @ v).float()


EQUAL, MORE, NONE = (
    "causal, as many keys as queries",
    "causal, more keys than queries",
    "causal, queries that see no key",
)
RAGGED, SCALE, RISING = "lengths that are not multiples of a tile", "a scale of 0.4", "scores that rise from key to key"
ONE_LESS = Attention(seen=lambda i, queries, keys: i + keys - queries)
ONE_MORE = Attention(seen=lambda i, queries, keys: min(keys, i + 2 + keys - queries))
ONE_MORE_PAST_END = Attention(seen=lambda i, queries, keys: i + 2 + keys - queries, zeros=1)
AT_START = Attention(seen=lambda i, queries, keys: min(keys, i + 1))
LAST_TILE = Attention(keys=lambda keys: slice(keys // 32 * 32, keys))
MISTAKES = [
    (EQUAL, ONE_LESS, "one key fewer"),
    (MORE, ONE_LESS, "one key fewer"),
    (NONE, ONE_LESS, "one key fewer"),
    (EQUAL, ONE_MORE, "one key more"),
    (MORE, ONE_MORE, "one key more"),
    (NONE, ONE_MORE, "one key more"),
    (EQUAL, ONE_MORE_PAST_END, "one key more"),
    (MORE, AT_START, "right if query i saw keys 0 to i"),
    (NONE, AT_START, "right if query i saw keys 0 to i"),
    (EQUAL, Attention(scale=lambda scale, head_dim: 1.0), "not multiplied by `scale`"),
    (RAGGED, Attention(scale=lambda scale, head_dim: scale * scale), "by `scale` twice"),
    (SCALE, Attention(scale=lambda scale, head_dim: head_dim**-0.5), "does the kernel use the parameter `scale`"),
    (RAGGED, Attention(keys=lambda keys: slice(0, keys // 32 * 32)), "only the first 96 of 127 keys"),
    (RAGGED, LAST_TILE, "only the keys from 96 on"),
    (RISING, LAST_TILE, "only the keys from 128 on"),  # nearly right: the last keys have most of the weight
]


def call_of(case: str, exercise: str = "day06_flash_attention/flash_attention") -> tuple[Exercise, Call]:
    found = find(exercise).load()
    return found, found.call(next(own for own in found.cases if own.name == case), "f32", 7)


def judged(exercise: Exercise, call: Call, actual: torch.Tensor) -> OutputResult:
    output = compare("out", actual, exercise.expected(call)["out"], "f32", 1e-4, inputs=call.tensors)
    explain(exercise, call, output, actual)
    return output


@pytest.mark.parametrize(("case", "mistake", "says"), MISTAKES)
def test_mistakes_are_named(case: str, mistake: Attention, says: str) -> None:
    exercise, call = call_of(case)
    diagnosis = judged(exercise, call, mistake(call)).diagnosis
    assert diagnosis is not None and says in looks(diagnosis)


@pytest.mark.parametrize("case", [EQUAL, MORE, NONE, RAGGED, SCALE, RISING])
def test_the_definition_used_here_is_right(case: str) -> None:
    exercise, call = call_of(case)
    assert judged(exercise, call, Attention()(call)).passed


def test_a_mistake_beside_another_wrong_element_is_not_named() -> None:
    exercise, call = call_of(EQUAL)
    actual = ONE_LESS(call)
    actual[0, 0, 100, 5] += 1
    assert judged(exercise, call, actual).diagnosis is None


def test_axes_whose_length_is_computed_from_a_size_are_left_alone() -> None:
    exercise = find("day09_sparse_attention/block_sparse").load()
    call = exercise.call(exercise.cases[0], "f32", 7)
    (name,) = call.output_shapes
    actual = torch.ones(call.output_shapes[name])
    output = compare(name, actual, exercise.expected(call)[name], "f32", 1e-4)
    output.diagnosis = None
    explain(exercise, call, output, actual)
    assert output.diagnosis is None


ATTENTIONS = [
    "day05_fusion/scores_softmax",
    "day06_flash_attention/flash_attention",
    "day06_flash_attention/flash_attention_backward",
    "day07_grouped_query_attention/gqa_prefill",
    "day08_mixed_precision/mixed_precision_attention",
    "day09_sparse_attention/sliding_window",
    "day09_sparse_attention/csr_attention",
]


@pytest.mark.parametrize("name", ATTENTIONS)
def test_each_mistake_can_be_computed_for_each_case(name: str) -> None:
    exercise = find(name).load()
    for case in exercise.cases:
        call = exercise.call(case, exercise.dtypes[0], 7)
        for output in exercise.expected(call):
            assert recognize(exercise, call, output, lambda wanted: False) is None


def result(name: str, norm: float, kind: str = "") -> CaseResult:
    diagnosis = Diagnosis(kind, {"norm": norm}) if kind else None
    output = OutputResult(
        name="out", dtype="f32", shape=[2], passed=False, elements=2, norm_error=norm, diagnosis=diagnosis
    )
    return CaseResult(name=name, dtype="f32", status=FAILED, outputs=[output])


@pytest.mark.parametrize(("large", "kept"), [(0, True), (1, True), (2, False), (9, False)])
def test_rounding_is_no_diagnosis_if_as_many_cases_have_large_errors(large: int, kept: bool) -> None:
    cases = [result("a", 5e-4, "rounding"), result("b", 5e-4, "rounding")]
    cases += [result(f"large {i}", 0.5) for i in range(large)]
    drop_doubtful_rounding(cases)
    assert all((case.outputs[0].diagnosis is not None) is kept for case in cases[:2])


def test_cases_with_nan_do_not_remove_rounding() -> None:
    cases = [result("a", 5e-4, "rounding"), *(result(f"NaN {i}", float("inf"), "all_nan") for i in range(3))]
    drop_doubtful_rounding(cases)
    assert cases[0].outputs[0].diagnosis is not None
