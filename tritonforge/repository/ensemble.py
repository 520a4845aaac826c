"""NVIDIA's ensemble around one engine model: names, tensors and steps. Pure.

They come from the release's table and the engine's config. Which tensors are joined is decided by what the engine model
really takes and gives.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from tritonclient.grpc.model_config_pb2 import DataType, ModelConfig, ModelInput

from tritonforge.errors import ConfigInvalid, RepositoryError
from tritonforge.releases.backend import Tensor
from tritonforge.releases.ensemble import ENGINE, POSTPROCESSING, PREPROCESSING, EnsembleLine, Joint, known_inputs
from tritonforge.repository.layout import engine_model_name
from tritonforge.repository.pbtxt import name_of
from tritonforge.spec.serving import InstanceGroupSpec

# Inputs of our gateway that no ensemble has.
GATEWAY_INPUTS = ("messages", "version", "sticky_key")


@dataclass(frozen=True, slots=True)
class EnsembleNames:
    """Names of the Triton models of one version, in the order in which its steps run, and of the ensemble around them.

    Args:
        model: Public name of the model.
        version: Version number.
    """

    model: str
    version: int

    @property
    def preprocessing(self) -> str:
        """Text to token ids."""
        return f"{self.model}_preprocessing_v{self.version}"

    @property
    def engine(self) -> str:
        """Token ids to token ids."""
        return engine_model_name(self.model, self.version)

    @property
    def postprocessing(self) -> str:
        """Token ids to text."""
        return f"{self.model}_postprocessing_v{self.version}"

    @property
    def pinned(self) -> str:
        """The ensemble of this version and no other; the one that clients call has the model's public name."""
        return f"{self.model}_ensemble_v{self.version}"

    @property
    def parts(self) -> tuple[str, str, str]:
        """All but the engine model, in the order in which they are put in place."""
        return self.preprocessing, self.postprocessing, self.pinned


@dataclass(frozen=True, slots=True)
class PartContext:
    """Variables of the templates of preprocessing and postprocessing.

    Args:
        name: Name of the model, the same as its folder.
        ensemble: Name of the ensemble that it is a step of.
        version: Number of the version, and name of its folder.
        source: Where the tensors come from, in words.
        max_batch_size: Prompts of one call.
        instance_groups: How many processes.
        has_dynamic_batching: Triton may hand over several requests in one call.
        inputs: Its inputs.
        outputs: Its outputs.
        unserved_inputs: Inputs that clients know from other ensembles or from gateways, and that this one lacks.
    """

    name: str
    ensemble: str
    version: int
    source: str
    max_batch_size: int
    instance_groups: tuple[InstanceGroupSpec, ...]
    has_dynamic_batching: bool
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    unserved_inputs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StepContext:
    """One step of an ensemble.

    Args:
        model_name: The step's model.
        input_map: The model's inputs and the ensemble's tensors that they are joined to, sorted.
        output_map: Its outputs, likewise.
    """

    model_name: str
    input_map: tuple[tuple[str, str], ...]
    output_map: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class EnsembleContext:
    """Variables of an ensemble's templates.

    Args:
        name: Name of the ensemble, the same as its folder.
        version: Name of its version folder.
        source: Where tensors and joints come from, in words.
        max_batch_size: Prompts of one request.
        decoupled: Whether the engine model is.
        inputs: Its inputs.
        outputs: Its outputs.
        steps: Preprocessing, engine, postprocessing.
        pinned_name: Name of the ensemble of the version that the steps name.
        routes: The `routes` parameter of the ensemble that clients call; None for one of a certain version.
    """

    name: str
    version: int
    source: str
    max_batch_size: int
    decoupled: bool
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    steps: tuple[StepContext, ...]
    pinned_name: str
    routes: str | None = None


def source_words(line: EnsembleLine) -> str:
    """Where the tensors of a line come from, in words, for comments."""
    if line.evidence == "read":
        return f"tensorrtllm_backend {line.line}"
    return f"tensorrtllm_backend before {line.line} ({line.evidence}: {line.source})"


def part_context(line: EnsembleLine, names: EnsembleNames, step: str, ensemble: EnsembleContext) -> PartContext:
    """The variables of preprocessing or postprocessing.

    Args:
        line: The ensemble of the engine's release.
        names: Names of the models.
        step: `PREPROCESSING` or `POSTPROCESSING`.
        ensemble: The ensemble around them.
    """
    part = line.steps[step]
    served = {tensor.name for tensor in ensemble.inputs}
    return PartContext(
        name=names.preprocessing if step == PREPROCESSING else names.postprocessing,
        ensemble=names.pinned,
        version=names.version,
        source=source_words(line),
        max_batch_size=ensemble.max_batch_size,
        instance_groups=(InstanceGroupSpec(kind="KIND_CPU", count=1),),
        has_dynamic_batching=part.has_dynamic_batching,
        inputs=part.inputs,
        outputs=part.outputs,
        unserved_inputs=tuple(name for name in (*known_inputs(), *GATEWAY_INPUTS) if name not in served),
    )


def ensemble_context(line: EnsembleLine, names: EnsembleNames, engine: ModelConfig) -> EnsembleContext:
    """The variables of one version's ensemble.

    Args:
        line: The ensemble of the engine's release.
        names: Names of the models.
        engine: Config of the engine model: only what it has is joined.

    Raises:
        ConfigInvalid: The engine model needs a tensor that the ensemble does not have.
    """
    _refuse_unknown(line, names, engine)
    before, behind = line.steps[PREPROCESSING], line.steps[POSTPROCESSING]
    to_engine = _those(line.steps[ENGINE].input_joints, tensors={tensor.name for tensor in engine.input})
    from_text = _those(before.output_joints, ensemble_tensors=_ensemble_tensors(to_engine))
    fed = {joint.tensor for joint in from_text}
    of_text = [joint for joint in before.input_joints if joint.feeds is None or joint.feeds in fed]
    from_engine = _those(line.steps[ENGINE].output_joints, tensors={tensor.name for tensor in engine.output})
    to_text = _those(behind.input_joints, ensemble_tensors=_ensemble_tensors(from_engine))
    # OUT_X carries X through; nothing else but the text is made here.
    of_answer = _those(behind.output_joints, tensors={"OUTPUT", *(f"OUT_{joint.tensor}" for joint in to_text)})
    outputs = _ensemble_tensors([*from_engine, *of_answer])
    read = _ensemble_tensors([*of_text, *to_engine, *to_text])
    shown = {tensor.name for tensor in line.outputs}
    from_engine = [joint for joint in from_engine if joint.ensemble_tensor in read | shown]
    return EnsembleContext(
        name=names.pinned,
        version=names.version,
        source=source_words(line) + line.remark_on_joints,
        max_batch_size=engine.max_batch_size,
        decoupled=engine.model_transaction_policy.decoupled,
        inputs=tuple(tensor for tensor in line.inputs if tensor.name in read),
        outputs=tuple(tensor for tensor in line.outputs if tensor.name in outputs),
        steps=(
            _step(names.preprocessing, of_text, from_text),
            _step(names.engine, to_engine, from_engine),
            _step(names.postprocessing, to_text, of_answer),
        ),
        pinned_name=names.pinned,
    )


def public_context(pinned: ModelConfig, names: EnsembleNames, *, version: int, routes: str) -> EnsembleContext:
    """The variables of the ensemble that clients call: the same as one version's, under the model's public name.

    Args:
        pinned: Config of that version's ensemble, as it lies in the repository.
        names: Names of the models.
        version: Name of the version folder.
        routes: The `routes` parameter.
    """
    return EnsembleContext(
        name=names.model,
        version=version,
        source=names.pinned,
        max_batch_size=pinned.max_batch_size,
        decoupled=pinned.model_transaction_policy.decoupled,
        inputs=tuple(_tensor(tensor) for tensor in pinned.input),
        outputs=tuple(
            Tensor(tensor.name, name_of(DataType, tensor.data_type), tuple(tensor.dims)) for tensor in pinned.output
        ),
        steps=tuple(
            StepContext(step.model_name, tuple(sorted(step.input_map.items())), tuple(sorted(step.output_map.items())))
            for step in pinned.ensemble_scheduling.step
        ),
        pinned_name=names.pinned,
        routes=routes,
    )


def the_one_version(model: str, weights: Mapping[int, float]) -> int:
    """The version that has all the traffic.

    Raises:
        RepositoryError: Several versions share it, or none has any.
    """
    numbers = sorted(number for number, weight in weights.items() if weight > 0)
    if len(numbers) == 1:
        return numbers[0]
    shown = ", ".join(f"{number}: {weight:g}" for number, weight in sorted(weights.items()))
    raise RepositoryError(
        f"{model}: the traffic is {{{shown}}}; an ensemble sends all of it to one version, because its steps name one "
        f"engine model",
        hint=f"give one version everything, or build the model with layout: gateway, which splits traffic; clients can "
        f"ask for one version by its own name ({EnsembleNames(model, numbers[-1] if numbers else 1).pinned})",
    )


def _refuse_unknown(line: EnsembleLine, names: EnsembleNames, engine: ModelConfig) -> None:
    joined = {joint.tensor for joint in line.steps[ENGINE].input_joints}
    missing = [tensor.name for tensor in engine.input if not tensor.optional and tensor.name not in joined]
    if missing:
        raise ConfigInvalid(
            f"{names.engine}/config.pbtxt",
            f"needs input {', '.join(missing)}, which the ensemble of {source_words(line)} does not have",
            hint="make the input optional, or use layout: gateway",
        )


def _those(
    joints: Sequence[Joint],
    *,
    tensors: Collection[str] | None = None,
    ensemble_tensors: Collection[str] | None = None,
) -> list[Joint]:
    return [
        joint
        for joint in joints
        if (tensors is None or joint.tensor in tensors)
        and (ensemble_tensors is None or joint.ensemble_tensor in ensemble_tensors)
    ]


def _ensemble_tensors(joints: Sequence[Joint]) -> set[str]:
    return {joint.ensemble_tensor for joint in joints}


def _step(model_name: str, inputs: Sequence[Joint], outputs: Sequence[Joint]) -> StepContext:
    return StepContext(model_name, _pairs(inputs), _pairs(outputs))


def _pairs(joints: Sequence[Joint]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((joint.tensor, joint.ensemble_tensor) for joint in joints))


def _tensor(tensor: ModelInput) -> Tensor:
    return Tensor(
        tensor.name,
        name_of(DataType, tensor.data_type),
        tuple(tensor.dims),
        optional=tensor.optional,
        ragged=tensor.allow_ragged_batch,
    )
