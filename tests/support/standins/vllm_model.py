"""Stands in for Triton's `vllm` backend: a Python-based backend with its tensors and manners, and no vLLM.

To be put into a backend folder as ``vllm/model.py``. Names, types, shapes and manners were read in the vllm_backend
repository (src/model.py and src/utils/request.py, 2025 and 2026).
"""

import json
import threading
from pathlib import Path

import numpy as np
import triton_python_backend_utils as pb_utils
from parrot import Parrot

FINAL = pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL
INPUTS = {
    "text_input": ("TYPE_STRING", [1], False),
    "image": ("TYPE_STRING", [-1], True),
    "stream": ("TYPE_BOOL", [1], True),
    "sampling_parameters": ("TYPE_STRING", [1], True),
    "exclude_input_in_output": ("TYPE_BOOL", [1], True),
    "return_finish_reason": ("TYPE_BOOL", [1], True),
    "return_cumulative_logprob": ("TYPE_BOOL", [1], True),
    "return_logprobs": ("TYPE_BOOL", [1], True),
    "return_num_input_tokens": ("TYPE_BOOL", [1], True),
    "return_num_output_tokens": ("TYPE_BOOL", [1], True),
    "embedding_request": ("TYPE_STRING", [1], True),
}
OUTPUTS = {
    "text_output": ("TYPE_STRING", [-1]),
    "finish_reason": ("TYPE_STRING", [-1]),
    "cumulative_logprob": ("TYPE_FP32", [-1]),
    "logprobs": ("TYPE_STRING", [-1]),
    "num_input_tokens": ("TYPE_UINT32", [1]),
    "num_output_tokens": ("TYPE_UINT32", [-1]),
}
# What SamplingParams has; any other name, or a value of another type, makes the backend's own error below.
PARAMETERS = {
    "max_tokens": int, "min_tokens": int, "temperature": float, "top_k": int, "top_p": float, "seed": int,
    "repetition_penalty": float, "presence_penalty": float, "frequency_penalty": float, "stop": list,
    "include_stop_str_in_output": bool, "stop_token_ids": list, "ignore_eos": bool, "bad_words": list, "logprobs": int,
}  # fmt: skip
LOG_PROB = -0.5


class TritonPythonModel:
    @staticmethod
    def auto_complete_config(config):
        known = config.as_dict()
        inputs, outputs = ({tensor["name"] for tensor in known[side]} for side in ("input", "output"))
        for name, (kind, dims, optional) in INPUTS.items():
            if name not in inputs:
                config.add_input({"name": name, "data_type": kind, "dims": dims, "optional": optional})
        for name, (kind, dims) in OUTPUTS.items():
            if name not in outputs:
                config.add_output({"name": name, "data_type": kind, "dims": dims})
        config.set_model_transaction_policy({"decoupled": True})
        config.set_max_batch_size(0)
        return config

    def initialize(self, args):
        config = json.loads(args["model_config"])
        self.check(config["input"], INPUTS)
        self.check(config["output"], OUTPUTS)
        self.args = json.loads((Path(pb_utils.get_model_dir()) / "model.json").read_text())
        size = self.args.get("tensor_parallel_size", 1) * self.args.get("pipeline_parallel_size", 1)
        if args["model_instance_kind"] == "GPU" and size > 1:
            raise ValueError("KIND_GPU is currently for single-GPU models")
        self.parrot = Parrot(self.args["model"])

    def check(self, tensors, known):
        for tensor in tensors:
            kind, dims = known[tensor["name"]][:2]
            if (tensor["data_type"], [int(n) for n in tensor["dims"]]) != (kind, dims):
                raise ValueError(f"{tensor['name']} is declared as {tensor}; the backend has {kind} {dims}")

    def execute(self, requests):
        for request in requests:
            threading.Thread(target=self.serve, args=(request,), daemon=True).start()

    def serve(self, request):
        sender = request.get_response_sender()
        try:
            self.generate({tensor.name(): tensor.as_numpy() for tensor in request.inputs()}, sender)
        except Exception as error:  # noqa: BLE001 - as the backend does
            self.end(sender, error=f"Error generating stream: {error}")

    def generate(self, fields, sender):
        prompt = fields["text_input"][0].decode()
        parameters = json.loads(fields["sampling_parameters"][0].decode()) if "sampling_parameters" in fields else {}
        if "lora_name" in parameters:
            self.end(sender, error="LoRA feature is not enabled.")
            return
        for name, value in parameters.items():
            if type(value) is not PARAMETERS.get(name):
                raise AttributeError("'NoneType' object has no attribute 'lora_name'")
        stream = bool(fields["stream"][0]) if "stream" in fields else False
        excludes = fields.get("exclude_input_in_output")
        prepends = not stream if excludes is None else not excludes[0]
        if prepends and stream:
            raise ValueError("When streaming, `exclude_input_in_output` = False is not allowed.")
        wants = {name for name in fields if name.startswith("return_") and fields[name][0]}
        sent = [0, 0]  # characters and tokens
        progress = None
        for progress in self.parrot.answer(prompt, {**parameters, "deaf": "deaf" in prompt}, sender.is_cancelled):
            if stream:
                final = progress.reason is not None
                sender.send(self.response(progress, sent, wants), flags=FINAL if final else 0)
                sent = [len(progress.text), len(progress.ids)]
        if progress is None or progress.reason is None:
            self.end(sender, error="Request was cancelled", code=pb_utils.TritonError.CANCELLED)
        elif not stream:
            sender.send(self.response(progress, sent, wants, prompt if prepends else ""), flags=FINAL)

    def response(self, progress, sent, wants, before=""):
        new = len(progress.ids) - sent[1]
        outputs = [self.text("text_output", before + progress.text[sent[0] :])]
        if "return_finish_reason" in wants:
            outputs.append(self.text("finish_reason", str(progress.reason)))
        if "return_cumulative_logprob" in wants:
            total = np.array([LOG_PROB * len(progress.ids)], dtype=np.float32)
            outputs.append(pb_utils.Tensor("cumulative_logprob", total))
        if "return_logprobs" in wants:
            tokens = [{str(i): {"logprob": LOG_PROB, "rank": 1, "decoded_token": "?"}} for i in progress.ids[sent[1] :]]
            outputs.append(self.text("logprobs", json.dumps(tokens)))
        if "return_num_input_tokens" in wants:
            outputs.append(pb_utils.Tensor("num_input_tokens", np.array([len(progress.prompt_ids)], dtype=np.uint32)))
        if "return_num_output_tokens" in wants:
            outputs.append(pb_utils.Tensor("num_output_tokens", np.array([new], dtype=np.uint32)))
        return pb_utils.InferenceResponse(output_tensors=outputs)

    def text(self, name, value):
        return pb_utils.Tensor(name, np.array([value.encode()], dtype=np.object_))

    def end(self, sender, *, error, code=None):
        problem = pb_utils.TritonError(error) if code is None else pb_utils.TritonError(error, code)
        sender.send(pb_utils.InferenceResponse(error=problem), flags=FINAL)
