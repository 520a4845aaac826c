"""What a checkpoint reference in forge.yaml stands for: a Hugging Face folder, made from a GGUF file when need be."""

from __future__ import annotations

from pathlib import Path

from tritonforge.artifacts import TokenizerArtifact, digest_of
from tritonforge.checkpoint.digest import checkpoint_digest
from tritonforge.checkpoint.gguf.importer import import_gguf
from tritonforge.checkpoint.prove_tokenizer import prove_tokenizer
from tritonforge.checkpoint.source import SourceCheckpoint, open_checkpoint
from tritonforge.checkpoint.tokenizer import find_tokenizer
from tritonforge.errors import CheckpointError, CheckpointNotFound
from tritonforge.events import OnEvent


class Sources:
    """The checkpoints of one build. However many versions share one, it is opened and its tokenizer proved once.

    Args:
        imports: Folder for imported GGUF files; made when needed.
    """

    def __init__(self, imports: Path) -> None:
        self._imports = imports
        self._digests: dict[Path, str] = {}
        self._opened: dict[tuple[Path, bool], SourceCheckpoint] = {}
        self._tokenizers: dict[Path, TokenizerArtifact] = {}

    def digest(self, path: Path) -> str:
        """The `source_digest` of a checkpoint when the build began.

        Raises:
            CheckpointError: There is no checkpoint, or it cannot be read.
        """
        if path not in self._digests:
            self._digests[path] = source_digest(path)
        return self._digests[path]

    def look(self, path: Path, *, as_it_is: bool) -> SourceCheckpoint | None:
        """The opened checkpoint; None for a GGUF file that is not imported yet. Writes nothing.

        Args:
            path: The checkpoint.
            as_it_is: Its engine reads the folder itself; see `open_checkpoint`.

        Raises:
            CheckpointError: It is not supported, or damaged.
        """
        folder = path if path.is_dir() else import_place(path, self.digest(path), self._imports)
        return self._open(path, folder, as_it_is=as_it_is) if folder.is_dir() else None

    def open(self, path: Path, *, as_it_is: bool, on_event: OnEvent) -> SourceCheckpoint:
        """The opened checkpoint; a GGUF file is imported when it has not been.

        Args:
            path: The checkpoint.
            as_it_is: Its engine reads the folder itself; see `open_checkpoint`.
            on_event: Called with one line per step.

        Raises:
            CheckpointError: It is not supported, damaged, or cannot be imported.
        """
        folder = checkpoint_folder(path, digest=self.digest(path), cache=self._imports, on_event=on_event)
        return self._open(path, folder, as_it_is=as_it_is)

    def tokenizer(self, source: SourceCheckpoint) -> TokenizerArtifact:
        """Its tokenizer, which the gateway can use.

        Raises:
            CheckpointError: It has none, or none that can be used.
        """
        if source.folder not in self._tokenizers:
            tokenizer = find_tokenizer(source)
            prove_tokenizer(source, tokenizer)
            self._tokenizers[source.folder] = tokenizer
        return self._tokenizers[source.folder]

    def require_unchanged(self, path: Path) -> None:
        """Refuse a checkpoint that has changed since the build began: what was made of it has no name.

        Raises:
            CheckpointError: It has.
        """
        if source_digest(path) != self.digest(path):
            raise CheckpointError(
                f"{path}: changed while it was being converted", hint="build again when it is complete"
            )

    def _open(self, path: Path, folder: Path, *, as_it_is: bool) -> SourceCheckpoint:
        key = (path, as_it_is)
        if key not in self._opened:
            self._opened[key] = open_checkpoint(folder, as_it_is=as_it_is)
        return self._opened[key]


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


def import_place(path: Path, digest: str, imports: Path) -> Path:
    """Folder that an imported GGUF file has."""
    return imports / f"{path.stem}-{digest[:16]}"


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
    folder = import_place(path, digest, cache)
    if folder.is_dir():
        return folder
    try:
        return import_gguf(path, folder, on_event=on_event)
    except CheckpointError:
        if folder.is_dir():  # another build was quicker, with the same content
            return folder
        raise
