"""What the gateway needs of each engine version: its tokenizer files and serving.json."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from tritonforge.artifacts import EngineArtifact, TokenizerArtifact
from tritonforge.errors import RepositoryError
from tritonforge.formats.trtllm_engine import read_engine_folder
from tritonforge.repository.dialects import TENSORRT_LLM, Dialect, dialect_of
from tritonforge.repository.files import copy, write_text
from tritonforge.repository.layout import SERVING_NAME, engine_model_name, serving_folder
from tritonforge.spec.limits import LimitsSpec
from tritonforge.spec.model import ResolvedVersion

SCHEMA_VERSION = 1
# Those that a gateway holds requests to.
LIMITS = {"max_batch_size", "max_input_len", "max_seq_len"}


@dataclass(frozen=True, slots=True)
class ServedVersion:
    """An engine version as its gateway sees it.

    Args:
        number: Version number.
        engine_kind: As in the specification's engine block, for example ``openvino``.
        tokenizer: Files and ids of its tokenizer.
        limits: What the engine takes.
        default_max_tokens: Tokens of an answer when the request does not say.
        vocab_size: Number of token ids that the engine accepts.
        dialect: How the gateway talks to it.
    """

    number: int
    engine_kind: str
    tokenizer: TokenizerArtifact
    limits: LimitsSpec
    default_max_tokens: int
    vocab_size: int
    dialect: Dialect = Dialect(TENSORRT_LLM)

    @classmethod
    def of(cls, version: ResolvedVersion, engine: EngineArtifact, tokenizer: TokenizerArtifact) -> ServedVersion:
        """The gateway's view of a version that was just built.

        Raises:
            BuildError, CorruptFile: The folder of a TensorRT-LLM engine is not whole.
            RepositoryError: Such an engine takes no prompt, or more than any gateway serves.
        """
        return cls(
            number=version.number,
            engine_kind=engine.kind,
            tokenizer=tokenizer,
            limits=_limits(version, engine),
            default_max_tokens=version.serving.default_max_tokens,
            vocab_size=engine.vocab_size,
            dialect=dialect_of(version),
        )


def write_served(model: str, served: ServedVersion, gateway: Path) -> None:
    """Write serving.json and the tokenizer files of one version into a gateway's folder.

    Raises:
        PublishFailed: A file cannot be written.
    """
    write_served_into(serving_folder(gateway, served.number), model, served)


def write_served_into(folder: Path, model: str, served: ServedVersion) -> None:
    """Write serving.json and the tokenizer files of one version into a folder of their own.

    Raises:
        PublishFailed: A file cannot be written.
    """
    value = {
        "schema_version": SCHEMA_VERSION,
        "engine_model": engine_model_name(model, served.number),
        "engine_version": served.number,
        "engine_kind": served.engine_kind,
        "dialect": served.dialect.name,
        "tokenizer": {
            "kind": served.tokenizer.kind,
            "eos_token_ids": list(served.tokenizer.eos_token_ids),
            "pad_token_id": served.tokenizer.pad_token_id,
        },
        "limits": served.limits.model_dump(include=LIMITS),
        "default_max_tokens": served.default_max_tokens,
        "vocab_size": served.vocab_size,
        "unserved_inputs": list(served.dialect.unserved_inputs),
        "input_aliases": dict(served.dialect.input_aliases),
    }
    write_text(folder / SERVING_NAME, json.dumps(value, indent=2, ensure_ascii=False) + "\n")
    for name, source in sorted(served.tokenizer.files.items()):
        copy(source, folder / name)  # not a link: the checkpoint is the user's, who may edit it


def _limits(version: ResolvedVersion, engine: EngineArtifact) -> LimitsSpec:
    """What the engine takes: by its own account where it gives one, else as it was asked for."""
    if engine.kind != TENSORRT_LLM:
        return version.limits
    info = read_engine_folder(engine.path)
    try:
        return LimitsSpec(
            max_batch_size=info.max_batch_size,
            max_seq_len=info.max_seq_len,
            max_input_len=min(info.max_input_len, info.max_seq_len - 1),
        )
    except ValidationError as error:
        raise RepositoryError(
            f"{engine.path}: the engine takes {info.max_batch_size} requests of {info.max_seq_len} tokens; no gateway "
            f"can serve that ({error.errors()[0]['msg']})",
            hint="build it with other limits",
        ) from error


def read_served_version(file: Path) -> ServedVersion:
    """The version that a serving.json describes.

    Raises:
        RepositoryError: It cannot be read, or is that of another version than its folder says.
    """
    served = _read_served(file)
    if str(served.number) != file.parent.name:
        raise RepositoryError(
            f"{file}: engine_version is {served.number}; expected {file.parent.name}, the folder's name",
            hint="publish the model again",
        )
    return served


def _read_served(file: Path) -> ServedVersion:
    try:
        value = json.loads(file.read_text(encoding="utf-8"))
        tokenizer = TokenizerArtifact(
            kind=value["tokenizer"]["kind"],
            files={
                str(path.relative_to(file.parent)): path  # chat templates may lie in a folder of their own
                for path in sorted(file.parent.rglob("*"))
                if path.is_file() and path.name != SERVING_NAME
            },
            eos_token_ids=tuple(value["tokenizer"]["eos_token_ids"]),
            pad_token_id=value["tokenizer"]["pad_token_id"],
        )
        return ServedVersion(
            number=int(value["engine_version"]),
            engine_kind=value["engine_kind"],
            tokenizer=tokenizer,
            limits=LimitsSpec.model_validate(value["limits"]),
            default_max_tokens=int(value["default_max_tokens"]),
            vocab_size=int(value["vocab_size"]),
            dialect=Dialect(
                name=value["dialect"],
                unserved_inputs=tuple(value.get("unserved_inputs", ())),
                input_aliases=dict(value.get("input_aliases", {})),
            ),
        )
    except (OSError, ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
        raise RepositoryError(
            f"{file}: not a readable serving.json ({error})", hint="publish the model again"
        ) from error
