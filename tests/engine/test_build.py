"""The engine's folder: what it holds, what is refused, and that nothing is left of a failed build."""

import dataclasses
import json
from pathlib import Path

import pytest
from safetensors.numpy import load_file, save_file

from tests.support.checkpoints import write_chatglm, write_llama
from tests.support.engines import SMALL_LIMITS, build_small, small_spec
from tests.support.full_disk import file_size_limit
from tritonforge.artifacts import CheckpointArtifact
from tritonforge.checkpoint.convert import convert
from tritonforge.checkpoint.options import ConvertOptions
from tritonforge.engine.build import build
from tritonforge.errors import BuildError, MissingWeight, ShapeMismatch, UnsupportedModel
from tritonforge.formats.trtllm import TrtllmConfig
from tritonforge.runtime.openvino.settings import EngineSettings
from tritonforge.spec.limits import LimitsSpec

LIMITS = LimitsSpec(**SMALL_LIMITS)


@pytest.fixture
def checkpoint(tmp_path: Path) -> CheckpointArtifact:
    source = write_llama(tmp_path / "hf", tokenizer=None)
    return convert(source, tmp_path / "checkpoint", ConvertOptions(dtype="float32"), for_engine="openvino")


def change_weights(checkpoint: CheckpointArtifact, name: str, *, rows: int | None) -> None:
    """Cut a tensor to `rows`, or drop it when None."""
    file = checkpoint.path / "rank0.safetensors"
    weights = {key: value.copy() for key, value in load_file(file).items()}
    changed = weights.pop(name)
    if rows is not None:
        weights[name] = changed[:rows].copy()
    save_file(weights, file)


def test_the_folder_holds_graph_weights_and_settings(checkpoint: CheckpointArtifact, tmp_path: Path) -> None:
    engine = build(small_spec(), checkpoint, tmp_path / "engine", limits=LIMITS)
    assert engine.files == ("engine.json", "openvino_model.bin", "openvino_model.xml")
    assert {path.name for path in engine.path.iterdir()} == set(engine.files)
    assert engine.kind == "openvino"
    assert engine.vocab_size == checkpoint.config.vocab_size
    assert engine.weights_bytes == (engine.path / "openvino_model.bin").stat().st_size


def test_the_runtime_reads_the_settings_that_were_asked_for(checkpoint: CheckpointArtifact, tmp_path: Path) -> None:
    spec = small_spec(precision="int8", fused_attention=False, enable_prefix_caching=False, max_num_batched_tokens=99)
    settings = EngineSettings.read(build(spec, checkpoint, tmp_path / "engine", limits=LIMITS).path)
    assert settings.precision == "int8"
    assert settings.kv_cache_precision == "u8"
    assert not settings.fused_attention
    assert not settings.enable_prefix_caching
    assert (settings.num_threads, settings.max_num_batched_tokens) == (1, 99)
    assert (settings.max_batch_size, settings.max_input_len, settings.max_seq_len) == (4, 64, 128)
    assert settings.vocab_size == checkpoint.config.vocab_size
    assert settings.kv_cache_tokens == settings.kv_cache_blocks * 32


def test_a_rebuild_replaces_what_was_there(checkpoint: CheckpointArtifact, tmp_path: Path) -> None:
    first = build(small_spec(), checkpoint, tmp_path / "engine", limits=LIMITS)
    (first.path / "stray").write_text("")
    second = build(small_spec(precision="int8"), checkpoint, tmp_path / "engine", limits=LIMITS)
    assert "stray" not in second.files
    assert json.loads((second.path / "engine.json").read_text())["precision"] == "int8"


def test_a_missing_tensor_is_named_and_nothing_is_left(checkpoint: CheckpointArtifact, tmp_path: Path) -> None:
    change_weights(checkpoint, "transformer.layers.1.mlp.proj.weight", rows=None)
    before = sorted(tmp_path.iterdir())
    with pytest.raises(MissingWeight, match=r"transformer\.layers\.1\.mlp\.proj\.weight"):
        build(small_spec(), checkpoint, tmp_path / "engine", limits=LIMITS)
    assert sorted(tmp_path.iterdir()) == before


def test_a_wrong_shape_is_named_with_both_shapes(checkpoint: CheckpointArtifact, tmp_path: Path) -> None:
    change_weights(checkpoint, "transformer.layers.0.attention.qkv.weight", rows=100)
    with pytest.raises(ShapeMismatch, match=r"qkv\.weight has shape \[100, 64\], expected \[128, 64\]"):
        build(small_spec(), checkpoint, tmp_path / "engine", limits=LIMITS)


def test_a_cache_too_small_for_one_sequence_says_what_is_needed(checkpoint: CheckpointArtifact, tmp_path: Path) -> None:
    # 2 layers × 2 KV heads × 16 values × 4 bytes, keys and values: 512 bytes a token; 128 tokens are 64 KiB.
    with pytest.raises(
        BuildError, match=r"kv_cache_gib holds 96 tokens \(512 bytes each\).*max_seq_len = 128"
    ) as failed:
        build(small_spec(kv_cache_gib=50 / 2**20), checkpoint, tmp_path / "engine", limits=LIMITS)
    assert "0.001 or more" in str(failed.value.hint)


def test_a_length_beyond_the_models_positions_is_refused(checkpoint: CheckpointArtifact, tmp_path: Path) -> None:
    limits = LimitsSpec(max_batch_size=1, max_input_len=64, max_seq_len=513)
    with pytest.raises(BuildError, match="max_seq_len is 513, expected at most 512"):
        build(small_spec(), checkpoint, tmp_path / "engine", limits=limits)


def test_linear_scaling_stretches_the_positions(tmp_path: Path) -> None:
    source = write_llama(tmp_path / "hf", tokenizer=None, rope_scaling={"type": "linear", "factor": 4.0})
    assert build_small(source, tmp_path / "engine", max_seq_len=2048).vocab_size == 131


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"tp_size": 2}, "split into 2 × 1 ranks"),
        ({"pp_size": 2}, "split into 1 × 2 ranks"),
        ({"quant_algo": "W8A16"}, "quantised with W8A16"),
        ({"kv_cache_quant_algo": "FP8"}, "quantised with FP8"),
    ],
)
def test_a_checkpoint_for_other_engines_is_refused(
    checkpoint: CheckpointArtifact, change: dict[str, object], reason: str, tmp_path: Path
) -> None:
    other = dataclasses.replace(checkpoint, config=dataclasses.replace(checkpoint.config, **change))
    with pytest.raises(UnsupportedModel, match=reason):
        build(small_spec(), other, tmp_path / "engine", limits=LIMITS)


@pytest.mark.parametrize(
    ("change", "reason"),
    [({"rmsnorm": False}, "rmsnorm is false"), ({"apply_residual_connection_post_layernorm": True}, "residual")],
)
def test_forms_of_chatglm_that_no_release_uses_are_refused(
    change: dict[str, object], reason: str, tmp_path: Path
) -> None:
    made = convert(write_chatglm(tmp_path / "hf", tokenizer=False), tmp_path / "checkpoint", for_engine="openvino")
    assert made.config.chatglm is not None
    config: TrtllmConfig = dataclasses.replace(made.config, chatglm=dataclasses.replace(made.config.chatglm, **change))
    with pytest.raises(UnsupportedModel, match=reason):
        build(small_spec(), dataclasses.replace(made, config=config), tmp_path / "engine", limits=LIMITS)


def test_each_step_is_reported(checkpoint: CheckpointArtifact, tmp_path: Path) -> None:
    events: list[str] = []
    build(small_spec(), checkpoint, tmp_path / "engine", limits=LIMITS, on_event=events.append)
    assert events == ["building the float32 graph of 2 layers"]


def test_a_full_disk_names_the_file_and_leaves_what_was_there(checkpoint: CheckpointArtifact, tmp_path: Path) -> None:
    build(small_spec(), checkpoint, tmp_path / "engine", limits=LIMITS)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}

    with file_size_limit(50_000), pytest.raises(BuildError, match=r"model\.xml: cannot be written") as failed:
        build(small_spec(precision="int8"), checkpoint, tmp_path / "engine", limits=LIMITS)

    assert "free space" in str(failed.value.hint)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


def test_a_folder_that_cannot_be_made_is_named(checkpoint: CheckpointArtifact, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BuildError, match="file/engine: cannot be written"):
        build(small_spec(), checkpoint, tmp_path / "file" / "engine", limits=LIMITS)
