"""Each rule: a repository that breaks it, with the line, and what it says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.repository.damaged_cases import DAMAGED
from tests.repository.rule_trees import (
    ENSEMBLE,
    LLM,
    LLM_MEMORY,
    LLM_PATH,
    LLM_TYPE,
    ONNX,
    ensemble,
    gateway,
    parameters,
    public_ensemble,
    renamed,
    routes,
    served_by,
    streaming_ensemble,
    trtllm,
)
from tests.repository.text_engine_cases import TEXT_ENGINES_BROKEN, TEXT_ENGINES_CLEAN
from tests.repository.trees import PYTHON, TENSORS, build_tree, findings_of, python_model
from tritonforge.repository.lint import lint
from tritonforge.repository.lint.rules import MODEL_RULES, REPOSITORY_RULES

GOOD_ROUTES = '{"weights": {"1": 100}, "salt": "g"}'
CLEAN = [
    python_model(),
    python_model('name: "m"\nversion_policy { all {} }\n' + PYTHON) | python_model(version="2"),
    {"with space/config.pbtxt": ONNX, "with space/1/model.onnx": ""},
    python_model("max_batch_size: 8\ndynamic_batching { preferred_batch_size: [ 4, 8 ] }\n" + PYTHON),
    {"m/config.pbtxt": ONNX, "m/1/model.onnx": ""},
    {"m/config.pbtxt": 'platform: "onnxruntime_onnx"\n', "m/1/model.onnx": ""},
    {"m/config.pbtxt": LLM + LLM_PATH + LLM_TYPE + LLM_MEMORY, "m/1/": ""},
    trtllm("max_batch_size: 8\n" + parameters(max_beam_width=1, max_input_len=64, engine_kind="tensorrt_llm")),
    trtllm(parameters(enable_chunked_context=True), plugin_config={"use_paged_context_fmha": True}),
    trtllm(parameters(a_note_of_mine="x", tensorrt_llm_release="0.16.0"), version="0.16.0+cu124"),
    trtllm(path="/engines/elsewhere", version="0.16.0"),
    renamed(trtllm(parameters(gpu_device_ids="0,1")), "a") | renamed(trtllm(parameters(gpu_device_ids="2")), "b"),
    renamed(trtllm(parameters(max_tokens_in_paged_kv_cache=9)), "a")
    | renamed(trtllm(parameters(max_tokens_in_paged_kv_cache=9)), "b"),
    ensemble(),
    public_ensemble('{"weights": {"1": 100, "2": 0}, "salt": ""}'),
    streaming_ensemble(instances=1),
    gateway(routes(GOOD_ROUTES)),
    python_model(
        'parameters { key: "chat" value { string_value: "{% for m in ms %}{{ m }}{% endfor %}<s>" } }\n' + PYTHON
    ),
    {"README.md": "plain files at the root are ignored"} | python_model(),
    *TEXT_ENGINES_CLEAN,
]

# One case a line, as in a table.
# fmt: off
# ruff: noqa: E501
BROKEN = [
    ("stray-directory", {".git/HEAD": ""}, None, "hidden folder .git"),
    ("stray-directory", {"notes/todo.txt": ""}, None, "folder notes has no config.pbtxt"),
    ("stray-directory", {"m/config.prototxt": "", "m/1/": ""}, None, "it holds config.prototxt"),
    ("model-folder", {"config.pbtxt": PYTHON, "1/model.py": ""}, None, "this is a model folder"),
    ("config-missing", {"m/1/model.onnx": ""}, None, "guesses backend 'onnxruntime'"),
    ("change-detection", python_model() | {"m/config/": ""}, None, "config beside config.pbtxt"),
    ("config-parse", {"m/config.pbtxt": 'backend: "python"\ninput [ { dims: [ 1, ] } ]'}, 2, "column 22"),
    ("config-parse", {"m/config.pbtxt": "// a model\n"}, 1, "column 1"),
    ("config-parse", {"m/config.pbtxt": "dynamic_batching {}\nsequence_batching {}"}, 2, "oneof"),
    ("unknown-field", {"m/config.pbtxt": 'backend: "python"\nmax_batchsize: 4'}, 2, "no field 'max_batchsize'"),
    ("unknown-field", {"m/config.pbtxt": "input [ {\n  nam: 'x'\n} ]"}, 2, "no field 'nam'"),
    ("placeholder", {"m/config.pbtxt": "max_batch_size: ${triton_max_batch_size}"}, 1, "${triton_max_batch_size}"),
    ("placeholder", {"m/config.pbtxt": 'backend: "python"\nmax_batch_size: {{ size }}'}, 2, "{{ size }}"),
    ("placeholder", {"m/config.pbtxt": "max_batch_size: <batch size>"}, 1, "<batch size>"),
    ("placeholder", {"m/config.pbtxt": 'backend: "${triton_backend}"'}, 1, "${triton_backend}"),
    ("placeholder", {"m/config.pbtxt": LLM + LLM_PATH.replace("/engines/1", "${engine_dir}")}, 5, "'gpt_model_path'"),
    ("placeholder", {"m/config.pbtxt": LLM + LLM_PATH.replace("/engines/1", "<path to engine>")}, 5, "<path to engine>"),
    ("parameter-duplicate", {"m/config.pbtxt": LLM_PATH + LLM_PATH}, 2, "'gpt_model_path' is given again"),
    ("version-none", {"m/config.pbtxt": PYTHON}, None, "no version folder"),
    ("version-none", {"m/config.pbtxt": PYTHON, "m/1": "a file"}, None, "1 is a file"),
    ("version-name", python_model() | {"m/02/": ""}, None, "folder 02 has a leading zero"),
    ("version-name", python_model() | {"m/v2/": ""}, None, "v2 has a name that is not a number"),
    ("version-name", python_model() | {"m/2_old/": ""}, None, "2_old counts as version 2"),
    ("version-name", python_model() | {"m/20240101000000000000/": ""}, None, "beyond 64 bits"),
    ("version-policy-empty", python_model("version_policy { latest {} }\n" + PYTHON), 1, "selects none"),
    ("version-policy-empty", python_model("version_policy { specific { versions: 3 } }\n" + PYTHON), 1, "(1)"),
    ("version-missing", python_model("version_policy { specific { versions: [\n1,\n9 ] } }\n" + PYTHON), 3, "version 9"),
    ("version-idle", python_model() | python_model(version="2"), None, "does not load version 1"),
    ("name-mismatch", python_model('name: "M"\n' + PYTHON), 1, "name is 'M', but the folder is 'm'"),
    ("backend-missing", {"m/config.pbtxt": TENSORS, "m/1/weights.bin": ""}, None, "backend is not given"),
    ("backend-missing", {"m/config.pbtxt": 'platform: "onnx"', "m/1/x": ""}, 1, "platform is 'onnx'"),
    ("backend-unknown", {"m/config.pbtxt": 'backend: "onnxruntim"', "m/1/": ""}, 1, "'onnxruntim'"),
    ("platform-mismatch", {"m/config.pbtxt": ONNX + 'platform: "onnx"', "m/1/model.onnx": ""}, 2, "'onnx'"),
    ("platform-mismatch", ensemble('backend: "python"\n' + ENSEMBLE), 1, "an ensemble with a backend"),
    ("python-name", python_model(name="with space"), None, "has ' ' in it"),
    ("python-name", python_model(name="a?b"), None, "has '?' in it"),
    ("python-name", python_model(name="modèle"), None, "is not ASCII"),
    ("model-file-missing", {"m/config.pbtxt": ONNX, "m/1/": ""}, None, "has no model.onnx"),
    ("model-file-missing", {"m/config.pbtxt": ONNX + 'default_model_filename: "a.onnx"', "m/1/model.onnx": ""}, None, "a.onnx"),
    ("tensor-incomplete", python_model('backend: "python"\ninput { name: "x" dims: 1 }'), 2, "no data_type"),
    ("tensor-incomplete", python_model('backend: "python"\noutput { data_type: TYPE_FP32 }'), 2, "no name and no dims"),
    ("tensor-dims", python_model("input [\n{ name: 'x' data_type: TYPE_FP32\ndims: [ 1, 0 ] } ]\n" + 'backend: "python"'), 3, "dimension of 0"),
    ("tensor-duplicate", python_model(PYTHON + TENSORS), 7, "input 'IN' is given twice"),
    ("tensor-reshape", python_model("input { name: 'x' data_type: TYPE_FP32 dims: [2, 3]\nreshape { shape: 5 } }"), 2, "[2, 3] and reshape [5]"),
    ("batch-size", python_model("max_batch_size: -1\n" + PYTHON), 1, "max_batch_size is -1"),
    ("preferred-batch-size", python_model("max_batch_size: 4\ndynamic_batching {\npreferred_batch_size: 8 }\n" + PYTHON), 3, "max_batch_size (4)"),
    ("batching-idle", python_model("dynamic_batching {}\n" + PYTHON), 1, "nothing is ever batched"),
    ("queue-policy", python_model("max_batch_size: 4 dynamic_batching {\npriority_levels: 2 }\n" + PYTHON), 2, "default_priority_level is 0"),
    ("queue-policy", python_model("max_batch_size: 4 dynamic_batching {\npreserve_ordering: true default_queue_policy { timeout_action: DELAY default_timeout_microseconds: 1 } }\n" + PYTHON), 2, "preserve_ordering"),
    ("cache-conflict", python_model("response_cache { enable: true }\nmodel_transaction_policy { decoupled: true }\n" + PYTHON), 1, "decoupled"),
    ("new-field", python_model("model_metrics {}\n" + PYTHON), 1, "24.11"),
    ("new-field", ensemble(ENSEMBLE.replace("step [", "max_inflight_requests: 4\nstep [")), 5, "25.11"),
    ("instance-gpus", python_model('backend: "python"\ninstance_group [ { kind: KIND_CPU gpus: 0 } ]'), 2, "KIND_CPU and lists gpus [0]"),
    ("instance-count", python_model('backend: "python"\ninstance_group [ { count: -1 } ]'), 2, "count is -1"),
    ("instance-count", python_model('backend: "python"\ninstance_group [ { kind: KIND_GPU count: 2 } ]'), 2, "2 per GPU"),
    ("instance-kind", python_model('backend: "python"'), None, "one process of this model per GPU"),
    ("ensemble-block", ensemble("instance_group { count: 1 }\n" + ENSEMBLE), 1, "instance_group"),
    ("ensemble-block", ensemble('platform: "ensemble"'), None, "no steps"),
    ("ensemble-model-missing", ensemble(ENSEMBLE.replace('"m"', '"mm"')), 6, "'mm', which is not in the repository"),
    ("ensemble-version", ensemble(ENSEMBLE.replace("model_version: -1", "")), 5, "which means version 0"),
    ("ensemble-version", ensemble(ENSEMBLE.replace("version: -1", "version: 7")), 7, "model_version 7"),
    ("ensemble-map", ensemble(ENSEMBLE.replace('"IN"', '"INN"')), 8, "'INN'"),
    ("ensemble-map", ensemble(ENSEMBLE.replace('"OUT"', '"OUTT"')), 9, "'OUTT'"),
    ("ensemble-tensor", ensemble(ENSEMBLE.replace('name: "A"', 'name: "Z"')), 2, "'Z' is read by no step"),
    ("ensemble-tensor", ensemble(ENSEMBLE.replace('name: "B"', 'name: "Z"')), 3, "'Z' is written by no step"),
    ("ensemble-type", ensemble(ENSEMBLE.replace('"A" data_type: TYPE_FP32', '"A" data_type: TYPE_INT8')), 8, "which is TYPE_FP32, to 'A', which is TYPE_INT8 in the ensemble"),
    ("ensemble-type", ensemble(ENSEMBLE.replace('"B" data_type: TYPE_FP32', '"B" data_type: TYPE_INT8')), 9, "'B', which is TYPE_INT8"),
    ("ensemble-batch", ensemble("max_batch_size: 9\n" + ENSEMBLE) | python_model("max_batch_size: 8\n" + PYTHON), 1, "max_batch_size is 9, but 8 in 'm'"),
    ("ensemble-order", streaming_ensemble(instances=3), 6, "'last' has 3 instances"),
    ("ensemble-route", public_ensemble('{"weights": {"1": 50, "2": 50}, "salt": ""}'), 2, "sends all of it to one version"),
    ("ensemble-route", public_ensemble('{"weights": {"2": 100}, "salt": ""}'), 2, "routes gives version 2 all of the traffic, but the steps are e_engine_v1"),
    ("routes-broken", gateway(routes("{")), 2, "expected JSON"),
    ("routes-broken", gateway(routes('{"weights": {"1": -5}, "salt": ""}')), 2, "weight of version 1 is -5"),
    ("routes-broken", gateway(routes('{"weights": {"1": 0}, "salt": ""}')), 2, "all weights are 0"),
    ("routes-broken", gateway(""), None, "no parameter 'routes'"),
    ("route-target", gateway(routes('{"weights": {"1": 1, "2": 1}, "salt": ""}')), 2, "'g_engine_v2' is not in the repository"),
    ("decoupled-mismatch", gateway(routes(GOOD_ROUTES), engine=""), 1, "false in 'g_engine_v1'"),
    ("decoupled-mismatch", gateway(routes(GOOD_ROUTES, decoupled="")), None, "cannot stream"),
    ("decoupled-mismatch", python_model(name="tensorrt_llm_bls") | {"tensorrt_llm/config.pbtxt": "model_transaction_policy { decoupled: true }\n" + LLM, "tensorrt_llm/1/": ""}, None, "true in 'tensorrt_llm'"),
    ("trtllm-model-path", {"m/config.pbtxt": LLM, "m/1/": ""}, None, "gpt_model_path is missing"),
    ("trtllm-model-path", {"m/config.pbtxt": LLM + LLM_PATH.replace("/engines", "engines"), "m/1/": ""}, 5, "relative path"),
    ("trtllm-model-type", {"m/config.pbtxt": LLM, "m/1/": ""}, None, "gpt_model_type is missing"),
    ("trtllm-model-type", {"m/config.pbtxt": LLM + LLM_TYPE.replace("inflight_fused_batching", "inflight"), "m/1/": ""}, 5, "'inflight'"),
    ("trtllm-parameter", {"m/config.pbtxt": LLM + 'parameters { key: "batch_scheduler_policy" value { string_value: "max" } }', "m/1/": ""}, 5, "'max'"),
    ("several-servers", served_by(("tensorrt_llm", "0.16.0"), ("tensorrt_llm", "0.12.0")), 2, "version 1 needs TensorRT-LLM 0.16.0; version 2 needs TensorRT-LLM 0.12.0; they share the traffic"),
    ("several-servers", served_by(("vllm", None), ("llmapi", "1.0.0")), 2, "version 1 needs vLLM; version 2 needs TensorRT-LLM 1.0.0"),
    ("several-servers", served_by(("vllm", None), ("llmapi", "1.0.0"), weights={"1": 1, "2": 0}), 2, "not all of them have traffic"),
    ("trtllm-kv-cache", {"m/config.pbtxt": LLM, "m/1/": ""}, None, "90 %"),
    ("trtllm-kv-cache-shared", renamed(trtllm(), "a") | renamed(trtllm(), "b"), 3, "0.5 on a GPU that is also used by b"),
    ("trtllm-engine", trtllm(ranks=2), None, "rank1.engine: no such file"),
    ("trtllm-engine", trtllm() | {"m/1/config.json": "{"}, None, "config.json"),
    ("trtllm-own-version", trtllm(parameters(engine_kind="tensorrt_llm"), path="/models/m/2"), 1, "not this model's version 1"),
    ("trtllm-own-version", trtllm(parameters(engine_kind="tensorrt_llm"), path="/models/other/1"), 1, "'/models/other/1'"),
    ("trtllm-release", trtllm(parameters(tensorrt_llm_release="0.17.0")), 4, "built by TensorRT-LLM 0.16.0, and the config is for 0.17.0"),
    ("trtllm-limits", trtllm("max_batch_size: 9\n"), 4, "max_batch_size is 9, and the engine of version 1 was built for 8"),
    ("trtllm-limits", trtllm(parameters(max_beam_width=2)), 4, "max_beam_width is 2"),
    ("trtllm-limits", trtllm(parameters(max_seq_len=129)), 4, "max_seq_len is 129"),
    ("trtllm-gateway-limits", gateway(routes(GOOD_ROUTES)) | {name.replace("m/", "g_engine_v1/"): text for name, text in trtllm(path="/models/g_engine_v1/1").items()} | {"g/1/versions/1/serving.json": '{"limits": {"max_input_len": 65, "max_seq_len": 128}}'}, None, "limits.max_input_len is 65"),
    ("trtllm-paged-context", trtllm(parameters(enable_chunked_context="true")), 4, "enable_chunked_context is on"),
    ("trtllm-paged-context", trtllm(parameters(enable_kv_cache_reuse="True")), 4, "enable_kv_cache_reuse is on"),
    ("trtllm-unknown-parameter", trtllm(parameters(num_nodes=1)), 4, "does not read it; the backends of 0.19 to 1.2 have it"),
    ("trtllm-unknown-parameter", trtllm(parameters(max_beam_widht=1)), 4, "'max_beam_widht' has no effect"),
    ("trtllm-unknown-parameter", trtllm(version="0.19.0"), 1, "'tokenizer_dir' is missing"),
    ("trtllm-tensor-type", trtllm("input { name: 'temperature' data_type: TYPE_FP64 dims: [ 1 ] }\n"), 4, "'temperature' is TYPE_FP64"),
    ("trtllm-instances", trtllm("instance_group [ { kind: KIND_GPU } ]\n"), 4, "is KIND_GPU"),
    *TEXT_ENGINES_BROKEN,
    *DAMAGED,
    ("python-cache", {"m/config.pbtxt": PYTHON, "m/1/model.py": ""}, None, "without a __pycache__"),
]
# fmt: on


@pytest.mark.parametrize("files", CLEAN, ids=range(len(CLEAN)))
def test_a_sound_repository_has_no_errors_and_no_warnings(tmp_path: Path, files: dict[str, str]) -> None:
    findings = lint(build_tree(tmp_path, files))

    assert [finding for finding in findings if finding.severity != "info"] == []


@pytest.mark.parametrize(
    ("code", "files", "line", "message"), BROKEN, ids=[f"{index}-{case[0]}" for index, case in enumerate(BROKEN)]
)
def test_a_broken_rule_is_found_with_its_line(
    tmp_path: Path, code: str, files: dict[str, str], line: int | None, message: str
) -> None:
    findings = findings_of(tmp_path, files, code)

    assert [finding for finding in findings if message in finding.message and finding.line == line], findings
    assert all(finding.fix for finding in findings)


def test_every_rule_has_a_case() -> None:
    codes = {rule.code for rule in (*REPOSITORY_RULES, *MODEL_RULES)}

    assert codes - {case[0] for case in BROKEN} == {"dangling-link", "engine-truncated"}


@pytest.mark.parametrize(
    "engines",
    [
        [("tensorrt_llm", "1.0.0"), ("llmapi", "1.0.0"), ("openvino", None)],
        [("vllm", None), ("vllm", None), ("openvino", None)],
    ],
)
def test_versions_that_one_server_can_load_are_no_finding(
    tmp_path: Path, engines: list[tuple[str, str | None]]
) -> None:
    assert findings_of(tmp_path, served_by(*engines), "several-servers") == []


def test_broken_links_are_found_at_the_root_and_in_a_model(tmp_path: Path) -> None:
    build_tree(tmp_path, python_model())
    (tmp_path / "gone").symlink_to("nowhere")
    (tmp_path / "m" / "gone").symlink_to("nowhere")

    assert [finding.path.name for finding in lint(tmp_path) if finding.code == "dangling-link"] == ["gone", "gone"]
