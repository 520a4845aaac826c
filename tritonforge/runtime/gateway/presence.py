"""Notices clients that went away, also while nothing has been sent to them yet."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator

from .engine import ClientGone, Mailbox

_INTERVAL_S = 0.1


class Presence:
    """Asks for every watched request, ten times a second, whether its client is still there.

    One task for all requests: asking costs a message to the server's process, about 0.1 ms.
    """

    def __init__(self) -> None:
        self._watched: dict[Mailbox, Callable[[], bool]] = {}
        self._task: asyncio.Task[None] | None = None

    @contextlib.contextmanager
    def watch(self, is_gone: Callable[[], bool], mailbox: Mailbox) -> Iterator[None]:
        """While the context is open, put a `ClientGone` into the mailbox once `is_gone` says so."""
        self._watched[mailbox] = is_gone
        if self._task is None or self._task.done():
            self._task = asyncio.ensure_future(self._ask())
        try:
            yield
        finally:
            self._watched.pop(mailbox, None)

    async def _ask(self) -> None:
        while self._watched:
            await asyncio.sleep(_INTERVAL_S)
            for mailbox, is_gone in list(self._watched.items()):
                if is_gone():
                    self._watched.pop(mailbox, None)
                    mailbox.put(ClientGone())
