"""Whatever is divided over ranks is the source again once it is joined, by code that shares nothing with ours."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file

from tests.support.checkpoints import DTYPES, write_chatglm, write_glm, write_llama
from tests.support.rejoin import join_ranks, source_parts
from tritonforge.checkpoint.convert import convert
from tritonforge.checkpoint.options import ConvertOptions
from tritonforge.formats.trtllm import TrtllmConfig

CODES = {"float32": "F32", "float16": "F16", "bfloat16": "BF16"}


def check_round_trip(source: Path, out: Path, options: ConvertOptions) -> None:
    made = convert(source, out, options)
    expected = source_parts(source, DTYPES[CODES[made.config.dtype]])
    found = join_ranks(out)
    assert found.keys() == expected.keys()
    for name, values in expected.items():
        assert found[name].dtype == values.dtype, name
        assert found[name].shape == values.shape, name
        assert found[name].tobytes() == values.tobytes(), name
    assert TrtllmConfig.read(out) == made.config


@st.composite
def divisions(draw: st.DrawFn) -> dict[str, Any]:
    """A model that some ranks can share: heads, key and value heads, layers, and how they are shared."""
    tp = draw(st.sampled_from([1, 2, 3, 4, 8]))
    kv_heads = draw(st.sampled_from([n for n in (1, 2, 3, 4, 8, 16) if n % tp == 0 or tp % n == 0]))
    least = tp * kv_heads // np.gcd(tp, kv_heads)  # a multiple of both
    heads = int(least) * draw(st.sampled_from([1, 2]))
    size = draw(st.sampled_from([2, 4, 6]))
    return {
        "tp": tp,
        "kv_heads": kv_heads,
        "heads": heads,
        "size": size,
        "intermediate": tp * draw(st.integers(1, 5)),
        "sharding": draw(st.sampled_from(["none", "vocab", "hidden"] if tp > 1 else ["none"])),
        "stored": draw(st.sampled_from(["F32", "F16", "BF16"])),
        "dtype": draw(st.sampled_from(["auto", "float32", "float16", "bfloat16"])),
        "seed": draw(st.integers(0, 1000)),
    }


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    case=divisions(),
    vocab=st.integers(1, 40),
    layers=st.integers(1, 5),
    pp=st.integers(1, 5),
    hidden=st.integers(1, 6),
    tied=st.booleans(),
    biases=st.booleans(),
    shards=st.sampled_from([1, 2]),
)
def test_llama_ranks_joined_again_are_the_source(
    tmp_path_factory: pytest.TempPathFactory,
    case: dict[str, Any],
    vocab: int,
    layers: int,
    pp: int,
    hidden: int,
    tied: bool,
    biases: bool,
    shards: int,
) -> None:
    folder = tmp_path_factory.mktemp("llama")
    source = write_llama(
        folder / "hf",
        tokenizer=None,
        vocab=vocab,
        layers=layers,
        hidden=hidden * case["tp"],
        heads=case["heads"],
        kv_heads=case["kv_heads"],
        head_dim=case["size"],
        intermediate=case["intermediate"],
        tied=tied,
        attention_bias=biases,
        dtype=case["stored"],
        shards=shards,
        seed=case["seed"],
    )
    options = ConvertOptions(
        dtype=case["dtype"],
        tp=case["tp"],
        pp=min(pp, layers),
        embedding_sharding=case["sharding"],
        release="1.2.1",  # takes uneven stages
    )
    check_round_trip(source, folder / "out", options)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    case=divisions(),
    vocab=st.integers(1, 8),
    layers=st.integers(1, 3),
    native=st.booleans(),
    qkv_bias=st.booleans(),
    linear_bias=st.booleans(),
)
def test_chatglm_ranks_joined_again_are_the_source(
    tmp_path_factory: pytest.TempPathFactory,
    case: dict[str, Any],
    vocab: int,
    layers: int,
    native: bool,
    qkv_bias: bool,
    linear_bias: bool,
) -> None:
    folder = tmp_path_factory.mktemp("chatglm")
    size = 4  # half of a head rotates
    shared = {
        "vocab": vocab * case["tp"],
        "layers": layers,
        "hidden": case["heads"] * size,
        "heads": case["heads"],
        "intermediate": case["intermediate"],
        "dtype": case["stored"],
        "seed": case["seed"],
        "tokenizer": False,
    }
    if native:
        source = write_glm(folder / "hf", kv_heads=case["kv_heads"], attention_bias=qkv_bias, **shared)
    else:
        source = write_chatglm(
            folder / "hf",
            version="glm4",
            groups=case["kv_heads"],
            add_qkv_bias=qkv_bias,
            add_bias_linear=linear_bias,
            **shared,
        )
    options = ConvertOptions(dtype=case["dtype"], tp=case["tp"], embedding_sharding=case["sharding"])
    check_round_trip(source, folder / "out", options)


def test_repeated_heads_are_neighbours(tmp_path: Path) -> None:
    """Two key heads on four ranks: the first two ranks have the first head, the others the second."""
    source = write_llama(tmp_path / "hf", tokenizer=None, attention_bias=True)
    convert(source, tmp_path / "out", ConvertOptions(dtype="float32", tp=4))
    keys = load_file(source / "model.safetensors")["model.layers.1.self_attn.k_proj.bias"].reshape(2, 16)
    for rank, head in enumerate((0, 0, 1, 1)):
        held = load_file(tmp_path / f"out/rank{rank}.safetensors")["transformer.layers.1.attention.qkv.bias"]
        np.testing.assert_array_equal(held[16:32], keys[head])


def test_stages_count_their_layers_from_0_and_hold_the_ends_once(tmp_path: Path) -> None:
    source = write_llama(tmp_path / "hf", tokenizer=None, layers=5)
    made = convert(source, tmp_path / "out", ConvertOptions(tp=2, pp=2, release="1.0.0"))
    held = [sorted(load_file(tmp_path / f"out/rank{rank}.safetensors")) for rank in range(4)]
    assert held[0] == held[1]
    assert held[2] == held[3]
    outside = [[name for name in names if "layers" not in name] for names in (held[0], held[2])]
    assert outside == [["transformer.vocab_embedding.weight"], ["lm_head.weight", "transformer.ln_f.weight"]]
    numbers = [{int(name.split(".")[2]) for name in names if "layers" in name} for names in (held[0], held[2])]
    assert numbers == [{0, 1, 2}, {0, 1}]
    assert made.config.num_hidden_layers == 5
    written = json.loads((tmp_path / "out/config.json").read_text())
    assert written["mapping"] == {"world_size": 4, "tp_size": 2, "pp_size": 2}


@pytest.mark.parametrize(("sharding", "expected"), [("none", (False, 0)), ("vocab", (True, 0)), ("hidden", (True, 1))])
def test_the_configuration_says_how_the_embedding_is_shared(
    tmp_path: Path, sharding: str, expected: tuple[bool, int]
) -> None:
    source = write_llama(tmp_path / "hf", tokenizer=None)
    convert(source, tmp_path / "out", ConvertOptions(tp=2, embedding_sharding=sharding))
    written = json.loads((tmp_path / "out/config.json").read_text())
    assert (written["use_parallel_embedding"], written["embedding_sharding_dim"]) == expected
    table = load_file(tmp_path / "out/rank1.safetensors")["transformer.vocab_embedding.weight"]
    assert table.shape == {"none": (131, 64), "vocab": (66, 64), "hidden": (131, 32)}[sharding]


def test_blocks_and_ranks_meet_at_any_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same files come out however few rows pass at a time."""
    source = write_llama(tmp_path / "hf", tokenizer=None, shards=2, attention_bias=True)
    options = ConvertOptions(tp=4, pp=2, embedding_sharding="vocab")
    convert(source, tmp_path / "whole", options)
    monkeypatch.setattr("tritonforge.checkpoint.execute._BLOCK_BYTES", 500)
    monkeypatch.setattr("tritonforge.checkpoint.execute._TASK_BYTES", 1300)
    convert(source, tmp_path / "blocks", options)
    for rank in range(8):
        name = f"rank{rank}.safetensors"
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "blocks" / name).read_bytes()
