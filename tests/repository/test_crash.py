"""Recovery: killed at any point, a change is whole or undone when the next one begins."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from tests.repository.records import read_generations
from tests.support.files import texts
from tritonforge.errors import PublishFailed, RepositoryError, RepositoryLocked
from tritonforge.locks import LockHolder
from tritonforge.places import forge_folder
from tritonforge.repository.journal import Journal, Step, undo_steps
from tritonforge.repository.layout import archive_folder, staging_folder
from tritonforge.repository.publish import Transaction, recover

FILE_EVENTS = ("open", "os.rename", "os.mkdir", "os.remove", "os.rmdir", "os.link", "shutil.rmtree", "os.truncate")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    repository = tmp_path / "models"
    publish(repository, generation=1)
    return repository


def publish(repository: Path, *, generation: int) -> None:
    """Replace one folder and one file, and add a folder, each saying which generation made it."""
    with Transaction(repository) as transaction:
        staged = []
        for name in ("engine/config.pbtxt", "gateway/config.pbtxt", f"new{generation}/config.pbtxt"):
            path = transaction.staging / name
            path.parent.mkdir()
            path.write_text(f"{name} of {generation}")
            staged.append(path.parent)
        if generation > 1:
            staged[1] = staged[1] / "config.pbtxt"
        transaction.publish(staged)


OLD = {f"{name}/config.pbtxt": f"{name}/config.pbtxt of 1" for name in ("engine", "gateway", "new1")}
NEW = OLD | {f"{name}/config.pbtxt": f"{name}/config.pbtxt of 2" for name in ("engine", "gateway", "new2")}


def publish_and_die(repository: Path, *, at_event: int) -> bool:
    """Publish in a child that kills itself at its n-th file operation; False when it got to the end."""
    pid = os.fork()
    if pid == 0:
        seen = 0

        def watch(event: str, arguments: object) -> None:
            nonlocal seen
            if event in FILE_EVENTS:
                seen += 1
                if seen == at_event:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(watch)
        try:
            publish(repository, generation=2)
        finally:
            os._exit(0)
    _, status = os.waitpid(pid, 0)
    return os.WIFSIGNALED(status)


def test_killed_at_any_point_the_repository_is_old_or_new(tmp_path: Path) -> None:
    outcomes, point, died = [], 0, True
    while died:
        point += 1
        repository = tmp_path / str(point) / "models"
        publish(repository, generation=1)
        died = publish_and_die(repository, at_event=point)

        with Transaction(repository):
            found = texts(repository)

        recorded = len(read_generations(repository))
        assert (found, recorded) in [(OLD, 1), (NEW, 2)], f"killed at file operation {point}"
        outcomes.append(recorded)
        publish(repository, generation=2)
        assert texts(repository) == NEW

    assert outcomes[-1] == 2
    assert outcomes.count(1) > 20  # it was killed before the end, many times
    assert sorted(outcomes) == outcomes  # once final, always final


def test_a_folder_in_use_is_never_missing_while_it_is_replaced(tmp_path: Path) -> None:
    point, died = 0, True
    while died:
        point += 1
        repository = tmp_path / str(point) / "models"
        publish(repository, generation=1)
        died = publish_and_die(repository, at_event=point)

        assert OLD.keys() <= texts(repository).keys(), f"killed at file operation {point}"


@pytest.mark.parametrize("renames_done", [0, 1, 2, 3, 4])
def test_an_interrupted_swap_without_kernel_support_is_undone(tmp_path: Path, renames_done: int) -> None:
    repository, forge = tmp_path / "models", tmp_path / "models.forge"
    target, staged = repository / "engine", staging_folder(forge) / "engine"
    for folder, text in ((target, "old"), (staged, "new")):
        folder.mkdir(parents=True)
        (folder / "config.pbtxt").write_text(text)
    step = Step("engine", new_inode=staged.stat().st_ino, old_inode=target.stat().st_ino)
    journal = Journal(forge, 1, (step,))
    spare, archived = journal.spare(step, "doing"), archive_folder(forge, 1) / "engine"
    archived.parent.mkdir(parents=True)
    renames = [(target, spare), (staged, target), (spare, staged), (staged, archived)]
    for source, destination in renames[:renames_done]:
        source.rename(destination)

    undo_steps(journal, repository)
    undo_steps(journal, repository)  # a second time changes nothing

    assert texts(repository) == {"engine/config.pbtxt": "old"}


def test_a_server_start_can_ask_for_recovery_alone(repository: Path) -> None:
    assert not recover(repository)
    point = 1
    while not (forge_folder(repository) / "journal.json").exists():
        assert publish_and_die(repository, at_event=point)
        point += 1

    assert recover(repository)

    assert texts(repository) == OLD
    assert not recover(repository)


def test_what_cannot_be_put_back_is_named(tmp_path: Path) -> None:
    (tmp_path / "models" / "engine").mkdir(parents=True)
    journal = Journal(tmp_path / "models.forge", 1, (Step("engine", new_inode=1, old_inode=2),))

    with pytest.raises(PublishFailed, match="engine: cannot be put back"):
        undo_steps(journal, tmp_path / "models")


def test_an_unreadable_journal_is_not_ignored(repository: Path) -> None:
    (forge_folder(repository) / "journal.json").write_text("{")

    with pytest.raises(RepositoryError, match=r"journal\.json: an unfinished change"), Transaction(repository):
        pass


def test_a_second_writer_is_told_who_holds_the_lock(repository: Path) -> None:
    with (
        Transaction(repository, purpose="publish tiny"),
        pytest.raises(RepositoryLocked, match=rf"held by process {os.getpid()} \(publish tiny\)"),
        Transaction(repository, wait_s=0),
    ):
        pass


def test_a_second_writer_waits_for_the_first(repository: Path) -> None:
    held, say_held = os.pipe()
    may_end, let_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        with Transaction(repository, purpose="first"):
            os.write(say_held, b"!")
            os.read(may_end, 1)
        os._exit(0)
    os.read(held, 1)
    waited_for = []

    def on_wait(holder: LockHolder | None) -> None:
        waited_for.append(holder)
        os.write(let_end, b"!")

    with Transaction(repository, wait_s=30, on_wait=on_wait):
        os.waitpid(pid, 0)

    assert [(holder.pid, holder.purpose) for holder in waited_for if holder] == [(pid, "first")]
    for end in (held, say_held, may_end, let_end):
        os.close(end)


def test_a_killed_writer_leaves_no_lock(repository: Path) -> None:
    assert publish_and_die(repository, at_event=12)

    with Transaction(repository, wait_s=0):
        pass
