"""Measure the embedded engine called directly: throughput by clients, and what each fused part of the graph brings.

    scripts/bench-engine CHECKPOINT [--precision float16 int8] [--clients 1 4 16 32] [--threads 2] [--json]

CHECKPOINT is a Hugging Face folder. Engines are built into a temporary folder. transformers on the CPU stands beside
them when it is installed. Numbers of a busy machine say little: the best of several passes is printed.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from tritonforge.checkpoint.convert import convert
from tritonforge.engine.build import build
from tritonforge.runtime.openvino.continuous import ContinuousEngine
from tritonforge.runtime.openvino.engines import Engine
from tritonforge.runtime.openvino.protocol import Generation, Update
from tritonforge.runtime.openvino.settings import EngineSettings
from tritonforge.runtime.openvino.stateful import StatefulEngine
from tritonforge.spec.engine import OpenVinoEngineSpec
from tritonforge.spec.limits import LimitsSpec

LIMITS = LimitsSpec(max_batch_size=32, max_input_len=1024, max_seq_len=2048)
DECODE_PROMPT_TOKENS = 512


@dataclass(frozen=True, slots=True)
class Result:
    """One measurement.

    Args:
        what: Engine and form.
        clients: Requests at a time.
        tokens_per_s: New tokens of all requests per second, prompt computation included.
        first_token_ms: Time to the first token of the first request.
        next_token_ms: Mean time between tokens after it.
    """

    what: str
    clients: int
    tokens_per_s: float
    first_token_ms: float
    next_token_ms: float


def main() -> int:
    """Measure and print."""
    asked = arguments()
    with tempfile.TemporaryDirectory() as folder:
        results = []
        for result in measurements(asked, Path(folder)):
            results.append(result)
            if not asked.json:
                show(result)
    if asked.json:
        print(json.dumps([asdict(result) for result in results], indent=2))
    return 0


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint", type=Path, metavar="CHECKPOINT")
    parser.add_argument("--precision", nargs="+", default=["float16", "int8"])
    parser.add_argument("--clients", nargs="*", type=int, default=[1, 4, 16, 32])
    parser.add_argument("--prompt-tokens", type=int, default=32)
    parser.add_argument("--new-tokens", type=int, default=64)
    parser.add_argument("--threads", type=int, default=None)
    parser.add_argument("--passes", type=int, default=3)
    parser.add_argument("--skip-plugins", action="store_true", help="do not measure the unfused forms")
    parser.add_argument("--skip-transformers", action="store_true")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


def measurements(asked: argparse.Namespace, work: Path) -> Iterator[Result]:
    """All results, in the order in which they are measured."""
    checkpoint = convert(asked.checkpoint, work / "checkpoint", for_engine="openvino")
    for precision in asked.precision:
        forms = [(True, True)] if asked.skip_plugins else [(True, True), (True, False), (False, True)]
        for fused_attention, fused_rotary in forms:
            spec = engine_spec(asked, precision, fused_attention=fused_attention, fused_rotary=fused_rotary)
            out = work / f"{precision}-{fused_attention}-{fused_rotary}"
            folder = build(spec, checkpoint, out, limits=LIMITS).path
            yield from engine_results(asked, folder, spec)
    if not asked.skip_transformers:
        yield from transformers_results(asked)


def engine_spec(
    asked: argparse.Namespace, precision: str, *, fused_attention: bool, fused_rotary: bool
) -> OpenVinoEngineSpec:
    """An engine without prefix caching, so that every pass computes its prompts."""
    return OpenVinoEngineSpec.model_validate(
        {
            "kind": "openvino",
            "precision": precision,
            "plugins": {"context_fmha": fused_attention, "rotary_embedding": fused_rotary},
            "runtime": {"num_threads": asked.threads, "enable_prefix_caching": False},
        }
    )


def engine_results(asked: argparse.Namespace, folder: Path, spec: OpenVinoEngineSpec) -> Iterator[Result]:
    """Throughput of the default form; decoding behind a long prompt for every form."""
    settings = EngineSettings.read(folder)
    attention, rotary = spec.plugins.context_fmha, spec.plugins.rotary_embedding
    if attention:
        engine: Engine = ContinuousEngine(folder, settings)
        form = f"{spec.precision}{'' if rotary else ', rotary unfused'}"
        for clients in asked.clients if rotary else ():
            yield best(asked, engine, form, clients, asked.prompt_tokens)
        yield best(asked, engine, f"{form}, behind {DECODE_PROMPT_TOKENS} tokens", 1, DECODE_PROMPT_TOKENS)
        del engine
    if not asked.skip_plugins and rotary:
        # The written-out form cannot be paged: its counterpart is the fused graph in the same stateful runtime.
        form = f"{spec.precision}, stateful, attention {'fused' if attention else 'unfused'}"
        engine = StatefulEngine(folder, settings)
        yield best(asked, engine, f"{form}, behind {DECODE_PROMPT_TOKENS} tokens", 1, DECODE_PROMPT_TOKENS)


def best(asked: argparse.Namespace, engine: Engine, what: str, clients: int, prompt_tokens: int) -> Result:
    """The best of several passes, after one that warms up."""
    passes = [one_pass(engine, what, clients, prompt_tokens, asked.new_tokens) for _ in range(asked.passes + 1)]
    return max(passes[1:], key=lambda result: result.tokens_per_s)


def one_pass(engine: Engine, what: str, clients: int, prompt_tokens: int, new_tokens: int) -> Result:
    """Run `clients` requests that start together to their end."""
    arrivals: dict[int, list[float]] = {key: [] for key in range(clients)}

    def note(updates: Sequence[Update]) -> None:
        for update in updates:
            if update.error is not None:
                raise RuntimeError(update.error)
            arrivals[update.key].extend([time.perf_counter()] * len(update.ids))

    begun = time.perf_counter()
    for key, prompt in enumerate(prompts(clients, prompt_tokens)):
        engine.submit(key, Generation(prompt, new_tokens))
    while engine.busy:
        engine.step(note)
    elapsed_s = time.perf_counter() - begun
    first = arrivals[0]
    return Result(
        what,
        clients,
        tokens_per_s=sum(len(times) for times in arrivals.values()) / elapsed_s,
        first_token_ms=(first[0] - begun) * 1000,
        next_token_ms=(first[-1] - first[0]) * 1000 / max(1, len(first) - 1),
    )


def transformers_results(asked: argparse.Namespace) -> Iterator[Result]:
    """The same load on transformers in float32, all clients as one padded batch."""
    try:
        import torch
        from transformers import AutoModelForCausalLM
    except ImportError:
        print("transformers is not installed: left out", file=sys.stderr)
        return
    if asked.threads is not None:
        torch.set_num_threads(asked.threads)
    model = AutoModelForCausalLM.from_pretrained(asked.checkpoint, dtype=torch.float32)
    for clients in asked.clients:
        ids = torch.tensor(prompts(clients, asked.prompt_tokens))
        begun = time.perf_counter()
        model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=asked.new_tokens,
                       min_new_tokens=asked.new_tokens, do_sample=False, pad_token_id=0)  # fmt: skip
        elapsed_s = time.perf_counter() - begun
        rate = clients * asked.new_tokens / elapsed_s
        yield Result("transformers float32", clients, rate, float("nan"), elapsed_s * 1000 / asked.new_tokens)


def prompts(count: int, tokens: int) -> list[list[int]]:
    """Random prompts, the same in every run."""
    drawn: list[list[int]] = np.random.default_rng(1).integers(10, 100, (count, tokens)).tolist()
    return drawn


def show(result: Result) -> None:
    """One line."""
    print(
        f"{result.what:58} {result.clients:3} clients  {result.tokens_per_s:7.1f} tokens/s  "
        f"first {result.first_token_ms:7.0f} ms  next {result.next_token_ms:6.1f} ms",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
