"""Prepares the Python of the sandbox: the modules that a submission may import, and the library that confines it.

A submission sees these files and no others of the installed Python, so packages beside Python stay hidden.
"""

from __future__ import annotations

import compileall
import json
import py_compile
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from grader.execution.jail.programs import CONFINE, CONFINEMENT, compiled
from grader.frontend.toolchain.cache import digest, digest_folder, open_cache
from grader.frontend.toolchain.compilers import find_cxx
from grader.setup.errors import GraderError

SOURCE = Path(__file__).parent / "source"
_VERSION = f"python{sys.version_info.major}.{sys.version_info.minor}"
_LISTED = """
import encodings.utf_8, encodings.ascii, encodings.latin_1, json, os, runpy, sys, sysconfig
sys.argv = ["worker.py"]
for name in runpy.run_path(sys.path.pop(0) + "/worker.py")["MODULES"].split():
    __import__(name)
files = {getattr(module, "__file__", None) for module in [*sys.modules.values()]}
print(json.dumps([sysconfig.get_path("platstdlib"), sysconfig.get_path("stdlib"), sorted(filter(None, files))]))
"""
"""A program that prints the folders of the standard library and the files of the modules that the worker imports."""


@dataclass(frozen=True)
class Interpreter:
    """A Python for the sandbox. ``home`` has its modules, ``worker.py`` and ``confine.so``."""

    program: Path
    home: Path

    @property
    def extensions(self) -> list[Path]:
        """The modules that are shared libraries."""
        return sorted((self.home / "lib").glob("**/*.so"))


def find_interpreter() -> Interpreter:
    """Return the interpreter. Collect its files if they are not in the cache."""
    program = Path(getattr(sys, "_base_executable", sys.executable)).resolve()
    flags = ("-std=c++17", "-O1", "-fPIC", "-shared", "-fvisibility=default", f"-I{CONFINE}")
    sources = [SOURCE / "confine_python.cpp", *CONFINEMENT]
    confine = compiled("confine.so", "the library that confines Python", find_cxx(), flags, sources)
    key = digest(["python", str(program), sys.version, confine.parent.name, digest_folder([SOURCE])])

    def build(folder: Path) -> None:
        _collect_modules(program, folder / "lib" / _VERSION)
        for file in (SOURCE / "worker.py", confine):
            shutil.copy(file, folder / file.name)

    entry, _ = open_cache().get(key, build, "the Python of the sandbox")
    return Interpreter(program, entry)


def _collect_modules(program: Path, library: Path) -> None:
    """Copy the modules that the worker imports to ``library``, and compile them."""
    listing = f"import sys; sys.path.insert(0, {str(SOURCE)!r})\n{_LISTED}"
    done = subprocess.run([str(program), "-I", "-S", "-c", listing], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise GraderError(f"{program} cannot list its modules:\n{done.stderr.strip()}")
    *folders, files = json.loads(done.stdout)
    (library / "lib-dynload").mkdir(parents=True)
    for file in map(Path, files):
        folder = next((place for place in folders if file.is_relative_to(place)), None)
        if folder is not None:
            target = library / file.relative_to(folder)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, target)
    # Python must not compare the times of the sources: copies for the sandbox's user have other times.
    mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
    compileall.compile_dir(library, quiet=2, invalidation_mode=mode)
