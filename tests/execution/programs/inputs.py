"""Small generated inputs for public programs whose repositories contain none.

Each function returns text in the format of one program. The text is the same in every run.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterable
from pathlib import Path


def write(name: str, folder: Path) -> None:
    """Write the input with this name (a file path) below a folder."""
    place = folder / name
    place.parent.mkdir(parents=True, exist_ok=True)
    made = MAKERS[name]()
    place.write_bytes(made if isinstance(made, bytes) else made.encode())


def _lines(rows: Iterable[object]) -> str:
    return "".join(f"{row}\n" for row in rows)


def _numbers(count: int, low: float, high: float) -> str:
    draw = random.Random(count)
    return _lines(f"{draw.uniform(low, high):.6f}" for _ in range(count))


def _keys() -> str:
    return _lines([1000, *range(1000)])


def _graph(nodes: int = 1000, degree: int = 4) -> str:
    """Return a ring of nodes with shortcuts.

    The text lists each node's first edge and number of edges, then the source, then the edges with their costs.
    """
    draw = random.Random(nodes)
    edges = [(n + 1) % nodes if e == 0 else draw.randrange(nodes) for n in range(nodes) for e in range(degree)]
    rows = [nodes, *(f"{n * degree} {degree}" for n in range(nodes)), "", 0, "", len(edges)]
    return _lines([*rows, *(f"{to} 1" for to in edges)])


def _mesh(elements: int = 192) -> str:
    """Return a chain of cells: for each its area and its four neighbors (1-based; -2 is the far field) with normals."""
    rows: list[str] = [str(elements)]
    for element in range(1, elements + 1):
        around = (element - 1 or -2, element + 1 if element < elements else -2, -1, -1)
        normals = ("-1 0 0", "1 0 0", "0 -1 0", "0 1 0")
        rows.append(" ".join(["1.0", *(f"{there} {normal}" for there, normal in zip(around, normals, strict=True))]))
    return _lines(rows)


def _points(count: int = 100, features: int = 8) -> str:
    draw = random.Random(count)
    return _lines(" ".join([str(i), *(f"{draw.random():.4f}" for _ in range(features))]) for i in range(count))


def _storms(seed: int, count: int = 100) -> str:
    """Return records of 48 characters, with latitude and longitude in columns 28 to 32 and 33 to 37."""
    draw = random.Random(seed)
    places = ((draw.uniform(7, 63), draw.uniform(10, 358)) for _ in range(count))
    return _lines(
        f"{2000 + i % 24:4} 09 12 18 {i:<13}{at:5.1f} {to:5.1f}  32  410"[:48].ljust(48)
        for i, (at, to) in enumerate(places)
    )


def _image(columns: int = 64, rows: int = 64) -> str:
    draw = random.Random(rows)
    return _lines(["P2", f"{columns} {rows}", 255, *(draw.randrange(1, 255) for _ in range(columns * rows))])


def _pixels(columns: int = 192, rows: int = 192) -> bytes:
    """Return three bytes for each pixel, without a header."""
    return bytes((x * y + 40 * c) % 256 for y in range(rows) for x in range(columns) for c in range(3))


def _symbols(count: int = 1 << 14) -> bytes:
    draw = random.Random(count)
    return struct.pack(
        f"<{count}I", *(sum(draw.choices(range(8), (64, 32, 16, 8, 4, 2, 1, 1), k=1)) for _ in range(count))
    )


MAKERS: dict[str, Callable[[], str | bytes]] = {
    "data/b+tree/keys.txt": _keys,
    "data/b+tree/commands.txt": lambda: "j 100 30\nk 200\n",
    "data/bfs/graph.txt": _graph,
    "data/cfd/chain.txt": _mesh,
    "data/dwt2d/pixels.bmp": _pixels,
    "data/hotspot/temperatures": lambda: _numbers(64 * 64, 320, 340),
    "data/hotspot/powers": lambda: _numbers(64 * 64, 0, 0.001),
    "data/hotspot3D/temperatures": lambda: _numbers(64 * 64 * 4, 320, 340),
    "data/hotspot3D/powers": lambda: _numbers(64 * 64 * 4, 0, 0.001),
    "data/huffman/symbols.in": _symbols,
    "data/hybridsort/numbers": lambda: _numbers(20000, 0, 1000),
    "data/kmeans/points": _points,
    "data/myocyte/y.txt": lambda: _numbers(91, 0.1, 1),
    "data/myocyte/params.txt": lambda: _numbers(18, 0.1, 1),
    **{f"data/nn/cane4_{i}.db": (lambda seed=i: _storms(seed)) for i in range(4)},  # type: ignore[misc]
    "data/srad/image.pgm": _image,
}
"""Inputs by their path relative to the repository."""
