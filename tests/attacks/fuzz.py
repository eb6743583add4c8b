"""Fuzzing of all code that reads a submission in the grader's own process.

Readers must not crash, and their time and memory must be proportional to the size of the text.

``python -m tests.attacks.fuzz --minutes 30 --seed 1 --out FILE`` tries texts for 30 minutes. Hypothesis generates some
from the tokens of CUDA. The others are kernels and reports of the course with random mutations, such as repeated
pieces. FILE then holds the number of texts, the maximum processor time and memory for one text, and the failures.
``--recorded`` prints the result of a run of half an hour (fuzz.json, which a test reads).
"""

from __future__ import annotations

import argparse
import datetime
import json
import platform
import random
import re
import resource
import struct
import time
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as hypothesis_seed
from hypothesis import strategies as st

from grader.classroom.worker import in_utf8
from grader.execution.build import diagnostics
from grader.execution.build.build import plan_kernel
from grader.execution.jail import imports
from grader.execution.runner import answers
from grader.execution.submission_sandbox.instrumentation_bypass import renumbers_lines
from grader.setup.errors import GraderError
from grader.simulator.report import Report
from grader.simulator.report_format import EVENT_KINDS
from grader.verdict import Diagnostic
from tests.attacks.growing import FRONT_END

HERE = Path(__file__).parent
COURSE = HERE.parents[1]
RECORD = HERE / "fuzz.json"
LONGEST = 256 << 10

SECONDS_PER_BYTE, SECONDS = 60e-6, 0.5
MOST_SECONDS, MANY_BYTES = 2.0, 150_000
"""The maximum processor time for a text of up to ``MANY_BYTES``. A larger text may take proportionally longer."""
MEMORY_PER_BYTE, MEMORY = 4000, 48 << 20
"""Memory limits: bytes for each byte of a text, plus a fixed amount that covers loading the simulator's library."""


def seconds_allowed(size: int) -> float:
    """Return the limit of processor time for a text of this size in bytes."""
    return min(SECONDS + SECONDS_PER_BYTE * size, MOST_SECONDS * max(1.0, size / MANY_BYTES))


def front_end(text: str) -> None:
    """Process the text as a kernel file, in all steps before the compiler runs."""
    renumbers_lines(text)
    plan_kernel("kernel.cu", text=in_utf8(text.encode(errors="replace")).decode())


def compiler_output(text: str) -> None:
    """Process the text as the compiler's output for a kernel file, up to the verdict."""
    plan = plan_kernel("kernel.cu", text="__global__ void f() {}\n")
    text = text[: 64 << 10]  # the jail truncates output at this length
    for said in diagnostics.read_messages(text, Path("kernel.cu"), text, plan.rewritten):
        Diagnostic(said.severity, str(said), said.file, said.line, said.column, said.source_line)


def report(text: str) -> None:
    """Read the text as the simulator's report, written by a kernel."""
    Report.from_json(text.encode(errors="replace").decode(), "no_library.so", "kernel.cu")


def answer(text: str) -> None:
    """Read the text as a reply of the process that runs a kernel."""
    packet = text.encode(errors="surrogatepass")
    for request in ("load", "call", "writer", "awake"):
        try:
            answers.parse(packet, request)
        except answers.Malformed:
            continue
    try:
        answers.parse_times(packet)
    except answers.Malformed:
        return


def symbols(text: str) -> None:
    """Read the text as the library built from a kernel file: its symbol tables."""
    content = text.encode("latin-1", errors="replace")
    imports.refused_of(content, frozenset())


READERS: dict[str, Callable[[str], None]] = {
    "front end": front_end,
    "compiler output": compiler_output,
    "report": report,
    "answer": answer,
    "symbols": symbols,
}


@dataclass
class Tried:
    """The result of fuzzing one reader."""

    inputs: int = 0
    bytes: int = 0
    refused: int = 0
    most_seconds: float = 0.0
    most_seconds_of: int = 0
    """The size in bytes of the text that took most_seconds."""
    most_us_per_byte: float = 0.0
    """The most processor time per byte of a text, among texts of at least 4 KB."""
    counted: int = 0
    """The number of texts whose memory was measured."""
    most_memory: int = 0
    most_memory_per_byte: float = 0.0
    crashes: list[str] = field(default_factory=list)
    too_much: list[str] = field(default_factory=list)
    """Texts for which the reader exceeded its time or memory limit."""


def attempt(reader: Callable[[str], None], text: str, tried: Tried) -> None:
    """Read a text, and every eighth text again to measure its memory, since tracemalloc slows the reader down."""
    size = max(1, len(text.encode(errors="surrogatepass")))
    tried.inputs += 1
    tried.bytes += size
    began = time.process_time()
    try:
        reader(text)
    except GraderError as error:
        tried.refused += 1
        if len(str(error)) > 100_000:
            tried.too_much.append(f"the error message is too long: {len(str(error))} characters for {text[:400]!a}")
    except Exception as error:
        tried.crashes.append(f"{type(error).__name__}: {error!s:.200} of {text[:400]!a}")
        return
    seconds = time.process_time() - began
    if seconds > tried.most_seconds:
        tried.most_seconds, tried.most_seconds_of = seconds, size
    if size >= 4096:
        tried.most_us_per_byte = max(tried.most_us_per_byte, seconds / size * 1e6)
    if tried.inputs % 8 and seconds < SECONDS:
        return
    tried.counted += 1
    tracemalloc.start()
    try:
        reader(text)
    except GraderError:
        pass
    finally:
        memory = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    tried.most_memory = max(tried.most_memory, memory)
    if size >= 4096:
        tried.most_memory_per_byte = max(tried.most_memory_per_byte, memory / size)
    if seconds > seconds_allowed(size) or memory > MEMORY + MEMORY_PER_BYTE * size:
        tried.too_much.append(f"{seconds:.2f} s, {memory} bytes for {size}: {text[:400]!a}")


def library(symbols: list[tuple[str, int, int]], *tables: int) -> bytes:
    """Return an ELF library with only symbol tables: name, type, and the defining section (0: undefined)."""
    names, entries = b"\0", bytes(imports._SYMBOL.size)
    for name, kind, section in symbols:
        entries += imports._SYMBOL.pack(len(names), 1 << 4 | kind, 0, section, 0x1000, 8)
        names += name.encode() + b"\0"
    sections = [(0,) * 10]
    sections += [(0, table, 0, 0, 64, len(entries), len(tables) + 1, 0, 8, imports._SYMBOL.size) for table in tables]
    sections.append((0, 3, 0, 0, 64 + len(entries), len(names), 0, 0, 1, 0))
    head = bytearray(64)
    head[:6] = b"\x7fELF\x02\x01"
    struct.pack_into("<Q", head, 40, 64 + len(entries) + len(names))
    struct.pack_into("<HH", head, 58, imports._SECTION.size, len(sections))
    return bytes(head) + entries + names + b"".join(imports._SECTION.pack(*section) for section in sections)


def seeds(reader: str) -> list[str]:
    """Return the texts that are mutated for a reader."""
    if reader == "front end":
        files = [*COURSE.glob("solutions/*/*.cu"), *HERE.glob("*/*.cu"), *COURSE.glob("tests/simulator/kernels/*.cu")]
        return [file.read_text(encoding="utf-8", errors="replace") for file in sorted(files)]
    if reader == "compiler output":
        return [
            "kernel.cu:1:3: error: 'x' was not declared in this scope\n    1 | x\n      | ^\n",
            'kernel.cu(3): error: expected a ";"\n',
            "In file included from kernel.cu:1:\n/usr/include/x.h:3:4: note: in instantiation of f\n",
            "/tmp/x.o: in function `f':\nkernel.cu:12: undefined reference to `g'\n",
            "ptxas /tmp/x.ptx, line 3; error   : Feature 'x' requires .target sm_90\n",
        ]
    if reader == "report":
        side = '"site": 1, "access": "write", "line": 3, "block": [0, 0, 0], "thread": [1, 0, 0]'
        memory = (
            '{"kind": "tensor", "name": "x", "dtype": "f32", "shape": [4], "id": 1, "bytes": 16, '
            '"element_bytes": 4, "offset": 16}'
        )
        finding = f'{{{side}, "check": "memcheck", "kind": "out_of_bounds", "kernel": "k", "count": 1, "bytes": 4, "payload": {{"address": 64}}, "memory": {memory}}}'  # noqa: E501
        happened = [[kind, 3, 1, 1, 16, 4, 0xFF, 1, 7, 7] for kind in EVENT_KINDS]
        recording = {
            **{"kernel": "k", "launch": 0, "grid": [1, 1, 1], "block": [64, 1, 1], "index": [0, 0, 0], "threads": 64},
            **{"shared_bytes": 64, "cut": 0, "names": ["barrier"], "events": happened * 4},
            "memories": [{"space": "shared", "name": "s", "dtype": "f32", "element_bytes": 4, "start": 0, "bytes": 64}],
        }
        return [
            json.dumps({"version": 1, "recording": recording, "sites": [[1, 0, 4660]], "modules": ["kernel.so"]}),
            '{"version": 1, "findings": [], "dropped_findings": 0, "kernels": [], "scratch_bytes": 0, "traces": [],'
            ' "sites": [[1, 0, 4660]], "modules": ["kernel.so"]}',
            f'{{"version": 1, "findings": [{finding}, {finding}], "sites": [[1, 0, 16]], "modules": ["kernel.so"]}}',
        ]
    if reader == "symbols":
        symbols = [("fork", 2, 0), ("sim_launch", 2, 1), ("_ZNSolsEi", 1, 0), ("mine", 10, 5)]
        return [library(symbols, imports._DYNAMIC, imports._ALL).decode("latin-1")]
    return ["ok", "error no", "done 0\nremark run a\nremark report", "writer\n0 0 0 1 0 0\nunknown", "1.000\n2.000"]


_NASTY = """
{ } ( ) [ ] [[ < > <<< >>> <<<1,1>>>( ; , : :: # ## #if #else #endif #define #include /* */ // " ' R"( )" \\ \\\n \n \r \x0b \x1b[2J
\x00 \u202e \uff1d \ud800 \u00b2 asm( asm("{.reg .f32 r<9>; __shared__ __global__ __device__ extern "C" template< alignas( operator namespace
struct cudaLaunchKernel( static_cast< %0 99999999999999999999 1e999 NaN Infinity null true -1 0x [[[[ {"a": kernel.cu:1:1: error:
""".split(" ")  # noqa: E501, SIM905


def mutated(draw: random.Random, text: str) -> str:
    """Return the text with a few mutations: pieces repeated, removed or swapped, or hostile text inserted."""
    for _ in range(draw.randint(1, 6)):
        a, b = sorted(draw.randint(0, len(text)) for _ in range(2))
        b = min(b, a + draw.choice([1, 4, 20, 100, 1000]))
        piece = text[a:b] or draw.choice(_NASTY)
        match draw.randint(0, 5):
            case 0:
                text = text[:a] + piece * draw.choice([2, 10, 200, 5000, 50000]) + text[b:]
            case 1:
                text = text[:a] + text[b:]
            case 2:
                text = text[:a] + draw.choice(_NASTY) * draw.choice([1, 1, 3, 300, 30000]) + text[b:]
            case 3:
                text = text[:a] + piece[::-1] + text[b:]
            case 4:
                text = text[:a]
            case 5:  # insert repeated hostile text before and after a piece
                n = draw.choice([2, 200, 20000])
                text = text[:a] + draw.choice(_NASTY) * n + piece + draw.choice(_NASTY) * n + text[b:]
        text = text[: draw.choice([4096, 4096, 32768, LONGEST])]
    return text


_MACROS = """
#define M0(x) ((x) + 1)
#define M1(x) M0(x) * M0(x)
#define M2 <<<1, 32>>>
#define M3(a, b) a##b
#define M4(a) #a
#define M5(...) f(__VA_ARGS__)
#define M6 __global__ void
#define M7(x) {x
#define M8 __shared__ float
#define M9(x) M9(x) x
""".strip().splitlines(keepends=True)


def with_macros(draw: random.Random, text: str) -> str:
    """Return the text with macros, and with many copies of some lines that use them and define different names."""
    lines = text.splitlines(keepends=True) or [text]
    first = draw.randrange(len(lines))
    last = first + draw.choice([1, 3, 10, 40])
    piece = "".join(lines[first:last])
    words = re.findall(r"[A-Za-z_]\w*", piece) or ["x"]
    for word in draw.choices(words, k=draw.randint(1, 3)):
        use = draw.choice(
            ["M0({0})", "M1({0})", "M2", "M3({0}, 1)", "M4({0})", "M5({0}, 2)", "M6 {0}", "M7({0})", "M8 {0}"]
        )
        piece = re.sub(rf"\b{word}\b", use.format(word), piece, count=draw.choice([0, 1]))
    renamed = draw.choice(words)
    copies = min(draw.choice([10, 200, 5000]), LONGEST // max(1, len(piece)) + 1)
    many = "".join(re.sub(rf"\b{renamed}\b", f"{renamed}{i}", piece) for i in range(copies))
    definitions = "".join(draw.sample(_MACROS, draw.randint(1, len(_MACROS))))
    before, after = "".join(lines[:first]), "".join(lines[last:])
    return (definitions + draw.choice(["", before]) + many + draw.choice(["", after]))[:LONGEST]


def drawn() -> st.SearchStrategy[str]:
    """Return a strategy for tokens of CUDA in any order, each repeated."""
    words = [*_NASTY, *" ".join(family(2) for family in FRONT_END.values()).split(), "float", "x", "0", "=", "*"]
    part = st.tuples(st.sampled_from(words), st.sampled_from([1, 1, 1, 2, 50, 3000]))
    text = st.lists(part, max_size=30).map(lambda parts: " ".join(word * n for word, n in parts)[:LONGEST])
    return st.one_of(text, st.text(max_size=200))


_VALUES = [
    0,
    -1,
    1 << 63,
    1 << 64,
    10**400,
    0.5,
    1e308,
    True,
    None,
    "",
    "x" * 5000,
    "\x1b[2J\u202e",
    [],
    {},
    [[0]] * 9,
    {"a": 0},
]


def exchanged(draw: random.Random, value: Any) -> Any:
    """Return a JSON value with some parts replaced by values of other types or sizes."""
    if draw.random() < 0.06:
        return draw.choice(_VALUES)
    if isinstance(value, dict):
        return {name: exchanged(draw, item) for name, item in value.items() if draw.random() > 0.02}
    if isinstance(value, list):
        return [exchanged(draw, item) for item in value] * draw.choice([1] * 30 + [0, 2, 300])
    return value


def changed(reader: str, draw: random.Random) -> Iterator[str]:
    """Yield mutated texts without end."""
    known = seeds(reader)
    while True:
        text = draw.choice(known)
        if reader == "symbols" and draw.random() < 0.8:  # change only numbers, so that the file stays a valid library
            content = bytearray(text, "latin-1")
            for _ in range(draw.randint(1, 4)):
                size = draw.choice([1, 2, 4, 8])
                place = draw.randrange(0, len(content) - size + 1, size)
                number = draw.choice([0, 1, draw.randrange(400), 1 << 16, 1 << 31, 1 << 62, (1 << 64) - 1])
                content[place : place + size] = (number % (1 << 8 * size)).to_bytes(size, "little")
            yield content.decode("latin-1") + "x" * draw.choice([0, 0, 9000])
            continue
        if reader == "report" and draw.random() < 0.7:
            yield json.dumps(exchanged(draw, json.loads(text)))[:LONGEST]
        elif reader == "front end" and draw.random() < 0.4:
            text = with_macros(draw, text)
            yield draw.choice([text, mutated(draw, text)])
        else:
            yield mutated(draw, text)


def try_drawn(reader: str, count: int, number: int, tried: Tried) -> None:
    """Try ``count`` texts from hypothesis; the same ``number`` always generates the same texts."""

    @hypothesis_seed(number)
    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(drawn())
    def attempts(text: str) -> None:
        attempt(READERS[reader], text, tried)

    attempts()


def show(data: dict[str, Any]) -> int:
    """Print the results of each reader, and return the number of texts that failed or exceeded a limit."""
    print(f"{data['command']}, {data['date']}, Python {data['python']}")
    bad = 0
    for name, tried in data["readers"].items():
        took = (
            f"at most {tried['most_seconds']:.2f} s of processor time and {tried['most_memory'] / 1e6:.1f} MB per text"
        )
        failed = len(tried["crashes"]) + len(tried["too_much"])
        print(f"{name:16} {tried['inputs']:6} texts, {tried['bytes'] / 1e6:5.1f} MB: {took}; {failed} failed")
        bad += failed
    return bad


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, help="write the results to this JSON file")
    parser.add_argument("--recorded", action="store_true", help="print the recorded results")
    chosen = parser.parse_args()
    if chosen.recorded:
        return show(json.loads(RECORD.read_text()))
    found = {name: Tried() for name in READERS}
    for family in FRONT_END.values():
        for n in (10, 1000, 16000):
            attempt(front_end, family(n)[:LONGEST], found["front end"])
    ends, round_ = time.monotonic() + 60 * chosen.minutes, 0
    while time.monotonic() < ends:
        for name, tried in found.items():
            number = chosen.seed * 1_000_003 + round_
            texts = changed(name, random.Random(f"{name} {number}"))
            for _ in range(50 if name == "front end" else 20):
                attempt(READERS[name], next(texts), tried)
            try_drawn(name, 20, number, tried)
        round_ += 1
    data = {
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"),
        "python": platform.python_version(),
        "command": f"python -m tests.attacks.fuzz --minutes {chosen.minutes:g} --seed {chosen.seed}",
        "minutes": chosen.minutes,
        "seed": chosen.seed,
        "longest_text": LONGEST,
        "allowed": {
            "seconds": SECONDS,
            "us_per_byte": SECONDS_PER_BYTE * 1e6,
            "memory": MEMORY,
            "memory_per_byte": MEMORY_PER_BYTE,
        },
        "most_resident_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10,
        "readers": {name: asdict(tried) for name, tried in found.items()},
    }
    if chosen.out:
        chosen.out.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    return min(1, show(data))


if __name__ == "__main__":
    raise SystemExit(main())
