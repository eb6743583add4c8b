"""A generated class.

For each exercise, it has correct, wrong, hostile and endless kernels, all with different sources.
"""

from __future__ import annotations

from pathlib import Path

from grader.course import Course
from grader.course.authoring.mistakes import other_designs, read_mistakes

EXERCISES = ("day01_residual_add/residual_add", "day02_reductions/rms_norm", "day03_positions_and_gates/swiglu")

HOSTILE = (
    '#include "/etc/shadow"\n',
    '__asm__(".incbin \\"/etc/passwd\\"");\n',
    "struct Ends { Ends() { __builtin_trap(); } } ends;\n",
    "template <int n> struct Deep { static const int v = Deep<n + 1>::v; }; int deep = Deep<0>::v;\n",
)
"""Prefixes for a correct kernel that read files, crash the process, or never finish compiling."""
IN_LAUNCHER = (
    "    *(volatile int*)8 = 1;\n",
    "    volatile int all[1 << 24]; all[0] = 1;\n",
)


ENDLESS = "    for (volatile int i = 0;; i = i + 1) {}\n"


def in_launcher(solution: str, line: str) -> str:
    """Return a solution whose launcher begins with a line."""
    body = solution.index("{\n", solution.rindex('extern "C"')) + 2
    return solution[:body] + line + solution[body:]


def kernels(course: Course, name: str, first_hostile: int = 0) -> list[str]:
    """Return forty kernels in mixed order: 26 correct, 11 wrong, 2 hostile, 1 endless."""
    entry = course.find(name)
    solution = entry.solution.read_text()
    right = [solution, *other_designs(entry).values()]
    wrong = [mistake.text(entry) for mistake in read_mistakes(entry).wrong] + [entry.skeleton.read_text()]
    hostile = [line + solution for line in HOSTILE] + [in_launcher(solution, line) for line in IN_LAUNCHER]
    made = []
    for number in range(40):
        if number == 39:
            made.append(in_launcher(solution, ENDLESS))
        elif number % 20 == 10:
            made.append(hostile[(first_hostile + number // 20) % len(hostile)])
        elif number % 7 in (2, 5) and number < 39:
            made.append(wrong[number % len(wrong)])
        else:
            made.append(right[number % len(right)])
    return made


def hand_in(folder: Path, course: Course, exercises: tuple[str, ...], students: int, mark: str) -> int:
    """Write the class and return its number of kernels.

    ``mark``: a text that makes its sources differ from those of other classes.
    """
    made = {name: kernels(course, name, 2 * index) for index, name in enumerate(exercises)}
    for number in range(students):
        place = folder / f"student{number:05}"
        for index, name in enumerate(exercises):
            entry = course.find(name)
            text = made[name][(number + 13 * index) % 40]
            file = place / entry.day / f"{entry.variable}.cu"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(f"// {mark} {number}\n{text}")
    return students * len(exercises)
