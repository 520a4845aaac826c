"""What each stage made: frozen values that the next stage takes, and the digests that name their content."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tritonforge.formats.trtllm import TrtllmConfig


@dataclass(frozen=True, slots=True)
class TokenizerArtifact:
    """The files that turn text into token ids for one checkpoint, and the ids that matter when generating.

    Args:
        kind: How the files are to be read: ``huggingface`` (tokenizer.json), ``llama_sentencepiece``, ``chatglm2``,
            ``chatglm3`` (sentencepiece with ChatGLM's special tokens) or ``glm4`` (tiktoken-style ranks).
        files: The files, by the name they carry in the checkpoint folder.
        eos_token_ids: Ids that end generation, at least one.
        pad_token_id: Id used for padding; the first end id when the checkpoint names none.
    """

    kind: str
    files: Mapping[str, Path]
    eos_token_ids: tuple[int, ...]
    pad_token_id: int


@dataclass(frozen=True, slots=True)
class CheckpointArtifact:
    """A TensorRT-LLM checkpoint on disk.

    Args:
        path: Folder with config.json and rank{r}.safetensors.
        config: Its config.json.
        source: Folder of the Hugging Face checkpoint that it was made from.
        digest: sha256 over the source's config and tensor headers, sizes and modification times.
    """

    path: Path
    config: TrtllmConfig
    source: Path
    digest: str


@dataclass(frozen=True, slots=True)
class EngineArtifact:
    """A compiled engine on disk.

    Args:
        path: Folder with the engine's own files.
        kind: As in the specification's engine block, for example ``openvino``.
        files: File names relative to `path`, sorted.
        vocab_size: Number of token ids that the engine accepts.
        weights_bytes: Size of the weight file.
    """

    path: Path
    kind: str
    files: tuple[str, ...]
    vocab_size: int
    weights_bytes: int


def digest_of(value: object) -> str:
    """sha256 of a JSON-like value, independent of the order of its keys."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()
