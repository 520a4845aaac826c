"""The ranks of a TensorRT-LLM checkpoint joined again, without any code of the package: only file names and shapes.

Both sides give the same names: ``embedding``, ``head``, ``final_norm``, and by layer ``0.q.weight``, ``0.k.bias``, …
"""

import json
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file

Parts = dict[str, np.ndarray]


def join_ranks(folder: Path) -> Parts:
    """The whole model of all ranks; asserts that copies are equal, padding is zero, and nothing else is there."""
    return _Joiner(folder).join()


def source_parts(folder: Path, dtype: np.dtype) -> Parts:
    """The same parts of the Hugging Face checkpoint, in another dtype."""
    weights: Parts = {}
    for file in folder.glob("*.safetensors"):
        weights |= load_file(file)
    config = json.loads((folder / "config.json").read_text())
    parts = _original_glm(weights, config) if "num_layers" in config else _transformers(weights, config)
    with np.errstate(over="ignore"):
        return {name: values.astype(np.float32).astype(dtype) for name, values in parts.items()}


class _Joiner:
    def __init__(self, folder: Path) -> None:
        self.config = json.loads((folder / "config.json").read_text())
        mapping = self.config["mapping"]
        self.tp, self.pp = mapping["tp_size"], mapping["pp_size"]
        files = sorted(path.name for path in folder.glob("*.safetensors"))
        assert files == sorted(f"rank{rank}.safetensors" for rank in range(self.tp * self.pp))
        self.ranks = [load_file(folder / f"rank{rank}.safetensors") for rank in range(self.tp * self.pp)]

    def join(self) -> Parts:
        vocab = self.config["vocab_size"]
        parts = {"embedding": self.embedding(vocab), "final_norm": self.same(self.pp - 1, "transformer.ln_f.weight")}
        head = np.concatenate(self.take(self.pp - 1, "lm_head.weight"))
        assert not head[vocab:].view(np.uint8).any()
        assert len(head) < vocab + self.tp
        parts["head"] = head[:vocab]
        for stage, layers in enumerate(np.array_split(np.arange(self.config["num_hidden_layers"]), self.pp)):
            for local, number in enumerate(layers):
                joined = self.layer(stage, f"transformer.layers.{local}")
                parts |= {f"{number}.{name}": values for name, values in joined.items()}
        left = [name for rank in self.ranks for name in rank]
        assert left == [], left
        return parts

    def take(self, stage: int, name: str) -> list[np.ndarray]:
        """A tensor of all tensor-parallel ranks of a stage; each can be taken once."""
        return [self.ranks[stage * self.tp + rank].pop(name) for rank in range(self.tp)]

    def has(self, stage: int, name: str) -> bool:
        return name in self.ranks[stage * self.tp]

    def same(self, stage: int, name: str) -> np.ndarray:
        copies = self.take(stage, name)
        assert all(copy.tobytes() == copies[0].tobytes() for copy in copies)
        return copies[0]

    def embedding(self, vocab: int) -> np.ndarray:
        name = "transformer.vocab_embedding.weight"
        if not self.config["use_parallel_embedding"]:
            return self.same(0, name)
        axis = self.config["embedding_sharding_dim"]
        table = np.concatenate(self.take(0, name), axis=axis)
        assert not table[vocab:].view(np.uint8).any()
        return table[:vocab]

    def layer(self, stage: int, prefix: str) -> Parts:
        parts = {"input_norm": self.same(stage, f"{prefix}.input_layernorm.weight")}
        parts["post_norm"] = self.same(stage, f"{prefix}.post_layernorm.weight")
        for kind in ("weight", "bias"):
            if self.has(stage, f"{prefix}.attention.qkv.{kind}"):
                parts |= {f"{part}.{kind}": v for part, v in self.qkv(stage, f"{prefix}.attention.qkv.{kind}").items()}
            for place, part in (("attention.dense", "dense"), ("mlp.proj", "down")):
                name = f"{prefix}.{place}.{kind}"
                if kind == "weight":
                    parts[f"{part}.weight"] = np.concatenate(self.take(stage, name), axis=1)
                elif self.has(stage, name):
                    parts[f"{part}.bias"] = self.same(stage, name)
            if self.has(stage, f"{prefix}.mlp.fc.{kind}"):
                parts |= {f"{part}.{kind}": v for part, v in self.mlp(stage, prefix, kind).items()}
        return parts

    def qkv(self, stage: int, name: str) -> Parts:
        heads, kv_heads, size = (self.config[k] for k in ("num_attention_heads", "num_key_value_heads", "head_size"))
        queries, keys = heads // self.tp, max(1, kv_heads // self.tp)
        shares = [np.split(share, [queries * size, (queries + keys) * size]) for share in self.take(stage, name)]
        q, k, v = zip(*shares, strict=True)
        copies = max(1, self.tp // kv_heads)
        for part in (k, v):
            for rank in range(self.tp):  # every copy of a head is the same
                assert part[rank].tobytes() == part[rank // copies * copies].tobytes()
        return {"q": np.concatenate(q), "k": np.concatenate(k[::copies]), "v": np.concatenate(v[::copies])}

    def mlp(self, stage: int, prefix: str, kind: str) -> Parts:
        shares = self.take(stage, f"{prefix}.mlp.fc.{kind}")
        if "chatglm_version" in self.config:
            up, gate = zip(*(np.split(share, 2) for share in shares), strict=True)
            return {"gate": np.concatenate(gate), "up": np.concatenate(up)}
        up = self.take(stage, f"{prefix}.mlp.gate.{kind}")
        return {"gate": np.concatenate(shares), "up": np.concatenate(up)}


def _transformers(weights: Parts, config: dict) -> Parts:
    head = "lm_head.weight" if "lm_head.weight" in weights else "model.embed_tokens.weight"
    parts = {"embedding": weights["model.embed_tokens.weight"], "head": weights[head]}
    parts["final_norm"] = weights["model.norm.weight"]
    places = {"q": "self_attn.q_proj", "k": "self_attn.k_proj", "v": "self_attn.v_proj", "dense": "self_attn.o_proj"}
    places |= {"gate": "mlp.gate_proj", "up": "mlp.up_proj", "down": "mlp.down_proj", "both": "mlp.gate_up_proj"}
    for i in range(config["num_hidden_layers"]):
        layer = f"model.layers.{i}"
        parts[f"{i}.input_norm"] = weights[f"{layer}.input_layernorm.weight"]
        parts[f"{i}.post_norm"] = weights[f"{layer}.post_attention_layernorm.weight"]
        for part, place in places.items():
            for kind in ("weight", "bias"):
                if f"{layer}.{place}.{kind}" in weights:
                    parts[f"{i}.{part}.{kind}"] = weights[f"{layer}.{place}.{kind}"]
        if f"{i}.both.weight" in parts:
            parts[f"{i}.gate.weight"], parts[f"{i}.up.weight"] = np.split(parts.pop(f"{i}.both.weight"), 2)
    return parts


def _original_glm(weights: Parts, config: dict) -> Parts:
    parts = {"embedding": weights["transformer.embedding.word_embeddings.weight"]}
    parts["head"] = weights["transformer.output_layer.weight"]
    parts["final_norm"] = weights["transformer.encoder.final_layernorm.weight"]
    queries = config["num_attention_heads"] * config["kv_channels"]
    keys = config["multi_query_group_num"] * config["kv_channels"]
    for i in range(config["num_layers"]):
        layer = f"transformer.encoder.layers.{i}"
        parts[f"{i}.input_norm"] = weights[f"{layer}.input_layernorm.weight"]
        parts[f"{i}.post_norm"] = weights[f"{layer}.post_attention_layernorm.weight"]
        for kind in ("weight", "bias"):
            if f"{layer}.self_attention.query_key_value.{kind}" in weights:
                fused = weights[f"{layer}.self_attention.query_key_value.{kind}"]
                q, k, v = np.split(fused, [queries, queries + keys])
                parts |= {f"{i}.q.{kind}": q, f"{i}.k.{kind}": k, f"{i}.v.{kind}": v}
            if f"{layer}.mlp.dense_h_to_4h.{kind}" in weights:
                gate, up = np.split(weights[f"{layer}.mlp.dense_h_to_4h.{kind}"], 2)
                parts |= {f"{i}.gate.{kind}": gate, f"{i}.up.{kind}": up}
            for part, place in (("dense", "self_attention.dense"), ("down", "mlp.dense_4h_to_h")):
                if f"{layer}.{place}.{kind}" in weights:
                    parts[f"{i}.{part}.{kind}"] = weights[f"{layer}.{place}.{kind}"]
    return parts
