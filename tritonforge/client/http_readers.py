"""Readers of streamed and of whole text answers over HTTP. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tritonforge.client.http_messages import parse_object
from tritonforge.client.rejections import rejection
from tritonforge.client.sse import SseParser
from tritonforge.client.text import TextPieces
from tritonforge.client.types import Chunk
from tritonforge.errors import StreamBroken

# Members of an answer that are not outputs of the model.
NOT_OUTPUTS = ("model_name", "model_version", "id", "parameters", "error")
# Once an answer has begun, its status can no longer change: later errors come as content.
STATUS_OF_BEGUN = "200"


class EventReader:
    """Reads the server-sent events of /generate_stream.

    Args:
        pieces: Makes chunks of the model's outputs.
        server: The server's address, for error messages.
    """

    def __init__(self, pieces: TextPieces, *, server: str) -> None:
        self._pieces = pieces
        self._server = server
        self._parser = SseParser()
        self._received = 0

    def feed(self, piece: bytes) -> Sequence[Chunk]:
        """The chunks that a piece of the body completes."""
        chunks = []
        for event in self._parser.feed(piece):
            content = parse_object(event.data.encode(), server=self._server)
            if "error" in content:
                self._refuse(str(content["error"]))
            chunks.append(self._pieces.read(_outputs(content), index=self._received))
            self._received += 1
        return chunks

    def end(self) -> Sequence[Chunk]:
        """Nothing: a body that has ended by itself was whole. Raises when no event had a text."""
        self._pieces.check()
        return []

    def _refuse(self, detail: str) -> None:
        if self._received > 0:
            raise StreamBroken(detail, server=self._server, chunks_received=self._received)
        raise rejection(detail, server=self._server, status=STATUS_OF_BEGUN)


class BodyReader:
    """Reads the one JSON object of /generate.

    Args:
        pieces: Makes a chunk of the model's outputs.
        server: The server's address, for error messages.
    """

    def __init__(self, pieces: TextPieces, *, server: str) -> None:
        self._pieces = pieces
        self._server = server
        self._body = bytearray()

    def feed(self, piece: bytes) -> Sequence[Chunk]:
        """Nothing yet."""
        self._body += piece
        return []

    def end(self) -> Sequence[Chunk]:
        """The whole answer as one chunk. Triton says with status 200 that a model sent more than one response."""
        content = parse_object(bytes(self._body), server=self._server)
        if "error" in content:
            raise rejection(str(content["error"]), server=self._server, status=STATUS_OF_BEGUN)
        chunk = self._pieces.read(_outputs(content), index=0)
        self._pieces.check()
        return [chunk]


def _outputs(content: Mapping[str, object]) -> Mapping[str, Sequence[object]]:
    outputs = {name: value for name, value in content.items() if name not in NOT_OUTPUTS}
    return {name: value if isinstance(value, list) else [value] for name, value in outputs.items()}
