"""Describes results of the stage *fast* in words: the time at the largest size, and why a time is not valid."""

from __future__ import annotations

from collections.abc import Sequence

from grader.verdict import Timing

NO_SIZES = "the exercise names no sizes to time"
NOT_TIMED = "cannot be timed"
CONTRADICTED = "the kernel's process reported wrong times"
OUTSIDE = "The kernel wrote outside its output."

Problem = tuple[str, str]
"""A short description of a problem in one line, and a full description."""


def summary(timings: Sequence[Timing]) -> str:
    """Return a line with the time at the largest size."""
    best = max(timings, key=lambda timing: timing.bytes)
    time = best.median_us if best.verified_us is None else best.verified_us
    clock = "" if best.verified_us is None else " by the grader's clock"
    parts = [f"{best.name} ({best.dtype}) {time:.1f} us{clock}"]
    if best.percent_of_roofline:
        parts.append(f"{best.percent_of_roofline:.0f} % of the roofline")
    if best.torch_ratio:
        parts.append(f"{best.torch_ratio:.2f} x torch")
    return ", ".join(parts)


def not_verified(why: str) -> str:
    """Return a note for times that the kernel's own process measured, and that the grader did not verify."""
    return f"The kernel's own process measured these times; the grader has not verified them: {why}."


MEASURED_BEFORE = (
    "An earlier check measured these times. Since then, neither the kernel nor the exercise, the GPU or the grader has "
    "changed. `grader check --again` measures them again."
)
"""The note for times that an earlier check measured."""


def measured_before(seconds: float) -> str:
    """Return when times were measured, ``seconds`` before now."""
    amount, unit = next(
        ((int(seconds // size), unit) for size, unit in ((3600, "hour"), (60, "minute")) if seconds >= size),
        (int(seconds), "second"),
    )
    return f"measured {amount} {unit}{'' if amount == 1 else 's'} ago; --again measures anew"


BUSY = "unverified: the GPU is busy"

BUSY_NOTE = (
    "Another program used this GPU at the same time, so these times are unverified and are not judged. "
    "Measure again when the GPU is idle; nvidia-smi lists the programs that use it."
)
"""The note for times that were measured while other programs used the GPU."""


def contradicted(timing: Timing) -> str:
    """Return the text for a kernel whose time by CUDA events is much less than that by the grader's clock."""
    return (
        f"At {timing.name} ({timing.dtype}) events around the launch show {timing.median_us:.3g} us, but the "
        f"grader's clock "
        f"shows {timing.verified_us:.3g} us. Either the launcher does not use the stream that is passed to it, "
        f"or the kernel's process forges the times."
    )


def impossible(where: str, most_us: float, floor_us: float) -> Problem:
    """Return the text for a time below the physical floor.

    ``where`` is the size and dtype, ``most_us`` an upper bound of the measured time.
    """
    return f"less than {most_us:.3g} us, which is impossible on this GPU", (
        f"At {where} the kernel took less than {most_us:.3g} us, but moving the bytes and doing the operations takes "
        f"at least "
        f"{floor_us:.3g} us on this GPU. The work was not done within the measured call."
    )


def not_returned(where: str, how: str) -> Problem:
    """Return the text for a kernel's process that ended during a timed call."""
    return "the kernel did not return", f"At {where} the kernel did not return: {how}."


def not_launched(where: str, why: str) -> Problem:
    """Return the text for a timed call whose launch failed."""
    return "the launch failed", f"At {where} the launch failed: {why}"


def still_writing(where: str) -> Problem:
    """Return the text for outputs that changed after the process had reported that they were complete."""
    return "the outputs changed after the work was reported as done", (
        f"At {where} the outputs changed after the launcher had returned and the device was reported as idle."
    )


def wrong(where: str, how: str) -> Problem:
    """Return the text for a timed call whose output differs from the reference."""
    return "a timed result is wrong", f"At {where}, with new inputs:\n{how}"
