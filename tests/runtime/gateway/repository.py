"""A model repository with a real gateway in front of stand-in engines."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path

from tests.support import tokenizer_files
from tritonforge.artifacts import TokenizerArtifact
from tritonforge.repository.dialects import TENSORRT_LLM, Dialect
from tritonforge.repository.render import render_gateway
from tritonforge.repository.serving import ServedVersion
from tritonforge.spec.limits import LimitsSpec
from tritonforge.spec.model import ModelSpec

MODEL = "talker"
LIMITS = LimitsSpec(max_batch_size=32, max_seq_len=256, max_input_len=128)
ECHO, SILENT_END, SLOW, REFUSES, ABSENT = 1, 2, 3, 4, 5
# What the engine behind each version does; version 5 has no engine model at all.
BEHAVIOURS: Mapping[int, Mapping[str, object]] = {
    ECHO: {},
    SILENT_END: {"shows_end": False},
    SLOW: {"endless": True, "first_delay_s": 1.0, "token_delay_s": 0.02},
    REFUSES: {"refuses": True},
}
_SPOKEN = Dialect(TENSORRT_LLM, unserved_inputs=("bad_words",))
_ENGINE_INPUTS = {
    "input_ids": ("INT32", "-1"),
    "input_lengths": ("INT32", "1"),
    "request_output_len": ("INT32", "1"),
}
_OPTIONAL_ENGINE_INPUTS = {
    "end_id": ("INT32", "1"),
    "pad_id": ("INT32", "1"),
    "streaming": ("BOOL", "1"),
    "stop": ("BOOL", "1"),
    "return_log_probs": ("BOOL", "1"),
    "temperature": ("FP32", "1"),
    "runtime_top_k": ("INT32", "1"),
    "runtime_top_p": ("FP32", "1"),
    "random_seed": ("UINT64", "1"),
    "stop_words_list": ("INT32", "2, -1"),
    "bad_words_list": ("INT32", "2, -1"),
}
_ENGINE_OUTPUTS = {
    "output_ids": ("INT32", "-1, -1"),
    "sequence_length": ("INT32", "-1"),
    "cum_log_probs": ("FP32", "-1"),
    "output_log_probs": ("FP32", "-1, -1"),
}


def write_repository(folder: Path, checkpoint: Path) -> Path:
    """Write the repository into `folder`; the tokenizer files go to `checkpoint`."""
    folder.mkdir(parents=True)
    checkpoint.mkdir(parents=True)
    vocab_size = tokenizer_files.write_chatml(checkpoint)
    names = ("tokenizer.json", "tokenizer_config.json")
    tokenizer = TokenizerArtifact("huggingface", {name: checkpoint / name for name in names}, (2,), 2)
    served = [
        ServedVersion(number, "openvino", tokenizer, LIMITS, 16, vocab_size, dialect=_SPOKEN)
        for number in (*BEHAVIOURS, ABSENT)
    ]
    engines = {number: {"engine": {"kind": "openvino"}} for number in (*BEHAVIOURS, ABSENT)}
    model = ModelSpec.model_validate({"name": MODEL, "checkpoint": str(checkpoint), "versions": engines})
    render_gateway(model, served, folder, weights={ECHO: 100})
    for number, behaviour in BEHAVIOURS.items():
        _write_engine(folder / f"{MODEL}_engine_v{number}", number, behaviour)
    return folder


def _write_engine(folder: Path, number: int, behaviour: Mapping[str, object]) -> None:
    (folder / str(number)).mkdir(parents=True)
    shutil.copy(Path(__file__).with_name("stand_in_engine.py"), folder / str(number) / "model.py")
    inputs = [_tensor(name, *kind) for name, kind in _ENGINE_INPUTS.items()]
    inputs += [_tensor(name, *kind, "optional: true") for name, kind in _OPTIONAL_ENGINE_INPUTS.items()]
    outputs = [_tensor(name, *kind) for name, kind in _ENGINE_OUTPUTS.items()]
    value = json.dumps(json.dumps(behaviour))
    (folder / "config.pbtxt").write_text(
        f'name: "{folder.name}"\nbackend: "python"\nmax_batch_size: {LIMITS.max_batch_size}\n'
        f"version_policy {{ specific {{ versions: [ {number} ] }} }}\n"
        "model_transaction_policy { decoupled: true }\ninstance_group [ { kind: KIND_CPU, count: 1 } ]\n"
        f'parameters {{ key: "behaviour", value {{ string_value: {value} }} }}\n'
        f"input [ {', '.join(inputs)} ]\noutput [ {', '.join(outputs)} ]\n"
    )


def _tensor(name: str, kind: str, dims: str, more: str = "") -> str:
    return f'{{ name: "{name}", data_type: TYPE_{kind}, dims: [ {dims} ] {more} }}'
