"""Postprocessing as a model of Triton's Python backend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..gateway.errors import VersionUnusable
from .model import answer_each, flag_parameter, load_version, output_names
from .postprocessing import Postprocessing


class TritonPythonModel:
    """What Triton loads: token ids to text."""

    def initialize(self, args: Mapping[str, str]) -> None:
        """Read the tokenizer.

        Raises:
            VersionUnusable: The files or a parameter cannot be used; Triton shows why.
        """
        if not flag_parameter(args, "skip_special_tokens"):
            raise VersionUnusable(
                "parameter skip_special_tokens is false; expected true: special tokens have no text here"
            )
        self._outputs = output_names(args)
        self._step = Postprocessing(load_version(args).tokenizer.vocabulary, self._outputs)

    def execute(self, requests: Sequence[Any]) -> list[Any]:
        """Answer requests."""
        return answer_each(requests, self._step.run, self._outputs)
