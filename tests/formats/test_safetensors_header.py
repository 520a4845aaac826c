"""Damaged and hostile safetensors files are told apart, by file and tensor."""

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from tritonforge.errors import CheckpointNotFound, CorruptFile, MissingWeight, UnsupportedModel
from tritonforge.formats.safetensors import TensorFolder, read_header


def entry(start: int, end: int, shape: object = None, dtype: object = "F32") -> dict[str, object]:
    return {"dtype": dtype, "shape": [(end - start) // 4] if shape is None else shape, "data_offsets": [start, end]}


def write(path: Path, header: object, data: bytes = b"", *, length: int | None = None) -> Path:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes((len(text) if length is None else length).to_bytes(8, "little") + text + data)
    return path


def problem_of(path: Path) -> str:
    with pytest.raises(CorruptFile) as caught:
        read_header(path)
    assert str(path) in str(caught.value)
    return caught.value.problem


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "model.safetensors"


def test_a_file_of_the_reference_library_is_read_value_by_value(file: Path) -> None:
    values = {"a": np.arange(6, dtype=np.float32).reshape(2, 3), "b": np.array([True, False]), "c": np.float16([[1]])}
    save_file(values, file)
    opened = TensorFolder.open_file(file)
    assert opened.names() == ["a", "b", "c"]
    for name, expected in values.items():
        np.testing.assert_array_equal(opened.read(name), expected)
        assert opened.read(name).dtype == expected.dtype


def test_tensors_are_read_only_views_of_the_file(file: Path) -> None:
    save_file({"a": np.zeros(4, np.float32)}, file)
    with pytest.raises(ValueError, match="read-only"):
        TensorFolder.open_file(file).read("a")[0] = 1


def test_an_empty_file_is_too_short(file: Path) -> None:
    file.write_bytes(b"")
    assert "0 bytes: too short" in problem_of(file)


def test_an_absurd_header_length_is_not_allocated(file: Path) -> None:
    write(file, {}, length=2**63)
    assert "header length 9,223,372,036,854,775,808" in problem_of(file)


def test_a_header_that_ends_after_the_file_is_a_truncation(file: Path) -> None:
    write(file, {"a": entry(0, 4)}, length=5000)
    assert "truncated: the header has 5,000 bytes" in problem_of(file)


def test_a_truncated_data_section_names_the_tensor_that_is_cut(file: Path) -> None:
    write(file, {"first": entry(0, 8), "last": entry(8, 16)}, b"\0" * 13)
    assert "truncated: tensor 'last' ends at byte" in problem_of(file)


@pytest.mark.parametrize("cut", [1, 7, 8, 9, 40])
def test_a_real_file_cut_anywhere_is_refused(file: Path, cut: int) -> None:
    save_file({"a": np.arange(8, dtype=np.float32)}, file)
    file.write_bytes(file.read_bytes()[:-cut])
    assert problem_of(file)


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (b"{not json", "the header is not JSON"),
        (b"\xff\xfe", "the header is not UTF-8"),
        (b"[]", "the header is a JSON list; expected an object"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"a": {"dtype": "F32"}, "a": {}}', "the header names 'a' twice"),
    ],
)
def test_a_header_that_is_no_json_object_is_refused(file: Path, header: bytes, expected: str) -> None:
    write(file, header)
    assert expected in problem_of(file)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ([], "header entry 'a' is not an object"),
        (entry(0, 4, shape=[-1]), "has shape [-1]"),
        (entry(0, 4, shape=[True]), "has shape [True]"),
        (entry(0, 4, shape="1"), "has shape '1'"),
        ({"dtype": "F32", "shape": [1], "data_offsets": [0]}, "has data_offsets [0]"),
        ({"dtype": "F32", "shape": [1], "data_offsets": [-4, 0]}, "has data_offsets [-4, 0]"),
        ({"dtype": "F32", "shape": [1], "data_offsets": [4, 0]}, "needs 4 bytes"),
        (entry(0, 4, shape=[2]), "(F32 [2]) needs 8 bytes, its data_offsets [0, 4] span 4"),
        (entry(0, 4, shape=[2**62, 2**62]), "needs"),
    ],
)
def test_an_impossible_entry_names_its_tensor(file: Path, value: object, expected: str) -> None:
    write(file, {"a": value}, b"\0" * 4)
    assert expected in problem_of(file)


def test_overlapping_ranges_name_both_tensors(file: Path) -> None:
    write(file, {"a": entry(0, 8), "b": entry(4, 12)}, b"\0" * 12)
    assert problem_of(file) == "tensor 'b' overlaps tensor 'a'"


def test_a_hole_between_tensors_is_refused(file: Path) -> None:
    write(file, {"a": entry(0, 4), "b": entry(8, 12)}, b"\0" * 12)
    assert problem_of(file) == "tensor 'b' leaves a hole after tensor 'a'"


def test_bytes_after_the_last_tensor_are_refused(file: Path) -> None:
    write(file, {"a": entry(0, 4)}, b"\0" * 6)
    assert problem_of(file) == "has 2 bytes after its last tensor"


def test_an_unknown_dtype_is_unsupported_and_names_the_tensor(file: Path) -> None:
    write(file, {"a": entry(0, 4, dtype="F6_E2M3")}, b"\0" * 4)
    with pytest.raises(UnsupportedModel, match=r"tensor 'a' is not supported: dtype 'F6_E2M3'"):
        read_header(file)


def test_a_missing_file_and_a_missing_tensor_are_named(file: Path) -> None:
    with pytest.raises(CheckpointNotFound, match=r"model\.safetensors: no such file"):
        TensorFolder.open_file(file)
    save_file({"a": np.zeros(1, np.float32)}, file)
    with pytest.raises(MissingWeight, match="tensor 'b' is missing"):
        TensorFolder.open_file(file).read("b")
