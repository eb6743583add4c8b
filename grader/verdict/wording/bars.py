"""Describes bars (limits on counters, in the stage *efficient*) and time limits (in the stage *fast*) in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from grader.verdict import FAILED, SKIPPED, BarResult, TimeBarResult

if TYPE_CHECKING:
    from grader.course.task import Bar

UNITS = {
    "global_bytes / minimum": "bytes of global memory moved, divided by the bytes that must move",
    "sectors / ideal": "sectors touched, divided by the sectors that the requested bytes fill",
    "requests * 512 / minimum": "loads and stores of a warp, divided by their number if every lane moved 16 bytes",
    "requests / (global_bytes / 512)": "loads and stores of a warp, divided by their number if every lane moved 16 "
    "bytes",
    "shared_wavefronts / (flops_needed / 64)": "wavefronts of shared memory, divided by the multiply-adds of a warp "
    "(64 flops)",
    "tensor_operations / flops_needed": "operations on tensor cores, divided by the operations of the task's formula",
    "bank_conflict_ways": "wavefronts of shared memory, divided by the wavefronts without bank conflicts",
}
"""The meaning of the value of each expression that several exercises use."""


def unit(bar: BarResult) -> str:
    """Return the meaning of a bar's value; empty if the expression explains itself."""
    return UNITS.get(bar.expression, "")


def limit(bar: Bar | BarResult) -> str:
    """Return the limits of a bar: ``at most 1.2``, ``at least 4 and at most 8``."""
    limits = (("at least", bar.at_least), ("at most", bar.at_most))
    return " and ".join(f"{side} {value:g}" for side, value in limits if value is not None)


def value(bar: BarResult) -> str:
    """Return a bar's value with four significant digits."""
    return f"{bar.value:.4g}"


def counters(bar: BarResult) -> str:
    """Return the values that a bar's expression uses: ``global_bytes 16,515,072, minimum 4,191,000``."""
    return ", ".join(
        f"{name} {number:,.0f}" if float(number).is_integer() else f"{name} {number:,.6g}"
        for name, number in bar.values.items()
    )


def text(bar: BarResult) -> str:
    """Return a description of a bar's result. If the bar is missed, explain the value and give the author's hint.

    An example is ``global_bytes / minimum = 3.2, at most 1.2 is allowed (global_bytes 419,430, minimum 131,072)``.
    """
    said = f"{bar.expression} = {value(bar)}" + (f" in {bar.dtype}" if bar.dtype else "")
    said += f", {limit(bar)} {'is met' if bar.passed else 'is allowed' if bar.at_least is None else 'is required'}"
    if len(bar.values) > 1 or bar.expression not in bar.values:
        said += f" ({counters(bar)})"
    if unit(bar) and not bar.passed:
        said += f"\n  unit: {unit(bar)}"
    return said + (f"\n  look at: {bar.look}" if not bar.passed and bar.look else "")


def time_text(bar: TimeBarResult) -> str:
    """Return a description of a time limit's result: ``16 rows (f16): 37.1 us, at most 20 us is allowed on H200``.

    On another GPU, name the share of that GPU's roofline that applies, or say that the limit is not judged there.
    """
    said = f"{bar.name} ({bar.dtype}): {bar.median_us:.4g} us"
    allowed = f"at most {bar.at_most_us:.4g} us"
    look = f"\n  look at: {bar.look}" if bar.look else ""
    if bar.share_of_roofline is not None:
        share = f"{100 * bar.share_of_roofline:.0f} % of this GPU's roofline, from the limit on {bar.gpu}"
        return f"{said}, {allowed} {'is met' if bar.status != FAILED else 'is allowed'} ({share})" + (
            look if bar.status == FAILED else ""
        )
    if bar.status == SKIPPED:
        return f"{said}; {allowed} on {bar.gpu}, not judged here: this is {bar.here or 'another GPU'}"
    if bar.status != FAILED:
        return f"{said}, {allowed} on {bar.gpu} is met"
    return f"{said}, {allowed} is allowed on {bar.gpu}{look}"
