"""``grader doctor``: shows this machine's tools, what is missing, and how to get it."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.metadata
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import webbrowser
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from grader import __version__
from grader.cli.tried import untested
from grader.course import Course
from grader.course.learner.progress import ProgressFile
from grader.report import theme
from grader.report.failures import indented
from grader.report.terminal import ascii_only
from grader.setup import shipped
from grader.setup.errors import GraderError
from grader.verdict import words

GOOD, MISSING, OPTIONAL = "passed", "failed", "skipped"


@dataclass
class Examined:
    """An examined item. ``status``: GOOD; MISSING, and grading needs it; or OPTIONAL: missing, but not needed."""

    name: str
    status: str
    found: str
    advice: str = ""


def command(
    as_json: Annotated[bool, typer.Option("--json", help="Print what was found as JSON.")] = False,
) -> int:
    """Show this machine's tools, and what is missing."""
    examined = [examine() for examine in EXAMINATIONS]
    needed = [item for item in examined if item.status == MISSING]
    if as_json:
        print(json.dumps({"ready": not needed, "examined": [dataclasses.asdict(item) for item in examined]}, indent=2))
    else:
        print_examined(examined)
    return 2 if needed else 0


def print_examined(examined: list[Examined]) -> None:
    """Print the findings as a table, and the conclusion."""
    console = theme.console()
    plain = ascii_only(console)
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for item in examined:
        found = Text(item.found)
        if item.advice:
            found.append("\n" + item.advice, style="warn" if item.status == MISSING else "quiet")
        mark = Text(theme.mark(item.status, plain), style=theme.STATUS_STYLE[item.status])
        table.add_row(mark, Text(item.name, style="title"), found)
    console.print()
    console.print(indented(table))
    console.print()
    needed = [item.name for item in examined if item.status == MISSING]
    if needed:
        console.print(Text(f"  Not ready to grade: see {', '.join(needed)} above.", style="bad"))
    else:
        console.print(Text("  Ready to grade on the simulated GPU.", style="good"))
    console.print()


def grader_itself() -> Examined:
    """Examine the grader and the Python that runs it."""
    machine = f"{platform.system()} {platform.machine()}, {words.count(_cores(), 'core')}"
    return Examined("grader", GOOD, f"{__version__}, Python {platform.python_version()} on {machine}")


def kind_of_machine() -> Examined:
    """Examine whether the course was tested on machines of this kind."""
    library, _ = platform.libc_ver()
    said = untested(platform.system(), platform.machine(), platform.release(), library, sys.version_info[:2])
    found = f"the course was {'not fully ' if said else ''}tested on this kind of machine"
    return Examined("platform", OPTIONAL if said else GOOD, found, "\n".join(said))


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def torch_package() -> Examined:
    """Examine PyTorch, which draws inputs and computes the references."""
    try:
        version = importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        advice = "pip install torch" if shipped.IN_WHEEL else "Run `make` in the course folder: it installs torch."
        return Examined("torch", MISSING, "not installed", advice)
    build = torch_build()
    return Examined("torch", GOOD, f"{version}, built for {build}" if build else version)


def torch_build() -> str:
    """Return the target of the installed torch: "CPUs", "CUDA 13.0"...; empty if unknown. torch is not imported."""
    try:
        file = importlib.metadata.distribution("torch").locate_file("torch/version.py")
        text = Path(str(file)).read_text(encoding="utf-8")
    except (importlib.metadata.PackageNotFoundError, OSError, ValueError):
        return ""
    for name, title in (("cuda", "CUDA"), ("hip", "ROCm"), ("xpu", "XPU")):
        if found := re.search(rf"^{name}\b[^=\n]*= *['\"]([^'\"]+)['\"]", text, re.MULTILINE):
            return f"{title} {found[1]}"
    return "CPUs" if re.search(r"^cuda\b[^=\n]*= *None", text, re.MULTILINE) else ""


def cxx_compiler() -> Examined:
    """Examine whether a C++ compiler for the simulator is found and can compile a program."""
    from grader.frontend.toolchain.compilers import find_cxx

    try:
        compiler = find_cxx()
    except GraderError as error:
        return Examined("C++ compiler", MISSING, error.message, error.hint)
    problem = _builds_something(list(compiler.command))
    if problem:
        return Examined("C++ compiler", MISSING, f"{compiler} cannot build a program: {problem}", "Install g++ again.")
    return Examined("C++ compiler", GOOD, str(compiler))


def _builds_something(command: list[str]) -> str:
    """Build a small shared library with the compiler. Return the reason if that fails, else an empty text."""
    with tempfile.TemporaryDirectory(prefix="grader-doctor-") as folder:
        source = Path(folder) / "try.cpp"
        source.write_text("#include <cmath>\n#include <cstdint>\nfloat f(float x) { return std::sqrt(x); }\n")
        try:
            result = subprocess.run(
                [*command, "-std=c++17", "-shared", "-fPIC", str(source), "-o", str(Path(folder) / "try.so")],
                capture_output=True,
                text=True,
                timeout=30,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return str(error)
    if result.returncode == 0:
        return ""
    return next(iter(result.stderr.strip().splitlines()), "the compiler failed without a message")


def nvcc_compiler() -> Examined:
    """Examine nvcc. It is needed for a real GPU; in the stage *builds*, it adds its errors, registers and occupancy."""
    from grader.frontend.toolchain.compilers import find_nvcc

    extra = shipped.install_extra("nvcc")
    advice = f"Without nvcc, *builds* shows no registers and no occupancy. Install the CUDA toolkit, or run:\n{extra}"
    try:
        compiler = find_nvcc(required=False)
    except GraderError as error:
        return Examined("nvcc", OPTIONAL, error.message, error.hint or advice)
    return Examined("nvcc", GOOD, str(compiler)) if compiler else Examined("nvcc", OPTIONAL, "not found", advice)


def objdump() -> Examined:
    """Examine objdump: it reads a kernel's instructions, for the operation counts of ``check --verbose``."""
    from grader.simulator.disassembly import find_objdump

    try:
        return Examined("objdump", GOOD, str(find_objdump()))
    except GraderError as error:
        return Examined(
            "objdump", OPTIONAL, "not found", f"Without it, floating-point operations are not shown. {error.hint}"
        )


def gpu() -> Examined:
    """Examine the GPU through the driver's own tool, so that torch need not be imported."""
    advice = "Everything except timing works without one."
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return Examined("GPU", OPTIONAL, "none (no nvidia-smi)", advice)
    query = [tool, "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"]
    try:
        result = subprocess.run(query, capture_output=True, text=True, timeout=15, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return Examined("GPU", OPTIONAL, f"nvidia-smi does not answer: {error}", advice)
    names = [line.strip() for line in result.stdout.splitlines() if line.strip()]
    if result.returncode != 0 or not names:
        said = next(iter((result.stderr or result.stdout).strip().splitlines()), "nvidia-smi failed")
        return Examined("GPU", OPTIONAL, said, advice)
    if torch_build() == "CPUs":
        other = "pip install --force-reinstall torch" if shipped.IN_WHEEL else "make TORCH=pip"
        advice = f"The installed torch is built for CPUs. To use the GPU, install pip's build for CUDA: {other}"
        return Examined("GPU", OPTIONAL, "; ".join(names), advice)
    return Examined("GPU", GOOD, "; ".join(names))


def jail() -> Examined:
    """Examine the jail by trying to break out of it."""
    return _jail("jail", ("bwrap",), lambda: None)


def jail_on_gpu() -> Examined:
    """Examine the jail for kernels on a real GPU, if there is a usable one."""
    if gpu().status != GOOD:
        return Examined("jail on the GPU", OPTIONAL, "not tested, because there is no usable GPU")
    from grader.execution.runner.gpu import gpu_architecture

    return _jail("jail on the GPU", ("bwrap", "landlock"), gpu_architecture)


def _jail(name: str, good: Sequence[str], architecture: Callable[[], str | None]) -> Examined:
    """Examine the jail for the simulator, or for a GPU of an architecture. ``good``: the tiers that suffice."""
    from grader.execution.runner import tiers

    try:
        held = tiers.in_force(architecture())
    except GraderError as error:
        return Examined(name, OPTIONAL, error.message, error.hint or "")
    return Examined(name, GOOD if held.tier in good else OPTIONAL, tiers.TITLES[held.tier], held.explanation.strip())


def browser() -> Examined:
    """Examine whether JupyterLab can show the lessons in a browser."""
    try:
        lab = f"JupyterLab {importlib.metadata.version('jupyterlab')}"
    except importlib.metadata.PackageNotFoundError:
        return Examined("browser", OPTIONAL, "JupyterLab is not installed", "Only the lessons need it, not grading.")
    try:
        return Examined("browser", GOOD, f"{webbrowser.get().name}, for {lab}")
    except webbrowser.Error:
        advice = "`jupyter lab lessons` prints an address: open it in a browser that can reach this machine."
        return Examined("browser", OPTIONAL, f"not found, for {lab}", advice)


def build_cache() -> Examined:
    """Examine the cache of compiled kernels and its size."""
    from grader.frontend.toolchain.cache import cache_folder

    folder = cache_folder()
    used = _bytes_below(folder)
    anchor = next((parent for parent in [folder, *folder.parents] if parent.exists()), Path("/"))
    free = shutil.disk_usage(anchor).free
    found = f"{folder}, {words.amount(used)}, {words.amount(free)} free"
    if not os.access(anchor, os.W_OK):
        return Examined(
            "build cache", OPTIONAL, found, "The folder is not writable; set GRADER_CACHE to a writable folder."
        )
    if free < 200 * 2**20:
        return Examined("build cache", OPTIONAL, found, "The disk is nearly full; set GRADER_CACHE to another disk.")
    return Examined("build cache", GOOD, found)


def _bytes_below(folder: Path) -> int:
    """Return the bytes of all files below a folder, without files that another run removes meanwhile."""
    used = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                used += os.lstat(os.path.join(place, name)).st_size
    return used


def course_folder() -> Examined:
    """Examine the course's folder, and whether progress can be saved in it."""
    try:
        course = Course()
        entries = course.exercises
    except GraderError as error:
        return Examined("course", MISSING, error.message, error.hint)
    found = f"{course.root}, {words.count(len(entries), 'exercise')}"
    if not os.access(course.root, os.W_OK):
        return Examined("course", OPTIONAL, found, "The folder is not writable: progress is not saved.")
    broken = ProgressFile(course.root).read().set_aside
    return Examined("course", GOOD, found, broken)


EXAMINATIONS: list[Callable[[], Examined]] = [
    grader_itself,
    kind_of_machine,
    torch_package,
    cxx_compiler,
    nvcc_compiler,
    objdump,
    gpu,
    jail,
    jail_on_gpu,
    browser,
    build_cache,
    course_folder,
]
