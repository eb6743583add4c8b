"""The check of a site reports external resources and dead links, but not plain links to other sites."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.report.book.offline import problems


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.html", '<script src="https://cdn.example/x.js"></script>'),
        ("a.html", '<link rel="stylesheet" href="//cdn.example/x.css">'),
        ("a.html", '<img srcset="https://cdn.example/x.png 2x">'),
        ("a.html", '<p style="background: url(https://cdn.example/x.png)">'),
        ("a.html", "<style>@import 'https://cdn.example/x.css';</style>"),
        ("a.html", '<script>fetch("https://cdn.example/x.json")</script>'),
        ("a.css", '@font-face { src: url("https://cdn.example/x.woff2") }'),
        ("a.js", 'const s = document.createElement("script"); s.src = "https://cdn.example/x.js";'),
        ("a.js", 'import x from "https://cdn.example/x.js";'),
        ("a.js", 'request.open("GET", "https://cdn.example/x.json")'),
    ],
)
def test_external_resources_are_reported(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    (found,) = problems(tmp_path)
    assert found.startswith(f"{name} loads ") and "cdn.example/x" in found


@pytest.mark.parametrize(
    ("link", "says"),
    [
        ("gone.html", "missing file: gone.html"),
        ("b.html#gone", "missing anchor: b.html#gone"),
        ("#gone", "missing anchor"),
        ("../b.html", "outside of the site"),
    ],
)
def test_a_dead_link_is_reported(tmp_path: Path, link: str, says: str) -> None:
    (tmp_path / "a.html").write_text(f'<a href="{link}">x</a>')
    (tmp_path / "b.html").write_text('<h1 id="here">x</h1>')
    (found,) = problems(tmp_path)
    assert found.startswith("a.html links to" if "outside" not in says else "a.html is outside") and says in found


def test_a_correct_site_has_no_problems(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "x.js").write_text('// see https://a.example\nconst link = "https://a.example/page";')
    (tmp_path / "sub" / "b.html").write_text('<h1 id="here">x</h1><a href="../a.html">a</a>')
    (tmp_path / "a.html").write_text(
        '<script src="x.js"></script><a href="https://a.example">out</a><a href="sub/b.html#here">b</a>'
        '<img src="data:image/png;base64,aGk="><pre>fetch("https://a.example")</pre><a href="#">top</a>'
    )
    assert problems(tmp_path) == []
