"""Small checkpoints and specifications for builds with the stand-in for trtllm-build."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from tritonforge.artifacts import CheckpointArtifact
from tritonforge.engine.tensorrt_llm.command import BuildCommand
from tritonforge.engine.tensorrt_llm.executor import Executor
from tritonforge.events import OnEvent
from tritonforge.formats.trtllm import TrtllmConfig, rank_file_name
from tritonforge.spec.limits import LimitsSpec
from tritonforge.spec.tensorrt_llm import TensorRtLlmEngineSpec

LIMITS = LimitsSpec(max_batch_size=4, max_input_len=64, max_seq_len=128)


def tensorrt_llm_spec(**fields: object) -> TensorRtLlmEngineSpec:
    """The engine block of a version."""
    return TensorRtLlmEngineSpec.model_validate({"kind": "tensorrt_llm", "release": "0.16.0", **fields})


def empty_checkpoint(folder: Path, *, tp: int = 1, pp: int = 1) -> CheckpointArtifact:
    """A TensorRT-LLM checkpoint whose weight files hold no weights, for programs that only look whether it is whole."""
    folder.mkdir(parents=True)
    config = TrtllmConfig(
        architecture="LlamaForCausalLM",
        dtype="float16",
        vocab_size=128,
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_size=16,
        intermediate_size=128,
        hidden_act="silu",
        norm_epsilon=1e-5,
        position_embedding_type="rope_gpt_neox",
        max_position_embeddings=256,
        rotary_base=10000.0,
        rotary_pct=1.0,
        rotary_scaling=None,
        attn_bias=False,
        mlp_bias=False,
        tied_embeddings=False,
        tp_size=tp,
        pp_size=pp,
    )
    (folder / "config.json").write_text(json.dumps(config.to_json()))
    for rank in range(config.world_size):
        (folder / rank_file_name(rank)).write_bytes(b"no weights")
    return CheckpointArtifact(path=folder, config=config, source=folder, digest="0" * 64)


@dataclass
class Adapted:
    """An executor that changes the command before another one runs it.

    Args:
        executor: Who runs it.
        env: Variables to add, which make the stand-in misbehave.
        changes: Fields of the command to replace.
        seen: The commands that were run.
    """

    executor: Executor
    env: Mapping[str, str] = field(default_factory=dict)
    changes: Mapping[str, object] = field(default_factory=dict)
    seen: list[BuildCommand] = field(default_factory=list)

    def prepare(self, image: str | None, *, on_event: OnEvent) -> None:
        """See `Executor`."""
        self.executor.prepare(image, on_event=on_event)

    def run(self, command: BuildCommand, *, log: Path, on_event: OnEvent) -> None:
        """See `Executor`."""
        command = replace(command, env={**command.env, **self.env}, **self.changes)
        self.seen.append(command)
        self.executor.run(command, log=log, on_event=on_event)
