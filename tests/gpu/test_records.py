"""The records of the commands in this folder are complete, and outputs of tools are parsed correctly.

These tests need no GPU.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import sys
from pathlib import Path

import pytest

from grader.course import Course, course_root
from grader.course.tolerance import DEFAULT
from grader.report.notebook.bounds import recorded_bounds
from tests.attacks.conftest import REACHES_OUTSIDE
from tests.gpu import bounds, compare_findings, jail, sanitize, shared_patterns, timing_attacks, verify
from tests.gpu.launch_solutions import chosen
from tests.simulator.corpus_kernels import corpus_files

CLEAN = """========= COMPUTE-SANITIZER
launched day05_fusion/rms_norm_linear: 9 of 30 cases
========= ERROR SUMMARY: 0 errors
"""


def test_the_record_of_errors_covers_every_solution_dtype_and_case() -> None:
    path = course_root() / "lessons" / "can_i_believe_this" / "errors_simulator.json"
    rows = {(row["exercise"], row["dtype"]): row for row in json.loads(path.read_text())["rows"]}
    again = "run `python -m tests.gpu.errors --record`"
    expected = set()
    for entry in Course().exercises:
        task = entry.load()
        for dtype in task.dtypes:
            expected.add((entry.name, dtype))
            row = rows.get((entry.name, dtype))
            assert row is not None, f"{entry.name} in {dtype} is not recorded: {again}"
            assert row["passed"] == row["cases"] == sum(run[1] == dtype for run in task.runs()), (
                f"{entry.name}: {again}"
            )
            if "tolerance" in row:
                own = {spec.tolerance for spec in task.outputs.values()} - {None}
                assert row["tolerance"] in {task.tolerance.get(dtype, DEFAULT[dtype])} | own, f"{entry.name}: {again}"
                assert row["norm_error"] <= row["tolerance"] and 0 <= row["share"] <= 1
    assert set(rows) == expected, again
    fused = [row for (name, dtype), row in rows.items() if name.startswith("day05") and dtype == "f16"]
    assert len(fused) >= 3 and all(0 < row["norm_error"] < 1e-2 for row in fused)


def test_every_bound_is_below_every_recorded_time() -> None:
    rows = recorded_bounds()
    again = "run `python -m tests.gpu.bounds --record`"
    counted = {row.name.split()[0] for row in rows}
    assert {entry.name for entry in Course().exercises if entry.load().efficient is not None} <= counted, again
    assert {row.name for row in rows if row.size == "middle"} and all(row.bound_us > 0 for row in rows)
    timed = [row for row in rows if row.time_us]
    assert len(timed) >= 30  # `grader bench` records the small sizes, too
    assert [row for row in timed if row.share >= 1] == []


def test_every_access_to_shared_memory_takes_the_wavefronts_that_ncu_counted() -> None:
    content = json.loads(shared_patterns.RECORD.read_text())
    again = f"run `{content['command']}` on a GPU"
    rows = content["rows"]
    assert len(rows) == 6 * len(shared_patterns.FAMILIES), again
    for row, group in zip(rows, shared_patterns.groups(content["count"]), strict=True):
        assert (row["bytes"], row["access"], row["family"]) == (
            group.bytes,
            shared_patterns.access_of(group),
            group.family,
        ), again
        assert shared_patterns.simulated(group) == row["ncu"], f"{row['bytes']} bytes, {row['access']}, {row['family']}"


def test_times_below_their_bounds_are_reported() -> None:
    bounds_of = [
        {"name": "a f32", "size": "middle", "bound_us": 3.0},
        {"name": "b f32", "size": "middle", "bound_us": 3.0},
    ]
    times = [
        {"name": "a f32", "size": "middle", "minimum_us": 2.5},
        {"name": "b f32", "size": "small", "minimum_us": 2.5},
    ]
    assert bounds.violations(bounds_of, times) == ["a f32, middle: 2.5 us, less than the bound of 3 us"]


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        (CLEAN, True),
        (
            CLEAN.replace("ERROR SUMMARY: 0 errors", "RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)"),
            True,
        ),
        (CLEAN.replace("0 errors", "3 errors"), False),
        (CLEAN.replace("9 of 30", "0 of 30"), False),
        (CLEAN + "FAILED day05_fusion/rms_norm_linear: unspecified launch failure\n", False),
        (CLEAN.splitlines()[1], False),
        ("", False),
    ],
)
def test_reports_of_compute_sanitizer_are_parsed(text: str, clean: bool) -> None:
    row = sanitize.read(text)
    assert row["clean"] is clean
    assert (row["cases"], row["of"]) == ((9, 30) if "9 of 30" in text else (0, 30) if "0 of 30" in text else (0, 0))


def test_a_later_record_replaces_only_its_own_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.get_device_name", lambda: "a GPU")
    path = tmp_path / "sanitizer.json"
    first = {"exercise": "day01_x/a", "tool": "memcheck", "seconds": 1.0, **sanitize.read(CLEAN)}
    sanitize.record([first, {**first, "tool": "racecheck"}], path)
    sanitize.record([{**first, "clean": False, "errors": ["========= long"]}], path)
    rows = json.loads(path.read_text())["rows"]
    assert [(row["tool"], row["clean"]) for row in rows] == [("memcheck", False), ("racecheck", True)]
    assert "errors" not in rows[0]


def test_a_step_that_takes_too_long_is_stopped_and_its_output_is_kept(tmp_path: Path) -> None:
    said = "import time; print('first', flush=True); time.sleep(60)"
    row = verify.run_step("slow", [sys.executable, "-c", said], 1.0, tmp_path)
    assert row["exit"] is None and "stopped at its limit" in str(row["ended"])
    assert (tmp_path / "slow.txt").read_text() == "first\n"
    row = verify.run_step("bad", [sys.executable, "-c", "raise SystemExit(3)"], 60.0, tmp_path)
    assert row["exit"] == 3 and row["ended"] == "failed, exit 3"


def test_the_steps_are_commands_of_this_course(tmp_path: Path) -> None:
    steps = verify.commands(["csr_attention"], tmp_path, record=True)
    assert list(steps) == ["build", "memory", "errors", "check", "bench", "sanitize"]
    assert "day09_sparse_attention/csr_attention" in steps["bench"][0] and "--record" not in steps["errors"][0]
    everything = verify.commands([], tmp_path, record=True)
    assert "--all" in everything["bench"][0] and "--record" in everything["errors"][0]
    assert all("--record" not in command for command, _ in verify.commands([], tmp_path, record=False).values())


def test_a_complete_name_selects_one_exercise_and_a_part_several() -> None:
    assert [entry.name for entry in chosen(["day04_linear/linear"])] == ["day04_linear/linear"]
    assert len(chosen(["day04_linear/lin"])) == 4 and len(chosen([])) == sum(
        entry.language == "cuda" for entry in Course().exercises
    )


def test_every_timing_attack_is_recorded_and_gained_nothing() -> None:
    content = json.loads(timing_attacks.RECORD.read_text())
    again = f"run `{content['command']}` on a GPU"
    rows = {row["name"]: row for row in content["rows"]}
    files = timing_attacks.attacks([])
    assert len(files) >= 10 and set(rows) == {"honest", "honest again", *(path.stem for path in files)}, again
    for path in files:
        text = path.read_text()
        assert rows[path.stem]["sha256"] == hashlib.sha256(text.encode()).hexdigest(), (
            f"{path.name} was changed: {again}"
        )
        assert text.startswith("// ") and text.splitlines()[0].endswith("."), f"{path.name} does not say what it tries"
    assert timing_attacks.undetected(content) == []
    honest = [rows[name] for name in ("honest", "honest again")]
    assert all(row["verified_us"] > 0 and not row["problem"] for row in honest)
    # The grader's clock can detect a gain of 5 %. It agrees with the CUDA events of the honest kernel up to the host's
    # part in each run, which depends on the machine.
    assert all(3 * row["off_us"] < 0.05 * row["verified_us"] for row in honest)
    assert all(abs(row["verified_us"] / row["events_us"] - 1) < 0.1 for row in honest)


def test_only_attacks_that_gain_time_are_reported() -> None:
    def row(**more: object) -> dict[str, object]:
        return {"name": "a", "tries": "", "sha256": "", **more}

    rows = [row(gained=0.04), row(gained=0.06), row(gained=0.5, problem="a timed result is wrong"), row(gained=None)]
    assert [found.gained for found in timing_attacks.undetected({"rows": rows})] == [0.06, None]


def test_the_record_of_the_jail_covers_its_attacks() -> None:
    if not jail.RECORD.exists():
        pytest.skip("not recorded yet: run `python -m tests.gpu.jail --record` on a machine with a GPU")
    content = json.loads(jail.RECORD.read_text())
    assert content["tiers"] and jail.show(content) == []
    for tier in content["tiers"]:
        attacks = {row["attack"] for row in content["attacks"] if row["tier"] == tier}
        assert attacks == {"honest", "wrong", *REACHES_OUTSIDE}, "run `python -m tests.gpu.jail --record`"
        assert content["cost"][tier]["start_seconds"] < content["cost"]["none"]["start_seconds"] + 0.5
        assert content["cost"][tier].get("check_seconds", 0) < content["cost"]["none"].get("check_seconds", 0) + 1.0
    pairs = content.get("together", [])  # parallel graders, if they were recorded
    assert [pair["alone"]["exercise"] for pair in pairs] in ([], list(jail.AT_ONCE))
    for pair in pairs:
        assert pair["together"]["stages"]["fast"] in ("passed", "skipped")
    assert not pairs or "failed" in pairs[-1]["together"]["cases"]


def test_disagreeing_parallel_graders_are_reported() -> None:
    alone = {"exercise": "a/b", "file": "b.cu", "stages": {"fast": "passed"}, "cases": {"passed": 3}, "fast": ""}
    alone |= {"isolation": "bwrap", "seconds": 1.0}
    content = {"tiers": ["bwrap"], "gpu": "", "linux": "", "date": "", "command": ""}
    assert jail.show({**content, "together": [{"alone": alone, "together": dict(alone)}]}) == []
    for other in ({"stages": {"fast": "skipped"}}, {"cases": {"passed": 2, "failed": 1}}, {"isolation": "none"}):
        assert len(jail.show({**content, "together": [{"alone": alone, "together": {**alone, **other}}]})) == 1


def test_an_attack_that_escapes_is_reported() -> None:
    row = {"tier": "bwrap", "attack": "fork", "isolation": "bwrap", "stage": "correct", "problem": "unwritten"}
    honest = {**row, "attack": "honest", "stage": "", "problem": ""}
    assert jail.escaped([row, honest]) == []
    bad = [{**row, "stage": ""}, {**row, "stage": "builds"}, {**row, "problem": "unwritten, and left something behind"}]
    bad += [{**row, "isolation": "none"}, {**honest, "stage": "correct"}]
    assert len(jail.escaped(bad)) == len(bad)


def test_an_attack_calls_the_honest_solution() -> None:
    for path in timing_attacks.attacks([]):
        text = timing_attacks.source_of(path)
        assert text.count('extern "C" void') == 1 and "static void honest(" in text, path.name


def test_the_profile_of_tensor_cores_has_all_figures_of_the_lesson() -> None:
    folder = course_root() / "lessons" / "day13_tensor_cores_hopper"
    spec = importlib.util.spec_from_file_location("profile_tensor_cores", folder / "profile_tensor_cores.py")
    assert spec is not None and spec.loader is not None
    command = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(command)
    content = json.loads((folder / "ncu_gpu.json").read_text())
    again = f"run `{content['command']}` on a GPU"
    assert all(content[name] for name in ("gpu", "driver", "torch", "ncu", "date")), again
    assert {size: tuple(kernels) for size, kernels in content["sizes"].items()} == {
        size: both for size, (both, _) in command.SIZES.items()
    }, again
    figures = ["kernel", *command.METRICS, *(f"waits for {what}" for what in command.STALLS)]
    notebook = json.loads((folder / "lesson.ipynb").read_text())
    shown = "".join(
        line
        for cell in notebook["cells"]
        if cell["cell_type"] == "code" and "ncu_gpu.json" in "".join(cell["source"])
        for output in cell["outputs"]
        for line in output["text"]
    )
    times = json.loads((folder / "tensor_cores_gpu.json").read_text())
    for size, kernels in content["sizes"].items():
        assert size in times["gemm"] or size in times["attention"], f"{size} is not timed by measure.py"
        for name, values in kernels.items():
            assert list(values) == figures, f"{size}, {name}: {again}"
            assert values["us"] > 0 and 0 < values["tensor cores, %"] <= 100
        for figure in figures[1:]:
            row = "".join(f"{values[figure]:24,.2f}" for values in kernels.values())
            assert f"{figure:40}{row}" in shown, f"{size}, {figure}: execute the lesson again"


def test_a_fault_of_a_correct_file_has_no_correct_twin(monkeypatch: pytest.MonkeyPatch) -> None:
    (item,) = (item for item in corpus_files() if item.fault == "list_past_its_memory")
    monkeypatch.setattr(compare_findings, "build", lambda item, clean, folder: folder)
    monkeypatch.setattr(compare_findings, "watch", lambda *_: {"errors": 1, "lines": [89], "says": []})
    row = compare_findings.compare(item)
    assert row["found_by"] == list(compare_findings.TOOLS)
    assert row["clean"] == {}
    assert row["twin_silent"]
