"""Stands in for TensorRT-LLM's LLM API: no model, no GPU, but the calls that our Triton model makes, and a tokenizer.

What it offers follows upstream's documentation of 1.0: LLM(**arguments), generate_async, and results that are iterated
over and aborted. Their texts hold the whole answer so far.
"""

import asyncio
import threading
from dataclasses import dataclass

from parrot import Parrot

__version__ = "1.0.0"
_SAMPLING = {
    "max_tokens", "temperature", "top_k", "top_p", "frequency_penalty", "presence_penalty", "seed", "stop",
    "exclude_input_from_output",
}  # fmt: skip

_ARGUMENTS = {
    "model", "backend", "dtype", "tensor_parallel_size", "pipeline_parallel_size", "max_batch_size", "max_input_len",
    "max_seq_len", "max_num_tokens", "enable_chunked_prefill", "kv_cache_config", "cuda_graph_config",
}  # fmt: skip


class SamplingParams:
    def __init__(self, **values):
        unknown = set(values) - _SAMPLING
        if unknown:
            raise TypeError(f"unexpected keyword arguments {sorted(unknown)}")
        self.values = values


@dataclass
class CompletionOutput:
    text: str
    token_ids: list
    finish_reason: str | None
    stop_reason: str | None = None
    cumulative_logprob: float | None = None


@dataclass
class RequestOutput:
    outputs: list
    finished: bool


class _Result:
    def __init__(self, parrot, prompt, values, *, streaming):
        self._aborted = threading.Event()
        self._queue = asyncio.Queue()
        self._loop = asyncio.get_running_loop()
        self._work = (parrot, prompt, values, streaming)
        threading.Thread(target=self._run, daemon=True).start()

    def abort(self):
        self._aborted.set()

    def _run(self):
        parrot, prompt, values, streaming = self._work
        try:
            for progress in parrot.answer(prompt, values, self._aborted.is_set):
                if streaming or progress.reason is not None:
                    output = CompletionOutput(progress.text, list(progress.ids), progress.reason)
                    self._put(RequestOutput([output], progress.reason is not None))
        except Exception as error:  # noqa: BLE001 - handed to whoever waits
            self._put(error)

    def _put(self, item):
        self._loop.call_soon_threadsafe(self._queue.put_nowait, item)

    def __aiter__(self):
        return self

    async def __anext__(self):
        item = await self._queue.get()
        if isinstance(item, Exception):
            raise item
        return item


class LLM:
    def __init__(self, **arguments):
        if arguments.pop("trust_remote_code"):
            raise ValueError("no code of a checkpoint here")
        unknown = set(arguments) - _ARGUMENTS
        if unknown:
            raise TypeError(f"unexpected arguments {sorted(unknown)}")
        self._parrot = Parrot(arguments["model"])

    def generate_async(self, inputs, sampling_params=None, *, streaming=False):
        return _Result(self._parrot, inputs, sampling_params.values, streaming=streaming)

    def shutdown(self):
        self._parrot = None
