"""The operators of the models, each computed by a kernel file of the course or by torch.

    Operators(device="cpu")                                    every operator by the course's solutions, on the simulator
    Operators(use="torch")                                     every operator by torch
    Operators(choose={"rms_norm": "exercises"})                rms_norm by your own kernel
    Operators(choose={"gelu": "torch", "swiglu": "my.cu"})     and so on

``calls`` counts the calls of each kernel. A switch does not prove that a kernel runs; the count does.
"""  # noqa: E501

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from grader import load_kernel
from grader.course import course_root
from grader.setup.errors import GraderError
from llm import torch_operators
from llm.int4 import Int4

if TYPE_CHECKING:
    from llm.cache import Batch

NAMES = {torch.float32: "f32", torch.float16: "f16", torch.bfloat16: "bf16"}
HERE = "lessons/day16_whole_models/operators.cu"
FEW_ROWS = 16
"""Up to this number of rows, reading the weights limits a linear layer."""
MMA_HEADS = (64, 80, 96, 128, 256)
"""The head sizes of day 12's attention."""
WIDE = 16384
"""From this number of columns on, several blocks search a row for its largest element."""

KERNELS = {
    "embedding": "day03_positions_and_gates/embedding",
    "rms_norm": "day02_reductions/rms_norm",
    "layer_norm": "day02_reductions/layer_norm",
    "linear": "day04_linear/linear_register_tiled",
    "linear of few rows": "day04_linear/linear",
    "linear, 16 bits": "day04_linear/linear_wmma",
    "linear of few rows, 16 bits": "day04_linear/linear_decode",
    "linear, 16 bits, Hopper": "day13_tensor_cores_hopper/wgmma_linear",
    "linear_gelu": "day05_fusion/linear_gelu",
    "linear_int4": "day11_quantization/gptq_linear",
    "rope": "day03_positions_and_gates/rope",
    "kv_cache_append": "day10_paged_attention/kv_cache_append",
    "attention_prefill": "day10_paged_attention/paged_prefill",
    "attention_prefill of new texts": "day12_tensor_cores_ampere/mma_flash_attention",
    "attention_decode": "day10_paged_attention/paged_attention",
    "attention_decode in parts": "day10_paged_attention/paged_attention_split",
    "swiglu": "day03_positions_and_gates/swiglu",
    "residual_add": "day01_residual_add/residual_add",
    "parallel_residual": "day01_residual_add/parallel_residual",
    "argmax": "day02_reductions/argmax",
    "argmax of a vocabulary": "day02_reductions/vocabulary_argmax",
}
"""The exercise behind each operator. Operators that are missing here are in this day's operators.cu."""

OPERATORS = (
    "embedding",
    "rms_norm",
    "layer_norm",
    "linear",
    "linear_gelu",
    "linear_int4",
    "add_bias",
    "rope",
    "kv_cache_append",
    "attention_prefill",
    "attention_decode",
    "swiglu",
    "gelu",
    "residual_add",
    "parallel_residual",
    "argmax",
)


class Operators:
    """The operators that a model uses, and a record of their calls.

    ``device``: cpu (the simulator) or cuda. ``use``: "solutions", "exercises" or "torch" for every operator; ``choose``
    overrides it for some, and may name a kernel file of your own with the exercise's launcher. ``checks``: let the
    simulator check for errors while it computes, which is slower.
    """

    def __init__(
        self, device: str = "cpu", use: str = "solutions", choose: dict[str, str] | None = None, checks: bool = False
    ) -> None:
        self.device, self.checks = device, checks
        unknown = sorted(set(choose or {}) - set(OPERATORS))
        if unknown:
            raise GraderError(f"there is no operator {', '.join(unknown)}", f"They are {', '.join(OPERATORS)}.")
        self.use = {name: use for name in OPERATORS} | (choose or {})
        self.generation = torch.cuda.get_device_capability()[0] if device == "cuda" else 8
        """The GPU's compute capability without its minor version: tensor cores have other instructions from 9 on."""
        self.calls: Counter[tuple[str, str]] = Counter()
        """Number of calls by operator and source, such as ("rms_norm", "solutions/day02_reductions/rms_norm.cu")."""
        self._kernels: dict[str, Any] = {}
        self._launchers: dict[tuple[str, torch.dtype, tuple[str, ...]], tuple[Any, str]] = {}
        self._zeros: dict[tuple[int, torch.dtype], Tensor] = {}

    # ------------------------------------------------------------------------------------------- choice of kernel

    def by_torch(self, name: str) -> bool:
        """Return True if torch computes the operator, and count the call."""
        if self.use[name] != "torch":
            return False
        self.calls[name, "torch"] += 1
        return True

    def launcher(self, name: str, dtype: torch.dtype, *kinds: str) -> Any:
        """Return the launcher of an operator for a type, loading it on first use, and count the call.

        ``kinds``: the keys in KERNELS of the kernels that can compute this call, best first; empty if the operator has
        only one kernel. A file of your own needs the launcher of only one kind.
        """
        found = self._launchers.get((name, dtype, kinds))
        if found is None:
            found = self._launchers[name, dtype, kinds] = self._find(name, dtype, kinds)
        launcher, file = found
        self.calls[name, file] += 1
        return launcher

    def _find(self, name: str, dtype: torch.dtype, kinds: tuple[str, ...]) -> tuple[Any, str]:
        """Return the launcher of an operator and its file."""
        if dtype not in NAMES:
            raise GraderError(
                f"{name}: there are kernels for f32, f16 and bf16, not for {dtype}", 'use="torch" has it.'
            )
        exercises = [KERNELS.get(kind) for kind in kinds or (name,)]
        stems = [exercise.rpartition("/")[2] if exercise else name for exercise in exercises]
        chosen, ours = self.use[name], exercises[0] is None or (name.startswith("attention") and dtype == torch.float32)
        if chosen not in ("solutions", "exercises"):
            file = chosen
        else:
            file, stems = HERE if ours else f"{chosen}/{exercises[0]}.cu", stems[:1]
        if file not in self._kernels:
            root = course_root()
            path = root / file if (root / file).is_file() else Path(file).expanduser()
            self._kernels[file] = load_kernel(path, device=self.device, checks=self.checks)
        kernel = self._kernels[file]
        known = dir(kernel)
        wanted = [f"{stem}{ending}" for stem in stems for ending in (f"_{NAMES[dtype]}", "")]
        for launcher in wanted:
            if launcher in known:
                return getattr(kernel, launcher), file
        raise GraderError(f"{file} has no launcher {' or '.join(wanted)}", f"Define it: the operator {name} calls it.")

    def trace(self) -> str:
        """Return the calls as a table, in order of first use."""
        return "\n".join(f"{count:6}  {name:18} {who}" for (name, who), count in self.calls.items())

    def no_bias(self, like: Tensor, size: int) -> Tensor:
        """Return zeros for a missing bias: the kernels always add one."""
        key = size, like.dtype
        if key not in self._zeros:
            self._zeros[key] = torch.zeros(size, dtype=like.dtype, device=like.device)
        return self._zeros[key]

    # ------------------------------------------------------------------------------------------------ operators

    def embedding(self, table: Tensor, ids: Tensor) -> Tensor:
        """Return rows of table [vocabulary, C] for ids i64 [tokens]: [tokens, C]."""
        if self.by_torch("embedding"):
            return torch_operators.embedding(table, ids)
        out = table.new_empty(len(ids), table.shape[1])
        self.launcher("embedding", table.dtype)(table, ids, out, len(ids), *table.shape)
        return out

    def rms_norm(self, x: Tensor, weight: Tensor, eps: float) -> Tensor:
        """Apply RMSNorm: x [tokens, C] -> [tokens, C]."""
        if self.by_torch("rms_norm"):
            return torch_operators.rms_norm(x, weight, eps)
        out = torch.empty_like(x)
        self.launcher("rms_norm", x.dtype)(x, weight, out, *x.shape, eps)
        return out

    def layer_norm(self, x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
        """Apply LayerNorm: x [tokens, C] -> [tokens, C]."""
        if self.by_torch("layer_norm"):
            return torch_operators.layer_norm(x, weight, bias, eps)
        out = torch.empty_like(x)
        self.launcher("layer_norm", x.dtype)(x, weight, bias, out, *x.shape, eps)
        return out

    def linear(self, x: Tensor, weight: Tensor | Int4, bias: Tensor | None = None) -> Tensor:
        """Apply a linear layer: x [tokens, in], weight [out, in] or int4, bias [out] -> [tokens, out]."""
        if isinstance(weight, Int4):
            return self._linear_int4(x, weight, bias)
        if self.by_torch("linear"):
            return torch_operators.linear(x, weight, bias)
        out = x.new_empty(len(x), len(weight))
        few, short = len(x) <= FEW_ROWS, x.element_size() == 2
        if not few and short and self._hopper(weight):
            self.launcher("linear", x.dtype, "linear, 16 bits, Hopper")(x, weight, out, *x.shape, len(weight))
            return out if bias is None else self.add_bias(out, bias)
        kinds = (
            ["linear, 16 bits"]
            if short
            else ["linear of few rows", "linear"]
            if few
            else ["linear", "linear of few rows"]
        )
        if few and short:
            kinds.insert(0, "linear of few rows, 16 bits")
        launch = self.launcher("linear", x.dtype, *kinds)
        may_have_no_bias = launch.__name__.startswith("linear_decode")
        more = (bias is not None,) if may_have_no_bias else ()
        launch(x, weight, self.no_bias(x, len(weight)) if bias is None else bias, out, *x.shape, len(weight), *more)
        return out

    def linear_gelu(self, x: Tensor, weight: Tensor | Int4, bias: Tensor) -> Tensor:
        """Apply gelu(linear(x)): one kernel for many rows; for few rows two, the GEMM and GELU."""
        if isinstance(weight, Int4) or (len(x) <= FEW_ROWS and self.use["linear_gelu"] != "torch"):
            return self.gelu(self.linear(x, weight, bias))
        if self.by_torch("linear_gelu"):
            return torch_operators.linear_gelu(x, weight, bias)
        if x.element_size() == 2 and self._hopper(weight) and self.use["linear"] != "torch":
            return self.add_bias(self.linear(x, weight), bias, gelu=True)
        out = x.new_empty(len(x), len(weight))
        self.launcher("linear_gelu", x.dtype)(x, weight, bias, out, *x.shape, len(weight))
        return out

    def _takes_exercises(self, name: str) -> bool:
        """Return True if the course's kernels compute an operator: they have launchers of several exercises."""
        return self.use[name] in ("solutions", "exercises")

    def _hopper(self, weight: Tensor) -> bool:
        """Return True if wgmma can compute a product with weight [out, in]: on Hopper, with rows that TMA can copy."""
        return self.generation == 9 and self._takes_exercises("linear") and all(size % 8 == 0 for size in weight.shape)

    def add_bias(self, x: Tensor, bias: Tensor, gelu: bool = False) -> Tensor:
        """Add bias [C] to each row of x [tokens, C] in place, and apply the exact GELU if requested; return x."""
        if self.by_torch("add_bias"):
            return torch_operators.add_bias(x, bias, gelu)
        self.launcher("add_bias", x.dtype)(x, bias, *x.shape, gelu)
        return x

    def linear_parts(
        self,
        x: Tensor,
        weight: Tensor | Int4,
        bias: Tensor | None,
        sizes: tuple[int, ...],
        joined: bool = False,
    ) -> tuple[Tensor, ...]:
        """Apply one layer with several outputs, such as q, k and v: [tokens, size] for each of the sizes.

        For a single row, the results are slices of one GEMM. For more rows the slices would not be contiguous. So each
        output is a GEMM with its rows of the weight, or, if ``joined``, a copy of a slice: faster if the outputs are so
        narrow that a GEMM of one output would leave SMs idle.
        """
        if len(x) == 1 or joined or isinstance(weight, Int4):
            return tuple(part.contiguous() for part in self.linear(x, weight, bias).split(sizes, dim=1))
        biases = [None] * len(sizes) if bias is None else bias.split(sizes)
        return tuple(self.linear(x, w, b) for w, b in zip(weight.split(sizes), biases))

    def _linear_int4(self, x: Tensor, weight: Int4, bias: Tensor | None) -> Tensor:
        if self.by_torch("linear_int4"):
            return torch_operators.linear(x, weight.finished().to(x.dtype), bias)
        rows, size, out = len(x), weight.out_features, x.new_empty(len(x), weight.out_features)
        launch = self.launcher("linear_int4", x.dtype)
        for first in range(0, rows, FEW_ROWS):  # the most rows that the kernel takes at once
            some = slice(first, min(first + FEW_ROWS, rows))
            more = (some.stop - first, x.shape[1], size, weight.group_size, False, bias is not None)
            given = self.no_bias(x, size) if bias is None else bias
            launch(x[some], weight.qweight, weight.qzeros, weight.scales, weight.g_idx, given, out[some], *more)
        return out

    def rope(self, x: Tensor, positions: Tensor, rotary_dim: int, theta: float) -> Tensor:
        """Apply RoPE to x [tokens, heads, head_dim] at positions i32 [tokens]."""
        if self.by_torch("rope"):
            return torch_operators.rope(x, positions, rotary_dim, theta)
        out = torch.empty_like(x, memory_format=torch.contiguous_format)
        self.launcher("rope", x.dtype)(x, positions, out, *x.shape, rotary_dim, theta)
        return out

    def kv_cache_append(self, k: Tensor, v: Tensor, slots: Tensor, k_cache: Tensor, v_cache: Tensor) -> None:
        """Write k, v [tokens, kv_heads, head_dim] to slots i64 [tokens] of [pages, kv_heads, page_size, head_dim]."""
        if self.by_torch("kv_cache_append"):
            return torch_operators.kv_cache_append(k, v, slots, k_cache, v_cache)
        pages, _, page_size, _ = k_cache.shape
        self.launcher("kv_cache_append", k.dtype)(k, v, slots, k_cache, v_cache, *k.shape, pages, page_size)
        return None

    def attention(self, q: Tensor, k: Tensor, v: Tensor, k_cache: Tensor, v_cache: Tensor, batch: Batch) -> Tensor:
        """Return the attention of q [tokens, heads, head_dim]. Decode if every sequence has one query, else prefill.

        k, v [tokens, kv_heads, head_dim] are the new keys and values, which the caches already contain.
        """
        name = "attention_decode" if batch.one_query_each else "attention_prefill"
        scale = q.shape[-1] ** -0.5
        pages = batch.block_tables, batch.lengths
        if self.by_torch(name):
            return torch_operators.attention(q, k_cache, v_cache, *pages, batch.query_starts, scale)
        out = torch.empty_like(q, memory_format=torch.contiguous_format)
        tokens, heads, head_dim = q.shape
        _, kv_heads, page_size, _ = k_cache.shape
        sequences, max_pages = batch.block_tables.shape
        sizes = heads, kv_heads, head_dim, page_size, max_pages
        tensor_cores = q.element_size() == 2 and head_dim in MMA_HEADS and self.generation >= 8
        if name == "attention_prefill" and batch.all_new and tensor_cores and self._takes_exercises(name):
            starts = batch.query_starts
            sizes = batch.max_queries, heads, kv_heads, head_dim, heads * head_dim, kv_heads * head_dim
            launch = self.launcher(name, q.dtype, "attention_prefill of new texts")
            launch(q, k, v, starts, starts, out, sequences, *sizes, scale, True)
        elif name == "attention_prefill":
            launch = self.launcher(name, q.dtype)
            launch(
                q,
                k_cache,
                v_cache,
                *pages,
                batch.query_starts,
                out,
                sequences,
                tokens,
                *sizes,
                batch.max_queries,
                scale,
            )
        elif (splits := self._splits(sequences * kv_heads, max_pages * page_size)) > 1 and q.element_size() == 2:
            partial_out = torch.empty(tokens, heads, splits, head_dim, device=q.device)
            partial_stats = torch.empty(tokens, heads, splits, 2, device=q.device)
            launch = self.launcher(name, q.dtype, "attention_decode in parts")
            launch(q, k_cache, v_cache, *pages, out, partial_out, partial_stats, sequences, *sizes, splits, scale)
        else:
            self.launcher(name, q.dtype)(q, k_cache, v_cache, *pages, out, sequences, *sizes, scale)
        return out

    def _splits(self, blocks: int, keys: int) -> int:
        """Return into how many parts to split the keys: enough to give each SM a block, but at least 64 keys each."""
        if self.device == "cpu":
            return 1
        return max(1, min(-(-self._processors() // blocks), keys // 64, 64))

    def _processors(self) -> int:
        """Return the GPU's number of SMs. Return 16 for the simulator, whose number of SMs is not limited."""
        return torch.cuda.get_device_properties(0).multi_processor_count if self.device == "cuda" else 16

    def swiglu(self, gate: Tensor, up: Tensor) -> Tensor:
        """Return silu(gate) * up."""
        if self.by_torch("swiglu"):
            return torch_operators.swiglu(gate, up)
        out = torch.empty_like(gate, memory_format=torch.contiguous_format)
        self.launcher("swiglu", gate.dtype)(gate, up, out, gate.numel())
        return out

    def gelu(self, x: Tensor) -> Tensor:
        """Return the exact GELU."""
        if self.by_torch("gelu"):
            return torch_operators.gelu(x)
        out = torch.empty_like(x)
        self.launcher("gelu", x.dtype)(x, out, x.numel())
        return out

    def residual_add(self, x: Tensor, y: Tensor) -> Tensor:
        """Return x + y."""
        if self.by_torch("residual_add"):
            return torch_operators.residual_add(x, y)
        out = torch.empty_like(x)
        self.launcher("residual_add", x.dtype)(x, y, out, x.numel())
        return out

    def parallel_residual(self, x: Tensor, attention: Tensor, mlp: Tensor) -> Tensor:
        """Return x + attention + mlp."""
        if self.by_torch("parallel_residual"):
            return torch_operators.parallel_residual(x, attention, mlp)
        out = torch.empty_like(x)
        self.launcher("parallel_residual", x.dtype)(x, attention, mlp, out, x.numel())
        return out

    def argmax(self, logits: Tensor) -> Tensor:
        """Return the index of the largest logit: logits [rows, vocabulary] -> i32 [rows]."""
        if self.by_torch("argmax"):
            return torch_operators.argmax(logits)
        rows, columns = logits.shape
        out = torch.empty(rows, dtype=torch.int32, device=logits.device)
        if columns >= WIDE and rows <= FEW_ROWS:
            splits = min(self._processors() // rows, columns // 1024)
            partial = torch.empty(rows, splits, dtype=torch.uint64, device=logits.device)
            launch = self.launcher("argmax", logits.dtype, "argmax of a vocabulary")
            launch(logits, out, partial, rows, columns, splits)
            return out
        self.launcher("argmax", logits.dtype)(logits, out, *logits.shape)
        return out
