"""Prompts that take long are built beside the event loop."""

from __future__ import annotations

import asyncio
import dataclasses
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.runtime.gateway.requests import inputs_of
from tests.runtime.gateway.tokenizer_folders import BYTE_LEVEL, KINDS
from tests.runtime.gateway.versions import Letters, version
from tritonforge.runtime.gateway.messages import Message
from tritonforge.runtime.gateway.prompt_threads import PromptThreads
from tritonforge.runtime.gateway.request import parse_request
from tritonforge.runtime.gateway.tokenization.base import Tokenizer
from tritonforge.runtime.tensors import RequestRejected

CHAT = '[{"role": "user", "content": "a"}]'
DEADLINE_S = 20.0


class Waiting(Letters):
    """Encodes chats and long texts only when it is let to."""

    def __init__(self) -> None:
        super().__init__()
        self.may_go = threading.Event()

    def encode_text(self, text: str) -> list[int]:
        if len(text) > 1:
            assert self.may_go.wait(DEADLINE_S)
        return super().encode_text(text)


@pytest.mark.parametrize("fields", [{"messages": CHAT}, {"text_input": "a" * 5000}])
def test_other_requests_go_on_while_a_prompt_is_built(fields: dict[str, str]) -> None:
    tokenizer = Waiting()
    slow = dataclasses.replace(version(1, max_input_len=6000, max_seq_len=7000), tokenizer=tokenizer)

    async def run() -> int:
        threads = PromptThreads()
        waiting = asyncio.ensure_future(threads.build(parse_request(inputs_of(**fields)), slow))
        await threads.build(parse_request(inputs_of(text_input="a")), slow)
        await asyncio.wait_for(threads.build(parse_request(inputs_of(messages=CHAT)), version(2)), DEADLINE_S)
        assert not waiting.done()
        tokenizer.may_go.set()
        return len((await waiting).token_ids)

    assert asyncio.run(run()) in (3, 5000)


def test_what_is_wrong_in_a_chat_is_still_the_requests_fault() -> None:
    with pytest.raises(RequestRejected, match="messages is not JSON"):
        asyncio.run(PromptThreads().build(parse_request(inputs_of(messages="{")), version()))


@pytest.mark.parametrize("kind", KINDS)
def test_a_tokenizer_encodes_in_several_threads_at_once(tokenizers: Mapping[str, Tokenizer], kind: str) -> None:
    tokenizer = tokenizers[kind]
    control = "<|im_end|>" if kind == BYTE_LEVEL else "</s>"
    chat: Sequence[Message] = ({"role": "user", "content": f"the {control} capital" * 50},)
    expected = tokenizer.encode_chat(chat), tokenizer.encode_text("the capital" * 300)
    with ThreadPoolExecutor(4) as pool:
        chats = [pool.submit(tokenizer.encode_chat, chat) for _ in range(20)]
        texts = [pool.submit(tokenizer.encode_text, "the capital" * 300) for _ in range(20)]
        assert all(future.result(DEADLINE_S) == expected[0] for future in chats)
        assert all(future.result(DEADLINE_S) == expected[1] for future in texts)
