"""Every variant of SmoothQuant against the same computation in PyTorch, to the bit."""

import itertools
import json
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from safetensors.torch import load_file  # noqa: E402

from tests.support.activation_ranges import write_ranges  # noqa: E402
from tests.support.checkpoints import write_chatglm, write_llama  # noqa: E402
from tests.support.smoothquant_torch import Case, smoothquant  # noqa: E402
from tritonforge.checkpoint.convert import convert  # noqa: E402
from tritonforge.checkpoint.options import ConvertOptions, SmoothQuant  # noqa: E402

pytestmark = pytest.mark.reference
VARIANTS = list(itertools.product([True, False], [True, False]))
SMOOTHERS = ("attention.dense", "mlp.proj")


class Model:
    """A checkpoint, its ranges, and what becomes of one of its layers in PyTorch."""

    def __init__(self, folder: Path, options: ConvertOptions, stored: object, target: object) -> None:
        self.config = json.loads((folder / "config.json").read_text())
        self.weights = {
            name: values for file in folder.glob("*.safetensors") for name, values in load_file(file).items()
        }
        assert options.activation_ranges is not None
        self.ranges = load_file(options.activation_ranges)
        self.chosen = options.smoothquant
        self.stored, self.target = stored, target

    def case(self, modules: list[list[str]], norm: str | None, **how: object) -> Case:
        """`modules`: of each layer of a group, the modules that it fuses."""
        weights = [torch.cat([self.weights[f"{m}.weight"] for m in fused]).to(self.stored) for fused in modules]
        ones = torch.ones(weights[0].shape[1], dtype=self.stored)
        return Case(
            weights=weights,
            inputs=[self.ranges[f"{fused[0]}.x"] for fused in modules],
            outputs=[torch.cat([self.ranges[f"{m}.y"] for m in fused]) for fused in modules],
            norm=ones if norm is None else self.weights[f"{norm}.weight"].to(self.stored),
            alpha=self.chosen.alpha,
            per_channel=self.chosen.per_channel,
            per_token=self.chosen.per_token,
            target=self.target,
            **how,
        )


def check(found: dict, layer: str, places: list[str], norm: str | None, scale: str, case: Case, kind: object) -> None:
    """One group of layers, tensor by tensor, and that there is nothing else of it."""
    layers, expected_norm, smoother = smoothquant(case)
    if norm is not None:
        assert_same(found.pop(f"{layer}.{norm}.weight"), expected_norm, norm)
        assert_same(found.pop(f"{layer}.{norm}.scale_to_int"), layers[0]["scale_to_int"].to(kind), scale)
    elif not case.per_token:
        assert_same(found.pop(f"{layer}.{scale}"), layers[0]["scale_to_int"], scale)
    for place, expected in zip(places, layers, strict=True):
        for name in ("weight", "per_channel_scale", *(() if case.per_token else ("act_scale",))):
            values = expected[name]
            if place == "mlp.fc" and len(places) == 1 and values.shape != (1, 1):  # ChatGLM: [gate ; up] → [up ; gate]
                axis = 0 if name == "weight" else 1
                values = torch.cat(values.chunk(2, dim=axis)[::-1], dim=axis)
            assert_same(found.pop(f"{layer}.{place}.{name}"), values, f"{place}.{name}")
        if place in SMOOTHERS:
            assert_same(found.pop(f"{layer}.{place}.smoother"), smoother.float().reshape(1, -1), f"{place}.smoother")


def assert_same(found: object, expected: object, name: str) -> None:
    assert found.dtype == expected.dtype, name
    assert found.shape == expected.shape, name
    assert torch.equal(found, expected), (name, int((found != expected).sum()))


@pytest.mark.parametrize("alpha", [0.5, 0.3, 0.85])
@pytest.mark.parametrize("target", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("kv_heads", [2, 4])
@pytest.mark.parametrize("stored", ["F16", "BF16", "F32"])
def test_llama(tmp_path: Path, stored: str, kv_heads: int, target: str, alpha: float) -> None:
    source = write_llama(
        tmp_path / "hf", kv_heads=kv_heads, dtype=stored, layers=1, tokenizer=None, attention_bias=True
    )
    for per_channel, per_token in VARIANTS:
        options = ConvertOptions(
            dtype=target,
            precision="int8_smoothquant",
            smoothquant=SmoothQuant(alpha, per_channel, per_token),
            activation_ranges=write_ranges(source, tmp_path / "ranges.safetensors", shared=False),
        )
        out = tmp_path / f"out-{per_channel}-{per_token}"
        convert(source, out, options)
        model = Model(source, options, torch.float16, getattr(torch, target))
        found = {name: values for name, values in load_file(out / "rank0.safetensors").items() if "bias" not in name}
        layer, to = "model.layers.0", "transformer.layers.0"
        qkv = [[f"{layer}.self_attn.{part}_proj" for part in "qkv"]]
        how = {"parts": [64, 16 * kv_heads, 16 * kv_heads], "divides": kv_heads < 4}
        case = model.case(qkv, f"{layer}.input_layernorm", **how)
        check(found, to, ["attention.qkv"], "input_layernorm", "", case, torch.float32)
        case = model.case([[f"{layer}.self_attn.o_proj"]], None)
        check(found, to, ["attention.dense"], None, "attention.quantization_scaling_factor", case, None)
        case = model.case([[f"{layer}.mlp.gate_proj"], [f"{layer}.mlp.up_proj"]], f"{layer}.post_attention_layernorm")
        check(found, to, ["mlp.fc", "mlp.gate"], "post_layernorm", "", case, torch.float32)
        case = model.case([[f"{layer}.mlp.down_proj"]], None)
        check(found, to, ["mlp.proj"], None, "mlp.quantization_scaling_factor", case, None)
        through = {
            "transformer.vocab_embedding": "model.embed_tokens",
            "transformer.ln_f": "model.norm",
            "lm_head": "lm_head",
        }
        for name, module in through.items():
            expected = model.weights[f"{module}.weight"].half().to(getattr(torch, target))
            assert_same(found.pop(f"{name}.weight"), expected, name)
        assert not found


@pytest.mark.parametrize("alpha", [0.5, 0.3, 0.85])
@pytest.mark.parametrize("target", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("stored", ["F16", "BF16"])
def test_chatglm(tmp_path: Path, stored: str, target: str, alpha: float) -> None:
    source = write_chatglm(tmp_path / "hf", dtype=stored, layers=1, tokenizer=False, add_bias_linear=True)
    for per_channel, per_token in VARIANTS:
        options = ConvertOptions(
            dtype=target,
            precision="int8_smoothquant",
            smoothquant=SmoothQuant(alpha, per_channel, per_token),
            activation_ranges=write_ranges(source, tmp_path / "ranges.safetensors", shared=False),
        )
        out = tmp_path / f"out-{per_channel}-{per_token}"
        convert(source, out, options)
        kind = {"F16": torch.float16, "BF16": torch.bfloat16}[stored]
        model = Model(source, options, kind, getattr(torch, target))
        found = {
            name: values
            for name, values in load_file(out / "rank0.safetensors").items()
            if "layers" in name and "bias" not in name
        }
        layer, to = "transformer.encoder.layers.0", "transformer.layers.0"
        ones = torch.float16 if per_token else torch.float32
        how = {"parts": [64, 32, 32], "keeps_dtype": False}
        case = model.case([[f"{layer}.self_attention.query_key_value"]], f"{layer}.input_layernorm", **how)
        check(found, to, ["attention.qkv"], "input_layernorm", "", case, ones)
        case = model.case([[f"{layer}.self_attention.dense"]], None)
        check(found, to, ["attention.dense"], None, "attention.quantization_scaling_factor", case, None)
        case = model.case([[f"{layer}.mlp.dense_h_to_4h"]], f"{layer}.post_attention_layernorm")
        check(found, to, ["mlp.fc"], "post_layernorm", "", case, ones)
        case = model.case([[f"{layer}.mlp.dense_4h_to_h"]], None)
        check(found, to, ["mlp.proj"], None, "mlp.quantization_scaling_factor", case, None)
        assert not found


def test_values_that_the_reference_rounds_twice_are_among_the_random_ones() -> None:
    """The comparisons above would pass without care if no product lay near the middle of two integers."""
    weights = np.random.default_rng(0).standard_normal(20000).astype(np.float16) * np.float16(0.15)
    scale = np.float32(127) / np.abs(weights).max().astype(np.float32)
    product = weights.astype(np.float32) * scale
    assert (np.rint(product) != np.rint(product.astype(np.float16).astype(np.float32))).any()
