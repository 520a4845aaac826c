"""The writer: read back by the reference library, refused when planned wrongly, and nothing left when it fails."""

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from safetensors.numpy import load_file

from tests.support.full_disk import file_size_limit
from tritonforge.errors import CheckpointError, UsageBug
from tritonforge.formats.safetensors import DTYPES, PlannedTensor, TensorFolder, write_tensors
from tritonforge.formats.safetensors_writer import TensorFile, TensorForm

CODES = {dtype: code for code, dtype in DTYPES.items()}


def planned(name: str, values: np.ndarray) -> PlannedTensor:
    return PlannedTensor(name, CODES[values.dtype], values.shape, lambda: values)


@settings(deadline=None, max_examples=40)  # each example waits for the disk
@given(
    tensors=st.dictionaries(
        st.text(min_size=1).filter(lambda name: name != "__metadata__"),
        hnp.arrays(
            st.sampled_from([np.float32, np.float16, np.int64, np.uint8, np.bool_]),
            hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
        ),
        max_size=4,
    )
)
def test_what_is_written_is_read_back_bit_by_bit(
    tmp_path_factory: pytest.TempPathFactory, tensors: dict[str, np.ndarray]
) -> None:
    file = tmp_path_factory.mktemp("written") / "x.safetensors"
    write_tensors(file, [planned(name, values) for name, values in tensors.items()])
    opened = TensorFolder.open_file(file)
    assert opened.names() == sorted(tensors)
    for name, values in tensors.items():
        read = opened.read(name)
        assert (read.dtype, read.shape, read.tobytes()) == (values.dtype, values.shape, values.tobytes())


def test_the_reference_library_reads_what_is_written(tmp_path: Path) -> None:
    half = np.arange(6, dtype=DTYPES["BF16"]).reshape(2, 3)
    write_tensors(tmp_path / "x.safetensors", [planned("a", half), planned("b", np.ones(3, np.float32))], {"k": "v"})
    loaded = load_file(tmp_path / "x.safetensors")
    np.testing.assert_array_equal(loaded["a"].astype(np.float32), half.astype(np.float32))
    np.testing.assert_array_equal(loaded["b"], np.ones(3))


def test_a_tensor_is_made_only_when_its_turn_comes(tmp_path: Path) -> None:
    order: list[str] = []

    def make(name: str) -> np.ndarray:
        order.append(name)
        return np.zeros(2, np.float32)

    tensors = [PlannedTensor(name, "F32", (2,), lambda name=name: make(name)) for name in "cab"]
    assert order == []
    write_tensors(tmp_path / "x.safetensors", tensors)
    assert order == ["c", "a", "b"]


def test_values_that_are_not_contiguous_are_written_in_order(tmp_path: Path) -> None:
    values = np.arange(6, dtype=np.float32).reshape(2, 3).T
    write_tensors(tmp_path / "x.safetensors", [planned("a", values)])
    np.testing.assert_array_equal(TensorFolder.open_file(tmp_path / "x.safetensors").read("a"), values)


@pytest.mark.parametrize("made", [np.zeros(3, np.float32), np.zeros(2, np.float16)])
def test_a_tensor_made_otherwise_than_planned_leaves_no_file(tmp_path: Path, made: np.ndarray) -> None:
    with pytest.raises(UsageBug, match=r"a was planned as F32 \[2\]"):
        write_tensors(tmp_path / "x.safetensors", [PlannedTensor("a", "F32", (2,), lambda: made)])
    assert list(tmp_path.iterdir()) == []


def test_a_name_planned_twice_is_a_bug(tmp_path: Path) -> None:
    with pytest.raises(UsageBug, match="'a' is planned twice"):
        write_tensors(tmp_path / "x.safetensors", [planned("a", np.zeros(1, np.float32))] * 2)


def test_an_interrupt_leaves_no_file(tmp_path: Path) -> None:
    def interrupt() -> np.ndarray:
        raise KeyboardInterrupt

    first = planned("a", np.zeros(1000, np.float32))
    with pytest.raises(KeyboardInterrupt):
        write_tensors(tmp_path / "x.safetensors", [first, PlannedTensor("b", "F32", (2,), interrupt)])
    assert list(tmp_path.iterdir()) == []


def test_too_little_space_shows_before_a_tensor_is_made(tmp_path: Path) -> None:
    made: list[int] = []
    shape = (4096,)
    tensor = PlannedTensor("a", "F32", shape, lambda: made.append(1) or np.zeros(shape, np.float32))
    with file_size_limit(4096), pytest.raises(CheckpointError, match=r"x\.safetensors: cannot write 16,\d+ bytes"):
        write_tensors(tmp_path / "x.safetensors", [tensor])
    assert made == []
    assert list(tmp_path.iterdir()) == []


def test_an_existing_file_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "x.safetensors").write_text("mine")
    with pytest.raises(CheckpointError, match="cannot write"):
        write_tensors(tmp_path / "x.safetensors", [planned("a", np.zeros(1, np.float32))])
    assert (tmp_path / "x.safetensors").read_text() == "mine"


def test_sizes_follow_from_dtype_and_shape() -> None:
    tensor = PlannedTensor("a", "BF16", (3, 5), lambda: np.zeros(0))
    assert tensor.size_bytes == math.prod((3, 5)) * 2


def test_parts_may_come_in_any_order_and_what_never_comes_is_zero(tmp_path: Path) -> None:
    forms = [TensorForm("a", "F32", (4, 2)), TensorForm("b", "I8", (3,))]
    file = TensorFile(tmp_path / "x.safetensors", forms)
    file.write("b", 1, np.array([7], np.int8))
    file.write("a", 16, np.full((2, 2), 2, np.float32))
    file.write("a", 0, np.full((1, 2), 1, np.float32))
    file.close()
    loaded = load_file(tmp_path / "x.safetensors")
    np.testing.assert_array_equal(loaded["a"], [[1, 1], [0, 0], [2, 2], [2, 2]])
    np.testing.assert_array_equal(loaded["b"], [0, 7, 0])


def test_a_file_that_is_discarded_is_gone(tmp_path: Path) -> None:
    file = TensorFile(tmp_path / "x.safetensors", [TensorForm("a", "F32", (4,))])
    file.discard()
    assert list(tmp_path.iterdir()) == []
