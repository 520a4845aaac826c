import os
import signal
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support.triton_models import write_failing, write_slow, write_talker
from tritonforge.client import Client
from tritonforge.errors import NotReady, RepositoryError, ServerError, ServerExited
from tritonforge.launch.process import process_start
from tritonforge.server import RunningServer, ServerOptions, running_server, start_embedded
from tritonforge.server.launcher import wanted_models

FREE = {"grpc_port": 0, "http_port": 0, "metrics_port": 0, "ready_timeout_s": 60.0}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    repository = tmp_path_factory.mktemp("launcher") / "models"
    write_talker(repository)
    write_failing(repository)
    with start_embedded(repository, options=ServerOptions(**FREE, models=("talker",))) as running:
        yield running


def test_a_repository_that_does_not_exist_is_named(tmp_path: Path):
    with pytest.raises(RepositoryError, match="nowhere: no such model repository") as caught:
        start_embedded(tmp_path / "nowhere")
    assert "tritonforge build" in (caught.value.hint or "")


def test_an_empty_repository_is_refused(tmp_path: Path):
    (tmp_path / "README.md").write_text("not a model")
    with pytest.raises(RepositoryError, match="holds no model"):
        start_embedded(tmp_path)


def test_a_model_that_is_not_there_points_at_the_nearest(tmp_path: Path):
    (tmp_path / "smollm2").mkdir()
    with pytest.raises(RepositoryError, match="no model 'smolm2'") as caught:
        start_embedded(tmp_path, options=ServerOptions(models=("smolm2",)))
    assert caught.value.hint == "did you mean 'smollm2'?"


def test_hidden_folders_are_not_taken_for_models(tmp_path: Path):
    for name in ("b", "a", ".git"):
        (tmp_path / name).mkdir()
    assert wanted_models(tmp_path, None) == ("a", "b")
    assert wanted_models(tmp_path, ()) == ()


@pytest.mark.triton
def test_it_is_ready_with_the_wanted_models_only(server: RunningServer):
    with Client(server.grpc_url) as client:
        assert client.ready()
        assert client.model_ready("talker")
        assert not client.model_ready("failing")


@pytest.mark.triton
def test_models_run_in_the_environment_of_this_python(server: RunningServer):
    with Client(server.grpc_url) as client:
        assert client.generate("talker", "prefix").text == sys.prefix


@pytest.mark.triton
def test_log_and_state_lie_beside_the_repository(server: RunningServer):
    assert server.log == server.repository.with_name("models.forge") / "logs" / "tritonserver.log"
    assert "Started HTTPService" in server.log.read_text()
    assert running_server(server.repository) == server.address


@pytest.mark.triton
def test_it_listens_on_loopback_only(server: RunningServer):
    tables = [Path(f"/proc/net/{name}").read_text().splitlines()[1:] for name in ("tcp", "tcp6")]
    rows = [line.split() for table in tables for line in table]
    listening = dict(reversed(row[1].split(":")) for row in rows if row[3] == "0A")  # port → address, in hexadecimal
    for port in (server.address.grpc_port, server.address.http_port, server.address.metrics_port):
        assert listening[f"{port:04X}"].endswith("0100007F"), "127.0.0.1, or the same as an IPv6 address"


@pytest.mark.triton
def test_a_second_server_on_the_same_repository_is_refused(server: RunningServer):
    with pytest.raises(ServerError, match=f"already served by process {server.pid}"):
        start_embedded(server.repository, options=ServerOptions(**FREE))


@pytest.mark.triton
def test_of_two_starts_at_once_one_serves_and_its_log_is_whole(tmp_path: Path):
    repository = tmp_path / "models"
    write_talker(repository)

    def start(_number: int) -> RunningServer | ServerError:
        try:
            return start_embedded(repository, options=ServerOptions(**FREE))
        except ServerError as error:
            return error

    with ThreadPoolExecutor(2) as pool:
        outcomes = list(pool.map(start, range(2)))
    (server,) = (outcome for outcome in outcomes if isinstance(outcome, RunningServer))
    (refused,) = (outcome for outcome in outcomes if isinstance(outcome, ServerError))
    with server:
        assert f"by process {server.pid}" in refused.message or f"by process {os.getpid()}" in refused.message
        text = server.log.read_text()
        assert text.count("Started GRPCInferenceService") == text.count("Started HTTPService") == 1
        assert running_server(repository) == server.address
    with start_embedded(repository, options=ServerOptions(**FREE)):
        pass


@pytest.mark.triton
def test_a_model_that_fails_stops_the_start_with_the_servers_reason(tmp_path: Path):
    repository = tmp_path / "models"
    write_talker(repository)
    write_failing(repository)
    folder = write_failing(repository, "unreadable")
    (folder / "config.pbtxt").write_text('nme: "unreadable"')
    with pytest.raises(NotReady) as caught:
        start_embedded(repository, options=ServerOptions(**FREE))
    assert "the weights are of another model" in caught.value.message
    assert 'has no field named "nme"' in caught.value.message
    assert "talker" not in caught.value.message
    assert running_server(repository) is None


@pytest.mark.triton
def test_a_server_that_ends_early_shows_the_end_of_its_log(tmp_path: Path):
    write_talker(tmp_path / "models")
    options = ServerOptions(**FREE, log_verbose=2**40)  # more than tritonserver takes
    with pytest.raises(ServerExited, match="log-verbose"):
        start_embedded(tmp_path / "models", options=options)


@pytest.mark.triton
def test_a_model_that_takes_too_long_is_given_up(tmp_path: Path):
    write_slow(tmp_path / "models")
    with pytest.raises(NotReady, match="tritonserver with slow not ready after 2 s: the log ends with"):
        start_embedded(tmp_path / "models", options=ServerOptions(**FREE | {"ready_timeout_s": 2.0}))
    assert running_server(tmp_path / "models") is None


@pytest.mark.triton
def test_stopping_lets_a_request_finish_and_leaves_nothing(tmp_path: Path):
    repository = tmp_path / "models"
    write_talker(repository)
    with start_embedded(repository, options=ServerOptions(**FREE)) as server, Client(server.grpc_url) as client:
        stream = client.stream("talker", "wait " * 10 + "end")
        first = next(stream)
        os.kill(server.pid, signal.SIGTERM)
        text = first.text + "".join(chunk.text for chunk in stream)
        assert text.split() == ["wait"] * 10 + ["end"]
        assert server.stop() == 0
        assert server.stop() == 0, "stopping again does nothing"
    assert running_server(repository) is None
    assert process_start(server.pid) is None
