"""Whether the tests notice when what decides a verdict is wrong: ``python -m tests.mutation [--record] [NAME...]``.

Each file of ``TARGETS`` is changed at one place at a time (a comparison, an operator, a number, a call left out), and the tests
that are named beside it must fail. A change that they do not notice survives; each survivor stands, with the reason why no
test can or need notice it, in mutation_survivors.toml. The exit code says whether that is so and at least ``LEAST`` of
the changes of each file were noticed. It takes some minutes of two processors, so it is no part of ``make test``.

``--record`` keeps the numbers in mutation.json, ``--recorded`` prints them.
"""

from __future__ import annotations

import argparse
import ast
import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import signal
import sys
import time
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, ModuleType

ROOT = Path(__file__).parents[1]
RECORD, SURVIVORS = ROOT / "tests" / "mutation.json", ROOT / "tests" / "mutation_survivors.toml"
LEAST = 0.9

TARGETS: dict[str, list[str]] = {
    "grader/comparison/compare.py": ["tests/comparison"],
    "grader/judge/correct.py": ["tests/judge/test_stages.py"],
    "grader/judge/safe.py": ["tests/judge/test_stages.py"],
    "grader/judge/plausible.py": ["tests/judge/test_stages.py"],
    "grader/judge/efficient.py": ["tests/judge/test_stages.py", "tests/judge/test_efficient.py"],
    "grader/jail/imports.py": ["tests/attacks/test_imports.py"],
    "grader/timing/turns.py": ["tests/timing/test_turns.py"],
    "grader/timing/others.py": ["tests/timing/test_turns.py"],
}
"""The tests for each file: those that need no compiler."""

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}
Change = Callable[[], str]


@dataclass(frozen=True)
class Mutant:
    """One change: what the line says before and after."""

    file: str
    line: int
    before: str
    after: str
    code: CodeType

    @property
    def name(self) -> str:
        """What tells it from others, whatever its line's number is."""
        return f"{self.before} -> {self.after}"


def mutants(file: str) -> Iterator[Mutant]:
    """All changes of a file, one at a time."""
    text = (ROOT / file).read_text(encoding="utf-8")
    count = sum(1 for _ in _sites(ast.parse(text)))
    for number in range(count):
        tree = ast.parse(text)
        node, change = next(site for i, site in enumerate(_sites(tree)) if i == number)
        before = ast.unparse(node)
        change()
        code = compile(ast.fix_missing_locations(tree), str(ROOT / file), "exec")
        yield Mutant(file, node.lineno, before, ast.unparse(node), code)


def _sites(tree: ast.Module) -> Iterator[tuple[ast.stmt | ast.expr, Callable[[], None]]]:
    """Nodes and how each could be changed. Types are left alone, and so are texts: they decide nothing."""
    for node in _evaluated(tree):
        if isinstance(node, ast.Compare):
            for i, operator in enumerate(node.ops):
                yield node, lambda node=node, i=i, to=_COMPARISONS[type(operator)]: node.ops.__setitem__(i, to())
        elif isinstance(node, (ast.BinOp, ast.AugAssign)) and type(node.op) in _OPERATORS:
            yield node, lambda node=node: setattr(node, "op", _OPERATORS[type(node.op)]())
        elif isinstance(node, ast.BoolOp):
            other = ast.And if isinstance(node.op, ast.Or) else ast.Or
            yield node, lambda node=node, other=other: setattr(node, "op", other())
            for i in range(len(node.values)):  # one of the conditions decides nothing any more
                nothing = ast.Constant(isinstance(node.op, ast.And))
                yield node, lambda node=node, i=i, nothing=nothing: node.values.__setitem__(i, nothing)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.Not, ast.Invert, ast.USub)):
            yield (
                node,
                lambda node=node: (
                    setattr(node, "op", ast.UAdd() if isinstance(node.op, ast.USub) else node.op)
                    or (
                        setattr(node, "operand", ast.UnaryOp(node.op, node.operand))
                        if not isinstance(node.op, ast.UAdd)
                        else None
                    )
                ),
            )
        elif isinstance(node, ast.Constant) and isinstance(node.value, (bool, int, float)):
            value = (
                (not node.value)
                if isinstance(node.value, bool)
                else node.value + 1
                if node.value < 1e6
                else node.value * 2
            )
            yield node, lambda node=node, value=value: setattr(node, "value", value)
        elif isinstance(node, ast.IfExp):
            yield node, lambda node=node: setattr(node, "test", ast.UnaryOp(ast.Not(), node.test))
        elif (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)) or _gives_something(node):
            yield node, lambda node=node: setattr(node, "value", ast.Constant(None))


def _gives_something(node: ast.AST) -> bool:
    return isinstance(node, ast.Return) and node.value is not None and not isinstance(node.value, ast.Constant)


def _evaluated(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes below one in order, without types."""
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield child
                yield from _evaluated(child)


class Instead(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Loads a changed module in place of the file."""

    def __init__(self, mutant: Mutant) -> None:
        self.module = mutant.file.removesuffix(".py").replace("/", ".")
        self.path = str(ROOT / mutant.file)
        self.code = mutant.code

    def find_spec(self, name: str, path: object = None, target: object = None) -> importlib.machinery.ModuleSpec | None:
        return importlib.util.spec_from_file_location(name, self.path, loader=self) if name == self.module else None

    def exec_module(self, module: ModuleType) -> None:
        exec(self.code, module.__dict__)


def start(tests: Sequence[str], mutant: Mutant | None) -> int:
    """Run tests in a process of their own, which has torch already; its number."""
    process = os.fork()
    if process:
        return process
    code = 70
    try:
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDWR)
        for file in (0, 1, 2):
            os.dup2(nothing, file)
        import pytest

        if mutant is not None:
            sys.meta_path.insert(0, Instead(mutant))
        code = int(pytest.main(["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *tests]))
    except BaseException:
        code = 1  # not even a module any more
    finally:
        os._exit(code)


def noticed(found: Sequence[Mutant], tests: Sequence[str], workers: int, limit: float) -> list[bool]:
    """Whether the tests fail, or take too long, for each."""
    results: dict[int, bool] = {}
    running: dict[int, tuple[int, float]] = {}
    waiting = list(enumerate(found))
    while waiting or running:
        while waiting and len(running) < workers:
            number, mutant = waiting.pop(0)
            running[start(tests, mutant)] = (number, time.monotonic() + limit)
        time.sleep(0.05)
        for process, (number, until) in list(running.items()):
            ended, status = os.waitpid(process, os.WNOHANG)
            if not ended and time.monotonic() > until:
                os.killpg(process, signal.SIGKILL)
                ended, status = os.waitpid(process, 0)
            if ended:
                del running[process]
                results[number] = status != 0
    return [results[number] for number in range(len(found))]


def run(file: str, workers: int) -> dict[str, object]:
    """All changes of one file."""
    tests = TARGETS[file]
    began = time.monotonic()
    if os.waitstatus_to_exitcode(os.waitpid(start(tests, None), 0)[1]) != 0:
        raise SystemExit(f"{' '.join(tests)} fail without any change")
    limit = 60 + 5 * (time.monotonic() - began)
    found = list(mutants(file))
    killed = noticed(found, tests, workers, limit)
    survivors = [f"{m.name}" for m, dead in zip(found, killed) if not dead]
    for mutant, dead in zip(found, killed):
        if not dead:
            print(f"  {file}:{mutant.line}: {mutant.name}", flush=True)
    print(f"{file}: {sum(killed)} of {len(found)} noticed, {time.monotonic() - began:.0f} s", flush=True)
    return {"file": file, "changes": len(found), "noticed": sum(killed), "survivors": survivors}


def unexplained(row: dict[str, object], reasons: dict[str, dict[str, str]]) -> list[str]:
    """Survivors of a file that nobody gave a reason for."""
    known = reasons.get(str(row["file"]), {})
    return [name for name in row["survivors"] if name not in known]  # type: ignore[attr-defined]


def judge(rows: Sequence[dict[str, object]]) -> int:
    """Print the numbers; how many files are not as they should be."""
    reasons = tomllib.loads(SURVIVORS.read_text(encoding="utf-8")) if SURVIVORS.exists() else {}
    bad = 0
    for row in rows:
        share = row["noticed"] / max(1, row["changes"])  # type: ignore[operator, call-overload]
        open_ = unexplained(row, reasons)
        bad += share < LEAST or bool(open_)
        print(f"{row['file']:34} {row['noticed']:4} of {row['changes']:4} {share:6.1%}  {len(open_)} without a reason")
        for name in open_:
            print(f"    {name}")
    return bad


def main() -> int:
    """The exit code says whether every file's tests notice enough."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="parts of the files' names; all when none is given")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--record", action="store_true", help="keep the numbers of these files")
    parser.add_argument("--recorded", action="store_true", help="print what was kept")
    arguments = parser.parse_args()
    kept = json.loads(RECORD.read_text()) if RECORD.exists() else {"version": 1, "files": []}
    if arguments.recorded:
        return 1 if judge(kept["files"]) else 0
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    os.environ["OMP_NUM_THREADS"] = "1"
    os.chdir(ROOT)
    import hypothesis  # noqa: F401  (what takes long to import is there before the tests are)
    import jinja2  # noqa: F401
    import msgspec  # noqa: F401
    import pytest  # noqa: F401
    import rich.console  # noqa: F401
    import torch

    import grader.course.task
    import grader.verdict  # noqa: F401

    torch.set_num_threads(1)
    chosen = [file for file in TARGETS if not arguments.names or any(name in file for name in arguments.names)]
    rows = []
    for file in chosen:
        rows.append(run(file, arguments.workers))
        if arguments.record:
            others = [row for row in kept["files"] if row["file"] != file and row["file"] in TARGETS]
            kept["files"] = sorted([*others, rows[-1]], key=lambda row: row["file"])
            RECORD.write_text(json.dumps(kept, indent=1) + "\n")
    return 1 if judge(rows) else 0


if __name__ == "__main__":
    sys.exit(main())
