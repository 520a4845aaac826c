"""Damaged or inconsistent checkpoints: a clear error that names file and tensor, before anything is written."""

import json
import shutil
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from tests.support.checkpoints import DTYPES, write_chatglm, write_llama
from tests.support.rotary import llama3_scaling
from tritonforge.checkpoint.convert import convert
from tritonforge.checkpoint.options import ConvertOptions
from tritonforge.checkpoint.source import open_checkpoint
from tritonforge.errors import (
    CheckpointError,
    CheckpointNotFound,
    CorruptFile,
    MissingWeight,
    ShapeMismatch,
    UnsupportedModel,
)

K_PROJ = "model.layers.1.self_attn.k_proj.weight"


@pytest.fixture
def llama(tmp_path: Path) -> Path:
    return write_llama(tmp_path / "hf", tokenizer=None)


def change_config(folder: Path, **config: object) -> None:
    path = folder / "config.json"
    values = {**json.loads(path.read_text()), **config}
    path.write_text(json.dumps({key: value for key, value in values.items() if value is not ...}))


def change_weights(folder: Path, **values: np.ndarray | None) -> None:
    weights = load_file(folder / "model.safetensors") | values
    save_file({name: value for name, value in weights.items() if value is not None}, folder / "model.safetensors")


def test_a_missing_tensor_is_named(llama: Path, tmp_path: Path) -> None:
    change_weights(llama, **{K_PROJ: None})
    with pytest.raises(MissingWeight, match=K_PROJ):
        convert(llama, tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["hf"]


def test_a_missing_head_without_tied_embeddings_says_which_key_would_explain_it(llama: Path) -> None:
    change_weights(llama, **{"lm_head.weight": None})
    with pytest.raises(MissingWeight, match=r"lm_head\.weight") as caught:
        open_checkpoint(llama)
    assert "tie_word_embeddings" in str(caught.value.hint)


def test_a_wrong_shape_names_tensor_expectation_and_reason(llama: Path) -> None:
    change_weights(llama, **{K_PROJ: np.zeros((64, 64), np.float32)})
    with pytest.raises(ShapeMismatch) as caught:
        open_checkpoint(llama)
    expected = f"{K_PROJ} has shape [64, 64], expected [32, 64] (4 query heads × 16, 2 KV heads × 16)"
    assert expected in str(caught.value)


def test_a_vocabulary_that_differs_from_the_embedding_is_a_shape_mismatch(llama: Path) -> None:
    change_config(llama, vocab_size=130)
    with pytest.raises(ShapeMismatch, match=r"embed_tokens.*expected \[130, 64\] \(vocab_size 130\)"):
        open_checkpoint(llama)


def test_weights_that_are_integers_are_unsupported(llama: Path) -> None:
    change_weights(llama, **{K_PROJ: np.zeros((32, 64), np.int8)})
    with pytest.raises(UnsupportedModel, match="has dtype I8; expected F32, F16, BF16"):
        open_checkpoint(llama)


def test_a_truncated_file_is_named_before_anything_is_written(llama: Path, tmp_path: Path) -> None:
    file = llama / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-100])
    with pytest.raises(CorruptFile, match=r"model\.safetensors: is truncated"):
        convert(llama, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"hidden_size": ...}, "hidden_size is missing"),
        ({"hidden_size": "64"}, 'hidden_size is "64"; expected a whole number of at least 1'),
        ({"num_hidden_layers": -2}, "num_hidden_layers is -2"),
        ({"num_hidden_layers": 10**12}, "expected a whole number of at most 10000"),
        ({"num_attention_heads": True}, "num_attention_heads is true"),
        ({"num_attention_heads": 0}, "num_attention_heads is 0"),
        ({"num_key_value_heads": 3}, "num_key_value_heads is 3; expected a divisor of num_attention_heads (4)"),
        ({"num_attention_heads": 5, "num_key_value_heads": 5}, "hidden_size is 64; expected a multiple of"),
        ({"head_dim": 15}, "head_dim is 15; expected an even number"),
        ({"rms_norm_eps": "tiny"}, 'rms_norm_eps is "tiny"; expected a number from 1e-20 to 1'),
        ({"attention_bias": "yes"}, 'attention_bias is "yes"; expected true or false'),
        ({"rope_scaling": "linear"}, 'rope_scaling is "linear"; expected an object'),
        ({"rope_scaling": {"type": "linear"}}, "rope_scaling.factor is missing"),
        ({"rope_scaling": {"rope_type": "llama3", "factor": 8.0}}, "rope_scaling.low_freq_factor is missing"),
        ({"rope_scaling": {"type": "linear", "factor": 1e-300}}, "factor is 1e-300; expected a number from 0.01"),
        ({"rope_theta": 1e-300}, "rope_theta is 1e-300; expected a number from 1 to 1e+12"),
        ({"rope_parameters": {"rope_theta": 1e300}}, "rope_parameters.rope_theta is 1e+300; expected a number from 1"),
        ({"rms_norm_eps": 1e308}, "rms_norm_eps is 1e+308; expected a number from 1e-20 to 1"),
        ({"max_position_embeddings": 1}, "max_position_embeddings is 1; expected a whole number of at least 2"),
        ({"max_position_embeddings": 1e300}, "expected a whole number of at most 2147483647"),
        ({"architectures": "LlamaForCausalLM"}, "expected a list of strings"),
        ({"torch_dtype": 16}, "torch_dtype is 16; expected a string"),
    ],
)
def test_a_wrong_value_in_the_configuration_names_file_and_key(
    llama: Path, config: dict[str, object], expected: str
) -> None:
    change_config(llama, **config)
    with pytest.raises(CorruptFile) as caught:
        open_checkpoint(llama)
    assert str(llama / "config.json") in str(caught.value)
    assert expected in str(caught.value)


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"rope_ratio": 1e-300}, "rope_ratio is 1e-300; expected a number from 0.01 to 10000"),
        ({"layernorm_epsilon": 1e308}, "layernorm_epsilon is 1e+308; expected a number from 1e-20 to 1"),
        ({"seq_length": 1}, "seq_length is 1; expected a whole number of at least 2"),
    ],
)
def test_a_wrong_value_in_a_configuration_of_chatglm_names_its_key(
    tmp_path: Path, config: dict[str, object], expected: str
) -> None:
    with pytest.raises(CorruptFile) as caught:
        open_checkpoint(write_chatglm(tmp_path, tokenizer=False, **config))
    assert expected in str(caught.value)


@pytest.mark.parametrize("factor", ["factor", "low_freq_factor", "high_freq_factor"])
def test_a_factor_of_llama3_scaling_without_measure_is_named(llama: Path, factor: str) -> None:
    change_config(llama, rope_scaling=llama3_scaling() | {factor: 1e300})
    with pytest.raises(CorruptFile, match=rf"rope_scaling\.{factor} is 1e\+300; expected a number from 0.01 to 10000"):
        open_checkpoint(llama)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b'{"a": ' + b"1" * 5000 + b"}", "not usable"),
        (b"[]", "expected an object"),
        (b"\xff\xff", "not UTF-8"),
        (b'{"a": 1, "a": 2}', "names 'a' twice"),
    ],
)
def test_a_corrupt_configuration_is_named(llama: Path, text: bytes, expected: str) -> None:
    (llama / "config.json").write_bytes(text)
    with pytest.raises(CorruptFile, match=expected):
        open_checkpoint(llama)


def test_a_configuration_may_begin_with_a_byte_order_mark(llama: Path) -> None:
    path = llama / "config.json"
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert open_checkpoint(llama).family == "llama"


def test_a_configuration_that_names_no_architecture_goes_by_its_model_type(llama: Path) -> None:
    change_config(llama, architectures=...)
    assert open_checkpoint(llama).family == "llama"
    change_config(llama, model_type=...)
    with pytest.raises(UnsupportedModel, match="unnamed architecture"):
        open_checkpoint(llama)


def test_what_is_no_checkpoint_at_all_says_what_is_missing(tmp_path: Path, llama: Path) -> None:
    with pytest.raises(CheckpointNotFound, match="no such folder"):
        open_checkpoint(tmp_path / "missing")
    (llama / "config.json").unlink()
    with pytest.raises(CheckpointNotFound, match=r"config\.json: no such file"):
        open_checkpoint(llama)
    (llama / "adapter_config.json").write_text("{}")
    with pytest.raises(CheckpointNotFound) as caught:
        open_checkpoint(llama)
    assert "merge it" in str(caught.value.hint)
    (tmp_path / "model.gguf").write_bytes(b"GGUF")
    with pytest.raises(CheckpointNotFound) as caught:
        open_checkpoint(tmp_path / "model.gguf")
    assert "import-gguf" in str(caught.value.hint)


def test_a_folder_that_lost_a_shard_names_it(tmp_path: Path) -> None:
    source = write_llama(tmp_path / "hf", tokenizer=None, shards=3)
    (source / "model-00002-of-00003.safetensors").unlink()
    with pytest.raises(CheckpointNotFound, match=r"model-00002-of-00003\.safetensors"):
        open_checkpoint(source)


def test_a_value_that_float16_cannot_hold_is_an_error_and_leaves_nothing(tmp_path: Path) -> None:
    source = write_llama(tmp_path / "hf", tokenizer=None, dtype="BF16")
    large = np.full((64,), 1.0, ml_dtypes.bfloat16)
    large[3] = 1e6
    change_weights(source, **{"model.norm.weight": large})
    with pytest.raises(
        CheckpointError, match=r"model\.norm\.weight: the value 999424 does not fit into float16"
    ) as caught:
        convert(source, tmp_path / "out", ConvertOptions(dtype="float16"))
    assert caught.value.hint == "convert to bfloat16 instead"
    assert [path.name for path in tmp_path.iterdir()] == ["hf"]
    assert convert(source, tmp_path / "out").config.dtype == "bfloat16"


def test_a_value_that_rounds_beyond_bfloat16_is_an_error(tmp_path: Path, llama: Path) -> None:
    change_weights(llama, **{"model.norm.weight": np.full((64,), np.finfo(np.float32).max)})
    with pytest.raises(CheckpointError, match="does not fit into bfloat16") as caught:
        convert(llama, tmp_path / "out", ConvertOptions(dtype="bfloat16"))
    assert caught.value.hint == "convert to float32 instead"


@pytest.mark.parametrize("stored", ["F32", "F16", "BF16"])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_weights_that_are_no_numbers_are_refused_with_their_number(
    tmp_path: Path, stored: str, dtype: str, value: float
) -> None:
    source = write_llama(tmp_path / "hf", tokenizer=None, dtype=stored)
    weights = np.ones((32, 64), DTYPES[stored])
    weights[3, 7:9] = value
    change_weights(source, **{K_PROJ: weights})
    with pytest.raises(CorruptFile, match=rf"model\.safetensors: tensor '{K_PROJ}' has 2 values that are NaN or inf"):
        convert(source, tmp_path / "out", ConvertOptions(dtype=dtype))
    assert [path.name for path in tmp_path.iterdir()] == ["hf"]


def test_a_chatglm_whose_projection_has_other_heads_is_a_shape_mismatch(tmp_path: Path) -> None:
    source = write_chatglm(tmp_path, tokenizer=False)
    change_config(source, multi_query_group_num=1)
    with pytest.raises(ShapeMismatch, match=r"query_key_value\.weight .* 1 KV heads × 16"):
        open_checkpoint(source)


def test_a_folder_without_any_weight_is_told_from_a_missing_folder(llama: Path) -> None:
    (llama / "model.safetensors").unlink()
    with pytest.raises(CheckpointNotFound, match="holds no"):
        open_checkpoint(llama)
    shutil.rmtree(llama)
    with pytest.raises(CheckpointNotFound, match="no such folder"):
        open_checkpoint(llama)
