"""What a change of the repository is about to do, written before it is done, so that it can be undone after a crash.

A change puts files or folders from staging in the place of those of the same relative path. Old and new are told apart
by their inode numbers, which renames keep; so undoing needs no record of how far the change had come.
"""

from __future__ import annotations

import dataclasses
import errno
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tritonforge.errors import RepositoryError
from tritonforge.repository.exchange import swap
from tritonforge.repository.files import naming, replace_text, sync
from tritonforge.repository.layout import archive_folder, staging_folder

MEND_HINT = (
    "compare the repository with staging and the newest archive in the folder beside it, put right what is wrong, and "
    "remove journal.json there"
)


@dataclass(frozen=True, slots=True)
class Step:
    """One replacement.

    Args:
        path: Path relative to the repository.
        new_inode: Inode of what is put there.
        old_inode: Inode of what stood there; None when nothing did.
    """

    path: str
    new_inode: int
    old_inode: int | None


@dataclass(frozen=True, slots=True)
class Journal:
    """A change under way.

    Args:
        forge: Folder beside the repository.
        generation: Number of the generation that the change makes.
        steps: Replacements, in order.
    """

    forge: Path
    generation: int
    steps: tuple[Step, ...]

    def staged(self, step: Step) -> Path:
        """Where the new thing comes from."""
        return staging_folder(self.forge) / step.path

    def archived(self, step: Step) -> Path:
        """Where the old thing goes."""
        return archive_folder(self.forge, self.generation) / step.path

    def spare(self, step: Step, purpose: str) -> Path:
        """A free place for the moment of a swap, one for each step and direction."""
        return staging_folder(self.forge).with_name(f"{purpose}-{self.steps.index(step)}")


def plan_steps(repository: Path, staging: Path, staged: Sequence[Path]) -> tuple[Step, ...]:
    """The steps that put each of `staged` in its place."""
    steps = []
    for path in staged:
        relative = path.relative_to(staging)
        with naming(path, "published"):
            steps.append(Step(str(relative), path.stat().st_ino, _inode(repository / relative)))
    return tuple(steps)


def do_step(journal: Journal, step: Step, repository: Path) -> None:
    """Put the new thing in place and what it replaces into the archive.

    Raises:
        PublishFailed: A rename failed.
    """
    target, staged, archived = repository / step.path, journal.staged(step), journal.archived(step)
    with naming(target, "put in place"):
        if step.old_inode is None:
            staged.rename(target)
        else:
            archived.parent.mkdir(parents=True, exist_ok=True)
            swap(staged, target, spare=journal.spare(step, "doing"))
            staged.rename(archived)
        sync(target.parent)


def undo_steps(journal: Journal, repository: Path) -> None:
    """Put everything back, whatever the change had got to. May be interrupted and called again.

    Raises:
        PublishFailed: A rename failed.
    """
    for step in reversed(journal.steps):
        with naming(repository / step.path, "put back", hint=MEND_HINT):
            if step.old_inode is None:
                _take_out(journal, step, repository)
            else:
                _put_back(journal, step, repository)
            sync((repository / step.path).parent)


def write_journal(path: Path, journal: Journal, *, via: Path) -> None:
    """Write the journal, safe against a power cut.

    Raises:
        PublishFailed: It cannot be written.
    """
    value = {"generation": journal.generation, "steps": [dataclasses.asdict(step) for step in journal.steps]}
    replace_text(path, json.dumps(value, indent=2) + "\n", via=via)


def read_journal(path: Path) -> Journal | None:
    """The journal of a change that did not finish, or None when there is none.

    Raises:
        RepositoryError: It is there but cannot be read.
    """
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
        steps = tuple(Step(**step) for step in value["steps"])
        return Journal(path.parent, int(value["generation"]), steps)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise RepositoryError(
            f"{path}: an unfinished change is recorded here, but the record cannot be read ({error})",
            hint=MEND_HINT,
        ) from error


def _take_out(journal: Journal, step: Step, repository: Path) -> None:
    target = repository / step.path
    if _inode(target) == step.new_inode:
        target.rename(journal.staged(step))


def _put_back(journal: Journal, step: Step, repository: Path) -> None:
    target = repository / step.path
    places = (target, journal.staged(step), journal.archived(step), journal.spare(step, "doing"))
    old = next((path for path in places if _inode(path) == step.old_inode), None)
    if old is None:
        raise FileNotFoundError(errno.ENOENT, f"what stood there is in none of {', '.join(map(str, places))}")
    if old == target:
        return
    if _inode(target) is None:
        old.rename(target)
    else:
        swap(old, target, spare=journal.spare(step, "undoing"))


def _inode(path: Path) -> int | None:
    try:
        return path.lstat().st_ino
    except (FileNotFoundError, NotADirectoryError):
        return None
