"""A published model on the real server: its greedy tokens are those of transformers, and the demo tells its story."""

from __future__ import annotations

import json
import socket
import subprocess
from pathlib import Path

import pytest

from tritonforge.client import Client
from tritonforge.pipeline.build import build_spec
from tritonforge.pipeline.plan import BuildOptions
from tritonforge.server.launcher import start_embedded
from tritonforge.server.options import ServerOptions
from tritonforge.server.ports import choose_free_port
from tritonforge.spec.load import load_spec

pytestmark = [pytest.mark.triton, pytest.mark.slow]
ROOT = Path(__file__).parents[2]
GOLDEN = json.loads((ROOT / "tests" / "golden" / "smollm2_greedy.json").read_text())


@pytest.mark.timeout(600)
def test_served_greedy_tokens_are_those_of_transformers(smollm2: Path, tmp_path: Path) -> None:
    spec = tmp_path / "forge.yaml"
    engine = "{kind: openvino, precision: float16, runtime: {num_threads: 2}}"
    spec.write_text(
        f"schema: 1\nrepository: ./models\nmodels:\n  - name: smollm2\n    checkpoint: {smollm2}\n"
        f"    versions: {{1: {{engine: {engine}}}}}\n    limits: {{max_seq_len: 1024}}\n"
    )
    build_spec(load_spec(spec), BuildOptions())
    options = ServerOptions(grpc_port=0, http_port=0, metrics_port=0)

    with start_embedded(tmp_path / "models", options=options) as server, Client(server.grpc_url) as client:
        answers = {case["name"]: answer_to(client, case) for case in GOLDEN["cases"]}

    expected = {case["name"]: (case["text"], tokens_without_end(case)) for case in GOLDEN["cases"]}
    assert len(expected) >= 10
    assert answers == expected


def answer_to(client: Client, case: dict) -> tuple[str, int | None]:
    """Text and number of tokens; the chat cases go through the gateway's own rendering of the template."""
    asked = {"messages": case["messages"]} if "messages" in case else {"prompt": case["prompt"]}
    answer = client.generate("smollm2", max_tokens=GOLDEN["new_tokens"], **asked)
    assert answer.prompt_tokens == len(case["prompt_ids"])
    return answer.text, answer.completion_tokens


def tokens_without_end(case: dict) -> int:
    ids = case["output_ids"]
    return len(ids) - (ids[-1] in GOLDEN["end_ids"])


@pytest.mark.timeout(900)
def test_demo_moves_the_traffic_without_a_failed_request() -> None:
    done = demo("--grpc-port", free(), "--http-port", free(), "--metrics-port", free())

    assert done.returncode == 0, done.stdout + done.stderr
    assert ", 0 failed" in done.stdout
    assert "Paris" in done.stdout


@pytest.mark.timeout(900)
def test_demo_says_in_one_line_that_a_port_is_taken() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = demo("--grpc-port", port, "--http-port", free(), "--metrics-port", free())

    assert done.returncode != 0
    errors = [line for line in done.stderr.splitlines() if "error:" in line]
    assert len(errors) == 1
    assert f"port {port}" in errors[0]


def free() -> int:
    return choose_free_port(host="127.0.0.1")


def demo(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [ROOT / "scripts" / "demo", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=800, check=False)
