"""Train the day's tiny mixture of experts, in a few minutes on one CPU core.

    python lessons/day18_mixtures_of_experts/train.py

Text, tokenizer and training are those of day 16. The checkpoint is in tiny/, in Hugging Face's format: config.json and
model.safetensors (f16). record.json says how it was created, with the hash of every file.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import sys
import time
from pathlib import Path

import torch
import transformers
from tokenizers import Tokenizer

HERE = Path(__file__).resolve().parent
DAY_16 = HERE.parent / "day16_whole_models"
sys.path[:0] = [str(HERE.parents[1]), str(DAY_16)]
from llm.other_days import day  # noqa: E402  (a lesson's folder is no package)

TINY = HERE / "tiny"
TOKENIZER = DAY_16 / "tiny" / "qwen2" / "tokenizer.json"


def make_model(_: str) -> torch.nn.Module:
    """Create the model with random weights: Qwen2-MoE with 8 experts, 2 of them per token, and a shared one."""
    sizes = dict(day("day16_whole_models", "train").SIZES)
    config = transformers.Qwen2MoeConfig(
        **sizes,
        num_key_value_heads=1,
        tie_word_embeddings=True,
        num_experts=8,
        num_experts_per_tok=2,
        moe_intermediate_size=40,
        shared_expert_intermediate_size=64,
        norm_topk_prob=False,
        output_router_logits=True,  # the loss then has a term that balances the experts
        router_aux_loss_coef=0.01,
    )
    return transformers.Qwen2MoeForCausalLM(config)


def main() -> None:
    """Train the model and write its folder."""
    parser = argparse.ArgumentParser(description="Train the tiny mixture of experts of day 18, and write it to tiny/.")
    parser.parse_args()
    training = day("day16_whole_models", "train")
    torch.set_num_threads(1)
    text = training.lesson_text()
    ids = torch.tensor(Tokenizer.from_file(str(TOKENIZER)).encode(text).ids)
    begin = time.perf_counter()
    model, loss = training.train("qwen2_moe", ids, make_model)
    seconds = time.perf_counter() - begin
    shutil.rmtree(TINY, ignore_errors=True)
    model.config.output_router_logits = False
    model.half().save_pretrained(TINY)
    (TINY / "generation_config.json").unlink(missing_ok=True)
    record = {
        "command": f"python lessons/{HERE.name}/train.py",
        "seed": training.SEED,
        "steps": training.STEPS,
        "loss": round(loss, 4),
        "seconds": round(seconds),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "text": {"characters": len(text), "sha256": hashlib.sha256(text.encode()).hexdigest()},
        "sha256": {file.name: training.sha256(file) for file in sorted(TINY.iterdir())},
    }
    (TINY / "record.json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    parameters = sum(p.numel() for p in model.parameters())
    print(f"{parameters} parameters, loss {loss:.3f}, {seconds:.0f} s, kept in {TINY.name}")


if __name__ == "__main__":
    main()
