"""The choice of a torch build, and the announcement of its size before the download."""

from __future__ import annotations

import http.server
import json
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from grader.setup import torch
from tests.setup.conftest import TinyCourse

SIZES = {"torch": 526_602_329, "nvidia_cudnn_cu13": 366_173_588, "triton": 197_729_241}


class Sizes(http.server.BaseHTTPRequestHandler):
    """An HTTP server that reports file sizes, but has no files."""

    def do_HEAD(self) -> None:
        name = self.path.strip("/").partition("-")[0]
        self.send_response(200 if name in SIZES else 404)
        self.send_header("Content-Length", str(SIZES.get(name, 0)))
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Yield the address of a server that reports large files."""
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Sizes)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def planned(address: str, *names: str, version: str = "2.13.0") -> list[dict]:
    """Return what pip reports that it would install."""
    return [
        {
            "metadata": {"name": name.replace("_", "-"), "version": version},
            "download_info": {"url": f"{address}/{name}-{version}-py3-none-any.whl"},
        }
        for name in names
    ]


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


def test_large_downloads_are_announced_with_their_size(course: TinyCourse, index: str, no_gpu: None) -> None:
    if torch.has_nvidia_gpu():
        pytest.skip("this machine has an NVIDIA GPU, so set-up does not announce downloads of CUDA libraries")
    (course.root / "planned.json").write_text(json.dumps(planned(index, *SIZES)))
    code, said = course.set_up()
    assert code == 0, said
    assert "a build for CUDA: 1.1 GB in 3 packages" in said and "make TORCH=cpu" in said
    assert said.index("1.1 GB") < said.index("downloading torch"), "before the download"


def test_no_announcement_for_a_cpu_build(course: TinyCourse, index: str, no_gpu: None) -> None:
    (course.root / "planned.json").write_text(json.dumps(planned(index, "torch", "sympy", version="2.13.0+cpu")))
    code, said = course.set_up()
    assert code == 0 and "CUDA" not in said and "TORCH" not in said


def test_with_a_gpu_pip_is_not_queried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_nvidia_smi(tmp_path, "echo 'GPU 0: NVIDIA H200 (UUID: GPU-1)'", monkeypatch)
    assert torch.has_nvidia_gpu()
    assert torch.notice(None, [], []) == ""


def test_unknown_sizes_are_reported_as_unknown(index: str, tmp_path: Path) -> None:
    (tmp_path / "a b.whl").write_bytes(bytes(1000))
    here, gone = (tmp_path / "a b.whl").as_uri(), (tmp_path / "gone.whl").as_uri()
    assert torch.sizes_of([here, gone, f"{index}/torch-1.whl", f"{index}/unknown-1.whl", "no address"]) == [
        1000,
        None,
        SIZES["torch"],
        None,
        None,
    ]
    partly = torch.in_words(planned(index, "torch", "nvidia_unknown"))
    assert "more than 527 MB in 2 packages" in partly
    assert "2 packages of unknown size" in torch.in_words(planned("x:", "torch", "nvidia_cudnn_cu13"))


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
