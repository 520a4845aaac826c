"""What the benchmarks share: the options, how results are printed, and passes that take turns."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

ResultT = TypeVar("ResultT")


@dataclass(frozen=True, slots=True)
class BenchOptions:
    """What every benchmark is told.

    Args:
        checkpoint: Hugging Face folder; the serving benchmark takes a GGUF file as well.
        precisions: Weight precisions to build engines with.
        prompt_tokens: Length of a prompt.
        new_tokens: Length of an answer, at least 2.
        threads: Threads of an engine.
        passes: Measured passes, after one that warms up.
        as_json: Print JSON at the end instead of lines at once.
    """

    checkpoint: Path
    precisions: tuple[str, ...]
    prompt_tokens: int
    new_tokens: int
    threads: int
    passes: int
    as_json: bool

    @classmethod
    def of(cls, asked: argparse.Namespace) -> BenchOptions:
        """From a command line that `option_parser` has read."""
        return cls(
            checkpoint=asked.checkpoint,
            precisions=tuple(asked.precision),
            prompt_tokens=asked.prompt_tokens,
            new_tokens=asked.new_tokens,
            threads=asked.threads,
            passes=asked.passes,
            as_json=asked.json,
        )


def option_parser(description: str | None, *, prompt_tokens: int) -> argparse.ArgumentParser:
    """A parser with the options that every benchmark has.

    Args:
        description: The text above the options.
        prompt_tokens: Default length of a prompt.
    """
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint", type=Path, metavar="CHECKPOINT")
    parser.add_argument("--precision", nargs="+", default=["float16", "int8"], help="precisions of the weights")
    parser.add_argument("--prompt-tokens", type=int, default=prompt_tokens, help="length of a prompt")
    parser.add_argument("--new-tokens", type=int, default=64, help="length of an answer")
    parser.add_argument("--threads", type=int, default=2, help="threads of the engine")
    parser.add_argument("--passes", type=int, default=3, help="measured passes, after one that warms up")
    parser.add_argument("--json", action="store_true", help="print the results as JSON at the end")
    return parser


def report(results: Iterable[Any], line_of: Callable[[Any], str], *, as_json: bool) -> None:
    """Print results, each as a line when it is there, or all of them as JSON.

    Args:
        results: Dataclasses, in the order in which they are measured.
        line_of: The line for one.
        as_json: Print JSON.
    """
    if as_json:
        print(json.dumps([asdict(result) for result in results], indent=2))
        return
    for result in results:
        print(line_of(result), flush=True)


def in_turn(ways: Sequence[Callable[[], ResultT]], passes: int) -> list[tuple[ResultT, ...]]:
    """Run all ways one after another, several times, so that a drift of the machine's speed meets all of them.

    Args:
        ways: Each makes one pass.
        passes: Rounds that count; one before them warms up.
    """
    rounds = [tuple(way() for way in ways) for _ in range(passes + 1)]
    return rounds[1:]
