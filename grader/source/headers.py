"""Headers of the simulator that nvcc's own ``cuda_runtime.h`` needs no name for, given to the files that use them."""

from __future__ import annotations

import re

_TEXTURES = re.compile(
    r"\b(?:tex[123]D\w*|surf[123]D\w*|make_cuda(?:Extent|Pos|PitchedPtr)|cuda(?:Array|Texture|Surface|Extent|Pos\b|Pitched|Resource|"
    r"Channel|CreateChannel|FreeArray|Malloc3D|MallocArray|Mem(?:cpy|set)3D|Memcpy\w*Array|AddressMode|FilterMode|ReadMode|Boundary)\w*)"
)


def headers_for(text: str) -> str:
    """``#include`` lines for a translated file."""
    asm = '#include "sim/ptx.h"\n' if "::sim::ptx::" in text else ""
    return asm + ('#include "sim/textures.h"\n' if _TEXTURES.search(text) else "")
