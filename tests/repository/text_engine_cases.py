"""Broken engines that serve a checkpoint as it is: code of the rule, files, line, and a part of what it says."""

from __future__ import annotations

import json
from typing import Any

from tests.repository.trees import TENSORS

OWN = "/models/m/1/checkpoint"


def vllm(config: str = "", *, checkpoint: bool = True, text: str | None = None, **changes: Any) -> dict[str, str]:
    """A model `m` for the backend vllm, whole but for what is changed."""
    arguments = {"model": OWN, **changes}
    files = {
        "m/config.pbtxt": config + 'backend: "vllm"\n' + TENSORS,
        "m/1/model.json": text if text is not None else json.dumps(arguments),
    }
    weights = {"m/1/checkpoint/config.json": "{}", "m/1/checkpoint/model.safetensors": ""}
    return files | (weights if checkpoint else {})


def llmapi(text: str) -> dict[str, str]:
    """A model `m` of the kind llmapi with its model.yaml."""
    kind = 'parameters { key: "engine_kind" value { string_value: "llmapi" } }\n'
    return {
        "m/config.pbtxt": kind + 'backend: "python"\ninstance_group [ { kind: KIND_CPU } ]\n' + TENSORS,
        "m/1/model.py": "",
        "m/1/__pycache__/model.cpython-311.pyc": "",
        "m/1/model.yaml": text,
        "m/1/checkpoint/config.json": "{}",
        "m/1/checkpoint/model.safetensors": "",
    }


def spoken(dialect: str, engine: dict[str, str]) -> dict[str, str]:
    """A folder `g` that serves version 1 in a dialect, and its engine model."""
    named = {name.replace("m/", "g_engine_v1/", 1): text for name, text in engine.items()}
    named = {name: text.replace("/models/m/", "/models/g_engine_v1/") for name, text in named.items()}
    return named | {"g/1/versions/1/serving.json": json.dumps({"dialect": dialect})}


GPU = "instance_group [ { kind: KIND_GPU } ]\n"
TEXT_ENGINES_CLEAN = [
    vllm(),
    vllm(model="/elsewhere/llama", checkpoint=False),
    vllm(GPU),
    vllm("instance_group [ { kind: KIND_MODEL } ]\n", tensor_parallel_size=2),
    llmapi(f"model: {OWN}\nbackend: pytorch\n"),
]
TEXT_ENGINES_BROKEN = [
    ("dialect-mismatch", spoken("tensorrt_llm", vllm()), None, "'g_engine_v1' understands 'vllm'"),
    ("dialect-mismatch", spoken("vllm", llmapi(f"model: {OWN}\n")), None, "'g_engine_v1' understands 'llmapi'"),
    ("dialect-mismatch", spoken("esperanto", vllm()), None, "dialect is 'esperanto'"),
    ("engine-arguments", vllm(text="{"), None, "model.json cannot be read"),
    ("engine-arguments", vllm(text="[]"), None, "model.json holds a list"),
    ("engine-arguments", vllm(text="{}"), None, "names no model"),
    ("engine-arguments", llmapi("a: ["), None, "model.yaml cannot be read"),
    ("engine-arguments", llmapi("!!python/name:os.system"), None, "model.yaml cannot be read"),
    ("engine-arguments", llmapi("backend: pytorch\n"), None, "names no model"),
    ("remote-code", vllm(trust_remote_code=True), None, "trust_remote_code is true"),
    ("remote-code", vllm(trust_remote_code=1), None, "trust_remote_code is 1"),
    ("remote-code", vllm(trust_remote_code="on"), None, "trust_remote_code is 'on'"),
    ("remote-code", llmapi(f"model: {OWN}\ntrust_remote_code: true\n"), None, "trust_remote_code is true"),
    ("served-checkpoint", vllm(checkpoint=False), None, "holds no whole checkpoint"),
    ("served-checkpoint", vllm(model="org/name", checkpoint=False), None, "'org/name', which the server downloads"),
    ("served-checkpoint", vllm(model="/models/other/1/checkpoint"), None, "is at …/m/1/checkpoint"),
    ("served-checkpoint", llmapi("model: /models/m/2/checkpoint\n"), None, "is at …/m/1/checkpoint"),
    ("vllm-gpus", vllm(GPU, tensor_parallel_size=2), 1, "asks for 2"),
    (
        "engine-missing",
        {k: v for k, v in llmapi(f"model: {OWN}\n").items() if "checkpoint/" not in k},
        None,
        "no engine",
    ),
]
