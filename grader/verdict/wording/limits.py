"""Describes in words which unit of a GPU limits a kernel, and the lower bound of the kernel's time."""

from __future__ import annotations

from grader.verdict import TimeBound, words

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
"""Units that take less than this share of the longest time are not mentioned."""


def text(bound: TimeBound) -> str:
    """Return a few sentences: ``On an H200, shared memory limits this kernel: it takes at least 210 us, ...``."""
    a = "an" if bound.gpu[:1] in "AHLR8" else "a"
    limiter = bound.limiter
    if limiter is None or limiter.microseconds == 0:
        return f"The simulator counted no work that takes time on {a} {bound.gpu}."
    verb, they_take = ("limit", "they take") if limiter.unit in _PLURAL else ("limits", "it takes")
    others = [
        f"{UNITS[unit.unit]} {words.microseconds(unit.microseconds)}"
        for unit in sorted(bound.units, key=lambda unit: -unit.microseconds)
        if unit.unit != "launches" and SHOWN * limiter.microseconds <= unit.microseconds < limiter.microseconds
    ]
    takes = f"{they_take} at least {words.microseconds(limiter.microseconds)}"
    said = f"On {a} {bound.gpu}, {UNITS[limiter.unit]} {verb} this kernel: {takes}"
    said += (f" (others: {', '.join(others)})" if others else "") + "."
    launching = next((unit for unit in bound.units if unit.unit == "launches"), None)
    if launching is not None and launching.microseconds > limiter.microseconds:
        every = words.count(launching.work, "launch alone takes", "launches alone take")
        said += f" This size is small: {every} at least {words.microseconds(launching.microseconds)}."
    if 0 < bound.blocks < bound.multiprocessors:
        said += f" Its blocks use only {bound.blocks} of the {bound.multiprocessors} multiprocessors."
    if not bound.arithmetic:
        said += " Arithmetic was not counted."
    size = f", {bound.case!r} ({', '.join(filter(None, (bound.dtype, words.sizes(bound.dims))))})" if bound.case else ""
    return said + f" This is a lower bound for the counted case{size}, not a prediction: a real run takes longer."
