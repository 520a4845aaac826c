"""What can go wrong in the gateway, apart from a request that is wrong itself (`runtime.tensors.RequestRejected`)."""

from __future__ import annotations

import enum

# What Triton 2.51 says of a model that it does not have, or that is not loaded.
_ABSENT = ("is not ready", "is not found", "unknown model", "no available versions")

# What it says of one whose process has ended. It never answers the requests that were under way then.
_DEAD = "is not healthy"


def is_dead(reason: str) -> bool:
    """Whether an engine's error means that its process has ended, and with it all its requests."""
    return _DEAD in reason


class Status(enum.Enum):
    """Whose fault an error is, by the names that Triton gives its error codes."""

    INVALID_ARG = "INVALID_ARG"
    """The request is wrong."""
    UNAVAILABLE = "UNAVAILABLE"
    """The request may succeed later, or at another server."""
    INTERNAL = "INTERNAL"
    """The engine or the gateway failed."""


class VersionUnusable(Exception):
    """The files of an engine version, or the routes, do not let the gateway serve it; found when the gateway loads."""


class VersionBroken(Exception):
    """A request's version is one that could not be loaded, while others could.

    Args:
        number: The version.
        reason: Why it could not be loaded.
    """

    def __init__(self, number: int, reason: str) -> None:
        super().__init__(
            f"version {number} cannot be served: {reason}; build it again and load the model, or move its traffic"
        )
        self.number = number


class ServerUnsuitable(Exception):
    """The server runs with settings under which the gateway cannot reach its engines; found when the gateway loads."""


class EngineFailed(Exception):
    """An engine model did not take a request, or failed while it ran.

    Args:
        engine_model: Name of the engine's Triton model.
        reason: Triton's or the engine's own words.
    """

    def __init__(self, engine_model: str, reason: str) -> None:
        absent = any(words in reason for words in _ABSENT)
        models = f"v2/repository/models/{engine_model}"
        if is_dead(reason):
            # Triton 2.51 calls a load of a model whose files are the same a success, and does nothing.
            super().__init__(
                f"engine model {engine_model!r}: its process has ended ({reason}); unload it and load it again "
                f"(tritonforge unload {engine_model}, then load; or POST {models}/unload, then {models}/load)"
            )
        elif absent:
            load = f"tritonforge load {engine_model}, or POST {models}/load"
            super().__init__(f"engine model {engine_model!r} is not ready; load it ({load}), or move its traffic")
        else:
            super().__init__(f"engine model {engine_model!r}: {reason}")
        self.engine_model = engine_model
        self.reason = reason
        self.status = Status.UNAVAILABLE if absent or is_dead(reason) else Status.INTERNAL
