"""#line directives and their other spellings, which would change the line numbers or file names of a submission."""

from __future__ import annotations

import pytest

from grader.execution.submission_sandbox.instrumentation_bypass import renumbers_lines

RENUMBERING = (
    '#line 3 "other.cu"',
    "#line 3",
    '# 3 "other.cu" 1',
    "  #  line 3",
    "%:line 3",
    "??=line 3",
    "/* a comment */ # /* another */ line 3",
    "#\\\nline 3",
    "#li\\\nne 3",
    "#li\\  \nne 3",
    "#li??/\nne 3",
    'const char* s = "/*";\n#line 3\nconst char* t = "*/";',
)
HONEST = (
    "#include <line.h>",
    "#define line 3",
    "#ifdef line\n#endif",
    "#pragma unroll 4",
    "int line = 3;",
    "// the line\nint x;",
    '__global__ void k() { printf("#line 3"); }',
    "#if 0\n#endif",
    "#error line",
)


@pytest.mark.parametrize("text", RENUMBERING)
@pytest.mark.parametrize("before", ["", "#pragma once\n", "int x;\r\n"])
def test_line_directives_are_found(text: str, before: str) -> None:
    assert renumbers_lines(f"{before}{text}\nint y;\n")


@pytest.mark.parametrize("text", HONEST)
def test_honest_files_are_accepted(text: str) -> None:
    assert not renumbers_lines(f"#pragma once\n{text}\nint y;\n")


def test_scanning_takes_linear_time() -> None:
    """Check that a text whose lines all start a possible directive is scanned in linear time."""
    for part in ("/*", "/**/ ", "# /*", "#\n", "#\\\n", "\n \t", "%:/**/"):
        renumbers_lines(part * 200_000 + "x")
