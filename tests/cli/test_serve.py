"""serve as its own process: ready line, signals, exit codes."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.triton_models import write_failing, write_talker
from tritonforge.client import Client
from tritonforge.launch.process import process_start
from tritonforge.server import running_server

PORTS = ["--grpc-port", "0", "--http-port", "0", "--metrics-port", "0"]


@pytest.fixture
def serve() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts `tritonforge serve`; a test that fails leaves no server behind."""
    started: list[subprocess.Popen[str]] = []

    def start(repository: Path, *options: str) -> subprocess.Popen[str]:
        argv = [sys.executable, "-m", "tritonforge", "serve", str(repository), *PORTS, *options]
        started.append(subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
        return started[-1]

    yield start
    for process in started:
        if process.poll() is None:
            process.terminate()
            process.communicate(timeout=60)


def read_json(process: subprocess.Popen[str]) -> dict[str, object]:
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line)
        if line == "}\n":
            return json.loads("".join(lines))
    pytest.fail(f"no JSON object: {lines} {process.communicate()[1]}")


@pytest.mark.triton
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_it_serves_until_it_is_asked_to_stop(serve, tmp_path: Path, number: signal.Signals, code: int):
    repository = tmp_path / "models"
    write_talker(repository)
    write_failing(repository)
    process = serve(repository, "--model", "talker", "--json")
    ready = read_json(process)
    assert ready["models"] == ["talker"]
    with Client(str(ready["grpc_url"])) as client:
        assert client.generate("talker", "Hi").text == "Hi"
        stream = client.stream("talker", "wait " * 10 + "end")
        next(stream)
        process.send_signal(number)
        assert [chunk.text for chunk in stream][-1] == "end ", "a request under way finishes"
    process.communicate(timeout=60)
    assert process.returncode == code
    assert running_server(repository) is None
    assert process_start(int(str(ready["pid"]))) is None


@pytest.mark.triton
def test_a_server_that_dies_ends_the_command_with_its_log(serve, tmp_path: Path):
    write_talker(tmp_path / "models")
    process = serve(tmp_path / "models", "--json")
    ready = read_json(process)
    os.kill(int(str(ready["pid"])), signal.SIGKILL)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 6
    assert "tritonserver exited with -9" in errors


def test_a_repository_that_does_not_exist_is_said_on_standard_error(serve, tmp_path: Path):
    process = serve(tmp_path / "nowhere")
    output, errors = process.communicate(timeout=60)
    assert (process.returncode, output) == (5, "")
    assert "no such model repository" in errors


def test_a_launcher_that_there_is_not_is_refused_with_those_there_are(serve, tmp_path: Path):
    process = serve(tmp_path, "--launcher", "docker")
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "'docker' is not 'embedded'" in errors


def test_a_taken_port_names_the_option(serve, tmp_path: Path):
    (tmp_path / "models" / "a").mkdir(parents=True)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        process = serve(tmp_path / "models", "--http-port", str(listener.getsockname()[1]))
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 6
    assert "pass another --http-port" in errors
