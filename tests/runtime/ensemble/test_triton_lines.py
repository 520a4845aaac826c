"""The ensembles of four TensorRT-LLM lines on the real Triton, around a model that stands in for the engine.

Triton checks every joint when it loads an ensemble: names, types and shapes of both ends.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from tests.runtime.ensemble.nvidia_client import ask, events, post
from tests.support.standin_engine import put_standin
from tests.support.tokenizer_files import write_chatml
from tests.support.trtllm_engines import write_trtllm_engine
from tritonforge.artifacts import TokenizerArtifact
from tritonforge.client import Client
from tritonforge.errors import ClientError
from tritonforge.repository.render import render_engine
from tritonforge.repository.render_ensemble import render_ensemble, render_parts
from tritonforge.repository.serving import ServedVersion
from tritonforge.server.launcher import RunningServer, start_embedded
from tritonforge.server.options import ServerOptions
from tritonforge.spec.model import ModelSpec

pytestmark = pytest.mark.triton
RELEASES = ("0.9.0", "0.12.0", "0.16.0", "0.19.0", "1.2.1")
PROMPT = "The capital of France is Paris, and it rains."


def name_of(release: str) -> str:
    return f"llama-{release}"


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lines") / "models"
    folder.mkdir()
    return folder


@pytest.fixture(scope="module")
def server(repository: Path) -> Iterator[RunningServer]:
    root = repository.parent
    (root / "tokenizer").mkdir()
    tokens = write_chatml(root / "tokenizer")
    files = {path.name: path for path in (root / "tokenizer").iterdir()}
    for release in RELEASES:
        add_line(repository, release, TokenizerArtifact("huggingface", files, (2, 0), 2), tokens)
    models = tuple(name_of(release) for release in RELEASES)
    options = ServerOptions(grpc_port=0, http_port=0, metrics_port=0, exit_timeout_s=10.0, models=models)
    with start_embedded(repository, options=options) as server:
        yield server


def add_line(repository: Path, release: str, tokenizer: TokenizerArtifact, vocab_size: int) -> None:
    """A model of one release, with the stand-in for its engine."""
    name = name_of(release)
    version = {"engine": {"kind": "tensorrt_llm", "release": release}}
    model = ModelSpec.model_validate(
        {"name": name, "checkpoint": "./c", "layout": "ensemble", "versions": {1: version}}
    )
    resolved = model.resolved(1)
    engine = write_trtllm_engine(repository.parent / name, release, vocab_size=vocab_size)
    folder = render_engine(resolved, engine, repository, mount=str(repository))
    served = ServedVersion.of(resolved, engine, tokenizer)
    render_parts(resolved, served, repository)
    render_ensemble(name, [served], repository, weights={1: 100.0}, repository=repository)
    put_standin(folder)


@pytest.mark.parametrize("release", RELEASES)
def test_a_prompt_passes_through_all_steps(server: RunningServer, release: str) -> None:
    status, body = post(
        server.http_url, name_of(release), text_input=PROMPT, max_tokens=20, bad_words="", stop_words=""
    )
    assert status == 200, body
    assert json.loads(body)["text_output"] == PROMPT

    answer = ask(server.grpc_url, name_of(release), [PROMPT], max_tokens=20)
    assert (answer.error, answer.texts) == (None, [PROMPT])


@pytest.mark.parametrize("release", RELEASES)
def test_streamed_pieces_come_one_by_one_in_their_order(server: RunningServer, release: str) -> None:
    answer = ask(server.grpc_url, name_of(release), [PROMPT], max_tokens=20, stream=np.array([[True]]))
    assert answer.error is None
    assert len(answer.texts) > 10
    assert "".join(answer.texts) == PROMPT

    asked = {"text_input": PROMPT, "max_tokens": 20, "stream": True}
    status, body = post(server.http_url, name_of(release), path="generate_stream", **asked)
    assert status == 200, body
    assert "".join(str(event["text_output"]) for event in events(body)) == PROMPT


@pytest.mark.parametrize("release", RELEASES)
def test_a_batch_of_two_prompts_is_answered_in_one_response(server: RunningServer, release: str) -> None:
    words = np.array([[b"and"], [b""]], dtype=np.object_)
    answer = ask(server.grpc_url, name_of(release), [PROMPT, "Paris"], stop_words=words)

    assert (answer.error, answer.texts) == (None, [PROMPT, "Paris"])
    assert answer.tensors["text_output"].shape == (2,)


@pytest.mark.parametrize("release", RELEASES)
def test_words_and_biases_reach_the_engine(server: RunningServer, release: str) -> None:
    plain = ask(server.grpc_url, name_of(release), ["Paris"])
    told = ask(
        server.grpc_url,
        name_of(release),
        ["Paris"],
        bad_words=np.array([[b"and"]], dtype=np.object_),
        stop_words=np.array([[b"rain"]], dtype=np.object_),
        embedding_bias_words=np.array([[b"P", b"R"]], dtype=np.object_),
        embedding_bias_weights=np.array([[2.5, -1.0]], np.float32),
        temperature=np.array([[0.5]], np.float32),
    )

    count, stops, bads = plain.tensors["output_log_probs"].ravel().tolist()
    assert stops == 2  # the second end token as a stop word of one token
    assert bads == 0  # given, with nothing in it
    assert plain.tensors["cum_log_probs"].ravel().tolist() == [0.0]
    told_count, told_stops, told_bads = told.tensors["output_log_probs"].ravel().tolist()
    assert told_count == count + 1
    assert told_stops > stops
    assert told_bads > bads
    assert told.tensors["cum_log_probs"].ravel().tolist() == [1.5]


def test_inputs_of_one_line_are_passed_over_by_no_other(server: RunningServer) -> None:
    asked = {"text_input": PROMPT, "max_tokens": 4, "lora_task_id": 3}
    status, body = post(server.http_url, name_of("0.9.0"), **asked)
    assert (status, "lora_task_id is given; this ensemble has no such input" in body) == (400, True)

    lora = {"lora_task_id": np.array([[3]], np.uint64)}
    assert ask(server.grpc_url, name_of("0.16.0"), [PROMPT], **lora).texts == [PROMPT]


def test_a_second_prompt_is_refused_by_name(server: RunningServer) -> None:
    second = np.array([[b"x"]], dtype=np.object_)
    for release in ("0.12.0", "0.19.0"):
        answer = ask(server.grpc_url, name_of(release), [PROMPT], decoder_text_input=second)
        assert "decoder_text_input is given; the engine is a text decoder alone" in str(answer.error)


def test_a_batch_names_the_prompt_that_is_wrong(server: RunningServer) -> None:
    answer = ask(server.grpc_url, name_of("0.16.0"), [PROMPT, ""])

    assert "text_input is empty; expected a prompt of at least one character (prompt 2 of 2 in the batch)" in str(
        answer.error
    )


def test_pieces_keep_their_order_in_many_streams_at_once(server: RunningServer) -> None:
    prompts = [f"{number} models and {PROMPT * 3}" for number in range(12)]

    def stream(prompt: str) -> str:
        asked = {"max_tokens": 400, "stream": np.array([[True]])}
        answer = ask(server.grpc_url, name_of("0.16.0"), [prompt], **asked)
        return answer.error or "".join(answer.texts)

    with ThreadPoolExecutor(len(prompts)) as pool:
        assert list(pool.map(stream, prompts)) == prompts


def load_changed(server: RunningServer, repository: Path, part: str, name: str, edit: Callable[[Path], None]) -> str:
    """Load a changed copy of a part of an ensemble, and give back why it does not load."""
    copy = repository / name
    shutil.copytree(repository / f"{name_of('0.16.0')}_{part}_v1", copy)
    config = copy / "config.pbtxt"
    config.write_text(config.read_text().replace(f"{name_of('0.16.0')}_{part}_v1", name))
    edit(copy)
    with Client(server.grpc_url, timeout_s=60.0) as client, pytest.raises(ClientError) as caught:
        client.load(name)
    return str(caught.value)


def with_parameter(old: str, new: str) -> Callable[[Path], None]:
    def edit(model: Path) -> None:
        config = model / "config.pbtxt"
        assert config.read_text().count(old) == 1
        config.write_text(config.read_text().replace(old, new))

    return edit


def test_a_parameter_that_is_neither_true_nor_false_is_refused_at_load(server: RunningServer, repository: Path) -> None:
    edit = with_parameter('string_value: "true"', 'string_value: "${add_special_tokens}"')
    reason = load_changed(server, repository, "preprocessing", "unfilled", edit)

    assert "parameter add_special_tokens is '${add_special_tokens}'; expected true or false" in reason


def test_special_tokens_cannot_be_shown(server: RunningServer, repository: Path) -> None:
    edit = with_parameter('string_value: "true"', 'string_value: "False"')
    reason = load_changed(server, repository, "postprocessing", "showing", edit)

    assert "parameter skip_special_tokens is false; expected true" in reason


def test_a_tokenizer_that_is_missing_is_named_at_load(server: RunningServer, repository: Path) -> None:
    reason = load_changed(
        server, repository, "preprocessing", "bare", lambda model: (model / "1/served/1/tokenizer.json").unlink()
    )

    assert "tokenizer.json cannot be read" in reason


def test_preprocessing_can_be_asked_alone(server: RunningServer) -> None:
    query = {"QUERY": np.array([["<|im_start|>a"]], dtype=np.object_), "REQUEST_OUTPUT_LEN": np.array([[4]], np.int32)}
    with Client(server.grpc_url, timeout_s=60.0) as client:
        outputs = client.infer(f"{name_of('0.16.0')}_preprocessing_v1", query).outputs

    assert outputs["INPUT_ID"][0, 0] == 1  # <|im_start|>, read as such
    assert outputs["REQUEST_INPUT_LEN"].tolist() == [[2]]
