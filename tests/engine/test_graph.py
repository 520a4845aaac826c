"""What the plugin and the pipeline make of the graph: the fused parts are fused, the unfused ones are not."""

from collections import Counter
from pathlib import Path

import numpy as np
import openvino as ov
import pytest
from openvino._offline_transformations import paged_attention_transformation

from tests.support.checkpoints import write_chatglm, write_llama
from tests.support.engines import build_small, compile_graph, logits, node_counts, small_spec

LAYERS = 3
IDS = [5, 7, 11, 13, 17, 19, 2, 2, 40, 41]


def small_model(kind: str, folder: Path) -> Path:
    if kind == "llama":
        return write_llama(folder, layers=LAYERS, tokenizer=None)
    return write_chatglm(folder, layers=LAYERS, tokenizer=False)


@pytest.mark.parametrize("kind", ["llama", "chatglm"])
@pytest.mark.parametrize("precision", ["float16", "int8", "int4"])
def test_the_pipeline_finds_one_paged_attention_per_layer(kind: str, precision: str, tmp_path: Path) -> None:
    engine = build_small(small_model(kind, tmp_path / "hf"), tmp_path / "engine", spec=small_spec(precision=precision))
    model = ov.Core().read_model(engine.path / "openvino_model.xml")
    paged_attention_transformation(model)
    kinds = Counter(node.get_type_name() for node in model.get_ops())
    assert kinds["PagedAttentionExtension"] == LAYERS
    assert kinds["ReadValue"] == kinds["ScaledDotProductAttention"] == 0


@pytest.mark.parametrize("kind", ["llama", "chatglm"])
def test_rotary_and_norms_are_fused_by_default(kind: str, tmp_path: Path) -> None:
    counts = node_counts(compile_graph(build_small(small_model(kind, tmp_path / "hf"), tmp_path / "engine").path))
    assert counts["RoPE"] == 2 * LAYERS  # queries and keys
    assert counts["RMS"] == 2 * LAYERS + 1
    assert counts["ScaledDotProductAttention"] == LAYERS


@pytest.mark.parametrize("kind", ["llama", "chatglm"])
def test_rotary_stays_unfused_when_its_plugin_is_off(kind: str, tmp_path: Path) -> None:
    spec = small_spec(fused_rotary=False)
    counts = node_counts(compile_graph(build_small(small_model(kind, tmp_path / "hf"), tmp_path / "e", spec=spec).path))
    assert counts["RoPE"] == 0
    assert counts["ScaledDotProductAttention"] == LAYERS


@pytest.mark.parametrize("kind", ["llama", "chatglm"])
def test_attention_stays_written_out_when_its_plugin_is_off(kind: str, tmp_path: Path) -> None:
    spec = small_spec(fused_attention=False)
    counts = node_counts(compile_graph(build_small(small_model(kind, tmp_path / "hf"), tmp_path / "e", spec=spec).path))
    assert counts["ScaledDotProductAttention"] == 0
    assert counts["RoPE"] == 2 * LAYERS


def test_cached_steps_give_the_logits_of_one_pass(tmp_path: Path) -> None:
    engine = build_small(small_model("llama", tmp_path / "hf"), tmp_path / "engine")
    one_by_one = logits(engine.path, IDS, prefill=3)
    np.testing.assert_allclose(one_by_one, logits(engine.path, IDS), atol=1e-4)


@pytest.mark.parametrize(("precision", "limit"), [("int8", 0.05), ("int4", 0.6)])
def test_quantised_weights_move_the_logits_by_a_bounded_share(precision: str, limit: float, tmp_path: Path) -> None:
    source = small_model("llama", tmp_path / "hf")
    exact = logits(build_small(source, tmp_path / "exact").path, IDS)
    moved = logits(build_small(source, tmp_path / "moved", spec=small_spec(precision=precision)).path, IDS)
    share = np.linalg.norm(moved - exact) / np.linalg.norm(exact)
    assert 0 < share < limit


def test_each_precision_has_its_size(tmp_path: Path) -> None:
    source = write_llama(tmp_path / "hf", hidden=256, intermediate=512, tokenizer=None)
    sizes = {
        precision: build_small(source, tmp_path / precision, spec=small_spec(precision=precision)).weights_bytes
        for precision in ("float32", "float16", "int8", "int4")
    }
    assert sizes["float32"] == pytest.approx(2 * sizes["float16"], rel=0.05)
    assert sizes["float16"] == pytest.approx(2 * sizes["int8"], rel=0.05)
    assert sizes["int4"] < 0.65 * sizes["int8"]
