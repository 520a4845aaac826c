from pathlib import Path

import click
import pytest

from tritonforge.cli.connection import choose_url
from tritonforge.cli.main import run
from tritonforge.errors import ServerError


@pytest.mark.parametrize(
    ("url", "protocol", "chosen"),
    [
        (None, None, "localhost:8001"),
        (None, "http", "http://localhost:8000"),
        ("host:1", None, "grpc://host:1"),
        ("host:1", "http", "http://host:1"),
        ("https://host:1", "http", "https://host:1"),
        ("grpc://host:1", "grpc", "grpc://host:1"),
    ],
)
def test_the_address_follows_from_what_was_given(url: str | None, protocol: str | None, chosen: str):
    assert choose_url(url, protocol, None) == chosen


def test_options_that_contradict_each_other_are_refused():
    with pytest.raises(click.UsageError, match="--protocol grpc contradicts --url http://host:1"):
        choose_url("http://host:1", "grpc", None)
    with pytest.raises(click.UsageError, match="either --url or --repository"):
        choose_url("host:1", None, Path("models"))


def test_a_repository_without_a_server_says_how_to_start_one(tmp_path: Path):
    with pytest.raises(ServerError, match="no server serves") as caught:
        choose_url(None, None, tmp_path)
    assert caught.value.hint == f"start one: tritonforge serve {tmp_path}"


@pytest.mark.parametrize(
    "arguments",
    [["status"], ["load", "m"], ["unload", "m"], ["generate", "m", "Hi"], ["generate", "m", "Hi", "--stream"]],
)
def test_no_server_ends_every_command_with_7(arguments: list[str], capsys: pytest.CaptureFixture[str]):
    assert run([*arguments, "--url", "127.0.0.1:1", "--timeout", "5", "--json"]) == 7
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "tritonforge serve" in captured.err


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("http://localhost:8000", "http://localhost:8000 is the HTTP endpoint"),
        ("https://localhost", "is the HTTP endpoint"),
        ("ftp://localhost", "unknown scheme 'ftp'"),
        ("host:port", "host:port"),
    ],
)
@pytest.mark.parametrize("command", [["build", "-f", "nowhere.yaml"], ["traffic", "nowhere", "m", "1=1"]])
@pytest.mark.parametrize("is_option", [True, False], ids=["--url", "TRITONFORGE_URL"])
def test_commands_that_change_a_repository_want_the_grpc_address(
    url: str,
    problem: str,
    command: list[str],
    is_option: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    """Before anything else is looked at: the files that are named here do not exist."""
    if not is_option:
        monkeypatch.setenv("TRITONFORGE_URL", url)
    assert run([*command, *(["--url", url] if is_option else [])]) == 2
    assert problem in capsys.readouterr().err


def test_every_command_reads_the_same_variable(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    for name in ("build", "traffic", "status", "load", "unload", "generate"):
        assert run([name, "--help"]) == 0
        assert "TRITONFORGE_URL" in capsys.readouterr().out, name


def test_a_repository_that_is_named_counts_more_than_the_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("TRITONFORGE_URL", "127.0.0.1:1")
    assert run(["status", "--repository", str(tmp_path)]) == 6
    assert "no server serves" in capsys.readouterr().err


def test_load_takes_an_address_and_the_repository_that_is_served_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    both = ["--url", "127.0.0.1:1", "--repository", str(tmp_path)]
    assert run(["load", "tiny_engine_v1", *both, "--timeout", "5"]) == 7
    assert "was not checked" not in capsys.readouterr().err
    assert run(["load", "tiny_engine_v1", "--url", "127.0.0.1:1", "--timeout", "5"]) == 7
    assert "note: whether tiny_engine_v1 fits the server was not checked" in capsys.readouterr().err
    assert run(["status", *both]) == 2
