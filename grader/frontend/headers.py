"""Adds ``#include`` lines for headers of the simulator to the files that use them.

nvcc's ``cuda_runtime.h`` contains the same functions, so a kernel file does not include them itself.
"""

from __future__ import annotations

import re

_TEXTURES = re.compile(
    r"\b(?:tex[123]D\w*|surf[123]D\w*|make_cuda(?:Extent|Pos|PitchedPtr)|"
    r"cuda(?:Array|Texture|Surface|Extent|Pos\b|Pitched|Resource|"
    r"Channel|CreateChannel|FreeArray|Malloc3D|MallocArray|Mem(?:cpy|set)3D|Memcpy\w*Array|AddressMode|FilterMode|ReadMode|Boundary)\w*)"
)
_REFERENCES = re.compile(r"\btexture\s*<|\btextureReference\b")


def headers_for(text: str) -> str:
    """Return the ``#include`` lines that a translated file needs at its start."""
    wanted = {
        "ptx": "::sim::ptx::" in text,
        "shifts": "::sim::gpu " in text,
        "local_arrays": "::sim::LocalArray<" in text,
        "textures": _TEXTURES.search(text) is not None,
        "texture_references": _REFERENCES.search(text) is not None,
    }
    return "".join(f'#include "sim/{name}.h"\n' for name, used in wanted.items() if used)
