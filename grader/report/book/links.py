"""Translation of links: lessons link to files of the repository; in the book, these become links to its pages."""

from __future__ import annotations

import os
import re
from pathlib import Path

LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(([^()\s]+)\)")
FENCE = re.compile(r"(^```.*?^```)", re.MULTILINE | re.DOTALL)
ELSEWHERE = re.compile(r"[a-z]+:|#")


class Links:
    """A translator of links. It records the linked files, for which the book needs pages."""

    def __init__(self, root: Path, pages: set[str]) -> None:
        """``pages``: files with their own page, as paths from the course's folder, such as ``lessons/faq.md``."""
        self.root = root
        self.pages = pages
        self.files: list[str] = []
        """The linked files that need a page, as paths from the course's folder, without duplicates."""

    def rewrite(self, text: str, page: str) -> str:
        """Return a page's Markdown with links for the book. ``page``: its path from the course's folder."""
        parts = FENCE.split(text)
        parts[::2] = [LINK.sub(lambda link: self._link(link[1], link[2], page), part) for part in parts[::2]]
        return "".join(parts)

    def _link(self, words: str, target: str, page: str) -> str:
        if ELSEWHERE.match(target):
            return f"[{words}]({target})"
        path = target.partition("#")[0]
        found = os.path.normpath(os.path.join(os.path.dirname(page), path))
        if found.split("/")[0] == "solutions":
            return words  # the book does not reveal solutions
        if found in self.pages or not (self.root / found).exists():
            return f"[{words}]({target})"
        if found not in self.files:
            self.files.append(found)
        return f"[{words}]({relative(page_of(found), page)})"


def page_of(file: str) -> str:
    """Return the path, in the book's source, of the page that shows a file of the repository."""
    return f"files/{file}.md"


def relative(target: str, page: str) -> str:
    """Return the relative path to ``target`` from ``page``."""
    return os.path.relpath(target, os.path.dirname(page) or ".")


def escaped(text: str) -> str:
    """Escape plain text for Markdown; ```code``` stays code."""
    parts = re.split(r"(`[^`]+`)", text)
    parts[::2] = [re.sub(r"([\\*_<>\[\]$|`])", r"\\\1", part) for part in parts[::2]]
    return "".join(parts)
