"""Functions for lessons: verdicts, sources with counters, pictures of memory accesses, rooflines, recorded tables.

A lesson begins with::

    from grader import load_kernel
    from grader.report.notebook import lesson, show, show_source, verdict

    HERE = lesson("day06_flash_attention")   # finds the lesson's folder from any working folder; sets the style of
    figures
"""

from __future__ import annotations

from typing import Any

_HOMES = {
    "accesses": ["Request", "compare", "draw_banks", "draw_sectors", "pattern", "requests"],
    "bounds": ["bounds_plot", "recorded_bounds"],
    "gpus": ["GPUS", "Gpu"],
    "pictures.attention": ["draw_band", "draw_merge", "draw_ownership", "draw_tile_route"],
    "pictures.barriers": ["draw_mbarrier"],
    "pictures.cache": ["draw_cache_layout"],
    "pictures.gpu": ["draw_gpu", "draw_warps"],
    "pictures.limits": ["draw_limits"],
    "pictures.rotation": ["draw_pairs"],
    "pictures.tiles": ["draw_double_buffering", "draw_register_tile", "draw_tile_banks"],
    "places": ["lesson"],
    "player": ["play"],
    "prediction": ["predict"],
    "recorded": ["h200_goals", "h200_profiles", "h200_table", "library_times", "measure_here"],
    "rooflines": ["intensity", "least_seconds", "roofline", "rooflines_here"],
    "source": ["show_source"],
    "verdicts": ["counts", "explain", "show", "verdict"],
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = sorted(_HOME_OF)  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    """Import a name on first use. ``canonical`` and ``execute`` use no name, so they start quickly."""
    if name in _HOME_OF:
        import importlib

        return getattr(importlib.import_module(f"grader.report.notebook.{_HOME_OF[name]}"), name)
    raise AttributeError(f"module 'grader.report.notebook' has no attribute {name!r}")
