"""A small simulation of continuous batching: requests arrive, grow by a token each step, and end.

It compares three ways to store their KV caches, on the same requests. *Contiguous*: a request reserves contiguous
memory for the longest possible text until it ends. *Known lengths*: contiguous too, with the exact length of each text
known in advance. *Paged*: a request takes a page when its last one is full. If none is left, the youngest request
releases its pages and starts again later.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from allocator import BlockAllocator, OutOfPages


@dataclass
class Request:
    """A request: the number of tokens of its prompt and of its output. The server does not know the latter."""

    prompt: int
    output: int
    written: int = 0


@dataclass(frozen=True)
class Step:
    """The contents of the cache after a step, in tokens."""

    running: int
    used: int
    reserved: int


def requests(count: int, longest: int, seed: int) -> list[Request]:
    """Draw requests: most texts are short and some are long, as in real traffic."""
    chooser = random.Random(seed)

    def length() -> int:
        return min(int(chooser.lognormvariate(4.8, 0.9)) + 1, longest // 2)

    return [Request(prompt=length(), output=length()) for _ in range(count)]


def contiguous(todo: list[Request], tokens: int, longest: int) -> list[Step]:
    """Serve requests that each reserve `longest` tokens of a cache of `tokens` tokens."""
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


@dataclass(frozen=True)
class Placement:
    """The memory of a request, and the steps during which the request held it: ``begin`` to ``end`` - 1."""

    address: int
    size: int
    begin: int
    end: int


def holes(taken: list[tuple[int, int]], tokens: int) -> list[tuple[int, int]]:
    """Return the free pieces (address, size) of a cache of `tokens` tokens."""
    found, address = [], 0
    for start, size in [*sorted(taken), (tokens, 0)]:
        if start > address:
            found.append((address, start - address))
        address = start + size
    return found


def known_lengths(todo: list[Request], tokens: int) -> tuple[list[Step], list[Placement]]:
    """Serve requests in exactly the memory that each will need, in the first hole that is large enough."""
    if any(request.prompt + request.output > tokens for request in todo):
        raise ValueError(f"a text is longer than the whole cache of {tokens} tokens")
    waiting = [Request(r.prompt, r.output) for r in todo]
    running: list[tuple[Request, int, int]] = []  # (request, address, first step)
    steps, placements = [], []
    while waiting or running:
        while waiting:
            size = waiting[0].prompt + waiting[0].output
            free = holes([(address, r.prompt + r.output) for r, address, _ in running], tokens)
            fits = [address for address, room in free if room >= size]
            if not fits:
                break
            running.append((waiting.pop(0), fits[0], len(steps)))
        for request, _, _ in running:
            request.written += 1
        used = sum(r.prompt + r.written for r, _, _ in running)
        steps.append(Step(len(running), used, sum(r.prompt + r.output for r, _, _ in running)))
        for request, address, begin in running:
            if request.written >= request.output:
                placements.append(Placement(address, request.prompt + request.output, begin, len(steps)))
        running = [entry for entry in running if entry[0].written < entry[0].output]
    return steps, placements


def paged(todo: list[Request], tokens: int, page_size: int) -> tuple[list[Step], int]:
    """Serve requests from pages. Also return how often a request had to start again."""
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
