"""Tokens per second through Triton beside the same engine called directly, in one run.

    scripts/bench-serving CHECKPOINT [--precision float16 int8] [--clients 1 4 16 32] [--threads 2] [--json]

CHECKPOINT is a Hugging Face folder or a GGUF file. A repository is built, the embedded Triton serves it, and both ways
answer the same prompts, pass by pass in turn: so the ratio holds on a machine whose speed drifts. Server, engine and
load generator share the cores. transformers on the CPU stands beside them when it is installed.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from bench_command import BenchOptions, in_turn, option_parser, report
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
    parser = option_parser(__doc__, prompt_tokens=32)
    parser.add_argument("--clients", nargs="+", type=int, default=[1, 4, 16, 32], help="requests at a time")
    parser.add_argument("--skip-transformers", action="store_true", help="leave transformers out")
    asked = parser.parse_args()
    options = BenchOptions.of(asked)
    with tempfile.TemporaryDirectory() as folder:
        rows = measure(options, asked.clients, Path(folder), with_transformers=not asked.skip_transformers)
        report(rows, line_of, as_json=options.as_json)
    return 0


def measure(options: BenchOptions, clients: Sequence[int], work: Path, *, with_transformers: bool) -> Iterator[Row]:
    """All rows, in the order in which they are measured."""
    for precision in options.precisions:
        repository = build_repository(options, precision, max(clients), work / precision)
        tokenizer = Tokenizer.from_file(str(repository / MODEL / "1" / "versions" / "1" / "tokenizer.json"))
        texts = prompts(tokenizer, max(clients), options.prompt_tokens)
        ids = [tokenizer.encode(text).ids for text in texts]
        direct = DirectEngine(repository / engine_model_name(MODEL, 1) / "1")
        server_options = ServerOptions(grpc_port=0, http_port=0, metrics_port=0)
        with start_embedded(repository, options=server_options) as server, Client(server.grpc_url) as client:
            for count in clients:
                yield from compare(options, precision, direct, client, ids[:count], texts[:count])
        if with_transformers and precision == options.precisions[-1]:
            for count in clients:
                yield from against_transformers(options, ids[:count])


def build_repository(options: BenchOptions, precision: str, clients: int, folder: Path) -> Path:
    """A repository with one version, without prefix caching, so that every pass computes its prompts."""
    runtime = f"{{num_threads: {options.threads}, enable_prefix_caching: false}}"
    folder.mkdir()
    spec = folder / "forge.yaml"
    spec.write_text(
        f"schema: 1\nrepository: ./models\nmodels:\n  - name: {MODEL}\n"
        f"    checkpoint: {options.checkpoint.resolve()}\n"
        f"    versions: {{1: {{engine: {{kind: openvino, precision: {precision}, runtime: {runtime}}}}}}}\n"
        f"    limits: {{max_batch_size: {clients}, max_seq_len: 1024}}\n"
    )
    return build_spec(load_spec(spec), BuildOptions()).repository


def compare(
    options: BenchOptions, precision: str, direct: DirectEngine, client: Client, ids: list[list[int]], texts: list[str]
) -> Iterator[Row]:
    """Direct and through Triton, in turn."""
    pairs = in_turn(
        [
            lambda: direct.one_pass(ids, options.new_tokens),
            lambda: triton_pass(client, texts, options.new_tokens),
        ],
        options.passes,
    )
    yield row("direct", precision, len(ids), [alone for alone, _ in pairs], ratio=None)
    ratio = median(through.tokens_per_s / alone.tokens_per_s for alone, through in pairs)
    yield row("triton", precision, len(ids), [through for _, through in pairs], ratio=ratio)


def triton_pass(client: Client, texts: list[str], new_tokens: int) -> Pass:
    """Streams that start together, through the gateway over gRPC."""

    def ask(text: str) -> list[float]:
        stream = client.stream(MODEL, text, max_tokens=new_tokens, min_length=new_tokens, timeout_s=TIMEOUT_S)
        arrivals = [(time.perf_counter(), chunk) for chunk in stream]
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


def against_transformers(options: BenchOptions, ids: list[list[int]]) -> Iterator[Row]:
    """The same prompts on transformers in float32, all clients as one batch."""
    one = transformers_pass(options.checkpoint, ids, options.new_tokens, threads=options.threads)
    if one is None:
        print("transformers left out: it is not installed, or the checkpoint is not a folder", file=sys.stderr)
    else:
        yield row("transformers", "float32", len(ids), [one], ratio=None)


def row(what: str, precision: str, clients: int, passes: Sequence[Pass], *, ratio: float | None) -> Row:
    """The medians of some passes."""
    rate = median(one.tokens_per_s for one in passes)
    return Row(what, precision, clients, rate, median(one.next_token_ms for one in passes), ratio)


def prompts(tokenizer: Tokenizer, count: int, tokens: int) -> list[str]:
    """Texts of about `tokens` tokens, each with another beginning, the same in every run."""
    words = tokenizer.encode("the server answers many requests at once and streams every token as it is made " * 40)
    return [f"{number}: {tokenizer.decode(words.ids[number % 7 :][: tokens - 3])}" for number in range(10, 10 + count)]


def line_of(one: Row) -> str:
    """One row as a line."""
    ratio = "" if one.ratio is None else f"   {one.ratio:6.1%} of direct"
    return (
        f"{one.what:13} {one.precision:8} {one.clients:3} clients  {one.tokens_per_s:7.1f} tokens/s  "
        f"{one.next_token_ms:6.1f} ms a token{ratio}"
    )


if __name__ == "__main__":
    sys.exit(main())
