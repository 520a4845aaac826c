"""The text-level request: input tensors to one checked value. Pure.

A chat stays JSON text here: how long it may be depends on the version, and is checked before it is read. That, and the
limits that need the tokenised prompt, are in `prompt`.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..tensors import Inputs, RequestRejected

# Upstream's tensors are 32 bits wide; a seed has 64.
_INT32_MAX = 2**31 - 1
_MOST_WORDS = 256
_LONGEST_WORD = 512  # characters; every token of an answer is compared with all of them


@dataclass(frozen=True, slots=True)
class Sampling:
    """How the next token is chosen. None leaves the choice to the engine, whose default is greedy.

    Args:
        temperature: 0 is greedy; above 0 without `top_k` and `top_p` samples from the whole distribution.
        top_k: At least 1; 1 is greedy.
        top_p: In (0, 1].
        repetition_penalty: Above 0; 1 changes nothing.
        presence_penalty: 0 changes nothing.
        frequency_penalty: 0 changes nothing.
        random_seed: 0 to 2**64 - 1.
        min_length: Tokens before which the end token may not come.
    """

    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    repetition_penalty: float | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    random_seed: int | None = None
    min_length: int | None = None


@dataclass(frozen=True, slots=True)
class TextRequest:
    """One request to the gateway. Exactly one of `text` and `messages` is set.

    Args:
        text: The prompt of a completion.
        messages: A chat as JSON text, to be rendered by the checkpoint's template.
        max_tokens: Most tokens to generate; None for the version's default.
        stream: Several responses as the text grows, instead of one.
        sampling: How tokens are chosen.
        stop_words: Texts that end the answer and are not part of it.
        bad_words: Texts that the engine shall not generate.
        version: Engine version that must answer; None lets the routes choose.
        sticky_key: Requests with the same key go to the same version; None for none.
        return_log_probs: Send the log probabilities of the chosen tokens.
        end_id: Token that ends the answer in place of the checkpoint's own; -1 for none at all.
        pad_id: Padding token in place of the checkpoint's own.
    """

    text: str | None
    messages: str | None
    max_tokens: int | None = None
    stream: bool = False
    sampling: Sampling = Sampling()
    stop_words: tuple[str, ...] = ()
    bad_words: tuple[str, ...] = ()
    version: int | None = None
    sticky_key: str | None = None
    return_log_probs: bool = False
    end_id: int | None = None
    pad_id: int | None = None


def parse_request(inputs: Inputs) -> TextRequest:
    """Check every input and gather them.

    Raises:
        RequestRejected: The first input that is wrong, with its value and what was expected.
    """
    text, messages = _prompt(inputs)
    beams = inputs.integer("beam_width")
    if beams is not None and beams != 1:
        raise RequestRejected(f"beam_width is {beams}; expected 1, beam search is not served")
    return TextRequest(
        text=text,
        messages=messages,
        max_tokens=inputs.integer("max_tokens", minimum=1, maximum=_INT32_MAX),
        stream=inputs.flag("stream") or False,
        sampling=_sampling(inputs),
        stop_words=_words(inputs, "stop_words"),
        bad_words=_words(inputs, "bad_words"),
        version=inputs.integer("version", minimum=1),
        sticky_key=inputs.text("sticky_key") or None,
        return_log_probs=inputs.flag("return_log_probs") or False,
        end_id=inputs.integer("end_id", minimum=-1),
        pad_id=inputs.integer("pad_id", minimum=-1),
    )


def _prompt(inputs: Inputs) -> tuple[str | None, str | None]:
    # An empty string counts as absent beside the other one: NVIDIA's clients always send text_input.
    text = inputs.text("text_input")
    chat = inputs.text("messages")
    if text and chat:
        raise RequestRejected("text_input and messages are both given; expected one of them")
    if chat:
        return None, chat
    if text:
        return text, None
    if text is None and chat is None:
        raise RequestRejected("text_input and messages are both missing; expected one of them")
    field = "text_input" if text is not None else "messages"
    raise RequestRejected(f"{field} is empty; expected a prompt of at least one character")


def _sampling(inputs: Inputs) -> Sampling:
    penalty = inputs.number("repetition_penalty", minimum=0.0)
    if penalty == 0.0:
        raise RequestRejected("repetition_penalty is 0; expected a finite number above 0")
    return Sampling(
        temperature=inputs.number("temperature", minimum=0.0),
        # Upstream's clients send 0 for "not set".
        top_k=inputs.integer("top_k", minimum=0) or None,
        top_p=inputs.number("top_p", minimum=0.0, maximum=1.0) or None,
        repetition_penalty=penalty,
        presence_penalty=inputs.number("presence_penalty"),
        frequency_penalty=inputs.number("frequency_penalty"),
        random_seed=inputs.integer("random_seed", minimum=0, maximum=2**64 - 1),
        min_length=inputs.integer("min_length", minimum=0),
    )


def _words(inputs: Inputs, name: str) -> tuple[str, ...]:
    count = inputs.arrays[name].size if name in inputs.arrays else 0
    if count > _MOST_WORDS:
        raise RequestRejected(f"{name} has {count} words; expected at most {_MOST_WORDS}")
    # NVIDIA's clients send [""] for no words.
    words = tuple(dict.fromkeys(word for word in inputs.texts(name) if word))
    longest = max((len(word) for word in words), default=0)
    if longest > _LONGEST_WORD:
        raise RequestRejected(f"{name} has a word of {longest} characters; expected at most {_LONGEST_WORD}")
    return words
