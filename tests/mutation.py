"""Whether the tests notice when what decides a verdict is wrong: ``python -m tests.mutation [--record] [NAME...]``.

Each file of ``TARGETS`` is changed at one place at a time (a comparison, an operator, a number, a condition; a call, a statement or
one alternative of a regular expression left out), and the tests that are named beside it must fail. A change that they do not notice survives; each survivor stands, with the
reason why no test can or need notice it, in mutation_survivors.toml. The exit code says whether that is so and at least ``LEAST``
of the changes of each file were noticed. It takes long (``--sample 40`` tries so many changes of each file, drawn by ``--seed``),
so it is no part of ``make test``.

A changed C++ file stands in a copy of the folders in which it and its tests are; what does not compile is no change. One of the
simulator's checks is compiled by itself and linked with the rest of the simulator, in place of the one for which the tests' kernels
were built: the unit tests and the corpus judge it, in seconds.
After a new test, ``--again`` tries what had survived, if the file is the same.
``--record`` keeps the numbers in mutation.json, ``--recorded`` prints them, ``--out FILE`` writes them elsewhere.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import importlib.abc
import importlib.machinery
import importlib.util
import io
import json
import os
import pickle
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, ModuleType

ROOT = Path(__file__).parents[1]
RECORD, SURVIVORS = ROOT / "tests" / "mutation.json", ROOT / "tests" / "mutation_survivors.toml"
LEAST = 0.9

TARGETS: dict[str, list[str]] = {
    "grader/judge/comparison/compare.py": ["tests/judge/comparison"],
    "grader/judge/driver.py": ["tests/judge/test_driver.py"],
    "grader/judge/cases.py": ["tests/judge/test_cases.py", "tests/judge/test_stopping.py"],
    "grader/judge/correct.py": ["tests/judge/test_stages.py"],
    "grader/judge/safe.py": ["tests/judge/test_stages.py"],
    "grader/judge/plausible.py": ["tests/judge/test_stages.py"],
    "grader/judge/efficient.py": ["tests/judge/test_stages.py", "tests/judge/test_efficient.py"],
    "grader/execution/build/stores.py": ["tests/execution/build/test_stores.py"],
    "grader/course/tolerance.py": ["tests/judge/comparison"],
    "grader/execution/jail/imports.py": ["tests/attacks/test_imports.py"],
    "grader/execution/jail/instrumented.py": [
        "tests/attacks/test_own_words.py",
        "tests/attacks/test_line_directives.py",
    ],
    "grader/execution/jail/own_code.py": ["tests/attacks/test_own_words.py"],
    "grader/judge/timing/turns.py": ["tests/judge/timing/test_turns.py"],
    "grader/judge/timing/others.py": ["tests/judge/timing/test_turns.py"],
}
"""The tests for each file: those that need no kernel."""

_CONFINE = ["tests/attacks/test_confine.py"]
_CORPUS = ["tests/simulator/unit", "tests/simulator/corpus"]
_DECIDE = ("races", "order", "joins", "members", "local_arrays")
_ASYNCHRONOUS = ("mbarriers", "pending", "swizzles")
_COUNT = ("request", "requests", "touched_sectors", "trace")
_KEEP = ("lookup", "region", "state", "events", "hooks", "findings", "site")
_TELL = ("errors", "streams", "counting")
_TOLD = [*_CORPUS, *(f"tests/simulator/test_{name}.py" for name in ("report", "counters", "workers"))]
_COUNTED = [*_CORPUS, "tests/simulator/test_counters.py"]
CHECKS = "grader/simulator/checks/"
CXX_TARGETS: dict[str, list[str]] = {
    "grader/execution/jail/source/system_calls.cpp": _CONFINE,
    "grader/execution/jail/source/landlock.cpp": _CONFINE,
    "grader/execution/jail/source/limits.cpp": _CONFINE,
    "grader/simulator/runtime/submission_sandbox.cpp": ["tests/simulator/test_own_memory.py"],
    **dict.fromkeys([f"{CHECKS}{name}.cpp" for name in (*_DECIDE, *_ASYNCHRONOUS, *_KEEP)], _CORPUS),
    f"{CHECKS}async_copies.cpp": [*_CORPUS, "tests/simulator/test_tensor_copies.py"],
    **dict.fromkeys([f"{CHECKS}{name}.cpp" for name in _TELL], _TOLD),
    f"{CHECKS}clusters.cpp": _CORPUS,
    **dict.fromkeys([f"{CHECKS}{name}.cpp" for name in _COUNT], _COUNTED),
    f"{CHECKS}parallel_blocks.cpp": [*_CORPUS, "tests/simulator/test_workers.py"],
    f"{CHECKS}products.cpp": [*_CORPUS, "tests/simulator/test_wgmma.py", "tests/simulator/test_tensor_memory.py"],
    f"{CHECKS}executed.cpp": [*_CORPUS, "tests/simulator/test_operations.py"],
    f"{CHECKS}tensor_memory.cpp": [*_CORPUS, "tests/simulator/test_tensor_memory.py"],
}
_places: dict[tuple[Path, int], list[tuple[str, int]]] = {}
"""Where in the sources an address of the corpus's kernels lies."""
_QUIETLY = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
INCLUDES = ("grader/execution/jail/source", "grader/simulator/include", "grader/simulator", "grader/simulator/runtime")

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
    code: CodeType | str
    """For C++ the whole file's text."""

    @property
    def name(self) -> str:
        """What tells it from others, whatever its line's number is."""
        return f"{self.before} -> {self.after}"


def mutants(file: str) -> Iterator[Mutant]:
    """All changes of a file, one at a time."""
    text = (ROOT / file).read_text(encoding="utf-8")
    if not file.endswith(".py"):
        yield from _cxx_mutants(file, text)
        return
    count = sum(1 for _ in _sites(ast.parse(text)))
    for number in range(count):
        tree = ast.parse(text)
        node, change = next(site for i, site in enumerate(_sites(tree)) if i == number)
        before = ast.unparse(node)
        change()
        code = compile(ast.fix_missing_locations(tree), str(ROOT / file), "exec")
        yield Mutant(file, node.lineno, *_what_differs(before, ast.unparse(node)), code)


def _what_differs(before: str, after: str, around: int = 20) -> tuple[str, str]:
    """Of long texts; and a little before and behind it."""
    if len(before) < 200:
        return before, after
    start = max(0, _same(before, after) - around)
    before, after = before[start:], after[start:]
    end = max(0, _same(before[around:][::-1], after[around:][::-1]) - around)
    return before[: len(before) - end], after[: len(after) - end]


def _same(one: str, other: str) -> int:
    """How many characters both begin with."""
    return next((i for i, (a, b) in enumerate(zip(one, other)) if a != b), min(len(one), len(other)))


def _sites(tree: ast.Module) -> Iterator[tuple[ast.stmt | ast.expr, Callable[[], None]]]:
    """Nodes and how each could be changed. Types are left alone, and so are texts that are no pattern: they decide nothing."""
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
        elif (
            isinstance(node, ast.Call)
            and ast.unparse(node.func) == "re.compile"
            and isinstance(node.args[0], ast.Constant)
        ):
            pattern = node.args[0]
            for less in _without_an_alternative(pattern.value):
                yield pattern, lambda pattern=pattern, less=less: setattr(pattern, "value", less)
        elif (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)) or _gives_something(node):
            yield node, lambda node=node: setattr(node, "value", ast.Constant(None))


_IN_PATTERN = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]])*\]|#[^\n]*\n|(?P<mark>[(|)])", re.DOTALL)


def _without_an_alternative(pattern: str) -> Iterator[str]:
    """A regular expression (a ``#`` in it begins a comment) with one of each "a|b|c" left out."""
    groups: list[list[int]] = [[-1]]  # where an alternative of each open group ends
    for match in [*_IN_PATTERN.finditer(pattern), None]:
        mark, place = (match["mark"], match.start()) if match else (")", len(pattern))
        if mark == "(":
            groups.append([place])
        elif mark == "|":
            groups[-1].append(place)
        elif mark == ")":
            ends = [*groups.pop(), place]
            for i in range(len(ends) - 1) if len(ends) > 2 else ():
                head = re.match(r"(?:\?(?:P<\w+>|[:=!]|<[=!]))?", pattern[ends[0] + 1 :])[0] if i == 0 else ""  # type: ignore[index]
                kept = pattern[: ends[i] + 1] + head if i == 0 else pattern[: ends[i]]
                yield kept + pattern[ends[i + 1] + (i == 0) :]


_CXX = {
    **{" < ": " <= ", " <= ": " < ", " > ": " >= ", " >= ": " > ", " == ": " != ", " != ": " == ", " && ": " || "},
    **{" || ": " && ", " + ": " - ", " - ": " + ", " | ": " & ", " & ": " | ", " << ": " >> ", "true": "false"},
    **{"false": "true"},
}
_CXX_OPERATOR = re.compile(r" (?:[<>]=?|[=!]=|&&|\|\||[-+|&]|<<) |\b(?:true|false)\b")
_CXX_NUMBER = re.compile(r"(?<![\w.])(?:0x[0-9a-f]+|[0-9]+)(?![\w.]*[\w.])")
_CXX_CONDITION = re.compile(r"\b(if|while) \((?!.*[{;]\s*$.*else)(?P<condition>.+)\)(?= \S)")
_CXX_STATEMENT = re.compile(
    r"(?!(?:return|using|typedef|static_assert|struct|enum|namespace|extern|case|break|continue|else)\b)"
    r"(?:[\w.:>\[\]()*+-]+(?: [-+|&]?= .+)?|[\w.:>-]+\(.*\));"
)
_CXX_ENTRY = re.compile(r"[A-Z]\w+,")


def _cxx_mutants(file: str, text: str) -> Iterator[Mutant]:
    """By lines, as clang-format leaves them. What is assembly, a directive, a comment or a text is left alone."""
    lines = text.split("\n")
    raw = False
    for number, line in enumerate(lines):
        code = re.sub(r'"(?:[^"\\]|\\.)*"', lambda match: "\0" * len(match[0]), line.partition("//")[0].rstrip())
        opens, closes = 'R"(' in line, ')"' in line
        skipped = raw or opens or code.lstrip().startswith(("#", "asm"))
        raw = (raw or opens) and not closes
        if skipped:
            continue
        places = [(match.start(), match.end(), _CXX[match[0]]) for match in _CXX_OPERATOR.finditer(code)]
        for match in _CXX_NUMBER.finditer(code):
            places.append((match.start(), match.end(), f"{int(match[0], 0) + 1}"))
        if match := _CXX_CONDITION.search(code):
            places.append((*match.span("condition"), f"!({match['condition']})"))
        bare = code.strip()
        if _CXX_STATEMENT.fullmatch(bare) or _CXX_ENTRY.fullmatch(bare):
            places.append((code.index(bare), len(code), ""))
        for start, end, new in places:
            after = line[:start] + new + line[end:]
            whole = "\n".join([*lines[:number], after, *lines[number + 1 :]])
            yield Mutant(file, number + 1, line.strip(), after.strip(), whole)


def compiles(mutant: Mutant) -> bool:
    """Whether a C++ file is still one."""
    folders = [f"-I{ROOT / folder}" for folder in INCLUDES]
    argv = ["g++", "-std=c++17", "-w", "-fsyntax-only", *folders, "-x", "c++", "-"]
    return subprocess.run(argv, input=str(mutant.code), text=True, capture_output=True).returncode == 0


def beside(mutant: Mutant, folder: Path) -> None:
    """A course in which the file is changed: all else are links to ours."""
    place, ours = folder, ROOT
    *folders, name = mutant.file.split("/")
    for part in [*folders, name]:
        place.mkdir(exist_ok=True)
        for entry in ours.iterdir():
            if entry.name != part:
                (place / entry.name).symlink_to(entry)
        place, ours = place / part, ours / part
    place.write_text(str(mutant.code), encoding="utf-8")


def simulator_tests(mutant: Mutant, folder: Path, more: Sequence[str] = ()) -> int:
    """Run the unit tests and the corpus with a changed check, under the name of ours, for which the kernels were built; and more.

    Those two not by pytest, which starts a process for each unit test; and where addresses lie in the kernels is looked up once."""
    import pytest

    from grader.frontend.toolchain.cache import open_cache
    from grader.frontend.toolchain.compilers import find_cxx
    from grader.simulator import library, symbolize
    from tests.simulator import test_corpus, test_unit

    plan, cache, unit = library.plan_library(find_cxx("g++")), open_cache(), test_unit.program("g++")
    source = folder / Path(mutant.file).name
    source.write_text(str(mutant.code), encoding="utf-8")
    changed = folder / f"checks_{source.stem}.o"
    library._run(plan, (*plan.compiler.command, *plan.flags, "-c", str(source), "-o", str(changed)), folder)
    objects = [changed if path.name == changed.name else path for path in library.build_objects(plan, cache)]
    link = (
        *plan.compiler.command,
        "-o",
        "unit",
        *map(str, [*sorted(unit.parent.glob("*.o")), *objects]),
        "-pthread",
        "-ldl",
    )
    library._run(plan, link, folder)
    if subprocess.run([folder / "unit"]).returncode != 0:
        return 1
    library.build_objects = lambda plan, cache: objects
    library._build(plan, cache, folder)
    library.build_library = lambda plan, cache: folder / plan.file_name
    look_up = symbolize._addr2line

    def remembered(kernels: Path, addresses: Sequence[int]) -> list[list[tuple[str, int]]]:
        if new := [address for address in addresses if (kernels, address) not in _places]:
            _places.update(zip([(kernels, address) for address in new], look_up(kernels, new)))
        return [_places[kernels, address] for address in addresses]

    symbolize._addr2line = remembered
    for files in test_corpus.FILES.values():
        for file in files:
            test_corpus.check(file, "g++")
    (folder / "places").write_bytes(pickle.dumps(_places))
    others = ["-k", "not clang"]  # what is changed is g++'s simulator; another compiler's kernels want their own
    return int(pytest.main(["-x", *_QUIETLY, *others, *more])) if more else 0


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
        exec(self.code, module.__dict__)  # type: ignore[arg-type]


def start(tests: Sequence[str], mutant: Mutant | None, folder: Path, seconds: int = 0) -> int:
    """Run tests in a process of their own, which has torch already; its number. A change lies in the folder then, and may take
    so many seconds of CPU."""
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

        if seconds:
            resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        if mutant is not None and not isinstance(mutant.code, str):
            instead = Instead(mutant)
            if instead.module in sys.modules:  # and so is what imported it
                for name in [name for name in sys.modules if name.partition(".")[0] == "grader"]:
                    del sys.modules[name]
            sys.meta_path.insert(0, instead)
        elif mutant is not None and mutant.file.startswith(CHECKS):
            os._exit(simulator_tests(mutant, folder, tests[len(_CORPUS) :]))
        elif mutant is not None:
            beside(mutant, folder)
            os.chdir(folder)
            sys.path.insert(0, str(folder))
            for name in [name for name in sys.modules if name.partition(".")[0] in ("tests", "grader")]:
                del sys.modules[name]
        code = int(pytest.main(["-x", *_QUIETLY, *tests]))
    except BaseException:
        code = 1  # not even a module any more
    finally:
        os._exit(code)


def noticed(found: Sequence[Mutant], tests: Sequence[str], workers: int, limit: float, seconds: int) -> list[bool]:
    """Whether the tests fail, or take too long, for each."""
    results: dict[int, bool] = {}
    running: dict[int, tuple[int, Path, float]] = {}
    waiting = list(enumerate(found))
    while waiting or running:
        while waiting and len(running) < workers:
            number, mutant = waiting.pop(0)
            folder = Path(tempfile.mkdtemp(prefix="mutant-"))
            running[start(tests, mutant, folder, seconds)] = (number, folder, time.monotonic() + limit)
        time.sleep(0.05)
        for process, (number, folder, until) in list(running.items()):
            ended, status = os.waitpid(process, os.WNOHANG)
            if not ended and time.monotonic() > until:
                os.killpg(process, signal.SIGKILL)
                ended, status = os.waitpid(process, 0)
            if ended:
                del running[process]
                shutil.rmtree(folder, ignore_errors=True)
                results[number] = status != 0
    return [results[number] for number in range(len(found))]


def run(
    file: str, workers: int, sample: int, seed: int, again: dict[str, object] | None = None
) -> dict[str, object] | None:
    """All changes of one file, or some; of those ``again`` which survived then. None where its tests fail anyway."""
    tests = {**TARGETS, **CXX_TARGETS}[file]
    began = time.monotonic()
    unchanged = Mutant(file, 0, "", "", (ROOT / file).read_text(encoding="utf-8")) if file in CXX_TARGETS else None
    with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
        _, status, used = os.wait4(start(tests, unchanged, Path(folder)), 0)
        if (places := Path(folder, "places")).exists():
            _places.update(pickle.loads(places.read_bytes()))
    if status != 0:
        print(f"{file}: {' '.join(tests)} fail without any change", flush=True)
        return None
    limit, seconds = 60 + 5 * (time.monotonic() - began), 10 + 3 * int(used.ru_utime + used.ru_stime)
    every = list(mutants(file))
    found = every if sample >= len(every) else random.Random(f"{file} {seed}").sample(every, sample)
    if again:
        found = [mutant for mutant in found if mutant.name in again["survivors"]]  # type: ignore[operator]
    if file in CXX_TARGETS:
        with ThreadPoolExecutor(workers) as pool:
            found = [mutant for mutant, still in zip(found, pool.map(compiles, found)) if still]
    found.sort(key=lambda mutant: mutant.line)
    killed = noticed(found, tests, workers, limit, seconds)
    survivors = [f"{m.name}" for m, dead in zip(found, killed) if not dead]
    for mutant, dead in zip(found, killed):
        if not dead:
            print(f"  {file}:{mutant.line}: {mutant.name}", flush=True)
    print(f"{file}: {sum(killed)} of {len(found)} noticed, {time.monotonic() - began:.0f} s", flush=True)
    if again:
        return {**again, "noticed": again["changes"] - len(survivors), "survivors": survivors}  # type: ignore[operator]
    row = {"file": file, "changes": len(found), "noticed": sum(killed), "survivors": survivors}
    return row if len(every) <= sample else {**row, "drawn_from": len(every), "seed": seed}


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
        drawn = f", drawn from {row['drawn_from']}" if "drawn_from" in row else ""
        print(
            f"{row['file']:36} {row['noticed']:4} of {row['changes']:4} {share:6.1%}  {len(open_)} without a reason{drawn}"
        )
        for name in open_:
            print(f"    {name}")
    return bad


def main() -> int:
    """The exit code says whether every file's tests notice enough."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="parts of the files' names; all when none is given")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--sample", type=int, default=1000, metavar="N", help="so many changes of each file")
    parser.add_argument("--seed", type=int, default=1, help="by which they are drawn")
    parser.add_argument("--again", action="store_true", help="of these only what survived when it was recorded")
    parser.add_argument("--out", type=Path, help="write the numbers here")
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
    import pytest
    import rich.console  # noqa: F401
    import torch

    torch.set_num_threads(1)
    with contextlib.redirect_stdout(
        io.StringIO()
    ):  # loads all of its plugins, which takes ten times as long as most tests
        pytest.main([*_QUIETLY, "--collect-only", "tests/__init__.py"])
    rows, failed = [], 0
    for file in [*CXX_TARGETS, *TARGETS]:
        if arguments.names and not any(name in file for name in arguments.names):
            continue
        if file in TARGETS:  # what a changed file of theirs would be is imported anew by each test
            import grader.course.task
            import grader.verdict  # noqa: F401
        elif file.startswith(CHECKS):
            import tests.simulator.test_corpus
            import tests.simulator.test_unit  # noqa: F401
        again = next((row for row in kept["files"] if arguments.again and row["file"] == file), None)
        row = run(file, arguments.workers, arguments.sample, arguments.seed, again)
        if row is None:
            failed += 1
            continue
        rows.append(row)
        others = [row for row in kept["files"] if row["file"] != file and row["file"] in {**TARGETS, **CXX_TARGETS}]
        kept["files"] = sorted([*others, rows[-1]], key=lambda row: row["file"])
        for path in (arguments.out, RECORD if arguments.record else None):
            if path is not None:
                path.write_text(json.dumps(kept, indent=1) + "\n")
    return 1 if judge(rows) or failed else 0


if __name__ == "__main__":
    sys.exit(main())
