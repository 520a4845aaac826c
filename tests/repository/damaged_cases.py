"""Files that are not what was published: the rules that find them, with the line and the words."""

from __future__ import annotations

from tests.repository.trees import PYTHON, python_model, serving

OPENVINO = PYTHON + 'parameters { key: "engine_kind" value { string_value: "openvino" } }'
# fmt: off
DAMAGED: list[tuple[str, dict[str, str], int | None, str]] = [
    ("unreadable", python_model(PYTHON + f'default_model_filename: "{"n" * 300}"\n'), None, "File name too long"),
    ("serving-broken", {"g/1/versions/1/serving.json": "{"}, None, "not a readable serving.json"),
    ("serving-broken", {"g/1/versions/1/serving.json": serving(vocab_size=float("inf"))}, None, "not a readable"),
    ("serving-broken", {"g/1/versions/2/serving.json": serving(1)}, None, "engine_version is 1; expected 2"),
    ("manifest-broken", python_model() | {"m/1/forge-manifest.json": "{"}, None, "not a readable manifest"),
    ("engine-missing", python_model(OPENVINO), None, "holds no engine"),
    ("engine-missing", python_model(OPENVINO) | {"m/1/engine.json": ""}, None, "lacks openvino_model.bin"),
]
# fmt: on
