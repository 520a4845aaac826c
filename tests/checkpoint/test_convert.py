"""What ends up where in the target, and that the output appears whole or not at all."""

import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from tests.support.checkpoints import write_chatglm, write_glm, write_llama
from tests.support.full_disk import file_size_limit
from tritonforge.checkpoint.convert import convert
from tritonforge.checkpoint.families.base import Arrangement, SourceTensor, TargetTensor
from tritonforge.checkpoint.mapping import arrange
from tritonforge.checkpoint.options import ConvertOptions
from tritonforge.errors import CheckpointError, CorruptFile, UsageBug
from tritonforge.formats.safetensors import TensorFolder

LAYER = "transformer.layers.1"


def converted(source: Path, out: Path) -> dict[str, np.ndarray]:
    convert(source, out, ConvertOptions(dtype="float32"), for_engine="openvino")
    return load_file(out / "rank0.safetensors")


def test_llama_tensors_take_their_places(tmp_path: Path) -> None:
    source = write_llama(tmp_path / "hf", tokenizer=None, attention_bias=True, mlp_bias=True)
    hf, made = load_file(source / "model.safetensors"), converted(source, tmp_path / "out")
    layer = "model.layers.1"
    for kind in ("weight", "bias"):
        fused = np.concatenate([hf[f"{layer}.self_attn.{part}_proj.{kind}"] for part in "qkv"])
        np.testing.assert_array_equal(made[f"{LAYER}.attention.qkv.{kind}"], fused)
        places = {
            "attention.dense": "self_attn.o_proj",
            "mlp.fc": "mlp.gate_proj",  # the activated half
            "mlp.gate": "mlp.up_proj",
            "mlp.proj": "mlp.down_proj",
        }
        for target, name in places.items():
            np.testing.assert_array_equal(made[f"{LAYER}.{target}.{kind}"], hf[f"{layer}.{name}.{kind}"])
    np.testing.assert_array_equal(made["lm_head.weight"], hf["lm_head.weight"])


def test_a_tied_head_is_written_as_a_copy_of_the_embedding(tmp_path: Path) -> None:
    source = write_llama(tmp_path / "hf", tokenizer=None, tied=True)
    made = converted(source, tmp_path / "out")
    np.testing.assert_array_equal(made["lm_head.weight"], made["transformer.vocab_embedding.weight"])


def test_a_head_that_is_there_is_used_whatever_the_flag_says(tmp_path: Path) -> None:
    source = write_llama(tmp_path / "hf", tokenizer=None, tie_word_embeddings=True)
    made = converted(source, tmp_path / "out")
    np.testing.assert_array_equal(made["lm_head.weight"], load_file(source / "model.safetensors")["lm_head.weight"])


def test_chatglm_gate_and_up_change_places_in_weight_and_bias(tmp_path: Path) -> None:
    source = write_chatglm(tmp_path / "hf", tokenizer=False, dtype="F32", add_bias_linear=True)
    hf, made = load_file(source / "model.safetensors"), converted(source, tmp_path / "out")
    layer = "transformer.encoder.layers.1"
    for kind in ("weight", "bias"):
        gate, up = np.split(hf[f"{layer}.mlp.dense_h_to_4h.{kind}"], 2)
        np.testing.assert_array_equal(made[f"{LAYER}.mlp.fc.{kind}"], np.concatenate([up, gate]))
        name = f"{layer}.self_attention.query_key_value.{kind}"
        np.testing.assert_array_equal(made[f"{LAYER}.attention.qkv.{kind}"], hf[name])


def test_heads_with_their_own_keys_are_taken_apart(tmp_path: Path) -> None:
    """Stored head by head, or all queries, all keys, all values: the same model must come out."""
    zipped = write_chatglm(tmp_path / "zipped", tokenizer=False, dtype="F32", multi_query=False)
    weights = load_file(zipped / "model.safetensors")
    plain = write_chatglm(tmp_path / "plain", tokenizer=False, dtype="F32", groups=4)
    for name in [name for name in weights if "query_key_value" in name]:
        by_head = weights[name].reshape(4, 3, 16, *weights[name].shape[1:])
        weights[name] = np.concatenate([by_head[:, part].reshape(64, *by_head.shape[3:]) for part in range(3)])
    save_file(weights, plain / "model.safetensors")
    first, second = converted(zipped, tmp_path / "a"), converted(plain, tmp_path / "b")
    assert first.keys() == second.keys()
    for name, values in first.items():
        np.testing.assert_array_equal(values, second[name])


def test_both_namings_of_glm4_become_the_same_checkpoint(tmp_path: Path) -> None:
    native = write_glm(tmp_path / "native", tokenizer=False, rope_theta=5000000.0)
    weights = load_file(native / "model.safetensors")
    layers = {"self_attn.o_proj": "self_attention.dense", "mlp.gate_up_proj": "mlp.dense_h_to_4h"}
    layers |= {"mlp.down_proj": "mlp.dense_4h_to_h", "input_layernorm": "input_layernorm"}
    layers |= {"post_attention_layernorm": "post_attention_layernorm"}
    original = {
        "transformer.embedding.word_embeddings.weight": weights["model.embed_tokens.weight"],
        "transformer.encoder.final_layernorm.weight": weights["model.norm.weight"],
        "transformer.output_layer.weight": weights["lm_head.weight"],
    }
    for i in range(2):
        source, target = f"model.layers.{i}", f"transformer.encoder.layers.{i}"
        for name, renamed in layers.items():
            original[f"{target}.{renamed}.weight"] = weights[f"{source}.{name}.weight"]
        for kind in ("weight", "bias"):
            parts = [weights[f"{source}.self_attn.{part}_proj.{kind}"] for part in "qkv"]
            original[f"{target}.self_attention.query_key_value.{kind}"] = np.concatenate(parts)
    folder = write_chatglm(tmp_path / "original", version="glm4", tokenizer=False, dtype="F32", rope_ratio=500.0)
    save_file(original, folder / "model.safetensors")
    first = convert(native, tmp_path / "a", ConvertOptions(dtype="float32"))
    second = convert(folder, tmp_path / "b", ConvertOptions(dtype="float32"))
    assert first.config.to_json() == {**second.config.to_json(), "architecture": "ChatGLMForCausalLM"}
    assert (tmp_path / "a/rank0.safetensors").read_bytes() == (tmp_path / "b/rank0.safetensors").read_bytes()


@pytest.mark.parametrize(
    ("version", "base", "factor"), [("chatglm2", 10000.0, 50.0), ("chatglm3", 500000.0, None), ("glm4", 500000.0, None)]
)
def test_rope_ratio_stretches_chatglm2_and_raises_the_base_of_later_versions(
    tmp_path: Path, version: str, base: float, factor: float | None
) -> None:
    source = write_chatglm(tmp_path / "hf", version=version, rope_ratio=50.0)
    config = convert(source, tmp_path / "out").config
    assert config.rotary_base == base
    assert (config.rotary_scaling.factor if config.rotary_scaling else None) == factor
    assert config.chatglm is not None
    assert config.chatglm.chatglm_version == version


@pytest.mark.parametrize(("stored", "expected"), [("F32", "float16"), ("F16", "float16"), ("BF16", "bfloat16")])
def test_auto_keeps_the_dtype_and_halves_float32(tmp_path: Path, stored: str, expected: str) -> None:
    for layout in (False, True):
        source = write_llama(tmp_path / f"hf{layout}", tokenizer=None, dtype=stored, newer_layout=layout)
        out = tmp_path / f"out{layout}"
        assert convert(source, out).config.dtype == expected
        spelling = {"float16": "F16", "bfloat16": "BF16"}[expected]
        assert {info.dtype for info in map(TensorFolder.open(out).info, TensorFolder.open(out).names())} == {spelling}


def test_shards_make_no_difference(tmp_path: Path) -> None:
    convert(write_llama(tmp_path / "one", tokenizer=None), tmp_path / "a")
    convert(write_llama(tmp_path / "many", tokenizer=None, shards=4), tmp_path / "b")
    assert (tmp_path / "a/rank0.safetensors").read_bytes() == (tmp_path / "b/rank0.safetensors").read_bytes()


def test_arranging_many_heads_keeps_every_row() -> None:
    source = SourceTensor("fused", (24, 1), "2 heads of 4, each with query, key and value")  # [head, (q, k, v), 4]
    runs = arrange(TargetTensor("x", (source,), Arrangement.UNZIP_HEADS), heads=2)
    assert [(run.source_row, run.row, run.rows) for run in runs] == [
        (0, 0, 4), (12, 4, 4),  # queries
        (4, 8, 4), (16, 12, 4),  # keys
        (8, 16, 4), (20, 20, 4),  # values
    ]  # fmt: skip


def test_an_output_folder_that_exists_is_left_alone(tmp_path: Path) -> None:
    source = write_llama(tmp_path / "hf", tokenizer=None)
    (tmp_path / "out").mkdir()
    (tmp_path / "out/mine.txt").write_text("mine")
    with pytest.raises(CheckpointError, match="exists already"):
        convert(source, tmp_path / "out")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["mine.txt"]


def test_an_empty_output_folder_and_missing_parents_are_fine(tmp_path: Path) -> None:
    source = write_llama(tmp_path / "hf", tokenizer=None)
    (tmp_path / "empty").mkdir()
    for out in (tmp_path / "empty", tmp_path / "new/deeper"):
        assert sorted(path.name for path in convert(source, out).path.iterdir()) == ["config.json", "rank0.safetensors"]


def test_a_link_to_an_empty_folder_is_followed(tmp_path: Path) -> None:
    source = write_llama(tmp_path / "hf", tokenizer=None)
    (tmp_path / "disk/place").mkdir(parents=True)
    (tmp_path / "out").symlink_to("disk/place")
    assert (convert(source, tmp_path / "out").path / "rank0.safetensors").is_file()
    assert (tmp_path / "out").is_symlink()
    assert [path.name for path in (tmp_path / "disk").iterdir()] == ["place"]


def test_an_empty_folder_that_cannot_be_replaced_is_refused_before_any_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = write_llama(tmp_path / "hf", tokenizer=None)
    (tmp_path / "volume").mkdir()
    told: list[str] = []
    monkeypatch.chdir(tmp_path / "volume")
    with pytest.raises(CheckpointError, match=r"\.: is the working folder, which cannot be replaced"):
        convert(source, Path(), on_event=told.append)
    monkeypatch.setattr(Path, "is_mount", lambda path: path.name == "volume")
    with pytest.raises(CheckpointError, match="volume: is a mount point, which cannot be replaced") as caught:
        convert(source, tmp_path / "volume", on_event=told.append)
    assert "name a new folder in it" in str(caught.value.hint)
    assert not told


def test_a_full_disk_leaves_nothing_behind(tmp_path: Path) -> None:
    source = write_llama(tmp_path / "hf", tokenizer=None)
    with file_size_limit(8192), pytest.raises(CheckpointError, match=r"rank0\.safetensors: cannot write .* bytes"):
        convert(source, tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["hf"]


def test_a_disk_that_is_full_after_the_first_rank_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = write_llama(tmp_path / "hf", tokenizer=None)
    taken: list[int] = []

    def fallocate(descriptor: int, start: int, size: int) -> None:
        taken.append(size)
        if len(taken) == 2:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", fallocate)
    with pytest.raises(CheckpointError, match=r"rank1\.safetensors: cannot write .* No space left on device") as caught:
        convert(source, tmp_path / "out", ConvertOptions(tp=4))
    assert "free some space" in str(caught.value.hint)
    assert [path.name for path in tmp_path.iterdir()] == ["hf"]


def test_a_value_that_is_no_number_stops_every_rank(tmp_path: Path) -> None:
    source = write_llama(tmp_path / "hf", tokenizer=None)
    weights = load_file(source / "model.safetensors")
    weights["model.layers.1.self_attn.v_proj.weight"][31, 63] = np.nan
    save_file(weights, source / "model.safetensors")
    with pytest.raises(CorruptFile, match=r"'model\.layers\.1\.self_attn\.v_proj\.weight' has 1 values that are NaN"):
        convert(source, tmp_path / "out", ConvertOptions(tp=2, pp=2))
    assert [path.name for path in tmp_path.iterdir()] == ["hf"]


def test_progress_counts_every_byte_once(tmp_path: Path) -> None:
    source = write_llama(tmp_path / "hf", tokenizer=None)
    told: list[tuple[int, int]] = []
    convert(source, tmp_path / "out", ConvertOptions(tp=2), on_progress=lambda done, total: told.append((done, total)))
    sizes = sum(values.size for values in load_file(source / "model.safetensors").values()) * 2  # float16
    assert told == sorted(told)
    assert told[-1] == (sizes, sizes)


def test_a_parent_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    source = write_llama(tmp_path / "hf", tokenizer=None)
    (tmp_path / "file").write_text("")
    with pytest.raises(CheckpointError, match=r"file/out: cannot be written"):
        convert(source, tmp_path / "file/out")


def test_an_interrupted_conversion_leaves_nothing_behind(tmp_path: Path) -> None:
    source = write_llama(tmp_path / "hf", tokenizer=None, hidden=512, intermediate=2048, layers=8, vocab=4096)
    command = [sys.executable, "-m", "tritonforge", "convert", str(source), str(tmp_path / "out")]
    child = subprocess.Popen(command, stderr=subprocess.PIPE, start_new_session=True)
    try:
        deadline = time.monotonic() + 60
        while not list(tmp_path.glob(".out.*.partial")):
            assert child.poll() is None, "it was over before it could be interrupted"
            assert time.monotonic() < deadline
        os.kill(child.pid, signal.SIGINT)
        _, stderr = child.communicate(timeout=60)
    finally:
        child.kill()
    assert child.returncode == 130, stderr
    assert [path.name for path in tmp_path.iterdir()] == ["hf"]


def test_progress_is_told_in_sentences(tmp_path: Path) -> None:
    told: list[str] = []
    convert(write_llama(tmp_path / "hf", tokenizer=None), tmp_path / "out", on_event=told.append)
    assert told == ["converting LlamaForCausalLM: 17 tensors to float16", f"wrote {tmp_path / 'out'}"]


@pytest.mark.parametrize(
    "options",
    [
        {"dtype": "int8"},
        {"precision": "int3"},
        {"dtype": "float16", "precision": "bfloat16"},
        {"tp": 0},
        {"pp": -1},
        {"embedding_sharding": "both"},
        {"kv_cache": "int4"},
        {"group_size": 32},
    ],
)
def test_an_option_that_does_not_exist_is_a_bug_of_the_caller(options: dict[str, object]) -> None:
    with pytest.raises(UsageBug, match=next(iter(options))):
        ConvertOptions(**options)


def test_an_engine_that_does_not_exist_is_a_bug_of_the_caller(tmp_path: Path) -> None:
    with pytest.raises(UsageBug):
        convert(tmp_path, tmp_path / "out", for_engine="vllm")
