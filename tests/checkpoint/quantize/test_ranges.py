"""Files of activation ranges that cannot be used, and what is said of them; nothing is made then."""

from collections.abc import Callable
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from tests.support.activation_ranges import make_ranges, write_ranges
from tests.support.checkpoints import write_chatglm, write_llama
from tritonforge.checkpoint.convert import convert
from tritonforge.checkpoint.options import ConvertOptions
from tritonforge.errors import CheckpointNotFound, CorruptFile

UP = "model__layers__1__mlp__up_proj"
NAME = "model.layers.1.mlp.up_proj"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_llama(tmp_path / "hf", tokenizer=None)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({f"{UP}__x": None}, f"lacks {NAME}.x"),
        ({f"{UP}__y": None}, f"lacks {NAME}.y"),
        ({f"{UP}__x": np.ones(63, np.float32)}, f"{NAME}.x has shape [63]; expected [64], one for each channel"),
        ({f"{UP}__y": np.ones((96, 1), np.float32)}, f"{NAME}.y has shape [96, 1]; expected [96]"),
        ({f"{UP}__x": np.full(64, np.nan, np.float32)}, f"{NAME}.x has 64 values that are NaN or infinite"),
        ({f"{UP}__x": np.full(64, np.inf, np.float32)}, f"{NAME}.x has 64 values that are NaN or infinite"),
        ({f"{UP}__y": np.where(np.arange(96) == 3, -1, 1).astype(np.float32)}, f"{NAME}.y has 1 negative values"),
        ({f"{UP}__y": np.zeros(96, np.float32)}, f"{NAME}.y has nothing but zeros"),
        ({f"{UP}__x": np.ones(64, np.int32)}, f"{NAME}.x has dtype I32; expected F32, F16 or BF16"),
        ({"model__layers__2__mlp__up_proj__x": np.ones(64, np.float32)}, "does not have: model.layers.2.mlp.up_proj.x"),
        ({f"{UP}__z": np.ones(64, np.float32)}, f"does not have: {NAME}.z"),
    ],
)
def test_a_file_that_is_no_recording_of_the_model_is_refused(
    tmp_path: Path, source: Path, changed: dict[str, object], message: str
) -> None:
    path = write_ranges(source, tmp_path / "ranges.safetensors", **changed)
    with pytest.raises(CorruptFile) as error:
        convert(source, tmp_path / "out", ConvertOptions(precision="int8_smoothquant", activation_ranges=path))
    assert str(path) in error.value.message
    assert message in error.value.message
    assert "docs/quantisation.md" in (error.value.hint or "")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("name", "near"),
    [("model__layers__1__mlp__upproj__x", f"{NAME}.x"), ("encoder__x", "model.layers.0.self_attn.q_proj.x")],
)
def test_of_unknown_modules_a_linear_one_is_suggested(tmp_path: Path, source: Path, name: str, near: str) -> None:
    path = write_ranges(source, tmp_path / "ranges.safetensors", **{name: np.ones(64, np.float32)})
    with pytest.raises(CorruptFile) as error:
        convert(source, tmp_path / "out", ConvertOptions(precision="fp8", activation_ranges=path))
    assert f"expected names such as {near!r}" in error.value.message


def test_a_file_that_does_not_exist_is_named(tmp_path: Path, source: Path) -> None:
    path = tmp_path / "ranges.safetensors"
    with pytest.raises(CheckpointNotFound, match=r"ranges\.safetensors: no such file of activation ranges") as error:
        convert(source, tmp_path / "out", ConvertOptions(precision="fp8", activation_ranges=path))
    assert "(--activation-ranges, activation_ranges in forge.yaml)" in error.value.message
    assert "docs/quantisation.md has a script that records" in (error.value.hint or "")


def test_a_file_that_is_no_safetensors_file_is_named(tmp_path: Path, source: Path) -> None:
    path = tmp_path / "ranges.safetensors"
    path.write_text("model.layers.0")
    with pytest.raises(CorruptFile, match="not a safetensors file"):
        convert(source, tmp_path / "out", ConvertOptions(precision="fp8", activation_ranges=path))


def test_ranges_of_16_bits_and_of_weights_are_accepted(tmp_path: Path, source: Path) -> None:
    changed = {
        f"{UP}__x": np.ones(64, ml_dtypes.bfloat16),
        f"{UP}__y": np.ones(96, np.float16),
        f"{UP}__w": np.ones(96, np.float32),
    }
    path = write_ranges(source, tmp_path / "ranges.safetensors", **changed)
    convert(source, tmp_path / "out", ConvertOptions(precision="int8_smoothquant", activation_ranges=path))
    assert (tmp_path / "out").is_dir()


def test_channels_that_are_silent_are_accepted(tmp_path: Path, source: Path) -> None:
    changed = {f"{UP}__y": np.where(np.arange(96) == 3, 0, 1).astype(np.float32)}
    path = write_ranges(source, tmp_path / "ranges.safetensors", **changed)
    convert(source, tmp_path / "out", ConvertOptions(precision="fp8", activation_ranges=path))
    assert (tmp_path / "out").is_dir()


@pytest.mark.parametrize(
    ("write", "head"), [(write_llama, "lm_head"), (write_chatglm, "transformer.output_layer")], ids=["llama", "chatglm"]
)
def test_a_head_that_shares_the_embedding_may_be_recorded_like_any_other(
    tmp_path: Path, write: Callable[..., Path], head: str
) -> None:
    folder = write(tmp_path / "tied", tokenizer=None, tie_word_embeddings=True)
    ranges = make_ranges(folder)
    (file,) = folder.glob("*.safetensors")
    weights = load_file(file)
    del weights[f"{head}.weight"]
    save_file(weights, file)
    assert {f"{head}.x", f"{head}.y"} <= ranges.keys()
    save_file(ranges, tmp_path / "ranges.safetensors")
    options = ConvertOptions(precision="fp8", activation_ranges=tmp_path / "ranges.safetensors")
    convert(folder, tmp_path / "out", options)
    assert (tmp_path / "out" / "rank0.safetensors").is_file()
