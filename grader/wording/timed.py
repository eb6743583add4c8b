"""What was wrong with a time by the grader's own clock, in a line and as a learner reads it."""

from __future__ import annotations

OUTSIDE = "The kernel wrote outside its output."

Problem = tuple[str, str]
"""In a line, and in full."""


def impossible(where: str, microseconds: float, floor_us: float) -> Problem:
    """``where`` is the size and dtype, here and below."""
    return f"{microseconds:.3g} us are less than this GPU can take", (
        f"At {where} it took {microseconds:.3g} us; the bytes that must move and the operations that must be done take "
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
