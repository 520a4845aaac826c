"""Loading on a running server: what is at hand of the engine, the server and this machine is looked at first."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.trtllm_engines import write_trtllm_engine
from tritonforge.client import ServerInfo
from tritonforge.errors import ConnectFailed, EngineMismatch
from tritonforge.pipeline.compatibility import Advice, ServerFacts
from tritonforge.pipeline.load import check_version, facts_of, load
from tritonforge.pipeline.machine import Gpu
from tritonforge.pipeline.needs import needs_of
from tritonforge.pipeline.served import repository_of
from tritonforge.repository.layout import PublishedVersion
from tritonforge.repository.manifest import MANIFEST_NAME
from tritonforge.server.options import ServerAddress
from tritonforge.server.state import ServerState, process_start, write_state

FITS = ServerFacts(triton="2.53.0", backends=("python", "tensorrtllm"), gpus=(Gpu(0, "NVIDIA H100", "sm_90"),))
ADVICE = Advice(Path("/srv/models"), Path("/srv/forge.yaml"))
BUILD = "tritonforge build -f /srv/forge.yaml --model tiny --version 2 --replace"


def test_an_engine_of_another_release_than_its_manifest_is_refused_with_both(published: PublishedVersion) -> None:
    write_trtllm_engine(published.folder, "0.17.0")

    with pytest.raises(EngineMismatch, match=r"built by TensorRT-LLM 0\.17\.0; its manifest says 0\.16\.0") as caught:
        check_version(published, FITS, ADVICE)

    assert caught.value.hint == f"build it again: {BUILD}"


@pytest.mark.parametrize("damage", ["config.json", "rank0.engine"])
def test_an_engine_that_lacks_a_file_is_refused(published: PublishedVersion, damage: str) -> None:
    (published.folder / damage).unlink()

    with pytest.raises(EngineMismatch, match=damage):
        check_version(published, FITS, ADVICE)


class FakeServer:
    """A server of a version, which notes what it loads."""

    def __init__(self, version: str | None, url: str = "localhost:8001") -> None:
        self.version = version
        self.url = url
        self.loaded: list[str] = []

    def metadata(self) -> ServerInfo:
        if self.version is None:
            raise ConnectFailed("no answer", server=self.url)
        return ServerInfo("triton", self.version, ())

    def load(self, model: str, *, timeout_s: float | None) -> None:
        self.loaded.append(model)


@pytest.fixture
def driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A stand-in for nvidia-smi: two GPUs, sm_80 and sm_90."""
    program = tmp_path / "driver" / "nvidia-smi"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho '0, NVIDIA A100-SXM4-80GB, 8.0'\necho '1, NVIDIA H100, PCIe, 9.0'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    return program


def test_load_looks_at_the_servers_version_and_this_machines_gpus(published: PublishedVersion, driver: Path) -> None:
    repository = published.folder.parents[1]
    server, notes = FakeServer("2.53.0"), []

    load(server, "tiny_engine_v2", repository=repository, on_event=notes.append)

    assert (server.loaded, notes) == (["tiny_engine_v2"], [])
    other = FakeServer("2.52.0")
    with pytest.raises(EngineMismatch, match=r"carries TensorRT-LLM 0\.15\.0"):
        load(other, "tiny_engine_v2", repository=repository)
    assert other.loaded == []


def test_load_refuses_an_engine_for_another_gpu(published: PublishedVersion, driver: Path) -> None:
    manifest = json.loads((published.folder / MANIFEST_NAME).read_text())
    manifest["settings"]["engine"]["gpus"] = [0]
    (published.folder / MANIFEST_NAME).write_text(json.dumps(manifest))
    server = FakeServer("2.53.0")

    with pytest.raises(EngineMismatch, match=r"GPU 0 of the server is sm_80 \(NVIDIA A100-SXM4-80GB\)"):
        load(server, "tiny_engine_v2", repository=published.folder.parents[1])

    assert server.loaded == []


def test_the_gpus_of_another_machine_are_not_known_here(published: PublishedVersion, driver: Path) -> None:
    facts = facts_of(FakeServer("2.53.0", "http://gpu-box:8000"), published.folder.parents[1], needs_of(published))

    assert facts == ServerFacts(triton="2.53.0", backends=None, gpus=())


def test_a_server_that_does_not_answer_is_asked_to_load_all_the_same(published: PublishedVersion) -> None:
    server, notes = FakeServer(None), []

    load(server, "tiny_engine_v2", repository=published.folder.parents[1], on_event=notes.append)

    assert server.loaded == ["tiny_engine_v2"]
    assert any("whether the server carries" in note for note in notes)


def test_models_that_are_no_engines_are_not_looked_at(tmp_path: Path) -> None:
    server = FakeServer("2.53.0")
    load(server, "tiny", repository=tmp_path)
    load(server, "tiny_engine_v9", repository=tmp_path)
    load(server, "tiny_engine_v2", repository=None)

    assert server.loaded == ["tiny", "tiny_engine_v9", "tiny_engine_v2"]


def test_the_embedded_server_is_known_by_its_address(published: PublishedVersion) -> None:
    repository = published.folder.parents[1]
    address = ServerAddress("127.0.0.1", 5001, 5000, 5002)
    write_state(repository, ServerState(address, os.getpid(), process_start(os.getpid()) or 0, Path("log")))

    with pytest.raises(EngineMismatch, match="the embedded server has python only"):
        load(FakeServer("2.51.0", address.grpc_url), "tiny_engine_v2", repository=repository)


def test_of_a_server_whose_repository_is_not_known_nothing_is_checked_with_a_word() -> None:
    server, notes = FakeServer("2.52.0"), []

    load(server, "tiny_engine_v2", repository=None, on_event=notes.append)
    load(server, "tiny", repository=None, on_event=notes.append)

    assert server.loaded == ["tiny_engine_v2", "tiny"]
    (note,) = notes
    assert "whether tiny_engine_v2 fits the server was not checked" in note
    assert "--repository" in note


def test_the_repository_of_a_server_that_runs_here_is_found(published: PublishedVersion) -> None:
    repository = published.folder.parents[1]
    argv = [sys.executable, "-c", "input()", f"--model-repository={repository}"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE) as process:
        address = ServerAddress("127.0.0.1", 5001, 5000, 5002)
        write_state(repository, ServerState(address, process.pid, process_start(process.pid) or 0, Path("log")))
        try:
            with pytest.raises(EngineMismatch, match="the embedded server has python only"):
                load(FakeServer("2.51.0", "localhost:5001"), "tiny_engine_v2", repository=None)
            assert repository_of("http://127.0.0.1:5000") == repository
            assert repository_of("localhost:5002") is None
            assert repository_of("gpu-box:5001") is None
        finally:
            process.communicate(b"\n")
    assert repository_of("localhost:5001") is None
