"""import_gguf: the one public function of this folder. A GGUF file in, a Hugging Face checkpoint folder out."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from tokenizers import Tokenizer

from tritonforge.checkpoint.gguf.architecture import LlamaForm, config_json, read_form
from tritonforge.checkpoint.gguf.reader import GgufFile, open_gguf
from tritonforge.checkpoint.gguf.tokenizer import build_tokenizer, special_tokens, tokenizer_config
from tritonforge.checkpoint.gguf.vocabulary import Vocabulary, read_vocabulary
from tritonforge.checkpoint.gguf.weights import plan_weights
from tritonforge.checkpoint.output import check_free, output_folder
from tritonforge.errors import CorruptFile, UsageBug
from tritonforge.events import OnEvent, ignore
from tritonforge.formats.safetensors import PlannedTensor, write_tensors
from tritonforge.formats.trtllm import FLOAT_TYPES


def import_gguf(file: Path, out: Path, *, dtype: str = "float16", on_event: OnEvent = ignore) -> Path:
    """Turn a GGUF file of a Llama model into a Hugging Face checkpoint folder.

    The folder holds config.json, model.safetensors, tokenizer.json, tokenizer_config.json, special_tokens_map.json and
    generation_config.json. It is made beside `out` and renamed when it is complete; when anything fails, nothing is
    left. One tensor is in memory at a time.

    Args:
        file: The GGUF file.
        out: The folder to make; must not exist, or be empty.
        dtype: Type of the stored weights: ``float16``, ``bfloat16`` or ``float32``.
        on_event: Called with one line per step.

    Returns:
        `out`.

    Raises:
        CheckpointNotFound: There is no such file.
        CorruptFile: The file is damaged or contradicts itself.
        MissingWeight: It lacks a tensor.
        UnsupportedModel: It holds something else than a Llama model that Hugging Face's classes can represent.
        CheckpointError: `out` is taken or cannot be written.
        ToolMissing: The `gguf` package is not installed.
    """
    if dtype not in FLOAT_TYPES:
        raise UsageBug(f"dtype is {dtype!r}; expected one of {', '.join(FLOAT_TYPES)}")
    check_free(out)
    on_event(f"reading {file}")
    plan = _plan(open_gguf(file), dtype)
    on_event(f"writing {len(plan.weights)} tensors as {dtype}")
    with output_folder(out) as folder:
        write_tensors(folder / "model.safetensors", plan.weights, {"format": "pt"})
        _write_small_files(folder, plan, dtype)
    on_event(f"wrote {out}")
    return out


@dataclass(frozen=True, slots=True)
class _Plan:
    """Everything that will be written, checked as far as it can be before the first byte is."""

    form: LlamaForm
    weights: list[PlannedTensor]
    vocabulary: Vocabulary
    tokenizer: Tokenizer


def _plan(file: GgufFile, dtype: str) -> _Plan:
    form = read_form(file)
    weights = plan_weights(file, form, dtype=FLOAT_TYPES[dtype])
    vocabulary = read_vocabulary(file)
    if len(vocabulary.tokens) > form.vocab_size:
        raise CorruptFile(
            file.path, f"has {len(vocabulary.tokens)} tokens, but its embedding has {form.vocab_size} rows", hint=None
        )
    return _Plan(form, weights, vocabulary, build_tokenizer(vocabulary))


def _write_small_files(folder: Path, plan: _Plan, dtype: str) -> None:
    vocabulary, ids = plan.vocabulary, plan.vocabulary.special_ids
    names = {"bos": "bos_token_id", "eos": "eos_token_id", "padding": "pad_token_id"}
    token_ids = {name: ids[role] for role, name in names.items() if role in ids}
    ends = vocabulary.end_ids
    generation = {**token_ids, "eos_token_id": ends[0] if len(ends) == 1 else list(ends)}
    _write_json(folder / "config.json", config_json(plan.form, dtype=dtype, token_ids=token_ids))
    _write_json(folder / "generation_config.json", generation)
    _write_json(folder / "special_tokens_map.json", special_tokens(vocabulary))
    config = tokenizer_config(vocabulary, max_tokens=plan.form.max_positions)
    _write_json(folder / "tokenizer_config.json", config)
    (folder / "tokenizer.json").write_text(plan.tokenizer.to_str(pretty=True), encoding="utf-8")


def _write_json(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
