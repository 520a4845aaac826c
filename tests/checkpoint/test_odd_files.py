"""Files of a checkpoint that are no regular files, too large, or under impossible names: refused by name, at once."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.checkpoints import write_chatglm, write_llama
from tritonforge.checkpoint.convert import convert
from tritonforge.checkpoint.digest import checkpoint_digest
from tritonforge.checkpoint.gguf.importer import import_gguf
from tritonforge.checkpoint.inspect import inspect
from tritonforge.checkpoint.source import open_checkpoint
from tritonforge.checkpoint.tokenizer import find_tokenizer
from tritonforge.errors import CheckpointError, CheckpointNotFound, CorruptFile
from tritonforge.formats.input_file import read_input
from tritonforge.formats.safetensors import TensorFolder

pytestmark = pytest.mark.timeout(20)  # a pipe would be waited for without end


def pipe(path: Path) -> None:
    path.unlink(missing_ok=True)
    os.mkfifo(path)


def endless(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.symlink_to("/dev/zero")


def folder(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.mkdir()


ODD = [(pipe, "a named pipe"), (endless, "a device"), (folder, "a folder")]


@pytest.mark.parametrize(("replace", "kind"), ODD)
@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "model.safetensors.index.json"])
def test_what_is_no_regular_file_is_named(
    tmp_path: Path, name: str, replace: Callable[[Path], None], kind: str
) -> None:
    source = write_llama(tmp_path / "hf", tokenizer=None)
    replace(source / name)
    for read in (open_checkpoint, inspect, checkpoint_digest):
        with pytest.raises(CorruptFile, match=f"{name}: is {kind}; expected a regular file"):
            read(source)


@pytest.mark.parametrize(("replace", "kind"), ODD)
@pytest.mark.parametrize(
    "name", ["tokenizer.json", "tokenizer_config.json", "generation_config.json", "chat_template.jinja"]
)
def test_a_tokenizer_file_that_is_no_regular_file_is_named(
    tmp_path: Path, name: str, replace: Callable[[Path], None], kind: str
) -> None:
    source = write_llama(tmp_path / "hf")
    replace(source / name)
    with pytest.raises(CorruptFile, match=f"{name}: is {kind}; expected a regular file"):
        find_tokenizer(open_checkpoint(source))


@pytest.mark.parametrize(("replace", "kind"), ODD)
@pytest.mark.parametrize("name", ["tokenizer.model", "tokenizer_config.json"])
def test_a_chatglm_whose_version_is_in_no_regular_file_is_named(
    tmp_path: Path, name: str, replace: Callable[[Path], None], kind: str
) -> None:
    source = write_chatglm(tmp_path / "hf")
    replace(source / name)
    with pytest.raises(CorruptFile, match=f"{name}: is {kind}; expected a regular file"):
        open_checkpoint(source)


@pytest.mark.parametrize(("replace", "kind"), ODD)
def test_a_gguf_file_that_is_no_regular_file_is_named(
    tmp_path: Path, replace: Callable[[Path], None], kind: str
) -> None:
    replace(tmp_path / "model.gguf")
    with pytest.raises(CorruptFile, match=rf"model\.gguf: is {kind}; expected a regular file"):
        import_gguf(tmp_path / "model.gguf", tmp_path / "out")


def test_a_file_above_its_limit_is_not_read(tmp_path: Path) -> None:
    source = write_llama(tmp_path / "hf", tokenizer=None)
    os.truncate(source / "config.json", 2**40)  # a hole: it takes no space
    with pytest.raises(CorruptFile, match=r"config\.json: has 1,099,511,627,776 bytes; expected at most 67,108,864"):
        open_checkpoint(source)


def test_a_link_to_a_regular_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "blob").write_bytes(b"content")
    (tmp_path / "link").symlink_to("blob")
    assert read_input(tmp_path / "link", most_bytes=7) == b"content"


@pytest.mark.parametrize("name", ["x" * 5000, "\0", "\ud800", "é" * 200])
def test_an_index_with_an_impossible_file_name_is_corrupt(tmp_path: Path, name: str) -> None:
    source = write_llama(tmp_path / "hf", tokenizer=None)
    index = {"weight_map": {"model.norm.weight": name}}
    (source / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(CorruptFile, match="puts tensor 'model.norm.weight' in .*; expected the name of a file"):
        TensorFolder.open(source)


@pytest.mark.parametrize("place", ["x" * 5000, "loop/inside", "\0"])
def test_an_impossible_folder_is_an_error_of_ours(tmp_path: Path, place: str) -> None:
    (tmp_path / "loop").symlink_to("loop")
    for read in (open_checkpoint, inspect, checkpoint_digest):
        with pytest.raises(CheckpointError):
            read(tmp_path / place)


@pytest.mark.parametrize("place", ["x" * 300, "file/out"])
def test_an_impossible_output_is_an_error_of_ours(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CheckpointError, match="cannot be written: File (name too long|exists)"):
        convert(write_llama(tmp_path / "hf", tokenizer=None), tmp_path / place)


def test_a_file_that_vanishes_before_its_tensors_are_read_is_named(tmp_path: Path) -> None:
    weights = TensorFolder.open(write_llama(tmp_path, tokenizer=None))
    (tmp_path / "model.safetensors").unlink()
    with pytest.raises(CheckpointNotFound, match=r"model\.safetensors: no such file"):
        weights.read("model.norm.weight")
