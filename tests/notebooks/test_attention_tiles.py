"""Day 6 times version 4 with other tiles. Each variant must be right, here on the simulator."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch

from grader.setup.errors import GraderError
from tests.notebooks.lessons import ROOT

LESSON = ROOT / "lessons" / "day06_flash_attention"


@pytest.fixture(scope="module")
def tiles() -> ModuleType:
    """Import measure_tiles.py, which imports measure.py from its own folder."""
    spec = importlib.util.spec_from_file_location("day06_measure_tiles", LESSON / "measure_tiles.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [*sys.path])
        patch.delitem(sys.modules, "measure", raising=False)
        spec.loader.exec_module(module)
        sys.modules.pop("measure", None)
    return module


@pytest.mark.parametrize("queries", [32, 256])
def test_version_4_is_right_with_other_tiles(tiles: ModuleType, queries: int, tmp_path: Path) -> None:
    torch.manual_seed(6)
    tiles.checked(queries, tmp_path, "cpu")


def test_a_wrong_variant_is_not_timed(tiles: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = tiles.variant(32)
    monkeypatch.setattr(tiles, "variant", lambda queries: whole.replace("l[i] *= correction;", ""))
    with pytest.raises((SystemExit, GraderError), match="wrong result"):
        tiles.checked(32, tmp_path, "cpu")
