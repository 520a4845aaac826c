"""Engines that compile nothing: the Hugging Face checkpoint itself, as files for a version folder.

The version folder holds the checkpoint, in a sub-folder, instead of pointing at the user's: a repository can be copied
to another machine or into a volume as a whole, and a version stays what it was when the user moves, edits or downloads
the checkpoint again. Small files are copied. Weights, which may be many gigabytes, are cloned or hard-linked, so they
take no room a second time; see `share_file` for what each of the two withstands. Only files that are read as data are
taken along: no Python, no pickles.
"""

from __future__ import annotations

import stat
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tritonforge.artifacts import EngineArtifact
from tritonforge.engine.share_file import copy_readable, share_file
from tritonforge.engine.writing import naming
from tritonforge.errors import BuildError, UnsupportedModel
from tritonforge.events import OnEvent, ignore
from tritonforge.formats.input_file import has_file
from tritonforge.formats.json_fields import JsonFields
from tritonforge.formats.safetensors import INDEX_NAME, TensorFolder
from tritonforge.spec.llmapi import LlmApiEngineSpec
from tritonforge.spec.vllm import VllmEngineSpec
from tritonforge.staging import staged_folder

CHECKPOINT_FOLDER = "checkpoint"
# Tokenizers that these engines load by themselves; those of ChatGLM and the first GLM-4 come as Python code.
_TOKENIZERS = ("huggingface", "llama_sentencepiece")
# By their endings, at the top of the folder; and chat templates in the folder that transformers gives them.
_SMALL = (".json", ".jinja", ".txt", ".model", ".tiktoken")
# Methods whose weights are stored as integers, and where a checkpoint says how: config.json, or the older files.
_STORED_METHODS = ("awq", "awq_marlin", "gptq", "gptq_marlin")
_TELLS_METHOD = ("quantization_config", "compression_config")
_METHOD_FILES = ("quantize_config.json", "quant_config.json")
_TEMPLATES = "additional_chat_templates/*.jinja"
_FOREIGN_INDEX = ".index.json"  # of weights in other formats; the one of the safetensors files is named in full


def prepare_served(
    spec: VllmEngineSpec | LlmApiEngineSpec,
    source: Path,
    out: Path,
    *,
    vocab_size: int,
    tokenizer_kind: str,
    on_event: OnEvent = ignore,
) -> EngineArtifact:
    """Gather the files of a checkpoint that is served as it is.

    The folder appears by a rename; whatever was there before is replaced. A failure leaves nothing behind.

    Args:
        spec: The engine.
        source: Hugging Face folder.
        out: Folder to make, on the repository's file system if links are to be possible.
        vocab_size: Number of token ids that the model knows.
        tokenizer_kind: As in `TokenizerArtifact`.
        on_event: Called with one line per step.

    Raises:
        UnsupportedModel: The engine cannot load the checkpoint's tokenizer without running code that comes with it.
        CheckpointNotFound, CorruptFile, MissingWeight: The weights are not whole.
        BuildError: A file cannot be written.
    """
    check_tokenizer(spec, source, tokenizer_kind)
    weights = TensorFolder.open(source).files()
    with naming(out), staged_folder(out, replace=True) as folder:
        files = [_copy(source, path, folder) for path in _small_files(source)]
        ways: Counter[str] = Counter()
        closed: list[Path] = []
        for path in weights:
            target = _target(source, path, folder)
            with naming(target):
                ways[share_file(path, target)] += path.stat().st_size
                if not target.stat().st_mode & stat.S_IROTH:
                    closed.append(path)
            files.append(_relative(source, path))
    on_event(f"took the checkpoint's weights along ({', '.join(f'{size} bytes {way}' for way, size in ways.items())})")
    if closed:
        on_event(_note_on(closed))
    return EngineArtifact(out, spec.kind, tuple(sorted(files)), vocab_size, ways.total())


def check_tokenizer(spec: VllmEngineSpec | LlmApiEngineSpec, source: Path, kind: str) -> None:
    """Refuse a checkpoint whose tokenizer the engine could not load without running code that comes with it.

    Raises:
        UnsupportedModel: It is one.
    """
    if kind not in _TOKENIZERS:
        raise UnsupportedModel(
            str(source),
            [f"its tokenizer ({kind}) is Python code that comes with it, and kind {spec.kind} would have to run it"],
            hint="serve it with kind openvino or tensorrt_llm, or save it in transformers' own form, with a "
            "tokenizer.json",
        )


def _note_on(closed: list[Path]) -> str:
    more = f" and {len(closed) - 1} more" if len(closed) > 1 else ""
    return (
        f"note: {closed[0]}{more} cannot be read by other users, and the repository has a link to the same file: a "
        f"server that runs as another user cannot load it; chmod a+r opens both"
    )


def check_heads(spec: VllmEngineSpec | LlmApiEngineSpec, source: Path, heads: int) -> None:
    """Refuse a number of GPUs that cannot share the query heads evenly; both engines do when they load (from memory).

    Args:
        spec: The engine.
        source: Hugging Face folder, for the message.
        heads: Query heads of the model.

    Raises:
        BuildError: They cannot.
    """
    if isinstance(spec, VllmEngineSpec):
        key, ranks = "tensor_parallel_size", spec.tensor_parallel_size
    else:
        key, ranks = "tensor_parallel", spec.tensor_parallel
    if heads % ranks:
        *others, last = [str(count) for count in range(1, heads + 1) if heads % count == 0]
        fitting = f"{', '.join(others)} or {last}" if others else last
        raise BuildError(
            f"{source}: engine.{key} is {ranks}; the model has {heads} query heads that the GPUs share evenly: "
            f"expected {fitting}",
            hint="the stages of pipeline parallelism need not divide the heads",
        )


def check_quantisation(spec: VllmEngineSpec | LlmApiEngineSpec, fields: JsonFields) -> None:
    """Refuse float weights where the spec says that they are stored as AWQ's or GPTQ's integers.

    vLLM refuses them when it loads: it finds no configuration of the method (from memory of it, not run).

    Args:
        spec: The engine.
        fields: config.json.

    Raises:
        UnsupportedModel: They are not.
    """
    if not isinstance(spec, VllmEngineSpec) or spec.quantization not in _STORED_METHODS:
        return
    folder = fields.path.parent
    told = any(key in fields for key in _TELLS_METHOD) or any(has_file(folder / name) for name in _METHOD_FILES)
    if not told:
        raise UnsupportedModel(
            str(folder),
            [
                f"engine.quantization is {spec.quantization}, but config.json has no quantization_config: its weights "
                f"are not quantised"
            ],
            hint="take a checkpoint that is stored so, or leave quantization out; fp8 is a method for float weights",
        )


def _small_files(source: Path) -> Iterator[Path]:
    for path in sorted(source.iterdir()):
        is_index = path.name.endswith(_FOREIGN_INDEX) and path.name != INDEX_NAME
        if path.suffix in _SMALL and path.is_file() and not is_index:
            yield path
    yield from sorted(source.glob(_TEMPLATES))


def _copy(source: Path, path: Path, folder: Path) -> str:
    target = _target(source, path, folder)
    with naming(target):
        copy_readable(path, target)
    return _relative(source, path)


def _target(source: Path, path: Path, folder: Path) -> Path:
    target = folder / _relative(source, path)
    with naming(target):
        target.parent.mkdir(parents=True, exist_ok=True)
    return target


def _relative(source: Path, path: Path) -> str:
    return f"{CHECKPOINT_FOLDER}/{path.relative_to(source).as_posix()}"
