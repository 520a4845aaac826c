"""`inspect` describes what is supported and what is not; the digest changes with the files."""

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner
from safetensors.numpy import load_file

from tests.support.checkpoints import write_chatglm, write_glm, write_llama
from tests.support.rotary import llama3_scaling
from tritonforge.checkpoint.digest import checkpoint_digest
from tritonforge.checkpoint.inspect import inspect
from tritonforge.cli.main import group, run
from tritonforge.errors import MissingWeight

FIELDS = {
    *("family", "architecture", "supported", "reasons", "parameters", "dtype", "kv_bytes_per_token", "num_layers"),
    *("hidden_size", "num_heads", "num_kv_heads", "head_size", "rotary_base", "rotary_scaling", "rotary_dim"),
    *("tied_embeddings", "vocab_size", "max_position"),
}


def as_json(*argv: str) -> dict[str, object]:
    result = CliRunner().invoke(group, [*argv, "--json"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_every_promised_field_is_there(tmp_path: Path) -> None:
    found = as_json("inspect", str(write_llama(tmp_path, tokenizer=None, dtype="BF16", tied=True, head_dim=24)))
    assert set(found) >= FIELDS
    assert found["family"] == "llama"
    assert found["kv_bytes_per_token"] == 2 * 2 * 2 * 24 * 2  # keys and values, layers, heads, size, bytes
    assert found["dtype"] == "bfloat16"
    assert found["tied_embeddings"] is True
    assert found["supported"] is True
    assert found["reasons"] == []


def test_parameters_count_each_weight_once(tmp_path: Path) -> None:
    source = write_chatglm(tmp_path, tokenizer=False)
    sizes = {name: values.size for name, values in load_file(source / "model.safetensors").items()}
    assert inspect(source).parameters == sum(size for name, size in sizes.items() if "inv_freq" not in name)


def test_glm_shows_the_part_of_a_head_that_rotates(tmp_path: Path) -> None:
    info = inspect(write_glm(tmp_path, tokenizer=False))
    assert (info.family, info.head_size, info.rotary_dim) == ("chatglm", 16, 8)


def test_rotary_scaling_is_shown_as_it_is_written(tmp_path: Path) -> None:
    scaling = {"rope_type": "linear", "factor": 2.0}
    assert inspect(write_llama(tmp_path, tokenizer=None, rope_scaling=scaling)).rotary_scaling == scaling


def test_scaling_that_contradicts_itself_is_a_reason(tmp_path: Path) -> None:
    info = inspect(write_llama(tmp_path, tokenizer=None, rope_scaling=llama3_scaling() | {"high_freq_factor": 1.0}))
    assert (info.supported, info.num_layers) == (False, 2)
    assert "low_freq_factor 1 is not below high_freq_factor 1" in info.reasons[0]


def test_the_tokenizer_is_shown_by_its_kind(tmp_path: Path) -> None:
    info = inspect(write_llama(tmp_path))
    assert (info.tokenizer, info.tokenizer_problem) == ("huggingface", None)


def test_a_missing_tokenizer_is_shown_and_no_failure(tmp_path: Path) -> None:
    found = as_json("inspect", str(write_llama(tmp_path, tokenizer=None)))
    assert (found["supported"], found["tokenizer"]) == (True, None)
    assert "holds neither tokenizer.json nor tokenizer.model" in str(found["tokenizer_problem"])


def test_a_template_that_the_gateway_cannot_use_is_shown_and_no_failure(tmp_path: Path) -> None:
    (write_llama(tmp_path) / "chat_template.jinja").write_text("{% for %}")
    output = CliRunner().invoke(group, ["inspect", str(tmp_path)], catch_exceptions=False).output
    assert "chat_template.jinja: cannot be used to compile the chat template" in output


def test_an_unsupported_checkpoint_is_described_with_its_reasons(tmp_path: Path) -> None:
    source = write_llama(tmp_path, tokenizer=None, rope_scaling={"type": "yarn", "factor": 2.0}, num_experts=8)
    found = as_json("inspect", str(source))
    assert found["supported"] is False
    assert len(found["reasons"]) == 2
    assert found["num_layers"] == 2
    assert found["dtype"] == "float32"


def test_an_unknown_architecture_is_described_as_far_as_the_weights_go(tmp_path: Path) -> None:
    source = write_llama(tmp_path, tokenizer=None)
    (source / "config.json").write_text(json.dumps({"architectures": ["Glm4ForCausalLM"], "model_type": "glm4"}))
    info = inspect(source)
    assert (info.family, info.architecture, info.supported) == (None, "Glm4ForCausalLM", False)
    assert info.parameters is not None
    assert info.num_layers is None


def test_pickled_weights_are_a_reason_and_no_failure(tmp_path: Path) -> None:
    (write_llama(tmp_path, tokenizer=None) / "model.safetensors").rename(tmp_path / "pytorch_model.bin")
    info = inspect(tmp_path)
    assert not info.supported
    assert "pickle" in info.reasons[0]
    assert info.num_layers == 2


def test_a_model_for_one_engine_names_the_other_in_its_reasons(tmp_path: Path) -> None:
    info = inspect(write_llama(tmp_path, tokenizer=None, mlp_bias=True))
    assert info.supported
    assert info.engines == ("openvino",)
    assert info.reasons[0].startswith("tensorrt_llm: ")


def test_a_damaged_checkpoint_is_a_failure_with_exit_code_3(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = write_llama(tmp_path, tokenizer=None)
    config = json.loads((source / "config.json").read_text())
    (source / "config.json").write_text(json.dumps({**config, "num_hidden_layers": 3}))
    with pytest.raises(MissingWeight):
        inspect(source)
    assert run(["inspect", str(source)]) == 3
    assert "model.layers.2" in capsys.readouterr().err


def test_people_get_a_table_with_a_verdict(tmp_path: Path) -> None:
    source = write_llama(tmp_path, tokenizer=None)
    output = CliRunner().invoke(group, ["inspect", str(source)]).output
    assert "parameters" in output
    assert "yes, by tensorrt_llm and openvino" in output


def test_convert_answers_with_path_and_configuration(tmp_path: Path) -> None:
    source = write_llama(tmp_path / "hf", tokenizer=None)
    found = as_json("convert", str(source), str(tmp_path / "out"), "--precision", "bfloat16")
    assert found["path"] == str(tmp_path / "out")
    assert found["config"]["dtype"] == "bfloat16"
    assert found["digest"] == checkpoint_digest(source)


def test_the_digest_is_that_of_untouched_files(tmp_path: Path) -> None:
    source = write_llama(tmp_path, tokenizer=None, shards=2)
    first = checkpoint_digest(source)
    assert checkpoint_digest(source) == first
    (source / "README.md").write_text("not part of the checkpoint")
    assert checkpoint_digest(source) == first
    shard = source / "model-00001-of-00002.safetensors"
    os.utime(shard, ns=(0, 0))
    touched = checkpoint_digest(source)
    assert touched != first
    (source / "config.json").write_text((source / "config.json").read_text() + "\n")
    assert checkpoint_digest(source) not in (first, touched)
