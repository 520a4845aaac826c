"""What can go wrong in the gateway, apart from a request that is wrong itself (`runtime.tensors.RequestRejected`)."""

from __future__ import annotations


class VersionUnusable(Exception):
    """The files of an engine version, or the routes, do not let the gateway serve it; found when the gateway loads."""


class EngineFailed(Exception):
    """An engine model did not take a request, or failed while it ran.

    Args:
        engine_model: Name of the engine's Triton model.
        reason: Triton's or the engine's own words.
    """

    def __init__(self, engine_model: str, reason: str) -> None:
        super().__init__(f"engine model {engine_model!r}: {reason}{_remedy(engine_model, reason)}")
        self.engine_model = engine_model
        self.reason = reason


def _remedy(engine_model: str, reason: str) -> str:
    # Triton 2.51 says `Model 'x' is not ready` for a model it does not have as well as for one that is not loaded.
    if "is not ready" in reason or "is not found" in reason or "unknown model" in reason:
        load = f"tritonforge load {engine_model}, or POST v2/repository/models/{engine_model}/load"
        return f" Load it ({load}), or move its traffic."
    return ""
