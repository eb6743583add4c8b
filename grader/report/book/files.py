"""Pages for the files and folders that lessons link to, mainly kernels. A folder's page lists its files."""

from __future__ import annotations

from pathlib import Path

from grader.report.book.links import Links, page_of, relative

LANGUAGES = {".cu": "cuda", ".cuh": "cuda", ".py": "python", ".toml": "toml"}
SHOWN = (*LANGUAGES, ".md", ".txt")
"""The suffixes of the files that a folder's page lists."""


def pages(root: Path, links: Links) -> dict[str, str]:
    """Return the pages as Markdown, by path: one for each linked file or folder, and for each file in such a folder."""
    written = {}
    waiting = list(links.files)
    while waiting:
        file = waiting.pop()
        if page_of(file) in written:
            continue
        path = root / file
        if path.is_dir():
            inside = sorted(p.relative_to(root).as_posix() for p in path.rglob("*") if p.suffix in SHOWN)
            waiting += inside
            here = page_of(file)
            body = "\n".join(f"- [{Path(p).relative_to(file)}]({relative(page_of(p), here)})" for p in inside)
        else:
            body = f"````{LANGUAGES.get(path.suffix, 'text')}\n{path.read_text(encoding='utf-8').rstrip()}\n````"
        written[page_of(file)] = f"---\norphan: true\n---\n\n# {path.name}\n\n`{file}`\n\n{body}\n"
    return written
