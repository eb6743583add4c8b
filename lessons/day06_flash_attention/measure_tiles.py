"""Time version 4 with other tiles on the first GPU of the machine that runs this script.

    python lessons/day06_flash_attention/measure_tiles.py   print a table

The tiles have 32 to 256 queries and 64 keys. The tile is a constant of
attention_4_register_tiles.cu; each variant is a copy with another constant. A
tile that does not fit on an SM of this GPU is left out. One batch of 16 heads,
head_dim 64, no mask, as many keys as queries.
"""

from __future__ import annotations

import argparse
import datetime
import json
import sys
import tempfile
from pathlib import Path

import torch

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1])]

from measure import HEAD_DIM, HEADS, Run, microseconds  # noqa: E402

from grader import load_kernel  # noqa: E402  (the course need not be installed)
from grader.judge.timing.sources import write_record  # noqa: E402

VERSION_4 = HERE / "attention_4_register_tiles.cu"
CONSTANT = "constexpr int kGroups = 16;"
QUERIES, KEYS = (32, 64, 128, 256), 64
LENGTHS = (1024, 4096)


def variant(queries: int) -> str:
    """Return the text of version 4 with tiles of ``queries`` queries."""
    text = VERSION_4.read_text(encoding="utf-8")
    assert text.count(CONSTANT) == 1, f"{VERSION_4.name} has no line {CONSTANT!r}"
    return text.replace(CONSTANT, f"constexpr int kGroups = {queries // 8};")


def shared_bytes(queries: int) -> int:
    """Return the shared memory of a block: padded tiles of q, k, v and of the weights."""
    return 4 * ((queries + KEYS) * (HEAD_DIM + 4) + KEYS * HEAD_DIM + queries * (KEYS + 8))


def checked(queries: int, folder: Path, device: str) -> Run:
    """Build a variant in ``folder`` and compare it with torch at a length that no tile divides; return its function."""
    file = folder / "attention.cu"
    file.write_text(variant(queries), encoding="utf-8")
    kernel = load_kernel(file, device=device)

    def run(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(q)
        heads, length = q.shape[1], q.shape[2]
        kernel.attention(q, k, v, out, heads, length, length, HEAD_DIM, HEAD_DIM**-0.5, False)
        return out

    q, k, v = (torch.randn(1, 2, 301, HEAD_DIM, device=device) for _ in range(3))
    expected = torch.nn.functional.scaled_dot_product_attention(q.double(), k.double(), v.double())
    if not (run(q, k, v) - expected).abs().max() < 1e-4:
        raise SystemExit(f"tiles of {queries} queries give a wrong result, so nothing is measured")
    return run


def timed(queries: int) -> dict[str, float]:
    """Return the microseconds of one tile for each length."""
    with tempfile.TemporaryDirectory() as folder:
        run = checked(queries, Path(folder), "cuda")
        found = {}
        for length in LENGTHS:
            inputs = [torch.randn(1, HEADS, length, HEAD_DIM, device="cuda") for _ in range(3)]
            found[str(length)] = round(microseconds(run, inputs), 1)
        return found


def main() -> int:
    """Time each tile that fits, and print or record the times."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", action="store_true", help="also write tiles_gpu.json, which the lesson shows")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        parser.error("this needs a GPU, and torch with CUDA")
    torch.manual_seed(6)
    most = torch.cuda.get_device_properties(0).shared_memory_per_block_optin
    tiles = {f"{queries} x {KEYS}": timed(queries) for queries in QUERIES if shared_bytes(queries) <= most}
    found = {
        "version": 1,
        "gpu": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "date": datetime.date.today().isoformat(),
        "command": "python lessons/day06_flash_attention/measure_tiles.py --record",
        "microseconds": tiles,
    }
    print(json.dumps(found, indent=1))
    if options.record:
        write_record(HERE / "tiles_gpu.json", found, HERE.parents[1])
    return 0


if __name__ == "__main__":
    sys.exit(main())
