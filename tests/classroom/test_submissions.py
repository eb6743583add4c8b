"""Allowed contents of archives and folders."""

from __future__ import annotations

import stat
import zipfile
from pathlib import Path

import pytest

from grader.classroom.submissions import find_submissions
from grader.classroom.worker import in_utf8
from grader.setup.errors import GraderError


def archive(folder: Path, name: str, content: bytes = b"", **changes) -> str:
    """Return the reason why an archive with one member is refused."""
    info = zipfile.ZipInfo("placeholder")
    info.filename = info.orig_filename = name
    for key, value in changes.items():
        setattr(info, key, value)
    with zipfile.ZipFile(folder / "student.zip", "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr(info, content, zipfile.ZIP_DEFLATED)
    return find_submissions(folder)[0].refused


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("../twice.cu", "is outside of the archive"),
        ("a/../../twice.cu", "is outside of the archive"),
        ("/etc/twice.cu", "absolute"),
        ("C:/twice.cu", "another operating system"),
        ("a\\twice.cu", "another operating system"),
        ("a\ntwice.cu", "control characters"),
    ],
)
def test_names_that_are_refused(tmp_path: Path, name: str, reason: str) -> None:
    assert reason in archive(tmp_path, name)


def test_links_bombs_and_damage(tmp_path: Path) -> None:
    assert "link" in archive(tmp_path, "twice.cu", b"/etc/passwd", external_attr=(stat.S_IFLNK | 0o777) << 16)
    assert "more than 20 MB" in archive(tmp_path, "notes.txt", bytes(21 << 20))
    assert "larger than 1 MB" in archive(tmp_path, "twice.cu", bytes(2 << 20))
    assert "no .cu or .py file, only 'notes.txt'" in archive(tmp_path, "notes.txt", b"hello")
    assert "no .cu or .py file: it is empty" in archive(tmp_path, "__MACOSX/._notes", b"")
    whole = (tmp_path / "student.zip").read_bytes()
    for broken in (b"", b"PK", whole[:-10], whole[: len(whole) // 2]):
        (tmp_path / "student.zip").write_bytes(broken)
        assert "not a readable zip archive" in find_submissions(tmp_path)[0].refused


def test_a_wrong_size_in_the_header(tmp_path: Path) -> None:
    archive(tmp_path, "twice.cu", bytes(3 << 20))
    content = (tmp_path / "student.zip").read_bytes()
    (tmp_path / "student.zip").write_bytes(content.replace((3 << 20).to_bytes(4, "little"), (9).to_bytes(4, "little")))
    submission = find_submissions(tmp_path)[0]
    assert submission.refused or all(len(kernel) <= 9 for kernel in submission.kernels.values())


@pytest.mark.parametrize(("change", "name"), [({}, "Zoë/twice.cu"), ({"Zoë".encode(): b"Zo\x89_"}, "Zoë_/twice.cu")])
def test_names_without_the_flag_for_utf_8(tmp_path: Path, change: dict[bytes, bytes], name: str) -> None:
    """Read names as macOS writes them (UTF-8 without the flag), and in code page 437, as older Windows does."""
    archive(tmp_path, "Zoë/twice.cu", b"kernel")
    content = (tmp_path / "student.zip").read_bytes()
    plain = bytearray(content)
    for head, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        plain[content.index(head) + flags + 1] &= ~0x08
    for old, new in change.items():
        plain = plain.replace(old, new)
    (tmp_path / "student.zip").write_bytes(plain)
    assert find_submissions(tmp_path)[0].kernels == {name: b"kernel"}


def test_an_archive_in_an_archive(tmp_path: Path) -> None:
    """Read one level of nested archives, under the same rules."""

    def zipped(name: str, content: bytes) -> bytes:
        archive(tmp_path, name, content)
        return (tmp_path / "student.zip").read_bytes()

    inner = zipped("day01/twice.cu", b"kernel")
    middle = zipped("submission.zip", inner)
    assert find_submissions(tmp_path)[0].kernels == {"submission.zip/day01/twice.cu": b"kernel"}
    assert "only 'work.zip/submission.zip'" in archive(tmp_path, "work.zip", middle)
    assert "not a readable zip archive" in archive(tmp_path, "work.zip", inner[:-10])
    assert "is outside of the archive" in archive(tmp_path, "work.zip", zipped("../twice.cu", b"kernel"))
    large = zipped("twice.cu", bytes(1 << 20))
    with zipfile.ZipFile(tmp_path / "student.zip", "w") as file:
        for number in range(30):
            file.writestr(f"{number}.zip", large)
    assert "larger than 20 MB together" in find_submissions(tmp_path)[0].refused


def test_folders(tmp_path: Path) -> None:
    (tmp_path / "ann").mkdir()
    (tmp_path / "ann/twice.cu").write_text("kernel")
    (tmp_path / "bob").mkdir()
    (tmp_path / "bob/twice.cu").symlink_to("/etc/passwd")
    (tmp_path / "eve").symlink_to(tmp_path / "ann")
    ann, bob, eve = find_submissions(tmp_path)
    assert ann.kernels == {"twice.cu": b"kernel"} and not ann.refused
    assert "is a link" in bob.refused and "is a link" in eve.refused


def test_no_submissions(tmp_path: Path) -> None:
    with pytest.raises(GraderError, match="no submissions"):
        find_submissions(tmp_path)
    with pytest.raises(GraderError, match="no folder"):
        find_submissions(tmp_path / "missing")


def test_names_of_result_folders(tmp_path: Path) -> None:
    for name in ("Zoë Ünal_1_assignsubmission_file_", "Zoe Unal_1_assignsubmission_file_", "..."):
        (tmp_path / name).mkdir()
    (tmp_path / "...").rename(tmp_path / "- -")
    names = [submission.folder_name for submission in find_submissions(tmp_path)]
    assert len(set(names)) == 3 and all(name.isascii() and "/" not in name and name[0] != "." for name in names)


def test_archives_of_learning_systems(tmp_path: Path) -> None:
    """Read archives in students' folders, names in upper case, macOS metadata, and files outside archives."""
    moodle = tmp_path / "Jörg_1_file_"
    moodle.mkdir()
    with zipfile.ZipFile(moodle / "work.zip", "w") as file:
        file.writestr("day01/TWICE.CU", "kernel")
        file.writestr("day01/._twice.cu", "metadata")
    (tmp_path / "ann_twice.cu").write_text("kernel")
    (tmp_path / "bob.rar").write_text("Rar!")
    (tmp_path / "list.xlsx").write_text("no submission")
    kernels = {
        submission.student: (submission.kernels, submission.refused) for submission in find_submissions(tmp_path)
    }
    assert kernels.pop("Jörg_1_file_") == ({"work.zip/day01/TWICE.CU": b"kernel"}, "")
    assert set(kernels) == {"ann_twice.cu", "bob.rar"}
    assert all(not files and "neither a folder nor a zip" in reason for files, reason in kernels.values())
    with zipfile.ZipFile(moodle / "work.zip", "w") as file:
        file.writestr("../twice.cu", "kernel")
    assert "is outside of the archive" in find_submissions(tmp_path)[0].refused


def test_attachments_of_a_student_in_canvas(tmp_path: Path) -> None:
    """Read all attachments of a student as one submission; keep students with equal names apart."""
    for name, kernel in (
        ("doejohn_LATE_12_301_twice.cu", "a"),
        ("doejohn_LATE_12_302_thrice-1.cu", "b"),
        ("doejohn_13_303_twice.cu", "c"),
        ("roe_14_304_twice.txt", "no kernel"),
    ):
        (tmp_path / name).write_text(kernel)
    for name, member in (
        ("leeann_15_305_one.zip", "twice.cu"),
        ("leeann_15_306_two.zip", "thrice.cu"),
        ("poe_16_307_w.zip", "twice.cu"),
    ):
        with zipfile.ZipFile(tmp_path / name, "w") as file:
            file.writestr(member, "kernel")
    found = {submission.student: submission for submission in find_submissions(tmp_path)}
    assert {student: sorted(submission.kernels) for student, submission in found.items()} == {
        "doejohn_LATE_12_301_twice": ["thrice-1.cu", "twice.cu"],
        "doejohn_13_303_twice": ["twice.cu"],
        "leeann_15_305_one": ["one.zip/twice.cu", "two.zip/thrice.cu"],
        "poe_16_307_w": ["twice.cu"],
    }
    (tmp_path / "leeann_15_309_two.zip").write_bytes((tmp_path / "leeann_15_306_two.zip").read_bytes())
    assert any("holds 'two.zip' twice" in submission.refused for submission in find_submissions(tmp_path))


def write_archive(path: Path, **members: bytes | str) -> bytes:
    """Write an archive with members of these names, a suffix after two underscores; return its content."""
    with zipfile.ZipFile(path, "w") as file:
        for name, content in members.items():
            file.writestr(name.replace("__", "."), content)
    return path.read_bytes()


@pytest.mark.parametrize(
    "names",
    [
        ["lab_3_01_ann", "lab_3_02_bob"],
        ["hw1_2026_11_ann", "hw1_2026_11_bob", "hw1_2026_12_eve"],
        ["doe_12_301_work", "roe_12_302_work"],
        ["doe_12_301_work", "ann"],
    ],
)
def test_archives_that_only_look_like_those_of_canvas_are_not_merged(tmp_path: Path, names: list[str]) -> None:
    for name in names:
        write_archive(tmp_path / f"{name}.zip", twice__cu="kernel")
    assert [submission.student for submission in find_submissions(tmp_path)] == sorted(names)


def test_other_attachments_in_canvas_belong_to_their_student(tmp_path: Path) -> None:
    (tmp_path / "doe_12_301_twice.cu").write_text("kernel")
    (tmp_path / "doe_12_302_notes.rar").write_text("notes")
    (tmp_path / "doe_12_303_leaderboard.txt").write_text("nick")
    write_archive(tmp_path / "roe_13_304_work.zip", twice__cu="kernel")
    found = {submission.student: submission for submission in find_submissions(tmp_path)}
    assert sorted(found) == ["doe_12_301_twice", "roe_13_304_work"]
    assert list(found["doe_12_301_twice"].kernels) == ["twice.cu"] and found["doe_12_301_twice"].nickname == "nick"


def test_a_bad_archive_does_not_lose_the_kernels_beside_it(tmp_path: Path) -> None:
    many = write_archive(tmp_path / "many", **{f"file{number}__h": "" for number in range(501)})
    write_archive(tmp_path / "ann.zip", twice__cu="kernel", data__zip=b"no archive", headers__zip=many)
    write_archive(tmp_path / "bob.zip", data__zip=b"no archive")
    (tmp_path / "many").unlink()
    ann, bob = find_submissions(tmp_path)
    assert list(ann.kernels) == ["twice.cu"] and not ann.refused
    assert "in 'data.zip': it is not a readable zip archive" in bob.refused


def test_archives_in_an_archive_share_its_limit_of_files(tmp_path: Path) -> None:
    inner = write_archive(tmp_path / "inner", **{f"file{number}__cu": "" for number in range(300)})
    (tmp_path / "inner").unlink()
    write_archive(tmp_path / "ann.zip", one__zip=inner)
    write_archive(tmp_path / "bob.zip", one__zip=inner, two__zip=inner)
    ann, bob = find_submissions(tmp_path)
    assert not ann.refused and "more than 500 files, with those of its archives" in bob.refused


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "cp1252"])
def test_text_encodings_and_line_ends(encoding: str) -> None:
    assert "// größer" in in_utf8("// größer\r\n".encode(encoding)).decode()
