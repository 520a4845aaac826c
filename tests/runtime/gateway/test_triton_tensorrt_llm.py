"""The gateway inside a real Triton, in front of the `tensorrtllm` backend's tensors of several lines.

The engine models are rendered as they are published, and given a stand-in for the backend: see
tests/support/tensorrtllm_model.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support import tokenizer_files
from tests.support.processes import wait_until
from tests.support.tensorrtllm_stand_in import stand_in
from tests.support.trtllm_engines import write_trtllm_engine
from tritonforge.artifacts import TokenizerArtifact
from tritonforge.client import Client
from tritonforge.errors import Rejected
from tritonforge.repository.render import render_engine, render_gateway
from tritonforge.repository.serving import ServedVersion
from tritonforge.server import RunningServer, ServerOptions, start_embedded
from tritonforge.spec.model import ModelSpec

pytestmark = pytest.mark.triton

MODEL = "llm"
PROMPT = "The capital of France is Paris, 你好 👋."
DEADLINE_S = 30.0
RELEASES = {9: "0.9.0", 12: "0.12.0", 16: "0.16.0", 19: "0.19.0", 21: "0.21.0"}
# Every other line that a tag was read of, and the newest: their models must load and answer.
OTHERS = {
    10: "0.10.0",
    11: "0.11.0",
    13: "0.13.0",
    14: "0.14.0",
    15: "0.15.0",
    17: "0.17.0",
    18: "0.18.2",
    100: "1.2.1",
}
SLOW = {90: "0.9.0", 160: "0.16.0", 190: "0.19.0"}
LIMITS = {"max_batch_size": 32, "max_input_len": 128, "max_seq_len": 256, "max_beam_width": 2}
EOS = 2


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A Triton with one gateway and an engine model of each line."""
    folder = tmp_path_factory.mktemp("tensorrt_llm")
    repository = folder / "model_repository"
    repository.mkdir()
    _write_repository(folder, repository)
    options = ServerOptions(grpc_port=0, http_port=0, metrics_port=0, exit_timeout_s=10)
    with start_embedded(repository, options=options) as running:
        yield running


def _write_repository(folder: Path, repository: Path) -> None:
    checkpoint = folder / "checkpoint"
    checkpoint.mkdir()
    vocab_size = tokenizer_files.write_chatml(checkpoint)
    files = {name: checkpoint / name for name in ("tokenizer.json", "tokenizer_config.json")}
    tokenizer = TokenizerArtifact("huggingface", files, (EOS, 1), EOS)
    versions = {n: {"engine": {"kind": "tensorrt_llm", "release": r}} for n, r in (RELEASES | OTHERS | SLOW).items()}
    model = ModelSpec.model_validate({"name": MODEL, "checkpoint": str(checkpoint), "versions": versions})
    served = []
    for number in versions:
        version = model.resolved(number)
        release = version.engine.release
        engine = write_trtllm_engine(folder / f"engine{number}", release, vocab_size=vocab_size, **LIMITS)
        rendered = render_engine(version, engine, repository, mount=str(repository))
        stand_in(rendered, **({"endless": True, "token_delay_s": 0.02} if number in SLOW else {}))
        served.append(ServedVersion.of(version, engine, tokenizer))
    render_gateway(model, served, repository, weights={16: 100})


@pytest.fixture
def client(server: RunningServer) -> Iterator[Client]:
    with Client(server.grpc_url, timeout_s=DEADLINE_S) as connected:
        yield connected


each_line = pytest.mark.parametrize("line", RELEASES)


@pytest.mark.parametrize("line", RELEASES | OTHERS)
def test_an_answer_in_one_piece_never_repeats_the_prompt(client: Client, line: int) -> None:
    answer = client.generate(MODEL, PROMPT, max_tokens=100, version=line)

    assert (answer.text, answer.finish_reason, answer.engine_version) == (PROMPT, "stop", line)
    assert answer.prompt_tokens == answer.completion_tokens


@each_line
def test_a_stream_adds_up_to_the_same_text(client: Client, line: int) -> None:
    chunks = list(client.stream(MODEL, PROMPT, max_tokens=100, version=line))

    assert "".join(chunk.text for chunk in chunks) == PROMPT
    assert [chunk.finish_reason for chunk in chunks if chunk.finish_reason is not None] == ["stop"]
    assert chunks[-1].completion_tokens == chunks[-1].prompt_tokens


@each_line
@pytest.mark.parametrize("stream", [False, True])
def test_stop_words_cut_the_text_also_across_tokens(client: Client, line: int, stream: bool) -> None:
    words = {"max_tokens": 100, "version": line, "stop_words": ["France is"]}
    if stream:
        chunks = list(client.stream(MODEL, PROMPT, **words))
        text, reason = "".join(chunk.text for chunk in chunks), chunks[-1].finish_reason
    else:
        answer = client.generate(MODEL, PROMPT, **words)
        text, reason = answer.text, answer.finish_reason

    assert (text, reason) == ("The capital of ", "stop")


@each_line
def test_max_tokens_cuts_the_answer(client: Client, line: int) -> None:
    answer = client.generate(MODEL, PROMPT, max_tokens=2, version=line)

    assert (answer.finish_reason, answer.completion_tokens) == ("length", 2)


@each_line
def test_bad_words_seed_and_min_length_reach_the_engine(client: Client, line: int) -> None:
    whole = client.generate(MODEL, "a b c", max_tokens=50, version=line)
    longer = client.generate(MODEL, "a b c", max_tokens=50, version=line, min_length=9)
    turned = client.generate(MODEL, "a b c", max_tokens=50, version=line, random_seed=1)
    without = client.generate(MODEL, "a b c", max_tokens=50, version=line, bad_words=["b"])

    assert longer.completion_tokens == 9 > whole.completion_tokens
    assert turned.text.startswith(whole.text[1:])
    assert "b" in whole.text
    assert "b" not in without.text


@each_line
@pytest.mark.parametrize("stream", [False, True])
def test_log_probabilities_come_once_per_token(client: Client, line: int, stream: bool) -> None:
    asked = {"max_tokens": 3, "version": line, "return_log_probs": True}
    answers = list(client.stream(MODEL, PROMPT, **asked)) if stream else [client.generate(MODEL, PROMPT, **asked)]

    assert [p for answer in answers for p in answer.output_log_probs or ()] == [-0.25, -0.5, -0.75]


@each_line
def test_many_requests_at_once_do_not_get_in_each_others_way(client: Client, line: int) -> None:
    prompts = [f"request number {index} of many" for index in range(48)]
    with ThreadPoolExecutor(len(prompts)) as pool:
        answers = list(pool.map(lambda text: client.generate(MODEL, text, max_tokens=60, version=line).text, prompts))

    assert answers == prompts


@pytest.mark.parametrize("line", SLOW)
def test_a_client_that_leaves_stops_its_own_request_and_no_other(client: Client, line: int) -> None:
    _, _, stopped = engine_counts(client, line)
    others = [client.stream(MODEL, PROMPT, max_tokens=60, version=line) for _ in range(8)]
    for stream in others:
        next(stream)
    gone = client.stream(MODEL, PROMPT, max_tokens=200, version=line)
    next(gone)

    gone.close()

    wait_until(lambda: engine_counts(client, line)[2] == stopped + 1, "the engine to be stopped")
    ends = [list(stream)[-1] for stream in others]
    assert [(end.finish_reason, end.completion_tokens) for end in ends] == [("length", 60)] * 8
    assert engine_counts(client, line)[2] == stopped + 1


@pytest.mark.parametrize("line", SLOW)
def test_a_stop_word_frees_the_engine(client: Client, line: int) -> None:
    _, _, stopped = engine_counts(client, line)

    answer = client.generate(MODEL, "ab", max_tokens=200, version=line, stop_words=["bab"])

    assert (answer.text, answer.finish_reason) == ("a", "stop")
    wait_until(lambda: engine_counts(client, line)[2] == stopped + 1, "the engine to be free")


def engine_counts(client: Client, line: int) -> tuple[int, int, int]:
    """Requests at the engine now, ever started, and ever stopped before their end."""
    one = np.array([[1]], dtype=np.int32)
    inputs = {"input_ids": one * 0, "input_lengths": one, "request_output_len": one}
    (result,) = [r for r in client.infer_stream(f"{MODEL}_engine_v{line}", inputs) if r.outputs]
    running, started, stopped = result.outputs["output_ids"].ravel().tolist()
    return running, started, stopped


@each_line
@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"max_tokens": 0}, "max_tokens is 0"),
        ({"prompt": "a b" * 500}, "128 tokens (max_input_len)"),
        ({"temperature": -1.0}, "temperature is -1"),
        ({"max_tokens": 255}, "256 (max_seq_len)"),
    ],
)
def test_bad_input_is_refused_by_the_gateway(client: Client, line: int, fields: dict[str, Any], message: str) -> None:
    request = {"prompt": PROMPT, "version": line, "max_tokens": 5} | fields

    with pytest.raises(Rejected) as caught:
        client.generate(MODEL, request.pop("prompt"), **request)

    assert message in str(caught.value)


@each_line
def test_what_the_backend_refuses_comes_back_in_its_words(client: Client, line: int) -> None:
    one = np.array([[1]], dtype=np.int32)
    ids = np.arange(200, dtype=np.int32)[None]
    inputs = {"input_ids": ids, "input_lengths": one * 200, "request_output_len": one}

    with pytest.raises(Rejected, match=r"Prompt length \(200\) exceeds maximum input length \(128\)"):
        list(client.infer_stream(f"{MODEL}_engine_v{line}", inputs))


@pytest.mark.parametrize("line", [16, 19])
def test_the_engines_of_later_lines_show_prompt_and_beams_only_when_asked(client: Client, line: int) -> None:
    one = np.array([[1]], dtype=np.int32)
    inputs = {
        "input_ids": np.array([[7, 8, 9]], dtype=np.int32), "input_lengths": one * 3, "request_output_len": one * 9,
        "beam_width": one * 2, "exclude_input_in_output": np.array([[False]]),
    }  # fmt: skip

    (result,) = [r for r in client.infer_stream(f"{MODEL}_engine_v{line}", inputs) if r.outputs]

    assert result.outputs["output_ids"].tolist() == [[[7, 8, 9, 7, 8, 9], [7, 8, 9, 7, 8, -1]]]
    assert result.outputs["sequence_length"].tolist() == [[6, 5]]
