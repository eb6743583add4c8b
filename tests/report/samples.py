"""Sample verdicts for the tests of reports, one for each kind of failure."""

from __future__ import annotations

from grader.verdict import (
    BarResult,
    CaseResult,
    Diagnosis,
    Diagnostic,
    Finding,
    KernelResources,
    Memory,
    OutputResult,
    Side,
    SourceLine,
    Stage,
    Timing,
    Verdict,
    WorstElement,
)

NAME = "day06_flash_attention/flash_attention"
FILE = f"exercises/{NAME}.cu"
RESOURCES = [
    KernelResources(
        "flash_attention_kernel<64>",
        "sm_90",
        40,
        0,
        16640,
        380,
        0.75,
        "shared memory",
        128,
        "H200",
        dynamic_shared_bytes=0,
    )
]


def verdict(*stages: Stage, passed: bool = False, **changes: object) -> Verdict:
    """Return a verdict with the given stages; missing ones were not run."""
    known = {stage.name: stage for stage in stages}
    every = [
        known.get(name, Stage(name, "skipped", "not run: an earlier stage failed"))
        for name in ("builds", "correct", "safe", "efficient")
    ]
    every.append(known.get("fast", Stage("fast", "skipped", "needs a GPU: --device cuda")))
    values: dict[str, object] = {
        "exercise": NAME,
        "title": "Flash attention, forward",
        "file": FILE,
        "device": "cpu",
        "seed": 4021853,
        "points": 15,
        "passed": passed,
        "score": 15.0 if passed else 0.0,
        "stages": every,
        "seconds": 1.7,
        "started": "2026-01-02T03:04:05+00:00",
        "isolation_note": "The kernel ran in a process of its own, with your rights.",
    }
    values.update(changes)
    return Verdict(**values)  # type: ignore[arg-type]


def builds() -> Stage:
    """Return a stage that passed."""
    return Stage("builds", "passed", "1 launcher; 40 registers, occupancy 75 % on an H200", 0.6, resources=RESOURCES)


def passing_case(name: str) -> CaseResult:
    """Return a case that passed."""
    return CaseResult(name, "f32", "passed", {"batch": 1, "heads": 2, "query_len": 64}, seed=7)


def wrong_case(name: str = "two key blocks") -> CaseResult:
    """Return a case with a wrong output."""
    worst = [
        WorstElement([0, 1, 63, 12 + i], 0.7312345 - 0.1 * i, -12.25 + i, 12.98 - i, False, [0, 1, 0], [63 - i, 0, 0])
        for i in range(4)
    ]
    worst.append(WorstElement([0, 1, 64, 0], 1.0, float("nan"), float("nan"), True))
    output = OutputResult(
        "out",
        "f32",
        [1, 2, 65, 64],
        False,
        elements=8320,
        wrong=4096,
        unwritten=64,
        max_error=12.98,
        max_ratio=41234.0,
        norm_error=0.4,
        tolerance=1e-5,
        norm_tolerance=1e-5,
        diagnosis=Diagnosis("rows_scaled", {"rows": 65, "of": 65, "low": 0.25, "high": 3.5}),
        worst=worst,
    )
    dims = {"batch": 1, "heads": 2, "query_len": 65, "key_len": 129, "head_dim": 64, "causal": False}
    return CaseResult(name, "f32", "failed", dims, "wrong", seconds=0.01, seed=7, outputs=[output])


def wrong() -> Verdict:
    """Return a verdict with some wrong cases."""
    cases = [
        passing_case("one query"),
        passing_case("one key block"),
        wrong_case(),
        wrong_case("large scores do not overflow"),
        CaseResult(
            "random sizes", "f32", "failed", {"batch": 3}, "timeout", ["it took longer than 20 s and was ended"]
        ),
    ]
    return verdict(builds(), Stage("correct", "failed", "3 of 5 cases fail", 0.4, cases=cases))


def does_not_build() -> Verdict:
    """Return a verdict with a syntax error."""
    diagnostics = [
        Diagnostic("error", "expected ';' before 'float'", FILE, 31, 36, "    const int row = blockIdx.x * 32"),
        Diagnostic("error", "'row' was not declared in this scope", FILE, 35, 6, "\tif (row < query_len) {"),
    ]
    return verdict(Stage("builds", "failed", "2 errors", 0.3, diagnostics=diagnostics))


def wrong_prototype() -> Verdict:
    """Return a verdict of a launcher whose parameters differ from the task's."""
    text = (
        "The launcher flash_attention has other parameters than the exercise asks for.\n"
        "expected:\n  void flash_attention(const float* q, const float* k, float* out, cudaStream_t stream)\n"
        "found:\n  void flash_attention(float* q, cudaStream_t stream)"
    )
    return verdict(Stage("builds", "failed", "wrong launcher", 0.3, message=text))


def out_of_bounds() -> Finding:
    """Return a verdict with a read past the end of a tensor."""
    memory = Memory(
        kind="tensor",
        space="global",
        name="k",
        dtype="float32",
        shape=[2, 4, 65, 64],
        bytes=133120,
        element_bytes=4,
        offset=133120,
    )
    return Finding(
        check="memcheck",
        kind="out_of_bounds",
        access="read",
        bytes=4,
        memory=memory,
        case="one query",
        dtype="f32",
        file=FILE,
        line=31,
        column=22,
        source_line="        k_tile[row][d] = k[offset + d];",
        block=[3, 0, 0],
        thread=[17, 0, 0],
        count=512,
    )


def race() -> Finding:
    """Return a race: a thread writes what another thread of the block reads, without a barrier between them."""
    memory = Memory(kind="__shared__", space="shared", name="tile", bytes=4224, offset=132)
    write = Side(
        access="write",
        bytes=4,
        memory=memory,
        file=FILE,
        line=40,
        column=5,
        source_line="    tile[threadIdx.y][threadIdx.x] = x[i];",
        block=[0, 0, 0],
        thread=[0, 0, 0],
    )
    return Finding(
        check="racecheck",
        kind="within_block",
        access="read",
        bytes=4,
        memory=memory,
        case="one query",
        dtype="f32",
        file=FILE,
        line=44,
        column=13,
        source_line="    sum += tile[threadIdx.x][0];",
        block=[0, 0, 0],
        thread=[33, 0, 0],
        count=3,
        other=write,
    )


def unsafe() -> Verdict:
    """Return a verdict with correct outputs and two findings."""
    cases = [passing_case("one query"), passing_case("two key blocks")]
    return verdict(
        builds(),
        Stage("correct", "passed", "5 of 5 cases", 0.4, cases=cases),
        Stage("safe", "failed", "2 findings", 0.2, findings=[out_of_bounds(), race()]),
    )


def lines(file: str = FILE) -> list[SourceLine]:
    """Return the counters of three source lines."""
    return [
        SourceLine(
            file,
            5,
            "    out[row * n + i] = x[i * n + row];",
            {"requests": 1024, "sectors": 32768, "ideal_sectors": 4096},
        ),
        SourceLine(
            file,
            7,
            "    sum += tile[threadIdx.x][k];",
            {"shared_wavefronts": 65536, "ideal_shared_wavefronts": 2048, "requests": 2048},
        ),
        SourceLine(file, 9, "    y[i] = sum;", {"requests": 1024, "sectors": 4096, "ideal_sectors": 4096}),
    ]


def wasteful(file: str = FILE) -> Verdict:
    """Return a verdict of a kernel that is correct and safe, but moves too many bytes."""
    bars = [
        BarResult(
            "global_bytes / minimum",
            3.94,
            False,
            at_most=1.2,
            values={"global_bytes": 16515072, "minimum": 4191000},
            look="flash_attention.cu:5: neighboring threads read addresses that are a row apart",
        ),
        BarResult("launches", 1, True, at_most=1),
    ]
    cases = [passing_case("one query"), passing_case("two key blocks")]
    return verdict(
        builds(),
        Stage("correct", "passed", "5 of 5 cases", 0.4, cases=cases),
        Stage("safe", "passed", "no finding", 0.2),
        Stage("efficient", "failed", "1 of 2 bars missed", 0.3, bars=bars, lines=lines(file)),
        file=file,
    )


def right() -> Verdict:
    """Return a verdict in which every stage passed on a GPU."""
    cases = [passing_case("one query"), passing_case("two key blocks")]
    timing = Timing(
        "large",
        "f32",
        "H200",
        median_us=512.25,
        p50_us=512.25,
        bytes=1e9,
        percent_of_roofline=71.0,
        percent_of_copy=96.0,
        torch_ratio=1.07,
    )
    return verdict(
        builds(),
        Stage("correct", "passed", "5 of 5 cases", 0.4, cases=cases),
        Stage("safe", "passed", "no finding", 0.2),
        Stage("efficient", "passed", "2 of 2 bars met", 0.3, bars=[BarResult("launches", 1, True, at_most=1)]),
        Stage("fast", "passed", "1.07x torch", 2.0, timings=[timing]),
        passed=True,
    )


ALL = {
    "wrong": wrong,
    "does not build": does_not_build,
    "wrong prototype": wrong_prototype,
    "unsafe": unsafe,
    "wasteful": wasteful,
    "right": right,
}
