"""Compilation of a kernel file to a shared library with one entry point for each launcher.

A :class:`BuildPlan` determines a build completely: the final text, the flags, the libraries. Both ways of building use
it: a direct call of the compiler (here, without torch) and ``torch.utils.cpp_extension.load_inline`` (in
``grader.execution.in_process.kernel``).
"""

from __future__ import annotations

import functools
import io
import itertools
import platform
import re
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from grader.execution.build import cxx_library, diagnostics
from grader.execution.build.pipeline import compile_and_link
from grader.execution.build.precompiled import PRELUDE, USUAL, headers_at_head, precompiled, refused
from grader.execution.submission_sandbox import late_accesses
from grader.frontend.course_headers import line_directive, with_headers
from grader.frontend.edits import Rewritten
from grader.frontend.headers import headers_for
from grader.frontend.kernel_definitions import refuse_inlined
from grader.frontend.limits import MOST_BYTES, check_limits
from grader.frontend.messages import CompilerMessage
from grader.frontend.prototype import Prototype, PrototypeError, find_launchers, find_main
from grader.frontend.ptx_instructions import architecture_for, simulated_architecture
from grader.frontend.remarks import remarks
from grader.frontend.rewrite import RewriteError, rewrite
from grader.frontend.tokens import Source
from grader.frontend.toolchain.cache import BuildCache, digest, open_cache
from grader.frontend.toolchain.compilers import Compiler, cuda_home, find_cxx, find_nvcc
from grader.frontend.toolchain.cuda_errors import PROGRAM_STATUS
from grader.frontend.toolchain.gpus import compiled_architecture
from grader.frontend.toolchain.process import Command, Finished, RunCommand, run_command
from grader.setup.errors import BuildError, GraderError
from grader.simulator import hooks, library

KERNEL_LIBRARY = "kernel.so"
_MESSAGES = "messages.txt"
_EXPORTS = Path(__file__).parent / "exports.map"

NVCC_FLAGS = "-std=c++17 -O3 -lineinfo --expt-relaxed-constexpr --extended-lambda"
"""nvcc's flags for every kernel file and every architecture. Records of figures store them.

-split-compile is not among them, although nvcc takes less time with it: kernels of days 7 and 10 then keep arrays in
local memory instead of registers, and take much longer.

A library for a GPU is compiled without ``EXTENDED_LAMBDA`` if it needs none. This does not change its machine code.
"""

EXTENDED_LAMBDA = "--extended-lambda"

_CPU_FLAGS = (
    "-std=c++17",
    "-gdwarf-4",  # with g++'s DWARF 5, addr2line reports the generated file instead of the learner's
    "-g1",  # lines and inlined calls, no types or variables; it must follow -gdwarf-4, which sets level 2
    "-fPIC",
    "-fvisibility=hidden",
    "-fno-semantic-interposition",
    "-fno-strict-aliasing",
    "-fno-omit-frame-pointer",  # submission_sandbox uses it to tell local variables from return addresses
    "-mno-omit-leaf-frame-pointer",
    "-fno-stack-protector",  # a corrupted stack must be reported as a finding, not end the process
    "-fstack-clash-protection",  # a large local array must not step over the guard page
    "-fno-builtin-printf",
    "-fno-finite-loops",  # keeps a loop that waits for another thread
    "-fno-optimize-sibling-calls",  # keeps the line number of a barrier at the end of a kernel
    "-U_FORTIFY_SOURCE",
    "-ffp-contract=off",
    "-fdiagnostics-color=never",
    "-Werror=vla",  # nvcc does not support variable-length arrays
)
_GCC_FLAGS: tuple[str, ...] = ("-fno-gnu-unique", "-fno-tree-vectorize", "-fmax-errors=20")
_GCC_FLAGS += ("-gstatement-frontiers",)  # the places of statements, as at level 2
# Disables a pass with a bug in g++ 14 to 16: at -O2, after several comparisons of the same floats, two NaNs are equal.
_GCC_FLAGS += ("-fno-thread-jumps",)
_GCC_CHECKED: tuple[str, ...] = (
    "-O1",
    "-fsanitize=thread,bounds-strict,object-size,return",
    "--param=tsan-instrument-func-entry-exit=0",
    "--param=tsan-distinguish-volatile=1",
    "--param=max-inline-insns-single=4000",  # a structure passed by value is not instrumented: host_defines.h
    "-fno-tree-sra",  # g++ reads an aligned structure at once, as a GPU does, not member by member
    "--param=inline-unit-growth=1000",
    "--param=large-function-growth=1000",
    "--param=large-stack-frame-growth=10000",
)
# These optimizations run after the instrumentation. They took a quarter of the compile time, but hardly speed up a
# kernel, because a kernel spends its time in the functions that the instrumentation calls.
_GCC_CHECKED += tuple(
    f"-fno-{later}"
    for later in (
        *("combine-stack-adjustments", "compare-elim", "cprop-registers", "dse", "forward-propagate", "if-conversion"),
        *("if-conversion2", "move-loop-invariants", "reorder-blocks", "shrink-wrap", "split-wide-types"),
    )
)
_GCC_CHECKED += ("-fira-region=one", "-fira-algorithm=priority", "-fno-tree-loop-optimize")
# With the flags above, these flags save another seventh of the compile time. They disable passes that run after the
# instrumentation, or that remove only a few instructions.
_GCC_CHECKED += ("--param=max-combine-insns=2", "-fno-tree-bit-ccp", "-fno-tree-slsr", "-fno-dce")
_CLANG_FLAGS = (
    "-fno-vectorize",
    "-fno-slp-vectorize",
    "-ferror-limit=20",
    "-Wno-unknown-attributes",
    "-Wno-pass-failed",
    "-Wno-c++11-narrowing",  # nvcc accepts uint4{i, i, i, i} for an int i
)
_CLANG_CHECKED = (
    "-O1",
    "-fsanitize=thread,array-bounds,return",
    "-mllvm",
    "-tsan-instrument-func-entry-exit=0",
    "-mllvm",
    "-tsan-distinguish-volatile=1",
    "-mllvm",
    "-tsan-instrument-read-before-write=1",  # also instruments the read of x[i] += 1
)
# With these flags an indirect call jumps to a function of the simulator that checks its target: see
# submission_sandbox/indirect_calls.cpp.
_X86_CHECKED = ("-fcf-protection=branch", "-fno-jump-tables")
_GCC_X86 = (
    *_X86_CHECKED,
    "-mindirect-branch=thunk-extern",
    "-mno-red-zone",  # the pushes that submission_sandbox/late_accesses.py inserts would overwrite it
)
_CLANG_X86 = (*_X86_CHECKED, "-mretpoline-external-thunk")
# ThreadSanitizer does not instrument a local array whose address stays in its function. With these flags, an
# out-of-bounds access to such an array ends the process.
_CLANG_LOCAL = ("-fsanitize=local-bounds", "-fsanitize-trap=local-bounds", "-mllvm", "-enable-tail-merge=false")
# A local variable must not show what another thread left on the stack: a kernel could pass data from block to block
# by it, without memory traffic.
_FILLED = ("-ftrivial-auto-var-init=pattern",)
_PLAIN = ("-O2",)
# The compiler inserts a call at the start of each basic block. From these calls grader/simulator/disassembly.py counts
# the operations.
_COUNTED = ("-DSIM_COUNT_OPERATIONS",)
_GCC_COUNTED = (*_COUNTED, "-fsanitize-coverage=trace-pc")
_CLANG_COUNTED = (*_COUNTED, "-fsanitize-coverage=trace-pc,bb,no-prune")


@dataclass(frozen=True)
class BuildPlan:
    """The complete description of a build.

    ``flags`` are the compiler's options, ``link_flags`` the linker's. ``text`` is the compiler's input.
    """

    file: Path  # the kernel file, for messages
    device: str  # cpu or cuda
    checks: bool
    source: Source  # the original file
    text: str
    launchers: tuple[Prototype, ...]
    compiler: Compiler
    flags: tuple[str, ...]
    include_dirs: tuple[Path, ...]
    link_flags: tuple[str, ...]
    key: str
    rewritten: Rewritten | None = field(default=None, repr=False)
    libsim: library.LibraryPlan | None = field(default=None, repr=False)

    @property
    def name(self) -> str:
        """The file's name without its suffix, with ``_`` for each character that an identifier must not contain."""
        return "".join(c if c.isalnum() else "_" for c in self.file.stem)

    @property
    def original(self) -> str:
        return self.source.text

    @property
    def description(self) -> str:
        return f"{self.file.name} for {'the simulator' if self.device == 'cpu' else self.device}"


@dataclass(frozen=True)
class BuiltKernel:
    """A finished library. ``library`` has a function ``grader_call_<launcher>(void** arguments)`` for each launcher."""

    plan: BuildPlan
    library: Path
    libsim: Path | None
    cached: bool
    seconds: float = 0.0

    @property
    def launchers(self) -> tuple[Prototype, ...]:
        return self.plan.launchers

    @property
    def diagnostics(self) -> list[CompilerMessage]:
        """Warnings of the front end and of the compiler."""
        own = remarks(self.plan.source, self.plan.file.name)
        try:
            said = (self.library.parent / _MESSAGES).read_text(encoding="utf-8")
        except OSError:
            return own
        lines = {remark.line for remark in own}
        found = diagnostics.read_messages(said, self.plan.file, self.plan.original, self.plan.rewritten)
        return own + [message for message in found if message.line not in lines]

    @property
    def file(self) -> Path:
        return self.plan.file


CompileInto = Callable[[BuildPlan, BuildCache, Path], None]
"""A function that builds the library of a plan in a folder."""


def entry_point(launcher: Prototype | str) -> str:
    """Return the name of the function that calls a launcher with an array of pointers to its arguments."""
    return f"grader_call_{launcher if isinstance(launcher, str) else launcher.name}"


def read_kernel_file(path: Path) -> str:
    """Return the text of a kernel file."""
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
        if len(content) > MOST_BYTES:
            raise BuildError(
                f"{path.name} is larger than {MOST_BYTES >> 20} MB, the limit for a kernel file",
                "If the kernel file is too large: pass tables as inputs, and write repeated code as a loop.",
            )
        return io.TextIOWrapper(io.BytesIO(content), encoding="utf-8-sig").read()  # converts \r\n to \n, like compilers
    except FileNotFoundError:
        raise GraderError(f"there is no file {path}") from None
    except IsADirectoryError:
        raise GraderError(f"{path} is a folder, not a kernel file") from None
    except UnicodeDecodeError as problem:
        raise GraderError(
            f"{path} is not text in UTF-8 (byte {problem.start})",
            "Save the file in the encoding UTF-8. Some editors and shells of Windows write UTF-16.",
        ) from None
    except OSError as problem:
        raise GraderError(f"{path} cannot be read: {problem.strerror}") from None


def plan_kernel(
    path: Path | str,
    device: str = "cpu",
    checks: bool = True,
    *,
    operations: bool = False,
    text: str | None = None,
    compiler: str | Compiler | None = None,
    arch: str | None = None,
    attributes: Mapping[tuple[str, str], list[str]] | None = None,
) -> BuildPlan:
    """Read and translate a kernel file without running a compiler. Raise RewriteError or PrototypeError.

    With ``operations``, the simulator also counts floating-point operations and divergence. This requires ``checks``.
    ``attributes`` are those of kernels that the front end cannot find, because of a macro: see ``Source``.
    """
    path = Path(path)
    original = read_kernel_file(path) if text is None else text
    source = Source(original)
    source.attributes = attributes or {}
    try:
        check_limits(source)
    except RewriteError as problem:
        raise diagnostics.located(path, problem) from None
    launchers = tuple(_launchers(path, source))
    if device == "cpu":
        return _plan_cpu(path, source, launchers, checks, compiler, operations, arch)
    if device == "cuda":
        return _plan_cuda(path, source, launchers, compiler, arch)
    raise GraderError(f"there is no device '{device}'", "Use 'cpu' (the simulated GPU) or 'cuda' (a real one).")


def compile_kernel(
    path: Path | str,
    device: str = "cpu",
    checks: bool = True,
    *,
    operations: bool = False,
    text: str | None = None,
    compiler: str | Compiler | None = None,
    arch: str | None = None,
    run: RunCommand = run_command,
    cache: BuildCache | None = None,
) -> BuiltKernel:
    """Build a kernel file by calling the compiler directly. ``run`` executes commands, for example in a sandbox."""
    plan = plan_kernel(path, device, checks, operations=operations, text=text, compiler=compiler, arch=arch)
    return build(plan, functools.partial(compile_directly, run=run), cache)


def build(plan: BuildPlan, compile_into: CompileInto, cache: BuildCache | None = None) -> BuiltKernel:
    """Return the library of a plan from the cache. On a cache miss, ``compile_into(plan, cache, folder)`` builds it."""
    began = time.monotonic()
    cache = cache or open_cache()
    entry, cached = cache.get(plan.key, lambda folder: compile_into(plan, cache, folder), plan.description)
    libsim = library.build_library(plan.libsim, cache) if plan.libsim else None
    return BuiltKernel(plan, entry / KERNEL_LIBRARY, libsim, cached, time.monotonic() - began)


def link_flags(plan: BuildPlan, cache: BuildCache) -> tuple[str, ...]:
    """Return the plan's link flags and, for the simulator, the path of libsim."""
    if plan.libsim is None:
        return plan.link_flags
    folder = plan.libsim.folder(cache)
    libsim = ("-Wl,--no-as-needed", f"-l:{plan.libsim.file_name}", "-Wl,--as-needed")
    return (*plan.link_flags, f"-L{folder}", *libsim, f"-Wl,-rpath,{folder}")


# -- plans -----------------------------------------------------------------------------------------------------------


def _launchers(path: Path, source: Source) -> list[Prototype]:
    """Return the launchers of a file, and ``main`` if it is a whole program."""
    try:
        main = find_main(source)
        return [*find_launchers(source), *([main[0]] if main else [])]
    except PrototypeError as problem:
        raise PrototypeError(f"{path.name}, {problem.message}", problem.hint) from None


def _plan_cpu(
    path: Path,
    source: Source,
    launchers: tuple[Prototype, ...],
    checks: bool,
    compiler: str | Compiler | None,
    operations: bool,
    arch: str | None,
) -> BuildPlan:
    cxx = compiler if isinstance(compiler, Compiler) else find_cxx(compiler)
    architecture = _simulated(arch, source, path.name)
    try:
        rewritten = rewrite(source, library.INCLUDE_DIRS, architecture)
        refuse_inlined(source, {launcher.name for launcher in launchers})
    except RewriteError as problem:
        raise diagnostics.located(path, problem) from None
    text = with_headers(rewritten.text, source, path.name, _translated_header)
    text = _with_thunks(path, text, source.text, launchers, "::sim::set_compute_capability(SIM_SM); ")
    flags = cpu_flags(cxx, checks, operations)
    if architecture != simulated_architecture():
        flags += (f"-DSIM_SM={architecture}",)
    libsim = library.plan_library(cxx)
    # With "-z defs", a call of an undefined function is an error at link time, not when the call is executed.
    linking: tuple[str, ...] = (
        "-Wl,--as-needed",
        "-Wl,-z,defs",
        "-Wl,-z,relro,-z,now",
        f"-Wl,--version-script={_EXPORTS}",
    )
    linking += hooks.link_flags(checks)
    key = digest(["kernel 3", text, *flags, cxx.identity, libsim.key, *linking, _late_accesses()])
    include = library.INCLUDE_DIRS
    return BuildPlan(path, "cpu", checks, source, text, launchers, cxx, flags, include, linking, key, rewritten, libsim)


@functools.cache
def _late_accesses() -> bytes:
    """Return the source of ``late_accesses``. It edits the compiler's assembly, so the cache key must depend on it."""
    return Path(late_accesses.__file__).read_bytes()


def cpu_flags(cxx: Compiler, checks: bool, operations: bool = False) -> tuple[str, ...]:
    """Return the flags that compile a kernel for the simulator."""
    gcc = cxx.family == "gcc"
    flags = _CPU_FLAGS + (_GCC_FLAGS if gcc else _CLANG_FLAGS)
    gcc_version = int(cxx.version.partition(".")[0] or 0) if gcc else 0
    if gcc_version >= 11:
        flags += ("-fdiagnostics-column-unit=byte",)
    flags += (_GCC_CHECKED if gcc else _CLANG_CHECKED) if checks else _PLAIN
    if checks and platform.machine() == "x86_64":
        flags += _GCC_X86 if gcc else _CLANG_X86
    if checks and (gcc_version >= 12 or not gcc):
        flags += _FILLED
    if checks and not gcc:
        flags += _CLANG_LOCAL
    if checks and gcc_version >= 16:
        # Without this flag, g++ 16 reads a structure passed by value from the caller's memory at each use of it.
        flags += ("-fno-tree-forwprop",)
    if operations and checks:
        flags += _GCC_COUNTED if gcc else _CLANG_COUNTED
    return flags


def _plan_cuda(
    path: Path, source: Source, launchers: tuple[Prototype, ...], compiler: str | Compiler | None, arch: str | None
) -> BuildPlan:
    nvcc = compiler if isinstance(compiler, Compiler) else find_nvcc()
    assert nvcc is not None
    if not arch:
        raise GraderError(
            "the architecture of the GPU is unknown", "Pass the architecture as arch, for example arch='sm_90'."
        )
    text = _with_thunks(path, with_headers(source.text, source, path.name), source.text, launchers)
    flags = nvcc_flags(arch)
    linking: tuple[str, ...] = ("-Wl,--as-needed", "-Wl,-z,defs", f"-Wl,--version-script={_EXPORTS}")
    linking += ("-lcudart_static", "-ldl", "-lrt", "-lpthread")
    key = digest(["kernel", text, *flags, nvcc.identity, *linking])
    return BuildPlan(path, "cuda", False, source, text, launchers, nvcc, flags, (), linking, key)


def _simulated(arch: str | None, source: Source, name: str) -> int:
    """Return the compute capability (times ten) of the simulated device for a file.

    For sm_90a and sm_100a, which have instructions that no other architecture has, return 90 or 100. For any other
    ``arch``, return the capability that the instructions of the file and of its course headers need.
    """
    if arch in ("sm_90a", "sm_100a"):
        return int(arch.removeprefix("sm_").removesuffix("a"))
    return architecture_for(with_headers(source.text, source, name)) or simulated_architecture()


@functools.lru_cache(maxsize=32)
def _translated_header(text: str) -> str:
    """Return a header of the course, translated for the simulator."""
    return rewrite(text, library.INCLUDE_DIRS).text


def arch_flags(arch: str) -> tuple[str, ...]:
    """Return nvcc's flags for an architecture. From Hopper on, enable architecture-specific features (sm_90a)."""
    number = compiled_architecture(arch).removeprefix("sm_")
    return (f"-gencode=arch=compute_{number},code=sm_{number}",)


def nvcc_flags(arch: str) -> tuple[str, ...]:
    """Return nvcc's flags for a kernel file."""
    return (*NVCC_FLAGS.split(), *arch_flags(arch))


def _with_thunks(path: Path, text: str, original: str, launchers: tuple[Prototype, ...], first: str = "") -> str:
    """Return the text to compile: the kernel file's text, followed by an entry point for each launcher.

    Line directives make compiler messages refer to the learner's file and lines. An entry point runs the code in
    ``first`` before it calls the launcher.
    """
    # Include cuda_runtime.h first, as nvcc does. After it, printf and assert are the simulator's.
    parts = ["#include <cuda_runtime.h>\n", headers_for(text)]
    program = any(launcher.name == "main" for launcher in launchers)
    if program:
        # C++ forbids calling main, so it is renamed.
        parts.append("#define main grader_program\n")
    parts += [
        line_directive(1, path.name),
        text,
        "" if text.endswith("\n") else "\n",
        line_directive(1, diagnostics.THUNKS),
    ]
    parts += [_thunk(launcher, first) for launcher in launchers if launcher.name != "main"]
    if program:
        parts.append(_program_thunk(original, first))
    return "".join(parts)


_ENTRY = 'extern "C" __attribute__((visibility("default"), no_sanitize("thread", "object-size"))) int'


def _thunk(launcher: Prototype, first: str) -> str:
    values = []
    for index, parameter in enumerate(launcher.parameters):
        # Append const to the type: "const T* const*" is the address of an argument of type "const T*".
        values.append(
            f"*static_cast<{parameter.type}{' ' if parameter.kind != 'pointer' else ''}const*>(arguments[{index}])"
        )
    return (
        f"{_ENTRY} {entry_point(launcher)}(void** arguments) {{ (void)arguments; {first}"
        f"try {{ {launcher.name}({', '.join(values)}); }} catch (...) {{ return -1; }} "
        f"return static_cast<int>(cudaGetLastError()); }}\n"
    )


def _program_thunk(original: str, first: str) -> str:
    """Return the C++ text of a whole program's entry point, a function that calls ``main``.

    The entry point returns the CUDA error if there is one, 0 if the program succeeds, and otherwise ``PROGRAM_STATUS``
    plus the program's exit status.
    """
    main = find_main(original)
    arguments = "1, argv" if main and main[1] else ""
    return (
        f"{_ENTRY} {entry_point('main')}(void**) {{ {first}"
        f'char name[] = "program"; char* argv[] = {{name, nullptr}}; (void)argv; int status = 0; '
        f"try {{ status = grader_program({arguments}); }} catch (...) {{ return -1; }} "
        f"int error = static_cast<int>(cudaGetLastError()); "
        f"return error || !status ? error : {PROGRAM_STATUS} + (status & 255); }}\n"
    )


# -- direct build ------------------------------------------------------------------------------------------------------


def compile_directly(plan: BuildPlan, cache: BuildCache, folder: Path, run: RunCommand = run_command) -> None:
    """Build ``folder/kernel.so`` by calling the compiler."""
    if plan.device == "cuda":
        _compile_cuda(plan, folder, run)
    else:
        _compile_cpu(plan, cache, folder, run)


def _compile_cpu(plan: BuildPlan, cache: BuildCache, folder: Path, run: RunCommand) -> None:
    (folder / "kernel.cpp").write_text(plan.text, encoding="utf-8")
    includes = [f"-I{path}" for path in plan.include_dirs]
    assert plan.libsim is not None
    with ThreadPoolExecutor(max_workers=1) as pool:
        libsim = pool.submit(library.build_library, plan.libsim, cache)
        in_parts = "-mno-red-zone" in plan.flags
        kind = ("-S", "-o", "-") if in_parts else ("-c", "-o", "kernel.o")
        argv = (*plan.compiler.command, *plan.flags, *includes, "kernel.cpp", *kind)
        few = cxx_library.few_functions(plan.compiler, cache)

        def linking(made: tuple[str, ...], against: Path | None) -> Command:
            # Link without -fsanitize: libsim defines the functions that instrumented code calls, not libtsan.
            libsim_folder = libsim.result().parent
            link = (*plan.compiler.command, "-shared", "-o", KERNEL_LIBRARY, *made, *link_flags(plan, cache))
            reads = (libsim_folder, _EXPORTS, *([against] if against else ()))
            return Command((*link, *(cxx_library.link_flags(against) if against else ())), folder, reads)

        def build(ahead: tuple[Path, ...]) -> tuple[Finished, Finished | None]:
            prelude = (f"-include{path / PRELUDE}" for path in ahead)
            compiling = Command((*argv, *prelude), folder, (*plan.include_dirs, *ahead))
            if not in_parts:
                return run(compiling), None
            piped = ("-x", "assembler", "-", "-x", "none")
            done, linked, assembly = compile_and_link(compiling, lambda: linking(piped, few), run)
            (folder / "kernel.s").write_text(assembly, encoding="utf-8", errors="surrogateescape")
            return done, linked

        ahead = _headers_ahead(plan, cache)
        done, linked = build(ahead)
        if ahead and done.returncode != 0 and refused(done.output):
            done, linked = build(())
        _checked(plan, folder, done)
        made = "kernel.s" if in_parts else "kernel.o"
        linked = linked or run(linking((made,), few))
        if linked.returncode != 0:  # the kernel may need a function of libstdc++ that the small library lacks
            linked = run(linking((made,), None))
        _checked(plan, folder, linked)
    (folder / made).unlink()


def _headers_ahead(plan: BuildPlan, cache: BuildCache) -> tuple[Path, ...]:
    """Return the folder of the precompiled headers for a plan; nothing for clang++, which does not need them."""
    if plan.compiler.family != "gcc" or plan.libsim is None:
        return ()
    names = headers_at_head(plan.text)
    return (precompiled(plan.compiler, plan.flags, plan.libsim.headers, names, cache),)


def precompile_headers(cache: BuildCache) -> None:
    """Precompile the headers that most kernels include, so that the first build is fast."""
    cxx = find_cxx()
    if cxx.family == "gcc":
        flags, headers = cpu_flags(cxx, checks=True), library.headers_digest()
        with ThreadPoolExecutor(max_workers=2) as pool:
            list(pool.map(lambda names: precompiled(cxx, flags, headers, names, cache), USUAL))


def _compile_cuda(plan: BuildPlan, folder: Path, run: RunCommand) -> None:
    (folder / "kernel.cu").write_text(plan.text, encoding="utf-8")
    host = [flag for option in plan.link_flags if option.startswith("-Wl,") for flag in ("-Xlinker", option[4:])]
    reads = (_EXPORTS, cuda_home(plan.compiler))

    def compiled(flags: tuple[str, ...]) -> Finished:
        argv = (*plan.compiler.command, *flags, "-Xcompiler=-fPIC", "-shared", "-cudart=static", *host)
        return run(Command((*argv, "-o", KERNEL_LIBRARY, "kernel.cu"), folder, reads))

    without = tuple(flag for flag in plan.flags if flag != EXTENDED_LAMBDA)
    if may_have_extended_lambda(plan.source):
        done = compiled(plan.flags)
    else:
        done = compiled(without)
        if done.returncode != 0 and _LACKING.search(done.output):
            done = compiled(plan.flags)
    _checked(plan, folder, done)


_LACKING = re.compile(r"\bstd\b|lambda")
"""The errors that may have another cause than the kernel file, if nvcc compiles it without ``EXTENDED_LAMBDA``."""


def may_have_extended_lambda(source: Source) -> bool:
    """Return whether a file may contain a ``__device__`` lambda. If it may not, nvcc needs no ``EXTENDED_LAMBDA``.

    With that flag, ``cuda_runtime.h`` includes ``<functional>``, which nvcc and its host compiler read three times. For
    a short kernel, this takes much of the time. The machine code is the same.
    """
    if any(include.name.startswith(("cub/", "cuda/", "thrust/")) for include in source.includes):
        return True
    for tokens in source.sequences:
        for first, second in itertools.pairwise(tokens):
            # In a lambda, __device__ or a macro with it follows the captures.
            if second.kind == "word" and (first.text == "]" or (first.text, second.text) == ("namespace", "std")):
                return True
    return False


def _checked(plan: BuildPlan, folder: Path, done: Finished) -> None:
    """Raise an error if the compiler failed; otherwise store its warnings next to the library."""
    if done.returncode != 0:
        raise compile_error(plan, done.output)
    if done.output.strip():
        with (folder / _MESSAGES).open("a", encoding="utf-8") as file:
            file.write(done.output)


def compile_error(plan: BuildPlan, output: str) -> BuildError:
    """Return an error from a compiler's output, with line numbers of the learner's file."""
    return diagnostics.explain(output, plan.file, plan.original, plan.rewritten, plan.compiler)
