"""``grader dev messages`` writes the catalog of messages."""

from __future__ import annotations

from pathlib import Path

from grader.verdict.wording import catalog


def test_the_catalog_is_printed_or_written(dev, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    code, said = dev("messages")
    assert code == 0 and "### Use of an uninitialized mbarrier" in said
    out = tmp_path / "messages.md"
    assert dev("messages", "--out", str(out)) == (0, "")
    assert out.read_text() == catalog.page()


def test_a_file_that_cannot_be_written(dev, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "file").touch()
    code, said = dev("messages", "--out", str(tmp_path / "file" / "messages.md"))
    assert code != 0 and "cannot write" in said
