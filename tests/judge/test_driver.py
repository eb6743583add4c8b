"""The verdict that the driver forms from given results of builds and runs, without a compiler or child processes."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from grader.course import Course, Entry
from grader.course.task import Bar, Case, Exercise
from grader.execution.runner.client import Child, LoadFailed
from grader.frontend.toolchain.cache import BuildCache
from grader.judge import check, driver
from grader.judge.build_job import Job
from grader.judge.cases import Run
from grader.judge.options import CheckEvent
from grader.judge.timing.bench import bench
from grader.judge.timing.kept import Kept
from grader.setup.errors import GraderError
from grader.verdict import FAILED, PASSED, SKIPPED, Finding, OutputResult, Stage, Verdict
from tests.judge.test_stages import report, task

FINDING = Finding(check="racecheck", kind="race", line=3)
Spoil = Callable[[Run], None]


class World:
    """A fake builder and fake child processes. It logs the calls that they receive."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, file: Path) -> None:
        self.file, self.builds, self.answer = file, PASSED, None
        self.spoil: Spoil = lambda run: None
        self.fails: BaseException | None = None
        self.ran: list[str] = []
        self.pools: list[Any] = []
        self.asked: list[bool] = []
        self.counted: list[int] = []
        self.threads: list[int] = []
        self.turns: list[Any] = []
        self.fast = PASSED
        self.counters = 0
        self.warm: list[Any] = []
        self.memory = 141 << 30
        world = self

        class Builder:
            def __init__(self, job: Job, own_process: bool) -> None:
                world.asked.append(job.ask_nvcc)
                held = SimpleNamespace(tier="landlock", note="in a jail", jail="the jail")
                nvcc: Future[Any] | None = None
                if world.answer is not None:
                    nvcc = Future()
                    nvcc.set_result(world.answer)
                self.building = SimpleNamespace(
                    runner=SimpleNamespace(result=lambda: file),
                    jail=SimpleNamespace(result=lambda: held),
                    nvcc=nvcc,
                    kernel=SimpleNamespace(done=lambda: True),
                    translated=lambda: None,
                )

            def __enter__(self) -> Builder:
                return self

            def __exit__(self, *_: object) -> None:
                pass

            def finish(self, exercise: Exercise) -> tuple[Stage, Any]:
                kernel = SimpleNamespace(library=file, libsim=file, compiler="g++ 12")
                built = SimpleNamespace(kernel=kernel, runner=file) if world.builds == PASSED else None
                return Stage("builds", world.builds, "compiles"), built

        class CasePool:
            helpers = 7

            def __init__(
                self, exercise: Exercise, new_child: Any, on_run: Any, on_result: Any = lambda run: None
            ) -> None:
                self.new_child, self.on_run, self.on_result = new_child, on_run, on_result
                world.pools.append(self)

            def run(self, runs: list[Run]) -> None:
                world.threads.append(torch.get_num_threads())
                if world.fails is not None:
                    raise world.fails
                for run in runs:
                    world.ran.append(run.case.name)
                    run.result.status = PASSED
                    run.result.dims, run.report, run.simulated = {"n": 100}, "{}", report(flops=0.0)
                    run.simulated.kernels = []
                    run.result.outputs = [OutputResult("out", run.dtype, [100], True, 100, 0.1)]
                    run.minimum_bytes, run.operations = 800.0, 0.0
                    world.spoil(run)
                    self.on_result(run)

        class Operations:
            def __init__(self, *_: object) -> None:
                world.counters += 1

            def count(self, task: Exercise, runs: list[Run], child: Any) -> None:
                world.counted.append(len(runs))

            def add_to(self, stage: Stage, run: Run, gpu: Any) -> None:
                stage.message = f"counted {run.case.name}"

        class WarmRunners:
            def __init__(self, children: Iterator[Child], turn: Any) -> None:
                self.children, self.turn, self.closed = list(children), turn, False
                world.warm.append(self)

            def __enter__(self) -> WarmRunners:
                return self

            def __exit__(self, *_: object) -> None:
                self.closed = True

        for name, made in (("Builder", Builder), ("CasePool", CasePool), ("Operations", Operations)):
            monkeypatch.setattr(driver, name, made)

        @contextlib.contextmanager
        def turn(gpu: str, alone: bool) -> Any:
            world.turns.append((gpu, alone))
            yield True

        monkeypatch.setattr("grader.execution.runner.gpu.uuid", lambda: "GPU-1")
        monkeypatch.setattr("grader.execution.runner.gpu.require_torch", lambda: None)
        monkeypatch.setattr("grader.execution.runner.gpu.start_context", lambda: None)
        monkeypatch.setattr("grader.execution.runner.gpu.total_memory", lambda: self.memory)
        monkeypatch.setattr("grader.execution.runner.warm.WarmRunners", WarmRunners)
        monkeypatch.setattr("grader.judge.timing.turns.turn", turn)
        monkeypatch.setattr(
            "grader.judge.fast.judge_fast", lambda task, file, jail, say, warm: Stage("fast", world.fast, jail)
        )

    def check(self, exercise: Exercise | Entry | None = None, **more: Any) -> Verdict:
        return check(exercise or counted_task(), self.file, **{"seed": 5, **more})


def counted_task(**more: Any) -> Exercise:
    return task(efficient=Case("counted", n=512), points=7, title="Twice", **more)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> World:
    file = tmp_path / "twice.cu"
    file.write_text("a kernel")
    return World(monkeypatch, file)


def said(verdict: Verdict) -> str:
    return " ".join(f"{stage.name}={stage.status}" for stage in verdict.stages)


def on(name: str, **changes: Any) -> Spoil:
    """Return a function that sets these values in the result of the case with this name."""

    def spoil(run: Run) -> None:
        if run.case.name == name:
            for what, value in changes.items():
                setattr(run.result, what, value)

    return spoil


def test_all_requested_stages_must_pass(world: World) -> None:
    verdict = world.check()
    assert said(verdict) == "builds=passed correct=passed safe=passed efficient=passed fast=skipped"
    assert verdict.passed and verdict.score == 7.0 == verdict.points and verdict.seed == 5
    assert (verdict.isolation, verdict.isolation_note) == ("landlock", "in a jail")
    assert verdict.source_sha256 == hashlib.sha256(b"a kernel").hexdigest()
    assert verdict.versions["compiler"] == "g++ 12" and verdict.versions["torch"] == torch.__version__
    assert set(verdict.versions) == {"grader", "python", "torch", "system", "compiler"}
    assert verdict.command == f"grader check day00_tests/twice --file {world.file} --device cpu --seed 5"
    assert 0 <= verdict.stages[1].seconds <= verdict.seconds < 600
    assert verdict.stages[4].summary == "needs a GPU: --device cuda" and verdict.stages[1].summary == "1 of 1 case"
    assert world.ran == ["some", "counted"] and [case.name for case in verdict.stages[1].cases] == ["some"]
    assert world.asked == [True] and not world.counted and not world.turns
    assert world.pools[0].helpers == 7


@pytest.mark.parametrize(
    ("spoil", "stages"),
    [
        (on("some", status=FAILED), "builds=passed correct=failed safe=skipped efficient=skipped fast=skipped"),
        (on("some", status=SKIPPED), "builds=passed correct=failed safe=skipped efficient=skipped fast=skipped"),
        (
            on("some", status=FAILED, findings=[FINDING]),
            "builds=passed correct=failed safe=failed efficient=skipped fast=skipped",
        ),
        (on("some", findings=[FINDING]), "builds=passed correct=passed safe=failed efficient=skipped fast=skipped"),
        (on("counted", findings=[FINDING]), "builds=passed correct=passed safe=failed efficient=skipped fast=skipped"),
        (on("counted", status=FAILED), "builds=passed correct=passed safe=passed efficient=failed fast=skipped"),
    ],
)
def test_stages_after_a_failed_stage_are_not_judged(world: World, spoil: Spoil, stages: str) -> None:
    world.spoil = spoil
    verdict = world.check()
    assert said(verdict) == stages and not verdict.passed and verdict.score == 0.0


def test_a_missed_bar(world: World) -> None:
    verdict = world.check(counted_task(bars=[Bar("launches", at_most=0)]))
    assert said(verdict).startswith("builds=passed correct=passed safe=passed efficient=failed") and not verdict.passed


def test_a_file_that_does_not_build_is_not_run(world: World) -> None:
    world.builds = FAILED
    verdict = world.check()
    assert said(verdict) == "builds=failed correct=skipped safe=skipped efficient=skipped fast=skipped"
    assert not verdict.passed and not world.pools and "compiler" not in verdict.versions


def test_a_file_that_nvcc_refuses_fails(world: World) -> None:
    gpu = SimpleNamespace(arch="sm_80")
    answer = {"compiler": "nvcc", "gpu": gpu, "summary": "8 registers"}
    answer |= {"resources": lambda *_: [], "refused_launch": lambda *_: None}
    world.answer = SimpleNamespace(error=None, **answer)
    verdict = world.check()
    assert verdict.passed and verdict.stages[0].summary == "compiles; 8 registers"
    seen: list[CheckEvent] = []
    world.answer = SimpleNamespace(error=GraderError("it says no"), **answer)
    verdict = world.check(on_progress=seen.append)
    assert said(verdict) == "builds=failed correct=skipped safe=skipped efficient=skipped fast=skipped"
    assert not verdict.passed and verdict.score == 0.0
    assert [(e.event, e.status) for e in seen if e.stage == "builds"][1:] == [
        ("finished", PASSED),
        ("finished", FAILED),
    ]


@pytest.mark.parametrize(
    ("wanted", "ran", "stages"),
    [
        (["builds"], [], "builds=passed correct=skipped safe=skipped efficient=skipped fast=skipped"),
        (["correct"], ["some"], "builds=passed correct=passed safe=skipped efficient=skipped fast=skipped"),
        (["safe"], ["some"], "builds=passed correct=passed safe=passed efficient=skipped fast=skipped"),
        (
            ["builds", "efficient"],
            ["some", "counted"],
            "builds=passed correct=passed safe=skipped efficient=passed fast=skipped",
        ),
    ],
)
def test_only_requested_stages_run(world: World, wanted: list[str], ran: list[str], stages: str) -> None:
    assert said(world.check(stages=wanted)) == stages and world.ran == ran
    world.spoil = on("some", findings=[FINDING])
    assert ("efficient=passed" in said(world.check(stages=wanted))) is False


@pytest.mark.parametrize("more", [{"efficient": None}, {"bars": []}])
def test_an_exercise_without_the_stage_efficient(world: World, more: dict[str, Any]) -> None:
    verdict = world.check(task(**{"efficient": Case("counted", n=512), **more}))
    assert verdict.passed and verdict.stages[3].status == SKIPPED and world.ran == ["some"]


def test_a_kernel_that_does_not_load_fails_all_cases(world: World) -> None:
    world.fails = LoadFailed("no such symbol", "")
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    verdict = world.check()
    assert torch.get_num_threads() == 2
    torch.set_num_threads(before)
    (case,) = verdict.stages[1].cases
    assert (case.status, case.problem, case.reasons) == (FAILED, "load", ["no such symbol"])
    assert said(verdict) == "builds=passed correct=failed safe=skipped efficient=skipped fast=skipped"
    assert world.threads == [1]
    world.fails = GraderError("the grader's own fault")
    with pytest.raises(GraderError, match="own fault"):
        world.check()


def test_operations_are_counted_if_a_bar_or_an_option_needs_them(world: World) -> None:
    verdict = world.check(details=True)
    assert world.counted == [1] and verdict.stages[3].message == "counted counted"
    world.counted.clear()
    task_ = counted_task(bars=[Bar("flops", at_most=9)], dtypes=("f32", "f16"))
    assert world.check(task_).stages[3].status == PASSED and world.counted == [2]
    world.check(counted_task(dtypes=("f32", "f16")), details=True)
    assert world.counted == [2, 1]


@pytest.mark.parametrize(("details", "asked"), [(False, False), (True, True)])
def test_on_a_gpu(world: World, details: bool, asked: bool) -> None:
    seen: list[CheckEvent] = []
    verdict = world.check(device="cuda", details=details, on_progress=seen.append)
    assert [(e.event, e.status) for e in seen if e.stage == "fast"] == [("started", ""), ("finished", PASSED)]
    assert said(verdict) == "builds=passed correct=passed safe=skipped efficient=skipped fast=passed"
    assert verdict.passed and world.ran == ["some"] and not world.counted and not world.counters
    assert world.turns == [("GPU-1", False)] and world.pools[0].helpers == 1 and world.asked == [asked]
    assert verdict.stages[4].summary == "the jail"
    child = world.pools[0].new_child()
    assert (child.jail, child.settings) == ("the jail", {})
    world.fast = FAILED
    assert not world.check(device="cuda").passed
    world.spoil = on("some", status=FAILED)
    assert said(world.check(device="cuda")).endswith("correct=failed safe=skipped efficient=skipped fast=skipped")
    world.spoil = on("nothing")
    assert world.check(device="cuda", stages=["correct"]).stages[4].summary == "not requested"


def test_goals_that_the_record_meets_limit_the_time_on_a_gpu(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    limits: list[Any] = []

    def judge_fast(task: Exercise, file: Path, jail: Any, say: Any, warm: Any) -> Stage:
        limits.extend(task.time_bars)
        return Stage("fast", PASSED)

    monkeypatch.setattr("grader.judge.fast.judge_fast", judge_fast)
    entry = Course().find("day02_reductions/softmax")
    assert world.check(entry, device="cuda").stages[4].status == PASSED
    assert {(bar.size, bar.gpu) for bar in limits} == {("large", "H200")} and not entry.load().time_bars
    limits.clear()
    assert world.check(device="cuda").stages[4].status == PASSED and limits == []


def test_runners_start_while_a_kernel_compiles_for_a_gpu(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """They start for a single check only, and fewer on a GPU with little memory. *correct* and *fast* take them."""
    given: list[Any] = []

    def judge_fast(task: Exercise, file: Path, jail: Any, say: Any, warm: Any) -> Stage:
        given.append((warm, warm.closed))
        return Stage("fast", PASSED)

    monkeypatch.setattr("grader.judge.fast.judge_fast", judge_fast)
    assert world.check(device="cuda", ahead=True).passed
    (warm,) = world.warm
    assert given == [(warm, False)] and warm.closed and world.pools[-1].new_child().warm is warm
    assert len(warm.children) == 4 and {child.jail for child in warm.children} == {"the jail"}
    with warm.turn():
        assert world.turns[-1] == ("GPU-1", False), "another process may be measuring times"
    world.check(device="cuda", ahead=True, stages=["correct"])
    world.memory = 8 << 30
    world.check(device="cuda", ahead=True)
    assert [len(warm.children) for warm in world.warm] == [4, 1, 1]
    world.check(device="cpu", ahead=True)
    monkeypatch.setattr(
        "grader.judge.fast.judge_fast", lambda *given: Stage("fast", PASSED if given[4] is None else FAILED)
    )
    assert world.check(device="cuda").passed and len(world.warm) == 3


@pytest.mark.parametrize(("times", "measured"), [("measure", 3), ("renew", 3), ("reuse", 1)])
def test_only_a_learners_check_reports_times_of_an_earlier_one(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: str, measured: int
) -> None:
    """Measure once for three checks of a learner, and three times with --again and for a class."""
    calls: list[int] = []

    def judge_fast(task: Exercise, file: Path, jail: Any, say: Callable[[str], None], warm: Any) -> Stage:
        calls.append(1)
        say("large (f32)")
        return Stage("fast", PASSED, "12 us")

    places: list[Kept] = []

    def place(entry: Entry, task: Exercise, file: Path) -> Kept:
        places.append(Kept("a" * 32, BuildCache(tmp_path / "cache")))
        return places[-1]

    monkeypatch.setattr("grader.judge.fast.judge_fast", judge_fast)
    contexts: list[int] = []
    monkeypatch.setattr("grader.judge.timing.kept.kept", place)
    monkeypatch.setattr("grader.execution.runner.gpu.start_context", lambda: contexts.append(len(calls)))
    entry = Course().find("day02_reductions/softmax")
    seen: list[CheckEvent] = []
    told = {"device": "cuda", "times": times, "ahead": True, "on_progress": seen.append}
    stages = [world.check(entry, **told).stages[4] for _ in range(3)]
    assert contexts == list(range(measured)), "a context is created only for a measurement"
    assert len(calls) == measured == [event.case for event in seen].count("large (f32)")
    assert ["ago; --again" in stage.summary for stage in stages] == [False, times == "reuse", times == "reuse"]
    assert len(places) == (0 if times == "measure" else 3)
    assert [replace(place, tier="landlock").find() is not None for place in places] == [True] * len(places)


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_findings_are_read_on_the_simulator(world: World, monkeypatch: pytest.MonkeyPatch, device: str) -> None:
    read: list[tuple[Any, ...]] = []
    monkeypatch.setattr(driver, "attach_findings", lambda *arguments: read.append(arguments))
    world.check(device=device)
    world.pools[0].on_run("a run")
    assert [(run, file) for run, _, file in read] == ([("a run", world.file)] if device == "cpu" else [])


@pytest.mark.parametrize(("device", "found", "given"), [("cpu", "it", ["it"]), ("cpu", None, []), ("cuda", "it", [])])
def test_a_recording(world: World, monkeypatch: pytest.MonkeyPatch, device: str, found: Any, given: list[str]) -> None:
    monkeypatch.setattr("grader.judge.recorded.record", lambda *_: found)
    kept: list[Any] = []
    world.check(device=device, on_recording=kept.append)
    assert kept == given


def test_the_case_of_efficient_may_have_dtypes_of_its_own(world: World) -> None:
    own = task(efficient=Case("counted", n=512, dtypes=("f16",)), dtypes=("f32", "f16"))
    assert world.check(own).passed and sorted(world.ran) == ["counted", "some", "some"]


def test_children_on_the_simulator_are_checked_and_watched(world: World) -> None:
    world.check()
    child = world.pools[0].new_child()
    settings = {"checks": "1", "watchdog_seconds": "3", "same_value_races": "0"}
    assert (child.jail, dict(child.settings)) == ("the jail", settings)
    assert (child.kernel, child.libsim) == (world.file, world.file)
    child = world.pools[0].new_child(Path("counting.so"), Path("counter.so"))
    assert (child.kernel, child.libsim) == (Path("counting.so"), Path("counter.so"))


def test_progress(world: World) -> None:
    seen: list[CheckEvent] = []
    world.check(counted_task(cases=[Case("a", n=3), Case("b", n=4)]), on_progress=seen.append)
    assert [(e.stage, e.event, e.done, e.total, e.case, e.status) for e in seen] == [
        ("builds", "started", 0, 0, "", ""),
        ("builds", "finished", 0, 0, "", PASSED),
        ("correct", "started", 0, 2, "", ""),
        ("correct", "case", 1, 2, "a", PASSED),
        ("correct", "case", 2, 2, "b", PASSED),
        ("correct", "finished", 0, 0, "", PASSED),
        ("safe", "finished", 0, 0, "", PASSED),
        ("efficient", "finished", 0, 0, "", PASSED),
    ]


def test_requests_that_cannot_be_checked(world: World, tmp_path: Path) -> None:
    for more, says in (
        ({"device": "tpu"}, "unknown device 'tpu'"),
        ({"stages": ["quick"]}, "unknown stage 'quick'"),
        ({"gpu": "none such"}, "none such"),
    ):
        with pytest.raises(GraderError, match=says):
            world.check(**more)
    for file, says in ((None, "no file was given"), (tmp_path, "is a folder"), (tmp_path / "x.cu", "there is no file")):
        with pytest.raises(GraderError, match=says):
            check(task(), file)
    assert world.check(seed=None).seed != world.check(seed=None).seed


def test_a_missing_skeleton_can_be_written_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Entry, "skeleton", property(lambda entry: tmp_path / "gone.cu"))
    for grade in (check, bench):
        with pytest.raises(GraderError, match="there is no file") as caught:
            grade("day02_reductions/softmax", None)
        assert "`grader reset day02_reductions/softmax` writes" in caught.value.hint
