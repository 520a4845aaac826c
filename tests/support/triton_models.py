"""Small python-backend models that the tests write into a repository of their own."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

# Echoes whatever tensors it gets, of any type; BF16 has no numpy type in Triton's python backend, so it goes by DLPack.
ECHO_TYPES = ("BOOL", "UINT8", "UINT16", "UINT32", "UINT64", "INT8", "INT16", "INT32", "INT64", "FP16", "FP32", "FP64")
ECHO_MODEL = """
    import triton_python_backend_utils as pb_utils

    class TritonPythonModel:
        def execute(self, requests):
            return [self.answer(request) for request in requests]

        def answer(self, request):
            outputs = []
            for tensor in request.inputs():
                name = tensor.name().replace("in_", "out_")
                if tensor.name() == "in_bf16":
                    outputs.append(pb_utils.Tensor.from_dlpack(name, tensor.to_dlpack()))
                else:
                    outputs.append(pb_utils.Tensor(name, tensor.as_numpy()))
            return pb_utils.InferenceResponse(output_tensors=outputs)
"""

# Speaks like the gateway of a language model: one word of the prompt a response. Some prompts are commands, see below.
TALKER_MODEL = """
    import json
    import os
    import sys
    import threading
    import time

    import numpy as np
    import triton_python_backend_utils as pb_utils

    FINAL = pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL

    class TritonPythonModel:
        def initialize(self, args):
            self.cancelled = 0
            self.batched = json.loads(args["model_config"]).get("max_batch_size", 0) > 0

        def execute(self, requests):
            for request in requests:
                fields = {t.name(): t.as_numpy().reshape(-1).tolist() for t in request.inputs()}
                sender = request.get_response_sender()
                threading.Thread(target=self.answer, args=(fields, sender), daemon=True).start()

        def answer(self, fields, sender):
            prompt = fields.get("text_input", [b""])[0].decode()
            words = prompt.split()[: fields.get("max_tokens", [1000])[0]]
            if prompt == "count cancelled":
                return self.send(sender, [str(self.cancelled)], final=True)
            if prompt == "prefix":
                return self.send(sender, [sys.prefix], final=True)
            if prompt == "fields":
                shown = {k: [x.decode() if isinstance(x, bytes) else x for x in v] for k, v in fields.items()}
                return self.send(sender, [json.dumps(shown, sort_keys=True)], final=True)
            if prompt == "refuse":
                error = pb_utils.TritonError("max_tokens is 0; expected at least 1", pb_utils.TritonError.INVALID_ARG)
                return sender.send(pb_utils.InferenceResponse(error=error), flags=FINAL)
            if "messages" in fields:
                words = [m["content"] for m in json.loads(fields["messages"][0])]
            if not fields.get("stream", [False])[0]:
                return self.send(sender, [" ".join(words)], reason="length", count=len(words), final=True)
            for index, word in enumerate(words):
                if sender.is_cancelled():
                    self.cancelled += 1
                    return sender.send(flags=FINAL)
                if word == "break":
                    error = pb_utils.InferenceResponse(error=pb_utils.TritonError("the engine fell over"))
                    return sender.send(error, flags=FINAL)
                if word == "die":
                    os._exit(1)
                if word == "wait":
                    time.sleep(0.05)
                last = index == len(words) - 1
                self.send(sender, [word + " "], reason="stop" if last else "", count=index + 1 if last else 0)
            sender.send(flags=FINAL)

        def send(self, sender, texts, reason="stop", count=1, final=False):
            shape = [1, 1] if self.batched else [1]
            tensor = lambda name, value, kind: pb_utils.Tensor(name, np.array(value, kind).reshape(shape))
            outputs = [tensor("text_output", [text.encode() for text in texts], object)]
            outputs.append(tensor("engine_version", [3], np.int32))
            if reason:
                outputs.append(tensor("finish_reason", [reason.encode()], object))
                outputs.append(tensor("prompt_tokens", [7], np.int32))
                outputs.append(tensor("completion_tokens", [count], np.int32))
            sender.send(pb_utils.InferenceResponse(output_tensors=outputs), flags=FINAL if final else 0)
"""

FAILING_MODEL = """
    class TritonPythonModel:
        def initialize(self, args):
            raise ValueError("the weights are of another model")

        def execute(self, requests):
            return []
"""

SLOW_MODEL = """
    import time

    class TritonPythonModel:
        def initialize(self, args):
            time.sleep(600)

        def execute(self, requests):
            return []
"""

TALKER_INPUTS = {
    "text_input": "STRING",
    "messages": "STRING",
    "max_tokens": "INT32",
    "stream": "BOOL",
    "temperature": "FP32",
    "top_k": "INT32",
    "top_p": "FP32",
    "random_seed": "UINT64",
    "stop_words": "STRING",
    "version": "INT32",
    "sticky_key": "STRING",
}
TALKER_OUTPUTS = {
    "text_output": "STRING",
    "finish_reason": "STRING",
    "engine_version": "INT32",
    "prompt_tokens": "INT32",
    "completion_tokens": "INT32",
}


def write_echo(repository: Path, name: str = "echo") -> Path:
    """A model that gives every input `in_<type>` back as `out_<type>`."""
    kinds = [*ECHO_TYPES, "BF16", "STRING"]
    inputs = [_tensor(f"in_{kind.lower()}", kind, dims="-1", optional=True) for kind in kinds]
    outputs = [_tensor(f"out_{kind.lower()}", kind, dims="-1") for kind in kinds]
    return _write(repository, name, ECHO_MODEL, inputs=inputs, outputs=outputs)


def write_talker(repository: Path, name: str = "talker", *, max_batch_size: int = 0) -> Path:
    """A decoupled model with the tensors of a language model's gateway."""
    many = {"stop_words"}
    inputs = [
        _tensor(key, kind, dims="-1" if key in many else "1", optional=True) for key, kind in TALKER_INPUTS.items()
    ]
    outputs = [_tensor(key, kind, dims="1") for key, kind in TALKER_OUTPUTS.items()]
    more = f"max_batch_size: {max_batch_size}\nmodel_transaction_policy {{ decoupled: true }}\n"
    return _write(repository, name, TALKER_MODEL, inputs=inputs, outputs=outputs, more=more)


def write_failing(repository: Path, name: str = "failing") -> Path:
    """A model that raises when it is loaded."""
    tensor = _tensor("x", "FP32", dims="1")
    return _write(repository, name, FAILING_MODEL, inputs=[tensor], outputs=[tensor])


def write_slow(repository: Path, name: str = "slow") -> Path:
    """A model that takes minutes to load."""
    tensor = _tensor("x", "FP32", dims="1")
    return _write(repository, name, SLOW_MODEL, inputs=[tensor], outputs=[tensor])


def _tensor(name: str, kind: str, *, dims: str, optional: bool = False) -> str:
    more = " optional: true" if optional else ""
    return f'{{ name: "{name}" data_type: TYPE_{kind} dims: [ {dims} ]{more} }}'


def _write(repository: Path, name: str, source: str, *, inputs: list[str], outputs: list[str], more: str = "") -> Path:
    folder = repository / name
    (folder / "1").mkdir(parents=True)
    (folder / "1" / "model.py").write_text(dedent(source))
    joined = ",\n  "
    config = (
        f'name: "{name}"\nbackend: "python"\n{more}input [\n  {joined.join(inputs)}\n]\n'
        f"output [\n  {joined.join(outputs)}\n]\ninstance_group [ {{ kind: KIND_CPU }} ]\n"
    )
    (folder / "config.pbtxt").write_text(config)
    return folder
