"""Reduce an exercise and a wrong kernel to the one case that must fail because of the kernel's mistake.

Most of the kernel's code does not run in that case, so leaving it out saves compile time.
"""

from __future__ import annotations

import copy
import dataclasses
import re
from collections.abc import Sequence

from grader.course.authoring.mistakes import Mistake
from grader.course.python_task import PythonExercise
from grader.course.task import Case, Exercise

FEW = 3
"""The number of cases that run before the counted one."""


def narrowed_task(task: Exercise, mistake: Mistake) -> Exercise | None:
    """Return the exercise with only the case that the mistake names, directly or in ``says``.

    A case that names a dtype runs in that one. If the mistake names no case, keep all cases of one dtype.

    Return None if nothing would be removed. For a mistake that the stage *efficient* must catch, keep the counted case
    and a few others, because the wrong kernel passes all of them.
    """
    if isinstance(task, PythonExercise):
        chosen = [case for case in task.cases if case.name == mistake.case]
        assert chosen or not mistake.case, f"{task.name} has no case {mistake.case!r}"
        return dataclasses.replace(task, cases=chosen) if chosen else None
    says = " ".join(mistake.says.lower().split())
    named = [
        case for case in task.cases if case.name == mistake.case or (not mistake.case and case.name.lower() == says)
    ]
    if not mistake.case:  # the name may be a part of the text, or the text a part of the name
        named += [case for case in task.cases if _within(says, case.name.lower()) or _within(case.name.lower(), says)]
    if named and "efficient" not in mistake.stages:
        dtypes = named[0].dtypes or task.dtypes
        return _only(
            task, named[:1], next((dtype for dtype in dtypes if _within(dtype, named[0].name)), dtypes[0]), None
        )
    assert not mistake.case, f"{task.name} has no case {mistake.case!r}"
    counted = task.efficient if "efficient" in mistake.stages else None
    if len(task.dtypes) == 1 and not counted:
        return None
    dtype = (counted.dtypes if counted and counted.dtypes else task.dtypes)[0]
    cases = [case for case, other in task.runs() if other == dtype]
    return _only(task, cases[:FEW] if counted else cases, dtype, counted)


def _within(words: str, text: str) -> bool:
    return re.search(rf"\b{re.escape(words)}\b", text) is not None


def _only(task: Exercise, cases: Sequence[Case], dtype: str, counted: Case | None) -> Exercise:
    def in_dtype(case: Case) -> Case:
        alone = copy.copy(case)
        object.__setattr__(alone, "dtypes", (dtype,))
        return alone

    few, counted = [in_dtype(case) for case in cases], in_dtype(counted) if counted else None
    return dataclasses.replace(task, cases=few, dtypes=(dtype,), efficient=counted, bench=[], time_bars=[])


_HELPER = re.compile(
    r"^((?:template <[^;{}]*?>\s)?)((?:static )?(?:void|cudaError_t) \w+\([^;{}]*?cudaStream_t[^;{}]*?\)\s*{)",
    re.MULTILINE,
)
"""A host function that a launcher calls. The groups are its template head and the rest of its signature."""


def narrowed_text(text: str, task: Exercise, narrow: Exercise, seed: int) -> str:
    """Return the kernel with empty launchers for other dtypes. If there is one case, sizes become constants."""
    if isinstance(task, PythonExercise):
        return text
    (dtype,) = narrow.dtypes
    sizes = ""
    if len(narrow.cases) == 1 and narrow.efficient is None:
        values = task.scalars_of(task.dims_of(narrow.cases[0], task.case_seed(seed, narrow.cases[0], dtype)))
        sizes = "".join(
            f" {parameter.name} = {int(values[parameter.name])};"
            for parameter in task.parameters(dtype)
            if parameter.kind == "scalar" and isinstance(values.get(parameter.name), int)
        )
        text = _HELPER.sub(r"\1__forceinline__ \2", text)  # so that the constant sizes reach the helper, too
    for other in task.dtypes:
        body = re.compile(
            rf'(extern "C" void {re.escape(task.launcher(other))}\([^)]*\)\s*{{)(.*?)^}}', re.DOTALL | re.MULTILINE
        )
        if other == dtype:
            text = body.sub(lambda found: found[1] + sizes + found[2] + "}", text)
        elif task.launcher(other) != task.launcher(dtype):
            text = body.sub(lambda found: found[1] + "\n" * found[2].count("\n") + "}", text)
    return text
