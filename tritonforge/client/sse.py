"""Server-sent events from bytes, in pieces of any size. Pure.

Follows the parsing rules of the HTML standard, section "Server-sent events".
"""

from __future__ import annotations

import re
from dataclasses import dataclass

LINE_END = re.compile(rb"\r\n|\n|\r")
BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class ServerSentEvent:
    """One event.

    Args:
        data: Its data lines, joined by newlines.
        event: Its type.
    """

    data: str
    event: str = "message"


class SseParser:
    """Takes the bytes of an event stream as they arrive and gives the events that they complete."""

    def __init__(self) -> None:
        self._line = bytearray()  # the line that has not ended yet
        self._data: list[str] = []
        self._event = ""
        self._first_line = True
        self._after_cr = False

    def feed(self, piece: bytes) -> list[ServerSentEvent]:
        """The events that `piece` completes."""
        events = []
        if self._after_cr and piece:
            # The carriage return has ended its line already; a newline right after it is the rest of the same line end.
            piece = piece.removeprefix(b"\n")
            self._after_cr = False
        start = 0
        for end in LINE_END.finditer(piece):
            self._line += piece[start : end.start()]
            start = end.end()
            self._after_cr = end.group() == b"\r" and start == len(piece)
            event = self._end_line()
            if event is not None:
                events.append(event)
        self._line += piece[start:]
        return events

    def _end_line(self) -> ServerSentEvent | None:
        line = bytes(self._line)
        self._line.clear()
        if self._first_line:
            line = line.removeprefix(BOM)
            self._first_line = False
        if not line:
            return self._dispatch()
        name, _, value = line.decode("utf-8", errors="replace").partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
        elif name == "event":
            self._event = value
        return None  # comments (empty name), ids and retry times are not needed here

    def _dispatch(self) -> ServerSentEvent | None:
        data, self._data = self._data, []
        event, self._event = self._event, ""
        return ServerSentEvent("\n".join(data), event or "message") if data else None
