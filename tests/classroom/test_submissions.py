"""Allowed contents of archives and folders."""

from __future__ import annotations

import shutil
import stat
import zipfile
from pathlib import Path

import pytest

from grader.classroom.archives import COURSE
from grader.classroom.session import Session
from grader.classroom.submissions import MOST_ENTRIES, Submission, _without_course, find_submissions
from grader.classroom.worker import in_utf8
from grader.course import Course
from grader.setup.errors import GraderError
from tests.classroom.archives import zip_of


def archive(folder: Path, name: str, content: bytes = b"", **header: int) -> str:
    """Return the reason why an archive with one member is refused."""
    (folder / "student.zip").write_bytes(zip_of({name: content}, **header))
    return find_submissions(folder)[0].refused


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("../twice.cu", "is outside of the archive"),
        ("a/../../twice.cu", "is outside of the archive"),
        ("/etc/twice.cu", "absolute"),
        ("C:/twice.cu", "another operating system"),
        ("..\\twice.cu", "is outside of the archive"),
        ("a\ntwice.cu", "control characters"),
    ],
)
def test_names_that_are_refused(tmp_path: Path, name: str, reason: str) -> None:
    assert reason in archive(tmp_path, name)


def test_backslashes_in_names(tmp_path: Path) -> None:
    """Read an archive from Compress-Archive of Windows PowerShell, which writes backslashes instead of slashes."""
    members: dict[str, bytes | str] = {"hw\\": b"", "hw\\twice.cu": b"kernel"}
    (tmp_path / "ann.zip").write_bytes(zip_of(members))
    (tmp_path / "class.zip").write_bytes(zip_of({f"ann\\{name}": content for name, content in members.items()}))
    (ann,) = find_submissions(tmp_path / "class.zip")
    assert ann.student == "ann" and ann.kernels == {"hw/twice.cu": b"kernel"}
    (tmp_path / "class.zip").unlink()
    assert find_submissions(tmp_path)[0].kernels == {"hw/twice.cu": b"kernel"}
    (tmp_path / "bob.zip").write_bytes(zip_of({"exercises\\day01_start\\twice.cu": "kernel"}))
    assert [submission.student for submission in find_submissions(tmp_path / "bob.zip")] == ["bob"]


def test_links_bombs_and_damage(tmp_path: Path) -> None:
    assert "link" in archive(tmp_path, "twice.cu", b"/etc/passwd", external_attr=(stat.S_IFLNK | 0o777) << 16)
    assert "more than 20 MB" in archive(tmp_path, "notes.txt", bytes(21 << 20))
    assert "larger than 1 MB" in archive(tmp_path, "twice.cu", bytes(2 << 20))
    assert "no .cu or .py file, only 'notes.txt'" in archive(tmp_path, "notes.txt", b"hello")
    assert "only 'work.rar'; of archives, only .zip is read" in archive(tmp_path, "work.rar", b"Rar!")
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
    inner = zip_of({"day01/twice.cu": b"kernel"})
    middle = zip_of({"submission.zip": inner})
    (tmp_path / "student.zip").write_bytes(middle)
    assert find_submissions(tmp_path)[0].kernels == {"submission.zip/day01/twice.cu": b"kernel"}
    assert "only 'work.zip/submission.zip'" in archive(tmp_path, "work.zip", middle)
    assert "'work.zip' cannot be read: it is not a readable zip archive" in archive(tmp_path, "work.zip", inner[:-10])
    assert "is outside of the archive" in archive(tmp_path, "work.zip", zip_of({"../twice.cu": b"kernel"}))
    large = zip_of({"twice.cu": bytes(1 << 20)})
    (tmp_path / "student.zip").write_bytes(zip_of({f"{number}.zip": large for number in range(30)}))
    (found,) = find_submissions(tmp_path)
    assert len(found.kernels) == 20 and len(found.unread) == 10 and not found.refused
    assert all("larger than 20 MB together" in reason for reason in found.unread.values())


@pytest.mark.parametrize("folder", [False, True])
def test_a_nested_archive_that_cannot_be_read(tmp_path: Path, folder: bool) -> None:
    """Keep the other kernels and note the reason; count all archives of a submission together."""
    many, one = (zip_of({f"day01/{number}.cu": "kernel" for number in range(count)}) for count in (300, 1))
    packed = {"a.zip": many, "b.zip": many, "c.zip": one[:-10], "twice.cu": b"kernel"}
    if folder:
        (tmp_path / "ann").mkdir()
        for name, content in packed.items():
            (tmp_path / "ann" / name).write_bytes(content)
    else:
        (tmp_path / "ann.zip").write_bytes(zip_of(packed))
    (found,) = find_submissions(tmp_path)
    assert "twice.cu" in found.kernels and len(found.kernels) == 301 and not found.refused
    assert found.unread["b.zip"] == "it holds more than 500 files"
    assert "not a readable zip archive" in found.unread["c.zip"] and len(found.unread) == 2


def test_a_refused_archive_does_not_count_towards_the_limit_of_files(tmp_path: Path) -> None:
    """Read the second archive in a submission although the first one has too many files."""
    many, one = (zip_of({f"{number}.cu": "kernel" for number in range(count)}) for count in (501, 1))
    (tmp_path / "ann.zip").write_bytes(zip_of({"a.zip": many, "b.zip": one}))
    (found,) = find_submissions(tmp_path)
    assert list(found.kernels) == ["b.zip/0.cu"] and found.unread == {"a.zip": "it holds more than 500 files"}


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


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("end", ["_/", "_"], ids=["folders", "no folders"])
def test_a_participant_of_moodle_is_one_submission(tmp_path: Path, packed: bool, end: str) -> None:
    """Moodle writes files and the online text of a student to two folders, or all files without folders."""
    text = f"onlinetext{end}onlinetext.html"
    members = {
        f"Ann Lee_101_assignsubmission_file{end}twice.cu": b"ann",
        f"Ann Lee_101_assignsubmission_{text}": b"<p>",
        f"Ann Lee_102_assignsubmission_file{end}submission.zip": zip_of({"twice.cu": b"another ann"}),
        f"Bob Ray_103_assignsubmission_{text}": b"<p>",
        f"Cem Oz_104_assignsubmission_file{end}report.pdf": b"%PDF",
    }
    place = tmp_path / "class"
    if packed:
        place = tmp_path / "class.zip"
        place.write_bytes(zip_of(members))
    else:
        for name, content in members.items():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            (place / name).write_bytes(content)
    ann, other, bob, cem = find_submissions(place)
    assert ann.student == "Ann Lee_101_assignsubmission_file_" and ann.kernels == {"twice.cu": b"ann"}
    assert list(other.kernels.values()) == [b"another ann"]
    assert bob.student.startswith("Bob Ray_103_") and bob.refused.endswith("file, only 'onlinetext.html'")
    assert cem.student == "Cem Oz_104_assignsubmission_file_" and cem.refused.endswith("file, only 'report.pdf'")


def test_no_student_is_missing_from_an_archive(tmp_path: Path) -> None:
    """List students whose files cannot belong to a submission, as when a folder is graded."""
    members = {
        "ann/twice.cu": b"x",
        "ann/report.pdf": b"%PDF",
        "bob/report.docx": b"",
        "cem/": b"",
        "dan/.DS_Store": b"",
    }
    (tmp_path / "class.zip").write_bytes(zip_of(members))
    found = {submission.student: submission.refused for submission in find_submissions(tmp_path / "class.zip")}
    assert found == {
        "ann": "",
        "bob": "it contains no .cu or .py file, only 'report.docx'",
        "cem": "it contains no .cu or .py file: it is empty",
    }
    canvas = {"leeann_12_501_twice.cu": b"x", "petepdf_13_502_report.pdf": b"%PDF", "notes.pdf": b"%PDF"}
    (tmp_path / "class.zip").write_bytes(zip_of(canvas))
    ann, pete = find_submissions(tmp_path / "class.zip")
    assert ann.student == "leeann_12" and pete.student == "petepdf_13" and "only 'report.pdf'" in pete.refused


def test_archives_of_learning_systems(tmp_path: Path) -> None:
    """Read archives in students' folders, names in upper case, macOS metadata, and files outside archives."""
    moodle = tmp_path / "Jörg_1_file_"
    moodle.mkdir()
    (moodle / "work.zip").write_bytes(zip_of({"day01/TWICE.CU": "kernel", "day01/._twice.cu": "metadata"}))
    (tmp_path / "ann_twice.cu").write_text("kernel")
    (tmp_path / "bob.rar").write_text("Rar!")
    (tmp_path / "list.xlsx").write_text("no submission")
    kernels = {
        submission.student: (submission.kernels, submission.refused) for submission in find_submissions(tmp_path)
    }
    assert kernels.pop("Jörg_1_file_") == ({"work.zip/day01/TWICE.CU": b"kernel"}, "")
    assert set(kernels) == {"ann_twice.cu", "bob.rar"}
    assert all(not files and "neither a folder nor a zip" in reason for files, reason in kernels.values())
    (moodle / "work.zip").write_bytes(zip_of({"../twice.cu": "kernel"}))
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
        (tmp_path / name).write_bytes(zip_of({member: "kernel"}))
    found = {submission.student: submission for submission in find_submissions(tmp_path)}
    assert {student: sorted(submission.kernels) for student, submission in found.items()} == {
        "doejohn_12": ["thrice-1.cu", "twice.cu"],
        "doejohn_13": ["twice.cu"],
        "leeann_15": ["one.zip/twice.cu", "two.zip/thrice.cu"],
        "poe_16": ["twice.cu"],
        "roe_14": [],
    }
    assert "only 'twice.txt'" in found["roe_14"].refused
    (tmp_path / "leeann_15_309_two.zip").write_bytes((tmp_path / "leeann_15_306_two.zip").read_bytes())
    assert any("holds 'two.zip' twice" in submission.refused for submission in find_submissions(tmp_path))


def test_a_new_attempt_in_canvas_replaces_the_results(course: Course, tmp_path: Path) -> None:
    """Keep the folder of results, and name the new attachment, whose number the feedback needs."""
    entry, out = course.find("twice"), tmp_path / "out"
    folder = tmp_path / "class"
    folder.mkdir()

    def submit(name: str) -> None:
        (folder / name).write_bytes(zip_of({"notes.txt": "no kernel"}))

    def graded() -> dict[str, str]:
        session = Session(course, find_submissions(folder), out, exercises=(entry.name,))
        found = {result.student: result.submission for result in session.run(lambda *_: None)}
        assert len(list(out.glob("*/results.json"))) == 2
        return found

    submit("doejohn_12_301_work.zip")
    submit("roe_13_302_work.zip")
    assert graded() == {"doejohn_12": "doejohn_12_301_work.zip", "roe_13": "roe_13_302_work.zip"}
    (folder / "doejohn_12_301_work.zip").unlink()
    submit("doejohn_LATE_12_401_work-1.zip")
    assert graded() == {"doejohn_12": "doejohn_LATE_12_401_work-1.zip", "roe_13": "roe_13_302_work.zip"}


def test_other_attachments_of_a_student_in_canvas(tmp_path: Path) -> None:
    """Name the submission after its archive, read the nickname, and report files that are not read."""
    for name in ("ann_1_10_a.cu", "ann_1_11_notes.7z", "ann_1_12_leaderboard.txt", "bob_2_13_b.cu"):
        (tmp_path / name).write_text("Ace")
    (tmp_path / "ann_1_14_work.zip").write_bytes(zip_of({"twice.cu": "kernel"}))
    ann, bob = sorted(find_submissions(tmp_path), key=lambda submission: submission.student)
    assert (ann.student, ann.path.name) == ("ann_1", "ann_1_14_work.zip") and sorted(ann.kernels) == [
        "a.cu",
        "work.zip/twice.cu",
    ]
    assert ann.nickname == "Ace" and list(ann.unread) == ["notes.7z"]
    assert list(bob.kernels) == ["b.cu"] and not bob.unread


def test_other_names_in_canvas(tmp_path: Path) -> None:
    """Read groups, anonymous students and files that do not come from Canvas; list students without an attachment."""
    for name in (
        "1stteam_21_401_twice.cu",
        "team_of_bo_LATE_22_402_twice.cu",
        "anon_aB3dE_403_twice.cu",
        "LATE_anon_xY9zW_404_twice.cu",
        "eve_LATE_25_text.html",
        "roe_26_link.html",
    ):
        (tmp_path / name).write_text("kernel")
    (tmp_path / "by_mail.zip").write_bytes(zip_of({"twice.cu": "kernel"}))
    members = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    (tmp_path / "class.zip").write_bytes(zip_of(members))
    packed = find_submissions(tmp_path / "class.zip")
    (tmp_path / "class.zip").unlink()
    for submissions in (find_submissions(tmp_path), packed):
        assert {submission.student: submission.refused for submission in submissions} == {
            "1stteam_21": "",
            "team_of_bo_22": "",
            "anon_aB3dE": "",
            "anon_xY9zW": "",
            "eve_25": "it contains no .cu or .py file, only 'text.html'",
            "roe_26": "it contains no .cu or .py file, only 'link.html'",
            "by_mail": "",
        }


def test_a_copy_of_the_course(tmp_path: Path) -> None:
    """Read only the exercises of a clone, or of an archive of it, and no hidden folder."""
    kernel = "exercises/day01_start/twice.cu"
    names = [kernel, "exercises/course.toml", "solutions/day01_start/twice.cu", "grader/twice.py", ".git/hooks/x.py"]
    names += [f"lessons/{number}.cu" for number in range(MOST_ENTRIES)]
    for name in names:
        (tmp_path / "class/ann" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "class/ann" / name).touch()
    (tmp_path / "class/ann/.venv").symlink_to("/usr", target_is_directory=True)
    packed = zip_of({f"ann-main/{name}": b"" for name in names})
    (tmp_path / "class/bob.zip").write_bytes(packed)
    (tmp_path / "github.zip").write_bytes(packed)
    ann, bob = find_submissions(tmp_path / "class")
    (alone,) = find_submissions(tmp_path / "github.zip")
    assert list(ann.kernels) == list(alone.kernels) == [kernel] and not ann.refused
    assert list(bob.kernels) == [f"ann-main/{kernel}"] and not bob.refused


def test_many_copies_of_the_course_are_refused_in_linear_time() -> None:
    """Count the comparisons of names: an archive of 20 MB has room for 160,000 copies of the course."""

    class Name(str):
        comparisons = 0

        def replace(self, *_: object) -> str:
            return self

        def startswith(self, prefixes: tuple[str, ...], *_: object) -> bool:
            Name.comparisons += len(prefixes)
            return super().startswith(prefixes)

    members = [zipfile.ZipInfo("x") for _ in range(4 * MOST_ENTRIES)]
    for number, member in enumerate(members):
        member.filename = Name(f"{number}/{COURSE}")
    assert len(_without_course(members)) > MOST_ENTRIES  # the caller refuses that many
    assert Name.comparisons <= 2 * (MOST_ENTRIES + 1) * len(members)


@pytest.mark.parametrize("packed", [False, True])
def test_one_folder_with_the_whole_class(tmp_path: Path, packed: bool) -> None:
    """Read the students in the folder that Gradescope, macOS and Windows pack a class into."""

    def students(*names: str) -> list[str]:
        place = tmp_path / f"{len(list(tmp_path.iterdir()))}.zip"
        if packed:
            place.write_bytes(zip_of({name: "kernel" for name in names}))
        else:
            for name in names:
                (place / name).parent.mkdir(parents=True, exist_ok=True)
                (place / name).write_text("kernel")
        return [submission.student for submission in find_submissions(place)]

    metadata = "assignment_5_export/submission_metadata.yml"
    folders = [f"assignment_5_export/submission_{name}" for name in ("1/twice.cu", "2/twice.cu", "3/report.pdf")]
    assert students(metadata, *folders, "__MACOSX/x") == ["submission_1", "submission_2", "submission_3"]
    canvas = ["hw/ann_3_1_twice.cu", "hw/bob_4_2_twice.cu", "hw/eve_5_text.html"]
    assert students(*canvas) == ["ann_3", "bob_4", "eve_5"]
    ends = ["1_assignsubmission_file/twice.cu", "2_assignsubmission_onlinetext/onlinetext.html"]
    assert len(students(*(f"hw/Ann_{end}" for end in ends))) == 2
    assert students("ann/twice.cu", "ann/old/twice.cu", "ann/notes/x.cu") == ["ann"]
    assert students("ann/day01_residual_add/twice.cu", "ann/day02_reductions/x.cu") == ["ann"]
    assert students("ann/exercises/day01/twice.cu", "ann/solutions/day01/twice.cu") == ["ann"]
    assert students("ann/twice/twice.cu") == ["ann"]
    alone = "Ann_1_assignsubmission_file"
    assert students(f"{alone}/src/twice.cu", f"{alone}/old/twice.cu") == [alone]


def test_an_export_of_gradescope_with_one_submission(tmp_path: Path) -> None:
    members = {"assignment_5_export/submission_metadata.yml": b"", "assignment_5_export/submission_1/twice.cu": b"x"}
    (tmp_path / "class.zip").write_bytes(zip_of(members))
    notes: list[str] = []
    (alone,) = find_submissions(tmp_path / "class.zip", notes.append)
    assert alone.student == "submission_1" and list(alone.kernels) == ["twice.cu"] and not notes


@pytest.mark.parametrize(
    ("folders", "students", "note"),
    [
        (
            ["old", "src"],
            ["old", "src"],
            "'hw' was read as a class of 2 students: 'old', 'src'. If 'hw' is one student's work, put a zip archive of "
            "it in its place.",
        ),
        (["src"], ["hw"], "'hw' was read as one student. If 'src' in it is the student, grade the folder 'hw'."),
    ],
)
def test_a_note_says_how_an_ambiguous_folder_was_read(
    tmp_path: Path, folders: list[str], students: list[str], note: str
) -> None:
    for name in folders:
        (tmp_path / "class/hw" / name).mkdir(parents=True)
        (tmp_path / "class/hw" / name / "twice.cu").write_text("kernel")
    notes: list[str] = []
    assert [found.student for found in find_submissions(tmp_path / "class", notes.append)] == students
    assert notes == [note]
    # the advice of the note
    if len(folders) == 1:
        assert [found.student for found in find_submissions(tmp_path / "class/hw")] == ["src"]
    else:
        shutil.rmtree(tmp_path / "class/hw")
        (tmp_path / "class/hw.zip").write_bytes(zip_of({f"hw/{name}/twice.cu": b"" for name in folders}))
        assert [found.student for found in find_submissions(tmp_path / "class", notes.append)] == ["hw"]
    assert notes == [note]


@pytest.mark.parametrize(
    ("kernels", "certain"),
    [
        (["ann/twice.cu", "bob/twice.cu"], True),
        (["Doe_Ann_123/twice.cu", "Roe_Bob_124/day01/twice.cu", "Roe_Bob_124/copy.cu"], True),
        (["ann.zip", "bob.zip"], True),
        (["ann/twice.cu", "bob/copy.cu"], False),
        (["ann/twice.cu", "bob/notes.txt"], False),
        (["old/twice.cu", "src/twice.cu"], False),
        (["ann/twice.cu", "ann_final/twice.cu"], False),
        (["v1/twice.cu", "v2/twice.cu"], False),
        (["1/twice.cu", "2/twice.cu"], False),
        (["s1/twice.cu", "s2/twice.cu"], False),
    ],
)
def test_a_note_is_written_only_if_the_reading_is_doubtful(tmp_path: Path, kernels: list[str], certain: bool) -> None:
    content = {name: zip_of({"twice.cu": "kernel"}) if name.endswith(".zip") else b"kernel" for name in kernels}
    (tmp_path / "class.zip").write_bytes(zip_of({f"hw/{name}": each for name, each in content.items()}))
    notes: list[str] = []
    assert len(find_submissions(tmp_path / "class.zip", notes.append)) == 2
    assert [note[:25] for note in notes] == ([] if certain else ["'hw' was read as a class "])


@pytest.mark.parametrize(
    "names",
    [
        ["lab_3_01_ann.zip", "lab_3_02_bob.zip"],
        ["lab_3_1_ann.zip", "lab_3_2_bob.zip"],
        ["hw1_2026_11_ann.zip", "hw1_2026_11_bob.zip", "hw1_2026_12_eve.zip"],
        ["doe_12_301_work.zip", "roe_12_302_work.zip"],
        ["ann.zip", "doe_12_301_work.zip"],
        ["lab_3_1_ann.zip", "lab_3_2_bob.zip", "lab_4_3_ann.zip"],
        ["ann_3_1_work.zip", "ann_3_2_work.zip", "bob_3_3_work.zip"],
        ["ann_3_1_a.zip", "ann_3_2_b.zip", "bob_4_1_a.zip"],
    ],
)
def test_names_that_only_look_like_attachments(tmp_path: Path, names: list[str]) -> None:
    """Keep archives apart where the names of the folder do not fit Canvas."""
    for name in names:
        (tmp_path / name).write_bytes(zip_of({"twice.cu": "kernel"}))
    assert [submission.path.name for submission in find_submissions(tmp_path)] == sorted(names)


def test_the_file_that_is_graded(tmp_path: Path, course: Course) -> None:
    """Prefer a file outside of nested archives, then one in the course's folders."""
    entry = course.find("twice")
    file = entry.skeleton.name
    session = Session(course, [], tmp_path)
    for better, worse in (
        (f"old/deep/{file}", f"a.zip/{entry.day}/{file}"),
        (f"exercises/{entry.day}/{file}", f"old/{file}"),
        (f"{entry.day}/{file}", file),
        (f"a.zip/exercises/{entry.day}/{file}", f"a.zip/{file}"),
        (file, f"backup/{entry.day}/{file}"),
    ):
        submission = Submission("ann", tmp_path, kernels={worse: b"worse", better: b"better"})
        assert session._kernels(submission)[entry.name] == (better, b"better")
    submission.unread = {"b.zip": "it is damaged"}
    assert any("b.zip (it is damaged)" in remark for remark in session._remarks(submission))


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "cp1252"])
def test_text_encodings_and_line_ends(encoding: str) -> None:
    assert "// größer" in in_utf8("// größer\r\n".encode(encoding)).decode()
