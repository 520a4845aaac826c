"""The engine model of the `tensorrtllm` backend: every tensor and parameter of its line, limits of its own engine."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tritonclient.grpc.model_config_pb2 import DataType, ModelConfig

from tests.repository.backend_table import Row, rows, tags
from tests.repository.specs import make_manifest, make_tokenizer
from tests.support.trtllm_engines import write_trtllm_engine
from tritonforge.errors import BuildError, RepositoryError
from tritonforge.releases.backend import check_parameters
from tritonforge.releases.table import all_releases, find_release
from tritonforge.repository.lint import lint
from tritonforge.repository.pbtxt import parameter_of, read_config
from tritonforge.repository.render import render_engine, render_gateway
from tritonforge.repository.serving import ServedVersion
from tritonforge.spec.model import ModelSpec

RELEASES = [release.name for release in all_releases()]


def make_model(release: str, *, serving: dict[str, Any] | None = None, **engine: Any) -> ModelSpec:
    version = {"engine": {"kind": "tensorrt_llm", "release": release} | engine, "serving": serving}
    return ModelSpec.model_validate({"name": "llama", "checkpoint": "./c", "versions": {3: version}})


def render(
    tmp_path: Path, release: str, *, built: dict[str, Any] | None = None, mount: str = "/models", **changes: Any
) -> ModelConfig:
    version = make_model(release, **changes).resolved(3)
    engine = write_trtllm_engine(tmp_path / "engine", **{"release": release} | (built or {}))
    (tmp_path / "out").mkdir()
    folder = render_engine(version, engine, tmp_path / "out", mount=mount, manifest=make_manifest("llama", 3))
    return read_config(folder / "config.pbtxt")


def read_rows(what: str, tensors: Iterable[Any]) -> dict[str, Row]:
    """Tensors of a config as rows of the table."""
    return {
        tensor.name: Row(
            what,
            tensor.name,
            DataType.Name(tensor.data_type),
            tuple(tensor.dims),
            getattr(tensor, "optional", False),
            getattr(tensor, "allow_ragged_batch", False),
            tensor.HasField("reshape") and not tensor.reshape.shape,
        )
        for tensor in tensors
    }


@pytest.mark.parametrize("tag", tags())
def test_every_tensor_is_as_in_the_tag(tag: str, tmp_path: Path) -> None:
    config = render(tmp_path, tag)

    assert read_rows("input", config.input) == rows(tag, "input")
    assert read_rows("output", config.output) == rows(tag, "output")


@pytest.mark.parametrize("tag", tags())
def test_every_parameter_of_the_tag_is_filled_or_named_with_its_default(tag: str, tmp_path: Path) -> None:
    config = render(tmp_path, tag)

    text = (tmp_path / "out" / "llama_engine_v3" / "config.pbtxt").read_text()
    left = dict(re.findall(r"^#   (\w+): (.+) \(", text, re.MULTILINE))
    known = rows(tag, "parameter")
    ours = {"engine_kind", "tensorrt_llm_release", "precision", "max_input_len", "max_seq_len"}
    beyond = {"recv_poll_period_ms"}  # the backend reads it from 0.19 on at the latest, and no template has it
    assert (set(config.parameters) - ours | left.keys()) - beyond == known.keys()
    assert (left.get("recv_poll_period_ms") == "0") == (tag == "0.19.0")
    assert not set(config.parameters) & left.keys()
    for name, row in known.items():
        if not row.type.startswith("$"):
            assert parameter_of(config, name) == row.type, name  # upstream's template has a fixed value


@pytest.mark.parametrize("release", RELEASES)
def test_nothing_is_left_to_fill_and_lint_has_nothing_to_say(release: str, tmp_path: Path) -> None:
    config = render(tmp_path, release)

    text = (tmp_path / "out" / "llama_engine_v3" / "config.pbtxt").read_text()
    assert "${" not in text
    assert "{{" not in text
    assert config.model_transaction_policy.decoupled
    assert [(group.count, group.KIND_CPU, list(group.gpus)) for group in config.instance_group] == [
        (1, group.kind, []) for group in config.instance_group
    ]
    assert [f for f in lint(tmp_path / "out") if f.severity != "info"] == []


def test_limits_are_those_of_the_engine_not_of_the_spec(tmp_path: Path) -> None:
    built = {"max_batch_size": 5, "max_input_len": 33, "max_seq_len": 77, "max_beam_width": 3}

    config = render(tmp_path, "0.16.0", built=built)

    assert config.max_batch_size == 5
    assert parameter_of(config, "max_beam_width") == "3"
    assert (parameter_of(config, "max_input_len"), parameter_of(config, "max_seq_len")) == ("33", "77")


def test_lines_that_count_the_answer_alone_are_read_as_such(tmp_path: Path) -> None:
    engine = write_trtllm_engine(tmp_path / "engine", "0.9.0")
    config = json.loads((engine.path / "config.json").read_text())
    del config["build_config"]["max_seq_len"]
    config["build_config"]["max_output_len"] = 100
    (engine.path / "config.json").write_text(json.dumps(config))

    folder = render_engine(make_model("0.9.0").resolved(3), engine, tmp_path, mount="/models")

    assert parameter_of(read_config(folder / "config.pbtxt"), "max_seq_len") == "1124"


def test_the_engine_is_found_where_the_server_sees_its_own_version(tmp_path: Path) -> None:
    config = render(tmp_path, "0.16.0", mount="/srv/models", built={"ranks": 2}, tensor_parallel=2)

    assert parameter_of(config, "gpt_model_path") == "/srv/models/llama_engine_v3/3"
    folder = tmp_path / "out" / "llama_engine_v3" / "3"
    assert {path.name for path in folder.iterdir()} == {
        "config.json", "rank0.engine", "rank1.engine", "forge-manifest.json",
    }  # fmt: skip


def test_settings_reach_the_config(tmp_path: Path) -> None:
    runtime = {
        "batch_scheduler_policy": "max_utilization",
        "kv_cache_free_gpu_mem_fraction": 0.25,
        "enable_chunked_context": True,
        "parameters": {"max_attention_window_size": [512, 1024], "normalize_log_probs": False, "medusa_choices": "{0}"},
    }
    plugins = {"paged_context_fmha": True}

    config = render(
        tmp_path, "0.16.0", built={"paged_context_fmha": True, "ranks": 2},
        runtime=runtime, plugins=plugins, tensor_parallel=2, gpus=[4, 6],
    )  # fmt: skip

    values = {name: parameter.string_value for name, parameter in config.parameters.items()}
    assert values["batch_scheduler_policy"] == "max_utilization"
    assert values["kv_cache_free_gpu_mem_fraction"] == "0.25"
    assert values["enable_chunked_context"] == "true"
    assert values["max_attention_window_size"] == "512,1024"
    assert values["normalize_log_probs"] == "false"
    assert values["medusa_choices"] == "{0}"
    assert values["gpu_device_ids"] == "4,6"


@settings(max_examples=40, deadline=None, derandomize=True, database=None)
@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30))
def test_any_text_that_is_taken_reaches_the_backend_unchanged(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    assume(not check_parameters(find_release("0.16.0"), {"medusa_choices": text}))

    config = render(tmp_path_factory.mktemp("text"), "0.16.0", runtime={"parameters": {"medusa_choices": text}})

    assert parameter_of(config, "medusa_choices") == text


@pytest.mark.parametrize(
    ("release", "paged", "expected"),
    [("0.18.2", False, "false"), ("0.18.2", True, "false"), ("0.19.0", False, "false"), ("0.19.0", True, "true")],
)
def test_kv_cache_reuse_is_said_in_every_line_since_its_default_flipped(
    release: str, paged: bool, expected: str, tmp_path: Path
) -> None:
    config = render(tmp_path, release, built={"paged_context_fmha": paged}, plugins={"paged_context_fmha": paged})

    assert parameter_of(config, "enable_kv_cache_reuse") == expected


@pytest.mark.parametrize("release", ["0.19.0", "1.2.1"])
def test_keys_that_must_exist_are_written_empty(release: str, tmp_path: Path) -> None:
    config = render(tmp_path, release)

    for name in ("tokenizer_dir", "guided_decoding_backend", "xgrammar_tokenizer_info_path"):
        assert name in config.parameters
        assert config.parameters[name].string_value == ""


def test_lines_of_which_no_tag_was_read_say_so(tmp_path: Path) -> None:
    config = render(tmp_path, "0.20.0")

    assert "are inferred" in (tmp_path / "out" / "llama_engine_v3" / "config.pbtxt").read_text()
    inputs = read_rows("input", config.input)
    assert inputs.keys() - rows("0.19.0", "input").keys() == {"min_tokens", "seed"}


@pytest.mark.parametrize(("release", "known"), [("0.14.0", False), ("0.15.0", True)])
def test_histograms_are_written_for_releases_whose_server_knows_them(release: str, known: bool, tmp_path: Path) -> None:
    assert render(tmp_path, release).HasField("model_metrics") == known


def test_an_engine_of_several_ranks_says_how_to_start_it(tmp_path: Path) -> None:
    render(tmp_path, "0.16.0", built={"ranks": 4}, tensor_parallel=4)

    text = (tmp_path / "out" / "llama_engine_v3" / "config.pbtxt").read_text()
    assert "--world_size 4 --tensorrt_llm_model_name llama_engine_v3" in text
    assert "TRTLLM_ORCHESTRATOR=1" in text


def test_an_instance_group_on_gpus_is_taken_for_its_gpus(tmp_path: Path) -> None:
    config = render(tmp_path, "0.16.0", serving={"instance_group": [{"kind": "KIND_GPU", "gpus": [1]}]})

    assert parameter_of(config, "gpu_device_ids") == "1"
    assert [list(group.gpus) for group in config.instance_group] == [[]]


def test_the_queue_policy_is_written_where_the_line_has_one(tmp_path: Path) -> None:
    batching = {"max_queue_delay_microseconds": 7, "default_queue_policy": {"max_queue_size": 9}}

    config = render(tmp_path, "0.12.0", serving={"dynamic_batching": batching})

    assert config.dynamic_batching.max_queue_delay_microseconds == 7
    assert config.dynamic_batching.default_queue_policy.max_queue_size == 9


@pytest.mark.parametrize(
    ("changes", "built", "message"),
    [
        ({}, {"release": "0.15.0"}, "built by TensorRT-LLM 0.15.0; expected 0.16.0"),
        ({}, {"release": "0.16.0.dev2024112600"}, "built by TensorRT-LLM 0.16.0.dev2024112600; expected 0.16.0"),
        ({"tensor_parallel": 2}, {}, "has 1 ranks; expected 2"),
        (
            {"plugins": {"paged_context_fmha": True}, "runtime": {"enable_chunked_context": True}}, {},
            "built without paged context FMHA",
        ),
        ({"serving": {"instance_group": [{"count": 2}]}}, {}, "has 2 copies; expected 1"),
        ({"serving": {"instance_group": [{"kind": "KIND_GPU", "gpus": [0, 1]}]}}, {}, "lists 2 GPUs; expected 1"),
        ({"gpus": [0], "serving": {"instance_group": [{"kind": "KIND_GPU", "gpus": [1]}]}}, {}, "engine.gpus [0]"),
    ],
)  # fmt: skip
def test_what_the_backend_would_refuse_is_not_rendered(
    changes: dict[str, Any], built: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(RepositoryError, match=re.escape(message)) as caught:
        render(tmp_path, "0.16.0", built=built, **changes)

    assert caught.value.hint
    assert not list((tmp_path / "out").iterdir())


def test_a_missing_rank_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    engine = write_trtllm_engine(tmp_path / "engine", "0.16.0", ranks=2)
    (engine.path / "rank1.engine").unlink()
    (tmp_path / "out").mkdir()

    with pytest.raises(BuildError, match=r"rank1\.engine"):
        render_engine(make_model("0.16.0", tensor_parallel=2).resolved(3), engine, tmp_path / "out", mount="/models")

    assert not list((tmp_path / "out").iterdir())


@pytest.mark.parametrize(
    ("release", "aliases"), [("0.19.0", {}), ("0.21.0", {"min_length": "min_tokens", "random_seed": "seed"})]
)
def test_the_gateway_knows_the_line_and_the_engines_limits(
    release: str, aliases: dict[str, str], tmp_path: Path
) -> None:
    model = make_model(release)
    engine = write_trtllm_engine(tmp_path / "engine", release, max_input_len=33, max_seq_len=77, max_batch_size=5)
    served = ServedVersion.of(model.resolved(3), engine, make_tokenizer(tmp_path / "tokenizer"))

    gateway = render_gateway(model, [served], tmp_path, weights={3: 100})

    value = json.loads((gateway / "1" / "versions" / "3" / "serving.json").read_text())
    assert value["dialect"] == "tensorrt_llm"
    assert value["limits"] == {"max_batch_size": 5, "max_input_len": 33, "max_seq_len": 77}
    assert (value["unserved_inputs"], value["input_aliases"]) == ([], aliases)


@pytest.mark.parametrize("built", [{"max_seq_len": 1}, {"max_seq_len": 2**40}, {"max_batch_size": 2**31 - 1}])
def test_an_engine_that_no_gateway_can_serve_is_named(tmp_path: Path, built: dict[str, Any]) -> None:
    version = make_model("0.16.0").resolved(3)
    engine = write_trtllm_engine(tmp_path / "engine", "0.16.0", **built)
    with pytest.raises(RepositoryError, match="no gateway can serve that"):
        ServedVersion.of(version, engine, make_tokenizer(tmp_path / "tokenizer"))
