"""Inline PTX: ``asm volatile("mma.sync... ;" : outputs : inputs)`` as a call into ``sim::ptx``.

Only the instructions listed in ``include/sim/ptx.h`` are known.
"""

from __future__ import annotations

from collections.abc import Sequence

from grader.toolchain.tokens import Token


class UnknownPtx(Exception):
    """An asm statement outside the closed set."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


def translate(tokens: Sequence[Token]) -> str:
    """The C++ expression for what stands between the parentheses of an asm statement."""
    raise UnknownPtx("inline PTX is not simulated here", "Use the CUDA intrinsic for it.")
