"""A plain float32 forward pass over a TensorRT-LLM checkpoint in numpy: what its tensors mean, without an engine."""

from pathlib import Path

import numpy as np

from tritonforge.formats.rotary import RotaryScaling
from tritonforge.formats.safetensors import TensorFolder
from tritonforge.formats.trtllm import TrtllmConfig, rank_file_name


def logits(folder: Path, ids: list[int]) -> np.ndarray:
    """Logits [tokens, vocabulary] of one sequence."""
    return forward(Model(TrtllmConfig.read(folder), TensorFolder.open_file(folder / rank_file_name(0))), ids)


def forward(model: "Model", ids: list[int]) -> np.ndarray:
    """Logits of one sequence, by a model that may compute its parts otherwise."""
    hidden = model.weights.read("transformer.vocab_embedding.weight")[ids].astype(np.float32)
    for i in range(model.config.num_hidden_layers):
        layer = f"transformer.layers.{i}"
        hidden = hidden + model.attention(f"{layer}.attention", model.norm(f"{layer}.input_layernorm", hidden))
        hidden = hidden + model.mlp(f"{layer}.mlp", model.norm(f"{layer}.post_layernorm", hidden))
    return model.linear("lm_head", model.norm("transformer.ln_f", hidden))


class Model:
    """The tensors of one rank, and what the modules of the network do with them."""

    def __init__(self, config: TrtllmConfig, weights: TensorFolder) -> None:
        self.config = config
        self.weights = weights

    def linear(self, name: str, x: np.ndarray) -> np.ndarray:
        y = x @ self.weights.read(f"{name}.weight").astype(np.float32).T
        return y + self.weights.read(f"{name}.bias").astype(np.float32) if f"{name}.bias" in self.weights else y

    def norm(self, name: str, x: np.ndarray) -> np.ndarray:
        scale = 1 / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + self.config.norm_epsilon)
        return x * scale * self.weights.read(f"{name}.weight").astype(np.float32)

    def mlp(self, name: str, x: np.ndarray) -> np.ndarray:
        if self.config.hidden_act == "swiglu":  # fused: [up ; gate]
            up, gate = np.split(self.linear(f"{name}.fc", x), 2, axis=-1)
        else:
            gate, up = self.linear(f"{name}.fc", x), self.linear(f"{name}.gate", x)
        return self.linear(f"{name}.proj", gate / (1 + np.exp(-gate)) * up)

    def attention(self, name: str, x: np.ndarray) -> np.ndarray:
        config, tokens = self.config, len(x)
        heads, kv_heads, size = config.num_attention_heads, config.num_key_value_heads, config.head_size
        rows = self.linear(f"{name}.qkv", x).reshape(tokens, heads + 2 * kv_heads, size)  # [tokens, heads, size]
        q, k, v = np.split(rows, [heads, heads + kv_heads], axis=1)
        k, v = (np.repeat(part, heads // kv_heads, axis=1) for part in (self.rotate(k), v))
        scores = np.einsum("qhd,khd->hqk", self.rotate(q), k) / np.sqrt(size)
        scores = np.where(np.tril(np.ones((tokens, tokens), bool)), scores, -np.inf)
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        weights /= weights.sum(axis=-1, keepdims=True)
        return self.linear(f"{name}.dense", np.einsum("hqk,khd->qhd", weights, v).reshape(tokens, heads * size))

    def rotate(self, x: np.ndarray) -> np.ndarray:
        """Rotate the first `rotary_dim` dimensions of [tokens, heads, size] by their positions."""
        dimensions = self.config.rotary_dim
        frequencies = _frequencies(self.config.rotary_base, dimensions, self.config.rotary_scaling)
        angles = (np.arange(len(x))[:, None] * frequencies)[:, None, :]
        cos, sin = np.cos(angles), np.sin(angles)
        turning, still = x[..., :dimensions], x[..., dimensions:]
        if self.config.position_embedding_type == "rope_gptj":  # neighbours are a pair
            first, second = turning[..., 0::2], turning[..., 1::2]
            turned = np.stack([first * cos - second * sin, second * cos + first * sin], axis=-1).reshape(turning.shape)
        else:  # the halves are a pair
            first, second = np.split(turning, 2, axis=-1)
            turned = np.concatenate([first * cos - second * sin, second * cos + first * sin], axis=-1)
        return np.concatenate([turned, still], axis=-1).astype(np.float32)


def _frequencies(base: float, dimensions: int, scaling: RotaryScaling | None) -> np.ndarray:
    frequencies = base ** -(np.arange(0, dimensions, 2) / dimensions)
    if scaling is None:
        return frequencies
    if scaling.kind == "linear":
        return frequencies / scaling.factor
    assert scaling.low_freq_factor and scaling.high_freq_factor and scaling.original_max_position_embeddings
    turns = scaling.original_max_position_embeddings * frequencies / (2 * np.pi)
    smooth = (turns - scaling.low_freq_factor) / (scaling.high_freq_factor - scaling.low_freq_factor)
    smooth = np.clip(smooth, 0, 1)
    return frequencies * smooth + frequencies / scaling.factor * (1 - smooth)
