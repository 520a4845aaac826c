"""Folders with a small real tokenizer of every kind."""

from __future__ import annotations

import json
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, normalizers, processors, trainers

from tests.support import tokenizer_files
from tritonforge.runtime.gateway.tokenization.base import Tokenizer as GatewayTokenizer
from tritonforge.runtime.gateway.tokenization.load import load_tokenizer

BYTE_LEVEL, SPACE_MARKED, SENTENCEPIECE, GLM4 = "byte_level", "space_marked", "llama_sentencepiece", "glm4"
KINDS = (BYTE_LEVEL, SPACE_MARKED, SENTENCEPIECE, "chatglm2", "chatglm3", GLM4)
LLAMA_TEMPLATE = "{{ bos_token }}{% for m in messages %}[{{ m.role }}] {{ m.content }} {{ eos_token }}{% endfor %}"


def load(kind: str, folder: Path) -> GatewayTokenizer:
    """Write and load a tokenizer of one of `KINDS`."""
    folder.mkdir(parents=True, exist_ok=True)
    if kind == BYTE_LEVEL:
        tokenizer_files.write_chatml(folder)
        return load_tokenizer("huggingface", folder)
    if kind == SPACE_MARKED:
        write_space_marked(folder)
        return load_tokenizer("huggingface", folder)
    if kind == SENTENCEPIECE:
        tokenizer_files.write_sentencepiece(folder)
        (folder / "chat_template.jinja").write_text(LLAMA_TEMPLATE)
    else:
        tokenizer_files.write_chatglm(folder, kind)
    return load_tokenizer(kind, folder)


def write_space_marked(folder: Path) -> None:
    """A tokenizer.json as Llama 2's: spaces written as a mark, bytes that the vocabulary lacks as tokens."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    trainer = trainers.BpeTrainer(vocab_size=300, special_tokens=["<unk>", "<s>", "</s>"], show_progress=False)
    tokenizer.train_from_iterator(tokenizer_files.TEXT[:2], trainer)
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    value = json.loads(tokenizer.to_str())
    vocabulary = value["model"]["vocab"]
    for byte in range(256):
        vocabulary[f"<0x{byte:02X}>"] = len(vocabulary)
    (folder / "tokenizer.json").write_text(json.dumps(value, ensure_ascii=False))
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<s>", "eos_token": "</s>"}
    (folder / "tokenizer_config.json").write_text(json.dumps({**config, "chat_template": LLAMA_TEMPLATE}))
