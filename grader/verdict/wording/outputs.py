"""Describes wrong outputs in words: the number of wrong elements, the diagnosis, and the largest errors."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from grader.verdict import Diagnosis, OutputResult, WorstElement, words

Values = Mapping[str, float]


def name(output: OutputResult) -> str:
    """Return an output's name and shape: ``out[2, 64]``."""
    return output.name + words.position(output.shape)


def how_wrong(output: OutputResult) -> str:
    """Return how many elements are wrong: ``4,096 of 8,320 elements wrong (49.2 %), 64 of them never written``."""
    elements = words.count(output.elements, "element")
    if output.unwritten and output.unwritten == output.wrong:
        return f"{output.unwritten:,} of {elements} never written"
    if output.wrong:
        share = 100 * output.wrong / max(1, output.elements)
        never = f", {output.unwritten:,} of them never written" if output.unwritten else ""
        return f"{output.wrong:,} of {elements} wrong ({share:.3g} %){never}"
    return (
        f"each element is within its tolerance, but the norm of all errors is {output.norm_error:.2g} of the "
        f"reference's norm; at most {output.norm_tolerance:.2g} is allowed"
    )


def in_short(output: OutputResult) -> str:
    """Return in a few words how many elements are wrong: ``4,096 of 8,320 wrong``."""
    if output.unwritten and output.unwritten == output.wrong:
        return f"{output.unwritten:,} of {output.elements:,} never written"
    return f"{output.wrong:,} of {output.elements:,} wrong" if output.wrong else "the norm of all errors is too large"


def largest_error(output: OutputResult) -> str:
    """Return a clause about the largest error; empty for integers and NaN, and if only unwritten elements are wrong."""
    if output.wrong <= output.unwritten or not output.tolerance or not math.isfinite(output.max_error):
        return ""
    return (
        f"the largest error, {words.error(output.max_error)}, is {words.times(output.max_ratio)} what is "
        f"allowed there (tolerance {output.tolerance:.2g})"
    )


def worst(element: WorstElement) -> tuple[str, str, str, str, str, str]:
    """Return a table row for an element: its position, the expected and actual values, the error, block and thread."""
    expected = words.value(element.expected)
    if element.unwritten:
        return words.position(element.index), expected, "-", "-", "not written", ""
    return (
        words.position(element.index),
        expected,
        words.value(element.actual),
        words.error(element.error),
        words.triple(element.block),
        words.triple(element.thread),
    )


def text(output: OutputResult) -> str:
    """Return all that is known about a wrong output, over several lines; empty for an output that is right."""
    if output.passed:
        return ""
    rows = [f"{name(output)} ({output.dtype}): {how_wrong(output)}"]
    rows += [f"  {said}" for said in (largest_error(output), looks_like(output.diagnosis)) if said]
    rows += [f"  {_element(output, element)}" for element in output.worst]
    return "\n".join(rows)


def _element(output: OutputResult, element: WorstElement) -> str:
    at, expected, actual, *_ = worst(element)
    if element.unwritten:
        return f"{output.name}{at} was never written, expected {expected}"
    by = words.place(element.block, element.thread)
    return f"{output.name}{at} = {actual}, expected {expected}" + (f" (written by {by})" if by else "")


# -- diagnoses --


def looks_like(diagnosis: Diagnosis | None) -> str:
    """Return a diagnosis after the words ``looks like:``; empty without a diagnosis."""
    return f"looks like: {looks(diagnosis)}" if diagnosis else ""


_TITLES = {
    "only_right": "right at one index only",
    "only_wrong": "wrong at one index only",
    "wrong_from": "wrong from one index on",
}
"""The titles of kinds whose name does not say enough."""


def title(diagnosis: Diagnosis) -> str:
    """Return the kind of a diagnosis in a few words."""
    words_of_kind = ("NaN" if word == "nan" else word for word in diagnosis.kind.split("_"))
    return _TITLES.get(diagnosis.kind) or " ".join(words_of_kind)


def looks(diagnosis: Diagnosis) -> str:
    """Return a description of the error's pattern, often with a question about its cause."""
    how = LOOKS.get(diagnosis.kind, title(diagnosis))
    if callable(how):
        return how(diagnosis)
    return how.format(
        **{name: f"{value:.0f}" for name, value in diagnosis.values.items()},
        index=diagnosis.index,
        name=diagnosis.name,
    )


def _tail_unwritten(d: Diagnosis) -> str:
    v = d.values
    tail = f"the last {v['count']:.0f} elements of" if v["count"] > 1 else "the last element of"
    return (
        f"{tail} {v['elements']:.0f} {'were' if v['count'] > 1 else 'was'} never written: does the grid cover the tail?"
    )


def _columns_unwritten(d: Diagnosis) -> str:
    v = d.values
    columns = words.count(v["count"], "column")
    return f"{columns} of {_which_rows(v)} were never written, the first is column {v['column']:.0f}"


def _which_rows(v: Values) -> str:
    return "every row" if v["rows"] == v["of"] else f"{v['rows']:.0f} of {v['of']:.0f} rows"


def _not_finite(d: Diagnosis) -> str:
    v = d.values
    parts = [f"{v['nan']:.0f} NaN"] if v["nan"] else []
    if v["infinite"]:
        parts.append(f"{v['infinite']:.0f} infinite" + ("" if parts else " values"))
    extent = f", in whole rows, the first is row {v['row']:.0f}" if "row" in v else ""
    cause = "look for an overflow, inf - inf, 0 / 0 or a read of unwritten memory"
    return f"{' and '.join(parts)} among {v['elements']:.0f} elements{extent}: {cause}"


def _constant(d: Diagnosis) -> str:
    value = d.values["value"]
    return f"every element has the same value, {value:.6g}" if value else "all zeros"


def _shifted(d: Diagnosis) -> str:
    by = d.values["by"]
    return f"every element is too {'large' if by > 0 else 'small'} by {abs(by):.6g}"


def _moved(d: Diagnosis) -> str:
    v = d.values
    here, there = (_element_of(d.name, v, v["at"] + step) for step in (0, v["step"]))
    return f"the values expected at {here} are at {there}: shifted by one along axis {v['axis']:.0f}"


def _element_of(name: str, v: Values, index: float) -> str:
    """Return the elements with an index along one axis: ``k_cache[.., 3, ..]``."""
    before, after = v["axis"] > 0, v["axis"] < v["axes"] - 1
    return f"{name}[{'.., ' if before else ''}{index:.0f}{', ..' if after else ''}]"


def _diagonal(d: Diagnosis, where: str, sign: str) -> str:
    by = d.values["by"]
    row = f"row {'+' if by > 0 else '-'} {abs(by):.0f}" if by else "row"
    return (
        f"wrong {where} (where column {sign} {row}, in the last two axes), right elsewhere: is the mask missing, or "
        "off by one (< instead of <=)?"
    )


def _rows_scaled(d: Diagnosis) -> str:
    v = d.values
    which = "each row is wrong" if v["rows"] == v["of"] else f"{_which_rows(v)} are wrong, each"
    return (
        f"{which} by a factor of its own ({_factor(v['low'])} to {_factor(v['high'])}): is a row divided by the wrong "
        "sum (with elements past its end?), not normalized, or not rescaled?"
    )


PRECISIONS = ((2.0**-18, "f32"), (2.0**-10.5, "f16"), (math.inf, "bf16"))
"""The largest relative error that rounding to a precision causes, and the precision."""


def _rounding(d: Diagnosis) -> str:
    norm = d.values["norm"]
    precision = next(name for most, name in PRECISIONS if norm <= most)
    return (
        f"small errors everywhere (relative size {words.error(norm)}, as from rounding to {precision}): is a sum "
        "kept in too low a precision, or a fast approximation used?"
    )


def _along(d: Diagnosis) -> str:
    v = d.values
    return f"row {v['at']:.0f}" if v["axes"] == 2 else f"index {v['at']:.0f} of axis {v['axis']:.0f}"


def _factor(value: float) -> str:
    """Return a factor as text: as a fraction such as 1/8 if it is one, otherwise as a decimal number."""
    if value and abs(value) < 0.999:
        inverse = 1 / value
        if abs(inverse - round(inverse)) < 2e-3 * abs(inverse) and 1 < abs(round(inverse)) <= 4096:
            return f"1/{round(inverse)}" if inverse > 0 else f"-1/{abs(round(inverse))}"
    return f"{value:.4g}"


LOOKS: Mapping[str, str | Callable[[Diagnosis], str]] = {
    "nothing_written": "nothing was written: either the kernel did not run, or it wrote to another place",
    "tail_unwritten": _tail_unwritten,
    "columns_unwritten_from": lambda d: (
        f"columns {d.values['column']:.0f} and up of {_which_rows(d.values)} were never written: does the loop end "
        "too early?"
    ),
    "columns_unwritten": _columns_unwritten,
    "rows_unwritten_from": "rows {row} and up were never written: does the grid cover all {of} rows?",
    "rows_unwritten": "{rows} of {of} rows were never written, the first is row {row}",
    "elements_unwritten": "{count} of {elements} elements were never written, the first is {index}",
    "above_diagonal": lambda d: _diagonal(d, "above a diagonal", ">"),
    "below_diagonal": lambda d: _diagonal(d, "below a diagonal", "<"),
    "on_diagonal": lambda d: _diagonal(d, "on one diagonal", "="),
    "all_nan": "every element is NaN: look for inf - inf, 0 / 0, or memory read before it was written",
    "not_finite": _not_finite,
    "constant": _constant,
    "negated": "right except for the sign",
    "scaled": lambda d: f"every element is {_factor(d.values['factor'])} times the expected value",
    "shifted": _shifted,
    "columns_shifted": lambda d: (
        f"each column is wrong by a constant ({d.values['low']:.3g} to {d.values['high']:.3g}), which is the same in "
        "all rows: is a bias or a zero point missing, added twice, or taken from another column?"
    ),
    "transposed": "transposed: rows and columns are exchanged",
    "axes_exchanged": lambda d: f"axes {d.values['axis']:.0f} and {d.values['axis'] + 1:.0f} are exchanged in memory",
    "moved": _moved,
    "rows_scaled": _rows_scaled,
    "rows_alike": "every row holds the values of row {row}",
    "rows_exchanged": "the rows are in the wrong places: row {row} holds the values of row {holds}",
    "only_right": lambda d: f"only {_along(d)} is right",
    "only_wrong": lambda d: f"only {_along(d)} is wrong",
    "wrong_from": lambda d: f"wrong from {_along(d)} on, right before",
    "only_first_wrong": "only the first element of a row is wrong",
    "only_last_wrong": "only the last element of a row is wrong",
    "only_first_right": "only the first element of a row is right",
    "wrong_from_column": "wrong from column {column} on, right before",
    "wrong_from_element": "wrong from element {element} on, right before",
    "nan_of_input": "NaN that came from {name}, which holds NaN where no thread may read: is an element used that "
    "lies past the lengths or past a bound?",
    "wrong_at_large": "wrong where {name} is large ({at} and up), right where it is small: is precision lost on "
    "large numbers?",
    "wrong_at_small": "wrong where {name} is small (up to {at}), right where it is large: is {name} used?",
    "mask_ignored": "right if there were no causal mask: does the kernel use the parameter `causal`?",
    "mask_not_requested": "right if there were a causal mask: does the kernel apply it although `causal` is false?",
    "mask_one_less": "right if each query saw one key fewer: is the causal mask off by one (< instead of <=)?",
    "mask_one_more": "right if each query saw one key more: is the causal mask off by one (<= instead of <)?",
    "mask_at_start": "right if query i saw keys 0 to i: the queries are the last tokens, so query i sees the keys up "
    "to i + key_len - query_len",
    "scale_left_out": "right if the scores were not multiplied by `scale`: is it forgotten?",
    "scale_squared": "right if the scores were multiplied by `scale` twice: is it applied to q and to the scores, or "
    "is a square root missing?",
    "scale_not_read": "right if `scale` were 1 / sqrt(head_dim): does the kernel use the parameter `scale`?",
    "last_keys_left_out": "right if only the first {at} of {of} keys were used: is the last, partial tile left out?",
    "first_keys_lost": "right if only the keys from {at} on were used: does each tile start again with an empty sum "
    "and an empty output (is m reset, or are old sums multiplied by 0)?",
    "output_not_rescaled": "right if the weighted sum of values were not rescaled when the maximum rises: is it "
    "multiplied by exp(old m - new m), as the sum of weights is?",
    "sum_not_rescaled": "right if the sum of weights were not rescaled when the maximum rises: is it multiplied by "
    "exp(old m - new m), as the weighted sum of values is?",
    "nothing_rescaled": "right if no sum were rescaled when the maximum rises: are the sum of weights and the "
    "weighted sum of values multiplied by exp(old m - new m)?",
    "input_left_out": "right if {name} were all zeros: is {name} used in the result?",
    "input_read_across": "right if {name} were read with its last two sizes exchanged: is each index multiplied by "
    "the right stride?",
    "last_tile_left_out": "right if the last columns of {name} were zeros: is the last, partial tile left out?",
    "tile_turned": "right if {name} had rows and columns exchanged within each tile: is a tile loaded or read "
    "transposed (threadIdx.x for threadIdx.y, row_major for col_major)?",
    "tile_row": "right if every row of a tile of {name} were the tile's diagonal: is the thread index of the columns "
    "also used for the rows?",
    "tile_column": "right if every column of a tile of {name} were the tile's diagonal: is the thread index of the "
    "rows also used for the columns?",
    "rounding": _rounding,
}
"""For each kind of diagnosis, a format string for its text, or a function that makes the text."""
