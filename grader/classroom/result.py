"""The results of one student, as results.json holds them."""

from __future__ import annotations

import msgspec

from grader.verdict import Verdict

HAND_IN = "Hand in the .cu or .py files of your exercises, or the archive that `grader submit` writes."


class StudentResult(msgspec.Struct):
    """The verdicts of one student, and what was not graded."""

    student: str
    submission: str
    """The name of the submitted folder or archive."""
    key: str
    """A hash of what was graded, and how."""
    refused: str = ""
    """The reason why the submission was rejected; empty if it was read."""
    missing: list[str] = []
    """The requested exercises for which there is no file."""
    remarks: list[str] = []
    unchanged: list[str] = []
    """The exercises whose file is the skeleton."""
    references: list[str] = []
    """The references of internal errors of the grader."""
    verdicts: list[Verdict] = []

    @property
    def notes(self) -> list[str]:
        """Return a sentence for the student about each file that was not graded."""
        if self.refused:
            return [f"The submission was not graded: {self.refused}.", *([] if self.references else [HAND_IN])]
        sentences = [f"There is no file for {name}." for name in self.missing]
        return sentences + [f"{remark[0].upper()}{remark[1:]}." for remark in self.remarks]

    @property
    def score(self) -> float:
        """Return the sum of the course's points."""
        return sum(verdict.score for verdict in self.verdicts)

    @property
    def failed(self) -> bool:
        """Return whether the grader itself failed. The student is then graded again."""
        return bool(self.references) or any(verdict.exit_code == 2 for verdict in self.verdicts)
