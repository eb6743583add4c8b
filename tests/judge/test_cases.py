"""The results of cases, given the answers and outputs of a fake child process."""

from __future__ import annotations

import importlib.util
import os
import threading
import time
from contextlib import ExitStack
from typing import Any

import pytest
import torch

from grader.classroom import worker
from grader.course.task import Call, Case, Exercise, Input, Output, normal
from grader.execution.runner.answers import Answer, Done, Ended, Ok, Refused, Writers
from grader.execution.runner.buffers import Buffers, as_bytes, prepare
from grader.execution.runner.client import Reply
from grader.frontend.toolchain.cuda_errors import LAUNCHER_THREW, describe_error
from grader.judge import cases
from grader.judge.cases import (
    CasePool,
    Run,
    add_writers,
    draw_ahead,
    flat_index,
    judge,
    needs_no_kernel,
    plan,
    run_case,
)
from grader.setup.errors import GraderError
from grader.verdict import FAILED, PASSED, SKIPPED, CaseResult, Finding
from tests.judge.test_stages import task


def two_outputs(**more: Any) -> Exercise:
    """Return the task out = 2 x, and y = y + 1 in place."""
    described: dict[str, Any] = {
        "launchers": "void twice(const float* x, float* out, float* y, int n, cudaStream_t stream)",
        "outputs": {"out": Output("n"), "y": Output("n", inout=True, start=normal())},
        "reference": lambda x, y: {"out": 2 * x, "y": y + 1},
    }
    return task(**{**described, **more})


def answer_of(call: Call) -> dict[str, torch.Tensor]:
    return {"out": 2 * call.tensors["x"], "y": call.tensors["y"] + 1}


class FakeChild:
    """A child process that writes the right or wrong outputs and returns the given answer."""

    libsim: Any = "libsim"
    alive = True

    def __init__(self, answer: Answer, wrong: bool = False, report: bytes = b"{}") -> None:
        self.answer, self.wrong, self.report = answer, wrong, report
        self.asked: list[str] = []
        self.writers: Answer = Writers((([0, 1, 2], [3, 4, 5]), None))
        self.stopped = self.received = 0
        self.buffers: Buffers | None = None

    def send(self, text: str, files: list[int]) -> None:
        self.asked.append(text)
        self.files = files
        size = os.fstat(files[1]).st_size
        for line in text.splitlines():
            words = line.split(" ")
            if words[0] == "out":
                values = torch.full((int(words[4]) // 4,), 3.0) if self.wrong else self.right
                os.pwrite(files[1], as_bytes(values), int(words[3]))
                assert int(words[3]) + int(words[4]) <= size
        os.pwrite(files[2], self.report, 0)

    def receive(self, timeout: float) -> Reply:
        self.timeout = timeout
        return Reply(self.answer, printed="hello")

    def request(self, text: str, timeout: float) -> Reply:
        self.asked.append(text)
        return Reply(self.writers)

    def stop(self) -> None:
        self.stopped += 1


def ran(child: FakeChild, exercise: Exercise | None = None) -> Run:
    """Run one case of the task out = 2 x with this fake child."""
    exercise = exercise or task(timeout=4.0)
    (run,) = plan(exercise, exercise.runs()[:1], seed=1)
    child.right = 2 * exercise.call(run.case, run.dtype, run.seed).tensors["x"]  # type: ignore[attr-defined]
    run_case(exercise, run, child)  # type: ignore[arg-type]
    return run


def judged(answer: Answer, outputs: dict[str, torch.Tensor] | None = None, outside: int | None = None) -> CaseResult:
    """Return the result for these output values, by default the right ones.

    Outputs not named keep their start values.
    """
    exercise = two_outputs()
    (run,) = plan(exercise, exercise.runs()[:1], seed=1)
    call = exercise.call(run.case, run.dtype, run.seed)
    with prepare(call) as buffers:
        for name, values in (answer_of(call) if outputs is None else outputs).items():
            os.pwrite(buffers.output_file, as_bytes(values.float()), buffers.outputs[name].start)
        if outside is not None:
            place = buffers.outputs["out"]
            os.pwrite(buffers.output_file, b"x" * 8, place.start + outside)
        judge(exercise, call, buffers, exercise.expected(call), Reply(answer), run.result)
    return run.result


def test_a_right_output_passes() -> None:
    result = judged(Done(0))
    assert (result.status, result.problem, result.reasons, result.outside) == (PASSED, "", [], {})
    assert [(output.name, output.passed, output.elements) for output in result.outputs] == [
        ("out", True, 100),
        ("y", True, 100),
    ]


@pytest.mark.parametrize(
    ("answer", "problem", "reasons"),
    [
        (Ended("crash", "it crashed"), "crash", ["it crashed"]),
        (Refused("no such launcher"), "call", ["no such launcher"]),
        (Ok(), "call", ["no reason given"]),
        (Writers(()), "call", ["no reason given"]),
        (Done(0, (("memory", "not enough"),)), "memory", ["not enough"]),
        (Done(9, (("memory", "not enough"),)), "memory", ["not enough"]),
        (Done(LAUNCHER_THREW, (("run", "x"),)), "exception", []),
        (Done(9, (("launch", "a"), ("run", "b"))), "launch", ["a", "b"]),
        (Done(9, (("run", "b"), ("setup", "c"), ("fetch", "d"))), "run", ["b", "c", "d"]),
        (Done(-2), "run", [describe_error(-2)]),
        (Done(1), "run", [describe_error(1)]),
        (Done(0, (("changed", "x"),)), "inputs", ["x"]),
    ],
)
def test_an_answer_can_only_make_it_worse(answer: Answer, problem: str, reasons: list[str]) -> None:
    """A correct output fails if the child's answer reports an error."""
    result = judged(answer)
    assert (result.status, result.problem, result.reasons) == (FAILED, problem, reasons)


def test_outputs_that_are_not_right() -> None:
    right = ran_right()
    for outputs, problem in (
        ({"y": right["y"]}, "unwritten"),
        ({**right, "out": right["out"] + 1}, "wrong"),
        ({"out": right["out"]}, "wrong"),  # y keeps its start value, so it does not count as unwritten
        ({**right, "out": torch.cat([right["out"][:50], torch.full((40,), 9.0)])}, "wrong"),
        ({**right, "y": right["y"] * torch.nan}, "wrong"),
    ):
        result = judged(Done(0), outputs)
        assert (result.status, result.problem) == (FAILED, problem)
    result = judged(Done(0), {**right, "out": right["out"][:60]})
    assert result.problem == "unwritten" and result.outputs[0].unwritten == result.outputs[0].wrong == 40
    assert judged(Done(0, (("changed", "x"),)), {"y": right["y"]}).problem == "unwritten"


def test_a_wrong_output_is_compared_with_misread_inputs() -> None:
    exercise = task(
        launchers="void twice(const float* x, const float* z, float* out, int n, cudaStream_t stream)",
        inputs={"x": Input("n", normal()), "z": Input("n", normal())},
        reference=lambda x, z: 2 * x + z,
    )
    (output,) = ran(FakeChild(Done(0)), exercise).result.outputs
    assert output.diagnosis is not None and (output.diagnosis.kind, output.diagnosis.name) == ("input_left_out", "z")


def ran_right() -> dict[str, torch.Tensor]:
    exercise = two_outputs()
    (run,) = plan(exercise, exercise.runs()[:1], seed=1)
    return answer_of(exercise.call(run.case, run.dtype, run.seed))


@pytest.mark.parametrize(("outside", "elements"), [(400, 0), (408, 2), (-8, -1), (-12, -2)])
def test_a_write_next_to_an_output_fails(outside: int, elements: int) -> None:
    result = judged(Done(0), outside=outside)
    assert (result.status, result.problem, result.outside) == (FAILED, "guard", {"out": elements})
    assert all(output.passed for output in result.outputs)


def test_a_case_from_its_inputs_to_its_result() -> None:
    child = FakeChild(Done(0), report=b'{"version": 1}')
    run = ran(child)
    assert (run.result.status, run.result.problem, run.result.printed) == (PASSED, "", "hello")
    assert run.report == '{"version": 1}' and run.result.dims == {"n": 100} and run.minimum_bytes == 800.0
    assert child.asked[0].startswith("call twice\nin x f32 0 400 ") and len(child.asked) == 1
    assert child.timeout == 4.0 and 0 < run.result.seconds < 100
    assert not run.needs_no_kernel and not child.stopped


def test_a_result_names_the_special_inputs_of_its_case() -> None:
    run = ran(
        FakeChild(Done(0)), task(cases=[Case("large", n=4, inputs={"x": normal(scale=50.0)}, offsets={"out": 1})])
    )
    assert (run.result.special_values, run.result.special_offsets) == (["x"], ["out"])


def test_only_a_complete_report_is_read() -> None:
    assert ran(FakeChild(Done(0, report_cut=True))).report == ""
    assert ran(FakeChild(Ended("crash", "x"))).report == ""
    assert ran(FakeChild(Done(0), report=b"\xff")).report == "\ufffd"


@pytest.mark.parametrize(
    ("answer", "libsim", "stopped"),
    [
        (Done(0), None, 0),
        (Done(700), None, 1),
        (Ended("timeout", "x"), None, 1),
        (Done(700), "libsim", 0),
        (Ended("timeout", "x"), "libsim", 0),
    ],
)
def test_a_process_with_a_device_error_is_stopped(answer: Answer, libsim: str | None, stopped: int) -> None:
    child = FakeChild(answer)
    child.libsim = libsim
    ran(child)
    assert child.stopped == stopped


def test_the_writers_of_the_worst_elements_are_requested() -> None:
    child = FakeChild(Done(0), wrong=True)
    run = ran(child)
    worst = run.result.outputs[0].worst
    assert child.asked[1] == f"writer out {' '.join(str(4 * each.index[0]) for each in worst)}"
    assert (worst[0].block, worst[0].thread) == ([0, 1, 2], [3, 4, 5]) and not worst[1].block
    for gone in ({"libsim": None}, {"alive": False}):
        child = FakeChild(Done(0), wrong=True)
        vars(child).update(gone)
        ran(child)
        assert len(child.asked) == 1
    child = FakeChild(Done(0), wrong=True)
    child.writers = Ended("crash", "x")
    assert not ran(child).result.outputs[0].worst[0].block


def test_unwritten_elements_have_no_writer() -> None:
    child = FakeChild(Done(0), wrong=True)
    run = ran(child)
    call = task().call(run.case, run.dtype, run.seed)
    first, *others = run.result.outputs[0].worst
    first.unwritten = True
    add_writers(run.result, call, child)  # type: ignore[arg-type]
    assert child.asked[-1] == f"writer out {' '.join(str(4 * each.index[0]) for each in others)}"
    assert others[0].block == [0, 1, 2]
    for each in others:
        each.unwritten = True
    count = len(child.asked)
    add_writers(run.result, call, child)  # type: ignore[arg-type]
    assert len(child.asked) == count


def test_a_failing_reference_is_an_error_of_the_grader() -> None:
    def refuses(x: torch.Tensor) -> torch.Tensor:
        raise GraderError("the course's fault")

    for reference, says in ((fails, "fails in case 'some' .f32.: ZeroDivisionError: mine"), (refuses, "^the course")):
        with pytest.raises(GraderError, match=says):
            ran(FakeChild(Done(0)), task(reference=reference))


def test_outputs_of_start_values_or_zeros_need_no_kernel() -> None:
    call = two_outputs().call(two_outputs().cases[0], "f32", 1)
    same, other = {"y": call.tensors["y"].double()}, {"y": call.tensors["y"].double() + 1}
    assert needs_no_kernel(call, same) and not needs_no_kernel(call, other)
    assert needs_no_kernel(call, {**same, "out": torch.zeros(100)})
    assert not needs_no_kernel(call, {**same, "out": torch.eye(10)})
    assert not needs_no_kernel(call, {**other, "out": torch.zeros(100)})


def drawn_ahead(exercise: Exercise, enough: Any = lambda: False) -> tuple[list[Run], ExitStack]:
    """Return the runs of all cases of an exercise, with inputs drawn ahead."""
    runs, held = plan(exercise, exercise.runs(), seed=1), ExitStack()
    draw_ahead(exercise, runs, enough, held)
    return runs, held


def test_a_case_runs_on_the_inputs_drawn_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    exercise, child = task(timeout=4.0), FakeChild(Done(0))
    later = ran(child, exercise)
    (ahead,), held = drawn_ahead(exercise)
    assert ahead.drawn is not None
    files = list(ahead.drawn[1].files)
    monkeypatch.setattr(exercise, "call", None)
    monkeypatch.setattr(exercise, "reference", None)
    with held:
        run_case(exercise, ahead, child)  # type: ignore[arg-type]
    ahead.result.seconds = later.result.seconds
    assert ahead.result == later.result and ahead.result.passed and ahead.drawn is None and child.files == files
    assert ahead.minimum_bytes == later.minimum_bytes > 0 and child.asked[0] == child.asked[1]


@pytest.mark.parametrize(("room", "drawn"), [(0, 0), (799, 1), (800, 1), (801, 2), (1600, 2), (1 << 20, 3)])
def test_inputs_drawn_ahead_fit_the_memory_limit(monkeypatch: pytest.MonkeyPatch, room: int, drawn: int) -> None:
    """A case's inputs and outputs take 800 bytes; ``room`` is the limit of memory for inputs drawn ahead."""
    monkeypatch.setattr(cases, "MOST_AHEAD", room)
    runs, held = drawn_ahead(task(cases=[Case("a", n=100), Case("b", n=100), Case("c", n=100)]))
    with held:
        assert [run.drawn is not None for run in runs] == [True] * drawn + [False] * (3 - drawn)


def fails(x: torch.Tensor) -> torch.Tensor:
    raise ZeroDivisionError("mine")


@pytest.mark.parametrize(
    ("reference", "built", "drawn"), [(None, [False, True], 1), (None, [True], 0), (fails, [False], 0)]
)
def test_drawing_ahead_ends_when_the_kernel_is_built_or_a_reference_fails(
    reference: Any, built: list[bool], drawn: int
) -> None:
    cases = {"cases": [Case("a", n=100), Case("b", n=100)]}
    exercise = task(**cases, reference=reference) if reference else task(**cases)
    before = len(os.listdir("/proc/self/fd"))
    runs, held = drawn_ahead(exercise, iter(built).__next__)
    with held:
        assert [run.drawn is not None for run in runs] == [number < drawn for number in range(2)]
    assert len(os.listdir("/proc/self/fd")) == before, "the memory of runs that never start is freed"


def test_flat_index() -> None:
    assert flat_index([1, 2, 3], [4, 5, 6]) == 45 and flat_index([], []) == 0 and flat_index([3], [7]) == 3


def test_plan() -> None:
    exercise = task(cases=[Case("a", n=3), Case("b", n=4)], dtypes=("f32", "f16"))
    runs = plan(exercise, exercise.runs(), seed=1)
    assert [(run.case.name, run.dtype, run.counted) for run in runs] == [
        (name, dtype, False) for name, dtype in ((case.name, dtype) for case, dtype in exercise.runs())
    ]
    assert all(run.result.status == SKIPPED and run.result.seed == run.seed for run in runs)
    bare = Run(Case("a", n=3), "f32", 1, runs[0].result)
    assert (bare.minimum_bytes, bare.operations, bare.counted, bare.needs_no_kernel) == (0.0, None, False, False)
    assert len({run.seed for run in runs}) == 4 and plan(exercise, exercise.runs(), 1, counted=True)[0].counted
    assert [run.seed for run in plan(exercise, exercise.runs(), seed=2)] != [run.seed for run in runs]


# -- a pool that runs many cases --


class Idle:
    """A child process that records when it is started and stopped."""

    every: list[Idle]

    def __init__(self) -> None:
        self.stopped = self.killed = 0
        self.every.append(self)

    def stop(self) -> None:
        self.stopped += 1

    def kill(self) -> None:
        self.killed += 1


def ten(monkeypatch: pytest.MonkeyPatch, result: Any, helpers: int = 1, **more: Any) -> list[Run]:
    """Run ten cases in a pool. Calls of the function ``result`` replace the runs of the cases."""
    Idle.every = []
    monkeypatch.setattr(cases, "run_case", lambda exercise, run, child: result(run))
    exercise = task(cases=[Case(f"case {n}", n=n) for n in range(1, 11)])
    runs = plan(exercise, exercise.runs(), seed=1)
    CasePool(exercise, Idle, helpers=helpers, **more).run(runs)  # type: ignore[arg-type]
    return runs


def passes(run: Run) -> None:
    run.result.status = PASSED


@pytest.mark.parametrize("helpers", [1, 3, 50])
def test_every_case_runs_once_in_order(monkeypatch: pytest.MonkeyPatch, helpers: int) -> None:
    seen, told, results = [], [], []

    def result(run: Run) -> None:
        seen.append(run.case.name)
        passes(run)

    runs = ten(monkeypatch, result, helpers, on_run=told.append, on_result=results.append)
    names = [run.case.name for run in runs]
    assert sorted(seen) == sorted(names) and (helpers > 1 or seen == names)
    assert len(told) == len(results) == 10 and all(run.result.status == PASSED for run in runs)
    assert 1 <= len(Idle.every) <= min(helpers, 10) and all(child.stopped == 1 for child in Idle.every)
    assert not any(child.killed for child in Idle.every)


def test_cases_run_in_several_children_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    together = threading.Barrier(3)

    def result(run: Run) -> None:
        if run.case.name in ("case 1", "case 2", "case 3"):
            together.wait(60)

    ten(monkeypatch, result, helpers=3)
    assert len(Idle.every) == 3


@pytest.mark.parametrize(("cores", "children"), [(None, 1), (1, 1), (2, 2), (64, 2)])
def test_no_more_children_than_cores(monkeypatch: pytest.MonkeyPatch, cores: int | None, children: int) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: cores)
    spec = importlib.util.find_spec("grader.judge.cases")
    assert spec is not None and spec.loader is not None
    anew = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(anew)
    assert children == anew.CHILDREN


@pytest.mark.parametrize(
    ("changes", "ran", "reason"),
    [
        ({"problem": "timeout"}, 2, "after_timeouts"),
        ({"problem": "crash"}, 4, "after_crashes"),
        ({"problem": "exit"}, 4, "after_crashes"),
        ({"problem": "output"}, 4, "after_crashes"),
        ({"problem": "oom"}, 4, "after_crashes"),
        ({"problem": "reply"}, 4, "after_crashes"),
        ({"problem": "wrong"}, 10, ""),
        ({"findings": [Finding(check="fault", kind="infinite_loop", line=1)], "seconds": 3.0}, 2, "after_timeouts"),
        ({"findings": [Finding(check="fault", kind="infinite_loop", line=1)], "seconds": 2.5}, 10, ""),
        ({"findings": [Finding(check="fault", kind="other", line=1)], "seconds": 3.0}, 10, ""),
    ],
)
def test_it_stops_after_several_crashes_or_timeouts(
    monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], ran: int, reason: str
) -> None:
    def result(run: Run) -> None:
        run.result.status = FAILED
        for name, value in changes.items():
            setattr(run.result, name, value)

    told: list[Run] = []
    runs = ten(monkeypatch, result, on_run=told.append)
    assert [run.result.status for run in runs] == [FAILED] * ran + [SKIPPED] * (10 - ran) and len(told) == ran
    assert all(run.result.problem == reason for run in runs[ran:])


def test_in_a_class_one_timeout_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    def result(run: Run) -> None:
        run.result.status, run.result.problem = FAILED, "timeout" if run.case.name == "case 3" else "wrong"

    monkeypatch.setattr(torch, "set_num_threads", lambda number: None)
    monkeypatch.setattr(cases, "CHILDREN", 1)
    monkeypatch.setattr(cases, "MOST_TIMEOUTS", 2)
    worker.save_time()
    runs = ten(monkeypatch, result)
    assert [run.result.problem for run in runs] == ["wrong"] * 2 + ["timeout"] + ["after_timeouts"] * 7
    assert [run.result.status for run in runs] == [FAILED] * 3 + [SKIPPED] * 7


def test_no_case_starts_once_the_caller_has_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = ten(monkeypatch, passes, enough=lambda run: run.case.name == "case 3")
    assert [run.result.status for run in runs] == [PASSED] * 3 + [SKIPPED] * 7


@pytest.mark.parametrize("helpers", [1, 2])
def test_an_internal_error_ends_all_runs(monkeypatch: pytest.MonkeyPatch, helpers: int) -> None:
    seen: list[str] = []
    main = threading.current_thread()

    def result(run: Run) -> None:
        seen.append(run.case.name)
        if helpers == 2 and threading.current_thread() is main:
            while not any(child.killed for child in Idle.every):  # wait until another run has failed
                time.sleep(0.001)
        else:
            raise GraderError("mine")

    with pytest.raises(GraderError, match="mine"):
        ten(monkeypatch, result, helpers)
    assert 1 <= len(seen) <= 2 and any(child.killed for child in Idle.every)
    assert all(child.stopped for child in Idle.every)


def test_running_cases_are_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    both, ended = threading.Barrier(2), []
    main = threading.current_thread()

    def result(run: Run) -> None:
        both.wait(60)
        if threading.current_thread() is main:
            raise GraderError("mine")
        while not any(child.killed for child in Idle.every):
            time.sleep(0.001)
        time.sleep(0.3)  # if the pool did not wait for this run, the check would end during this sleep
        ended.append(run)
        raise GraderError("what came of it")

    with pytest.raises(GraderError, match="mine"):
        ten(monkeypatch, result, 2)
    assert len(ended) == 1


def test_the_reference_is_computed_in_float64() -> None:
    exercise = task(inputs={"x": Input("n", normal())})
    assert exercise.expected(exercise.call(exercise.cases[0], "f32", 1))["out"].dtype == torch.float64
