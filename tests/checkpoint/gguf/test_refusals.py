"""Files that cannot be imported: each is refused by name, and nothing is left behind."""

import resource
import struct
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.checkpoints import write_llama
from tests.support.gguf_files import GgufSource, from_checkpoint
from tritonforge.checkpoint.gguf import import_gguf
from tritonforge.errors import (
    CheckpointError,
    CheckpointNotFound,
    CorruptFile,
    MissingWeight,
    ToolMissing,
    TritonforgeError,
    UnsupportedModel,
    UsageBug,
)


@pytest.fixture
def source(tmp_path: Path) -> GgufSource:
    return from_checkpoint(write_llama(tmp_path / "source"))


@pytest.fixture
def file(tmp_path: Path, source: GgufSource) -> Path:
    return source.write(tmp_path / "model.gguf")


@pytest.fixture(autouse=True)
def nothing_is_left_behind(tmp_path: Path) -> Iterator[None]:
    yield
    assert not [path.name for path in tmp_path.iterdir() if path.name.startswith((".", "out"))]


def refuse(file: Path, kind: type[TritonforgeError], message: str) -> TritonforgeError:
    with pytest.raises(kind, match=message) as refused:
        import_gguf(file, file.parent / "out")
    assert str(file) in refused.value.message
    return refused.value


def test_a_file_that_does_not_exist(tmp_path: Path) -> None:
    refuse(tmp_path / "absent.gguf", CheckpointNotFound, "no such file")


def test_a_folder_instead_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "folder.gguf").mkdir()
    refuse(tmp_path / "folder.gguf", CorruptFile, "is a folder")


@pytest.mark.parametrize("content", [b"", b"GGUF", b"PK\x03\x04 and a zip archive", b"\x00" * 64])
def test_something_that_is_not_gguf(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "other.gguf").write_bytes(content)
    refuse(tmp_path / "other.gguf", CorruptFile, "GGUF")


def test_a_format_older_than_gguf(tmp_path: Path) -> None:
    (tmp_path / "old.bin").write_bytes(b"tjgg\x03\x00\x00\x00" + b"\x00" * 64)
    refuse(tmp_path / "old.bin", UnsupportedModel, "older than GGUF")


@pytest.mark.parametrize("version", [1, 4])
def test_an_unknown_version(file: Path, version: int) -> None:
    file.write_bytes(b"GGUF" + struct.pack("<I", version) + file.read_bytes()[8:])
    refuse(file, UnsupportedModel, f"version {version}")


def test_a_big_endian_file(tmp_path: Path, source: GgufSource) -> None:
    refuse(source.write(tmp_path / "big.gguf", big_endian=True), UnsupportedModel, "big-endian")


def test_a_part_of_a_split_model_known_by_its_fields(tmp_path: Path, source: GgufSource) -> None:
    source.fields["split.count"] = 3
    refused = refuse(source.write(tmp_path / "part.gguf"), UnsupportedModel, "one of 3 parts")
    assert "merge" in str(refused.hint)


def test_a_part_of_a_split_model_known_by_its_name(tmp_path: Path, source: GgufSource) -> None:
    refuse(source.write(tmp_path / "model-00001-of-00002.gguf"), UnsupportedModel, "one of 2 parts")


@pytest.mark.parametrize("fraction", [0.001, 0.05, 0.2, 0.5, 0.999])
def test_a_truncated_file(file: Path, fraction: float) -> None:
    content = file.read_bytes()
    file.write_bytes(content[: int(len(content) * fraction)])
    refuse(file, CorruptFile, "truncated")


def test_a_file_cut_within_its_last_tensor(file: Path) -> None:
    content = file.read_bytes().rstrip(b"\0")
    file.write_bytes(content[:-40])
    refuse(file, CorruptFile, "truncated: '.*' ends at byte")


@settings(max_examples=150, deadline=None, database=None, derandomize=True,
          suppress_health_check=[HealthCheck.function_scoped_fixture])  # fmt: skip
@given(data=st.data())
def test_a_damaged_header_is_never_a_bug_of_ours(file: Path, data: st.DataObject) -> None:
    content = bytearray(file.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(4, 6000))] = data.draw(st.integers(0, 255))
    damaged = file.with_name("damaged.gguf")
    damaged.write_bytes(content)
    out = file.parent / "result"
    try:
        import_gguf(damaged, out)
    except TritonforgeError:
        assert not out.exists()
    else:
        for path in out.iterdir():
            path.unlink()
        out.rmdir()


FIELDS: dict[str, tuple[str, object, type[TritonforgeError], str]] = {
    "other_architecture": ("general.architecture", "qwen2", UnsupportedModel, "'qwen2'"),
    "adapter": ("general.type", "adapter", UnsupportedModel, "'adapter'"),
    "experts": ("llama.expert_count", 8, UnsupportedModel, "expert_count is 8"),
    "sliding_window": ("llama.attention.sliding_window", 4096, UnsupportedModel, "sliding_window is 4096"),
    "logit_scale": ("llama.logit_scale", 0.5, UnsupportedModel, "logit_scale is 0.5"),
    "not_causal": ("llama.attention.causal", False, UnsupportedModel, "causal is False"),
    "yarn": ("llama.rope.scaling.type", "yarn", UnsupportedModel, "'yarn'"),
    "heads_by_layer": ("llama.attention.head_count_kv", [2, 4], UnsupportedModel, "differs by layer"),
    "part_rotated": ("llama.rope.dimension_count", 8, UnsupportedModel, "rotates 8 of 16"),
    "value_heads": ("llama.attention.value_length", 32, UnsupportedModel, "value heads have 32"),
    "kv_heads": ("llama.attention.head_count_kv", 3, CorruptFile, "4 query heads, which 3 key heads"),
    "many_layers": ("llama.block_count", 4_000_000_000, MissingWeight, "blk.2.attn_norm.weight"),
    "no_layers": ("llama.block_count", 0, CorruptFile, "llama.block_count is 0"),
    "eos_range": ("tokenizer.ggml.eos_token_id", 99999, CorruptFile, "eos_token_id is 99999"),
    "wrong_kind": ("llama.block_count", "two", CorruptFile, "llama.block_count"),
    "tokens_no_list": ("tokenizer.ggml.tokens", "abc", CorruptFile, "tokenizer.ggml.tokens"),
    "few_types": ("tokenizer.ggml.token_type", [1, 1], CorruptFile, "2 entries for"),
    "odd_types": ("tokenizer.ggml.token_type", [77] * 379, CorruptFile, "77"),
    "odd_merge": ("tokenizer.ggml.merges", ["ab"], CorruptFile, "'ab' is not two tokens"),
}


@pytest.mark.parametrize(("key", "value", "kind", "message"), FIELDS.values(), ids=FIELDS)
def test_a_field_that_rules_the_import_out(
    tmp_path: Path, source: GgufSource, key: str, value: object, kind: type[TritonforgeError], message: str
) -> None:
    source.fields[key] = value
    refuse(source.write(tmp_path / "model.gguf"), kind, message)


@pytest.mark.parametrize(
    "key",
    [
        "llama.block_count", "llama.context_length", "llama.embedding_length", "llama.feed_forward_length",
        "llama.attention.head_count", "llama.attention.layer_norm_rms_epsilon", "tokenizer.ggml.model",
        "tokenizer.ggml.tokens", "tokenizer.ggml.merges", "tokenizer.ggml.eos_token_id",
    ],
)  # fmt: skip
def test_a_missing_field_is_named(tmp_path: Path, source: GgufSource, key: str) -> None:
    del source.fields[key]
    refuse(source.write(tmp_path / "model.gguf"), CorruptFile, f"{key} is missing")


def test_more_tokens_than_embedding_rows(tmp_path: Path, source: GgufSource) -> None:
    for name in ("token_embd.weight", "output.weight"):
        source.tensors[name] = source.tensors[name][:-1]
    refuse(source.write(tmp_path / "model.gguf"), CorruptFile, "379 tokens, but its embedding has 378 rows")


def test_a_tensor_without_a_place_is_named(tmp_path: Path, source: GgufSource) -> None:
    source.tensors["blk.0.ffn_gate_inp.weight"] = np.zeros((4, 64), np.float32)
    refuse(source.write(tmp_path / "model.gguf"), UnsupportedModel, "'blk.0.ffn_gate_inp.weight'")


def test_a_storage_type_that_cannot_be_read_is_named(file: Path) -> None:
    refuse(_with_storage(file, 9), UnsupportedModel, "Q8_1")


def test_a_storage_type_that_nobody_knows_is_named(file: Path) -> None:
    refuse(_with_storage(file, 250), UnsupportedModel, "storage type 250")


def test_an_existing_output_is_left_alone(file: Path) -> None:
    kept = file.parent / "kept"
    kept.mkdir()
    (kept / "file").write_text("mine")
    with pytest.raises(CheckpointError, match="exists already"):
        import_gguf(file, kept)
    assert [path.name for path in kept.iterdir()] == ["file"]


def test_an_empty_output_folder_is_taken(file: Path) -> None:
    (file.parent / "empty").mkdir()
    assert (import_gguf(file, file.parent / "empty") / "config.json").is_file()


def test_a_disk_that_takes_no_more_leaves_nothing(file: Path) -> None:
    # A limit on the size of a file fails in the same place and way as a full disk.
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))
    try:
        with pytest.raises(CheckpointError, match="cannot write .* bytes"):
            import_gguf(file, file.parent / "new" / "deep" / "out")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert not (file.parent / "new").exists()


def test_an_output_below_a_file_is_refused(file: Path) -> None:
    with pytest.raises(CheckpointError, match="cannot be written"):
        import_gguf(file, file / "out")


def test_a_missing_gguf_package_names_the_extra(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gguf", None)
    with pytest.raises(ToolMissing) as refused:
        import_gguf(file, file.parent / "out")
    assert "tritonforge[gguf]" in str(refused.value.hint)


def test_an_unknown_dtype_is_a_bug_of_the_caller(file: Path) -> None:
    with pytest.raises(UsageBug, match="int8"):
        import_gguf(file, file.parent / "out", dtype="int8")


def _with_storage(file: Path, type_number: int) -> Path:
    """The file with another storage type in the table's row of one tensor."""
    content = bytearray(file.read_bytes())
    name = b"blk.0.attn_q.weight"
    row = content.index(name) + len(name)
    dimensions = struct.unpack_from("<I", content, row)[0]
    struct.pack_into("<I", content, row + 4 + 8 * dimensions, type_number)
    file.write_bytes(content)
    return file
