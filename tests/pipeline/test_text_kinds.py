"""Versions that serve the checkpoint as it is, from forge.yaml to a running server beside a compiled version."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from tests.pipeline.builds import INT8, build, states, write_spec
from tests.runtime.gateway.text_repository import install_backend
from tests.support.checkpoints import write_chatglm, write_llama
from tests.support.files import stamps
from tritonforge.cli.main import run
from tritonforge.client import Client
from tritonforge.errors import BuildError, RepositoryError, UnsupportedModel
from tritonforge.server import ServerOptions, start_embedded

VLLM, LLMAPI = "{engine: {kind: vllm}}", '{engine: {kind: llmapi, release: "1.0.0"}}'
ALL = f"1: {INT8}\n      2: {VLLM}\n      3: {LLMAPI}"


def test_versions_of_three_kinds_are_published_and_pass_lint(
    tiny_llama: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = write_spec(tmp_path, tiny_llama, versions=ALL)
    assert run(["build", "-f", str(spec)]) == 0
    capsys.readouterr()
    assert run(["lint", str(tmp_path / "models"), "--json"]) == 0
    (finding,) = json.loads(capsys.readouterr().out)["findings"]
    assert (finding["code"], finding["severity"]) == ("several-servers", "info")
    assert "version 2 needs vLLM; version 3 needs TensorRT-LLM 1.0.0" in finding["message"]
    assert states(build(spec)) == {1: "unchanged", 2: "unchanged", 3: "unchanged"}


def test_versions_for_several_servers_share_no_traffic_without_a_warning(
    tiny_llama: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    apart = "tiny: no server can load these together: version 2 needs vLLM; version 3 needs TensorRT-LLM 1.0.0"
    spec = write_spec(tmp_path, tiny_llama, versions=ALL)

    assert run(["build", "-f", str(spec), "--dry-run"]) == 0
    assert f"note: {apart}" in capsys.readouterr().err
    assert run(["build", "-f", str(spec)]) == 0
    assert f"warning: {apart}" in capsys.readouterr().err
    for weights, is_said in ((["2=50", "3=50"], True), ([], True), (["1=1", "2=1"], False), ([], False)):
        assert run(["traffic", str(tmp_path / "models"), "tiny", *weights]) == 0
        assert (f"warning: {apart}" in capsys.readouterr().err) is is_said
    assert run(["build", "-f", str(spec)]) == 0
    assert "warning" not in capsys.readouterr().err, "nothing is built"


def test_what_is_published_counts_when_another_version_is_built(tiny_llama: Path, tmp_path: Path) -> None:
    build(write_spec(tmp_path, tiny_llama, versions=f"1: {VLLM}"))
    said: list[str] = []

    build(write_spec(tmp_path, tiny_llama, versions=f"2: {LLMAPI}"), on_event=said.append)

    assert said[0] == (
        "warning: tiny: no server can load these together: version 1 needs vLLM; version 2 needs TensorRT-LLM 1.0.0"
    )


def test_a_dry_run_shows_their_files_and_no_commands(
    tiny_llama: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = write_spec(tmp_path, tiny_llama, versions=f"2: {VLLM}\n      3: {LLMAPI}")
    assert run(["build", "-f", str(spec), "--dry-run", "--json"]) == 0
    preview = json.loads(capsys.readouterr().out)
    assert preview["commands"] == []
    assert {"tiny_engine_v2/config.pbtxt", "tiny_engine_v3/3/", "tiny/1/versions/3/"} <= set(preview["files"])
    assert not (tmp_path / "models").exists()


def test_changed_arguments_need_a_version_of_their_own(tiny_llama: Path, tmp_path: Path) -> None:
    build(write_spec(tmp_path, tiny_llama, versions=f"1: {VLLM}"))
    before = stamps(tmp_path / "models")
    changed = "1: {engine: {kind: vllm, engine_args: {block_size: 16}}}"
    with pytest.raises(RepositoryError, match=r"block_size"):
        build(write_spec(tmp_path, tiny_llama, versions=changed))
    assert stamps(tmp_path / "models") == before


@pytest.mark.parametrize("version", [VLLM, LLMAPI])
def test_a_checkpoint_whose_tokenizer_is_code_is_refused(tmp_path: Path, version: str) -> None:
    checkpoint = write_chatglm(tmp_path / "chatglm", version="chatglm3")
    with pytest.raises(UnsupportedModel, match="is Python code that comes with it"):
        build(write_spec(tmp_path, checkpoint, versions=f"1: {version}"))
    assert not (tmp_path / "models" / "tiny_engine_v1").exists()


@pytest.mark.parametrize("version", [VLLM, LLMAPI])
def test_sequences_beyond_the_models_positions_are_refused(tmp_path: Path, version: str) -> None:
    limits = "    limits: {max_seq_len: 513}\n"
    plain = write_llama(tmp_path / "plain", max_position=512)
    with pytest.raises(BuildError, match="max_seq_len is 513, expected at most 512"):
        build(write_spec(tmp_path, plain, versions=f"1: {version}", more=limits))
    assert not (tmp_path / "models").exists()
    # How far a scaling reaches that is not ours to convert, the engine knows.
    scaled = write_llama(tmp_path / "scaled", max_position=512, rope_scaling={"rope_type": "yarn", "factor": 4.0})
    assert states(build(write_spec(tmp_path, scaled, versions=f"1: {version}", more=limits))) == {1: "new"}


@pytest.mark.parametrize(
    ("engine", "key"),
    [
        ("kind: vllm, tensor_parallel_size: 3", "tensor_parallel_size"),
        ('kind: llmapi, release: "1.0.0", tensor_parallel: 3', "tensor_parallel"),
    ],
)
def test_gpus_that_cannot_share_the_heads_are_refused(tmp_path: Path, engine: str, key: str) -> None:
    checkpoint = write_llama(tmp_path / "hf", heads=4, kv_heads=2)
    with pytest.raises(BuildError, match=rf"engine.{key} is 3; .* 4 query heads .* 1, 2 or 4") as caught:
        build(write_spec(tmp_path, checkpoint, versions=f"1: {{engine: {{{engine}}}}}"))
    assert "forge.yaml:" in str(caught.value)
    assert not (tmp_path / "models").exists()
    fitting = engine.replace(f"{key}: 3", f"{key}: 4")
    assert states(build(write_spec(tmp_path, checkpoint, versions=f"1: {{engine: {{{fitting}}}}}"))) == {1: "new"}


@pytest.mark.triton
def test_a_vllm_version_joins_a_compiled_one_on_a_running_server(tiny_llama: Path, tmp_path: Path) -> None:
    build(write_spec(tmp_path, tiny_llama))
    install_backend(tmp_path / "cache")  # stands in for vLLM: it repeats its prompt
    options = ServerOptions(grpc_port=0, http_port=0, metrics_port=0, exit_timeout_s=10, cache=tmp_path / "cache")
    with (
        start_embedded(tmp_path / "models", options=options) as server,
        Client(server.grpc_url, timeout_s=30) as client,
    ):
        build(write_spec(tmp_path, tiny_llama, versions=f"1: {INT8}\n      2: {VLLM}"), version=2)
        # By hand: the build knows that the embedded server has no such backend, unless one stands in for it.
        client.load("tiny_engine_v2")
        client.load("tiny")
        answer = client.generate("tiny", "a b", max_tokens=4, version=2)
        assert (answer.text, answer.finish_reason, answer.engine_version) == ("a b", "stop", 2)
        assert client.generate("tiny", "a b", max_tokens=4).engine_version == 1


QUANTISED = {"quantization_config": {"quant_method": "awq", "bits": 4}, "torch_dtype": "float16"}


def quantised(folder: Path) -> Path:
    """A checkpoint like those that AutoAWQ saves: integers and scales in place of one layer's weights."""
    write_llama(folder, **QUANTISED)  # type: ignore[arg-type]
    file = folder / "model.safetensors"
    weights = load_file(file)
    name = "model.layers.0.mlp.up_proj"
    rows, columns = weights.pop(f"{name}.weight").shape
    weights[f"{name}.qweight"] = np.zeros((columns, rows // 8), np.int32)
    weights[f"{name}.scales"] = np.ones((columns // 32, rows), np.float16)
    save_file(weights, file)
    return folder


def test_weights_that_only_the_engine_can_read_are_taken_along(tmp_path: Path) -> None:
    checkpoint = quantised(tmp_path / "awq")
    build(write_spec(tmp_path, checkpoint, versions="2: {engine: {kind: vllm, quantization: awq}}"))
    served = tmp_path / "models" / "tiny_engine_v2" / "2"
    assert (served / "checkpoint" / "model.safetensors").read_bytes() == (checkpoint / "model.safetensors").read_bytes()
    assert json.loads((served / "model.json").read_text())["quantization"] == "awq"


@pytest.mark.parametrize("method", ["awq", "gptq"])
def test_float_weights_are_not_served_as_quantised_ones(tmp_path: Path, method: str) -> None:
    checkpoint = write_llama(tmp_path / "hf")
    spec = write_spec(tmp_path, checkpoint, versions=f"1: {{engine: {{kind: vllm, quantization: {method}}}}}")
    with pytest.raises(UnsupportedModel, match=f"engine.quantization is {method}, .* no quantization_config"):
        build(spec)
    assert not (tmp_path / "models").exists()
    (checkpoint / "quantize_config.json").write_text('{"bits": 4, "group_size": 128}')
    assert states(build(spec)) == {1: "new"}, "the older way of saying it"


def test_float_weights_may_be_rounded_when_they_are_loaded(tmp_path: Path) -> None:
    spec = write_spec(tmp_path, write_llama(tmp_path / "hf"), versions="1: {engine: {kind: vllm, quantization: fp8}}")
    assert states(build(spec)) == {1: "new"}


def test_the_same_weights_are_refused_where_they_would_have_to_be_converted(tmp_path: Path) -> None:
    both = f"1: {INT8}\n      2: {VLLM}"
    with pytest.raises(UnsupportedModel, match=r"quantised \(awq\); expected float weights"):
        build(write_spec(tmp_path, quantised(tmp_path / "awq"), versions=both))
