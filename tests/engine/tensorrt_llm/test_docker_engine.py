import json
import os
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import ThreadingMixIn, UnixStreamServer

import pytest

from tests.support.trtllm_builds import LIMITS, Adapted, empty_checkpoint, tensorrt_llm_spec
from tritonforge.engine.tensorrt_llm import docker as executor_module
from tritonforge.engine.tensorrt_llm.build import build_engine
from tritonforge.engine.tensorrt_llm.docker import DockerExecutor
from tritonforge.engine.tensorrt_llm.docker_engine import connected
from tritonforge.errors import ContainerError

INFO = {"SecurityOptions": ["name=seccomp,profile=default"]}
INSPECTED = {"Id": "1", "Name": "/scripted", "Config": {"Tty": False, "Labels": {}}}
VERSION = {"ApiVersion": "1.41", "MinAPIVersion": "1.12", "Version": "20.10.24"}


class ScriptedEngine(ThreadingMixIn, UnixStreamServer):
    """Answers as a Docker Engine would, with the refusals that a test wants; for what a real one does not do on demand.

    Args:
        path: Its socket.
        refusals: Status and message, by method and the last part of the path.
    """

    daemon_threads = True

    def __init__(self, path: Path, refusals: dict[str, tuple[int, str]]) -> None:
        super().__init__(str(path), ScriptedAnswers)
        self.refusals = refusals
        self.asked: list[str] = []


class ScriptedAnswers(BaseHTTPRequestHandler):
    server: ScriptedEngine
    protocol_version = "HTTP/1.1"

    def answer(self) -> None:
        path = self.path.partition("?")[0]
        question = f"{self.command} {path.rpartition('/')[2]}"
        self.server.asked.append(f"{self.command} {self.path}")
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        known: dict[str, object] = {"GET version": VERSION, "GET info": INFO, "POST create": {"Id": "1"}}
        known["GET json"] = [] if path.endswith("/containers/json") else INSPECTED
        status, message = self.server.refusals.get(question, (200, ""))
        body = json.dumps(known.get(question, {}) if status == 200 else {"message": message}).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = do_DELETE = answer

    def address_string(self) -> str:
        return "unix"

    def log_message(self, *_: object) -> None:
        return


@pytest.fixture
def scripted(tmp_path: Path) -> Iterator[ScriptedEngine]:
    folder = Path("/tmp") / f"tf-scripted-{os.getpid()}"  # the path of a socket may have 107 characters
    folder.unlink(missing_ok=True)
    with ScriptedEngine(folder, {}) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join(10)
            folder.unlink()


def build(address: str, folder: Path, lines: list[str] | None = None) -> None:
    build_engine(
        tensorrt_llm_spec(image="image:1"),
        empty_checkpoint(folder / "checkpoint"),
        folder / "engine",
        limits=LIMITS,
        log=folder / "build.log",
        on_event=(lines if lines is not None else []).append,
        executor=Adapted(DockerExecutor(address=address)),
    )


def test_an_engine_that_does_not_run_says_how_to_start_it(tmp_path: Path):
    address = f"unix://{tmp_path}/no.sock"
    with pytest.raises(ContainerError, match=f"the Docker Engine at {address} does not run") as caught:
        build(address, tmp_path)
    assert "sudo systemctl start docker" in (caught.value.hint or "")
    assert "executor: local" in (caught.value.hint or "")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checkpoint"]


def test_a_socket_that_nobody_serves_is_the_same(tmp_path: Path):
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(tmp_path / "s"))
    with pytest.raises(ContainerError, match="does not run"), connected(f"unix://{tmp_path}/s"):
        pytest.fail("connected to nobody")


@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")  # the SDK's, of connections that fail
def test_an_engine_on_the_network_that_does_not_answer_is_named():
    with (
        pytest.raises(ContainerError, match=r"the Docker Engine at tcp://127\.0\.0\.1:1 does not answer"),
        connected("tcp://127.0.0.1:1"),
    ):
        pytest.fail("connected to nobody")


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody who may not")
def test_a_user_who_may_not_use_the_engine_learns_how(scripted: ScriptedEngine):
    Path(str(scripted.server_address)).chmod(0o600)
    os.seteuid(65534)
    try:
        with (
            pytest.raises(ContainerError, match="may not be used by this user") as caught,
            connected(f"unix://{scripted.server_address!s}"),
        ):
            pytest.fail("connected without the right to")
    finally:
        os.seteuid(0)
    assert "usermod -aG docker" in (caught.value.hint or "")


def test_docker_host_says_where_the_engine_is(scripted: ScriptedEngine, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("DOCKER_HOST", f"unix://{scripted.server_address!s}")
    with connected() as engine:
        assert engine.client.info() == INFO
        assert engine.address == f"unix://{scripted.server_address!s}"


def test_docker_context_says_where_the_engine_is(
    scripted: ScriptedEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    address = f"unix://{scripted.server_address!s}"
    digest = "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae"  # sha256 of the context's name
    meta = tmp_path / ".docker" / "contexts" / "meta" / digest / "meta.json"
    meta.parent.mkdir(parents=True)
    meta.write_text(json.dumps({"Name": "foo", "Metadata": {}, "Endpoints": {"docker": {"Host": address}}}))
    (tmp_path / ".docker" / "config.json").write_text(json.dumps({"currentContext": "foo"}))
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path / ".docker"))
    with connected() as engine:
        assert engine.address == address


@pytest.mark.parametrize(
    ("question", "said", "meant", "hint"),
    [
        (
            "POST create",
            'invalid mount config for type "bind": bind source path does not exist: /x',
            "could not create a container: it does not see this machine's folders",
            "share the folder",
        ),
        (
            "POST create",
            "write /var/lib/docker/tmp: no space left on device",
            "could not create a container: its disk is full",
            "docker system prune",
        ),
        (
            "POST start",
            'could not select device driver "" with capabilities: [[gpu]]',
            "could not start the container: it cannot give a container GPUs: it has no NVIDIA runtime",
            "nvidia-ctk",
        ),
        (
            "POST start",
            "nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.6, please update your driver",
            "the image needs a newer NVIDIA driver",
            "update the driver",
        ),
        (
            "POST start",
            "nvidia-container-cli: device error: 7: unknown device: unknown",
            "it does not have the GPUs asked for",
            "engine.gpus",
        ),
        (
            "POST start",
            "nvidia-container-cli: initialization error: load library failed: libnvidia-ml.so.1",
            "it cannot give a container GPUs",
            "nvidia-smi",
        ),
        ("GET info", "out of order", "could not say what it can do: out of order", ""),
    ],
)
def test_what_an_engine_refuses_is_explained(
    scripted: ScriptedEngine, tmp_path: Path, question: str, said: str, meant: str, hint: str
):
    scripted.refusals[question] = (500, said)
    with pytest.raises(ContainerError) as caught:
        build(f"unix://{scripted.server_address!s}", tmp_path)
    assert meant in str(caught.value)
    assert said in str(caught.value)
    assert hint in (caught.value.hint or "")
    assert sorted(path.name for path in tmp_path.iterdir()) in (["build.log", "checkpoint"], ["checkpoint"])


@pytest.mark.parametrize(
    ("runtimes", "devices", "warns"),
    [
        (["runc"], [], True),
        (["nvidia", "runc"], [], False),
        (["runc"], [{"Source": "cdi", "ID": "nvidia.com/gpu=0"}], False),
    ],
)
def test_an_engine_that_shows_no_way_to_gpus_is_warned_of_before_the_conversion(
    scripted: ScriptedEngine,
    monkeypatch: pytest.MonkeyPatch,
    runtimes: list[str],
    devices: list[object],
    *,
    warns: bool,
):
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setitem(INFO, "Runtimes", dict.fromkeys(runtimes, {}))
    monkeypatch.setitem(INFO, "DiscoveredDevices", devices)
    said: list[str] = []
    DockerExecutor(address=f"unix://{scripted.server_address!s}").prepare("image:1", on_event=said.append)
    assert len(said) == warns
    if warns:
        assert said[0].startswith("warning: the Docker Engine has no nvidia runtime (runc)")
        assert "nvidia-ctk" in said[0]


def test_what_says_nothing_of_gpus_is_no_reason_to_refuse(scripted: ScriptedEngine):
    scripted.refusals["GET info"] = (500, "out of order")
    DockerExecutor(address=f"unix://{scripted.server_address!s}").prepare("image:1", on_event=lambda _: None)


def test_a_name_that_is_taken_is_left_to_its_owner(
    scripted: ScriptedEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    names = iter(["one", "two", "three", "four", "five"])
    monkeypatch.setattr(executor_module.secrets, "token_hex", lambda _: next(names))
    scripted.refusals["POST create"] = (409, 'Conflict. The container name "/tritonforge-build-one" is already in use')
    with pytest.raises(ContainerError, match="has containers of 5 random names already"):
        build(f"unix://{scripted.server_address!s}", tmp_path)
    tried = [asked for asked in scripted.asked if "/containers/create" in asked]
    assert [asked.partition("name=")[2] for asked in tried] == [
        f"tritonforge-build-{name}" for name in ("one", "two", "three", "four", "five")
    ]
    assert not [asked for asked in scripted.asked if asked.startswith("DELETE")], "somebody else's containers"


def test_a_container_that_cannot_be_removed_is_named(scripted: ScriptedEngine, tmp_path: Path):
    lines: list[str] = []
    scripted.refusals |= {"POST start": (500, "no"), "DELETE": (500, "busy")}
    scripted.refusals = Refusing(scripted.refusals)
    with pytest.raises(ContainerError, match="could not start the container: no"):
        build(f"unix://{scripted.server_address!s}", tmp_path, lines)
    assert any("could not be removed" in line and "docker rm -f tritonforge-build-" in line for line in lines)


class Refusing(dict[str, tuple[int, str]]):
    """A refusal for a method stands for all of its paths."""

    def get(self, question: str, default: tuple[int, str]) -> tuple[int, str]:  # type: ignore[override]
        return super().get(question, super().get(question.partition(" ")[0], default))
