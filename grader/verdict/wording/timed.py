"""The texts of the stage *fast*: the time at the largest size, and why a time does not count."""

from __future__ import annotations

from collections.abc import Sequence

from grader.verdict import Timing

NO_SIZES = "the exercise names no sizes to time"
NOT_TIMED = "cannot be timed"
NOT_TRUE = "its own times are wrong"
OUTSIDE = "The kernel wrote outside its output."

Problem = tuple[str, str]
"""The text of a problem in one line, and in full."""


def summary(timings: Sequence[Timing]) -> str:
    """Return the time at the largest size in a line."""
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
    """Return the note for times that only the kernel's own process measured."""
    return f"The kernel's own process measured these times; the grader has not verified them: {why}."


BUSY = "unverified: the GPU is busy"

BUSY_NOTE = (
    "Another program used this GPU at the same time, so these times are unverified and nothing is judged by them. "
    "Measure again when the GPU is idle; nvidia-smi lists the programs that use it."
)
"""The note for times that were measured while other programs used the GPU."""


def unseen(timing: Timing) -> str:
    """Return the text for a contradiction: the kernel's own events show far less time than the grader's clock."""
    return (
        f"At {timing.name} ({timing.dtype}) events around the launch show {timing.median_us:.3g} us, but the "
        f"grader's clock "
        f"shows {timing.verified_us:.3g} us. Either the launcher uses another stream than the one that it is given, "
        f"or its times are forged."
    )


def impossible(where: str, most_us: float, floor_us: float) -> Problem:
    """Return the text for a time below the physical minimum.

    ``where``: the size and dtype; ``most_us``: the upper bound.
    """
    return f"less than {most_us:.3g} us, which this GPU cannot do", (
        f"At {where} the kernel took less than {most_us:.3g} us, but moving the bytes and doing the operations takes "
        f"at least "
        f"{floor_us:.3g} us on this GPU. The work was not done within the measured call."
    )


def not_returned(where: str, how: str) -> Problem:
    """Return the text for a kernel process that ended."""
    return "the kernel did not return", f"At {where} the kernel did not return: {how}."


def not_launched(where: str, why: str) -> Problem:
    """Return the text for a launch that CUDA refused, or that failed."""
    return "the launch failed", f"At {where} the launch failed: {why}"


def still_writing(where: str) -> Problem:
    """Return the text for outputs that changed after the grader had read them."""
    return "the outputs changed after the work was reported as done", (
        f"At {where} the outputs changed after the launcher had returned and the device was reported as idle."
    )


def wrong(where: str, how: str) -> Problem:
    """Return the text for a result of a timed call that differs from the reference."""
    return "a timed result is wrong", f"At {where}, with inputs that were new to it:\n{how}"
