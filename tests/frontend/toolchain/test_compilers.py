"""Finding compilers, and the message if there is none."""

import os
import stat
import sys

import pytest

from grader.frontend.toolchain.compilers import NoCompiler, _nvcc_candidates, available_cxx, find_cxx, find_nvcc


@pytest.fixture
def clean(monkeypatch):
    for name in ("GRADER_CXX", "GRADER_NVCC", "CXX", "CUDA_HOME", "CUDA_PATH"):
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


def script(path, text: str) -> str:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def test_the_usual_compiler_is_found(clean):
    compiler = find_cxx()
    assert compiler.family in ("gcc", "clang") and compiler.version[0].isdigit()
    assert str(compiler).endswith(compiler.version)


def test_every_compiler_can_be_named():
    for compiler in available_cxx():
        assert find_cxx(compiler.name).path == compiler.path


def test_no_compiler_at_all(clean, tmp_path):
    clean.setenv("PATH", str(tmp_path))
    with pytest.raises(NoCompiler, match=r"no C\+\+ compiler") as caught:
        find_cxx()
    assert "apt install g++" in caught.value.hint


def test_an_override_must_run(clean, tmp_path):
    clean.setenv("GRADER_CXX", str(tmp_path / "nothing"))
    with pytest.raises(NoCompiler, match="GRADER_CXX="):
        find_cxx()
    clean.setenv("GRADER_CXX", script(tmp_path / "broken", "exit 1"))
    with pytest.raises(NoCompiler, match="GRADER_CXX="):
        find_cxx()


def test_an_override_may_have_arguments(clean, tmp_path):
    fake = script(tmp_path / "wrapper", 'echo "g++ (Fake) 13.1.0"')
    clean.setenv("GRADER_CXX", f"env {fake}")
    compiler = find_cxx()
    assert compiler.command == ("env", fake) and compiler.version == "13.1.0" and compiler.family == "gcc"


def test_an_invalid_cxx_variable_is_ignored(clean, tmp_path):
    nvcc = script(tmp_path / "nvcc", 'echo "nvcc: NVIDIA (R) Cuda compiler driver"')
    for value in (str(tmp_path / "nothing"), nvcc, "g++ '"):
        clean.setenv("CXX", value)
        assert find_cxx().path not in (nvcc, "") and find_cxx().version[0].isdigit()
    clean.setenv("GRADER_CXX", nvcc)
    with pytest.raises(NoCompiler, match="nvcc is not a C\\+\\+ compiler"):
        find_cxx()


def test_an_unknown_compiler_argument_is_named(clean):
    with pytest.raises(NoCompiler, match="the compiler turbo-c"):
        find_cxx("turbo-c")


def test_another_version_is_another_identity(clean, tmp_path):
    first = script(tmp_path / "a", 'echo "g++ (Fake) 13.1.0"')
    second = script(tmp_path / "b", 'echo "g++ (Fake) 13.2.0"')
    assert find_cxx(first).identity != find_cxx(second).identity


def test_another_name_is_the_same_identity(clean, tmp_path):
    """CMake sets CXX to c++. With another identity, the whole simulator would be built once more."""
    names = [script(tmp_path / name, 'echo "${0##*/} (Fake) 13.1.0"') for name in ("g++", "c++")]
    assert len({find_cxx(name).identity for name in names}) == 1


def test_no_nvcc(clean, tmp_path):
    clean.setenv("PATH", str(tmp_path))
    clean.setattr("grader.frontend.toolchain.compilers._nvcc_candidates", lambda: ["nvcc"])
    assert find_nvcc(required=False) is None
    with pytest.raises(NoCompiler, match="no nvcc") as caught:
        find_nvcc()
    assert "device='cpu'" in caught.value.hint


def test_an_nvcc_override(clean, tmp_path):
    clean.setenv("GRADER_NVCC", os.devnull)
    with pytest.raises(NoCompiler, match="GRADER_NVCC="):
        find_nvcc()
    clean.setenv("GRADER_NVCC", script(tmp_path / "nvcc", 'echo "Cuda compilation tools, release 12.4, V12.4.1"'))
    compiler = find_nvcc()
    assert compiler is not None and compiler.version == "12.4" and str(compiler) == "nvcc 12.4"


def test_nvcc_from_the_pip_packages(clean, tmp_path):
    folder = tmp_path / "site" / "nvidia" / "cu13" / "bin"
    folder.mkdir(parents=True)
    fake = script(folder / "nvcc", 'echo "Cuda compilation tools, release 13.5, V13.5.37"')
    clean.setenv("PATH", "/usr/bin:/bin")
    clean.syspath_prepend(str(tmp_path / "site"))
    clean.delitem(sys.modules, "nvidia", raising=False)
    assert fake in _nvcc_candidates()


def test_a_compiler_whose_name_contains_its_version_is_found(clean, tmp_path):
    """Prefer a compiler whose name has no version, then the newest g++-N, then the newest clang++-N (apt's names)."""
    clean.setenv("PATH", f"{tmp_path / 'no such folder'}:{tmp_path}")
    script(tmp_path / "clang++-9", 'echo "clang version 9.0.1"')
    script(tmp_path / "clang++-19", 'echo "clang version 19.1.7"')
    assert find_cxx().version == "19.1.7"
    script(tmp_path / "g++-9", 'echo "g++ (Debian) 9.4.0"')
    script(tmp_path / "g++-14", 'echo "g++ (Debian) 14.2.0"')
    script(tmp_path / "g++-15-fake", 'echo "g++ (Fake) 15.0.0"')
    assert find_cxx().version == "14.2.0"
    clean.setenv("PATH", f"{tmp_path}:{tmp_path / 'no such folder'}")  # a PATH for which no result is cached yet
    script(tmp_path / "clang++", 'echo "clang version 16.0.6"')
    assert find_cxx().version == "16.0.6"
