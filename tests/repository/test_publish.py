"""Publishing: what is put in place, and that a failure of any kind leaves the repository as it was."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.repository.records import read_generations
from tests.repository.specs import copy_models, make_engine, make_model, render_model
from tests.support.files import contents
from tritonforge.errors import PublishFailed, ServerError, UsageBug
from tritonforge.places import forge_folder
from tritonforge.repository.exchange import swap
from tritonforge.repository.history import digest_of_tree
from tritonforge.repository.layout import archive_folder, list_models
from tritonforge.repository.publish import Transaction
from tritonforge.repository.render import render_engine


@pytest.fixture
def repository(tmp_path: Path, tiny_v1: Path) -> Path:
    """A repository with version 1 of the model `tiny`, and a hand-made model."""
    repository = tmp_path / "model_repository"
    (repository / "resnet" / "1").mkdir(parents=True)
    publish(repository, tiny_v1)
    return repository


def publish(
    repository: Path,
    rendered: Path,
    *,
    apply: Callable[[], None] | None = None,
    undo: Callable[[], None] | None = None,
) -> None:
    with Transaction(repository) as transaction:
        transaction.publish(copy_models(rendered, transaction.staging), apply=apply, undo=undo)


def test_a_model_is_published_and_recorded(repository: Path) -> None:
    assert sorted(path.name for path in repository.iterdir()) == ["resnet", "tiny", "tiny_engine_v1"]
    (generation,) = read_generations(repository)
    assert generation.number == 1
    assert [(change.path, change.replaced) for change in generation.changes] == [
        ("tiny_engine_v1", False),
        ("tiny", False),
    ]
    assert generation.changes[0].digest == digest_of_tree(repository / "tiny_engine_v1")
    assert not (forge_folder(repository) / "staging").exists()


def test_what_is_replaced_goes_to_the_archive(repository: Path, tiny_v1_v2: Path) -> None:
    before = contents(repository / "tiny")

    publish(repository, tiny_v1_v2)

    assert contents(archive_folder(forge_folder(repository), 2) / "tiny") == before
    assert [version.number for version in list_models(repository)[0].versions] == [1, 2]
    assert [generation.number for generation in read_generations(repository)] == [1, 2]


@pytest.mark.parametrize("first", ["tiny", "tiny_engine_v1"])
def test_a_model_called_as_a_part_of_another_one_does_not_take_its_place(tmp_path: Path, first: str) -> None:
    for name in ("tiny", "tiny_engine_v1"):
        render_model(make_model(name), tmp_path / "cache", tmp_path / name)
    second = "tiny" if first != "tiny" else "tiny_engine_v1"
    publish(tmp_path / "models", tmp_path / first)
    before = contents(tmp_path / "models")

    with pytest.raises(PublishFailed, match=f"tiny_engine_v1 belongs to the model '{first}', and '{second}' needs"):
        publish(tmp_path / "models", tmp_path / second)

    assert contents(tmp_path / "models") == before


def test_apply_sees_the_new_files_in_place(repository: Path, tiny_v1_v2: Path) -> None:
    seen: list[bool] = []

    publish(repository, tiny_v1_v2, apply=lambda: seen.append((repository / "tiny_engine_v2").is_dir()))

    assert seen == [True]


@pytest.mark.parametrize(
    ("failure", "expected"),
    [
        (ServerError("tiny_engine_v2 is not ready", hint="look at the log"), PublishFailed),
        (KeyboardInterrupt(), KeyboardInterrupt),
        (ZeroDivisionError(), ZeroDivisionError),
    ],
)
def test_a_failing_apply_puts_everything_back(
    repository: Path, tiny_v1_v2: Path, failure: BaseException, expected: type[BaseException]
) -> None:
    before, calls = contents(repository), []

    def apply() -> None:
        raise failure

    with pytest.raises(expected):
        publish(repository, tiny_v1_v2, apply=apply, undo=lambda: calls.append(contents(repository)))

    assert contents(repository) == before
    assert calls == [before]
    assert len(read_generations(repository)) == 1
    publish(repository, tiny_v1_v2)


def test_a_failure_says_why_and_keeps_the_hint(repository: Path, tiny_v1_v2: Path) -> None:
    def apply() -> None:
        raise ServerError("tiny_engine_v2 is not ready", hint="look at the log")

    with pytest.raises(PublishFailed, match="tiny_engine_v2 is not ready; the repository is as it was") as caught:
        publish(repository, tiny_v1_v2, apply=apply)

    assert caught.value.hint == "look at the log"


def test_a_server_that_cannot_be_put_back_is_reported_with_the_first_failure(
    repository: Path, tiny_v1_v2: Path
) -> None:
    def fail() -> None:
        raise ServerError("gone")

    with pytest.raises(PublishFailed, match=r"not published \(gone\).*could not be put back: gone"):
        publish(repository, tiny_v1_v2, apply=fail, undo=fail)


def test_an_exception_while_rendering_leaves_nothing(repository: Path) -> None:
    before = contents(repository.parent / "model_repository.forge")

    with pytest.raises(ZeroDivisionError), Transaction(repository) as transaction:
        (transaction.staging / "half").mkdir()
        raise ZeroDivisionError

    after = contents(repository.parent / "model_repository.forge")
    assert {key: value for key, value in after.items() if key != "lock"} == {
        key: value for key, value in before.items() if key != "lock"
    }


def test_staging_outside_its_context_is_a_bug_of_the_caller(repository: Path) -> None:
    with pytest.raises(UsageBug):
        _ = Transaction(repository).staging


def test_stale_staging_of_a_dead_process_is_cleaned(repository: Path) -> None:
    stale = forge_folder(repository) / "staging" / "tree" / "half"
    stale.mkdir(parents=True)

    with Transaction(repository) as transaction:
        assert list(transaction.staging.iterdir()) == []


def test_a_missing_staged_folder_is_named(repository: Path) -> None:
    with pytest.raises(PublishFailed, match="nothing-here"), Transaction(repository) as transaction:
        transaction.publish([transaction.staging / "nothing-here"])


def test_a_repository_path_that_is_a_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "models").write_text("")

    with pytest.raises(PublishFailed, match=r"models.*File exists"), Transaction(tmp_path / "models"):
        pass


@pytest.fixture
def small_disk(tmp_path: Path, tiny_v1: Path) -> Iterator[Path]:
    """A file system of 8 MiB that holds a repository with version 1 of a model."""
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", folder], capture_output=True)
    if mounted.returncode != 0:
        pytest.skip("mounting a tmpfs is not permitted here")
    try:
        publish(folder / "models", tiny_v1)
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)


def fill(folder: Path, *, leave_bytes: int) -> None:
    """Fill a file system up to `leave_bytes`."""
    usage = os.statvfs(folder)
    (folder / "filler").write_bytes(b"x" * (usage.f_bavail * usage.f_bsize - leave_bytes))


def test_a_full_disk_names_the_file_and_leaves_the_repository_as_it_was(small_disk: Path, tmp_path: Path) -> None:
    repository = small_disk / "models"
    before = contents(repository)
    engine = make_engine(tmp_path / "engine", content=b"x" * 2**20)
    fill(small_disk, leave_bytes=2**19)

    with (
        pytest.raises(PublishFailed, match=r"openvino_model\.bin.*No space left") as caught,
        Transaction(repository) as t,
    ):
        t.publish([render_engine(make_model().resolved(2), engine, t.staging, mount="/models")])

    assert caught.value.hint == "free some space on that file system"
    assert contents(repository) == before
    assert not (forge_folder(repository) / "staging").exists()


def test_a_disk_that_is_full_when_the_record_is_written_undoes_the_change(small_disk: Path, tiny_v1_v2: Path) -> None:
    repository = small_disk / "models"
    before = contents(repository)

    with pytest.raises(PublishFailed, match=r"000002\.json.*No space left"):
        publish(repository, tiny_v1_v2, apply=lambda: fill(small_disk, leave_bytes=0))

    assert contents(repository) == before
    assert len(read_generations(repository)) == 1
    assert not (forge_folder(repository) / "journal.json").exists()


def test_swap_exchanges_folders_and_files(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("text")

    swap(tmp_path / "folder", tmp_path / "file", spare=tmp_path / "spare")

    assert (tmp_path / "folder").read_text() == "text"
    assert (tmp_path / "file").is_dir()
    assert not (tmp_path / "spare").exists()
