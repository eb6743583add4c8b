"""Load Python files of other days' lessons, which are not packages."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

LESSONS = Path(__file__).resolve().parents[2]


def day(folder: str, name: str) -> ModuleType:
    """Load a lesson's Python file as a module, as in day("day10_paged_attention", "allocator")."""
    known = f"{folder}.{name}"
    if known not in sys.modules:
        spec = importlib.util.spec_from_file_location(known, LESSONS / folder / f"{name}.py")
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[known] = module  # dataclasses look up their module here
        sys.path.append(str(LESSONS / folder))  # for the imports of the loaded file
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[known]
            raise
        finally:
            sys.path.remove(str(LESSONS / folder))
    return sys.modules[known]
