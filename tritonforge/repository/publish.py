"""Changes of a repository as transactions: all of it happens, or nothing does, also after kill -9 or a full disk.

The change is prepared in ``<repository>.forge/staging``, recorded in a journal, and put in place by renames. What it
replaces goes to ``archive/<generation>``; ``history/<generation>.json`` is written last and makes it final.
"""

from __future__ import annotations

import contextlib
import logging
import shutil
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType

from tritonforge.errors import PublishFailed, TritonforgeError, UsageBug
from tritonforge.locks import LockHolder
from tritonforge.places import forge_folder
from tritonforge.repository.files import naming, sync, sync_tree
from tritonforge.repository.history import (
    Change,
    Generation,
    digest_of_tree,
    history_folder,
    next_number,
    record_path,
    write_generation,
)
from tritonforge.repository.journal import (
    Journal,
    do_step,
    plan_steps,
    read_journal,
    undo_steps,
    write_journal,
)
from tritonforge.repository.layout import archive_folder, owner_of, staging_folder
from tritonforge.repository.lock import RepositoryLock

log = logging.getLogger(__name__)

DEFAULT_WAIT_S = 60.0
JOURNAL_NAME = "journal.json"


class Transaction:
    """Exclusive access to a repository, as a context. Entering finishes or undoes what a crash left behind.

    Render into `staging`, then call `publish`. Leaving the context removes what was not published.

    Args:
        repository: The model repository; made when it does not exist.
        purpose: What is being done, for the history and for those who wait.
        wait_s: Seconds to wait for another writer.
        on_wait: Called once with the other writer when there is one.

    Raises:
        RepositoryLocked: On entering, when another process is still changing the repository after `wait_s`.
        PublishFailed: On entering, when the folders cannot be made or lie on different file systems.
    """

    def __init__(
        self,
        repository: Path,
        *,
        purpose: str = "publish",
        wait_s: float = DEFAULT_WAIT_S,
        on_wait: Callable[[LockHolder | None], None] | None = None,
    ) -> None:
        self.repository = repository.resolve()
        self.purpose = purpose
        self._forge = forge_folder(repository)
        self._history = history_folder(self._forge)
        self._lock = RepositoryLock(self._forge / "lock", purpose=purpose, wait_s=wait_s, on_wait=on_wait)
        self._is_open = False

    @property
    def staging(self) -> Path:
        """Folder to render into, on the repository's file system. Its layout is that of the repository."""
        if not self._is_open:
            raise UsageBug("a Transaction is used outside its `with` block")
        return staging_folder(self._forge)

    def __enter__(self) -> Transaction:
        with naming(self._forge, "made"):
            self.repository.mkdir(parents=True, exist_ok=True)
            self._forge.mkdir(exist_ok=True)
        self._check_same_file_system()
        self._lock.__enter__()
        try:
            self._recover()
            self._empty_staging()
            with naming(self._forge, "made"):
                (self._forge / "archive").mkdir(exist_ok=True)
                self._history.mkdir(exist_ok=True)
                staging_folder(self._forge).mkdir(parents=True)
        except BaseException:
            self._lock.__exit__(None, None, None)
            raise
        self._is_open = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_open = False
        try:
            if not self._journal_path.exists():  # else the next transaction needs staging to put things back
                self._empty_staging()
        finally:
            self._lock.__exit__(kind, error, trace)

    def publish(
        self,
        staged: Sequence[Path],
        *,
        apply: Callable[[], None] | None = None,
        undo: Callable[[], None] | None = None,
    ) -> Generation:
        """Put files or folders of staging in the place of those of the same path in the repository.

        Args:
            staged: Paths in `staging`: model folders, or single files such as ``<model>/config.pbtxt``; in the order
                in which they are put in place (engines before the gateway that routes to them).
            apply: Called when all are in place, to make a running server take them and to check that it does. When it
                raises, everything is put back as it was.
            undo: Called after everything was put back, to make a running server take the old state again.

        Returns:
            The new generation, as recorded.

        Raises:
            PublishFailed: Something could not be written or renamed, `apply` failed, or a folder of that name belongs
                to another model; the repository is as before.
        """
        self._refuse_folders_of_others(staged)
        self._make_durable(staged)
        journal, changes = self._plan(staged)
        is_applied = False
        try:
            write_journal(self._journal_path, journal, via=self._forge)
            for step in journal.steps:
                do_step(journal, step, self.repository)
            if apply is not None:
                is_applied = True
                apply()
            generation = self._record(journal, changes)
        except BaseException as error:
            self._put_back(journal, undo if is_applied else None, error)
            if isinstance(error, TritonforgeError) and not isinstance(error, PublishFailed):
                raise PublishFailed(
                    f"{self.repository}: not published: {error.message}; the repository is as it was before",
                    hint=error.hint,
                ) from error
            raise
        self._journal_path.unlink()
        return generation

    @property
    def _journal_path(self) -> Path:
        return self._forge / JOURNAL_NAME

    def _check_same_file_system(self) -> None:
        with naming(self._forge, "made"):
            same = self.repository.stat().st_dev == self._forge.stat().st_dev
        if not same:
            raise PublishFailed(
                f"{self.repository} and {self._forge} are on different file systems; "
                f"files cannot be renamed from one to the other",
                hint="use a folder below the mount point as the repository",
            )

    def _refuse_folders_of_others(self, staged: Sequence[Path]) -> None:
        """A model may be called as a part of another one is: `llama_engine_v1` beside `llama`."""
        for path in staged:
            there = self.repository / path.relative_to(self.staging)
            if not path.is_dir() or not there.is_dir():
                continue
            owner, other = owner_of(path), owner_of(there)
            if owner is not None and other is not None and owner != other:
                raise PublishFailed(
                    f"{there} belongs to the model {other!r}, and {owner!r} needs a folder of that name; not published",
                    hint="give one of the two another name, or publish it in a repository of its own",
                )

    def _make_durable(self, staged: Sequence[Path]) -> None:
        for path in staged:
            if path.is_dir():
                sync_tree(path)
            else:
                with naming(path, "published"):
                    sync(path)

    def _plan(self, staged: Sequence[Path]) -> tuple[Journal, tuple[Change, ...]]:
        steps = plan_steps(self.repository, self.staging, staged)
        changes = tuple(
            Change(step.path, digest_of_tree(path), step.old_inode is not None)
            for step, path in zip(steps, staged, strict=True)
        )
        return Journal(self._forge, next_number(self._forge), steps), changes

    def _record(self, journal: Journal, changes: tuple[Change, ...]) -> Generation:
        created = datetime.now(UTC).isoformat(timespec="seconds")
        generation = Generation(journal.generation, self.purpose, created, changes)
        write_generation(self._history, generation, via=self._forge)
        return generation

    def _put_back(self, journal: Journal, undo: Callable[[], None] | None, error: BaseException) -> None:
        # The record goes first: a journal with a record is a change that is final.
        record_path(self._history, journal.generation).unlink(missing_ok=True)
        self._undo(journal)
        if undo is None:
            return
        try:
            undo()
        except TritonforgeError as second:
            raise PublishFailed(
                f"{self.repository}: not published ({error}); its files are as before, but the server could not be put "
                f"back: {second.message}",
                hint=second.hint,
            ) from error

    def _undo(self, journal: Journal) -> None:
        undo_steps(journal, self.repository)
        _remove_empty(archive_folder(self._forge, journal.generation))
        self._journal_path.unlink(missing_ok=True)

    def _recover(self) -> None:
        journal = read_journal(self._journal_path)
        if journal is None:
            return
        if record_path(self._history, journal.generation).exists():
            self._journal_path.unlink()
            return
        log.warning("%s: undoing a change that was interrupted", self.repository)
        self._undo(journal)

    def _empty_staging(self) -> None:
        staging = staging_folder(self._forge).parent
        if staging.exists():
            with naming(staging, "removed"):
                shutil.rmtree(staging)


def recover(repository: Path, *, wait_s: float = DEFAULT_WAIT_S) -> bool:
    """Undo a change that a crash interrupted, if there is one. Every `Transaction` does this on entering as well.

    Args:
        repository: The model repository.
        wait_s: Seconds to wait for a writer that is at work.

    Returns:
        Whether there was something to finish or undo.

    Raises:
        RepositoryLocked: Another process is still changing the repository after `wait_s`.
    """
    if not (forge_folder(repository) / JOURNAL_NAME).exists():
        return False
    with Transaction(repository, purpose="recover", wait_s=wait_s):
        return True


def _remove_empty(folder: Path) -> None:
    """Remove a tree of empty folders; one that holds a file stays."""
    for path in sorted((folder, *folder.rglob("*")), reverse=True):
        with contextlib.suppress(OSError):
            path.rmdir()
