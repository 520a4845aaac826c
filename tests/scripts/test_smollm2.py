"""The demo's model is known by its bytes, also when it was downloaded before."""

from pathlib import Path

from scripts.smollm2 import FILE, SIZE_BYTES, is_the_model


def test_a_file_of_the_right_size_with_other_bytes_is_not_the_model(tmp_path: Path) -> None:
    file = tmp_path / FILE
    with file.open("wb") as content:
        content.truncate(SIZE_BYTES)
    assert not is_the_model(file)


def test_a_file_that_was_cut_is_not_the_model(tmp_path: Path) -> None:
    file = tmp_path / FILE
    file.write_bytes(b"GGUF")
    assert not is_the_model(file)
