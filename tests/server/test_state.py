import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tritonforge.errors import ServerError
from tritonforge.launch.process import process_start
from tritonforge.server.options import ServerAddress
from tritonforge.server.state import (
    ServerState,
    remove_state,
    running_server,
    running_state,
    state_file,
    write_state,
)

ADDRESS = ServerAddress("127.0.0.1", 1, 2, 3)


def own_state() -> ServerState:
    started = process_start(os.getpid())
    assert started is not None
    return ServerState(ADDRESS, os.getpid(), started, Path("/log"))


def test_a_running_server_is_found(tmp_path: Path):
    repository = tmp_path / "models"
    write_state(repository, own_state())
    assert running_server(repository) == ADDRESS
    assert running_state(repository) == own_state()


def test_the_state_file_lies_outside_the_repository(tmp_path: Path):
    assert state_file(tmp_path / "models") == tmp_path / "models.forge" / "server.json"


def test_no_file_means_no_server(tmp_path: Path):
    assert running_server(tmp_path / "models") is None


def test_a_server_that_has_ended_does_not_count(tmp_path: Path):
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    started = process_start(child.pid)
    assert started is not None
    write_state(tmp_path / "models", ServerState(ADDRESS, child.pid, started, Path("/log")))
    assert running_server(tmp_path / "models") == ADDRESS
    child.communicate(b"\n", timeout=10)
    assert running_server(tmp_path / "models") is None


def test_another_process_with_the_same_id_does_not_count(tmp_path: Path):
    state = own_state()
    write_state(tmp_path / "models", ServerState(ADDRESS, state.pid, state.started_ticks - 1, state.log))
    assert running_server(tmp_path / "models") is None


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"address": {}, "pid": "x"}'])
def test_a_file_that_makes_no_sense_counts_as_none(tmp_path: Path, content: str):
    path = state_file(tmp_path / "models")
    path.parent.mkdir()
    path.write_text(content)
    assert running_server(tmp_path / "models") is None


def test_fields_of_a_newer_version_are_ignored(tmp_path: Path):
    write_state(tmp_path / "models", own_state())
    path = state_file(tmp_path / "models")
    content = json.loads(path.read_text())
    path.write_text(json.dumps(content | {"schema_version": 2, "new": 1}))
    assert running_server(tmp_path / "models") == ADDRESS


def test_only_the_server_itself_removes_its_state(tmp_path: Path):
    write_state(tmp_path / "models", own_state())
    remove_state(tmp_path / "models", pid=os.getpid() + 1)
    assert running_server(tmp_path / "models") == ADDRESS
    remove_state(tmp_path / "models", pid=os.getpid())
    assert not state_file(tmp_path / "models").exists()


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path):
    (tmp_path / "models.forge").write_text("a file")
    with pytest.raises(ServerError, match=r"models\.forge"):
        write_state(tmp_path / "models", own_state())


def test_a_link_to_the_repository_leads_to_the_same_server(tmp_path: Path):
    (tmp_path / "disk" / "models").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "disk" / "models")
    write_state(tmp_path / "link", own_state())
    assert running_server(tmp_path / "disk" / "models") == ADDRESS
