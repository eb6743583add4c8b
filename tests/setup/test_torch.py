"""The choice of a torch build, and the notice about a large download."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from grader.setup import torch
from tests.setup.conftest import TinyCourse


@pytest.fixture
def no_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put a fake nvidia-smi that finds no GPU first on the PATH."""
    put_nvidia_smi(tmp_path, "exit 9", monkeypatch)


def put_nvidia_smi(folder: Path, does: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put a fake nvidia-smi first on the PATH."""
    (folder / "bin").mkdir()
    tool = folder / "bin" / "nvidia-smi"
    tool.write_text(f"#!/bin/sh\n{does}\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tool.parent}:/usr/bin:/bin")


def test_a_large_download_is_announced_before_it_starts(course: TinyCourse, no_gpu: None) -> None:
    if torch.has_nvidia_gpu():
        pytest.skip("this machine has an NVIDIA GPU, so set-up does not announce downloads of CUDA libraries")
    code, said = course.set_up()
    assert code == 0 and "make TORCH=cpu" in said, said
    assert said.index("make TORCH=cpu") < said.index("downloading torch")
    course.pin("2.1")
    code, said = course.set_up()
    assert code == 0 and "make TORCH=cpu" not in said, "an update keeps the build"


def test_a_gpu_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_nvidia_smi(tmp_path, "echo 'GPU 0: NVIDIA H200 (UUID: GPU-1)'", monkeypatch)
    assert torch.has_nvidia_gpu()


def called(course: TinyCourse) -> str:
    """Return the last command line of uv."""
    return (course.root / "called").read_text() if (course.root / "called").exists() else ""


def test_uv_installs_another_build_and_the_choice_is_remembered(course: TinyCourse) -> None:
    code, said = course.set_up("--torch=cpu")
    assert code == 0, said
    assert "--torch-backend cpu" in called(course) and "-c constraints.txt torch" in called(course)
    assert course.set_up() == (0, ""), "a later make without TORCH must change nothing"
    (course.root / "called").unlink()
    course.pin("2.1")
    code, said = course.set_up()
    assert code == 0 and "--torch-backend cpu" in called(course)


def test_a_choice_survives_an_interruption(course: TinyCourse) -> None:
    course.stop("download", signal.SIGKILL, "--torch=cpu")
    (course.root / "called").unlink()
    code, said = course.set_up()
    assert code == 0 and "--torch-backend cpu" in called(course), said


def test_another_choice_recreates_the_environment(course: TinyCourse) -> None:
    course.set_up()
    code, said = course.set_up("--torch=cpu")
    assert code == 0 and "the torch in .venv is the build that pip chose, but the build 'cpu' was requested" in said
    (course.root / "called").unlink()
    code, said = course.set_up("--torch=pip")
    assert code == 0 and "the torch in .venv is the build 'cpu'" in said and not called(course)
    assert course.set_up() == (0, "")
