"""The last steps of every answer: placeholder, white space at the edges, stop words, in this order. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from .edge_space import EdgeSpace
from .placeholder import Placeholder
from .stop_words import StopWords


class TextShape:
    """Shapes a growing text; what comes out does not depend on how it is cut into chunks.

    Args:
        stop_words: Texts that end the answer.
        trims_edges: Leave out white space at both ends.
        placeholder: A text of the model's, and what is shown for it.
    """

    def __init__(
        self, *, stop_words: Sequence[str], trims_edges: bool = False, placeholder: tuple[str, str] | None = None
    ) -> None:
        self._stop_words = StopWords(stop_words)
        self._placeholder = Placeholder(*placeholder) if placeholder is not None else None
        self._edge = EdgeSpace() if trims_edges else None

    @property
    def is_stopped(self) -> bool:
        """Whether a stop word was found. Nothing more is shown then."""
        return self._stop_words.found

    def push(self, text: str) -> str:
        """What of the text so far may be shown now."""
        return self._shape(text if self._placeholder is None else self._placeholder.push(text))

    def retract(self, count: int) -> None:
        """Forget the last characters, as far as they were held back as the start of a stop word."""
        self._stop_words.retract(count)

    def settle(self) -> str:
        """What was held back for the placeholder, which may still hold a stop word; then call `finish`."""
        return "" if self._placeholder is None else self._shape(self._placeholder.finish())

    def finish(self) -> str:
        """What was held back for a stop word that did not come."""
        return self._stop_words.finish()

    def _shape(self, text: str) -> str:
        return self._stop_words.push(text if self._edge is None else self._edge.push(text))
