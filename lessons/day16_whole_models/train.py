"""Train the day's two tiny models on some of the course's lessons, in a few minutes on one CPU core.

    python lessons/day16_whole_models/train.py            both models
    python lessons/day16_whole_models/train.py qwen2      one of them

Each becomes a checkpoint folder in Hugging Face's format, in tiny/: config.json, model.safetensors (f16),
tokenizer.json. record.json says how it was created, with the hash of every file. The text is what people read in the
lessons, without code, tables and formulas. Training on another processor changes the last digits of the weights, and
later versions of the lessons are another text: the committed files are those of the record.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
FOLDERS = {"qwen2": HERE / "tiny" / "qwen2", "neox": HERE / "tiny" / "neox"}
END = "<end>"
LESSONS = ("day01_residual_add", "day06_flash_attention", "day07_grouped_query_attention", "day10_paged_attention")

VOCABULARY = 384
STEPS, BATCH, LENGTH = 2000, 12, 64
PEAK_RATE = 6e-3
SEED = 14
SIZES = {
    "vocab_size": VOCABULARY,
    "hidden_size": 64,
    "num_hidden_layers": 3,
    "num_attention_heads": 2,
    "intermediate_size": 160,
    "max_position_embeddings": 512,
    "bos_token_id": None,
    "eos_token_id": 0,
}


def lesson_text() -> str:
    """Return the sentences of some lessons: such small models memorize little more than one text."""
    pieces = []
    for day in LESSONS:
        cells = json.loads((ROOT / "lessons" / day / "lesson.ipynb").read_text(encoding="utf-8"))["cells"]
        pieces += ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"]
    return "\n".join(filter(None, (sentences(piece) for piece in pieces)))


def sentences(markdown: str) -> str:
    """Return the paragraphs of a piece of markdown as plain text, without code, tables, headings and formulas."""
    text = re.sub(r"^```.*?^```|\$\$.*?\$\$|<!--.*?-->", "", markdown, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    kept = []
    for paragraph in re.split(r"\n\s*\n", text):
        lines = [
            re.sub(r"^\s*(-|\d+\.|>) ", "", line) for line in paragraph.splitlines() if not re.match(r"\s*[|#]", line)
        ]
        plain = re.sub(r"\s+", " ", re.sub(r"[*`]", "", " ".join(lines))).strip()
        if len(plain) > 40 and not re.search(r"\$|arXiv|\(20\d\d\)", plain):
            kept.append(plain)
    return "\n".join(kept)


def make_tokenizer(text: str) -> Tokenizer:
    """Train a byte-pair tokenizer: 256 bytes, and the most frequent pairs."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY, special_tokens=[END], initial_alphabet=sorted(alphabet), show_progress=False
    )
    tokenizer.train_from_iterator(text.splitlines(), trainer)
    return tokenizer


def make_model(name: str) -> torch.nn.Module:
    """Create either model with random weights."""
    if name == "qwen2":
        qwen2 = transformers.Qwen2Config(**SIZES, num_key_value_heads=1, tie_word_embeddings=True)
        return transformers.Qwen2ForCausalLM(qwen2)
    neox = transformers.GPTNeoXConfig(**SIZES, use_parallel_residual=True, hidden_dropout=0.0)
    return transformers.GPTNeoXForCausalLM(neox)


def train(
    name: str, ids: torch.Tensor, make: Callable[[str], torch.nn.Module] = make_model
) -> tuple[torch.nn.Module, float]:
    """Train the model; return it and its mean loss over the last 50 steps in nats per token."""
    torch.manual_seed(SEED)
    model = make(name).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=PEAK_RATE, betas=(0.9, 0.98), weight_decay=0.05)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, PEAK_RATE, total_steps=STEPS, pct_start=0.05)
    losses = []
    for step in range(STEPS):
        begins = torch.randint(0, len(ids) - LENGTH - 1, (BATCH,))
        rows = torch.stack([ids[begin : begin + LENGTH] for begin in begins.tolist()])
        loss = model(input_ids=rows, labels=rows).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(loss.item())
        if step % 100 == 0 or step == STEPS - 1:
            print(f"{name} step {step:5}: {loss.item():.3f} nats per token", flush=True)
    return model, sum(losses[-50:]) / 50


def sha256(file: Path) -> str:
    """Return the hash of a file's bytes."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


def save(name: str, model: torch.nn.Module, tokenizer: Tokenizer, loss: float, text: str, seconds: float) -> None:
    """Write the checkpoint folder with its record."""
    folder = FOLDERS[name]
    shutil.rmtree(folder, ignore_errors=True)
    model.half().save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"), pretty=False)
    record = {
        "command": f"python lessons/{HERE.name}/train.py {name}",
        "seed": SEED,
        "steps": STEPS,
        "loss": round(loss, 4),
        "seconds": round(seconds),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "text": {"characters": len(text), "sha256": hashlib.sha256(text.encode()).hexdigest()},
        "sha256": {file.name: sha256(file) for file in sorted(folder.iterdir())},
    }
    (folder / "record.json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    parameters = sum(p.numel() for p in model.parameters())
    print(f"{name}: {parameters} parameters, loss {loss:.3f}, {seconds:.0f} s, kept in {folder.relative_to(ROOT)}")


def main() -> None:
    """Train the named models, or both."""
    parser = argparse.ArgumentParser(description="Train the tiny models of day 16.")
    parser.add_argument("names", nargs="*", metavar="model", help="qwen2 or neox (default: both)")
    names = parser.parse_args().names or list(FOLDERS)
    for name in names:
        if name not in FOLDERS:
            parser.error(f"there is no model {name}: qwen2 or neox")
    torch.set_num_threads(1)  # more threads have nothing to do in such small models
    text = lesson_text()
    tokenizer = make_tokenizer(text)
    ids = torch.tensor(tokenizer.encode(text).ids)
    print(f"{len(text)} characters, {len(ids)} tokens")
    for name in names:
        begin = time.perf_counter()
        model, loss = train(name, ids)
        save(name, model, tokenizer, loss, text, time.perf_counter() - begin)


if __name__ == "__main__":
    main()
