"""A whole Qwen2 and a whole GPT-NeoX, whose every operator is a kernel of the course.

    from llm import Operators, generate, load

    model = load("folder with config.json, *.safetensors, tokenizer.json", Operators(device="cpu"))
    print(generate(model, "The warp", tokens=20).text)

``config`` and ``checkpoint`` read the folder, ``operators`` knows the kernels, ``qwen2`` and ``neox`` say which operator follows
which, ``cache`` keeps keys and values in pages, ``generate`` and ``serve`` make tokens, ``quantize`` makes weights int4. No folder is ever
downloaded.
"""

from llm.cache import PagedCache
from llm.checkpoint import CheckpointError, load
from llm.config import Config, ConfigError, read_config
from llm.generate import Generated, generate
from llm.operators import Operators
from llm.sampling import Sampling
from llm.serve import Request, serve

__all__ = [
    "CheckpointError",
    "Config",
    "ConfigError",
    "Generated",
    "Operators",
    "PagedCache",
    "Request",
    "Sampling",
    "generate",
    "load",
    "read_config",
    "serve",
]
