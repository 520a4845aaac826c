"""A server's refusal to the error class that fits it. Pure.

Triton says most things in words: in a gRPC stream some errors have no status at all, and several meanings share one
status. The phrases are those of Triton 2.51, seen on a real server over both protocols.
"""

from __future__ import annotations

from tritonforge.errors import InvalidRequest, ModelNotFound, ModelNotReady, Rejected

NOT_READY = ("has no available versions", "is not available", "UNAVAILABLE state", "Model version not ready")
NOT_FOUND = ("Request for unknown model", "failed to poll from model repository")
# The last is how the models of this project say that a field is wrong: its value, and what was expected.
INVALID = ("Unable to parse", "unexpected inference input", "doesn't support models with decoupled", "; expected ")
INVALID_STATUS = ("INVALID_ARGUMENT", "400")
HINTS = {
    "failed to poll from model repository": (
        "the repository has no such folder, or its config.pbtxt cannot be read: the server's log says which"
    ),
    "has no available versions": "load it, or ask `models()` for the reason",
    "doesn't support models with decoupled": "use infer_stream over gRPC: this model may send any number of responses",
    "to produce exactly 1 response": (
        "use stream instead of generate: this model sends its answer in pieces; or it sent none at all, as an ensemble "
        "does that lacks max_tokens (--max-tokens)"
    ),
}


def rejection(detail: str, *, server: str, status: str) -> Rejected:
    """The error for a refusal.

    Args:
        detail: The server's words.
        server: The address that was asked.
        status: gRPC status name or HTTP status code; empty when there is none.
    """
    detail = detail.removeprefix("[request id: <id_unknown>] ").strip()
    hint = next((text for phrase, text in HINTS.items() if phrase in detail), None)
    return _kind(detail, status)(detail, server=server, status=status, hint=hint)


def _kind(detail: str, status: str) -> type[Rejected]:
    if any(phrase in detail for phrase in NOT_READY):
        return ModelNotReady
    if any(phrase in detail for phrase in NOT_FOUND):
        return ModelNotFound
    if status in INVALID_STATUS or any(phrase in detail for phrase in INVALID):
        return InvalidRequest
    return Rejected
