"""What lessons import: verdicts, sources with counters, pictures of memory accesses, rooflines, recorded tables."""

from __future__ import annotations
