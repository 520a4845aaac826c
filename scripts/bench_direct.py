"""The two yardsticks of the serving benchmark: the library called directly with the same engine, and transformers."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np
import openvino
import openvino_genai


@dataclass(frozen=True, slots=True)
class Pass:
    """Requests that started together and ran to their end.

    Args:
        tokens_per_s: New tokens of all requests per second, prompts included in the time.
        next_token_ms: Mean time between the tokens of one request; median over the requests.
    """

    tokens_per_s: float
    next_token_ms: float


class DirectEngine:
    """OpenVINO GenAI's pipeline on an engine's folder, with the settings that it is served with.

    Args:
        folder: Version folder with engine.json and the graph.
    """

    def __init__(self, folder: Path) -> None:
        settings = json.loads((folder / "engine.json").read_text())
        scheduler = openvino_genai.SchedulerConfig()
        scheduler.cache_size = 0
        scheduler.num_kv_blocks = settings["kv_cache_blocks"]
        scheduler.max_num_batched_tokens = settings["max_num_batched_tokens"]
        scheduler.enable_prefix_caching = settings["enable_prefix_caching"]
        properties = {
            "INFERENCE_NUM_THREADS": settings["num_threads"],
            "KV_CACHE_PRECISION": settings["kv_cache_precision"],
        }
        if settings["precision"].startswith("float"):
            properties["INFERENCE_PRECISION_HINT"] = "f32"
        self._pipeline = openvino_genai.ContinuousBatchingPipeline(str(folder), scheduler, "CPU", properties)

    def one_pass(self, prompts: list[list[int]], new_tokens: int) -> Pass:
        """Run all prompts at once to exactly `new_tokens` tokens each."""
        config = openvino_genai.GenerationConfig()
        config.set_eos_token_id(0)
        config.ignore_eos = True
        config.max_new_tokens = new_tokens
        begun = time.perf_counter()
        handles = [
            self._pipeline.add_request(number, openvino.Tensor(np.array([ids], dtype=np.int64)), config)
            for number, ids in enumerate(prompts)
        ]
        arrivals: list[list[float]] = [[] for _ in handles]
        while self._pipeline.has_non_finished_requests():
            self._pipeline.step()
            for times, handle in zip(arrivals, handles, strict=True):
                while handle.can_read():
                    handle.read()
                    times.append(time.perf_counter())
        elapsed_s = time.perf_counter() - begun
        spans_ms = [(times[-1] - times[0]) * 1000 / (new_tokens - 1) for times in arrivals]
        return Pass(len(prompts) * new_tokens / elapsed_s, median(spans_ms))


def transformers_pass(checkpoint: Path, prompts: list[list[int]], new_tokens: int, *, threads: int) -> Pass | None:
    """The same prompts as one padded batch on transformers in float32; None when it is not installed."""
    try:
        import torch
        from transformers import AutoModelForCausalLM
        from transformers.utils import logging
    except ImportError:
        return None
    if not checkpoint.is_dir():
        return None
    logging.disable_progress_bar()
    torch.set_num_threads(threads)
    model = AutoModelForCausalLM.from_pretrained(checkpoint, dtype=torch.float32)
    longest = max(map(len, prompts))
    ids = torch.tensor([[0] * (longest - len(prompt)) + prompt for prompt in prompts])
    mask = torch.tensor([[0] * (longest - len(prompt)) + [1] * len(prompt) for prompt in prompts])
    begun = time.perf_counter()
    model.generate(
        ids, attention_mask=mask, max_new_tokens=new_tokens, min_new_tokens=new_tokens, do_sample=False, pad_token_id=0
    )
    elapsed_s = time.perf_counter() - begun
    return Pass(len(prompts) * new_tokens / elapsed_s, elapsed_s * 1000 / new_tokens)
