"""The block allocator of day 10: its invariants hold after any sequence of operations."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, rule

DAY = Path(__file__).parents[2] / "lessons" / "day10_paged_attention"


def lesson_module(name: str) -> ModuleType:
    """Load a Python file of the lesson."""
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, DAY / f"{name}.py")
        assert spec is not None and spec.loader is not None
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


lesson_module("sequences")
allocator_module = lesson_module("allocator")
serving = lesson_module("serving")
BlockAllocator, OutOfPages = allocator_module.BlockAllocator, allocator_module.OutOfPages


class Cache(RuleBasedStateMachine):
    """A state machine that runs random operations on an allocator and simulates the memory of the cache.

    Each token is a new number. If two sequences shared a slot, or a page were freed while still in use, a sequence
    would read a number that another one wrote.

    """

    numbers = Bundle("numbers")

    @initialize(pages=st.integers(0, 12), page_size=st.integers(1, 5))
    def begin(self, pages: int, page_size: int) -> None:
        self.allocator = BlockAllocator(pages, page_size)
        self.memory = [-1] * (pages * page_size)
        self.texts: dict[int, list[int]] = {}
        self.token = 0

    @rule(target=numbers)
    def create(self) -> int:
        number = self.allocator.create()
        self.texts[number] = []
        return number

    @rule(number=numbers, tokens=st.integers(0, 9))
    def append(self, number: int, tokens: int) -> None:
        before = (list(self.allocator.owners), self.allocator.free_pages, self.allocator.sequences[number].length)
        needed = self.allocator.pages_needed(number, tokens)
        try:
            appended = self.allocator.append(number, tokens)
        except OutOfPages:
            assert needed > self.allocator.free_pages
            after = (list(self.allocator.owners), self.allocator.free_pages, self.allocator.sequences[number].length)
            assert after == before, "a failed append changed something"
            return
        assert before[1] - self.allocator.free_pages == needed
        size = self.allocator.page_size
        if appended.copy is not None:
            source, target = appended.copy
            self.memory[target * size : (target + 1) * size] = self.memory[source * size : (source + 1) * size]
        assert len(appended.slots) == tokens == len(set(appended.slots))
        for slot in appended.slots:
            assert self.allocator.owners[slot // size] == 1, "a shared page would be written"
            self.memory[slot] = self.token
            self.texts[number].append(self.token)
            self.token += 1

    @rule(target=numbers, number=numbers)
    def fork(self, number: int) -> int:
        free = self.allocator.free_pages
        twin = self.allocator.fork(number)
        assert self.allocator.free_pages == free, "a fork must not allocate a page"
        self.texts[twin] = list(self.texts[number])
        return twin

    @rule(number=consumes(numbers))
    def free(self, number: int) -> None:
        self.allocator.free(number)
        del self.texts[number]
        with pytest.raises(KeyError):
            self.allocator.free(number)

    @invariant()
    def invariants_hold(self) -> None:
        if hasattr(self, "allocator"):
            self.allocator.check()

    @invariant()
    def each_sequence_reads_its_own_tokens(self) -> None:
        for number, text in getattr(self, "texts", {}).items():
            sequence, size = self.allocator.sequences[number], self.allocator.page_size
            read = [self.memory[sequence.table[i // size] * size + i % size] for i in range(sequence.length)]
            assert read == text

    def teardown(self) -> None:
        if not hasattr(self, "allocator"):
            return
        for number in list(self.texts):
            self.allocator.free(number)
        self.allocator.check()
        assert self.allocator.free_pages == self.allocator.pages, "pages leaked"


Cache.TestCase.settings = settings(max_examples=60, stateful_step_count=30)
test_any_operations = Cache.TestCase


def test_a_cache_without_pages_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot make a cache"):
        BlockAllocator(4, 0)
    with pytest.raises(ValueError, match="cannot append"):
        allocator = BlockAllocator(4, 4)
        allocator.append(allocator.create(), -1)


def test_a_fork_copies_only_the_page_that_is_written() -> None:
    allocator = BlockAllocator(8, 4)
    first = allocator.create()
    allocator.append(first, 6)
    twin = allocator.fork(first)
    appended = allocator.append(twin, 1)
    old, new = allocator.sequences[first].table, allocator.sequences[twin].table
    assert appended.copy == (old[1], new[1]) and old[0] == new[0] and old[1] != new[1]
    assert allocator.append(first, 1).copy is None, "the first sequence no longer shares its page, so nothing is copied"


@pytest.mark.parametrize("page_size", [8, 16, 64])
def test_paging_serves_the_same_requests_in_fewer_steps(page_size: int) -> None:
    todo = serving.requests(40, longest=1024, seed=3)
    contiguous = serving.contiguous(todo, tokens=8192, longest=1024)
    paged, _ = serving.paged(todo, tokens=8192, page_size=page_size)
    assert len(paged) < len(contiguous)
    assert all(step.used <= step.reserved <= 8192 for step in paged + contiguous)
    assert all(step.reserved - step.used < step.running * page_size for step in paged)


def test_allocations_of_known_lengths_never_overlap() -> None:
    todo = serving.requests(40, longest=256, seed=3)
    steps, placements = serving.known_lengths(todo, tokens=1024)
    assert sorted(p.size for p in placements) == sorted(r.prompt + r.output for r in todo)
    for step, seen in enumerate(steps):
        taken = [(p.address, p.size) for p in placements if p.begin <= step < p.end]
        free = serving.holes(taken, 1024)
        assert sum(size for _, size in taken) + sum(size for _, size in free) == 1024, (
            "allocations overlap, or free space is lost"
        )
        assert (
            seen.running == len(taken)
            and seen.reserved == sum(size for _, size in taken)
            and seen.used <= seen.reserved
        )
    with pytest.raises(ValueError, match="longer than the whole cache"):
        serving.known_lengths(todo, tokens=8)
