"""The ensemble on the real Triton: the embedded engine is its token-level step, clients are written for NVIDIA's."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from tests.runtime.ensemble.nvidia_client import Answer, ask, events, post
from tests.support.checkpoints import write_chatglm, write_llama
from tests.support.ensembles import add_model, build_engine
from tritonforge.cli.main import run
from tritonforge.client import Client
from tritonforge.errors import InvalidRequest, NoAnswer, Rejected
from tritonforge.pipeline.traffic import change_traffic
from tritonforge.repository.lint import lint
from tritonforge.server.launcher import RunningServer, start_embedded
from tritonforge.server.options import ServerOptions

pytestmark = pytest.mark.triton
PROMPT = "The capital of France is"


@dataclass(frozen=True)
class Served:
    repository: Path
    server: RunningServer

    def ask(self, model: str, *prompts: str, max_tokens: int = 12, **more: np.ndarray) -> Answer:
        return ask(self.server.grpc_url, model, prompts, max_tokens=max_tokens, **more)

    def text(self, model: str, prompt: str = PROMPT, **fields: object) -> str:
        status, body = post(self.server.http_url, model, text_input=prompt, **{"max_tokens": 12, **fields})
        assert status == 200, body
        return json.loads(body)["text_output"]


def add_gateway(repository: Path, name: str, checkpoint: Path, engine_model: str) -> None:
    """A gateway that calls the engine of an ensemble: one engine answers both."""
    add_model(
        repository,
        name,
        checkpoint,
        {1: build_engine(checkpoint, repository.parent / f"{name}-engine")},
        layout="gateway",
    )
    file = repository / name / "1" / "versions" / "1" / "serving.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "engine_model": engine_model}))


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Two language models with ensembles, the first in two versions, and a gateway beside each."""
    root = tmp_path_factory.mktemp("ensembles")
    repository = root / "models"
    repository.mkdir()
    tale, other = write_llama(root / "tale", max_position=4096), write_llama(root / "other", max_position=4096, seed=7)
    glm = write_chatglm(root / "glm")
    engines = {1: build_engine(tale, root / "tale-1"), 2: build_engine(other, root / "tale-2")}
    add_model(repository, "tale", tale, engines)
    add_model(repository, "glm", glm, {1: build_engine(glm, root / "glm-1")})
    add_gateway(repository, "tale-gateway", tale, "tale_engine_v1")
    add_gateway(repository, "glm-gateway", glm, "glm_engine_v1")
    models = ("tale", "tale_ensemble_v1", "tale_ensemble_v2", "glm", "tale-gateway", "glm-gateway")
    options = ServerOptions(grpc_port=0, http_port=0, metrics_port=0, exit_timeout_s=10.0, models=models)
    with start_embedded(repository, options=options) as server:
        yield Served(repository, server)


@pytest.mark.parametrize("model", ["tale", "glm"])
@pytest.mark.parametrize("prompt", [PROMPT, "世界 and", "a"])
def test_the_answer_is_that_of_the_gateway(served: Served, model: str, prompt: str) -> None:
    expected = served.text(f"{model}-gateway", prompt)

    assert expected
    assert served.text(model, prompt) == expected
    assert served.ask(model, prompt).texts == [expected]


def test_the_text_is_where_existing_clients_look_for_it(served: Served) -> None:
    tensors = served.ask("tale", PROMPT).tensors

    assert tensors["text_output"].shape == (1,)
    assert set(tensors) == {"text_output"}


@pytest.mark.parametrize("protocol", ["grpc", "http"])
def test_streamed_text_is_the_same_but_for_characters_that_are_cut(served: Served, protocol: str) -> None:
    whole = served.text("tale", max_tokens=40)
    if protocol == "grpc":
        pieces = served.ask("tale", PROMPT, max_tokens=40, stream=np.array([[True]])).texts
    else:
        asked = {"text_input": PROMPT, "max_tokens": 40, "bad_words": "", "stop_words": "", "stream": True}
        status, body = post(served.server.http_url, "tale", path="generate_stream", **asked)
        assert status == 200, body
        pieces = [str(event["text_output"]) for event in events(body)]

    assert len(pieces) > 10
    assert [letter for letter in "".join(pieces) if letter.isascii()] == [
        letter for letter in whole if letter.isascii()
    ]


def test_streamed_text_keeps_the_spaces_between_words(served: Served) -> None:
    prompts = ("Rome is the capital", "many requests at once", "token as it comes", "a", "b", "c", "d")
    prompt, whole = next((p, w) for p in prompts if " " in (w := served.text("glm", p, max_tokens=40)).strip())

    pieces = served.ask("glm", prompt, max_tokens=40, stream=np.array([[True]])).texts

    assert len(pieces) > 10
    assert "".join(pieces).replace("\ufffd", "") == whole.replace("\ufffd", "")


def test_what_existing_clients_send_for_nothing_is_taken(served: Served) -> None:
    nothing = np.array([[b""]], dtype=np.object_)
    expected = served.text("tale")

    answer = served.ask(
        "tale",
        PROMPT,
        bad_words=nothing,
        stop_words=nothing,
        beam_width=np.array([[1]], np.int32),
        top_k=np.array([[1]], np.int32),
        temperature=np.array([[1.0]], np.float32),
        length_penalty=np.array([[1.0]], np.float32),
        repetition_penalty=np.array([[1.0]], np.float32),
        random_seed=np.array([[0]], np.uint64),
    )
    assert (answer.error, answer.texts) == (None, [expected])


def test_stop_words_end_the_answer_behind_the_word(served: Served) -> None:
    whole = served.text("tale", max_tokens=40)
    pieces = served.ask("tale", PROMPT, max_tokens=40, stream=np.array([[True]])).texts
    word = next(piece for piece in pieces[2:] if piece.isascii() and len(piece) > 1)
    cut = served.text("tale-gateway", max_tokens=40, stop_words=word)

    answer = served.ask("tale", PROMPT, max_tokens=40, stop_words=np.array([[word.encode()]], dtype=np.object_))

    # As behind NVIDIA's backend, the word itself is part of the answer; the gateway leaves it out.
    assert answer.texts == [cut + word]
    assert 0 < len(cut) < len(whole) - len(word)


def test_log_probabilities_come_when_asked_for(served: Served) -> None:
    answer = served.ask("tale", PROMPT, return_log_probs=np.array([[True]]))

    assert answer.tensors["output_log_probs"].shape == (1, 1, 12)
    assert answer.tensors["cum_log_probs"][0, 0] == pytest.approx(answer.tensors["output_log_probs"].sum(), rel=1e-4)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"text_input": ""}, "text_input is empty; expected a prompt of at least one character"),
        ({"text_input": "a" * 3000}, "text_input has 3000 bytes; no 64 tokens (max_input_len) hold that many"),
        ({"text_input": "z" * 200}, "text_input has 200 tokens; expected at most 64 (max_input_len)"),
        ({"max_tokens": 0}, "max_tokens is 0; expected an integer from 1 to 2147483647"),
        ({"max_tokens": 5000}, "max_tokens is 5000; expected at most"),
        ({"bad_words": "the"}, "bad_words is given; engine version 1 cannot serve it, expected none"),
        ({"beam_width": 2}, "beam_width is 2; the embedded engine serves 1 only"),
        ({"embedding_bias_words": "the"}, "embedding_bias_words is given; this ensemble has no such input"),
        ({"version": 2}, "version is given; this ensemble has no such input"),
    ],
)
def test_bad_input_is_answered_over_http_with_one_clear_error(
    served: Served, fields: dict[str, object], message: str
) -> None:
    status, body = post(served.server.http_url, "tale", **{"text_input": PROMPT, "max_tokens": 4, **fields})

    assert status == 400
    assert message in json.loads(body)["error"]


def test_bad_input_is_answered_over_grpc_with_one_clear_error(served: Served) -> None:
    assert "text_input is empty" in str(served.ask("tale", "").error)
    assert "max_tokens is -1; expected" in str(served.ask("tale", "a", max_tokens=-1).error)
    biased = served.ask("tale", "a", embedding_bias_words=np.array([[b"the"]], dtype=np.object_))
    assert "embedding_bias_words" in str(biased.error)


def test_a_batch_is_refused_by_the_embedded_engine_alone(served: Served) -> None:
    answer = served.ask("tale", "a", "the capital")

    assert "a batch of 2; expected one request at a time" in str(answer.error)


def test_an_error_leaves_the_next_request_alone(served: Served) -> None:
    expected = served.text("tale")
    served.ask("tale", "")

    assert served.text("tale") == expected


def test_each_version_answers_under_its_own_name(served: Served) -> None:
    first, second = (served.text(f"tale_ensemble_v{number}") for number in (1, 2))

    assert first == served.text("tale")
    assert second != first


def test_our_client_reads_its_answers(served: Served) -> None:
    with Client(served.server.grpc_url, timeout_s=60.0) as client:
        assert client.generate("tale", PROMPT, max_tokens=12).text == served.text("tale")


@pytest.mark.parametrize("protocol", ["grpc", "http"])
@pytest.mark.parametrize("way", ["generate", "stream"])
def test_our_client_tells_no_answer_from_an_empty_one(served: Served, protocol: str, way: str) -> None:
    url = served.server.grpc_url if protocol == "grpc" else served.server.http_url
    with Client(url, timeout_s=60.0) as client:
        with pytest.raises(InvalidRequest, match="model 'tale' needs max_tokens"):
            list(getattr(client, way)("tale", PROMPT))
        # As if the model had been another when its config was read: Triton counts two inputs, and runs no step.
        config = client.config("tale")
        loosened = tuple(replace(tensor, optional=True) for tensor in config.inputs)
        client._configs["tale"] = replace(config, inputs=loosened)
        counted_here = (protocol, way) != ("http", "generate")  # there, Triton itself counts the responses
        with pytest.raises(NoAnswer if counted_here else Rejected) as caught:
            list(getattr(client, way)("tale", PROMPT))
        assert "--max-tokens" in (caught.value.hint or "")


def test_what_triton_does_without_max_tokens_is_what_the_page_says(served: Served) -> None:
    status, body = post(served.server.http_url, "tale", text_input=PROMPT)
    assert (status, "expected" in json.loads(body)["error"]) == (400, True)
    status, body = post(served.server.http_url, "tale", path="generate_stream", text_input=PROMPT, temperature=0.5)
    assert (status, "text_output" in body, "error" in body) == (200, False, False)
    assert run(["generate", "tale", PROMPT, "--url", served.server.grpc_url]) == InvalidRequest.exit_code
    assert run(["generate", "tale", PROMPT, "--max-tokens", "2", "--url", served.server.grpc_url]) == 0


def test_names_that_no_ensemble_has_are_ignored_as_parameters(served: Served) -> None:
    asked = {"text_input": PROMPT, "max_tokens": 12, "temprature": 0.1, "foo": 1}
    status, body = post(served.server.http_url, "tale", **asked)
    assert (status, json.loads(body)["text_output"]) == (200, served.text("tale"))


def test_moving_the_traffic_loses_no_request_and_reloads_no_engine(served: Served) -> None:
    first, second = (served.text(f"tale_ensemble_v{number}") for number in (1, 2))
    answers: list[list[str] | str] = []
    enough, stop = threading.Event(), threading.Event()

    def keep_asking() -> None:
        while not stop.is_set():
            answer = served.ask("tale", PROMPT)
            answers.append(answer.error or answer.texts)
            if len(answers) > 3:
                enough.set()

    threads = [threading.Thread(target=keep_asking) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        assert enough.wait(60.0)
        for number in (2, 1, 2):
            change_traffic(served.repository, "tale", {number: 100}, server=served.server.grpc_url)
        moved = served.text("tale")
    finally:
        stop.set()
        for thread in threads:
            thread.join(60.0)
        change_traffic(served.repository, "tale", {1: 100, 2: 0}, server=served.server.grpc_url)
    assert moved == second
    assert {str(answer) for answer in answers} <= {str([first]), str([second])}
    assert served.text("tale") == first
    log = served.server.log.read_text()
    assert (
        log.count("successfully loaded 'tale_engine_v1'")
        == log.count("successfully loaded 'tale_preprocessing_v2'")
        == 1
    )
    assert [finding for finding in lint(served.repository) if finding.severity.value == "error"] == []
