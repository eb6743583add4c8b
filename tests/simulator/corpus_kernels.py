"""The corpus: kernels with one fault each, and a correct variant (twin) of each kernel.

A file in ``corpus/`` contains both: if ``CLEAN`` is defined, the fault is fixed. Its launcher is always
``run(const T* x, T* out, int n, cudaStream_t stream)`` with n elements in x and out. A comment near the top sets n,
otherwise n is 1000. If the launcher only launches kernels, the comment says how, and this module writes the launcher:

    // n = 96, clear<<<1, 1>>>(); copy<<<1, 96>>>(x, out, n)

Headers in ``corpus/`` contain code that many files share. Every line at which the simulator must report a finding is
marked:

    out[i] = 2 * x[i];  // expected finding: out_of_bounds

A separate comment line near the top marks a finding without a line. A race is marked at both accesses. If a fault may
be reported as one of several kinds (a race within a warp or between warps), the mark lists all of them.

If a correct kernel has many faulty variants, its file has no marks, and a file ``.toml`` beside it lists the faults.
Each one replaces texts (``change``) and marks lines (``finding``); each text occurs once:

    [load_without_fence]
    about = "Warps load without tcgen05.fence::after_thread_sync."
    change."llmk::tcgen05_fence_after_thread_sync();" = ""
    finding."tcgen05_ld" = "missing_tensor_fence_after"
"""

from __future__ import annotations

import ctypes
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from grader.execution.build.build import BuiltKernel, compile_kernel, entry_point
from grader.simulator.report import Report
from grader.verdict import Finding
from grader.verdict.findings.memory import Address
from grader.verdict.wording.findings import text
from tests.simulator.harness import open_simulator

CORPUS = Path(__file__).parent / "corpus"
_INCLUDE = re.compile(r'(?m)^#include "\.\./(\w+\.cuh)"$')
_LAUNCH = re.compile(r"(?m)^// (?:n = \d+, )?(\w.*<<<.*>>>\(.*\))$")
_MARK = re.compile(r"// expected finding: ([a-z_ ]+)")
_SIZES = {"f32": np.float32, "f16": np.float16, "bf16": np.uint16, "i32": np.int32}
_NAMES = {"f32": "float32", "f16": "float16", "bf16": "bfloat16", "i32": "int32"}


@dataclass
class CorpusFile:
    """A file of the corpus, or one faulty variant of it."""

    path: Path
    kernel: str
    """The text of the file, without a launcher if it only launches kernels."""
    fault: str = ""
    """The name of the fault in the file ``.toml``."""
    n: int = 1000
    marks: dict[int, set[str]] = field(default_factory=dict)
    """The possible kinds of findings for each marked line; line 0 for findings without a line."""

    @property
    def name(self) -> str:
        return f"{self.path.parent.name}/{self.fault or self.path.stem}"

    @property
    def variants(self) -> list[bool]:
        """For each kernel of the file: whether it is the correct one."""
        return [clean for clean, exists in ((False, self.marks), (True, not self.fault)) if exists]

    @classmethod
    def read(cls, path: Path, fault: str = "") -> CorpusFile:
        text = path.read_text()
        if fault:
            text = _with_fault(text, **tomllib.loads(path.with_suffix(".toml").read_text())[fault])
        corpus_file = cls(path, text, fault)
        for number, line in enumerate(text.splitlines(), 1):
            if match := re.match(r"// n = (\d+)", line):
                corpus_file.n = int(match[1])
            if match := _MARK.search(line):
                corpus_file.marks[0 if line.startswith("//") else number] = set(match[1].split())
        return corpus_file

    @cached_property
    def source(self) -> str:
        """The file, with a launcher. It has elements of the type of the kernel's x and out."""
        text = self.kernel
        if not (launch := _LAUNCH.search(text)):
            return text
        x, out = (re.search(pattern, text) for pattern in (r"const (\w+)\* x\b", r"(\w+)\* out\b"))
        types = f"const {x[1] if x else 'float'}* x, {out[1] if out else 'float'}* out"
        body = launch[1].replace(">>>", ", 0, stream>>>")
        return f'{text}\nextern "C" void run({types}, int n, cudaStream_t stream) {{ {body}; }}\n'

    def text(self) -> str:
        """Return the source with the corpus' headers in place of their ``#include``, so that it needs no other file."""
        lines = self.source.split("\n")
        for number, line in enumerate(lines, 1):
            if match := _INCLUDE.match(line):
                lines[number - 1] = f'{_header_text(match[1])}#line {number + 1} "{self.path.name}"'
        return "\n".join(lines)

    def launcher(self, clean: bool) -> str:
        """Return the name of this file's launcher in the library of ``build_corpus``."""
        return f"{'clean' if clean else 'faulty'}_{self.path.parent.name}_{self.fault or self.path.stem}"

    def as_namespace(self, clean: bool) -> str:
        """Return the file without includes, in a separate namespace, with a launcher that has a unique name."""
        body = re.sub(r"(?m)^#include .*$", "", self.source)
        body, count = re.subn(r'extern "C" void run\(', f'extern "C" void {self.launcher(clean)}(', body)
        assert count == 1, f"{self.name} must have one launcher, run"
        switch = "#define CLEAN 1\n" if clean else "#undef CLEAN\n"
        name = self.launcher(clean)
        return f'{switch}namespace corpus_{name} {{\n#line 1 "{self.path.name}"\n{body}\n}}\nusing corpus_{name}::{name};\n'  # noqa: E501


def _with_fault(text: str, about: str, change: Mapping[str, str], finding: Mapping[str, str]) -> str:
    """Return the kernel with a fault, marked as if it were a file of its own."""
    for find, replace in change.items():
        assert text.count(find) == 1, f"{about}\n{find!r} must occur once"
        text = text.replace(find, replace)
    lines = text.split("\n")
    for find, kinds in finding.items():
        numbers = [number for number, line in enumerate(lines) if find in line]
        assert len(numbers) == 1, f"{about}\n{find!r} must be in one line"
        lines[numbers[0]] += f"  // expected finding: {kinds}"
    return "\n".join(lines)


def _header_text(name: str) -> str:
    return f'#line 1 "{name}"\n{(CORPUS / name).read_text().replace("#pragma once", "")}'


def corpus_files(folder: Path = CORPUS) -> list[CorpusFile]:
    return [file for path in sorted(folder.rglob("*.cu")) for file in read_all(path)]


def read_all(path: Path) -> list[CorpusFile]:
    """Return a file and its faulty variants."""
    faults = path.with_suffix(".toml")
    names = tomllib.loads(faults.read_text()) if faults.exists() else ()
    return [CorpusFile.read(path, fault) for fault in ("", *names)]


def corpus_text(files: Sequence[CorpusFile]) -> str:
    """Return the faulty and the correct variants of all files as one source text."""
    texts = [f.source for f in files]
    includes = {line for text in texts for line in text.splitlines() if line.startswith("#include")}
    headers = sorted({name for text in texts for name in _INCLUDE.findall(text)})
    return (
        "#include <cuda_runtime.h>\n"
        + "".join(f"{line}\n" for line in sorted(includes) if not _INCLUDE.match(line))
        + "".join(map(_header_text, headers))
        + "".join(f.as_namespace(clean) for f in files for clean in f.variants)
    )


def build_corpus(files: Sequence[CorpusFile], compiler: str | None = None) -> BuiltKernel:
    """Build one library with both variants of all files, which is much faster than one library per file."""
    text = corpus_text(files)
    return compile_kernel(files[0].path.parent / "corpus.cu", "cpu", checks=True, text=text, compiler=compiler)


@dataclass
class Simulation:
    """The simulator's library in this process. As in the grader, outputs are uninitialized and inputs read-only."""

    libsim: Path

    @cached_property
    def sim(self) -> ctypes.CDLL:
        return open_simulator(self.libsim)

    def run(
        self, kernel: BuiltKernel, n: int, launcher: str = "run", source: Path | None = None, **settings: object
    ) -> tuple[int, Report, np.ndarray]:
        """Call the launcher; return CUDA's error, the report and the output.

        An infinite loop is detected by the number of unsuccessful polls, not by time.
        """
        defaults = {
            "workers": 1,
            "schedule": "forward",
            "watchdog_seconds": 10,
            "spin_rounds": 2000,
            "trace": 0,
            "checks": 1,
            "same_value_races": 0,
            "check_blocks": 0,
        }
        for key, value in {**defaults, **settings}.items():
            assert self.sim.sim_configure(key.encode(), str(value).encode()) == 0, f"{key}={value} was refused"
        prototype = next(p for p in kernel.launchers if p.name == launcher)
        library = ctypes.CDLL(str(kernel.library))
        self.sim.sim_reset()
        values: list[ctypes._SimpleCData] = []
        out, out_address = np.empty(0), 0
        for parameter in prototype.parameters:
            if parameter.kind == "stream":
                values.append(ctypes.c_void_p(None))
            elif parameter.kind == "scalar":
                values.append(ctypes.c_int(n))
            else:
                array = np.arange(1, n + 1).astype(_SIZES[parameter.dtype])
                shape = (ctypes.c_int64 * 1)(n)
                name, dtype = parameter.name.encode(), _NAMES[parameter.dtype].encode()
                address = self.sim.sim_tensor_alloc(name, dtype, 1, shape, array.nbytes, 0)
                if parameter.const:
                    self.sim.sim_tensor_write(address, array.ctypes.data, array.nbytes)
                    self.sim.sim_tensor_readonly(address)
                else:
                    self.sim.sim_expect_output(address)
                    out, out_address = array, address
                values.append(ctypes.c_void_p(address))
        arguments = (ctypes.c_void_p * len(values))(*(ctypes.addressof(v) for v in values))
        error = getattr(library, entry_point(launcher))(arguments)
        self.sim.sim_tensor_read(out_address, out.ctypes.data, out.nbytes)
        report = Report.from_json(self.sim.sim_report().decode(errors="replace"), kernel.library, source or kernel.file)
        self.sim.sim_reset()
        for key in settings.keys() & defaults.keys():  # other tests of this process have the same settings
            self.sim.sim_configure(key.encode(), str(defaults[key]).encode())
        return error, report, out


def places(finding: Finding) -> list[int]:
    """Return the lines of a finding: two lines for a race, and [0] for a finding without a line."""
    return [finding.line] + ([finding.other.line] if finding.other and finding.other.line else [])


def is_whole(finding: Finding) -> bool:
    """Return whether a finding about an access names its address and the size of its memory.

    The address must be in bounds, unless the finding is an out-of-bounds access.
    """
    memory, bytes_ = finding.memory, finding.bytes
    if finding.check not in ("racecheck", "memcheck") or finding.kind in (
        "leak",
        "index_out_of_bounds",
        "stack_overflow",
    ):
        return True
    if memory is not None and memory.kind == "local" and not memory.name:
        return True  # a local variable that is not an array: the report lacks its size and the size of the access
    if finding.kind in ("illegal_address", "null_pointer"):
        return memory is None
    within = 1 if finding.kind == "misaligned" else bytes_  # a misaligned access may also reach past the end
    inside = memory is not None and 0 <= memory.offset <= memory.bytes - within
    return (
        bytes_ > 0 and inside != (finding.kind == "out_of_bounds") and (inside or isinstance(finding.payload, Address))
    )


def disagreements(corpus_file: CorpusFile, findings: list[Finding]) -> list[str]:
    """Return the differences between the findings and the marks of a faulty kernel."""
    wrong = []
    for finding in findings:
        if not is_whole(finding):
            wrong.append(f"{finding.kind} at line {finding.line} does not say where, or of how much:\n{finding}")
        for line in places(finding):
            if finding.kind not in corpus_file.marks.get(line, ()):
                wrong.append(f"{finding.kind} at line {line} is not marked:\n{text(finding)}")
    found = {(line, finding.kind) for finding in findings for line in places(finding)}
    for line, kinds in corpus_file.marks.items():
        if not any((line, kind) in found for kind in kinds):
            wrong.append(f"line {line} has no finding of kind {' or '.join(sorted(kinds))}")
    return wrong
