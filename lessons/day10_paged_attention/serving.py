"""A small simulation of continuous batching: requests arrive, grow by a token each step, and end.

Two ways to keep their KV caches are compared on the same requests. *Contiguous*: a request reserves room for the longest
text that it may become, side by side, until it ends. *Paged*: it takes a page when its last one is full, and if none is
left, the youngest request gives its pages back and starts again later.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from allocator import BlockAllocator, OutOfPages


@dataclass
class Request:
    """One user's text: known tokens, and tokens to be written (which nobody knows beforehand)."""

    prompt: int
    output: int
    written: int = 0


@dataclass(frozen=True)
class Step:
    """What the cache holds after a step, in tokens."""

    running: int
    used: int
    reserved: int


def requests(count: int, longest: int, seed: int) -> list[Request]:
    """Most texts are short, some are long: as in real traffic."""
    chooser = random.Random(seed)

    def length() -> int:
        return min(int(chooser.lognormvariate(4.8, 0.9)) + 1, longest // 2)

    return [Request(prompt=length(), output=length()) for _ in range(count)]


def contiguous(todo: list[Request], tokens: int, longest: int) -> list[Step]:
    """Every running request reserves `longest` tokens of a cache of so many tokens."""
    waiting = [Request(r.prompt, r.output) for r in todo]
    running: list[Request] = []
    steps = []
    while waiting or running:
        while waiting and (len(running) + 1) * longest <= tokens:
            running.append(waiting.pop(0))
        for request in running:
            request.written += 1
        used = sum(r.prompt + r.written for r in running)
        steps.append(Step(len(running), used, len(running) * longest))
        running = [r for r in running if r.written < r.output]
    return steps


def paged(todo: list[Request], tokens: int, page_size: int) -> tuple[list[Step], int]:
    """The same requests with pages. Also returns how often a request had to start again."""
    allocator = BlockAllocator(tokens // page_size, page_size)
    waiting = [Request(r.prompt, r.output) for r in todo]
    running: list[tuple[Request, int]] = []
    steps, restarts = [], 0
    while waiting or running:
        while waiting and -(-(waiting[0].prompt + 1) // page_size) <= allocator.free_pages:
            number = allocator.create()
            allocator.append(number, waiting[0].prompt)
            running.append((waiting.pop(0), number))
        position = 0
        while position < len(running):
            request, number = running[position]
            try:
                allocator.append(number)
            except OutOfPages:
                youngest, its_number = running.pop()
                allocator.free(its_number)
                youngest.written = 0
                waiting.insert(0, youngest)
                restarts += 1
                continue
            request.written += 1
            position += 1
        allocator.check()
        used = sum(sequence.length for sequence in allocator.sequences.values())
        steps.append(Step(len(running), used, (allocator.pages - allocator.free_pages) * page_size))
        for request, number in running:
            if request.written >= request.output:
                allocator.free(number)
        running = [(request, number) for request, number in running if request.written < request.output]
    return steps, restarts
