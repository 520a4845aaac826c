"""Families of checkpoints. Adding one is adding a file with a `Family` and naming it here."""

from __future__ import annotations

from tritonforge.checkpoint.families.base import Family
from tritonforge.checkpoint.families.chatglm import CHATGLM
from tritonforge.checkpoint.families.glm import GLM
from tritonforge.checkpoint.families.llama import LLAMA

FAMILIES: tuple[Family, ...] = (LLAMA, CHATGLM, GLM)
ARCHITECTURES = tuple(architecture for family in FAMILIES for architecture in family.architectures)


def family_of(architecture: str) -> Family | None:
    """The family that claims an architecture, if any does."""
    return next((family for family in FAMILIES if architecture in family.architectures), None)


def architecture_of(model_type: str) -> str:
    """The architecture that a ``model_type`` stands for; empty when no family knows it."""
    return next((family.model_types[model_type] for family in FAMILIES if model_type in family.model_types), "")
