"""Chat prompts through a checkpoint's own template."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from ...tensors import RequestRejected
from ..errors import VersionUnusable
from ..messages import Message
from .control_text import ControlTexts, Segment
from .json_files import read_special_tokens
from .template_files import DEFAULT, find_templates

EncodeSegment = Callable[[Segment], list[int]]


class TemplatePrompt:
    """Renders a chat and encodes it so that only the template writes control tokens.

    Args:
        folder: Checkpoint's tokenizer files.
        control_texts: Texts that `encode` reads as control tokens in a segment that is not literal.
        encode: Ids of a segment, without the special tokens that are added to completions.

    Raises:
        VersionUnusable: There is a template, but it does not parse, or jinja2 is missing.
    """

    def __init__(self, folder: Path, *, control_texts: Iterable[str], encode: EncodeSegment) -> None:
        self.control_texts = tuple(
            sorted({text for text in control_texts if text}, key=lambda text: (-len(text), text))
        )
        self._controls = ControlTexts(self.control_texts)
        self._encode = encode
        self._names = sorted(find_templates(folder))
        source = find_templates(folder).get(DEFAULT)
        self._template = None
        if source is not None:
            try:
                from .chat_template import ChatTemplate
            except ImportError as error:
                raise VersionUnusable(f"the chat template of {folder} needs jinja2: {error}") from error
            self._template = ChatTemplate(source, read_special_tokens(folder))

    def encode_chat(self, messages: Sequence[Message]) -> list[int]:
        """Ids of the rendered chat. Raises RequestRejected when there is no template or it refuses the chat."""
        return self.encode_segments(self.render_chat(messages))

    def encode_segments(self, segments: Sequence[Segment]) -> list[int]:
        """Ids of a rendered chat."""
        return [token for segment in segments for token in self._encode(segment)]

    def render_chat(self, messages: Sequence[Message]) -> list[Segment]:
        """The rendered chat. Raises RequestRejected when there is no template or it refuses the chat."""
        if self._template is None:
            named = f" (it has templates named {', '.join(self._names)}, but no default)" if self._names else ""
            raise RequestRejected(f"messages: the checkpoint has no chat template{named}; expected text_input")
        try:
            chat = self._controls.hide(messages)
        except RecursionError as error:
            raise RequestRejected("messages is nested too deeply") from error
        return chat.split(self._template.render(chat.messages))
