"""A stand-in for Triton's `tensorrtllm` backend, as a model of the Python backend: no engine runs, it repeats prompts.

Copied into rendered engine models as model.py, beside a config that is the rendered one but for its backend. The
tensors are those of the config. What they do is what the backend's source does with them (utils.cc,
model_instance_state.cc and work_items_queue.cc of tensorrtllm_backend), or, where a comment says so, what is remembered
of it.
"""

import asyncio
import json

import numpy as np
import triton_python_backend_utils as pb_utils

FINAL = pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL
TRUE = ("True", "true", "TRUE", "1")


class TritonPythonModel:
    def initialize(self, args):
        config = json.loads(args["model_config"])
        self.parameters = {key: value["string_value"] for key, value in config["parameters"].items()}
        self.behaviour = json.loads(self.parameters["stand_in"])
        self.line = tuple(int(part) for part in self.parameters["tensorrt_llm_release"].split(".")[:2])
        self.decoupled = config["model_transaction_policy"]["decoupled"]
        self.running = {}
        self.counts = {"started": 0, "stopped": 0}

    async def execute(self, requests):
        await asyncio.gather(*(self.answer(request) for request in requests))

    async def answer(self, request):
        sender = request.get_response_sender()
        fields = {tensor.name(): tensor.as_numpy() for tensor in request.inputs()}
        try:
            if truth(fields, "stop"):
                self.stop(request.request_id())
                sender.send(flags=FINAL)
                return
            job = Job(self, fields, set(request.requested_output_names()))
            if job.prompt[:1] == [0]:  # a question about the stand-in itself
                counts = [len(self.running), self.counts["started"], self.counts["stopped"]]
                sender.send(job.response(counts, new=len(counts)), flags=FINAL)
                return
            await self.run(request.request_id(), job, sender)
        except BackendError as error:
            sender.send(pb_utils.InferenceResponse(error=pb_utils.TritonError(str(error))), flags=FINAL)

    def key_of(self, request_id):
        """Releases up to 0.9 read the id as a number, as far as its beginning is one; later ones take it as text."""
        if self.line > (0, 9):
            return request_id
        digits = len(request_id) - len(request_id.lstrip("0123456789"))
        return int(request_id[:digits]) if digits else request_id

    def stop(self, request_id):
        if not request_id:
            raise BackendError("Trying to stop a request but request ID is not provided")
        stop = self.running.get(self.key_of(request_id))
        if stop is not None:
            stop.set()
        elif self.line <= (0, 9):
            raise BackendError(f"Received stop request for requestId {request_id} but it's not active")

    async def run(self, request_id, job, sender):
        key = self.key_of(request_id)
        if self.line <= (0, 9) and key in self.running:
            raise BackendError(f"requestId {key} is already in progress, request is ignored.")
        stop = self.running[key] = asyncio.Event()
        self.counts["started"] += 1
        try:
            await self.generate(job, sender, stop)
        finally:
            if self.running.get(key) is stop:
                del self.running[key]

    async def generate(self, job, sender, stop):
        tokens, count = job.tokens(), 0
        while count < len(tokens):
            if await stopped_within(stop, self.behaviour.get("token_delay_s", 0.001)):
                self.counts["stopped"] += 1
                break
            count += 1
            # Remembered: up to 0.9 a last response without tokens follows; later ones mark the one with the last token.
            last = count == len(tokens) and self.line > (0, 9)
            if job.streaming:
                sender.send(job.response(tokens[:count], new=1), flags=FINAL if last else 0)
                if last:
                    return
        if job.streaming:
            sender.send(job.response(tokens[:count], new=0), flags=FINAL)
        else:
            sender.send(job.response(tokens[:count], new=count, whole=True), flags=FINAL)


class Job:
    """One request: its checks, its answer, and the form of its responses."""

    def __init__(self, model, fields, outputs):
        self.model, self.fields, self.outputs = model, fields, outputs
        self.streaming = truth(fields, "streaming")
        if self.streaming and not model.decoupled:
            raise BackendError("Streaming is only supported if model is deployed using decoupled mode.")
        if "input_ids" not in fields:
            raise BackendError("inputTokens or encoderInputFeatures tensor not provided")
        for name in ("output_ids", "sequence_length"):
            if name not in outputs:
                raise BackendError(f"{name} tensor must be present in list of output tensors")
        self.prompt = fields["input_ids"].ravel().tolist()[: self.number("input_lengths")]
        self.beams = self.number("beam_width", 1)
        self.check()

    def check(self):
        longest, widest = int(self.model.parameters["max_input_len"]), int(self.model.parameters["max_beam_width"])
        if len(self.prompt) > longest:
            raise BackendError(f"Prompt length ({len(self.prompt)}) exceeds maximum input length ({longest}).")
        if self.beams > widest:
            raise BackendError(f"Requested beam width {self.beams} is larger than configured max beam width {widest}")

    def number(self, name, default=None):
        return int(self.fields[name].ravel()[0]) if name in self.fields else default

    def tokens(self):
        """The prompt, turned by the seed, without bad words; from its beginning again while min_length asks for it."""
        # Of the two names that newer configs declare, newer sources read these.
        least, seed = ("min_tokens", "seed") if self.model.line >= (0, 20) else ("min_length", "random_seed")
        wanted, fewest = self.number("request_output_len"), self.number(least, 0)
        turn = self.number(seed, 0) % len(self.prompt)
        banned = {word[0] for word in words(self.fields.get("bad_words_list")) if len(word) == 1}
        source = [token for token in self.prompt[turn:] + self.prompt[:turn] if token not in banned]
        endless = self.model.behaviour.get("endless", False)
        answer = []
        while source and len(answer) < wanted and (endless or len(answer) < max(fewest, len(source))):
            answer.append(source[len(answer) % len(source)])
            if len(answer) >= fewest and answer[-1] == self.number("end_id"):
                return answer[:-1]  # remembered: the end token itself is not part of the output
            if any(answer[-len(word) :] == word for word in words(self.fields.get("stop_words_list"))):
                return answer  # stop words are
        return answer

    def response(self, tokens, *, new, whole=False):
        excluded = self.model.parameters["exclude_input_in_output"] in TRUE
        if "exclude_input_in_output" in self.fields:
            excluded = truth(self.fields, "exclude_input_in_output")
        shown = tokens if whole else tokens[len(tokens) - new :]
        if whole and not excluded:
            shown = self.prompt + shown
        # Every further beam is one token shorter than the one before, so that the padding shows.
        beams = [shown[: max(len(shown) - beam, 0)] for beam in range(self.beams)]
        padded = [beam + [-1] * (len(shown) - len(beam)) for beam in beams]
        values = {
            "output_ids": np.array([padded], dtype=np.int32).reshape(1, self.beams, len(shown)),
            "sequence_length": np.array([[len(beam) for beam in beams]], dtype=np.int32),
            "batch_index": np.zeros((1, 1), dtype=np.int32),
            "sequence_index": np.zeros((1, 1), dtype=np.int32),
        }
        if truth(self.fields, "return_log_probs"):
            # Remembered: newer lines send those of the whole answer with every response, older ones the new ones.
            logs = [-0.25 * (at + 1) for at in range(len(tokens))]
            logs = logs if self.model.line >= (0, 12) else logs[len(logs) - new :]
            values["output_log_probs"] = np.array([[logs] * self.beams], dtype=np.float32).reshape(1, self.beams, -1)
            values["cum_log_probs"] = np.full((1, self.beams), sum(logs), dtype=np.float32)
        tensors = [pb_utils.Tensor(name, value) for name, value in values.items() if name in self.outputs]
        return pb_utils.InferenceResponse(output_tensors=tensors)


class BackendError(Exception):
    """What the backend answers instead."""


def truth(fields, name):
    return name in fields and bool(fields[name].ravel()[0])


def words(array):
    """Words of the backend's form: ids in the first row, and in the second where each word ends, padded with -1."""
    if array is None:
        return []
    ids, ends = array.reshape(2, -1).tolist()
    ends = ends[: ends.index(-1)] if -1 in ends else ends
    if any(end > len(ids) for end in ends) or any(a >= b for a, b in zip(ends, ends[1:], strict=False)):
        raise BackendError("Sparse list must not have non-increasing or out-of-bound offsets")
    return [ids[start:end] for start, end in zip([0, *ends], ends, strict=False)]


async def stopped_within(stop, seconds):
    try:
        await asyncio.wait_for(stop.wait(), seconds)
    except TimeoutError:
        return False
    return True
