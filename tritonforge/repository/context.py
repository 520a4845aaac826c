"""What templates may say: one frozen dataclass per template, its whole vocabulary. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tritonforge.repository.layout import engine_model_name
from tritonforge.repository.routes import Routes, routes_text
from tritonforge.spec.limits import LimitsSpec
from tritonforge.spec.model import ResolvedVersion
from tritonforge.spec.openvino import OpenVinoEngineSpec
from tritonforge.spec.serving import DynamicBatchingSpec, InstanceGroupSpec

# Milliseconds; from the first tokens of a short prompt to a long prompt in a full queue.
FIRST_RESPONSE_BUCKETS_MS = (10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 30000)


@dataclass(frozen=True, slots=True)
class EngineContext:
    """Variables of an engine's templates.

    Args:
        name: Name of the engine model, the same as its folder.
        gateway: Name of the model that clients call.
        version: Number of the version, and name of its folder.
        server_folder: Absolute path of the version folder as the server sees it.
        max_batch_size: Requests that may run at once.
        instance_groups: How many instances, and where.
        dynamic_batching: Triton's batching in front of the engine; None leaves it off.
        parameters: The model's `parameters`, in the order in which they are written.
        histogram_buckets_ms: Buckets of Triton's first-response histogram; empty for servers before 2.52, which refuse
            a config that mentions it.
    """

    name: str
    gateway: str
    version: int
    server_folder: str
    max_batch_size: int
    instance_groups: tuple[InstanceGroupSpec, ...]
    dynamic_batching: DynamicBatchingSpec | None
    parameters: Mapping[str, str]
    histogram_buckets_ms: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class GatewayContext:
    """Variables of the gateway's templates.

    Args:
        name: Public name of the model, the same as its folder.
        max_batch_size: Largest of the versions' limits.
        instance_groups: How many gateway processes.
        routes: The `routes` parameter as JSON text.
    """

    name: str
    max_batch_size: int
    instance_groups: tuple[InstanceGroupSpec, ...]
    routes: str


def engine_context(version: ResolvedVersion, *, server_folder: str, with_histograms: bool) -> EngineContext:
    """The variables for one engine version.

    Args:
        version: What the spec asks for.
        server_folder: Absolute path of the version folder as the server sees it.
        with_histograms: The target server knows `model_metrics` (Triton 2.52 and later).
    """
    return EngineContext(
        name=engine_model_name(version.model_name, version.number),
        gateway=version.model_name,
        version=version.number,
        server_folder=server_folder,
        max_batch_size=version.limits.max_batch_size,
        instance_groups=tuple(version.serving.instance_group),
        dynamic_batching=version.serving.dynamic_batching,
        parameters=_parameters(version),
        histogram_buckets_ms=FIRST_RESPONSE_BUCKETS_MS if with_histograms else (),
    )


def gateway_context(name: str, routes: Routes, limits: Sequence[LimitsSpec]) -> GatewayContext:
    """The variables for a model's gateway.

    Args:
        name: Public name of the model.
        routes: How it splits its traffic.
        limits: Limits of each of its versions.
    """
    return GatewayContext(
        name=name,
        max_batch_size=max(limit.max_batch_size for limit in limits),
        instance_groups=(InstanceGroupSpec(kind="KIND_CPU", count=1),),
        routes=routes_text(routes),
    )


def _parameters(version: ResolvedVersion) -> dict[str, str]:
    parameters = {
        "engine_kind": version.engine.kind,
        "precision": version.engine.precision,
        "max_input_len": str(version.limits.max_input_len),
        "max_seq_len": str(version.limits.max_seq_len),
    }
    if isinstance(version.engine, OpenVinoEngineSpec):
        plugins = version.engine.plugins
        parameters["context_fmha"] = str(plugins.context_fmha).lower()
        parameters["rotary_embedding"] = str(plugins.rotary_embedding).lower()
    return parameters
