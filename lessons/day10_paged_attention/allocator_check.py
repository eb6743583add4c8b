"""Grader of a block allocator: named cases first, then random operations.

    python lessons/day10_paged_attention/allocator_check.py [FILE]

The check applies each operation to the allocator and to a mock cache in which every token is a new number. After each
one, every sequence must read back its own tokens through its table and hold no more pages than they take, and no page
may be lost. If random operations break an invariant, the check shows the shortest sequence of them that does.
"""

from __future__ import annotations

import importlib.util
import random
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

OWN = Path(__file__).resolve().parents[2] / "exercises" / "day10_paged_attention" / "block_allocator.py"
Operation = tuple[Any, ...]

CASES: dict[str, tuple[int, int, str]] = {  # pages, page_size, operations
    "a page is filled slot by slot": (4, 3, "create a; append a 1; append a 1; append a 1"),
    "a new page only when the last one is full": (4, 3, "create a; append a 3; append a 1; append a 5"),
    "no tokens take no page": (1, 4, "create a; append a 0; create b; append b 4"),
    "freed pages are allocated again": (2, 2, "create a; append a 4; free a; create b; append b 4"),
    "an append that does not fit changes nothing": (2, 2, "create a; append a 3; append a 2; append a 1"),
    "a fork takes no page": (2, 4, "create a; append a 5; fork a b; fork b c"),
    "a write to a shared page gets a copy": (3, 4, "create a; append a 5; fork a b; append b 1; append a 1"),
    "a copy needs a page as well": (2, 4, "create a; append a 5; fork a b; append b 1"),
    "full pages stay shared": (3, 2, "create a; append a 4; fork a b; append b 2"),
    "the last owner writes without a copy": (2, 4, "create a; append a 2; fork a b; free a; append b 1"),
    "freeing one of two keeps the other's pages": (
        3,
        2,
        "create a; append a 3; fork a b; free a; create c; append c 2",
    ),
}
RANDOM = "300 x 40 random operations"


class Complaint(Exception):
    """An error of the allocator."""


@dataclass
class Result:
    """The result of one case: its error, or an empty string."""

    name: str
    wrong: str = ""


class Driver:
    """A driver that applies operations to an allocator and to a mock cache, and compares the two."""

    def __init__(self, module: ModuleType, pages: int, page_size: int) -> None:
        self.allocator, self.refuses = module.BlockAllocator(pages, page_size), module.OutOfPages
        self.pages, self.page_size = pages, page_size
        self.memory: list[int | None] = [None] * (pages * page_size)
        self.numbers: dict[str, int] = {}
        self.texts: dict[str, list[int]] = {}
        self.tokens = 0

    def do(self, operation: Operation) -> None:
        """Apply one operation; skip it if its sequence does not exist."""
        kind, name, *more = operation
        if kind == "create":
            self.numbers[name], self.texts[name] = self.allocator.create(), []
        elif name not in self.numbers:
            return
        elif kind == "fork":
            self.numbers[more[0]] = self.allocator.fork(self.numbers[name])
            self.texts[more[0]] = list(self.texts[name])
        elif kind == "free":
            self.allocator.free(self.numbers.pop(name))
            del self.texts[name]
        else:
            self._append(name, int(more[0]))
        self._compare()

    def _append(self, name: str, tokens: int) -> None:
        table, length = self._table(name), len(self.texts[name])
        owners = sum(table[-1:] == [page] for other in self.numbers for page in self._table(other))
        copies = tokens > 0 and length % self.page_size > 0 and owners > 1
        needed = -(-(length + tokens) // self.page_size) - len(table) + copies
        free = self.allocator.free_pages
        try:
            appended = self.allocator.append(self.numbers[name], tokens)
        except self.refuses:
            if needed <= free:
                raise Complaint(f"it raises OutOfPages, although it needs {needed} pages and {free} are free") from None
            return
        if needed > free:
            raise Complaint(f"it does not raise OutOfPages, although it needs {needed} pages and {free} are free")
        if bool(appended.copy) != copies:
            raise Complaint(
                "the last page is shared, but it requests no copy"
                if copies
                else "it requests a copy of a page that is not shared"
            )
        if appended.copy:
            source, target = (place * self.page_size for place in appended.copy)
            self.memory[target : target + self.page_size] = self.memory[source : source + self.page_size]
        if len(appended.slots) != tokens:
            raise Complaint(f"{len(appended.slots)} slots for {tokens} tokens")
        for slot in appended.slots:
            if not 0 <= slot < len(self.memory):
                raise Complaint(f"slot {slot} is outside the cache")
            self.tokens += 1
            self.memory[slot] = self.tokens
            self.texts[name].append(self.tokens)

    def _table(self, name: str) -> list[int]:
        return list(self.allocator.sequences[self.numbers[name]].table)

    def _compare(self) -> None:
        held = set()
        for name, text in self.texts.items():
            table = self._table(name)
            if len(table) != -(-len(text) // self.page_size) or len(set(table)) != len(table):
                raise Complaint(f"{name} has {len(text)} tokens and holds the pages {table}")
            places = [table[i // self.page_size] * self.page_size + i % self.page_size for i in range(len(text))]
            foreign = [i for i, place in enumerate(places) if self.memory[place] != text[i]]
            if foreign:
                raise Complaint(f"token {foreign[0]} of {name} was overwritten by another sequence")
            held |= set(table)
        if len(held) + self.allocator.free_pages != self.pages:
            raise Complaint(f"{len(held)} pages are held, {self.allocator.free_pages} are free, of {self.pages}")


def wrong(module: ModuleType, pages: int, page_size: int, operations: list[Operation]) -> str:
    """Return the first error during the operations, or an empty string."""
    try:
        driver = Driver(module, pages, page_size)
        for operation in operations:
            driver.do(operation)
    except Complaint as complaint:
        return f"{_said(operation)}: {complaint}"
    except NotImplementedError:
        return "not written yet"
    except Exception as error:  # the code of a learner may raise anything
        return f"{type(error).__name__}: {error}"
    return ""


def grade(module: ModuleType) -> list[Result]:
    """Return the results of all cases, in order."""
    results = []
    for name, (pages, page_size, script) in CASES.items():
        operations = [tuple(operation.split()) for operation in script.split("; ")]
        results.append(Result(name, wrong(module, pages, page_size, operations)))
    results.append(Result("a sequence cannot be freed twice", _freed_twice(module)))
    results.append(Result(RANDOM, "" if any(result.wrong for result in results) else _random(module)))
    return results


def _freed_twice(module: ModuleType) -> str:
    try:
        allocator = module.BlockAllocator(2, 2)
        number = allocator.create()
        allocator.append(number, 3)
        allocator.free(number)
        allocator.free(number)
    except KeyError:
        return ""
    except Exception as error:
        return f"{type(error).__name__}, not KeyError: {error}"
    return "the second free does not raise KeyError"


def _random(module: ModuleType) -> str:
    chooser = random.Random(0)
    for _ in range(300):
        pages, page_size = chooser.randint(1, 12), chooser.randint(1, 5)
        operations: list[Operation] = []
        for _ in range(40):
            kind, name = chooser.choice(["create", "fork", "free", *3 * ["append"]]), chooser.choice("abcdef")
            more = {"append": [chooser.randint(0, 7)], "fork": [chooser.choice("ghij")]}.get(kind, [])
            if kind == "create" or kind == "fork":  # each sequence gets a new name
                taken = {op[-1] if op[0] == "fork" else op[1] for op in operations if op[0] in ("create", "fork")}
                if (more[0] if more else name) in taken:
                    continue
            operations.append((kind, name, *more))
        if wrong(module, pages, page_size, operations):
            return f"{pages} pages of {page_size}: " + _fewest(module, pages, page_size, operations)
    return ""


def _fewest(module: ModuleType, pages: int, page_size: int, operations: list[Operation]) -> str:
    """Remove operations as long as the others still fail, and return the rest with its error."""
    at = 0
    while at < len(operations):
        fewer = operations[:at] + operations[at + 1 :]
        if wrong(module, pages, page_size, fewer):
            operations = fewer
        else:
            at += 1
    script = "; ".join(map(_said, operations))
    return f"{script}: then {wrong(module, pages, page_size, operations)}"


def _said(operation: Operation) -> str:
    return " ".join(map(str, operation))


def load(file: Path = OWN) -> ModuleType:
    """Import a file as a module, anew each time."""
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look up their module here
    spec.loader.exec_module(module)
    return module


def check(file: Path = OWN) -> bool:
    """Print the verdict on a file, and return whether it passed."""
    try:
        results = grade(load(Path(file)))
    except Exception as error:
        print(f"{Path(file).name} cannot be read: {type(error).__name__}: {error}")
        return False
    for result in results:
        print(f"{'✗' if result.wrong else '✓'} {result.name}" + (f"\n    {result.wrong}" if result.wrong else ""))
    return not any(result.wrong for result in results)


if __name__ == "__main__":
    sys.exit(0 if check(*map(Path, sys.argv[1:2])) else 1)
