"""A folder of tensors: single file, index, loose shards, and everything that can be wrong with them."""

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from tritonforge.errors import CheckpointNotFound, CorruptFile, MissingWeight, UnsupportedModel
from tritonforge.formats.safetensors import TensorFolder

INDEX = "model.safetensors.index.json"
SHARDS = ("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors")


def save(file: Path, **values: float) -> None:
    save_file({name: np.full(2, value, np.float32) for name, value in values.items()}, file)


def write_index(folder: Path, weight_map: object) -> None:
    (folder / INDEX).write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))


@pytest.fixture
def sharded(tmp_path: Path) -> Path:
    save(tmp_path / SHARDS[0], a=1)
    save(tmp_path / SHARDS[1], b=2)
    write_index(tmp_path, {"a": SHARDS[0], "b": SHARDS[1]})
    return tmp_path


def test_an_index_leads_to_every_shard(sharded: Path) -> None:
    opened = TensorFolder.open(sharded)
    assert opened.names() == ["a", "b"]
    assert opened.read("b")[0] == 2
    assert [file.name for file in opened.files()] == list(SHARDS)


def test_shards_without_an_index_are_taken_together(sharded: Path) -> None:
    (sharded / INDEX).unlink()
    assert TensorFolder.open(sharded).names() == ["a", "b"]


def test_an_incomplete_set_of_shards_names_the_missing_one(sharded: Path) -> None:
    (sharded / INDEX).unlink()
    (sharded / SHARDS[0]).unlink()
    with pytest.raises(CheckpointNotFound, match=r"model-00001-of-00002\.safetensors: no such file"):
        TensorFolder.open(sharded)


def test_a_single_file_wins_over_other_copies_of_the_weights(tmp_path: Path) -> None:
    save(tmp_path / "model.safetensors", a=1)
    save(tmp_path / "consolidated.safetensors", a=2, b=2)
    assert TensorFolder.open(tmp_path).names() == ["a"]


def test_a_tensor_in_two_files_is_refused_by_name(tmp_path: Path) -> None:
    save(tmp_path / "one.safetensors", a=1)
    save(tmp_path / "two.safetensors", a=2)
    with pytest.raises(CorruptFile, match=r"two\.safetensors: tensor 'a' is also in one\.safetensors"):
        TensorFolder.open(tmp_path)


def test_an_index_that_names_a_missing_file_is_refused(sharded: Path) -> None:
    (sharded / SHARDS[1]).unlink()
    with pytest.raises(CheckpointNotFound, match=r"tensor 'b' should be in model-00002-of-00002\.safetensors"):
        TensorFolder.open(sharded)


@pytest.mark.parametrize("name", ["../other/model.safetensors", "/etc/passwd", "sub/model.safetensors", "..", ".", ""])
def test_an_index_that_leads_out_of_the_folder_is_refused(sharded: Path, name: str) -> None:
    write_index(sharded, {"a": SHARDS[0], "b": name})
    with pytest.raises(CorruptFile, match="puts tensor 'b' in"):
        TensorFolder.open(sharded)


def test_shards_that_are_links_are_followed(sharded: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The hub's cache keeps the files elsewhere and links to them."""
    blobs = tmp_path_factory.mktemp("blobs")
    for name in SHARDS:
        (sharded / name).rename(blobs / name)
        (sharded / name).symlink_to(blobs / name)
    assert TensorFolder.open(sharded).names() == ["a", "b"]


def test_an_index_that_names_a_tensor_its_file_lacks_is_refused(sharded: Path) -> None:
    write_index(sharded, {"a": SHARDS[0], "b": SHARDS[1], "c": SHARDS[1]})
    with pytest.raises(MissingWeight, match="tensor 'c' is missing"):
        TensorFolder.open(sharded)


def test_an_index_that_puts_a_tensor_into_the_wrong_file_is_refused(sharded: Path) -> None:
    write_index(sharded, {"a": SHARDS[1], "b": SHARDS[0]})
    with pytest.raises(MissingWeight):
        TensorFolder.open(sharded)


@pytest.mark.parametrize("weight_map", [{}, [], None, "x", {"a": 3}])
def test_an_index_without_a_map_is_refused(sharded: Path, weight_map: object) -> None:
    write_index(sharded, weight_map)
    with pytest.raises(CorruptFile, match="index"):
        TensorFolder.open(sharded)


def test_an_index_with_a_tensor_twice_is_refused(sharded: Path) -> None:
    (sharded / INDEX).write_text('{"weight_map": {"a": "x", "a": "y"}}')
    with pytest.raises(CorruptFile, match="names 'a' twice"):
        TensorFolder.open(sharded)


@pytest.mark.parametrize("name", ["pytorch_model.bin", "pytorch_model-00001-of-00002.bin", "model.pt", "model.pth"])
def test_pickles_are_refused_with_the_way_to_convert_them(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"\x80\x02")
    with pytest.raises(UnsupportedModel, match="pickle") as caught:
        TensorFolder.open(tmp_path)
    assert "safe_serialization=True" in str(caught.value.hint)


def test_a_folder_without_weights_and_no_folder_at_all_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(CheckpointNotFound, match="holds no"):
        TensorFolder.open(tmp_path)
    with pytest.raises(CheckpointNotFound, match="no such folder"):
        TensorFolder.open(tmp_path / "missing")


def test_rows_are_copied_from_the_file(tmp_path: Path) -> None:
    values = np.arange(12, dtype=np.float32).reshape(4, 3)
    save_file({"a": values, "b": values[0]}, tmp_path / "model.safetensors")
    folder = TensorFolder.open(tmp_path)
    rows, elements = np.empty((2, 3), np.float32), np.empty(2, np.float32)
    folder.read_rows("a", 1, rows)
    folder.read_rows("b", 1, elements)
    np.testing.assert_array_equal(rows, values[1:3])
    np.testing.assert_array_equal(elements, values[0, 1:])
    rows[:] = 0  # a copy, not the file
    folder.read_rows("a", 1, rows)
    np.testing.assert_array_equal(rows, values[1:3])


def test_a_file_that_becomes_shorter_while_it_is_read_is_named(tmp_path: Path) -> None:
    file = tmp_path / "model.safetensors"
    save_file({"a": np.zeros((4, 3), np.float32)}, file)
    folder = TensorFolder.open(tmp_path)
    file.write_bytes(file.read_bytes()[:-8])
    with pytest.raises(CorruptFile, match=r"model\.safetensors: has become shorter while it was read"):
        folder.read_rows("a", 0, np.empty((4, 3), np.float32))
