"""Weights: every tensor comes back with its name, its row order and exactly its dequantised values."""

import json
from pathlib import Path

import gguf
import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import load_file

from tests.support.checkpoints import write_llama
from tests.support.gguf_files import from_checkpoint, gguf_name, interleave
from tritonforge.checkpoint.gguf import import_gguf
from tritonforge.checkpoint.gguf.weights import undo_rotary_order
from tritonforge.errors import CheckpointError, CorruptFile, MissingWeight

FORMS = {
    "grouped_queries": {},
    "one_key_head": {"kv_heads": 1},
    "as_many_key_heads": {"kv_heads": 4},
    "wide_heads": {"head_dim": 32},
    "tied": {"tied": True},
    "attention_bias": {"attention_bias": True},
    "mlp_bias": {"mlp_bias": True},
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_float32_weights_survive_the_round_trip_to_the_bit(tmp_path: Path, form: dict) -> None:
    source = write_llama(tmp_path / "source", **form)
    file = from_checkpoint(source).write(tmp_path / "model.gguf")

    made = load_file(import_gguf(file, tmp_path / "out", dtype="float32") / "model.safetensors")

    expected = load_file(source / "model.safetensors")
    assert set(made) == set(expected)
    for name, values in expected.items():
        assert np.array_equal(made[name], values), name


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_config_says_the_same_as_the_source(tmp_path: Path, form: dict) -> None:
    source = write_llama(tmp_path / "source", **form)
    file = from_checkpoint(source).write(tmp_path / "model.gguf")

    made = json.loads((import_gguf(file, tmp_path / "out") / "config.json").read_text())

    expected = json.loads((source / "config.json").read_text())
    expected["torch_dtype"] = "float16"
    expected.setdefault("head_dim", 16)
    del expected["transformers_version"]  # nothing of ours was written by it
    assert {key: made.get(key) for key in expected} == expected


@pytest.mark.parametrize("storage", ["F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1"])
def test_quantised_rows_are_dequantised_exactly(tmp_path: Path, storage: str) -> None:
    source = write_llama(tmp_path / "source")
    file = from_checkpoint(source, storage=storage).write(tmp_path / "model.gguf")

    made = load_file(import_gguf(file, tmp_path / "out", dtype="float32") / "model.safetensors")

    kind = gguf.GGMLQuantizationType[storage]
    for name, values in load_file(source / "model.safetensors").items():
        # Rows are quantised one by one, so that their order makes no difference.
        expected = gguf.dequantize(gguf.quantize(values, kind), kind) if values.ndim > 1 else values
        assert np.array_equal(made[name], expected), name


@pytest.mark.parametrize(("dtype", "numpy_dtype"), [("float16", np.float16), ("bfloat16", ml_dtypes.bfloat16)])
def test_weights_are_rounded_to_the_wanted_type(tmp_path: Path, dtype: str, numpy_dtype: type) -> None:
    source = write_llama(tmp_path / "source")
    file = from_checkpoint(source).write(tmp_path / "model.gguf")

    made = load_file(import_gguf(file, tmp_path / "out", dtype=dtype) / "model.safetensors")

    for name, values in load_file(source / "model.safetensors").items():
        assert made[name].dtype == numpy_dtype
        assert np.array_equal(made[name], values.astype(numpy_dtype)), name


def test_rows_are_dequantised_in_chunks_that_need_not_divide_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = write_llama(tmp_path / "source")
    file = from_checkpoint(source, storage="Q8_0").write(tmp_path / "model.gguf")
    whole = load_file(import_gguf(file, tmp_path / "whole") / "model.safetensors")

    monkeypatch.setattr("tritonforge.checkpoint.gguf.weights._CHUNK_ELEMENTS", 7 * 64)
    chunked = load_file(import_gguf(file, tmp_path / "chunked") / "model.safetensors")

    assert all(np.array_equal(chunked[name], whole[name]) for name in whole)


def test_biases_that_the_file_lacks_in_every_layer_are_zero(tmp_path: Path) -> None:
    source = from_checkpoint(write_llama(tmp_path / "source", attention_bias=True))
    for layer in range(2):
        del source.tensors[f"blk.{layer}.attn_output.bias"]

    made = load_file(import_gguf(source.write(tmp_path / "model.gguf"), tmp_path / "out") / "model.safetensors")

    assert made["model.layers.1.self_attn.o_proj.bias"].shape == (64,)
    assert not made["model.layers.1.self_attn.o_proj.bias"].any()
    assert made["model.layers.1.self_attn.q_proj.bias"].any()


def test_a_bias_that_one_layer_lacks_is_named(tmp_path: Path) -> None:
    source = from_checkpoint(write_llama(tmp_path / "source", attention_bias=True))
    del source.tensors["blk.1.attn_q.bias"]

    with pytest.raises(MissingWeight, match=r"blk\.1\.attn_q\.bias"):
        import_gguf(source.write(tmp_path / "model.gguf"), tmp_path / "out")


@pytest.mark.parametrize("name", ["model.norm.weight", "model.layers.1.mlp.up_proj.weight"])
def test_a_missing_tensor_is_named(tmp_path: Path, name: str) -> None:
    source = from_checkpoint(write_llama(tmp_path / "source"))
    del source.tensors[gguf_name(name)]

    with pytest.raises(MissingWeight, match=gguf_name(name).replace(".", r"\.")):
        import_gguf(source.write(tmp_path / "model.gguf"), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_tensor_of_another_shape_is_named_with_both_shapes(tmp_path: Path) -> None:
    source = from_checkpoint(write_llama(tmp_path / "source"))
    source.tensors["blk.0.attn_k.weight"] = source.tensors["blk.0.attn_k.weight"][:16]

    with pytest.raises(CorruptFile, match=r"blk\.0\.attn_k\.weight.* \[16, 64\].* \[32, 64\]"):
        import_gguf(source.write(tmp_path / "model.gguf"), tmp_path / "out")


def test_a_value_that_float16_cannot_hold_asks_for_another_type(tmp_path: Path) -> None:
    source = from_checkpoint(write_llama(tmp_path / "source"))
    source.tensors["blk.1.ffn_up.weight"][3, 5] = 70000.0
    file = source.write(tmp_path / "model.gguf")

    with pytest.raises(CheckpointError, match=r"blk\.1\.ffn_up\.weight.*70000") as refused:
        import_gguf(file, tmp_path / "out")

    assert "bfloat16" in str(refused.value.hint)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.gguf", "source"]
    assert import_gguf(file, tmp_path / "out", dtype="bfloat16").is_dir()


def test_a_value_that_is_not_a_number_is_corruption(tmp_path: Path) -> None:
    source = from_checkpoint(write_llama(tmp_path / "source"))
    source.tensors["blk.1.ffn_up.weight"][3, 5] = np.nan

    with pytest.raises(CorruptFile, match=r"blk\.1\.ffn_up\.weight"):
        import_gguf(source.write(tmp_path / "model.gguf"), tmp_path / "out")


@given(heads=st.integers(1, 6), half=st.integers(1, 8), columns=st.none() | st.integers(1, 3))
def test_undoing_the_rotary_order_is_the_inverse_of_interleaving(heads: int, half: int, columns: int | None) -> None:
    shape = (heads * half * 2,) if columns is None else (heads * half * 2, columns)
    rows = np.arange(np.prod(shape)).reshape(shape)
    assert np.array_equal(undo_rotary_order(interleave(rows, heads), heads), rows)
