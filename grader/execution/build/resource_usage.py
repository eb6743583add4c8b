"""The registers, spills, shared memory and stack of each kernel, as nvcc reports them. No GPU is needed.

``nvcc -cubin -Xptxas -v`` compiles the device code for a named architecture; ptxas prints the resources of each kernel.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

from grader.frontend.course_headers import line_directive, with_headers
from grader.frontend.toolchain.cache import BuildCache, digest, open_cache
from grader.frontend.toolchain.compilers import cuda_home
from grader.frontend.toolchain.process import Command, RunCommand, run_command
from grader.verdict import KernelResources

_LISTING = "ptxas.txt"


def resource_usage(
    path: Path | str,
    arch: str = "sm_90",
    *,
    text: str | None = None,
    run: RunCommand = run_command,
    cache: BuildCache | None = None,
) -> list[KernelResources]:
    """Compile a kernel file for an architecture; return an entry for each kernel (each template instance), in order."""
    # Imported here, because a process that only reads the result does not need the build modules.
    from grader.execution.build.build import compile_error, nvcc_flags, plan_kernel

    plan = plan_kernel(path, "cuda", text=text, arch=arch)
    cache = cache or open_cache()
    flags = nvcc_flags(arch)
    # Compile the learner's text without the entry points, which have no influence on a kernel's resources.
    text = with_headers(plan.original, plan.source, plan.file.name)
    source = f"{line_directive(1, plan.file.name)}{text}\n"
    key = digest(["resources", source, *flags, plan.compiler.identity])

    def compile_into(folder: Path) -> None:
        (folder / "kernel.cu").write_text(source, encoding="utf-8")
        argv = (*plan.compiler.command, *flags, "-cubin", "-Xptxas=-v", "-o", "kernel.cubin", "kernel.cu")
        done = run(Command(argv, folder, (cuda_home(plan.compiler),)))
        if done.returncode != 0:
            raise compile_error(plan, done.output)
        (folder / _LISTING).write_text(done.output, encoding="utf-8")
        (folder / "kernel.cubin").unlink(missing_ok=True)

    entry, _ = cache.get(key, compile_into, f"{plan.file.name} for {arch}")
    found = parse_ptxas((entry / _LISTING).read_text(encoding="utf-8"), arch)
    return sorted(found, key=lambda kernel: _position(plan.original, kernel.kernel))


def parse_ptxas(listing: str, arch: str) -> list[KernelResources]:
    """Parse the output of ``ptxas -v``."""
    entries = re.split(r"Compiling entry function '", listing)[1:]
    symbols = [entry.split("'", 1)[0] for entry in entries]
    names = _demangle(symbols)
    return [_kernel(symbol, name, entry, arch) for symbol, name, entry in zip(symbols, names, entries)]


def _kernel(symbol: str, name: str, listing: str, arch: str) -> KernelResources:
    # ptxas lists a function that is not inlined separately, so look for the lines with the kernel's symbol.
    own = re.search(rf"Function properties for {re.escape(symbol)}\s*\n(.*)", listing)
    properties = own.group(1) if own else listing
    spilled = [_number(rf"(\d+) bytes spill {kind}", properties) for kind in ("stores", "loads")]
    return KernelResources(
        kernel=name,
        architecture=arch,
        registers=_number(r"Used (\d+) registers", listing),
        spill_bytes=sum(spilled),
        static_shared_bytes=_number(r"(\d+) bytes smem", listing),
        stack_bytes=_number(r"(\d+) bytes cumulative stack size", listing)
        or _number(r"(\d+) bytes stack frame", properties),
    )


def _number(pattern: str, text: str) -> int:
    match = re.search(pattern, text)
    return int(match.group(1)) if match else 0


def _demangle(symbols: list[str]) -> list[str]:
    """Return demangled symbols, such as ``kernel<float, 4>``. Without a demangler, return them unchanged."""
    names: list[str] = []
    if symbols and (tool := shutil.which("cu++filt") or shutil.which("c++filt") or shutil.which("llvm-cxxfilt")):
        names = subprocess.run([tool, *symbols], capture_output=True, text=True, check=False).stdout.splitlines()
    return [_short(name) for name in (names if len(names) == len(symbols) else symbols)]


def _short(name: str) -> str:
    """Return a demangled name without the function's result type and parameters."""
    depth = 0
    for i, c in enumerate(name):
        depth += {"<": 1, ">": -1}.get(c, 0)
        if c == "(" and depth == 0 and not name.startswith("(anonymous", i):
            name = name[:i]
            break
    name = name.removeprefix("void ").replace("(anonymous namespace)::", "").replace("(int)", "")
    return re.sub(r"\((?:bool|unsigned int|long)\)", "", name).strip()


def _position(text: str, name: str) -> int:
    match = re.search(rf"\b{re.escape(name.partition('<')[0].split('::')[-1])}\s*\(", text)
    return match.start() if match else len(text)
