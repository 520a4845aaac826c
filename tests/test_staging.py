"""Folders that appear whole or not at all, and what is left of processes that were killed."""

import fcntl
import os
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tritonforge.staging import scratch_folder, staged_folder, sweep


@pytest.fixture
def dead_pid() -> int:
    """Process id of a process that has ended."""
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    return child.pid


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_the_folder_appears_at_the_end_with_all_that_is_in_it(tmp_path: Path) -> None:
    with staged_folder(tmp_path / "new" / "out") as folder:
        (folder / "file").write_text("text")
        assert names(tmp_path / "new") == [folder.name]
        assert str(os.getpid()) in folder.name

    assert names(tmp_path / "new") == ["out"]
    assert (tmp_path / "new" / "out" / "file").read_text() == "text"
    assert stat.S_IMODE((tmp_path / "new" / "out").stat().st_mode) & 0o555 == 0o555


def test_a_failure_leaves_neither_the_folder_nor_the_parents_it_was_given(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), staged_folder(tmp_path / "new" / "deep" / "out") as folder:
        (folder / "file").write_text("text")
        raise RuntimeError

    assert names(tmp_path) == []


def test_an_interrupt_as_soon_as_the_folder_is_there_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = Path.mkdir

    def interrupted(folder: Path, *arguments: Any, **options: Any) -> None:
        make(folder, *arguments, **options)
        if folder.suffix == ".partial":
            raise KeyboardInterrupt

    monkeypatch.setattr(Path, "mkdir", interrupted)
    with pytest.raises(KeyboardInterrupt), staged_folder(tmp_path / "new" / "out"):
        pass

    assert names(tmp_path) == []


@pytest.mark.parametrize("replace", [False, True])
def test_an_empty_folder_is_taken(tmp_path: Path, replace: bool) -> None:
    (tmp_path / "out").mkdir()

    with staged_folder(tmp_path / "out", replace=replace) as folder:
        (folder / "file").write_text("text")

    assert names(tmp_path / "out") == ["file"]


def test_a_folder_with_something_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").write_text("mine")

    with pytest.raises(OSError, match="not empty"), staged_folder(tmp_path / "out") as folder:
        (folder / "file").write_text("text")

    assert names(tmp_path) == ["out"]
    assert names(tmp_path / "out") == ["mine"]


def test_a_folder_with_something_in_it_is_replaced_when_asked(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "old").write_text("old")

    with staged_folder(tmp_path / "out", replace=True) as folder:
        (folder / "new").write_text("new")
        assert names(tmp_path / "out") == ["old"]

    assert names(tmp_path) == ["out"]
    assert names(tmp_path / "out") == ["new"]


def test_many_threads_have_a_folder_each(tmp_path: Path) -> None:
    def use(number: int) -> int:
        with scratch_folder(tmp_path, "work") as folder:
            (folder / "file").write_text(str(number))
            return int((folder / "file").read_text())

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(use, range(32))) == list(range(32))
    assert names(tmp_path) == []


def test_what_a_killed_process_left_is_removed_by_the_next(tmp_path: Path) -> None:
    script = (
        "import os, signal, sys; from pathlib import Path; from tritonforge.staging import scratch_folder\n"
        "with scratch_folder(Path(sys.argv[1]), 'work') as folder:\n"
        "    (folder / 'large').write_text('x'); os.kill(os.getpid(), signal.SIGKILL)"
    )
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=False)
    assert len(names(tmp_path)) == 1

    with scratch_folder(tmp_path, "other") as folder:
        assert names(tmp_path) == [folder.name]


def test_what_a_living_process_has_is_left_alone(tmp_path: Path) -> None:
    with scratch_folder(tmp_path, "work") as folder:
        sweep(tmp_path)
        assert folder.is_dir()


def test_what_a_process_left_that_nobody_has_collected_is_removed(tmp_path: Path) -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # ended, and still in the table of processes
    folder = tmp_path / f".work.{child.pid}-0.partial"
    folder.mkdir()

    sweep(tmp_path)

    child.wait()
    assert not folder.exists()


def test_a_folder_that_somebody_holds_is_left_alone_whatever_its_name_says(tmp_path: Path, dead_pid: int) -> None:
    """Process ids of another container mean nothing here; its lock does."""
    folder = tmp_path / f".work.{dead_pid}-0.partial"
    folder.mkdir()
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        sweep(tmp_path)
        assert folder.is_dir()
    finally:
        os.close(descriptor)
    sweep(tmp_path)
    assert not folder.exists()


@pytest.mark.parametrize("name", ["work.{}-0.partial", ".work.partial", ".work.{}.old", ".git"])
def test_what_is_not_ours_is_left_alone(tmp_path: Path, name: str, dead_pid: int) -> None:
    (tmp_path / name.format(dead_pid)).mkdir()
    sweep(tmp_path)
    assert len(names(tmp_path)) == 1


def test_a_folder_that_is_not_there_needs_no_sweeping(tmp_path: Path) -> None:
    sweep(tmp_path / "nowhere")
