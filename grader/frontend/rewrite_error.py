"""The error for CUDA code that the simulator's front end cannot translate to C++."""

from __future__ import annotations

from grader.frontend.messages import CompilerMessage
from grader.setup.errors import BuildError

MOST_OF_A_MESSAGE = 4000
"""The maximum length of an error message in characters."""


class RewriteError(BuildError):
    """An error about a construct that the simulator does not support, with the line and column in the file."""

    def __init__(self, line: int, column: int, message: str, hint: str = "", *, source_line: str = "") -> None:
        super().__init__(_shortened(message), _shortened(hint))
        self.line = line
        self.column = column
        self.source_line = source_line
        self.diagnostics: tuple[CompilerMessage, ...] = ()


def _shortened(text: str) -> str:
    """Truncate a message, because it may quote a very long name in the submission."""
    return text if len(text) <= MOST_OF_A_MESSAGE else text[: MOST_OF_A_MESSAGE - 3] + "..."
