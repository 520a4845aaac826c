"""status, load, unload and generate against a real server."""

import json

import pytest

from tritonforge.cli.main import run
from tritonforge.server import RunningServer

pytestmark = pytest.mark.triton


def test_status_shows_models_and_counters(server: RunningServer, capsys: pytest.CaptureFixture[str]):
    assert run(["status", "--url", server.grpc_url, "--json"]) == 0
    status = json.loads(capsys.readouterr().out)
    assert status["ready"] is True
    assert [(m["name"], m["version"], m["state"]) for m in status["models"]] == [
        ("echo", "1", "READY"),
        ("talker", "1", "READY"),
    ]
    assert run(["status", "--url", server.http_url]) == 0
    assert "talker" in capsys.readouterr().out


def test_the_server_of_a_repository_is_found(server: RunningServer, capsys: pytest.CaptureFixture[str]):
    for protocol in ("grpc", "http"):
        arguments = ["--repository", str(server.repository), "--protocol", protocol]
        assert run(["generate", "talker", "a b", *arguments]) == 0
        assert capsys.readouterr().out == "a b\n"


@pytest.mark.parametrize("stream", [[], ["--stream"]])
def test_generate_gives_the_fields_that_others_rely_on(
    server: RunningServer, capsys: pytest.CaptureFixture[str], stream: list[str]
):
    assert run(["generate", "talker", "a b c", "--url", server.http_url, "--json", *stream]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["text"].split() == ["a", "b", "c"]
    assert (answer["engine_version"], answer["prompt_tokens"], answer["completion_tokens"]) == (3, 7, 3)
    assert answer["finish_reason"] in ("stop", "length")
    assert 0 < answer["ttft_ms"] <= answer["total_ms"]


def test_generate_passes_its_options_on(server: RunningServer, capsys: pytest.CaptureFixture[str]):
    options = [
        "--max-tokens",
        "5",
        "--temperature",
        "0.5",
        "--seed",
        "7",
        "--version",
        "2",
        "--stop",
        "x",
        "--stop",
        "y",
    ]
    assert run(["generate", "talker", "fields", "--url", server.grpc_url, *options]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out) == {
        "max_tokens": [5],
        "random_seed": [7],
        "stop_words": ["x", "y"],
        "stream": [False],
        "temperature": [0.5],
        "text_input": ["fields"],
        "version": [2],
    }
    assert "version 3" in captured.err


def test_chat_sends_the_prompt_as_a_message(server: RunningServer, capsys: pytest.CaptureFixture[str]):
    assert run(["generate", "talker", "Hi there", "--chat", "--stream", "--url", server.grpc_url]) == 0
    assert capsys.readouterr().out == "Hi there \n"


def test_a_refusal_goes_to_standard_error_with_its_exit_code(server: RunningServer, capsys: pytest.CaptureFixture[str]):
    assert run(["generate", "tolker", "Hi", "--url", server.grpc_url]) == 7
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "did you mean 'talker'?" in captured.err


def test_a_model_is_unloaded_and_loaded(server: RunningServer, capsys: pytest.CaptureFixture[str]):
    assert run(["unload", "echo", "--url", server.grpc_url, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"model": "echo", "unloaded": True}
    assert run(["load", "echo", "--url", server.http_url, "--json"]) == 0
    loaded = json.loads(capsys.readouterr().out)
    assert [(v["version"], v["state"]) for v in loaded["versions"]] == [("1", "READY")]


def test_loading_what_is_not_there_fails(server: RunningServer, capsys: pytest.CaptureFixture[str]):
    assert run(["load", "nothing", "--url", server.grpc_url]) == 7
    assert "failed to load 'nothing'" in capsys.readouterr().err


def test_unloading_what_is_not_there_fails_and_names_the_nearest(
    server: RunningServer, capsys: pytest.CaptureFixture[str]
):
    assert run(["unload", "ecko", "--url", server.grpc_url]) == 7
    assert "there is no model 'ecko' to unload" in capsys.readouterr().err
