"""Stands in for upstream's own Triton model on the LLM API: its tensors and manners, and no TensorRT-LLM.

To be put into a version folder as ``model.py``, with ``parrot.py`` beside it. Names, types, shapes and manners were
read in tensorrtllm_backend v0.19.0 and in later versions of NVIDIA/TensorRT-LLM (how it cancels).
"""

import json
import threading
from pathlib import Path

import numpy as np
import triton_python_backend_utils as pb_utils
import yaml
from parrot import Parrot

FINAL = pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL
INPUTS = {
    "text_input": ("TYPE_STRING", [-1], False),
    "streaming": ("TYPE_BOOL", [1], True),
    "sampling_param_beam_width": ("TYPE_INT32", [1], True),
    "sampling_param_temperature": ("TYPE_FP32", [1], True),
    "sampling_param_top_k": ("TYPE_INT32", [1], True),
    "sampling_param_top_p": ("TYPE_FP32", [1], True),
    "sampling_param_frequency_penalty": ("TYPE_FP32", [1], True),
    "sampling_param_presence_penalty": ("TYPE_FP32", [1], True),
    "sampling_param_max_tokens": ("TYPE_INT32", [1], True),
    "sampling_param_stop": ("TYPE_STRING", [-1], True),
    "sampling_param_seed": ("TYPE_UINT64", [1], True),
    "sampling_param_exclude_input_from_output": ("TYPE_BOOL", [1], True),
    "return_finish_reason": ("TYPE_BOOL", [1], True),
    "return_stop_reason": ("TYPE_BOOL", [1], True),
    "return_cumulative_logprob": ("TYPE_BOOL", [1], True),
}
OUTPUTS = {
    "text_output": ("TYPE_STRING", [-1]),
    "finish_reason": ("TYPE_STRING", [-1]),
    "stop_reason": ("TYPE_STRING", [-1]),
    "cumulative_logprob": ("TYPE_FP32", [-1]),
}


class TritonPythonModel:
    @staticmethod
    def auto_complete_config(config):
        path = Path(pb_utils.get_model_dir()) / "model.yaml"
        triton = yaml.safe_load(path.read_text())["triton_config"]
        config.set_model_transaction_policy({"decoupled": bool(triton["decoupled"])})
        config.set_max_batch_size(int(triton["max_batch_size"]))
        return config

    def initialize(self, args):
        config = json.loads(args["model_config"])
        for tensors, known in ((config["input"], INPUTS), (config["output"], OUTPUTS)):
            found = {one["name"]: (one["data_type"], [int(n) for n in one["dims"]]) for one in tensors}
            if found != {name: (kind[0], kind[1]) for name, kind in known.items()}:
                raise ValueError(f"declared are {found}; upstream's model has {known}")
        self.args = yaml.safe_load((Path(pb_utils.get_model_dir()) / "model.yaml").read_text())
        self.parrot = Parrot(self.args["model"])

    def execute(self, requests):
        for request in requests:
            threading.Thread(target=self.serve, args=(request,), daemon=True).start()

    def serve(self, request):
        sender = request.get_response_sender()
        try:
            self.generate({tensor.name(): tensor.as_numpy() for tensor in request.inputs()}, sender)
        except Exception as error:  # noqa: BLE001 - as upstream's does
            problem = pb_utils.TritonError(f"Error generating request: {error}")
            sender.send(pb_utils.InferenceResponse([self.text("text_output", "N/A")], error=problem), flags=FINAL)

    def generate(self, fields, sender):
        if fields["text_input"].ndim > 1:
            raise ValueError("The current implementation only supports text_input being a 1D tensor.")
        prompt = fields["text_input"][0].decode()
        sampling = {name: value for name, value in fields.items() if name.startswith("sampling_param_")}
        parameters = {name.removeprefix("sampling_param_"): value.item(0) for name, value in sampling.items()}
        if "sampling_param_stop" in sampling:
            parameters["stop"] = [word.decode() for word in sampling["sampling_param_stop"]]
        streaming = "streaming" in fields and bool(fields["streaming"][0])
        progress = None
        for progress in self.parrot.answer(prompt, parameters, sender.is_cancelled):
            if streaming:
                final = progress.reason is not None
                sender.send(self.response(progress, fields), flags=FINAL if final else 0)
        if progress is None or progress.reason is None:
            problem = pb_utils.TritonError("Request cancelled by client", pb_utils.TritonError.CANCELLED)
            sender.send(pb_utils.InferenceResponse(error=problem), flags=FINAL)
        elif not streaming:
            sender.send(self.response(progress, fields), flags=FINAL)

    def response(self, progress, fields):
        outputs = [self.text("text_output", progress.text)]  # all of it, every time
        if "return_finish_reason" in fields and fields["return_finish_reason"][0]:
            outputs.append(self.text("finish_reason", str(progress.reason)))
        return pb_utils.InferenceResponse(outputs)

    def text(self, name, value):
        return pb_utils.Tensor(name, np.array([value.encode()], dtype=np.object_))
