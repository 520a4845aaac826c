"""Which Triton models stand in front of a model's engines, and what that rules out. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Literal

from tritonforge.spec.base import BrokenRule
from tritonforge.spec.tests import TestSpec

Layout = Literal["gateway", "ensemble"]
GATEWAY: Layout = "gateway"
ENSEMBLE: Layout = "ensemble"
# Engine kinds with the tensors of the tensorrtllm backend, which NVIDIA's ensemble is made for.
ENSEMBLE_KINDS = ("openvino", "tensorrt_llm")
# What each version has of its own beside the model of the public name.
_VERSION_MODELS: Mapping[Layout, tuple[str, ...]] = {
    GATEWAY: ("engine",),
    ENSEMBLE: ("engine", "preprocessing", "postprocessing", "ensemble"),
}


def folder_names(name: str, numbers: Collection[int], layout: Layout) -> list[str]:
    """Folders that a model needs in the repository.

    Args:
        name: Public name of the model.
        numbers: Its versions.
        layout: Its layout.
    """
    return [name, *(f"{name}_{part}_v{number}" for number in numbers for part in _VERSION_MODELS[layout])]


def broken_ensemble(
    kinds: Mapping[int, str], traffic: Mapping[int, float], tests: Sequence[TestSpec]
) -> Iterator[BrokenRule]:
    """What the layout `ensemble` rules out.

    Args:
        kinds: Engine kind by version number.
        traffic: Weight by version number.
        tests: The model's tests.
    """
    for number, kind in kinds.items():
        if kind not in ENSEMBLE_KINDS:
            yield BrokenRule(
                f"is of kind {kind}, which takes text, while layout is ensemble, whose engines take ids; expected one "
                f"of {', '.join(ENSEMBLE_KINDS)}, or layout: gateway",
                at=("versions", number, "engine"),
            )
    sharing = sorted(number for number, weight in traffic.items() if weight > 0)
    if len(sharing) > 1:
        yield BrokenRule(
            f"gives versions {', '.join(map(str, sharing))} a weight while layout is ensemble, whose steps name the "
            f"models of one version; expected one weight above 0, or layout: gateway, which splits traffic",
            at=("traffic",),
        )
    for index, test in enumerate(tests):
        if test.messages is not None:
            yield BrokenRule(
                "is given while layout is ensemble, whose input is plain text; expected prompt, or layout: gateway",
                at=("tests", index, "messages"),
            )
