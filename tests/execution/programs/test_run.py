"""Complete programs: their findings are reported, no matter how the program ends."""

from __future__ import annotations

import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from grader.cli.app import run
from grader.execution.programs.execute import Outcome, Sample, execute
from grader.execution.programs.results import ending
from grader.execution.runner import tiers
from grader.verdict import Verdict
from tests.execution.programs.running import KERNELS, built, findings_of, line_of

ENDINGS = KERNELS / "endings.cu"
PROGRAM = Path(__file__).parents[2] / "simulator" / "kernels" / "program.cu"


Ran = Callable[..., tuple[int, str, str]]


@pytest.fixture
def ran(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Ran:
    """Return a function that runs a program's text: its exit status, its output, and stderr on one line."""

    def call(code: str, *options: str) -> tuple[int, str, str]:
        file = tmp_path / "one.cu"
        file.write_text(code)
        status = run(["run", *options, str(file)])
        out, err = capfd.readouterr()
        return status, out, " ".join(err.split())

    return call


@pytest.fixture(scope="module")
def endings() -> Path:
    return built(ENDINGS)


@pytest.mark.parametrize(
    ("how", "status", "line"),
    [
        ("", 0, ""),
        ("exit", 3, ""),
        ("abort", 128 + signal.SIGABRT, "abort();"),
        ("assert", 128 + signal.SIGABRT, "assert(argc == 1)"),
        ("crash", 128 + signal.SIGSEGV, "reinterpret_cast"),
        ("interrupt", 128 + signal.SIGINT, "raise(SIGINT)"),
    ],
)
def test_findings_are_kept_whatever_ends_a_program(endings: Path, how: str, status: int, line: str) -> None:
    outcome = execute(endings, [how] if how else [])
    assert outcome.status == status
    assert outcome.report is not None
    [finding] = outcome.report.findings
    assert finding.kind == "out_of_bounds" and finding.line == line_of("x[threadIdx.x] = 1", ENDINGS)
    assert outcome.place.line == (line_of(line, ENDINGS) if line else 0)
    assert outcome.exit_code == (status or 1)


CORRUPTS_THE_HEAP = """#include <cstdlib>
int main() {
    const int n = 1 << 12;
    float *x, *host = static_cast<float*>(malloc(n));
    cudaMalloc(&x, n * sizeof(float));
    cudaMemset(x, 0, n * sizeof(float));
    cudaMemcpy(host, x, n * sizeof(float), cudaMemcpyDeviceToHost);
    for (int i = 0; i < 64; ++i) host = static_cast<float*>(malloc(n * i));
    return host == nullptr;
}
"""


def test_a_program_that_corrupts_the_heap_ends_although_the_report_needs_memory(ran: Ran) -> None:
    """Glibc aborts while it holds the lock of the heap, so writing the report would wait for it for ever."""
    status, _, err = ran(CORRUPTS_THE_HEAP)
    assert status == 128 + signal.SIGABRT
    assert "It left no report" in err and "past the end of host memory" in err


def stopped_at(place: str, program: Path, arguments: Sequence[str] = ()) -> Outcome:
    """Return the outcome of an endless program. On a busy machine, it gets more time to reach its loop."""
    for timeout in (0.5, 5, 50):
        outcome = execute(program, arguments, timeout=timeout)
        assert outcome.status == 128 + signal.SIGTERM and outcome.timed_out == timeout
        if ending(outcome).startswith(f"The program was stopped after {timeout} s, while it was at {place}"):
            return outcome
    raise AssertionError(ending(outcome))


def test_a_program_that_takes_too_long_is_stopped_at_a_line(endings: Path) -> None:
    outcome = stopped_at(f"endings.cu:{line_of('x[0] += i', ENDINGS)}", endings, ["hang"])
    assert outcome.kernel == "forever" and outcome.place.line == line_of("x[0] += i", ENDINGS)


def test_a_program_that_hangs_in_host_code_is_stopped_at_a_line(tmp_path: Path) -> None:
    file = tmp_path / "host.cu"
    file.write_text("volatile int x;\nint main() {\n    for (;;)\n        x = x + 1;\n}\n")
    stopped_at("host.cu:", built(file))


def test_output_keeps_its_order_and_a_clean_program_ends_with_0(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["run", str(PROGRAM)]) == 0
    out, err = capfd.readouterr()
    assert out == "host 1\ndevice 7\nhost 2: sum 4950\ndevice 8\n"
    assert "There are no findings in 3 launches." in " ".join(err.split())


def test_several_files_headers_macros_and_arguments(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    files = [str(KERNELS / "parts.cu"), str(KERNELS / "buffer.cpp")]
    options = ["-I", str(KERNELS / "include"), "-D", "THREADS=64", "-v", "--json", str(tmp_path / "out.json")]
    assert run(["run", *files, *options, "--html", str(tmp_path / "out.html"), "--", "-x", "last word"]) == 0
    out, err = capfd.readouterr()
    assert out == "6 3 last word\n"
    assert "KERNEL(triple_kernel, 3)" in err  # the source listing with counters
    assert "triple_kernel         1  1, 1, 1  64, 1, 1  256 B" in err
    verdict = Verdict.load(tmp_path / "out.json")
    assert verdict.passed and verdict.kind == "program"
    assert "parts" in (tmp_path / "out.html").read_text()


def test_findings_make_the_exit_code_1_and_stand_on_stderr(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["run", str(ENDINGS)]) == 1
    out, err = capfd.readouterr()
    assert out == ""
    line = line_of("x[threadIdx.x] = 1", ENDINGS)
    assert f"endings.cu:{line}, block (0, 0, 0) thread (8, 0, 0)" in " ".join(err.split())


def test_without_checks_nothing_is_found(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["run", "--no-checks", str(PROGRAM)]) == 0
    assert "device 8" in capfd.readouterr().out


def test_writes_of_the_same_value_are_findings_on_request(ran: Ran) -> None:
    code = """__device__ int any;
__global__ void set() { any = 1; }
int main() { set<<<1, 64>>>(); cudaDeviceSynchronize(); }
"""
    status, _, said = ran(code)
    assert status == 0 and "race" not in said
    status, _, said = ran(code, "--same-value-races")
    assert status == 1 and "4-byte write" in said


def test_blocks_run_in_reverse_order_on_request(ran: Ran) -> None:
    code = """#include <cstdio>
__device__ int flag, data;
__global__ void pass() {
    printf("%d ", blockIdx.x);
    if (blockIdx.x == 0) {
        data = 1;
        __threadfence();
        atomicExch(&flag, 1);
    } else {
        atomicAdd(&flag, 0);
        __threadfence();
        printf("%d ", data);
    }
}
int main() { pass<<<2, 1>>>(); cudaDeviceSynchronize(); }
"""
    assert ran(code, "--workers", "2")[:2] == (0, "0 1 1 ")
    status, out, err = ran(code, "--workers", "2", "--reverse")
    assert status == 1 and out == "1 0 0 " and "race" in err
    status, _, said = ran(code, "--device", "cuda", "--reverse")
    assert status == 2 and "--reverse is for the simulated GPU" in said


def test_blocks_print_in_their_order_on_several_cores(ran: Ran) -> None:
    code = """#include <cstdio>
__global__ void prints() { printf("%d ", blockIdx.x); }
int main() { prints<<<50, 1>>>(); cudaDeviceSynchronize(); }
"""
    status, out, err = ran(code, "--no-checks", "--workers", "2", "-v")
    assert status == 0 and [int(number) for number in out.split()] == list(range(50))
    assert "prints ran on one worker: its threads print" in err


LOOKS_AROUND = """#include <cstdio>
#include <cstdlib>
#include <sys/socket.h>
__global__ void past_the_end(int* x) { x[threadIdx.x] = 1; }
int main(int argc, char** argv) {
    int* x;
    cudaMalloc(&x, 4);
    past_the_end<<<1, 2>>>(x);
    cudaDeviceSynchronize();
    if (argc > 1) abort();
    return 10 * (fopen("/etc/passwd", "r") != nullptr) + 20 * (socket(AF_INET, SOCK_STREAM, 0) >= 0) +
           40 * (fopen("/tmp/written_in_the_jail", "w") != nullptr);
}
"""


@pytest.fixture
def forbidden_bubblewrap(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Put a bubblewrap first in PATH that fails as one without user namespaces does."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)  # root's jails give up root's rights first
    bwrap = folder / "bwrap"
    bwrap.write_text('#!/bin/sh\necho "bwrap: setting up uid map: Permission denied" >&2\nexit 1\n')
    bwrap.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=":")
    yield
    shutil.rmtree(folder)


@pytest.mark.parametrize("tier", ["bwrap", "landlock"])
def test_in_a_jail_a_program_sees_no_files_and_no_network(
    tier: str, capfd: pytest.CaptureFixture[str], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if problem := tiers.why_not(tier):
        pytest.skip(f"{tier} does not work here: {problem}")
    file = tmp_path / "look.cu"
    file.write_text(LOOKS_AROUND)
    if tier == "landlock":
        request.getfixturevalue("forbidden_bubblewrap")
    status = run(["run", "--jail", str(file)])
    said = " ".join(capfd.readouterr().err.split())
    assert status == (1 if tier == "landlock" else 20), said  # a namespace has sockets, but no network
    assert "past the end of memory from cudaMalloc (4 bytes) at look.cu:4" in said
    reason = "note: --jail uses Landlock, because bubblewrap does not work here: "
    assert said.startswith(reason) == (tier == "landlock")
    assert ("bwrap: setting up uid map: Permission denied" in said) == (tier == "landlock") and "g++" not in said
    assert run(["run", "--jail", str(file), "--", "abort"]) == 128 + signal.SIGABRT
    assert run(["run", str(file)]) == 70


def test_a_machine_without_a_jail_is_named(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiers, "why_not", lambda tier, arch=None: f"no {tier}")
    assert run(["run", "--jail", str(PROGRAM)]) == 2
    said = " ".join(capfd.readouterr().err.split())
    assert said.startswith("error: --jail needs bubblewrap or Landlock, and neither works here. Bubblewrap: no bwrap.")
    assert "Landlock: no landlock" in said


def test_bfind_and_bit_cast_give_the_bits_of_a_gpu(ran: Ran) -> None:
    code = """#include <bit>
#include <cstdio>
__global__ void k() {
    unsigned a, b, c, d, e;
    asm("bfind.u32 %0, %1;" : "=r"(a) : "r"(0x100));
    asm("bfind.s32 %0, %1;" : "=r"(b) : "r"(-5));
    asm("bfind.shiftamt.u32 %0, %1;" : "=r"(c) : "r"(0x100));
    asm("bfind.u64 %0, %1;" : "=r"(d) : "l"(1ull << 40));
    asm("bfind.u32 %0, %1;" : "=r"(e) : "r"(0));
    printf("%u %u %u %u %x %x", a, b, c, d, e, std::bit_cast<unsigned>(1.0f));
}
int main() {
    k<<<1, 1>>>();
    cudaDeviceSynchronize();
}
"""
    assert ran(code, "--std", "c++20")[:2] == (0, "8 2 23 40 ffffffff 3f800000")


def test_device_variables_of_one_name_in_two_files(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    files = [tmp_path / "first.cu", tmp_path / "second.cu"]
    files[0].write_text(
        """#include <cstdio>
__device__ int x; __constant__ int table[2] = {5, 6};
__global__ void set() { x = table[1]; }
void other();
int main() {
    set<<<1, 1>>>();
    other();
    int seen = 0;
    cudaMemcpyFromSymbol(&seen, x, sizeof seen);
    printf("%d\\n", seen);
}
"""
    )
    own = "__device__ int x; __constant__ int table[2];"
    code = "\n__global__ void change() { x = 9 + table[0]; }\n"
    code += "void other() { change<<<1, 1>>>(); cudaDeviceSynchronize(); }\n"
    for declared, printed in ((own, "6\n"), ("extern __device__ int x; extern __constant__ int table[2];", "14\n")):
        files[1].write_text(declared + code)
        assert run(["run", *map(str, files)]) == 0
        assert capfd.readouterr().out == printed


def test_a_long_program_is_told_once_how_to_save_time(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("grader.execution.programs.execute.NOTE_SECONDS", 1e-6)
    program = built(PROGRAM)
    execute(program)
    assert capfd.readouterr().err.count("note: the program has run for 1e-06 s with all checks.") == 1
    execute(program, checks=False)
    assert "note:" not in capfd.readouterr().err
    execute(program, sample=Sample(blocks=1))
    assert "note:" not in capfd.readouterr().err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('#include "missing.h"\nint main() {}\n', "one.cu:1"),
        ("int main() {\n    return missing;\n}\n", "one.cu:2:12: error: 'missing' was not declared"),
        (
            "#include <cusparse.h>\nint main() {}\n",
            "one.cu:1:1: error: #include <cusparse.h>: the simulator does not",
        ),
        (
            '__global__ void k() {\n    asm volatile("made.up;");\n}\nint main() {}\n',
            "one.cu:2:5: error: the PTX instruction made",
        ),
        (
            "__global__ void k(int* p) {\n    for (int i = 0; i < 3; ++i) {\n        p[i] = i;\n}\n"
            "#include <cstdlib>\nint main() {\n    srand(3);\n}\n",
            "one.cu:2:33: error: '{' is never closed",
        ),
        (
            "#include <cstdlib>\n__global__ void k(int* p) {\n    p[0] = (3;\n}\nint main() {\n    srand(3);\n}\n",
            "one.cu:3:12: error: '(' is never closed",
        ),
        (
            "#include <cstdlib>\n__global__ void k(int* p) {\n    p[0] = 3;\n    srand(3);\n}\nint main() {}\n",
            "one.cu:4:5: error: srand is a function of the host's C library",
        ),
        ("int not_main() { return 0; }\n", "the program has no main"),
        ("void elsewhere();\nint main() { elsewhere(); }\n", "used but not defined: elsewhere()"),
        (
            "__global__ void k(int& n) { n = 1; }\nint main() {}\n",
            "one.cu:1:22: error: the kernel k has a parameter that is a",
        ),
    ],
)
def test_errors_in_a_program_name_their_line(text: str, said: str, ran: Ran) -> None:
    status, _, err = ran(text)
    assert status == 2 and said in err


@pytest.mark.parametrize(
    "arguments", [["missing.cu"], ["/tmp"], [__file__], ["--jail", "--device", "cuda", str(PROGRAM)]]
)
def test_a_wrong_command_line_is_reported(arguments: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["run", *arguments]) == 2
    assert capfd.readouterr().err.startswith("error: ")


def test_a_launch_that_is_too_large_names_the_limit_and_the_line(ran: Ran) -> None:
    code = """__global__ void k() {}
int main() {
    k<<<1, dim3(64, 32)>>>();
    k<<<1, dim3(1, 1, 65)>>>();
    k<<<dim3(1, 70000), 32>>>();
    k<<<dim3(16, 16), dim3(40, 30)>>>();
    k<<<2048, 1025>>>();
}
"""
    status, _, said = ran(code, "-v")
    assert status == 1
    swapped = "(are the 256 blocks and 1200 threads swapped? Write <<<blocks, threads>>>)"
    assert f"at most 1024 threads in total, not 40 x 30 x 1 {swapped} at one.cu:6" in said
    assert "at most 1024 x 1024 x 64 threads, not 1025 x 1 x 1 at one.cu:7" in said and said.count("swapped") == 1
    assert "the block is too large: at most 1024 threads in total, not 64 x 32 x 1 at one.cu:3" in said
    assert "the block is too large: at most 1024 x 1024 x 64 threads, not 1 x 1 x 65 at one.cu:4" in said
    assert "the grid is too large: at most 2147483647 x 65535 x 65535 blocks, not 1 x 70000 x 1 at one.cu:5" in said


def test_a_long_name_of_a_kernel_is_not_broken(ran: Ran) -> None:
    code = """__global__ void sum_of_the_rows_of_a_large_matrix(float* x) { x[threadIdx.x] = 1; }
int main() {
    float* x;
    cudaMalloc(&x, 128);
    sum_of_the_rows_of_a_large_matrix<<<1, 32>>>(x);
    cudaFree(x);
}
"""
    status, _, said = ran(code, "-v")
    assert status == 0 and "ways sum_of_the_rows_of_a_large_matrix 1 1, 1, 1 32, 1, 1 0 B 128 B 4 (1.0x)" in said


def test_offset_0_of_shared_memory_is_no_null_pointer(ran: Ran) -> None:
    code = """__global__ void k(int* x) {
    extern __shared__ int shared[];
    shared[threadIdx.x] = 1;
    unsigned at = FROM_0 ? 0 : __cvta_generic_to_shared(shared);
    asm volatile("ld.shared.s32 %0, [%1];" : "=r"(x[0]) : "r"(at));
}
int main() {
    int* x;
    cudaMalloc(&x, 4);
    k<<<1, 1, 4>>>(x);
    cudaDeviceSynchronize();
}
"""
    assert ran(code, "-D", "FROM_0=0")[0] == 0
    status, _, said = ran(code, "-D", "FROM_0=1")
    assert status == 1 and "null pointer" not in said
    assert "offset 0 of shared memory: CUDA reserves the first 1024 bytes" in said and "one.cu:5" in said


def test_reads_of_one_uninitialized_buffer_are_one_finding(tmp_path: Path) -> None:
    file = tmp_path / "reads.cu"
    file.write_text(
        """__global__ void first(const int* x, const int* y, int* to) { to[threadIdx.x] = x[threadIdx.x]; }
__global__ void second(const int* x, const int* y, int* to) {
    to[threadIdx.x] = x[threadIdx.x];
    to[threadIdx.x] += x[threadIdx.x ^ 1];
    to[threadIdx.x] += y[threadIdx.x];
}
int main() {
    int *x, *y, *to;
    cudaMalloc(&x, 128);
    cudaMalloc(&y, 256);
    cudaMalloc(&to, 128);
    first<<<1, 32>>>(x, y, to);
    second<<<1, 32>>>(x, y, to);
    cudaDeviceSynchronize();
}
"""
    )
    x, y = findings_of(built(file))
    assert (x.kind, x.line, x.count, x.hides) == ("uninitialized_read", 1, 96, True)
    assert (y.kind, y.line, y.count, y.hides) == ("uninitialized_read", 5, 32, False)


def test_a_wait_for_an_event_that_was_never_recorded_is_a_note(ran: Ran) -> None:
    code = """int main() {
    cudaEvent_t event;
    cudaStream_t stream;
    cudaEventCreate(&event);
    cudaStreamCreate(&stream);
    return cudaStreamWaitEvent(stream, event, 0);
}
"""
    status, _, said = ran(code)
    assert status == 0 and "There are no findings in 0 launches. Note: " in said
    assert "cudaStreamWaitEvent at one.cu:6 returns at once: the event was never recorded" in said


def test_an_outcome_without_a_report_says_so() -> None:
    assert "left no report" in ending(Outcome(139, 1.0))


def test_the_lessons_program_has_the_described_faults_and_the_fixed_one_has_none() -> None:
    folder = Path(__file__).parents[3] / "lessons" / "bring_your_own_kernel"
    found: dict[str, list[tuple[str, int]]] = {}
    for name in ("row_sums.cu", "row_sums_fixed.cu"):
        found[name] = sorted((finding.kind, finding.line) for finding in findings_of(built(folder / name)))
    bad = folder / "row_sums.cu"
    read, written, races = (line_of(text, bad) for text in ("sum += x[row *", "sums[row] = sum", "half = 32; half > 0"))
    assert found["row_sums.cu"] == [("out_of_bounds", read), ("out_of_bounds", written), ("within_warp", races)]
    assert found["row_sums_fixed.cu"] == []
