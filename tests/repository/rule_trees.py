"""Repositories of a few small files that lint's rules are tried on."""

from __future__ import annotations

import json

from tests.repository.trees import PYTHON, TENSORS, python_model, serving
from tritonforge.repository.manifest import Manifest, manifest_text

ONNX = 'backend: "onnxruntime"\n'
LLM = 'backend: "tensorrtllm"\n' + TENSORS
LLM_PATH = 'parameters { key: "gpt_model_path" value { string_value: "/engines/1" } }\n'
LLM_TYPE = 'parameters { key: "gpt_model_type" value { string_value: "inflight_fused_batching" } }\n'
LLM_MEMORY = 'parameters { key: "kv_cache_free_gpu_mem_fraction" value { string_value: "0.5" } }\n'
ENSEMBLE = """platform: "ensemble"
input [ { name: "A" data_type: TYPE_FP32 dims: [ 4 ] } ]
output [ { name: "B" data_type: TYPE_FP32 dims: [ 4 ] } ]
ensemble_scheduling {
  step [ {
    model_name: "m"
    model_version: -1
    input_map { key: "IN" value: "A" }
    output_map { key: "OUT" value: "B" }
  } ]
}
"""


def ensemble(config: str = ENSEMBLE) -> dict[str, str]:
    return python_model() | {"e/config.pbtxt": config, "e/1/": ""}


def streaming_ensemble(*, instances: int) -> dict[str, str]:
    """A decoupled model and one behind it, in an ensemble."""
    last = PYTHON.replace("KIND_CPU", f"KIND_CPU count: {instances}")
    steps = (
        ENSEMBLE.replace('"m"', '"first"')
        .replace('value: "B"', 'value: "X"')
        .replace(
            "step [ {",
            'step [ {\n    model_name: "last"\n    model_version: -1\n    input_map { key: "IN" value: "X" }\n'
            '    output_map { key: "OUT" value: "B" }\n  }, {',
        )
    )
    return (
        python_model("model_transaction_policy { decoupled: true }\n" + PYTHON, name="first")
        | python_model(last, name="last")
        | {"e/config.pbtxt": steps, "e/1/": ""}
    )


def public_ensemble(weights: str) -> dict[str, str]:
    """An ensemble that clients call, with the steps of version 1; routes is on line 2."""
    engine = "model_transaction_policy { decoupled: true }\n"
    served = {f"e/1/versions/{number}/serving.json": serving(number) for number in (1, 2)}
    return (
        python_model(engine + PYTHON, name="e_engine_v1")
        | python_model(engine + PYTHON, name="e_engine_v2")
        | {"e/config.pbtxt": routes(weights) + ENSEMBLE.replace('"m"', '"e_engine_v1"')}
        | served
    )


def gateway(config: str, *, engine: str = "model_transaction_policy { decoupled: true }\n") -> dict[str, str]:
    return (
        python_model(config + PYTHON, name="g")
        | python_model(engine + PYTHON, name="g_engine_v1")
        | {"g/1/versions/1/serving.json": serving()}
    )


def served_by(*engines: tuple[str, str | None], weights: dict[str, float] | None = None) -> dict[str, str]:
    """A gateway over versions of these kinds and releases; routes is on line 2."""
    shares = weights or {str(number): 1.0 for number in range(1, len(engines) + 1)}
    files = python_model(routes(json.dumps({"weights": shares, "salt": "g"})) + PYTHON, name="g")
    for number, (kind, release) in enumerate(engines, 1):
        manifest = Manifest("g", number, kind, "c", "s", "2026-01-01T00:00:00+00:00", release=release)
        files[f"g_engine_v{number}/{number}/forge-manifest.json"] = manifest_text(manifest)
        files[f"g/1/versions/{number}/serving.json"] = serving(number)
    return files


def routes(value: str, *, decoupled: str = "model_transaction_policy { decoupled: true }\n") -> str:
    return f"{decoupled}parameters {{ key: \"routes\" value {{ string_value: '{value}' }} }}\n"


def parameters(**values: object) -> str:
    """Parameters, one a line."""
    return "".join(
        f'parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}\n' for key, value in values.items()
    )


def trtllm(
    config: str = "", *, path: str = "/models/m/1", version: str = "0.16.0", ranks: int = 1, **limits: object
) -> dict[str, str]:
    """A model of the tensorrtllm backend with its engine in its version folder; `config` begins on line 4."""
    build = {"max_batch_size": 8, "max_input_len": 64, "max_seq_len": 128, "plugin_config": {}} | limits
    model = {"architecture": "LlamaForCausalLM", "dtype": "float16", "vocab_size": 64, "mapping": {"tp_size": ranks}}
    engine = {"version": version, "pretrained_config": model, "build_config": build}
    begin = parameters(
        gpt_model_path=path, gpt_model_type="inflight_fused_batching", kv_cache_free_gpu_mem_fraction=0.5
    )
    text = begin + config + 'backend: "tensorrtllm"\n' + TENSORS
    return {"m/config.pbtxt": text, "m/1/config.json": json.dumps(engine), "m/1/rank0.engine": "engine"}


def renamed(files: dict[str, str], name: str) -> dict[str, str]:
    """A model of these files under another name."""
    return {path.replace("m/", f"{name}/", 1): text.replace("/m/", f"/{name}/") for path, text in files.items()}
