"""Two starts at once: one of them gets the repository, the other is told who has it."""

import os
from pathlib import Path

import pytest

from tritonforge.errors import ServerError
from tritonforge.launch.command import Command
from tritonforge.launch.process import Process, process_start
from tritonforge.server.claim import claimed
from tritonforge.server.options import ServerAddress
from tritonforge.server.state import ServerState, write_state

SLEEP = Command(("sleep", "60"))


def test_a_repository_is_claimed_once(tmp_path: Path):
    with (
        claimed(tmp_path / "models"),
        pytest.raises(ServerError, match=rf"models is being started or stopped by process {os.getpid()}"),
        claimed(tmp_path / "models", wait_s=0.1),
    ):
        pytest.fail("claimed twice")
    with claimed(tmp_path / "models", wait_s=0.0):
        pass


def test_all_ways_to_a_repository_lead_to_one_claim(tmp_path: Path):
    (tmp_path / "models").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "models")
    with claimed(tmp_path / "models"), pytest.raises(ServerError), claimed(tmp_path / "link", wait_s=0.0):
        pytest.fail("claimed twice")


def test_the_claim_lives_as_long_as_the_server_that_it_is_passed_to(tmp_path: Path):
    with claimed(tmp_path / "models") as descriptor:
        process = Process(SLEEP, log=tmp_path / "log", pass_fds=(descriptor,))
    with process, pytest.raises(ServerError), claimed(tmp_path / "models", wait_s=0.0):
        pytest.fail("the server still lives")
    with claimed(tmp_path / "models"):
        pass


def test_a_server_that_is_ready_is_named_with_its_address(tmp_path: Path):
    started = process_start(os.getpid())
    assert started is not None
    state = ServerState(ServerAddress("127.0.0.1", 1, 2, 3), os.getpid(), started, Path("/log"))
    with claimed(tmp_path / "models"):
        write_state(tmp_path / "models", state)
        message = rf"models is already served by process {os.getpid()} at 127\.0\.0\.1:1"
        with pytest.raises(ServerError, match=message) as caught, claimed(tmp_path / "models", wait_s=60.0):
            pytest.fail("claimed twice")
    assert caught.value.hint == f"use that server, or stop it with: kill {os.getpid()}"


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path):
    (tmp_path / "models.forge").write_text("a file")
    with pytest.raises(ServerError, match=r"models\.forge"), claimed(tmp_path / "models"):
        pytest.fail("claimed in a file")
