"""The folder that trtllm-build writes: config.json and one ``rank{r}.engine`` for each rank.

The form of config.json is from memory of TensorRT-LLM, not read in a release: ``version``, ``pretrained_config`` (the
checkpoint's configuration) and ``build_config`` (limits and ``plugin_config``). So a key that is missing is an error
that names it, except those that a release is known to lack.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tritonforge.errors import BuildError, CheckpointNotFound, CorruptFile
from tritonforge.formats.input_file import has_file, reading
from tritonforge.formats.json_fields import JsonFields, read_json_object

CONFIG_NAME = "config.json"


def engine_file_name(rank: int) -> str:
    """Name of the engine file of one rank."""
    return f"rank{rank}.engine"


@dataclass(frozen=True, slots=True)
class EngineInfo:
    """A built engine, as its config.json describes it.

    Args:
        version: TensorRT-LLM that built it.
        architecture: Key of TensorRT-LLM's model table.
        dtype: Float dtype of the model.
        vocab_size: Rows of the embedding.
        tp_size: Ranks that share each layer.
        pp_size: Ranks that share the stack of layers.
        max_batch_size: Most requests at a time.
        max_input_len: Most tokens in a prompt.
        max_seq_len: Most tokens in a prompt and its answer.
        max_num_tokens: Most tokens in one step; None when the engine sets none.
        max_beam_width: Most beams.
        plugin_config: Plugins and switches that it was built with.
        files: File names in the folder, sorted.
        weights_bytes: Size of the engine files.
    """

    version: str
    architecture: str
    dtype: str
    vocab_size: int
    tp_size: int
    pp_size: int
    max_batch_size: int
    max_input_len: int
    max_seq_len: int
    max_num_tokens: int | None
    max_beam_width: int
    plugin_config: Mapping[str, object]
    files: tuple[str, ...]
    weights_bytes: int

    @property
    def world_size(self) -> int:
        """Number of ranks, and of engine files."""
        return self.tp_size * self.pp_size


def same_release(version: str, release: str) -> bool:
    """Whether an engine's version is a release. Pure.

    A suffix of the packager (``+cu124``) does not matter. A development build (``0.16.0.dev2024112600``) or a
    candidate (``0.16.0rc1``) is not the release of that name: the engine format changes between them.

    Args:
        version: What TensorRT-LLM calls itself.
        release: Name of a release, for example ``0.16.0``.
    """
    return version.partition("+")[0] == release


def read_engine_folder(folder: Path) -> EngineInfo:
    """What an engine folder holds.

    Args:
        folder: Folder that trtllm-build has written.

    Raises:
        BuildError: It has no config.json, or the engine file of a rank is missing or empty.
        CorruptFile: config.json is not what it should be.
    """
    path = folder / CONFIG_NAME
    try:
        fields = JsonFields(read_json_object(path), path)
    except CheckpointNotFound as error:
        raise BuildError(
            f"{folder}: has no {CONFIG_NAME}; expected the folder of a TensorRT-LLM engine",
            hint="build it again; a build that was interrupted leaves such a folder",
        ) from error
    info = _read(fields, folder)
    _require_ranks(folder, info.world_size)
    return info


def _read(fields: JsonFields, folder: Path) -> EngineInfo:
    model, build = _section(fields, "pretrained_config"), _section(fields, "build_config")
    mapping = model.nested("mapping") or JsonFields({}, fields.path)
    plugins = build.nested("plugin_config")
    with reading(folder):
        files = tuple(sorted(path.name for path in folder.iterdir()))
    return EngineInfo(
        version=fields.text("version"),
        architecture=model.text("architecture"),
        dtype=model.text("dtype"),
        vocab_size=model.integer("vocab_size"),
        tp_size=mapping.integer("tp_size", 1),
        pp_size=mapping.integer("pp_size", 1),
        max_batch_size=build.integer("max_batch_size"),
        max_input_len=build.integer("max_input_len"),
        max_seq_len=_max_seq_len(build),
        max_num_tokens=build.integer("max_num_tokens") if "max_num_tokens" in build else None,
        max_beam_width=build.integer("max_beam_width", 1),
        plugin_config={} if plugins is None else plugins.values,
        files=files,
        weights_bytes=sum(_size_bytes(folder / name) for name in files if name.endswith(".engine")),
    )


def _size_bytes(path: Path) -> int:
    return path.stat().st_size if has_file(path) else 0


def _max_seq_len(build: JsonFields) -> int:
    """Releases before 0.11 count the answer alone."""
    if "max_seq_len" in build or "max_output_len" not in build:
        return build.integer("max_seq_len")
    return build.integer("max_input_len") + build.integer("max_output_len")


def _section(fields: JsonFields, key: str) -> JsonFields:
    section = fields.nested(key)
    if section is None:
        raise fields.wrong(key, None, "an object")
    return section


def _require_ranks(folder: Path, world_size: int) -> None:
    for rank in range(world_size):
        path = folder / engine_file_name(rank)
        if not has_file(path):
            raise BuildError(
                f"{path}: no such file; expected the engines of {world_size} ranks, rank0 to rank{world_size - 1}",
                hint="build the engine again, or copy its whole folder",
            )
        if path.stat().st_size == 0:
            raise CorruptFile(path, "is empty; expected an engine", hint="build the engine again")
