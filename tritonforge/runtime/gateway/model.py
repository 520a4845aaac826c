"""The gateway as a model of Triton's Python backend. Thin: reads the configuration, adapts requests and responses."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import triton_python_backend_utils as pb_utils

from ..tensors import Array, Inputs, RequestRejected, read_inputs
from .errors import Status, VersionUnusable
from .gateway import Gateway
from .grpc_engine import GrpcEngine
from .metrics import TritonMeter
from .routing import Routes, parse_routes
from .server_address import grpc_address_of_parent
from .serving import LoadedVersions, load_versions

# Triton 2.51 first starts a coroutine and then notes it down. One that has ended by then makes an error in the log, and
# is never forgotten; so none ends before the thread that started it had its turn (Python switches threads every 5 ms).
_NOTED_AFTER_S = 0.02
_log = logging.getLogger(__name__)


class TritonPythonModel:
    """What Triton loads: text in, text out, one coroutine per request."""

    def initialize(self, args: Mapping[str, str]) -> None:
        """Read the routes and every engine version's files.

        Raises:
            VersionUnusable, ServerUnsuitable: The gateway cannot serve; Triton shows why.
        """
        config = json.loads(args["model_config"])
        parameter = config.get("parameters", {}).get("routes", {}).get("string_value", "")
        routes = parse_routes(parameter)
        folder = Path(args["model_repository"]) / args["model_version"] / "versions"
        versions = load_versions(folder)
        _check(routes, versions)
        self._gateway = Gateway(
            versions,
            routes,
            engine=GrpcEngine(grpc_address_of_parent()),
            meter=TritonMeter(config["name"]),
        )

    async def execute(self, requests: Sequence[Any]) -> None:
        """Answer requests; other calls of `execute` run while this one waits."""
        noted = asyncio.sleep(_NOTED_AFTER_S)
        await asyncio.gather(noted, *(self._serve(request) for request in requests))

    def finalize(self) -> None:
        """End the threads; Triton calls it when no request is under way."""
        self._gateway.close()

    async def _serve(self, request: Any) -> None:
        sender = _TritonSender(request.get_response_sender())
        try:
            await self._gateway.serve(_inputs_of(request), sender)
        except RequestRejected as error:
            sender.fail(str(error), Status.INVALID_ARG)
        except Exception as error:  # noqa: BLE001 (top of a request: a client must never hang)
            _log.exception("request failed in the gateway")
            sender.fail(f"the gateway failed: {type(error).__name__}: {error}", Status.INTERNAL)


class _TritonSender:
    """A response sender of Triton; after the final response it takes nothing more."""

    def __init__(self, sender: Any) -> None:
        self._sender = sender
        self._is_open = True

    def send(self, outputs: Mapping[str, Array], *, final: bool) -> None:
        tensors = [pb_utils.Tensor(name, array) for name, array in outputs.items()]
        self._send(pb_utils.InferenceResponse(output_tensors=tensors), final=final)

    def fail(self, message: str, status: Status) -> None:
        error = pb_utils.TritonError(message, getattr(pb_utils.TritonError, status.value))
        self._send(pb_utils.InferenceResponse(output_tensors=[], error=error), final=True)

    def is_gone(self) -> bool:
        return self._is_open and bool(self._sender.is_cancelled())

    def _send(self, response: Any, *, final: bool) -> None:
        if not self._is_open:
            return
        self._is_open = not final
        self._sender.send(response, flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL if final else 0)


def _inputs_of(request: Any) -> Inputs:
    try:
        return read_inputs(request)
    except pb_utils.TritonModelException as error:
        raise RequestRejected(f"the input tensors cannot be read: {error}") from error


def _check(routes: Routes, versions: LoadedVersions) -> None:
    numbers = sorted([*versions.served, *versions.broken])
    known = ", ".join(str(number) for number in numbers)
    for number, share in routes.shares.items():
        if share > 0 and number not in numbers:
            raise VersionUnusable(f"parameter routes gives version {number} a weight; served versions are {known}")
    reasons = [f"version {number} cannot be served: {reason}" for number, reason in versions.broken.items()]
    if not versions.served:
        raise VersionUnusable("; ".join(reasons))
    for reason in reasons:
        pb_utils.Logger.log_error(reason)
