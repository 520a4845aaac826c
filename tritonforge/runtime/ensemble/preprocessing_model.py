"""Preprocessing as a model of Triton's Python backend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .model import answer_each, flag_parameter, list_parameter, load_version, output_names
from .preprocessing import Preprocessing, UnservedInputs


class TritonPythonModel:
    """What Triton loads: text to token ids."""

    def initialize(self, args: Mapping[str, str]) -> None:
        """Read the tokenizer.

        Raises:
            VersionUnusable: The files or a parameter cannot be used; Triton shows why.
        """
        self._outputs = output_names(args)
        self._unserved = UnservedInputs(list_parameter(args, "unserved_inputs"))
        adds_special_tokens = flag_parameter(args, "add_special_tokens")
        self._step = Preprocessing(load_version(args), adds_special_tokens=adds_special_tokens)

    def execute(self, requests: Sequence[Any]) -> list[Any]:
        """Answer requests."""
        return answer_each(requests, self._step.run, self._outputs, check=self._unserved.check)
