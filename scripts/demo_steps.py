"""The demo: a real checkpoint, two versions of it, a real Triton, and the traffic moved without a lost request.

Everything happens in .demo/. Finished steps are kept: a second run is quick, and an interrupted one can be run again.
"""

from __future__ import annotations

import argparse
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import smollm2
from demo_load import Load, Summary

from tritonforge.cli.main import show_error
from tritonforge.cli.output import print_table
from tritonforge.client import Client
from tritonforge.errors import TritonforgeError
from tritonforge.launch.process import tail_of
from tritonforge.server.embedded import find_installation, find_libpython
from tritonforge.server.options import ServerOptions
from tritonforge.server.ports import choose_address

ROOT = Path(__file__).parents[1]
WORK = ROOT / ".demo"
BIN = Path(sys.executable).parent

CHECKPOINT = WORK / "checkpoints" / smollm2.NAME
REPOSITORY = WORK / "model_repository"
PROMPT = "What is the capital of France? Answer in one sentence."
READY_S = 120.0
STOP_S = 60.0

SPEC = """\
schema: 1
repository: ./model_repository
models:
  - name: smollm2
    checkpoint: ./checkpoints/SmolLM2-135M-Instruct
    versions:
      1: {engine: {kind: openvino, precision: float16, runtime: {num_threads: THREADS}}}
      2: {engine: {kind: openvino, precision: int8, runtime: {num_threads: THREADS}}}
    traffic: {1: 100, 2: 0}
    limits: {max_batch_size: 16, max_input_len: 1024, max_seq_len: 2048}
"""


def main() -> int:
    """Run all steps; returns the exit code."""
    options = parse_options()
    WORK.mkdir(exist_ok=True)
    try:
        run_steps(options)
    except TritonforgeError as error:
        show_error(error)
        return error.exit_code
    except subprocess.CalledProcessError as error:
        return error.returncode or 1  # the command has said why
    except KeyboardInterrupt:
        print("interrupted; run it again to go on", file=sys.stderr)
        return 130
    return 0


def parse_options() -> argparse.Namespace:
    """The demo's own options."""
    parser = argparse.ArgumentParser(prog="scripts/demo", description=__doc__)
    parser.add_argument("--keep", action="store_true", help="leave the server running and say what to try next")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1, help="threads of each engine")
    parser.add_argument("--grpc-port", type=int, default=8001)
    parser.add_argument("--http-port", type=int, default=8000)
    parser.add_argument("--metrics-port", type=int, default=8002)
    return parser.parse_args()


def run_steps(options: argparse.Namespace) -> None:
    """The story, in order."""
    started = time.monotonic()
    # What would stop the third step is found before the first.
    find_installation()
    find_libpython()
    choose_address(
        ServerOptions(grpc_port=options.grpc_port, http_port=options.http_port, metrics_port=options.metrics_port)
    )
    heading("1. The checkpoint: SmolLM2-135M-Instruct, Llama architecture, Apache-2.0")
    fetch_checkpoint()
    heading("2. Two versions of it: float16, and int8 weights")
    spec = WORK / "forge.yaml"
    spec.write_text(SPEC.replace("THREADS", str(options.threads)))
    # The spec gives version 1 all the traffic; --traffic, because an earlier run of the demo may have moved it.
    forge("build", "-f", spec, "--traffic")
    heading("3. A real Triton Inference Server")
    with server(options) as serving:
        heading("4. One answer, streamed over gRPC and over HTTP")
        for url in (serving.grpc_url, serving.http_url):
            forge("generate", "smollm2", PROMPT, "--chat", "--stream", "--max-tokens", "24", "--url", url)
        heading("5. The traffic moves from version 1 to version 2 under load")
        summary = move_traffic(serving.grpc_url)
        show(summary, took_s=time.monotonic() - started)
        if options.keep:
            say_what_to_try(serving)
    if summary.failed:
        raise TritonforgeError(f"{summary.failed} requests failed", hint=f"see {WORK / 'server.log'}")


def fetch_checkpoint() -> None:
    """Get the GGUF file and import it to a Hugging Face folder."""
    gguf = smollm2.fetch_gguf(WORK / "downloads")
    if not CHECKPOINT.exists():
        forge("import-gguf", gguf, CHECKPOINT)


@dataclass(frozen=True, slots=True)
class Server:
    """Where the demo's server answers, and the process to end it by."""

    grpc_url: str
    http_url: str
    pid: int


@contextmanager
def server(options: argparse.Namespace) -> Iterator[Server]:
    """The embedded Triton on the demo's repository. Stays up with --keep."""
    log = WORK / "server.log"
    ports = ("--grpc-port", options.grpc_port, "--http-port", options.http_port, "--metrics-port", options.metrics_port)
    command = command_line("serve", REPOSITORY, *ports)
    with log.open("wb") as output:
        child = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, start_new_session=True)
    keep = False
    try:
        with Client(f"localhost:{options.grpc_port}") as client:
            wait_for_model(client, child, log)
        yield Server(f"grpc://localhost:{options.grpc_port}", f"http://localhost:{options.http_port}", child.pid)
        keep = options.keep
    finally:
        if not keep:
            stop(child)


def stop(child: subprocess.Popen[bytes]) -> None:
    """Ask the server to end, and insist when it does not in time."""
    for number in (signal.SIGTERM, signal.SIGTERM, signal.SIGKILL):  # the second one makes it kill the server at once
        child.send_signal(number)
        with suppress(subprocess.TimeoutExpired):
            child.wait(STOP_S)
            return


def wait_for_model(client: Client, child: subprocess.Popen[bytes], log: Path) -> None:
    """Wait until the server answers for smollm2; raises as soon as the server has ended."""
    deadline_s = time.monotonic() + READY_S
    while True:
        code = child.poll()
        if code is not None:
            print("\n".join(tail_of(log, 3)), file=sys.stderr)
            raise subprocess.CalledProcessError(code, "tritonforge serve")
        try:
            client.wait_ready("smollm2", timeout_s=2.0)
            return
        except TritonforgeError:
            if time.monotonic() > deadline_s:
                raise


def move_traffic(url: str) -> Summary:
    """Keep a small load running while the traffic goes from version 1 to version 2."""
    with Load(url, model="smollm2", prompt=PROMPT, clients=3) as load:
        load.wait_for_answers(12)
        forge("traffic", REPOSITORY, "smollm2", "1=0", "2=100")
        load.wait_for_answers(24)
    return load.summary()


def show(summary: Summary, *, took_s: float) -> None:
    """The summary table."""
    rows = [
        (f"version {v.version}", v.precision, v.requests, v.failed, f"{v.ttft_p50_ms:.0f} ms", f"{v.itl_p50_ms:.1f} ms")
        for v in summary.versions({1: "float16", 2: "int8 weights"})
    ]
    columns = ("engine", "weights", "answers", "failed", "TTFT p50", "inter-token p50")
    print()
    print_table(columns, rows, title=f"{summary.answers} requests, {summary.failed} failed, demo took {took_s:.0f} s")


def say_what_to_try(serving: Server) -> None:
    """The three commands to go on with."""
    print("\nThe server is still running. Try next:")
    url = serving.grpc_url
    for arguments in (
        ("generate", "smollm2", "Tell me a story.", "--chat", "--stream", "--url", url),
        ("traffic", REPOSITORY, "smollm2", "1=50", "2=50"),
        ("status", "--url", url),
    ):
        print(f"  {shlex.join(command_line(*arguments))}")
    print(f"Stop it with: kill {serving.pid}")


def forge(*arguments: object) -> None:
    """Run one tritonforge command, shown as a user would type it."""
    command = command_line(*arguments)
    print(f"\n$ {shlex.join(command)}", flush=True)
    subprocess.run(command, check=True)


def command_line(*arguments: object) -> list[str]:
    """The argv of a tritonforge command, with the paths below this checkout made relative."""
    words = [str(a.relative_to(ROOT)) if isinstance(a, Path) else str(a) for a in arguments]
    return [str((BIN / "tritonforge").relative_to(ROOT)), *words]


def heading(text: str) -> None:
    """Announce a step."""
    print(f"\n=== {text}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
