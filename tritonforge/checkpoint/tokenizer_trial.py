"""What `prove_tokenizer` runs in a process of its own: a tokenizer as the gateway uses it, under limits.

It writes JSON lines to standard output: ``{"step": …}`` before each step, and at the end ``{"problem": …}`` or
``{"done": true}``.
"""

from __future__ import annotations

import json
import resource
import sys
from collections.abc import Sequence
from pathlib import Path

from tritonforge.runtime.gateway.errors import VersionUnusable
from tritonforge.runtime.gateway.messages import Message
from tritonforge.runtime.gateway.tokenization.base import Tokenizer
from tritonforge.runtime.gateway.tokenization.load import load_tokenizer
from tritonforge.runtime.gateway.tokenization.template_files import DEFAULT, find_templates
from tritonforge.runtime.tensors import RequestRejected

LOAD = "load the tokenizer"
PROMPT = "encode a prompt"
TEMPLATE = "compile the chat template"
CHAT = "encode a chat"
# These read a template of the checkpoint; the others have their chat format in code.
TEMPLATED = ("huggingface", "llama_sentencepiece")
_USER: Message = {"role": "user", "content": "Hello, how are you?"}
_SYSTEM: Message = {"role": "system", "content": "You are a helpful assistant."}
# Some templates demand a system message, others do not take one.
_CHATS: Sequence[Sequence[Message]] = ([_USER], [_SYSTEM, _USER])
_MOST_SHOWN = 500


def main(argv: Sequence[str]) -> None:
    """Try the tokenizer of a folder.

    Args:
        argv: Its kind, the folder, the size of the model's vocabulary, most seconds of computing, most bytes of memory.
    """
    kind, folder, vocab_size, time_limit_s, memory_limit_bytes = argv[0], Path(argv[1]), *map(int, argv[2:])
    _limit(time_limit_s, memory_limit_bytes)
    try:
        _try(kind, folder, vocab_size)
    except Exception as error:  # noqa: BLE001 - the files are foreign, and so are the libraries that read them
        _tell(problem=_reason(error))
    else:
        _tell(done=True)


def _limit(time_limit_s: int, memory_limit_bytes: int) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (time_limit_s, time_limit_s + 1))  # also when the parent has died
    resource.setrlimit(resource.RLIMIT_DATA, (memory_limit_bytes, memory_limit_bytes))
    resource.setrlimit(resource.RLIMIT_AS, (2 * memory_limit_bytes, 2 * memory_limit_bytes))  # libraries, stacks
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _try(kind: str, folder: Path, vocab_size: int) -> None:
    has_chat = kind not in TEMPLATED
    if kind in TEMPLATED:
        _tell(step=TEMPLATE)
        source = find_templates(folder).get(DEFAULT)
        has_chat = source is not None
        if source is not None:
            from tritonforge.runtime.gateway.tokenization.chat_template import ChatTemplate  # jinja2, if need be

            ChatTemplate(source, {})
    _tell(step=LOAD)
    tokenizer = load_tokenizer(kind, folder)
    _tell(step=PROMPT)
    _check(tokenizer.encode_text("Hello, world! 1 + 2 = 3\n"), vocab_size)
    if has_chat:
        _tell(step=CHAT)
        _check(_encode_chat(tokenizer), vocab_size)


def _encode_chat(tokenizer: Tokenizer) -> list[int]:
    first: RequestRejected | None = None
    for chat in _CHATS:
        try:
            return tokenizer.encode_chat(chat)
        except RequestRejected as error:
            first = first or error
    assert first is not None
    raise first


def _check(token_ids: Sequence[int], vocab_size: int) -> None:
    if not token_ids:
        raise VersionUnusable("it gives no token")
    if max(token_ids) >= vocab_size:
        raise VersionUnusable(f"it gives token {max(token_ids)}, but the model knows {vocab_size}")


def _reason(error: BaseException) -> str:
    if isinstance(error, MemoryError) or isinstance(error.__cause__, MemoryError):
        return "it needs too much memory"
    if isinstance(error, (VersionUnusable, RequestRejected)):
        return str(error).removeprefix("messages: ")[:_MOST_SHOWN]
    return f"{type(error).__name__}: {error}"[:_MOST_SHOWN]


def _tell(**event: object) -> None:
    sys.stdout.write(json.dumps(event) + "\n")
    sys.stdout.flush()
