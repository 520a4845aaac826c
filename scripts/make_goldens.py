"""Greedy answers of SmolLM2-135M-Instruct by torch and transformers: what every engine of ours has to reproduce.

The GGUF file is imported as float16; the reference computes in float32 from those weights. Needs the `reference` group.
`margin` is the smallest distance between the best and the second best logit of a case: an engine that computes in
float32 may differ from the reference by about 1e-4, so a case with a smaller margin would prove nothing.
"""

from __future__ import annotations

import hashlib
import json
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from tritonforge.checkpoint.gguf import import_gguf

OUTPUT = Path("tests/golden/smollm2_greedy.json")
NEW_TOKENS = 32
LIBRARIES = ("gguf", "numpy", "tokenizers", "torch", "transformers")
TEXTS = {
    "fact": "The capital of France is",
    "story": "Once upon a time, in a village by the sea,",
    "python": "def fibonacci(n):\n    ",
    "python_docstring": 'import json\n\n\ndef read_config(path):\n    """',
    "sql": "SELECT name, age FROM users WHERE",
    "arithmetic": "Q: What is 12 + 30?\nA:",
    "html": "<ul>\n  <li>First item</li>\n  <li>",
    "french": "La capitale de l'Italie est",
    "german": "Die Hauptstadt von Deutschland ist",
    "japanese": "水の化学式は",
    "spaces_and_emoji": "  Two leading spaces, a tab\tand an emoji 👋🏽 walk into a bar.",
    "long": "A model server answers many requests at once: it batches them and streams every token. " * 12,
}
CHATS = {
    "chat": [{"role": "user", "content": "What is gravity?"}],
    "chat_system": [
        {"role": "system", "content": "You answer in one short sentence."},
        {"role": "user", "content": "Why is the sky blue?"},
    ],
    "chat_turns": [
        {"role": "user", "content": "My name is Ada."},
        {"role": "assistant", "content": "Hello Ada! How can I help you?"},
        {"role": "user", "content": "What is my name?"},
    ],
}


def main(gguf: Path) -> None:
    torch.set_num_threads(1)  # the same sums in the same order on every machine
    with tempfile.TemporaryDirectory() as scratch:
        folder = import_gguf(gguf, Path(scratch) / "checkpoint", dtype="float16", on_event=print)
        tokenizer = AutoTokenizer.from_pretrained(folder)
        model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    cases: list[dict[str, object]] = [{"name": name, "prompt": text} for name, text in TEXTS.items()]
    for name, messages in CHATS.items():
        text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        cases.append({"name": name, "messages": messages, "prompt": text})
    golden = {
        "schema_version": 1,
        "made_by": "scripts/make-goldens",
        "gguf": {"file": gguf.name, "sha256": hashlib.sha256(gguf.read_bytes()).hexdigest()},
        "weights": "float16",
        "computation": "float32",
        "new_tokens": NEW_TOKENS,
        "end_ids": model.generation_config.eos_token_id,
        "versions": {name: version(name) for name in LIBRARIES},
        "cases": [case | answer(model, tokenizer, str(case["prompt"])) for case in cases],
    }
    OUTPUT.write_text(json.dumps(golden, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"wrote {OUTPUT}")


def answer(model: torch.nn.Module, tokenizer: AutoTokenizer, prompt: str) -> dict[str, object]:
    """The greedy continuation of a prompt; an end token, when it comes, is the last of the ids."""
    prompt_ids = tokenizer(prompt, add_special_tokens=False, return_tensors="pt").input_ids
    made = model.generate(
        prompt_ids, max_new_tokens=NEW_TOKENS, do_sample=False, output_logits=True, return_dict_in_generate=True
    )
    output_ids = made.sequences[0, prompt_ids.shape[1] :].tolist()
    best = torch.stack([logits[0].topk(2).values for logits in made.logits])  # [tokens, 2]
    margin = (best[:, 0] - best[:, 1]).min().item()
    text = tokenizer.decode(output_ids, skip_special_tokens=True)
    return {"prompt_ids": prompt_ids[0].tolist(), "output_ids": output_ids, "text": text, "margin": round(margin, 5)}


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: scripts/make-goldens FILE.gguf")
    main(Path(sys.argv[1]))
