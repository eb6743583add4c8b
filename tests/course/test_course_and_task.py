"""Finding exercises by name, reading their descriptions, and generating their cases."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from grader.course import Course, Entry, course_root
from grader.course.catalog import file_to_grade
from grader.course.task import (
    ITEM_BYTES,
    Case,
    Exercise,
    Input,
    Output,
    between,
    computed,
    constant,
    integers,
    normal,
    one_of,
    shape_of,
)
from grader.setup.errors import GraderError
from tests.small_course import write_course

TASKS = '''
"""A day of a test."""
import torch
from grader.course.task import Case, Exercise, Input, Output

def doubled(x):
    return 2 * x

twice = Exercise(
    summary="Double it.",
    launchers="void twice(const float* x, float* out, int n, cudaStream_t stream)",
    inputs={"x": Input("n")},
    outputs={"out": Output("n")},
    reference=doubled,
    cases=[Case("one", n=1)],
)
'''


@pytest.fixture
def course(tmp_path: Path) -> Course:
    tasks = {"day01_first": TASKS, "day02_lesson_only": "", "day12_last": TASKS.replace("twice =", "thrice =")}
    listed = 'title = "Twice the input"\nkind = "debug"\npoints = 5\n'
    more = 'architecture = "sm_90a"\nstages = ["builds", "correct", "safe", "fast"]'
    write_course(tmp_path, tasks, {"day01_first/twice": listed, "day12_last/thrice": listed + more})
    return Course(tmp_path)


def test_listing_does_not_run_anything(course: Course) -> None:
    entry = course.exercises[0]
    assert (entry.name, entry.title, entry.kind, entry.points) == (
        "day01_first/twice",
        "Twice the input",
        "debug",
        5,
    )
    assert (entry.architecture, entry.stages) == ("sm_80", ("builds", "correct", "safe"))
    last = course.exercises[1]
    assert (last.architecture, last.stages) == ("sm_90a", ("builds", "correct", "safe", "fast"))
    assert course.manifest.title == "A small course"
    assert [day.folder for day in course.days] == ["day01_first", "day02_lesson_only", "day12_last"]
    assert [(day.number, day.title) for day in course.days] == [
        (1, "The first"),
        (2, "The lesson_only"),
        (12, "The last"),
    ]
    assert course.days[0].summary == "What it is about" and entry.number == 1


def test_hints_lie_beside_the_tasks(course: Course) -> None:
    entry = course.exercises[0]
    assert entry.hints == ()
    file = entry.tasks.with_name("hints.toml")
    file.write_text("twice = ['a', '''\n  b\n  c\n  ''']\nother = ['d']")
    assert entry.hints == ("a", "b c")
    file.write_text("twice = ['a', '''\n  b\n  c:\n\n      int x;\n        y();\n\n  d\n  ''']")
    assert entry.hints == ("a", "b c:\n\n    int x;\n      y();\n\nd"), "code must keep its line breaks"
    for text, says in (
        ("twice = ['a'", "hints.toml is not TOML: "),
        ("twice = 'a'", "hints.toml: twice is not a list"),
    ):
        file.write_text(text)
        with pytest.raises(GraderError, match=says):
            entry.hints  # noqa: B018


@pytest.mark.parametrize(
    "name",
    [
        "day01_first/twice",
        "twice",
        "1/twice",
        "01/twice",
        "day1/twice",
        "exercises/day01_first/twice.cu",
        "/somewhere/solutions/day01_first/twice.cu",
        "twice.cu",
    ],
)
def test_names_that_find_an_exercise(course: Course, name: str) -> None:
    assert course.find(name).name == "day01_first/twice"


def test_an_unknown_name_suggests_near_ones(course: Course) -> None:
    with pytest.raises(GraderError) as caught:
        course.find("twise")
    assert "day01_first/twice" in caught.value.hint


def test_the_nearest_name_without_its_day_is_suggested_first() -> None:
    with pytest.raises(GraderError) as caught:
        Course().find("residual-add")
    assert caught.value.hint.startswith("Did you mean day01_residual_add/residual_add")


@pytest.mark.parametrize("name", ["day01", "1", "day01_first"])
def test_a_day_is_not_an_exercise(course: Course, name: str) -> None:
    with pytest.raises(GraderError, match="is a day, not an exercise") as caught:
        course.find(name)
    assert caught.value.hint == "Name one of its exercises: twice."
    with pytest.raises(GraderError, match="there is no exercise 'day02'"):
        course.find("day02")


def test_a_broken_tasks_file_is_named(course: Course) -> None:
    entry = course.find("twice")
    for text, says in (
        ("x = (", r"tasks\.py:1: SyntaxError"),
        ("\n\nraise ValueError('no')\n", r"tasks\.py:3: ValueError: no"),
        ("other = 1", r"has no Exercise 'twice'"),
        (TASKS.replace("summary", "title='Twice', summary"), r"tasks\.py gives twice a title"),
        (TASKS.replace("summary", "hints=[], summary"), r"tasks\.py:\d+: TypeError: .*'hints'"),
    ):
        entry.tasks.write_text(text)
        os.utime(entry.tasks, ns=(time.time_ns(), entry.tasks.stat().st_mtime_ns + len(text)))
        with pytest.raises(GraderError, match=says):
            entry.load()


def test_loading_gives_the_whole_exercise(course: Course) -> None:
    exercise = course.find("thrice").load()
    assert exercise.name == "day12_last/thrice" and exercise.launcher("f32") == "twice"
    assert (exercise.title, exercise.kind, exercise.points) == ("Twice the input", "debug", 5)
    assert exercise.architecture == "sm_90a"


def test_the_course_is_found_from_within(course: Course, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GRADER_COURSE", raising=False)
    assert course_root(course.root / "exercises" / "day01_first") == course.root
    monkeypatch.setenv("GRADER_COURSE", str(course.root / "lessons"))
    with pytest.raises(GraderError):
        course_root()


def test_import_is_light() -> None:
    code = "import sys, grader.course, grader.judge, grader.course.task; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_a_summary_is_one_paragraph() -> None:
    assert some_exercise(summary="Twice\n    the input. \n  None of it is lost.").summary == (
        "Twice the input. None of it is lost."
    )


def some_exercise(**changes) -> Exercise:
    description = dict(
        summary="",
        launchers="""void scale_{dtype}(const {T}* x, const long long *ids, const float* __restrict__ lse,
                     {T}* out, int* count, int rows, long long columns, float factor, bool flag, cudaStream_t stream);""",  # noqa: E501
        dtypes=("f32", "f16"),
        inputs={
            "x": Input("rows columns", normal(scale=2.0, channel_offset=1.0)),
            "ids": Input("rows", integers(0, "columns"), dtype="i64"),
            "lse": Input("rows", computed(lambda x, factor: (x * factor).logsumexp(-1)), dtype="f32"),
        },
        outputs={"out": Output("rows columns"), "count": Output("", dtype="i32", inout=True, start=constant(3))},
        scalars={"factor": lambda d: d["columns"] ** -0.5},
        reference=lambda x, factor, count, rows: {"out": x * factor, "count": count + rows},
        cases=[
            Case("fixed", rows=3, columns=5, flag=True),
            Case("random", dtypes=["f16"], rows=between(1, 100), columns=one_of(2, 4), flag=one_of(True, False)),
        ],
        name="day00_x/scale",
    )
    return Exercise(**{**description, **changes})


def test_prototypes() -> None:
    exercise = some_exercise()
    assert exercise.launcher("f16") == "scale_f16"
    parameters = exercise.parameters("f16")
    assert [p.type for p in parameters[:5]] == ["const __half*", "const long long*", "const float*", "__half*", "int*"]
    assert [p.name for p in parameters] == [
        "x",
        "ids",
        "lse",
        "out",
        "count",
        "rows",
        "columns",
        "factor",
        "flag",
        "stream",
    ]
    assert parameters[-1].is_stream and parameters[0].is_pointer


def test_drawing_a_case() -> None:
    exercise = some_exercise()
    call = exercise.call(exercise.cases[0], "f16", seed=5)
    assert call.tensors["x"].dtype == torch.float16 and call.tensors["x"].shape == (3, 5)
    assert call.tensors["lse"].dtype == torch.float32
    assert int(call.tensors["count"]) == 3
    assert call.scalars["factor"] == float(torch.tensor(5**-0.5)) != 5**-0.5, "scalars are rounded to the dtype"
    wanted = (call.tensors["x"].double() * 5**-0.5).logsumexp(-1)
    assert torch.allclose(call.tensors["lse"].double(), wanted, atol=1e-6)
    expected = exercise.expected(call)
    assert expected["out"].dtype == torch.float64 and int(expected["count"]) == 6


def test_a_seed_reproduces_and_cases_differ() -> None:
    exercise = some_exercise()
    random = exercise.cases[1]
    one, two = (exercise.call(random, "f16", exercise.case_seed(7, random, "f16")) for _ in range(2))
    assert one.dims == two.dims and torch.equal(one.tensors["x"], two.tensors["x"])
    seeds = {exercise.case_seed(s, c, d) for s in (7, 8) for c in exercise.cases for d in ("f32", "f16")}
    assert len(seeds) == 8
    assert [(c.name, d) for c, d in exercise.runs()] == [("fixed", "f32"), ("fixed", "f16"), ("random", "f16")]


def test_least_bytes() -> None:
    exercise = some_exercise()
    call = exercise.call(exercise.cases[0], "f16", seed=5)
    assert exercise.least_bytes(call) == 15 * 2 + 3 * 8 + 3 * 4 + 4 + 15 * 2 + 4
    own = some_exercise(minimum_bytes=lambda d: d["rows"] * d["item"], flops=lambda d: 2 * d["columns"])
    assert own.least_bytes(own.call(own.cases[0], "f16", 1)) == 6
    assert own.operations(own.call(own.cases[0], "f16", 1)) == 10


def test_the_roofline_counts_cached_bytes_once() -> None:
    exercise = some_exercise(minimum_bytes=lambda d: 10_000)
    call = exercise.call(exercise.cases[0], "f16", seed=5)
    assert exercise.least_bytes(call) == 10_000
    assert exercise.roofline_bytes(call) == some_exercise().least_bytes(
        call
    )  # which is less than minimum_bytes, 10,000
    own = some_exercise(
        minimum_bytes=lambda d: 90, distinct_bytes=lambda x, rows, item: x.unique().numel() * item + rows
    )
    assert own.roofline_bytes(call) == call.tensors["x"].unique().numel() * 2 + call.dims["rows"]


@pytest.mark.parametrize(
    "name", ["csr_attention", "global_local_random", "block_sparse", "sliding_window", "embedding"]
)
def test_the_roofline_of_gathered_rows_counts_each_tensor_at_most_once(name: str) -> None:
    """Check that roofline bytes count each gathered row once, at the benchmark sizes but with small inputs."""
    task = Course().find(name).load()
    call = task.call(task.efficient or task.cases[0], task.dtypes[0], seed=3)
    once = sum(t.numel() * t.element_size() for t in call.tensors.values())
    once += sum(math.prod(shape) * ITEM_BYTES[call.output_dtypes[out]] for out, shape in call.output_shapes.items())
    assert 0 < task.roofline_bytes(call) <= once
    assert task.roofline_bytes(call) <= task.least_bytes(call)


def test_a_row_that_is_gathered_twice_counts_once() -> None:
    task = Course().find("embedding").load()
    case = next(case for case in task.cases if case.name == "all tokens have the same id")
    call = task.call(case, "f16", seed=1)
    assert task.roofline_bytes(call) == (1 + 20) * 64 * 2 + 20 * 8 < task.least_bytes(call)


def test_every_operator_is_timed_in_every_dtype_at_a_small_and_a_large_size() -> None:
    timed: dict[str, list[tuple[str, str]]] = {}
    for entry in Course().exercises:
        task = entry.load()
        if task.operator:
            assert task.torch_baseline is not None
            found = timed.setdefault(task.operator, [])
            found += [(dtype, size.name) for size in task.bench for dtype in size.dtypes or task.dtypes]
    names = ["add", "argmax", "embedding", "linear", "RMSNorm", "LayerNorm", "softmax", "RoPE", "SwiGLU"]
    assert sorted(timed) == sorted(names)
    for name, found in timed.items():
        expected = {(dtype, size) for dtype in ("bf16", "f16", "f32") for size in ("large", "small")}
        assert expected <= set(found) and len(found) == len(set(found)), name


def test_scales_of_outputs() -> None:
    outputs = {
        "out": Output("rows columns", scale=lambda x: x.abs().sum()),
        "count": Output("", dtype="i32", inout=True),
    }
    exercise = some_exercise(outputs=outputs)
    call = exercise.call(exercise.cases[0], "f16", seed=5)
    scale = exercise.scale_of("out", call)
    assert scale.shape == (3, 5) and float(scale[1, 2]) == float(call.tensors["x"].double().abs().sum())
    assert exercise.scale_of("count", call) == "row"


def test_shapes() -> None:
    assert shape_of("heads*2 (n + 1) d", {"heads": 3, "n": 4, "d": 8}) == (6, 5, 8)
    assert shape_of("", {}) == ()
    with pytest.raises(GraderError, match="no_such"):
        shape_of("no_such", {"n": 1})


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"dtypes": ("f33",)}, "unknown dtype 'f33'"),
        ({"cases": [Case("a", rows=1, columns=1)]}, "no value for the parameter 'flag'"),
        ({"cases": [Case("a", rows=1, columns=1, flag=True)] * 2}, "two cases are named 'a'"),
    ],
)
def test_a_bad_description_is_refused(changes: dict, says: str) -> None:
    with pytest.raises(GraderError, match=says):
        some_exercise(**changes)


def test_the_file_to_grade(course: Course, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = course.exercises[0]
    assert file_to_grade(entry, None) == entry.skeleton and file_to_grade(entry, str(entry.skeleton)) == entry.skeleton
    with pytest.raises(GraderError, match="is a folder, not a kernel file"):
        file_to_grade(entry, tmp_path)
    with pytest.raises(GraderError, match=r"there is no file .*none\.cu"):
        file_to_grade(entry, tmp_path / "none.cu")

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(GraderError, match="cannot be read: Permission denied"):
        file_to_grade(entry, None)


def test_entries_know_their_files(course: Course) -> None:
    entry = course.find("twice")
    assert isinstance(entry, Entry)
    assert entry.skeleton == course.root / "exercises/day01_first/twice.cu"
    assert entry.solution == course.root / "solutions/day01_first/twice.cu"
    assert entry.wrong_kernels == course.root / "tests/exercises/day01_first/twice.toml"
    assert entry.designs == []
