"""What *fast* says: the time at the largest size, and what was wrong with a time, in a line and as a learner reads it."""

from __future__ import annotations

from collections.abc import Sequence

from grader.verdict import Timing

NO_SIZES = "the exercise names no sizes to time"
NOT_TIMED = "cannot be timed"
NOT_TRUE = "its own times are not true"
OUTSIDE = "The kernel wrote outside its output."

Problem = tuple[str, str]
"""In a line, and in full."""


def summary(timings: Sequence[Timing]) -> str:
    """The largest size in a line."""
    best = max(timings, key=lambda timing: timing.bytes)
    time = best.median_us if best.verified_us is None else best.verified_us
    parts = [f"{best.name} ({best.dtype}) {time:.1f} us{'' if best.verified_us is None else ' by our own clock'}"]
    if best.percent_of_roofline:
        parts.append(f"{best.percent_of_roofline:.0f} % of the roofline")
    if best.torch_ratio:
        parts.append(f"{best.torch_ratio:.2f} x torch")
    return ", ".join(parts)


def not_verified(why: str) -> str:
    """Below times that only the kernel's own process took."""
    return f"These are times of the kernel's own process, and not verified: {why}."


BUSY = "unverified: the GPU is busy"

BUSY_NOTE = (
    "Somebody else used this GPU meanwhile: these times are unverified, and nothing is judged by them. "
    "Time again when it is idle (nvidia-smi shows who uses it)."
)
"""Below times that were taken while others used the GPU."""


def unseen(timing: Timing) -> str:
    """Events in the kernel's own process saw far less than the grader's clock."""
    return (
        f"At {timing.name} ({timing.dtype}) events around the launch saw {timing.median_us:.3g} us, the grader's clock "
        f"{timing.verified_us:.3g} us: the launcher works on another stream than the one that it is given, or its times are forged."
    )


def impossible(where: str, most_us: float, floor_us: float) -> Problem:
    """``where`` is the size and dtype, here and below; ``most_us`` what it took at most."""
    return f"less than {most_us:.3g} us, which this GPU cannot do", (
        f"At {where} it took less than {most_us:.3g} us; the bytes that must move and the operations that must be done take "
        f"{floor_us:.3g} us on this GPU. The work was not done when it was asked for."
    )


def not_returned(where: str, how: str) -> Problem:
    """The kernel's process ended."""
    return "the kernel did not return", f"At {where} it did not return: {how}."


def not_launched(where: str, why: str) -> Problem:
    """CUDA refused the launch, or the launch failed."""
    return "the launch failed", f"At {where} the launch failed: {why}"


def still_writing(where: str) -> Problem:
    """The outputs changed after they had been looked at."""
    return "it said that it was done while it still wrote", (
        f"At {where} the outputs changed after the launcher had returned and the device was said to be at rest."
    )


def wrong(where: str, how: str) -> Problem:
    """A result of a timed call is not the reference's."""
    return "a timed result is wrong", f"At {where}, with inputs that it had not seen:\n{how}"
