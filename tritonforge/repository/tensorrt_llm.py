"""The engine model for the `tensorrtllm` backend: limits from the engine itself, tensors and parameters of its line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tritonforge.errors import RepositoryError
from tritonforge.formats.trtllm_engine import EngineInfo, read_engine_folder, same_release
from tritonforge.releases.backend import BackendLine, Tensor, backend_line
from tritonforge.releases.parameter import Parameter, parameter_text
from tritonforge.releases.table import Release, find_release, version_key
from tritonforge.repository.context import FIRST_RESPONSE_BUCKETS_MS
from tritonforge.repository.engine_source import EngineSource
from tritonforge.repository.layout import engine_model_name
from tritonforge.spec.model import ResolvedVersion
from tritonforge.spec.serving import DynamicBatchingSpec, InstanceGroupSpec
from tritonforge.spec.tensorrt_llm import TensorRtLlmEngineSpec

KIND = "tensorrt_llm"
# Parameters that are written for people and programs; the backend passes over them.
FORGE_PARAMETERS = frozenset({"engine_kind", "tensorrt_llm_release", "precision", "max_input_len", "max_seq_len"})
# Triton's first version whose configs may carry model_metrics.
FIRST_WITH_HISTOGRAMS = (2, 52)


@dataclass(frozen=True, slots=True)
class WrittenParameter:
    """A parameter as the config shows it.

    Args:
        name: Its key.
        meaning: What it does.
        value: What is written; None when it is left at the backend's default.
        default: The backend's default, in words.
    """

    name: str
    meaning: str
    value: str | None
    default: str


@dataclass(frozen=True, slots=True)
class TensorRtLlmContext:
    """Variables of the templates.

    Args:
        name: Name of the engine model, the same as its folder.
        gateway: Name of the model that clients call.
        version: Number of the version, and name of its folder.
        release: TensorRT-LLM release that built the engine and must run it.
        image: Container of Triton that carries that release.
        is_read: Tensors and parameters of the release's line were read in a tag; False when they are inferred.
        max_batch_size: Requests that the engine runs at once.
        world_size: Ranks of the engine, a GPU each.
        instance_groups: How many instances.
        dynamic_batching: Triton's batching in front of the engine; None leaves it off.
        parameters: Parameters that are written.
        defaults: Parameters that are left at the backend's default.
        forge_parameters: What the backend passes over and people and programs read.
        inputs: Inputs of the line.
        outputs: Outputs of the line.
        histogram_buckets_ms: Buckets of Triton's first-response histogram; empty for servers that do not know it.
    """

    name: str
    gateway: str
    version: int
    release: str
    image: str
    is_read: bool
    max_batch_size: int
    world_size: int
    instance_groups: tuple[InstanceGroupSpec, ...]
    dynamic_batching: DynamicBatchingSpec | None
    parameters: tuple[WrittenParameter, ...]
    defaults: tuple[WrittenParameter, ...]
    forge_parameters: Mapping[str, str]
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    histogram_buckets_ms: tuple[int, ...]


def tensorrt_llm_context(source: EngineSource) -> TensorRtLlmContext:
    """The variables for one engine version.

    Raises:
        BuildError: The engine's folder lacks its config.json or the engine of a rank.
        CorruptFile: Its config.json is not what it should be.
        RepositoryError: Another release built the engine, or the spec asks for what the engine cannot do.
    """
    engine = _engine_spec(source)
    release = find_release(engine.release)
    line = backend_line(release)
    info = read_engine_folder(source.engine.path)
    _refuse(source, engine, info)
    gpus = place_engine(source.version)
    written = tuple(_written(line, engine, info, source.server_folder, gpus))
    knows_histograms = version_key(release.containers[0].triton)[:2] >= FIRST_WITH_HISTOGRAMS
    return TensorRtLlmContext(
        name=engine_model_name(source.version.model_name, source.version.number),
        gateway=source.version.model_name,
        version=source.version.number,
        release=release.name,
        image=engine.image or release.container.image,
        is_read=line.evidence == "read",
        max_batch_size=info.max_batch_size,
        world_size=info.world_size,
        instance_groups=(InstanceGroupSpec(kind="KIND_CPU", count=1),),
        dynamic_batching=source.version.serving.dynamic_batching,
        parameters=tuple(parameter for parameter in written if parameter.value is not None),
        defaults=tuple(parameter for parameter in written if parameter.value is None),
        forge_parameters=_forge_parameters(release, engine, info),
        inputs=line.inputs,
        outputs=line.outputs,
        histogram_buckets_ms=FIRST_RESPONSE_BUCKETS_MS if source.with_histograms or knows_histograms else (),
    )


def place_engine(version: ResolvedVersion) -> tuple[int, ...]:
    """The GPUs of a version's engine, one per rank; none for the first that are visible. Pure.

    Triton's instance groups do not place this backend: it wants one instance of KIND_CPU, and takes its GPUs from a
    parameter. An instance group on GPUs is taken for what it means, as long as it means one copy of the engine.

    Args:
        version: What the spec asks for, of kind tensorrt_llm.

    Raises:
        RepositoryError: The instance groups ask for several copies, or for other GPUs than the engine block.
    """
    engine, title = version.engine, f"{version.model_name} version {version.number}"
    assert isinstance(engine, TensorRtLlmEngineSpec)
    copies = sum(group.count for group in version.serving.instance_group)
    if copies > 1:
        raise RepositoryError(
            f"{title}: serving.instance_group has {copies} copies; expected 1: each copy of a TensorRT-LLM engine "
            f"would be loaded onto the same GPUs",
            hint="write instance_group: [{count: 1}] for this version; the engine itself runs many requests at a time",
        )
    grouped = version.serving.instance_group[0].gpus
    if grouped and engine.gpus and grouped != engine.gpus:
        raise RepositoryError(
            f"{title}: serving.instance_group lists the GPUs {list(grouped)}, engine.gpus {list(engine.gpus)}",
            hint="leave gpus out of instance_group; the backend takes those of engine.gpus",
        )
    gpus = engine.gpus or grouped
    if gpus and len(gpus) != engine.ranks:
        raise RepositoryError(
            f"{title}: serving.instance_group lists {len(gpus)} GPUs; expected {engine.ranks}, one for each rank of "
            f"the engine (tensor_parallel times pipeline_parallel)",
            hint="list the GPUs in engine.gpus, and leave them out of instance_group",
        )
    return gpus


def has_paged_context_fmha(info: EngineInfo) -> bool:
    """The engine was built with paged context FMHA, which chunked context and KV cache reuse need."""
    return str(info.plugin_config.get("use_paged_context_fmha", False)).lower() in {"true", "enable"}


def _engine_spec(source: EngineSource) -> TensorRtLlmEngineSpec:
    engine = source.version.engine
    assert isinstance(engine, TensorRtLlmEngineSpec)  # the kind chose this builder
    return engine


def _refuse(source: EngineSource, engine: TensorRtLlmEngineSpec, info: EngineInfo) -> None:
    """What the backend would refuse, or take for something else, when it loads the engine."""
    folder = source.engine.path
    if not same_release(info.version, engine.release):
        raise RepositoryError(
            f"{folder}: the engine was built by TensorRT-LLM {info.version}; expected {engine.release}, as the spec "
            f"says: an engine runs under the release that built it only",
            hint="build this version again, or name the release that built it",
        )
    if info.world_size != engine.ranks:
        raise RepositoryError(
            f"{folder}: the engine has {info.world_size} ranks; expected {engine.ranks}, as the spec says "
            f"(tensor_parallel {engine.tensor_parallel} x pipeline_parallel {engine.pipeline_parallel})",
            hint="build this version again",
        )
    if engine.runtime.enable_chunked_context and not has_paged_context_fmha(info):
        raise RepositoryError(
            f"{folder}: the engine was built without paged context FMHA, and runtime.enable_chunked_context needs it",
            hint="build it with plugins.paged_context_fmha: true, or turn enable_chunked_context off",
        )


def _written(
    line: BackendLine, engine: TensorRtLlmEngineSpec, info: EngineInfo, server_folder: str, gpus: tuple[int, ...]
) -> Iterator[WrittenParameter]:
    """Every parameter of the line: filled, or with the default that it is left at."""
    filled = _filled(line, engine, info, server_folder, gpus)
    for parameter in line.parameters:
        value = filled.get(parameter.name, parameter.value)
        if value is None and parameter.must_exist:
            value = ""
        yield WrittenParameter(parameter.name, parameter.meaning, value, parameter.default or "none")


def _filled(
    line: BackendLine, engine: TensorRtLlmEngineSpec, info: EngineInfo, server_folder: str, gpus: tuple[int, ...]
) -> Mapping[str, str]:
    runtime = engine.runtime
    values = {
        "max_beam_width": str(info.max_beam_width),
        "gpt_model_path": server_folder,
        "batch_scheduler_policy": runtime.batch_scheduler_policy,
        "kv_cache_free_gpu_mem_fraction": f"{runtime.kv_cache_free_gpu_mem_fraction:g}",
        "enable_chunked_context": parameter_text(runtime.enable_chunked_context),
        "enable_kv_cache_reuse": _kv_cache_reuse(line.parameter("enable_kv_cache_reuse"), info),
    }
    if gpus:
        values["gpu_device_ids"] = ",".join(str(gpu) for gpu in gpus)
    return values | {name: parameter_text(value) for name, value in engine.runtime.parameters.items()}


def _kv_cache_reuse(parameter: Parameter | None, info: EngineInfo) -> str:
    # Written in every line: the default is not the same in all of them.
    default = (parameter.default if parameter is not None else None) or "false"
    return default if has_paged_context_fmha(info) else "false"


def _forge_parameters(release: Release, engine: TensorRtLlmEngineSpec, info: EngineInfo) -> Mapping[str, str]:
    return {
        "engine_kind": KIND,
        "tensorrt_llm_release": release.name,
        "precision": engine.precision,
        "max_input_len": str(info.max_input_len),
        "max_seq_len": str(info.max_seq_len),
    }
