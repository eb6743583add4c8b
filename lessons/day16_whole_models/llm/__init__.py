"""Run a whole Qwen2 or GPT-NeoX with a kernel of the course for every operator.

    from llm import Operators, generate, load

    model = load("folder with config.json, *.safetensors, tokenizer.json", Operators(device="cpu"))
    print(generate(model, "The warp", tokens=20).text)

``config`` and ``checkpoint`` read the folder, and ``operators`` provides the kernels. ``qwen2`` and ``neox`` define the
sequence of operators. ``cache`` keeps keys and values in pages, ``generate`` and ``serve`` produce tokens, and
``quantize`` converts weights to int4. Nothing is downloaded.
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
