"""Precisions that a checkpoint or a release cannot have: refused with every reason, before anything is made."""

import json
from pathlib import Path

import numpy as np
import pytest

from tests.support.activation_ranges import write_ranges
from tests.support.checkpoints import write_chatglm, write_llama
from tritonforge.checkpoint.convert import convert
from tritonforge.checkpoint.options import ConvertOptions, SmoothQuant
from tritonforge.errors import CheckpointError, UnsupportedModel
from tritonforge.formats.trtllm import TrtllmConfig

SQ = "int8_smoothquant"


def refusal(source: Path, **options: object) -> UnsupportedModel:
    out = source.with_name("out")
    with pytest.raises(UnsupportedModel) as error:
        convert(source, out, ConvertOptions(**options))  # type: ignore[arg-type]
    assert not out.exists()
    return error.value


@pytest.mark.parametrize("options", [{"precision": "fp8"}, {"precision": SQ}, {"kv_cache": "int8"}])
def test_what_needs_activation_ranges_says_so(tmp_path: Path, options: dict[str, object]) -> None:
    error = refusal(write_llama(tmp_path / "hf", tokenizer=None), **options)
    assert "needs a file of activation ranges (--activation-ranges, activation_ranges in forge.yaml)" in error.message
    assert "docs/quantisation.md" in (error.hint or "")


def test_every_reason_is_given(tmp_path: Path) -> None:
    source = write_llama(tmp_path / "hf", hidden=96, heads=4, intermediate=160, tokenizer=None)
    error = refusal(source, dtype="float32", precision="int4_awq", kv_cache="int8", group_size=64)
    assert error.reasons == (
        "an int8 KV cache needs a file of activation ranges (--activation-ranges, activation_ranges in forge.yaml)",
        "its scales are of the float type, which float32 cannot be; expected float16 or bfloat16",
        "attention.qkv has 96 input channels, which do not divide into groups of 64",
        "attention.dense has 96 input channels, which do not divide into groups of 64",
        "mlp.fc has 96 input channels, which do not divide into groups of 64",
        "mlp.gate has 96 input channels, which do not divide into groups of 64",
        "mlp.proj has 160 input channels, which do not divide into groups of 64",
    )


def test_a_group_must_not_reach_over_ranks(tmp_path: Path) -> None:
    source = write_llama(tmp_path / "hf", hidden=256, intermediate=384, tokenizer=None)
    error = refusal(source, precision="int4_awq", group_size=128, tp=2)
    assert error.reasons == (
        "mlp.proj has 192 input channels on each of 2 ranks, which do not divide into groups of 128",
    )


@pytest.mark.parametrize(("intermediate", "advises"), [(192, True), (176, False)])
def test_a_group_of_64_is_advised_where_it_does(tmp_path: Path, intermediate: int, *, advises: bool) -> None:
    source = write_llama(tmp_path / "hf", hidden=128, intermediate=intermediate, tokenizer=None)
    error = refusal(source, precision="int4_awq")
    assert "which do not divide into groups of 128" in error.message
    assert ("--group-size 64 (group_size: 64 of the engine in forge.yaml)" in (error.hint or "")) is advises
    if advises:
        convert(source, tmp_path / "out", ConvertOptions(precision="int4_awq", group_size=64))


def test_two_output_channels_must_not_be_torn_apart(tmp_path: Path) -> None:
    source = write_chatglm(tmp_path / "hf", hidden=128, intermediate=130, vocab=64, tokenizer=False)
    error = refusal(source, precision="int4_awq", group_size=64, tp=2)
    assert "mlp.fc has an odd number of output channels on each of 2 ranks; two of them share a byte" in error.reasons


def test_newer_releases_want_larger_multiples(tmp_path: Path) -> None:
    source = write_llama(tmp_path / "hf", hidden=128, intermediate=192, tokenizer=None)
    convert(source, tmp_path / "older", ConvertOptions(precision="int4_awq", group_size=64))
    source_of_multiples = write_llama(
        tmp_path / "multiples", hidden=128, heads=5, head_dim=16, tokenizer=None, kv_heads=5
    )
    error = refusal(source_of_multiples, precision="int4_awq", group_size=64, release="1.0.0")
    assert any("expects multiples of 64 for groups of 64 on 1 ranks" in reason for reason in error.reasons)


def test_alpha_is_a_fraction(tmp_path: Path) -> None:
    source = write_llama(tmp_path / "hf", tokenizer=None)
    path = write_ranges(source, tmp_path / "ranges.safetensors")
    error = refusal(source, precision=SQ, activation_ranges=path, smoothquant=SmoothQuant(alpha=1.5))
    assert error.reasons == ("smoothquant alpha is 1.5; expected 0 to 1",)


def test_smoothquant_of_chatglm_is_for_one_rank(tmp_path: Path) -> None:
    source = write_chatglm(tmp_path / "hf", vocab=64, tokenizer=False)
    path = write_ranges(source, tmp_path / "ranges.safetensors")
    assert "on one rank only" in refusal(source, precision=SQ, activation_ranges=path, tp=2).message


def test_channels_without_weights_cannot_be_smoothed(tmp_path: Path) -> None:
    source = write_llama(tmp_path / "hf", layers=1, tokenizer=None)
    zero_column(source, "model.layers.0.mlp.down_proj.weight", 7)
    path = write_ranges(source, tmp_path / "ranges.safetensors")
    with pytest.raises(CheckpointError, match=r"mlp\.proj: all weights of input channel 7 are 0"):
        convert(source, tmp_path / "out", ConvertOptions(precision=SQ, activation_ranges=path))
    assert not (tmp_path / "out").exists()
    options = ConvertOptions(precision=SQ, activation_ranges=path, smoothquant=SmoothQuant(alpha=1.0))
    convert(source, tmp_path / "out", options)


def test_a_norm_that_outgrows_its_dtype_is_named(tmp_path: Path) -> None:
    source = write_llama(tmp_path / "hf", layers=1, tokenizer=None)
    silent = np.where(np.arange(64) == 5, 0, 1).astype(np.float32)
    parts = {f"model__layers__0__self_attn__{part}_proj__x": silent for part in "qkv"}
    path = write_ranges(source, tmp_path / "ranges.safetensors", **parts)
    with pytest.raises(CheckpointError, match=r"input_layernorm\.weight: smoothed weights do not fit into float16"):
        convert(source, tmp_path / "out", ConvertOptions(precision=SQ, activation_ranges=path))


@pytest.mark.parametrize(
    ("release", "options", "expected"),
    [
        ("0.16.0", {"precision": "int8_weight_only"}, {"quant_algo": "W8A16"}),
        ("0.9.0", {"precision": "int4_weight_only"}, {"quant_algo": "W4A16"}),
        ("0.16.0", {"precision": SQ}, {"quant_algo": "W8A8_SQ_PER_CHANNEL_PER_TOKEN_PLUGIN", "smoothquant_val": 0.5}),
        (
            "0.11.0",
            {"precision": SQ, "smoothquant": SmoothQuant(0.4, per_channel=False, per_token=False)},
            {"quant_algo": "W8A8_SQ_PER_TENSOR_PLUGIN"},
        ),
        (
            "0.12.0",
            {"precision": SQ, "smoothquant": SmoothQuant(0.0, per_channel=True, per_token=False)},
            {"quant_algo": "W8A8_SQ_PER_CHANNEL_PER_TENSOR_PLUGIN", "smoothquant_val": 0.0},
        ),
        (
            "0.16.0",
            {"precision": SQ, "smoothquant": SmoothQuant(0.5, per_channel=False, per_token=True)},
            {"quant_algo": "W8A8_SQ_PER_TENSOR_PER_TOKEN_PLUGIN", "smoothquant_val": 0.5},
        ),
        ("0.16.0", {"precision": "fp8"}, {"quant_algo": "FP8", "exclude_modules": ["lm_head"]}),
        ("0.11.0", {"precision": "fp8"}, {"quant_algo": "FP8"}),
        (
            "0.11.0",
            {"precision": "int4_awq", "group_size": 64},
            {
                "quant_algo": "W4A16_AWQ",
                "group_size": 64,
                "has_zero_point": False,
                "pre_quant_scale": True,
                "exclude_modules": ["lm_head"],
            },
        ),
    ],
)
def test_the_configuration_says_what_the_release_understands(
    tmp_path: Path, release: str, options: dict[str, object], expected: dict[str, object]
) -> None:
    source = write_llama(tmp_path / "hf", layers=1, intermediate=128, tokenizer=None)
    path = write_ranges(source, tmp_path / "ranges.safetensors")
    made = convert(source, tmp_path / "out", ConvertOptions(release=release, activation_ranges=path, **options))  # type: ignore[arg-type]
    found = json.loads((tmp_path / "out" / "config.json").read_text())["quantization"]
    if release == "0.9.0":
        found.pop("exclude_modules")  # 0.9 and 0.10 write it for every Llama
    assert found == {"kv_cache_quant_algo": None, **expected}
    read = TrtllmConfig.read(tmp_path / "out")
    assert (read.quant_algo, read.kv_cache_quant_algo) == (made.config.quant_algo, made.config.kv_cache_quant_algo)
    assert release == "0.9.0" or read.quant_details == made.config.quant_details


def test_weight_only_leaves_floats_for_the_build(tmp_path: Path) -> None:
    source = write_llama(tmp_path / "hf", layers=1, tokenizer=None, dtype="BF16")
    convert(source, tmp_path / "floats", ConvertOptions())
    convert(source, tmp_path / "int8", ConvertOptions(precision="int8_weight_only"))
    names = ("rank0.safetensors",)
    assert [(tmp_path / "int8" / n).read_bytes() for n in names] == [
        (tmp_path / "floats" / n).read_bytes() for n in names
    ]


def zero_column(source: Path, name: str, column: int) -> None:
    from safetensors.numpy import load_file, save_file

    weights = load_file(source / "model.safetensors")
    weights[name][:, column] = 0
    save_file(weights, source / "model.safetensors", metadata={"format": "pt"})
