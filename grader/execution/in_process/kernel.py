"""``load_kernel`` returns a kernel file as an object whose launchers take torch tensors and numbers.

On a cache miss the file is built through ``torch.utils.cpp_extension.load_inline``; on a hit the library is loaded
directly, in a few milliseconds.
"""

from __future__ import annotations

import ctypes
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grader.execution.build.build import BuiltKernel, build, entry_point, plan_kernel
from grader.execution.build.inline import compile_inline
from grader.execution.in_process.arguments import Argument, bind
from grader.execution.in_process.fast_call import DECLINED, FastCall, on_current_gpu
from grader.frontend.prototype import Prototype
from grader.frontend.toolchain.cache import digest, open_cache
from grader.frontend.toolchain.cuda_errors import describe_error
from grader.setup import shipped
from grader.setup.errors import GraderError, KernelFinding
from grader.verdict.wording.findings import text

if TYPE_CHECKING:
    from grader.simulator.report import Report


_AFTER_A_FAULT = (
    "After a fault, this process can no longer use the GPU: restart it. "
    "The simulator (device='cpu') shows the line of a fault."
)
# The maximum number of requests whose addresses the simulator records, for each memory access in the source and each
# warp of the first block. From these addresses, the notebooks draw which thread accesses which element.
_TRACED = "8"


def load_kernel(
    path: str | Path,
    device: str = "cpu",
    checks: bool = True,
    raise_on_finding: bool = True,
    compiler: str | None = None,
    sync: bool = False,
    operations: bool = False,
) -> Kernel:
    """Build a kernel file if necessary, and load it.

    ``path`` is relative to the working folder (a notebook's own), or to the root of the course. ``device`` is "cpu" for
    the simulated GPU or "cuda" for a real one. With ``checks`` the simulator looks for faults and counts accesses; a
    fault raises :class:`~grader.setup.errors.KernelFinding` unless ``raise_on_finding`` is false. ``compiler`` names
    another C++ compiler than the usual one. With ``sync`` a call on a real GPU waits until the kernels have ended, so
    that a fault is reported by the call that caused it. With ``operations`` the report also has floating-point
    operations and the lanes that were active, line by line; the kernel then takes longer to simulate.
    """
    file = find_kernel_file(path)
    arch = _gpu_architecture() if device == "cuda" else None
    plan = plan_kernel(file, device, checks, operations=operations, compiler=compiler, arch=arch)
    if not plan.launchers:
        raise GraderError(
            f'{file.name} has no launcher (no function marked extern "C") and no main',
            'Write a launcher per kernel: extern "C" void name(..., cudaStream_t stream) { kernel<<<...>>>(...); }',
        )
    if plan.device == "cpu" and plan.checks and not open_cache().path(plan.key).exists():
        # load_inline cannot add the checks of submission_sandbox/late_accesses.py, which verdicts rely on. Change the
        # library's cache key, so that a check of the kernel never uses this library.
        plan = replace(plan, key=digest([plan.key, "load_inline"]))
    return Kernel(build(plan, compile_inline), raise_on_finding, sync)


def find_kernel_file(path: str | Path) -> Path:
    """Return the file for a path, which is absolute or relative to the working folder or to a root of the course."""
    wanted = Path(path).expanduser()
    if wanted.is_absolute() or wanted.exists():
        if not wanted.exists():
            raise GraderError(f"there is no file {wanted}")
        return wanted
    here = Path.cwd()
    roots = [*here.parents, shipped.COURSE]
    for root in roots:
        if (root / "lessons").is_dir() and (root / wanted).is_file():
            return root / wanted
    raise GraderError(f"there is no file {wanted}", f"Looked in {here.name}/ and in the root of the course.")


class Kernel:
    """A loaded kernel file. Its launchers are attributes: ``kernel.relu(x, out, n)``."""

    def __init__(self, built: BuiltKernel, raise_on_finding: bool = True, sync: bool = False) -> None:
        self._built = built
        self._raise_on_finding = raise_on_finding
        self._sync = sync
        self._report_text: str | None = None
        self._recorded = "none"
        self._report: Report | None = None
        if built.libsim:
            from grader.execution.in_process.libsim import open_simulator

            self._simulator = open_simulator(built.libsim)
        try:
            library = ctypes.CDLL(str(built.library))
        except OSError as problem:
            raise GraderError(f"{built.file.name} was built, but does not load: {problem}") from None
        self._launchers: dict[str, Launcher] = {}
        for prototype in built.launchers:
            entry = getattr(library, entry_point(prototype))
            entry.argtypes, entry.restype = [ctypes.c_void_p], ctypes.c_int
            self._launchers[prototype.name] = Launcher(self, prototype, entry)

    def __getattr__(self, name: str) -> Launcher:
        launchers = self.__dict__.get("_launchers", {})
        if name in launchers:
            return launchers[name]
        known = ", ".join(launchers)
        raise AttributeError(f"{self._built.file.name} has no launcher {name}; it has {known}")

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._launchers]

    def __repr__(self) -> str:
        lines = [f"{self._built.file.name} on {self.device}"]
        return "\n  ".join([*lines, *(str(launcher.prototype) for launcher in self._launchers.values())])

    @property
    def file(self) -> Path:
        """The kernel file."""
        return self._built.file

    @property
    def source(self) -> str:
        """The text that was built."""
        return self._built.plan.original

    @property
    def device(self) -> str:
        """The device: cpu or cuda."""
        return self._built.plan.device

    @property
    def launchers(self) -> tuple[Prototype, ...]:
        """The prototypes of the launchers."""
        return self._built.launchers

    @property
    def report(self) -> Report:
        """The simulator's findings and counters of the last call."""
        if self._report is None:
            if self._report_text is None:
                why = (
                    "nothing was called yet"
                    if self.device == "cpu"
                    else "only the simulator (device='cpu') writes reports"
                )
                raise GraderError(f"{self.file.name} has no report: {why}")
            from grader.simulator.report import Report

            self._report = Report.from_json(self._report_text, self._built.library, source=self.file)
        return self._report

    @contextmanager
    def recording(self, block: tuple[int, int, int] = (0, 0, 0), launch: int = 0) -> Iterator[None]:
        """Record the steps of one block, as a context manager.

        A call in this context stores the recording in ``report.recording``, and does not raise its findings.
        ``block`` is the ``blockIdx`` of the block. ``launch`` selects a kernel launch within the call, from 0.
        """
        if self.device != "cpu" or not self._built.plan.checks:
            raise GraderError(
                f"{self.file.name} cannot be recorded: only the simulator with its checks can record",
                "Load the kernel with device='cpu'.",
            )
        raises, self._raise_on_finding = self._raise_on_finding, False
        self._recorded = ",".join(map(str, (launch, *block)))
        try:
            yield
        finally:
            self._recorded, self._raise_on_finding = "none", raises
            self._simulator.configure(record="none")  # other kernels use the same simulator

    def _call_simulated(self, launcher: Launcher, arguments: list[Argument]) -> None:
        plan = self._built.plan
        self._report = self._report_text = None
        self._simulator.configure(checks="1" if plan.checks else "0", trace=_TRACED, record=self._recorded)
        error, self._report_text, output = self._simulator.call(
            launcher.entry, arguments, launcher.prototype.takes_stream
        )
        if output:
            sys.stdout.write(output)
        if self._raise_on_finding and json.loads(self._report_text).get("findings"):
            raise KernelFinding("\n\n".join(map(text, self.report.findings)))
        if error and self._raise_on_finding:
            raise GraderError(f"{launcher.prototype.name}: {describe_error(error)}")

    def _call_cuda(self, launcher: Launcher, arguments: list[Argument]) -> None:
        import torch

        device = next((a.tensor.device for a in arguments if a.tensor is not None), None)
        with torch.cuda.device(device):
            error = launcher._on_gpu(arguments)()
            if self._sync and not error:
                try:
                    torch.cuda.synchronize()
                except RuntimeError as problem:
                    first = str(problem).strip().splitlines()[0]
                    raise GraderError(f"{launcher.prototype.name}: {first}", _AFTER_A_FAULT) from None
        if error:
            raise self._failed(launcher, error)

    def _failed(self, launcher: Launcher, error: int) -> GraderError:
        stuck = 700 <= error < 720 and error not in (701, 702)
        return GraderError(f"{launcher.prototype.name}: {describe_error(error)}", _AFTER_A_FAULT if stuck else "")


class Launcher:
    """A launcher of a loaded file. Call it with tensors and numbers; the current stream is passed automatically."""

    def __init__(self, kernel: Kernel, prototype: Prototype, entry: Any) -> None:
        self.kernel = kernel
        self.prototype = prototype
        self.entry = entry
        self._fast: FastCall | None = None
        self.__name__ = prototype.name
        self.__doc__ = str(prototype)

    def __call__(self, *given: Any, **named: Any) -> None:
        if self.kernel.device == "cuda" and not named and not self.kernel._sync:
            if self._fast is None:
                self._fast = on_current_gpu(self.prototype, self.entry)
            error = self._fast(given)
            if not error:
                return
            if error != DECLINED:
                raise self.kernel._failed(self, error)
        arguments = bind(self.prototype, given, named, self.kernel.device)
        if self.kernel.device == "cpu":
            self.kernel._call_simulated(self, arguments)
        else:
            self.kernel._call_cuda(self, arguments)

    def prepared(self, *given: Any) -> Callable[[], int]:
        """Check the arguments of a call on a GPU, and return a function that makes the call without further checks.

        Timings of that function do not include the checks. It uses the stream that is current now, and returns the
        CUDA error.
        """
        return self._on_gpu(bind(self.prototype, given, {}, "cuda"))

    def _on_gpu(self, arguments: list[Argument]) -> Callable[[], int]:
        import torch

        from grader.execution.in_process.libsim import call_entry

        values = [
            ctypes.c_void_p(a.tensor.data_ptr() if a.tensor is not None else None) if a.value is None else a.value
            for a in arguments
        ]
        if self.prototype.takes_stream:
            values.append(ctypes.c_void_p(torch.cuda.current_stream().cuda_stream))

        def call() -> int:
            assert len(arguments) <= len(values)  # this closure's reference keeps the tensors alive
            return call_entry(self.entry, values)

        return call

    def __repr__(self) -> str:
        return str(self.prototype)


def _gpu_architecture() -> str:
    """Return the architecture of the GPU that torch uses, such as ``sm_90``."""
    import torch

    if not torch.cuda.is_available():
        build_note = "" if torch.version.cuda else " (this PyTorch is built without CUDA)"
        raise GraderError(
            f"there is no GPU that PyTorch can use{build_note}",
            "Load the kernel with device='cpu': the simulated GPU runs everywhere.",
        )
    major, minor = torch.cuda.get_device_capability()
    return f"sm_{major}{minor}"
