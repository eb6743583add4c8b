"""Recorded figures are not older than their sources; a change of a source names the record and the command."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from grader.course import course_root
from grader.execution.build.build import NVCC_FLAGS
from grader.judge.timing import sources
from grader.judge.timing.grid import Row, run_grid
from grader.judge.timing.sources import FLAGS, digest, digests, recorded_files, write_record
from tests.records import KnownStale, known_stale, machine_code, stale, unexplained

TABLE = """
[[record]]
file = "lessons/day01_add/times_gpu.json"
command = "python lessons/day01_add/measure.py --record"
sources = ["nvcc flags", "lessons/day01_add/*.cu", "lessons/day01_add/measure.py"]

[[record]]
file = "lessons/day*/h200.json"
command = "grader bench {exercise} --device cuda --record"
sources = ["nvcc flags", "solutions/{day}/{exercise}.cu"]
"""
KERNEL = '#include "llmk/add.cuh"\n__global__ void k(float* x) {\n    x[0] = llmk::add(x[0], 1);  // one\n}\n'
HEADER = "#pragma once\nnamespace llmk {\n__device__ float add(float a, float b) { return a + b; }\n}\n"


@pytest.fixture
def course(tmp_path: Path) -> Path:
    """Return a course with one recorded lesson and one recorded exercise."""
    day = tmp_path / "lessons" / "day01_add"
    solution = tmp_path / "solutions" / "day01_add" / "add.cu"
    for path, text in {
        tmp_path / "lessons" / "records.toml": TABLE,
        tmp_path / "lessons" / "llmk" / "add.cuh": HEADER,
        day / "kernel.cu": KERNEL,
        day / "measure.py": '"""Measure."""\nx = 1\nprint("one")\n',
        solution: KERNEL,
    }.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    write_record(day / "times_gpu.json", {"version": 1}, tmp_path)
    sources = digests(tmp_path, (FLAGS, "solutions/day01_add/add.cu"))
    (day / "h200.json").write_text(json.dumps({"exercises": {"add": {"sources": sources}}}))
    return tmp_path


def test_no_record_is_older_than_its_sources() -> None:
    lines = unexplained(stale(course_root()), known_stale())
    assert not lines, "\n".join(lines)


def test_every_recorded_file_is_in_the_table() -> None:
    root = course_root()
    listed = {path for row in recorded_files(root) for path in root.glob(row.file)}
    patterns = ("*_gpu.json", "*_gpu.csv", "*h200.json")
    found = {path for pattern in patterns for path in root.glob(f"lessons/*/{pattern}")}
    assert found <= listed, "add it to lessons/records.toml"
    for row in recorded_files(root):
        if (root / row.file).is_file() and row.file.endswith(".json"):  # a table has no command of its own
            content = json.loads((root / row.file).read_text())
            assert content["command"].split(" --")[0] == row.command.split(" --")[0], row.file
            matches = [path for pattern in row.sources for path in root.glob(pattern)]
            assert matches, f"{row.file}: no source matches {row.sources}"


def test_every_record_of_kernels_that_the_grader_builds_with_nvcc_has_the_flags() -> None:
    simulated_or_other_flags = {"bounds.json", "errors_simulator.json", "findings_h200.json"}
    root = course_root()
    for row in recorded_files(root):
        files = [path for pattern in row.sources for path in root.glob(pattern.format(day="*", exercise="*"))]
        if any(path.suffix in (".cu", ".cuh") for path in files):
            assert (FLAGS in row.sources) != (Path(row.file).name in simulated_or_other_flags), row.file


def test_a_table_of_a_grid_is_stale_when_its_kernel_or_the_flags_changed(
    course: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, kernel = course / "lessons" / "records.toml", "solutions/day01_add/add.cu"
    row = f'[[record]]\nfile = "lessons/day01_add/grid_gpu.csv"\ncommand = "grid"\nsources = ["{FLAGS}", "{kernel}"]\n'
    table.write_text(TABLE + row)
    source = digest(course / kernel, course / "lessons")
    size = Row("a GPU", "day01_add/add", source, NVCC_FLAGS, "f32", 8, 8, 1, 1, 8, False)
    list(run_grid([size], course / "lessons" / "day01_add" / "grid_gpu.csv", lambda row: row, 1))
    assert list(stale(course)) == []
    with monkeypatch.context() as other:
        other.setattr(sources, "NVCC_FLAGS", "-O1")
        assert ("lessons/day01_add/grid_gpu.csv", FLAGS) in {(item.record, item.source) for item in stale(course)}
    (course / kernel).write_text(KERNEL.replace("1)", "2)"))
    assert ("lessons/day01_add/grid_gpu.csv", kernel) in {(item.record, item.source) for item in stale(course)}


def test_a_record_is_not_stale_when_it_was_just_written(course: Path) -> None:
    assert list(stale(course)) == []


@pytest.mark.parametrize(
    ("file", "old", "new", "records"),
    [
        ("lessons/day01_add/kernel.cu", "1)", "2)", {"lessons/day01_add/times_gpu.json"}),
        ("lessons/day01_add/measure.py", "x = 1", "x = 2", {"lessons/day01_add/times_gpu.json"}),
        ("solutions/day01_add/add.cu", "x[0] =", "x[1] =", {"lessons/day01_add/h200.json"}),
        (
            "lessons/llmk/add.cuh",
            "a + b",
            "b + a",
            {"lessons/day01_add/times_gpu.json", "lessons/day01_add/h200.json"},
        ),
        ("lessons/day01_add/kernel.cu", "// one", "// another comment", set()),
        ("lessons/day01_add/kernel.cu", "    x[0]", "  x[0]", set()),
        ("lessons/day01_add/measure.py", "Measure", "Measure it", set()),
        ("lessons/day01_add/measure.py", '"one"', '"two"', set()),
    ],
)
def test_a_changed_source_makes_its_records_stale(
    course: Path, file: str, old: str, new: str, records: set[str]
) -> None:
    path = course / file
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    found = list(stale(course))
    assert {item.record for item in found} == records
    for line, item in zip(unexplained(found, []), found, strict=True):
        assert item.record in line and item.source in line and f"run `{item.command}`" in line


def test_a_new_source_has_no_figures_yet(course: Path) -> None:
    (course / "lessons" / "day01_add" / "second.cu").write_text(KERNEL)
    assert [item.source for item in stale(course)] == ["lessons/day01_add/second.cu"]


def test_only_what_was_measured_again_is_renewed(course: Path) -> None:
    day = course / "lessons" / "day01_add"
    (day / "second.cu").write_text(KERNEL)
    (day / "kernel.cu").write_text(KERNEL.replace("1)", "3)"))
    write_record(day / "times_gpu.json", {"version": 1}, course, renewed=("lessons/day01_add/second.cu",))
    assert [item.source for item in stale(course)] == ["lessons/day01_add/kernel.cu"]


def test_changed_flags_make_every_record_stale(course: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "NVCC_FLAGS", f"{NVCC_FLAGS} -split-compile=4")
    assert unexplained(stale(course), []) == [
        "lessons/day01_add/times_gpu.json is older than nvcc flags: run `python lessons/day01_add/measure.py --record`",
        "lessons/day01_add/h200.json (add) is older than nvcc flags: run `grader bench add --device cuda --record`",
    ]


def test_a_record_without_flags_is_stale(course: Path) -> None:
    path = course / "lessons" / "day01_add" / "times_gpu.json"
    content = json.loads(path.read_text())
    assert content["sources"].pop(FLAGS) == NVCC_FLAGS
    path.write_text(json.dumps(content))
    assert [(item.record, item.source) for item in stale(course)] == [("lessons/day01_add/times_gpu.json", FLAGS)]


def test_figures_of_other_flags_are_stale_until_all_are_measured_again(
    course: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = "lessons/day01_add/times_gpu.json"
    first, program, second = (f"lessons/day01_add/{name}" for name in ("kernel.cu", "measure.py", "second.cu"))
    (course / second).write_text(KERNEL)
    write_record(course / record, {"version": 1}, course)

    def renew(*renewed: str) -> list[str]:
        write_record(course / record, {"version": 1}, course, renewed)
        return [item.source for item in stale(course) if item.record == record]

    with monkeypatch.context() as other:
        other.setattr(sources, "NVCC_FLAGS", f"{NVCC_FLAGS} -split-compile=4")
        assert renew(first) == [program, second]
        assert renew(program, second) == []
    assert [item.source for item in stale(course) if item.record == record] == [FLAGS]
    assert renew(first) == [program, second]


def test_known_stale_figures_need_an_entry_that_still_applies(course: Path) -> None:
    path = course / "solutions" / "day01_add" / "add.cu"
    path.write_text(KERNEL.replace("1)", "2)"))
    entry = KnownStale("lessons/*/h200.json", "solutions/day01_add/*.cu", "no GPU", "2026-11-28")
    assert unexplained(stale(course), [entry]) == []
    path.write_text(KERNEL)
    (line,) = unexplained(stale(course), [entry])
    assert "remove the entry" in line


@pytest.mark.skipif(not shutil.which("nvcc"), reason="nvcc is not installed")
def test_machine_code_is_compared_without_names(tmp_path: Path) -> None:
    (tmp_path / "a.cu").write_text("__global__ void a(float* x) { x[0] += 1; }\n")
    (tmp_path / "b.cu").write_text("__global__ void other_name(float* y) { y[0] += 1; }\n")
    (tmp_path / "c.cu").write_text("__global__ void a(float* x) { x[0] += 2; }\n")
    same, renamed, different = (machine_code(tmp_path, f"{name}.cu") for name in "abc")
    assert same == renamed != different


def test_digests_are_of_tokens(tmp_path: Path) -> None:
    file = tmp_path / "k.cu"
    seen = set()
    for text in ("int a = 1;", "int  a=1; // x", "int a = 1; /* y */\n", "int a = 2;", "#define A 1\nint a = 1;"):
        file.write_text(text)
        seen.add(digest(file, tmp_path))
    assert len(seen) == 3
