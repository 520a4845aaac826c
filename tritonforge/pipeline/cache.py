"""The build cache: what was converted or compiled once is taken from here when the same is wanted again.

An entry is named by everything that decides its content. It is made beside its place and renamed into it, so that there
are no half ones; a lock for each name lets one process make it while others wait for it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tritonforge.engine.writing import naming
from tritonforge.errors import BuildError
from tritonforge.events import OnEvent
from tritonforge.locks import FileLock, LockHolder, read_holder
from tritonforge.pipeline.cache_entry import ENTRY_NAME, FILES, CacheEntry, fault_of, read_entry, seal
from tritonforge.pipeline.cache_key import NOUNS, CacheKey, changes
from tritonforge.staging import staged_folder, sweep

# The engine of a large model takes an hour or two to compile.
WAIT_S = 6 * 3600.0
_CHANGES_SHOWN = 4
_LARGE_BYTES = 1 << 30  # takes a second or more to read
# Makes the files in the folder that it is given, which does not exist yet; returns what is to be kept about them.
Make = Callable[[Path], Mapping[str, object]]


@dataclass(frozen=True, slots=True)
class Forecast:
    """What the cache has for a key.

    Args:
        entry: The entry; None when there is none.
        nearest: The entry that is most like it, when there is none.
        changes: What differs between the two, one phrase each.
    """

    entry: CacheEntry | None
    nearest: CacheEntry | None = None
    changes: tuple[str, ...] = ()

    @property
    def reason(self) -> str:
        """Why it is there or not, in one line."""
        if self.entry is not None:
            same = ", ".join(map(_same, self.entry.key.parts.items()))
            return f"made for {self.entry.made_for} at {self.entry.created}; the same are: {same}"
        if self.nearest is None:
            return "nothing of its kind is there yet"
        more = len(self.changes) - _CHANGES_SHOWN
        shown = [*self.changes[:_CHANGES_SHOWN], *([f"{more} more"] if more > 0 else [])]
        return f"against that of {self.nearest.made_for}, changed: {'; '.join(shown)}"


def _same(part: tuple[str, object]) -> str:
    """A part that is the same: by name, or that nobody knows it and so only the machine is the same."""
    name, value = part
    return f"{name} unknown (this machine)" if str(value).startswith("unknown (machine ") else name


@dataclass(frozen=True, slots=True)
class CacheSize:
    """How much a cache holds.

    Args:
        folder: Its folder.
        entries: Number of entries.
        size_bytes: Size of their files. Those that a repository shares take no space of their own there.
    """

    folder: Path
    entries: int
    size_bytes: int


class BuildCache:
    """A build cache.

    Args:
        folder: Its folder; made when something is put into it. Several repositories and processes may share it.
        wait_s: Seconds to wait for another process that makes what is wanted.
    """

    def __init__(self, folder: Path, *, wait_s: float = WAIT_S) -> None:
        self.folder = folder
        self._wait_s = wait_s

    def forecast(self, key: CacheKey) -> Forecast:
        """What the cache has for a key now. Writes nothing, and does not read the files of the entry.

        Raises:
            BuildError: It cannot be looked into.
        """
        entry = read_entry(self._place(key))
        if isinstance(entry, CacheEntry) and entry.key == key and fault_of(entry, deep=False) is None:
            return Forecast(entry)
        alike = [one for one in self._entries(key.kind) if one.key.parts.get("kind") == key.parts.get("kind")]
        others = [(changes(other.key, key), other) for other in alike if other.key != key]
        if not others:
            return Forecast(None)
        newest_first = sorted(others, key=lambda found: found[1].created, reverse=True)
        differs, nearest = min(newest_first, key=lambda found: len(found[0]))
        return Forecast(None, nearest, differs)

    @contextmanager
    def entry(self, key: CacheKey, make: Make, *, made_for: str, on_event: OnEvent) -> Iterator[CacheEntry]:
        """The entry for a key, made now when it is not there. Nobody replaces or removes it within the block.

        Args:
            key: What decides its content.
            make: Makes it.
            made_for: The version that it is for, as messages name it.
            on_event: Told whether it was there, and why not.

        Raises:
            BuildError: It cannot be written, or another process is still making it after `wait_s`.
        """
        place = self._place(key)
        what = f"{made_for}: {key.noun}"
        with naming(place.parent):
            place.parent.mkdir(parents=True, exist_ok=True)

        def tell(holder: LockHolder | None) -> None:
            on_event(f"{what}: waiting for {holder or 'another process'}")

        with FileLock(self._lock_path(key), purpose=f"{key.noun} of {made_for}", on_wait=tell) as lock:
            self._acquire(lock, key, shared=True)
            found, is_new = self._look(key, what, on_event), False
            if not isinstance(found, CacheEntry):
                self._acquire(lock, key, shared=False)
                found = self._look(key, what, on_event)  # another may have made it meanwhile
                if not isinstance(found, CacheEntry):
                    why = self.forecast(key).reason if found is None else f"damaged there: {found}"
                    on_event(f"{what}: not from the build cache: {why}")
                    found, is_new = self._make(key, make, made_for), True
                self._acquire(lock, key, shared=True)
            if not is_new:
                on_event(f"{what}: from the build cache: {Forecast(found).reason}")
            yield found

    def files_of(self, key: CacheKey) -> Path:
        """Folder that the files of an entry have, whether it is there or not."""
        return self._place(key) / FILES

    def size(self) -> CacheSize:
        """How much it holds.

        Raises:
            BuildError: It cannot be looked into.
        """
        entries = [entry for kind in NOUNS for entry in self._entries(kind)]
        return CacheSize(self.folder, len(entries), sum(entry.size_bytes for entry in entries))

    def sweep(self) -> None:
        """Remove what killed processes have left half made.

        Raises:
            BuildError: It cannot be looked into.
        """
        for kind in NOUNS:
            with naming(self.folder / kind):
                sweep(self.folder / kind)

    def _place(self, key: CacheKey) -> Path:
        return self.folder / key.kind / key.digest

    def _lock_path(self, key: CacheKey) -> Path:
        return self.folder / key.kind / f"{key.digest}.lock"

    def _entries(self, kind: str) -> list[CacheEntry]:
        with naming(self.folder / kind):
            paths = sorted((self.folder / kind).glob(f"[!.]*/{ENTRY_NAME}"))
        entries = [read_entry(path.parent) for path in paths]
        return [entry for entry in entries if isinstance(entry, CacheEntry)]

    def _acquire(self, lock: FileLock, key: CacheKey, *, shared: bool) -> None:
        path = self._lock_path(key)
        with naming(path):
            taken = lock.acquire(wait_s=self._wait_s, shared=shared)
        if not taken:
            raise BuildError(
                f"{path}: held by {read_holder(path) or 'another process'}; waited {self._wait_s:g} s",
                hint="wait until it has finished, or end that process; its lock ends with it",
            )

    def _look(self, key: CacheKey, what: str, on_event: OnEvent) -> CacheEntry | str | None:
        """The entry when it is there and as it was made; else what is wrong with it, or None."""
        place = self._place(key)
        if not place.is_dir():
            return None
        entry = read_entry(place)
        if isinstance(entry, str):
            return entry
        if entry.key != key:
            return f"{ENTRY_NAME} is of another key"
        if entry.size_bytes > _LARGE_BYTES:
            on_event(f"{what}: reading {entry.size_bytes / 1e9:,.1f} GB of the build cache, to see that they are whole")
        return fault_of(entry, deep=True) or entry

    def _make(self, key: CacheKey, make: Make, made_for: str) -> CacheEntry:
        place = self._place(key)
        started = time.monotonic()
        with naming(place), staged_folder(place, replace=True) as folder:
            about = make(folder / FILES)
            seal(folder, key, made_for=made_for, took_s=time.monotonic() - started, about=about)
        entry = read_entry(place)
        if isinstance(entry, str):
            raise BuildError(f"{place}: {entry}", hint="something else changes the build cache: build again")
        return entry
