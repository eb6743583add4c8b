"""The command that fetches and runs public programs, tested with repositories that the tests create."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.execution.programs import inputs, public

PROGRAM = """\
#include <stdio.h>
#include "size.h"
__global__ void fill(int* x, int n) { if (threadIdx.x < n) x[threadIdx.x] = n; }
int main(int argc, char** argv) {
    char how = argc > 1 ? argv[1][0] : ' ';
    int n, *x;
    FILE* file = fopen("n.txt", "r");
    if (!file || fscanf(file, "%d", &n) != 1) return 3;
    cudaMallocManaged(&x, SIZE * sizeof(int));
    fill<<<1, 64>>>(x, how == 'b' ? n + 1 : n);
    cudaDeviceSynchronize();
    if (FILE* out = fopen("out.txt", "w")) fclose(out);
    puts(how == 'w' ? "Test FAILED" : x[n - 1] == n ? "Test PASSED" : "");
    while (how == 'f') cudaDeviceSynchronize();
    return how == 's';
}
"""
REFUSED = "__global__ void f() {}\nint main() { f(); }\n"
KERNELS = "__global__ void f() {}\n"


def git(folder: Path, *arguments: str) -> str:
    settings = ["-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false", "-c", "gc.auto=0"]
    return subprocess.run(["git", *settings, *arguments], cwd=folder, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a record of two repositories in the folder ``there``. Nothing has been fetched yet."""
    files = {
        "one/programs": {"a/main.cu": PROGRAM, "a/n.txt": "5\n", "include/size.h": "#define SIZE 5\n"},
        "two/more": {"refused.cu": REFUSED, "kernels.cu": KERNELS},
    }
    commits = {}
    for repository, contents in files.items():
        place = tmp_path / "there" / repository
        for name, text in contents.items():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            (place / name).write_text(text)
        git(place, "init", "--quiet")
        git(place, "add", ".")
        git(place, "commit", "--quiet", "-m", "all")
        commits[repository] = git(place, "rev-parse", "HEAD").strip()
    main = {"repository": "one/programs", "path": "a/main.cu", "include": ["include"]}
    programs: list[dict[str, Any]] = [
        {"repository": "two/more", "path": "refused.cu"},
        {"repository": "two/more", "path": "kernels.cu", "outcome": "accepted"},
        *({**main, "arguments": how, "outcome": "right"} for how in ("forever", "", "beyond", "wrong", "stop")),
    ]
    path = tmp_path / "public.json"
    public.save(path, {"about": "made here", "commits": commits, "programs": programs})
    monkeypatch.setattr(public, "RECORD", path)
    monkeypatch.setattr(public, "GITHUB", f"file://{tmp_path / 'there'}")
    return path


def outcomes(record: Path) -> list[tuple[str, str]]:
    programs = json.loads(record.read_text())["programs"]
    return [(one["path"] + " " + one.get("arguments", ""), one.get("outcome", "")) for one in programs]


def test_programs_are_fetched_run_compared_and_recorded(
    record: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "clones"
    folder.mkdir()
    command = [str(folder), "--seconds", "1", "--workers", "2"]
    assert public.main(command) == 2  # without --fetch, so the repository is missing
    assert "has no clone of" in capsys.readouterr().err
    assert public.main([*command, "--fetch"]) == 1
    said = capsys.readouterr().out
    assert "! one/programs/a/main.cu forever: over the limit" in said and "5 differ from the record" in said
    rows = [json.loads(line) for line in (folder / "results.jsonl").read_text().splitlines()]
    assert {row["name"]: row["outcome"] for row in rows} == {
        "one/programs/a/main.cu": "right",
        "one/programs/a/main.cu forever": "over the limit",
        "one/programs/a/main.cu beyond": "findings",
        "one/programs/a/main.cu wrong": "wrong",
        "one/programs/a/main.cu stop": "stops by itself",
        "two/more/refused.cu": "refused",
        "two/more/kernels.cu": "accepted",
    }
    assert not list(folder.glob("*/out.txt"))  # files that programs write disappear with the scratch folder
    # An interrupted run continues where it stopped. Here nothing is left to do, so it needs no network.
    with (folder / "results.jsonl").open("a") as log:
        log.write('{"name": "cut sho')
    before = record.read_text()
    assert public.main([*command, "--record"]) == 0
    assert "!" not in capsys.readouterr().out and record.read_text() != before
    assert outcomes(record) == [
        ("a/main.cu ", "right"),
        ("a/main.cu beyond", "findings"),
        ("a/main.cu forever", "over the limit"),
        ("a/main.cu stop", "stops by itself"),
        ("a/main.cu wrong", "wrong"),
        ("kernels.cu ", "accepted"),
        ("refused.cu ", "refused"),
    ]
    [said, beyond] = [
        one["said"] for one in json.loads(record.read_text())["programs"] if one["outcome"] in ("refused", "findings")
    ][::-1]
    assert (
        said[0].startswith("refused.cu:2:") and "f is a kernel" in said[0] and str(tmp_path) not in record.read_text()
    )
    assert beyond[0].startswith(
        "memcheck: out-of-bounds access: 4-byte write, 0 bytes past the end of memory from cudaMallocManaged (20 bytes)"
    )
    after = record.read_text()
    assert public.main([*command, "--record"]) == 0 and record.read_text() == after


@pytest.mark.parametrize("url", ["file:///nowhere", "http://127.0.0.1:1"])
def test_a_missing_repository_or_network_is_reported(
    record: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], url: str
) -> None:
    monkeypatch.setattr(public, "GITHUB", url)
    assert public.main([str(tmp_path), "--fetch", "--only", "two/more"]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"public: {url}/two/more cannot be fetched: ") and "Traceback" not in said
    assert public.main([str(tmp_path), "--only", "three"]) == 2
    assert "no program with 'three'" in capsys.readouterr().err


def test_headers_and_missing_functions_are_found(
    record: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "there" / "one" / "programs"
    files = {
        "b/deep/main.cu": '#include "size.h"\n#include <cstdio>\n#include <omp.h>\nint twice(int);\n'
        'int main() { puts(twice(SIZE) * omp_get_num_devices() == 0 && SIZE == 7 ? "PASSED" : "FAILED"); }\n',
        "b/deep/twice.cpp": "int twice(int x) { return 2 * x; }\n",
        "b/deep/other.cu": "int main() { return 1; }\n",
        "b/a/size.h": "#error another program's\n",
        "b/include/size.h": "#define SIZE 7\n",
    }
    for name, text in files.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(text)
    git(place, "add", ".")
    git(place, "commit", "--quiet", "-m", "more")
    commit = git(place, "rev-parse", "HEAD").strip()
    programs = [{"repository": "one/programs", "path": "b/deep/main.cu", "outcome": "right"}]
    public.save(record, {"about": "", "commits": {"one/programs": commit}, "programs": programs})
    assert public.main([str(tmp_path), "--fetch"]) == 0, capsys.readouterr().out


def test_the_summary_counts_useful_programs() -> None:
    programs: list[dict[str, Any]] = [
        {"outcome": "right"},
        {"outcome": "ended well"},
        {"outcome": "findings", "why": "true: it is a race"},
        {"outcome": "findings", "why": "false: the barrier orders both"},
        {"outcome": "findings"},
        {"outcome": "over the limit"},
        {"outcome": "refused", "said": ["a.cu:1:1: error: #include <cufft.h>: the simulator does not have cuFFT"]},
        {"outcome": "refused", "said": ["a.cu:3: error: x"], "why": "nvcc refuses it: x is not declared"},
        {"outcome": "refused", "said": ["a.cu:3: error: the PTX instruction x is not simulated"]},
        {"outcome": "stops by itself"},
    ]
    got = public.summary(programs)
    assert got.pop("programs") == 10 and got.pop("clean") == 2
    assert got.pop("useful, percent of all") == 30 and got.pop("useful, percent of possible") == 50
    assert set(got) <= set(public.CLASSES) and set(got.values()) == {1} and len(got) == 8


def test_the_record_is_as_the_command_writes_it() -> None:
    record = json.loads(public.RECORD.read_text())
    names = [public.name(one) for one in record["programs"]]
    assert len(set(names)) == len(names) >= 300
    for one in record["programs"]:
        assert one["repository"] in record["commits"] and one["outcome"] in public.OUTCOMES
        assert "launcher" not in one or (public.LAUNCHERS / one["launcher"]).is_file()
    assert record["summary"] == public.summary(record["programs"])


def test_a_folder_with_a_makefile_of_its_own_is_built_in_a_jail(
    record: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "there" / "one" / "programs"
    (place / "a" / "makefile").write_text(
        "prog: main.cu\n\techo built > outside.txt\n\t! touch ../escaped\n\t$(CUDA_DIR)/bin/nvcc -I../include "
        "main.cu -o prog\n"
    )
    git(place, "add", ".")
    git(place, "commit", "--quiet", "-m", "makefile")
    commit = git(place, "rev-parse", "HEAD").strip()
    entry = {"repository": "one/programs", "path": "a", "make": "", "program": "prog", "inputs": ["data/five"]}
    monkeypatch.setitem(inputs.MAKERS, "data/five", lambda: "5\n")
    broken = {**entry, "make": "nothing_of_that_name", "outcome": "refused"}
    asked = {"about": "", "commits": {"one/programs": commit}, "programs": [{**entry, "outcome": "right"}, broken]}
    public.save(record, asked)
    monkeypatch.setattr(public, "name", lambda one: f"{one['path']} {one['make']}")
    status = public.main([str(tmp_path), "--fetch", "--seconds", "10"])
    said = capsys.readouterr().out
    if "there is no jail" in said or "bwrap: " in said:
        pytest.skip(f"no jail is available: {said}")
    assert status == 0, said
    rows = [json.loads(line) for line in (tmp_path / "results.jsonl").read_text().splitlines()]
    assert {row["name"]: row["outcome"] for row in rows} == {"a ": "right", "a nothing_of_that_name": "refused"}
    assert "No rule to make target" in next(row["said"][0] for row in rows if row["outcome"] == "refused")
