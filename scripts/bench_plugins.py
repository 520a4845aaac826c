"""What the fused parts of an engine's graph bring: attention and rotary embedding, in prefill and in decoding.

    scripts/bench-plugins CHECKPOINT [--precision float16 int8] [--prompt-tokens 512] [--threads 2] [--json]

CHECKPOINT is a Hugging Face folder. Each plugin is measured against the same graph without it, in turn and in the same
runtime: attention in the stateful one, because the written-out form cannot be paged; rotary embedding in the paged one,
which serves the requests of the default engine.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np
from bench_command import BenchOptions, in_turn, option_parser, report

from tritonforge.artifacts import CheckpointArtifact
from tritonforge.checkpoint.convert import convert
from tritonforge.engine.build import build
from tritonforge.runtime.openvino.continuous import ContinuousEngine
from tritonforge.runtime.openvino.engine import Engine
from tritonforge.runtime.openvino.protocol import Generation, Update
from tritonforge.runtime.openvino.settings import EngineSettings
from tritonforge.runtime.openvino.stateful import StatefulEngine
from tritonforge.spec.limits import LimitsSpec
from tritonforge.spec.openvino import OpenVinoEngineSpec

# The runtime in which each plugin is measured.
PLUGINS: Mapping[str, Callable[[Path, EngineSettings], Engine]] = {
    "context_fmha": StatefulEngine,
    "rotary_embedding": ContinuousEngine,
}


@dataclass(frozen=True, slots=True)
class Pass:
    """One request, from its prompt to its last token.

    Args:
        prefill_ms: Time to the first token.
        decode_ms: Mean time between the tokens after it.
    """

    prefill_ms: float
    decode_ms: float


@dataclass(frozen=True, slots=True)
class Result:
    """One plugin on and off; times are medians over the passes.

    Args:
        plugin: Its name in forge.yaml.
        precision: Precision of the weights.
        prompt_tokens: Length of the prompt.
        fused: Times with the plugin.
        unfused: Times without it.
        prefill_speedup: Unfused over fused prefill time, pass by pass, median.
        decode_speedup: The same of the time between tokens.
    """

    plugin: str
    precision: str
    prompt_tokens: int
    fused: Pass
    unfused: Pass
    prefill_speedup: float
    decode_speedup: float


def main() -> int:
    """Measure and print."""
    options = BenchOptions.of(option_parser(__doc__, prompt_tokens=512).parse_args())
    with tempfile.TemporaryDirectory() as folder:
        report(measure(options, Path(folder)), line_of, as_json=options.as_json)
    return 0


def measure(options: BenchOptions, work: Path) -> Iterator[Result]:
    """All results, in the order in which they are measured."""
    checkpoint = convert(options.checkpoint, work / "checkpoint", for_engine="openvino")
    for precision in options.precisions:
        for plugin in PLUGINS:
            yield compare(options, checkpoint, precision, plugin, work)


def compare(options: BenchOptions, checkpoint: CheckpointArtifact, precision: str, plugin: str, work: Path) -> Result:
    """A plugin on and off, in turn."""
    engines = []
    for fused in (True, False):
        spec = engine_spec(options, precision, {plugin: fused})
        limits = LimitsSpec(
            max_seq_len=options.prompt_tokens + options.new_tokens + 1, max_input_len=options.prompt_tokens
        )
        folder = build(spec, checkpoint, work / f"{precision}-{plugin}-{fused}", limits=limits).path
        engines.append(PLUGINS[plugin](folder, EngineSettings.read(folder)))
    fused_engine, unfused_engine = engines
    prompt = np.random.default_rng(1).integers(10, 100, options.prompt_tokens).tolist()
    pairs = in_turn(
        [
            lambda: one_pass(fused_engine, prompt, options.new_tokens),
            lambda: one_pass(unfused_engine, prompt, options.new_tokens),
        ],
        options.passes,
    )
    return Result(
        plugin,
        precision,
        options.prompt_tokens,
        fused=medians([fused for fused, _ in pairs]),
        unfused=medians([unfused for _, unfused in pairs]),
        prefill_speedup=median(unfused.prefill_ms / fused.prefill_ms for fused, unfused in pairs),
        decode_speedup=median(unfused.decode_ms / fused.decode_ms for fused, unfused in pairs),
    )


def engine_spec(options: BenchOptions, precision: str, plugins: dict[str, bool]) -> OpenVinoEngineSpec:
    """An engine without prefix caching, so that every pass computes its prompt."""
    return OpenVinoEngineSpec.model_validate(
        {
            "kind": "openvino",
            "precision": precision,
            "plugins": plugins,
            "runtime": {"num_threads": options.threads, "enable_prefix_caching": False},
        }
    )


def one_pass(engine: Engine, prompt: Sequence[int], new_tokens: int) -> Pass:
    """Run one request to its end."""
    arrivals: list[float] = []

    def note(updates: Sequence[Update]) -> None:
        for update in updates:
            if update.error is not None:
                raise RuntimeError(update.error)
            arrivals.extend([time.perf_counter()] * len(update.ids))

    begun = time.perf_counter()
    engine.submit(0, Generation(list(prompt), new_tokens))
    while engine.busy:
        engine.step(note)
    spread_s = arrivals[-1] - arrivals[0]
    return Pass((arrivals[0] - begun) * 1000, spread_s * 1000 / (len(arrivals) - 1))


def medians(passes: Sequence[Pass]) -> Pass:
    """The median of each time."""
    return Pass(median(one.prefill_ms for one in passes), median(one.decode_ms for one in passes))


def line_of(result: Result) -> str:
    """One result as a line."""
    fused, unfused = result.fused, result.unfused
    return (
        f"{result.plugin:16} {result.precision:8} {result.prompt_tokens} tokens: "
        f"prefill {fused.prefill_ms:.0f} ms fused, {unfused.prefill_ms:.0f} ms unfused "
        f"({result.prefill_speedup:.2f}x); a token {fused.decode_ms:.1f} ms fused, {unfused.decode_ms:.1f} ms unfused "
        f"({result.decode_speedup:.2f}x)"
    )


if __name__ == "__main__":
    sys.exit(main())
