"""A ChatGLM checkpoint in its original naming, renamed to what transformers calls GlmForCausalLM.

transformers has no code of its own for the original naming; the two are the same model with other names, so the
renamed twin is the reference.
"""

import json
from pathlib import Path

from safetensors.numpy import load_file, save_file


def write_native_twin(source: Path, out: Path) -> Path:
    """Write the twin of the folder `source` (one weight file, multi-query attention) into `out`."""
    config = json.loads((source / "config.json").read_text())
    weights = load_file(source / "model.safetensors")
    heads, groups, size = config["num_attention_heads"], config["multi_query_group_num"], config["kv_channels"]
    renamed = {
        "model.embed_tokens.weight": weights["transformer.embedding.word_embeddings.weight"],
        "model.norm.weight": weights["transformer.encoder.final_layernorm.weight"],
        "lm_head.weight": weights["transformer.output_layer.weight"],
    }
    for number in range(config["num_layers"]):
        theirs, ours = f"transformer.encoder.layers.{number}", f"model.layers.{number}"
        for suffix in ("weight", "bias"):
            fused = weights[f"{theirs}.self_attention.query_key_value.{suffix}"]
            first, second = heads * size, (heads + groups) * size
            for name, rows in (("q", fused[:first]), ("k", fused[first:second]), ("v", fused[second:])):
                renamed[f"{ours}.self_attn.{name}_proj.{suffix}"] = rows.copy()
        renamed[f"{ours}.self_attn.o_proj.weight"] = weights[f"{theirs}.self_attention.dense.weight"]
        renamed[f"{ours}.mlp.gate_up_proj.weight"] = weights[f"{theirs}.mlp.dense_h_to_4h.weight"]
        renamed[f"{ours}.mlp.down_proj.weight"] = weights[f"{theirs}.mlp.dense_4h_to_h.weight"]
        for norm in ("input_layernorm", "post_attention_layernorm"):
            renamed[f"{ours}.{norm}.weight"] = weights[f"{theirs}.{norm}.weight"]
    out.mkdir()
    save_file(renamed, out / "model.safetensors", metadata={"format": "pt"})
    (out / "config.json").write_text(json.dumps(_native_config(config)))
    return out


def _native_config(config: dict[str, object]) -> dict[str, object]:
    return {
        "architectures": ["GlmForCausalLM"],
        "model_type": "glm",
        "attention_bias": True,
        "head_dim": config["kv_channels"],
        "hidden_act": "silu",
        "hidden_size": config["hidden_size"],
        "intermediate_size": config["ffn_hidden_size"],
        "max_position_embeddings": config["seq_length"],
        "num_attention_heads": config["num_attention_heads"],
        "num_hidden_layers": config["num_layers"],
        "num_key_value_heads": config["multi_query_group_num"],
        "rms_norm_eps": config["layernorm_epsilon"],
        "tie_word_embeddings": False,
        "vocab_size": config["padded_vocab_size"],
        "eos_token_id": 2,
        "pad_token_id": 0,
        "rope_parameters": _rope(config),
    }


def _rope(config: dict[str, object]) -> dict[str, object]:
    """ChatGLM2 stretches positions by rope_ratio; its successors raise the base by it."""
    ratio = float(config.get("rope_ratio", 1.0))  # type: ignore[arg-type] # JSON
    maps = config["auto_map"]
    assert isinstance(maps, dict)
    if "AutoModelForCausalLM" not in maps:  # the key came with ChatGLM3
        return {"rope_type": "linear", "factor": ratio, "rope_theta": 10000.0, "partial_rotary_factor": 0.5}
    return {"rope_type": "default", "rope_theta": 10000.0 * ratio, "partial_rotary_factor": 0.5}
