"""The engine inside a real Triton, asked directly at the token level."""

import os
import signal
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from tests.support.checkpoints import write_llama
from tests.support.engines import build_small, small_spec
from tests.support.processes import wait_until
from tritonforge.client import Client
from tritonforge.errors import ClientError
from tritonforge.repository.render import render_engine
from tritonforge.server import RunningServer, ServerOptions, start_embedded
from tritonforge.spec.limits import LimitsSpec
from tritonforge.spec.model import ResolvedVersion
from tritonforge.spec.serving import ServingSpec

pytestmark = pytest.mark.triton

DEADLINE_S = 60.0
LIMITS = LimitsSpec(max_batch_size=4, max_input_len=64, max_seq_len=1024)
LONG = 900
FUSED, UNFUSED = "tiny_engine_v1", "tiny_engine_v2"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    work = tmp_path_factory.mktemp("served")
    repository = work / "models"
    repository.mkdir()
    source = write_llama(work / "hf", tokenizer=None, max_position=1024)
    for number, fused in ((1, True), (2, False)):
        spec = small_spec(fused_attention=fused)
        engine = build_small(source, work / f"engine{number}", spec=spec, **LIMITS.model_dump())
        version = ResolvedVersion("tiny", number, spec, str(source), LIMITS, ServingSpec())
        render_engine(version, engine, repository, mount=str(repository))
    options = ServerOptions(grpc_port=0, http_port=0, metrics_port=0, exit_timeout_s=5)
    with start_embedded(repository, options=options) as running:
        yield running


@pytest.fixture
def client(server: RunningServer) -> Iterator[Client]:
    with Client(server.grpc_url, timeout_s=DEADLINE_S) as connected:
        yield connected


def tensors(count: int = 5, prompt: tuple[int, ...] = (5, 7, 11), **more: object) -> Mapping[str, np.ndarray]:
    """The inputs of one request; further ones by name, with the type that the config gives them."""
    values: dict[str, np.ndarray] = {
        "input_ids": np.array([prompt], np.int32).reshape(1, -1),
        "input_lengths": np.array([[len(prompt)]], np.int32),
        "request_output_len": np.array([[count]], np.int32),
    }
    for name, value in more.items():
        kind = {bool: np.bool_, float: np.float32}.get(type(value), np.int32)
        values[name] = np.array([[value]], np.uint64 if name == "random_seed" else kind)
    return values


@dataclass(frozen=True, slots=True)
class Streamed:
    """One streamed answer: ids of each response, and what ended it."""

    parts: list[list[int]]
    error: str | None = None

    @property
    def ids(self) -> list[int]:
        return [token for part in self.parts for token in part]


def ask(client: Client, model: str, inputs: Mapping[str, np.ndarray], request_id: str = "") -> Streamed:
    parts = []
    try:
        for result in client.infer_stream(model, inputs, request_id=request_id):
            if result.outputs:
                assert result["output_ids"].shape[:2] == (1, 1)
                assert result["sequence_length"].tolist() == [[result["output_ids"].shape[2]]]
                parts.append(result["output_ids"].ravel().tolist())
    except ClientError as error:
        return Streamed(parts, str(error))
    return Streamed(parts)


def workers_of(server: RunningServer, model: str) -> list[int]:
    """Process ids of the worker processes of one model."""
    version_folder = f"{server.repository / model}/"
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                command = (folder / "cmdline").read_text()
            except (FileNotFoundError, ProcessLookupError, PermissionError):
                continue
            if ".openvino.worker" in command and version_folder in command:
                found.append(int(folder.name))
    return found


@pytest.mark.parametrize("model", [FUSED, UNFUSED])
def test_streamed_and_whole_answers_hold_the_same_tokens(client: Client, model: str) -> None:
    whole = ask(client, model, tensors(12))
    streamed = ask(client, model, tensors(12, streaming=True))
    assert len(whole.parts) == 1
    assert len(streamed.parts) > 1
    assert len(whole.ids) == 12
    assert streamed.ids == whole.ids


def test_both_forms_of_attention_answer_alike(client: Client) -> None:
    assert ask(client, FUSED, tensors(20)).ids == ask(client, UNFUSED, tensors(20)).ids


def test_many_streams_of_mixed_lengths_are_all_answered(client: Client) -> None:
    lengths = [5 + 13 * number % 60 for number in range(32)]
    prompts = [(5, 7, 11 + number) for number in range(32)]
    with ThreadPoolExecutor(32) as pool:
        answers = list(
            pool.map(
                lambda prompt, length: ask(client, FUSED, tensors(length, prompt, streaming=True)), prompts, lengths
            )
        )
    assert [answer.error for answer in answers] == [None] * 32
    assert [len(answer.ids) for answer in answers] == lengths
    alone = ask(client, FUSED, tensors(lengths[3], prompts[3]))
    assert answers[3].ids == alone.ids


@pytest.mark.parametrize("model", [FUSED, UNFUSED])
def test_the_same_seed_gives_the_same_answer(client: Client, model: str) -> None:
    sampled = tensors(16, temperature=5.0, random_seed=7)
    first = ask(client, model, sampled).ids
    assert ask(client, model, sampled).ids == first
    assert ask(client, model, tensors(16, temperature=5.0, random_seed=8)).ids != first


def test_log_probabilities_come_on_request(client: Client) -> None:
    result = next(client.infer_stream(FUSED, tensors(3, return_log_probs=True)))
    assert result["output_log_probs"].shape == (1, 1, 3)
    assert result["cum_log_probs"].shape == (1, 1)
    assert result["cum_log_probs"].item() == pytest.approx(result["output_log_probs"].sum(), abs=1e-4)


def test_only_the_outputs_that_were_asked_for_are_sent(client: Client) -> None:
    assert set(next(client.infer_stream(FUSED, tensors(3))).outputs) == {"output_ids", "sequence_length"}
    asked = client.infer_stream(FUSED, tensors(3), outputs=["output_ids"])
    assert set(next(asked).outputs) == {"output_ids"}


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        (tensors(prompt=()), "input_ids is empty"),
        (tensors(prompt=(5,) * 65), "input_ids has 65 tokens; expected at most 64 (max_input_len)"),
        (tensors(1022), "request_output_len is 1022; expected at most 1021"),
        (tensors(0), "request_output_len is 0"),
        (tensors(prompt=(5, 131)), "input_ids holds 131 at position 1; expected 0 to 130"),
        (tensors(temperature=-1.0), "temperature is -1"),
        ({**tensors(), "input_ids": np.ones((2, 3), np.int32)}, ""),
    ],
)
def test_bad_input_gets_one_clear_error_and_harms_nobody(
    client: Client, inputs: Mapping[str, np.ndarray], words: str
) -> None:
    refused = ask(client, FUSED, inputs)
    assert refused.parts == []
    assert refused.error is not None
    assert words in refused.error
    assert len(ask(client, FUSED, tensors(3)).ids) == 3


def test_a_stop_request_of_the_same_id_ends_the_answer(client: Client) -> None:
    stream = client.infer_stream(FUSED, tensors(LONG, streaming=True), request_id="mine")
    received = next(stream)["output_ids"].size
    assert ask(client, FUSED, tensors(1, stop=True), "mine") == Streamed([])
    received += sum(result["output_ids"].size for result in stream if result.outputs)
    assert received < LONG


def test_a_client_that_leaves_frees_the_engine(client: Client) -> None:
    streams = [client.infer_stream(FUSED, tensors(LONG, streaming=True)) for _ in range(LIMITS.max_batch_size)]
    for stream in streams:
        next(stream)
        stream.close()
    begun = time.monotonic()
    assert len(ask(client, FUSED, tensors(1)).ids) == 1  # there is room again
    assert time.monotonic() - begun < 10


def test_a_killed_worker_fails_its_requests_and_the_next_ones_are_answered(
    server: RunningServer, client: Client
) -> None:
    (pid,) = workers_of(server, FUSED)
    stream = client.infer_stream(FUSED, tensors(LONG, streaming=True))
    next(stream)
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(ClientError, match="worker process failed: it was ended by signal 9"):
        for _ in stream:
            pass
    assert len(ask(client, FUSED, tensors(3)).ids) == 3
    assert workers_of(server, FUSED) != [pid]


def test_unloading_ends_the_worker_and_loses_no_answer(server: RunningServer, client: Client) -> None:
    # The other model: Triton 2.51 may never unload a model of which a stream was cancelled just as it ended.
    stream = client.infer_stream(UNFUSED, tensors(200, streaming=True))
    received = next(stream)["output_ids"].size
    client.unload(UNFUSED)
    received += sum(result["output_ids"].size for result in stream if result.outputs)
    assert received == 200
    wait_until(lambda: workers_of(server, UNFUSED) == [], "end of the worker")
    client.load(UNFUSED)
    assert len(ask(client, UNFUSED, tensors(3)).ids) == 3
