"""Runs the work of the stage *builds* in threads: finding a sandbox, building kernel and runner, asking nvcc."""

from __future__ import annotations

import functools
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

from grader.execution.build.build import BuildPlan, BuiltKernel, build, compile_directly, compile_kernel, plan_kernel
from grader.execution.jail import compiling, imports
from grader.execution.runner import tiers
from grader.execution.runner.gpu import gpu_architecture
from grader.execution.runner.program import NOTHING, build_runner
from grader.execution.submission_sandbox import compiler_conditions, instrumentation_bypass
from grader.frontend.toolchain.process import RunCommand, stop_all
from grader.judge import nvcc
from grader.judge.build_job import Building, Compiled, Job
from grader.setup.errors import BuildError


class Threads(Building):
    """A job that runs in threads of this process."""

    def __init__(self, job: Job) -> None:
        self._job = job
        pool = ThreadPoolExecutor(max_workers=7, thread_name_prefix="build")
        arch = gpu_architecture(job.architecture) if job.device == "cuda" else None
        self.jail = pool.submit(tiers.in_force, arch)
        # A compiler does not use the GPU. So it need not wait until the jail with the GPU is built and tested.
        self._compilers_jail = pool.submit(tiers.in_force) if arch else self.jail
        self._plan: Future[BuildPlan] = pool.submit(
            plan_kernel, job.file, job.device, job.device == "cpu", arch=arch or job.architecture
        )
        self.kernel = pool.submit(self._compile)
        self._nothing = pool.submit(compile_kernel, NOTHING, "cuda", False, arch=arch) if arch else None
        self.runner: Future[Path] = pool.submit(self._build_runner, arch)
        self.nvcc = pool.submit(self._ask_nvcc) if job.ask_nvcc else None
        pool.shutdown(wait=False)

    def translated(self) -> None:
        wait([self._plan])

    def stop(self) -> None:
        stop_all()
        every = (self.jail, self._compilers_jail, self._plan, self.kernel, self._nothing, self.runner, self.nvcc)
        futures: list[Future[Any]] = [future for future in every if future is not None]
        while wait(futures, timeout=0.05).not_done:
            stop_all()  # again, because a thread may have started another compiler meanwhile

    def _run_compiler(self) -> RunCommand:
        return compiling.run_in(self._compilers_jail.result().jail)

    def _build_runner(self, arch: str | None) -> Path:
        """Return the runner, when everything is built that the stages on a GPU run beside the kernel."""
        runner = build_runner(self._job.device, arch)
        if self._nothing is not None:
            self._nothing.result()
        return runner

    def _ask_nvcc(self) -> nvcc.Answer:
        self._plan.result()  # raises the front end's error: nvcc does not compile such a file
        return nvcc.ask(self._job.file, self._job.architecture, self._run_compiler())

    def _compile(self) -> Compiled:
        plan, run = self._plan.result(), self._run_compiler()
        if self._job.device == "cpu" and (found := instrumentation_bypass.kernel_attributes(plan, run)):
            plan = plan_kernel(
                plan.file, checks=True, text=plan.original, arch=self._job.architecture, attributes=found
            )
        built = build(plan, functools.partial(compile_directly, run=run))
        refused = None
        if self._job.device == "cpu":
            try:
                self._refuse_bypasses(built)
            except BuildError as error:
                refused = error
        plan, warnings = built.plan, built.diagnostics
        return Compiled(
            built.library,
            built.libsim,
            built.launchers,
            plan.original,
            str(plan.compiler),
            built.cached,
            warnings,
            refused,
        )

    def _refuse_bypasses(self, kernel: BuiltKernel) -> None:
        """Raise BuildError if the file has a construct that would disable or mislead the simulator's checks."""
        assert kernel.libsim
        name = kernel.file.name
        if instrumentation_bypass.renumbers_lines(kernel.plan.original):
            raise BuildError(
                f"{name} has a #line directive or a linemarker, which would change the line numbers of findings.",
                "Remove the #line directive or linemarker.",
            )
        if macro := compiler_conditions.differing_name(kernel.plan.source, kernel.plan.include_dirs):
            raise BuildError(
                f"{name} uses {macro}, which may have another value for nvcc than for the simulator's compiler. "
                "Both must compile the same code.",
                f"Write the kernel without {macro}. If the macro is your own, rename it: names of <cstdint>, and names "
                "that begin with an underscore, CU_ or CUDA, belong to compilers and libraries.",
            )
        if hidden := instrumentation_bypass.hides_attribute(kernel.plan, self._run_compiler()):
            raise BuildError(
                f"{name} has {hidden} in a macro that the front end cannot expand: a macro with several "
                "definitions, in an #if, or with ##.",
                f"Write {hidden} in the kernel's declaration.",
            )
        names = imports.refused(kernel.library, kernel.libsim)
        if kernel.plan.compiler.family == "gcc" and imports.entries_in_constants(kernel.library.read_bytes()):
            names.append("a constant with the bytes of the instruction endbr64")
        word = instrumentation_bypass.unchecked_word(kernel.plan, self._run_compiler())
        if word:
            names.append(word)
        if any(name.startswith(("pthread_create", "std::thread", "std::jthread", "thrd_create")) for name in names):
            raise BuildError(
                f"{name} starts a host thread: a launcher may only launch kernels and return.",
                "Remove std::thread, std::async and pthread_create; use blocks and threads of a kernel.",
            )
        if names:
            raise BuildError(
                f"{name} uses or defines {', '.join(names)}, which a kernel must not use: "
                "it could change the process or disable the simulator's checks."
            )
