"""Tokens per second through Triton beside the same engine called directly, in one run.

    scripts/bench-serving CHECKPOINT [--precision float16 int8] [--clients 1 4 16 32] [--threads 2] [--json]

CHECKPOINT is a Hugging Face folder or a GGUF file. A repository is built, the embedded Triton serves it, and both ways
answer the same prompts, pass by pass in turn: so the ratio holds on a machine whose speed drifts. Server, engine and
load generator share the cores. transformers on the CPU stands beside them when it is installed.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

from bench_direct import DirectEngine, Pass, transformers_pass
from tokenizers import Tokenizer

from tritonforge.client import Client
from tritonforge.pipeline.build import build_spec
from tritonforge.pipeline.plan import BuildOptions
from tritonforge.repository.layout import engine_model_name
from tritonforge.server import ServerOptions, start_embedded
from tritonforge.spec.load import load_spec

MODEL = "bench"
TIMEOUT_S = 600.0


@dataclass(frozen=True, slots=True)
class Row:
    """One way and number of clients.

    Args:
        what: ``direct``, ``triton`` or ``transformers``.
        precision: Precision of the weights.
        clients: Requests at a time.
        tokens_per_s: New tokens of all requests per second; median over the passes.
        next_token_ms: Time between tokens of one request; median over requests and passes.
        ratio: tokens_per_s over that of the direct engine, pair by pair, median; None for what has no pair.
    """

    what: str
    precision: str
    clients: int
    tokens_per_s: float
    next_token_ms: float
    ratio: float | None


def main() -> int:
    """Measure and print."""
    asked = arguments()
    with tempfile.TemporaryDirectory() as folder:
        rows = []
        for row in measure(asked, Path(folder)):
            rows.append(row)
            if not asked.json:
                show(row)
    if asked.json:
        print(json.dumps([asdict(row) for row in rows], indent=2))
    return 0


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint", type=Path, metavar="CHECKPOINT")
    parser.add_argument("--precision", nargs="+", default=["float16", "int8"])
    parser.add_argument("--clients", nargs="+", type=int, default=[1, 4, 16, 32])
    parser.add_argument("--prompt-tokens", type=int, default=32)
    parser.add_argument("--new-tokens", type=int, default=64)
    parser.add_argument("--threads", type=int, default=2, help="threads of the engine")
    parser.add_argument("--passes", type=int, default=3, help="pairs of passes, after one that warms up")
    parser.add_argument("--skip-transformers", action="store_true")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


def measure(asked: argparse.Namespace, work: Path) -> Iterator[Row]:
    """All rows, in the order in which they are measured."""
    for precision in asked.precision:
        repository = build_repository(asked, precision, work / precision)
        tokenizer = Tokenizer.from_file(str(repository / MODEL / "1" / "versions" / "1" / "tokenizer.json"))
        texts = prompts(tokenizer, max(asked.clients), asked.prompt_tokens)
        ids = [tokenizer.encode(text).ids for text in texts]
        direct = DirectEngine(repository / engine_model_name(MODEL, 1) / "1")
        options = ServerOptions(grpc_port=0, http_port=0, metrics_port=0)
        with start_embedded(repository, options=options) as server, Client(server.grpc_url) as client:
            for clients in asked.clients:
                yield from compare(asked, precision, clients, direct, client, ids, texts)
        if not asked.skip_transformers and precision == asked.precision[-1]:
            yield from against_transformers(asked, ids)


def build_repository(asked: argparse.Namespace, precision: str, folder: Path) -> Path:
    """A repository with one version, without prefix caching, so that every pass computes its prompts."""
    runtime = f"{{num_threads: {asked.threads}, enable_prefix_caching: false}}"
    folder.mkdir()
    spec = folder / "forge.yaml"
    spec.write_text(
        f"schema: 1\nrepository: ./models\nmodels:\n  - name: {MODEL}\n    checkpoint: {asked.checkpoint.resolve()}\n"
        f"    versions: {{1: {{engine: {{kind: openvino, precision: {precision}, runtime: {runtime}}}}}}}\n"
        f"    limits: {{max_batch_size: {max(asked.clients)}, max_seq_len: 1024}}\n"
    )
    return build_spec(load_spec(spec), BuildOptions(), on_event=ignore).repository


def ignore(_line: str) -> None:
    """The build's progress, which is not of interest here."""


def compare(
    asked: argparse.Namespace,
    precision: str,
    clients: int,
    direct: DirectEngine,
    client: Client,
    ids: list[list[int]],
    texts: list[str],
) -> Iterator[Row]:
    """Direct and through Triton in turn; the first pair warms up."""
    pairs = []
    for _ in range(asked.passes + 1):
        alone = direct.one_pass(ids[:clients], asked.new_tokens)
        pairs.append((alone, triton_pass(client, texts[:clients], asked.new_tokens)))
    directs, tritons = zip(*pairs[1:], strict=True)
    yield row("direct", precision, clients, directs, ratio=None)
    ratio = median(through.tokens_per_s / alone.tokens_per_s for alone, through in pairs[1:])
    yield row("triton", precision, clients, tritons, ratio=ratio)


def triton_pass(client: Client, texts: list[str], new_tokens: int) -> Pass:
    """Streams that start together, through the gateway over gRPC."""

    def ask(text: str) -> list[float]:
        options = {"max_tokens": new_tokens, "min_length": new_tokens, "timeout_s": TIMEOUT_S}
        arrivals = [(time.perf_counter(), chunk) for chunk in client.stream(MODEL, text, **options)]
        completed = arrivals[-1][1].completion_tokens
        if completed != new_tokens:
            raise RuntimeError(f"{completed} tokens came, {new_tokens} were asked for")
        return [arrivals[0][0], arrivals[-1][0]]

    begun = time.perf_counter()
    with ThreadPoolExecutor(len(texts)) as pool:
        spans = list(pool.map(ask, texts))
    elapsed_s = time.perf_counter() - begun
    next_ms = median((last - first) * 1000 / (new_tokens - 1) for first, last in spans)
    return Pass(len(texts) * new_tokens / elapsed_s, next_ms)


def against_transformers(asked: argparse.Namespace, ids: list[list[int]]) -> Iterator[Row]:
    """The same prompts on transformers in float32, all clients as one batch."""
    for clients in asked.clients:
        one = transformers_pass(asked.checkpoint, ids[:clients], asked.new_tokens, threads=asked.threads)
        if one is None:
            print("transformers is not installed, or the checkpoint is no folder: left out", file=sys.stderr)
            return
        yield row("transformers", "float32", clients, [one], ratio=None)


def row(what: str, precision: str, clients: int, passes: tuple[Pass, ...] | list[Pass], *, ratio: float | None) -> Row:
    """The medians of some passes."""
    rate = median(one.tokens_per_s for one in passes)
    return Row(what, precision, clients, rate, median(one.next_token_ms for one in passes), ratio)


def prompts(tokenizer: Tokenizer, count: int, tokens: int) -> list[str]:
    """Texts of about `tokens` tokens, each with another beginning, the same in every run."""
    words = tokenizer.encode("the server answers many requests at once and streams every token as it is made " * 40)
    return [f"{number}: {tokenizer.decode(words.ids[number % 7 :][: tokens - 3])}" for number in range(10, 10 + count)]


def show(one: Row) -> None:
    """One line."""
    ratio = "" if one.ratio is None else f"   {one.ratio:6.1%} of direct"
    print(
        f"{one.what:13} {one.precision:8} {one.clients:3} clients  {one.tokens_per_s:7.1f} tokens/s  "
        f"{one.next_token_ms:6.1f} ms a token{ratio}",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
