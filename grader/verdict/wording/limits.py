"""The text for the unit of a GPU that limits a kernel. It says "at least", because it is a bound, not a prediction."""

from __future__ import annotations

from grader.verdict import TimeBound
from grader.verdict.wording import words

UNITS = {
    "dram": "DRAM",
    "l2": "the L2 cache",
    "tensor": "tensor cores",
    "special": "special functions",
    "f16": "16-bit arithmetic",
    "f32": "FP32 arithmetic",
    "shared": "shared memory",
    "l1": "the L1 cache and shared memory",
    "issue": "issuing instructions",
    "launches": "launching",
}
_PLURAL = ("tensor", "special")
SHOWN = 0.01
"""A sentence leaves out units that take less than this share of the longest time."""


def text(bound: TimeBound) -> str:
    """Return ``On an H200, shared memory limits this kernel: at least 210 us there, 45 us of DRAM. ...``."""
    a = "an" if bound.gpu[:1] in "AHLR8" else "a"
    limiter = bound.limiter
    if limiter is None or limiter.microseconds == 0:
        return f"Nothing was counted that takes time on {a} {bound.gpu}."
    verb = "limit" if limiter.unit in _PLURAL else "limits"
    others = [
        f"{_time(unit.microseconds)} of {UNITS[unit.unit]}"
        for unit in sorted(bound.units, key=lambda unit: -unit.microseconds)
        if unit.unit != "launches" and SHOWN * limiter.microseconds <= unit.microseconds < limiter.microseconds
    ]
    said = f"On {a} {bound.gpu}, {UNITS[limiter.unit]} {verb} this kernel: at least {_time(limiter.microseconds)} there"
    said += "".join(f", {other}" for other in others) + "."
    launching = next((unit for unit in bound.units if unit.unit == "launches"), None)
    if launching is not None and launching.microseconds > limiter.microseconds:
        every = words.count(launching.work, "launch alone takes", "launches alone take")
        said += f" This size is small: {every} at least {_time(launching.microseconds)}."
    if 0 < bound.blocks < bound.multiprocessors:
        said += f" It has work for {bound.blocks} of the {bound.multiprocessors} multiprocessors."
    if not bound.arithmetic:
        said += " Arithmetic was not counted."
    size = f", {bound.case!r} ({', '.join(filter(None, (bound.dtype, words.sizes(bound.dims))))})" if bound.case else ""
    return said + f" This is a bound for the case that was counted{size}, not a prediction: a real run takes longer."


def _time(microseconds: float) -> str:
    """Return ``0.031 us``, ``210 us``, ``1,936 us``."""
    return f"{microseconds:,.0f} us" if microseconds >= 1000 else f"{microseconds:.3g} us"
