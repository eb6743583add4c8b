"""Writes Sphinx's sources, runs Sphinx and checks the result."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
from pathlib import Path
from typing import Any

from grader.course import Course
from grader.judge.timing.goals import reached
from grader.report.book import exercises, files, front, lessons, offline, references
from grader.report.book.links import Links
from grader.report.goals import goals_page
from grader.setup.errors import GraderError

NEEDED = ("sphinx", "myst_nb", "furo", "sphinx-mathjax-offline")
INSTALL = "Install the requirements: pip install -c constraints.txt -e '.[book]' (or run `make book`)."


def missing() -> list[str]:
    """Return the packages that the book needs and this Python lacks."""
    return [name for name in NEEDED if importlib.util.find_spec(name) is None]


def build(course: Course, out: Path) -> Path:
    """Build the book into the folder ``out``; return the front page's path. Raise GraderError for an invalid page."""
    if lacking := missing():
        raise GraderError(f"the book needs {', '.join(lacking)}, which this Python does not have", INSTALL)
    source, html = out / "source", out / "html"
    for folder in (source, html):
        shutil.rmtree(folder, ignore_errors=True)
    write_sources(course, source)
    run_sphinx(course, source, html)
    for page in html.rglob("*.html"):
        finish(page)
    if problems := offline.problems(html):
        listed = "\n".join(f"  {problem}" for problem in problems[:20])
        raise GraderError(f"{len(problems)} errors in {html}:\n{listed}", "Correct the lessons that these pages show.")
    return html / "index.html"


def write_sources(course: Course, source: Path) -> None:
    """Write the source of every page, Markdown or a notebook, at the path that it has in the repository."""
    root = course.root
    notebooks = sorted(p.relative_to(root).as_posix() for p in root.glob("lessons/*/lesson.ipynb"))
    texts = sorted(p.relative_to(root).as_posix() for p in root.glob("lessons/*.md"))
    days = {f"lessons/{day.folder}/lesson.ipynb": day for day in course.days}
    # A notebook that is not in course.toml belongs to no day.
    notebooks = [path for path in notebooks if path in days or not path.startswith("lessons/day")]
    links = Links(root, {*notebooks, *texts})
    pages = {}
    for path in notebooks:
        pages[path] = lessons.page((root / path).read_text(encoding="utf-8"), path, links, days.get(path))
    for path in texts:
        pages[path] = links.rewrite((root / path).read_text(encoding="utf-8"), path)
    for entry in course.exercises:
        pages[f"exercises/{entry.name}.md"] = exercises.page(course, entry)
    pages |= files.pages(root, links)
    pages["references.md"] = references.page(course)
    pages["goals.md"] = goals_page(course, reached(root))
    more = [*(p for p in notebooks if p not in days), "goals.md", "references.md"]
    pages["index.md"] = front.page(course, [*texts, *more])
    for path, text in pages.items():
        (source / path).parent.mkdir(parents=True, exist_ok=True)
        (source / path).write_text(text, encoding="utf-8")


def run_sphinx(course: Course, source: Path, html: Path) -> None:
    """Convert the sources to HTML. Print Sphinx's warnings; raise a GraderError for its errors."""
    from sphinx.application import Sphinx
    from sphinx.errors import SphinxError
    from sphinx.util.docutils import docutils_namespace, patch_docutils

    static = source / "_static"
    static.mkdir()
    shutil.copy(Path(__file__).with_name("book.css"), static)
    _copy_mathjax(static / "mathjax")
    try:
        with patch_docutils(), docutils_namespace():
            app = Sphinx(
                srcdir=source,
                confdir=None,
                outdir=html,
                doctreedir=html.with_name("doctrees"),
                buildername="html",
                confoverrides=settings(course),
                status=None,
                freshenv=True,
                parallel=len(os.sched_getaffinity(0)),
            )
            app.build()
    except SphinxError as error:
        raise GraderError(f"Sphinx: {error}") from error


def finish(page: Path) -> None:
    """Correct heading levels, and make scrolling parts focusable, for screen readers and keyboards.

    Sphinx does neither.
    """
    text = page.read_text(encoding="utf-8")
    text = text.replace('<p class="caption" role="heading">', '<p class="caption" role="heading" aria-level="2">')
    text = re.sub(r"<pre(?![^>]*tabindex)", '<pre tabindex="0"', text)
    text = re.sub(r'<div class="(math [^"]*|table-wrapper[^"]*)"', r'<div tabindex="0" class="\1"', text)
    text = re.sub(r'(<img [^>]*src="[^"]*_images/[^>]*>)', r'<div class="picture" tabindex="0">\1</div>', text)
    page.write_text(text, encoding="utf-8")


def settings(course: Course) -> dict[str, Any]:
    """Return Sphinx's configuration."""
    return {
        "project": course.manifest.title,
        "extensions": ["myst_nb", "sphinx.ext.mathjax"],
        "nb_execution_mode": "off",  # do not run notebooks: show their stored outputs
        "nb_ipywidgets_js": {},
        "nb_code_prompt_show": "Show the code",
        "nb_code_prompt_hide": "Hide the code",
        "myst_enable_extensions": ["dollarmath"],
        "myst_heading_anchors": 4,
        "exclude_patterns": ["_static"],
        "html_theme": "furo",
        "html_title": course.manifest.title,
        "html_static_path": ["_static"],
        "html_css_files": ["book.css"],
        "html_show_copyright": False,
        "html_copy_source": False,
        "html_show_sourcelink": False,
        "html_show_search_summary": False,  # a page from a local file must not fetch the summaries
        "mathjax_path": "mathjax/tex-chtml.js",
        "mathjax3_config": {"options": {"enableMenu": False}},
        "highlight_language": "none",
        "pygments_style": "a11y-high-contrast-light",  # the theme's own style, with a dark variant
    }


def _copy_mathjax(to: Path) -> None:
    """Copy MathJax and its fonts, which pages would otherwise load from another server."""
    package = importlib.util.find_spec("sphinx-mathjax-offline")
    assert package and package.origin
    mathjax = Path(package.origin).parent / "static" / "mathjax"
    fonts = Path("output") / "chtml" / "fonts" / "woff-v2"
    shutil.copytree(mathjax / fonts, to / fonts)
    shutil.copy(mathjax / "tex-chtml.js", to)
