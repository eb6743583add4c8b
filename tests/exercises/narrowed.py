"""A kernel file as far as a few cases need it: compilers spend most of their time on what those cases never run."""

from __future__ import annotations

import dataclasses
import re

from grader.course.task import Case, Exercise


def cases_that_catch(task: Exercise, says: str) -> list[Case]:
    """The case that a mistake's ``says`` names, if it names one; all of the exercise's first dtype, if there are others.

    None where nothing would be left out.
    """
    says = " ".join(says.lower().split())
    for case in task.cases:
        name = case.name.lower()
        if re.search(rf"\b{re.escape(says)}\b", name) or re.search(rf"\b{re.escape(name)}\b", says):
            return [case]
    return [case for case, dtype in task.runs() if dtype == task.dtypes[0]] if len(task.dtypes) > 1 else []


def narrowed_task(task: Exercise, cases: list[Case]) -> Exercise:
    """The exercise with these cases, in one dtype that they have."""
    return dataclasses.replace(task, cases=cases, dtypes=(cases[0].dtypes or task.dtypes)[:1])


def narrowed_text(text: str, task: Exercise, narrow: Exercise, seed: int) -> str:
    """The kernel with the launchers of other dtypes empty and, where there is one case, its sizes as constants in the launcher:
    what that would choose for other sizes is never called then, so it is not compiled. Lines stay where they are.
    """
    (dtype,) = narrow.dtypes
    sizes = ""
    if len(narrow.cases) == 1:
        values = task.scalars_of(task.dims_of(narrow.cases[0], task.case_seed(seed, narrow.cases[0], dtype)))
        sizes = "".join(
            f" {parameter.name} = {int(values[parameter.name])};"
            for parameter in task.parameters(dtype)
            if parameter.kind == "scalar" and isinstance(values.get(parameter.name), int)
        )
    for other in task.dtypes:
        body = re.compile(
            rf'(extern "C" void {re.escape(task.launcher(other))}\([^)]*\)\s*{{)(.*?)^}}', re.DOTALL | re.MULTILINE
        )
        if other == dtype:
            text = body.sub(lambda found: found[1] + sizes + found[2] + "}", text)
        elif task.launcher(other) != task.launcher(dtype):
            text = body.sub(lambda found: found[1] + "\n" * found[2].count("\n") + "}", text)
    return text
