"""A name for the content of a checkpoint folder that is cheap to make: no tensor is read."""

from __future__ import annotations

import hashlib
from pathlib import Path

from tritonforge.artifacts import digest_of
from tritonforge.checkpoint.source import read_config_json
from tritonforge.formats.input_file import read_input, reading
from tritonforge.formats.json_fields import MOST_JSON_BYTES
from tritonforge.formats.safetensors import TensorFolder


def checkpoint_digest(folder: Path) -> str:
    """sha256 over config.json, and the name, headers, size and modification time of each weight file.

    Equal digests mean the same files, untouched. A copy that does not keep modification times has another digest
    although its tensors are equal: the price of not reading gigabytes.

    Raises:
        CheckpointNotFound, CorruptFile, UnsupportedModel: The folder cannot be read.
    """
    config = read_config_json(folder)
    weights = TensorFolder.open(folder)
    with reading(folder):
        files = {
            file.name: {"size_bytes": (stat := file.stat()).st_size, "modified_ns": stat.st_mtime_ns}
            for file in weights.files()
        }
    tensors = {
        name: [info.dtype, info.shape, info.file.name, info.start]
        for name, info in ((name, weights.info(name)) for name in weights.names())
    }
    config_digest = hashlib.sha256(read_input(config.path, most_bytes=MOST_JSON_BYTES)).hexdigest()
    return digest_of({"config": config_digest, "files": files, "tensors": tensors})
