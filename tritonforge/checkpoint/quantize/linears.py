"""The linear layers that a precision changes: what is multiplied with weights in every decoder layer.

Embedding, norms and lm_head are none of them; they stay floats.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tritonforge.checkpoint.families.base import TargetTensor
from tritonforge.checkpoint.placement import fc_groups, name_in_layer, qkv_groups
from tritonforge.checkpoint.source import SourceCheckpoint
from tritonforge.checkpoint.split import Group, Split
from tritonforge.formats.trtllm import TrtllmConfig

QKV = "attention.qkv"
DENSE = "attention.dense"
FC = "mlp.fc"
GATE = "mlp.gate"
PROJ = "mlp.proj"
# Layers whose inputs are the outputs of a norm, and layers whose inputs are divided over ranks.
_BEHIND_NORMS = (QKV, FC, GATE)


@dataclass(frozen=True, slots=True)
class Linear:
    """One linear layer.

    Args:
        layer: Its decoder layer.
        place: Which of them it is: `QKV`, `DENSE`, `FC`, `GATE` or `PROJ`.
        target: Its weight, [out, in].
    """

    layer: int
    place: str
    target: TargetTensor

    @property
    def name(self) -> str:
        """What its tensors are called, without the last part: ``transformer.layers.7.mlp.fc``."""
        return f"transformer.layers.{self.layer}.{self.place}"

    @property
    def modules(self) -> tuple[str, ...]:
        """Names of the modules in the source that it is made of."""
        return tuple(source.name.removesuffix(".weight") for source in self.target.sources)

    @property
    def outputs(self) -> int:
        """Number of output channels."""
        return self.target.shape[0]

    @property
    def inputs(self) -> int:
        """Number of input channels."""
        return self.target.shape[1]

    @property
    def is_row_parallel(self) -> bool:
        """Whether ranks share its input channels; otherwise they share its output channels."""
        return self.place not in _BEHIND_NORMS

    def groups(self, config: TrtllmConfig) -> tuple[Group, ...]:
        """Its output channels as they are shared by ranks; where the input channels are shared, a single group."""
        if self.place == QKV:
            return qkv_groups(config)
        return fc_groups(config) if self.place == FC else (Group(self.outputs),)

    def split_of_outputs(self, config: TrtllmConfig, *, axis: int) -> Split:
        """How ranks share something that has one entry for each output channel along an axis."""
        return Split() if self.is_row_parallel else Split(axis=axis, groups=self.groups(config))

    def split_of_inputs(self, *, axis: int) -> Split:
        """How ranks share something that has one entry for each input channel along an axis."""
        return Split(axis=axis) if self.is_row_parallel else Split()


def linears_of(source: SourceCheckpoint) -> tuple[Linear, ...]:
    """The linear layers of all decoder layers, in order."""
    places = {f"{place}.weight": place for place in (QKV, DENSE, FC, GATE, PROJ)}
    found = ((name_in_layer(target.name), target) for target in source.targets)
    return tuple(
        Linear(int(target.name.split(".")[2]), places[name], target) for name, target in found if name in places
    )


def by_layer(linears: tuple[Linear, ...]) -> Mapping[int, Mapping[str, Linear]]:
    """Linear layers by decoder layer and place."""
    layers: dict[int, dict[str, Linear]] = {}
    for linear in linears:
        layers.setdefault(linear.layer, {})[linear.place] = linear
    return layers
