"""A model of Triton's Python backend that speaks an engine's tensors: it repeats its prompt, and misbehaves on demand.

Copied into test repositories as model.py. Prompts that begin with token 0 are questions about the model itself.
"""

import asyncio
import json

import numpy as np
import triton_python_backend_utils as pb_utils

FINAL = pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL


class TritonPythonModel:
    def initialize(self, args):
        parameters = json.loads(args["model_config"])["parameters"]
        self.behaviour = json.loads(parameters["behaviour"]["string_value"])
        self.stops = {}
        self.counts = {"started": 0, "stopped": 0}

    async def execute(self, requests):
        await asyncio.gather(*(self.answer(request) for request in requests))

    async def answer(self, request):
        sender = request.get_response_sender()
        fields = {tensor.name(): tensor.as_numpy() for tensor in request.inputs()}
        request_id = request.request_id()
        if fields.get("stop", np.zeros(1)).any():
            known = request_id in self.stops
            if known:
                self.stops[request_id].set()
            sender.send(flags=FINAL)
            return
        prompt = fields["input_ids"].ravel().tolist()
        if prompt[0] == 0:
            counts = [len(self.stops), self.counts["started"], self.counts["stopped"]]
            sender.send(tokens(counts), flags=FINAL)
            return
        if self.behaviour.get("refuses"):
            error = pb_utils.TritonError("no more room for this request")
            sender.send(pb_utils.InferenceResponse(error=error), flags=FINAL)
            return
        self.counts["started"] += 1
        self.stops[request_id] = asyncio.Event()
        try:
            await self.generate(fields, prompt, sender, self.stops[request_id])
        finally:
            del self.stops[request_id]
            sender.send(flags=FINAL)

    async def generate(self, fields, prompt, sender, stop):
        if await stopped_within(stop, self.behaviour.get("first_delay_s", 0)):
            self.counts["stopped"] += 1
            return
        wanted = int(fields["request_output_len"].ravel()[0])
        answer = (prompt * wanted)[:wanted] if self.behaviour.get("endless") else prompt[:wanted]
        if len(answer) < wanted and self.behaviour.get("shows_end", True):
            answer = [*answer, int(fields["end_id"].ravel()[0])]
        log_probs = "return_log_probs" in fields
        if not fields["streaming"].any():
            sender.send(tokens(answer, log_probs=log_probs))
            return
        for token in answer:
            if await stopped_within(stop, self.behaviour.get("token_delay_s", 0.001)):
                self.counts["stopped"] += 1
                return
            sender.send(tokens([token], log_probs=log_probs))


async def stopped_within(stop, seconds):
    try:
        await asyncio.wait_for(stop.wait(), seconds)
    except TimeoutError:
        return False
    return True


def tokens(ids, *, log_probs=False):
    outputs = [
        pb_utils.Tensor("output_ids", np.array([[ids]], dtype=np.int32)),
        pb_utils.Tensor("sequence_length", np.array([[len(ids)]], dtype=np.int32)),
    ]
    if log_probs:
        outputs.append(pb_utils.Tensor("output_log_probs", np.full((1, 1, len(ids)), -0.5, dtype=np.float32)))
        outputs.append(pb_utils.Tensor("cum_log_probs", np.array([[-0.5 * len(ids)]], dtype=np.float32)))
    return pb_utils.InferenceResponse(output_tensors=outputs)
