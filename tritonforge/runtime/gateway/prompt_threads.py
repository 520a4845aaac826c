"""Builds prompts beside the event loop, so that a long one, or a slow chat template, holds up no other request."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

from .prompt import Prompt, build_prompt, check_size
from .request import TextRequest
from .serving import ServedVersion

# Tokenised in about a millisecond; below it a thread would cost more than it saves.
_SHORT_CHARACTERS = 4096


class PromptThreads:
    """One thread per engine version: chats of a version whose template is slow wait for each other, and no others do.

    Tokenisers work outside of Python's global lock; a chat template has a time limit of its own.
    """

    def __init__(self) -> None:
        self._threads: dict[int, ThreadPoolExecutor] = {}

    async def build(self, request: TextRequest, version: ServedVersion) -> Prompt:
        """As `build_prompt`; short texts are tokenised at once.

        Raises:
            RequestRejected: As `build_prompt`.
        """
        if request.messages is None and len(request.text or "") <= _SHORT_CHARACTERS:
            return build_prompt(request, version)
        check_size(request, version)
        thread = self._thread_of(version.number)
        return await asyncio.get_running_loop().run_in_executor(thread, build_prompt, request, version)

    def close(self) -> None:
        """Give up prompts that no thread has begun."""
        for thread in self._threads.values():
            thread.shutdown(wait=False, cancel_futures=True)

    def _thread_of(self, number: int) -> ThreadPoolExecutor:
        if number not in self._threads:
            self._threads[number] = ThreadPoolExecutor(1, thread_name_prefix=f"prompt-v{number}")
        return self._threads[number]
