"""A forward pass over a quantised TensorRT-LLM checkpoint as an engine computes it: integers first, then scales.

And what the modules of a Hugging Face model read and write, recorded from the forward pass over its float conversion.
"""

from pathlib import Path

import ml_dtypes
import numpy as np
from safetensors.numpy import save_file

from tests.support.trtllm_forward import Model, forward
from tritonforge.formats.safetensors import TensorFolder
from tritonforge.formats.trtllm import TrtllmConfig, rank_file_name

E4M3 = np.dtype(ml_dtypes.float8_e4m3fn)
PARTS = {
    "attention.qkv": ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
    "attention.dense": ("self_attn.o_proj",),
    "mlp.fc": ("mlp.gate_proj",),
    "mlp.gate": ("mlp.up_proj",),
    "mlp.proj": ("mlp.down_proj",),
}


def quantised_logits(folder: Path, ids: list[int]) -> np.ndarray:
    """Logits [tokens, vocabulary] of one sequence, from a checkpoint of one rank."""
    return forward(_open(_Quantised, folder), ids)


def record_ranges(folder: Path, ids: list[int], path: Path) -> Path:
    """Write the activation ranges of a Llama while it reads a sequence.

    Args:
        folder: Its conversion to floats, for one rank.
        ids: The sequence.
        path: Where the ranges go.
    """
    model = _open(_Recording, folder)
    forward(model, ids)
    save_file(model.ranges, path)
    return path


def _open(kind: type[Model], folder: Path) -> Model:
    return kind(TrtllmConfig.read(folder), TensorFolder.open_file(folder / rank_file_name(0)))


class _Recording(Model):
    def __init__(self, config: TrtllmConfig, weights: TensorFolder) -> None:
        super().__init__(config, weights)
        self.ranges: dict[str, np.ndarray] = {}

    def linear(self, name: str, x: np.ndarray) -> np.ndarray:
        y = super().linear(name, x)
        if name.startswith("transformer.layers."):
            number, place = name.removeprefix("transformer.layers.").split(".", 1)
            sizes = np.array([self.config.num_attention_heads, *2 * [self.config.num_key_value_heads]])
            ends = np.cumsum(sizes * self.config.head_size)[:-1] if place == "attention.qkv" else []
            for part, outputs in zip(PARTS[place], np.split(y, ends, axis=1), strict=True):
                self.ranges[f"model.layers.{number}.{part}.x"] = np.abs(x).max(axis=0).astype(np.float32)
                self.ranges[f"model.layers.{number}.{part}.y"] = np.abs(outputs).max(axis=0).astype(np.float32)
        return y


class _Quantised(Model):
    def linear(self, name: str, x: np.ndarray) -> np.ndarray:
        weight = self.weights.read(f"{name}.weight")
        if weight.dtype == E4M3:
            y = self._of_fp8(name, x, weight)
        elif weight.dtype != np.int8:
            return super().linear(name, x)
        elif f"{name}.per_channel_scale" in self.weights:
            y = self._of_int8(name, x, weight)
        else:
            y = self._of_int4(name, x, weight)
        return y + self.float_of(f"{name}.bias") if f"{name}.bias" in self.weights else y

    def float_of(self, name: str) -> np.ndarray:
        return self.weights.read(name).astype(np.float32)

    def _of_fp8(self, name: str, x: np.ndarray, weight: np.ndarray) -> np.ndarray:
        scale = self.float_of(f"{name}.activation_scaling_factor")
        numbers = np.clip(x / scale, -448, 448).astype(E4M3).astype(np.float32)
        return numbers @ weight.astype(np.float32).T * (scale * self.float_of(f"{name}.weights_scaling_factor"))

    def _of_int8(self, name: str, x: np.ndarray, weight: np.ndarray) -> np.ndarray:
        if f"{name}.smoother" in self.weights:
            x = x / self.float_of(f"{name}.smoother")
        if f"{name}.act_scale" in self.weights:
            to_int, back = self.float_of(self._scale_name(name)), self.float_of(f"{name}.act_scale")
        else:
            back = np.abs(x).max(axis=1, keepdims=True) / 127
            to_int = 1 / back
        integers = np.clip(np.rint(x * to_int), -128, 127).astype(np.int64)
        return (integers @ weight.astype(np.int64).T) * self.float_of(f"{name}.per_channel_scale") * back

    def _of_int4(self, name: str, x: np.ndarray, packed: np.ndarray) -> np.ndarray:
        numbers = packed.astype(np.int64) % 256
        rows = np.stack([numbers % 16, numbers // 16], axis=1).reshape(-1, packed.shape[1])
        integers = np.where(rows > 7, rows - 16, rows)
        scales = self.float_of(f"{name}.weights_scaling_factor")
        weight = integers * np.repeat(scales, packed.shape[1] // scales.shape[1], axis=1)
        return (x * self.float_of(f"{name}.prequant_scaling_factor")) @ weight.T

    def _scale_name(self, name: str) -> str:
        layer, block, linear = name.rsplit(".", 2)
        if linear in ("dense", "proj"):
            return f"{layer}.{block}.quantization_scaling_factor"
        return f"{layer}.{'input' if block == 'attention' else 'post'}_layernorm.scale_to_int"
