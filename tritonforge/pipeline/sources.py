"""What a checkpoint reference in forge.yaml stands for: a Hugging Face folder, made from a GGUF file when need be."""

from __future__ import annotations

from pathlib import Path

from tritonforge.artifacts import digest_of
from tritonforge.checkpoint.digest import checkpoint_digest
from tritonforge.checkpoint.gguf.importer import import_gguf
from tritonforge.errors import CheckpointError, CheckpointNotFound
from tritonforge.events import OnEvent


def source_digest(path: Path) -> str:
    """What names the content of a checkpoint: a Hugging Face folder or a GGUF file. Reads headers only.

    Raises:
        CheckpointNotFound: There is nothing at `path`.
        CheckpointError: The folder is not a checkpoint.
    """
    if path.is_dir():
        return checkpoint_digest(path)
    if not path.is_file():
        raise CheckpointNotFound(
            f"{path}: no such checkpoint", hint="expected a Hugging Face folder with config.json, or a .gguf file"
        )
    stat = path.stat()
    # Name, size and time are enough: a file that was written again has another time, and is imported again.
    return digest_of([str(path.resolve()), stat.st_size, stat.st_mtime_ns])


def checkpoint_folder(path: Path, *, digest: str, cache: Path, on_event: OnEvent) -> Path:
    """The Hugging Face folder for a checkpoint.

    Args:
        path: A folder, which is returned as it is, or a GGUF file, which is imported once and kept in `cache`.
        digest: Its `source_digest`.
        cache: Folder for imported checkpoints; made when needed.
        on_event: Called with one line per step.

    Raises:
        CheckpointError: The GGUF file cannot be imported.
    """
    if path.is_dir():
        return path
    folder = cache / f"{path.stem}-{digest[:16]}"
    if folder.is_dir():
        return folder
    try:
        return import_gguf(path, folder, on_event=on_event)
    except CheckpointError:
        if folder.is_dir():  # another build was quicker, with the same content
            return folder
        raise
