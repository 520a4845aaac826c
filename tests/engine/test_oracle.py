"""Engines of checkpoints whose conversion equals upstream's to the bit, against the logits of the source models."""

from pathlib import Path

import numpy as np
import pytest

from tests.support.engines import build_small, logits, small_spec

ORACLE = Path(__file__).parents[1] / "oracle"
IDS = [5, 7, 11, 13, 17, 19]


@pytest.mark.parametrize("precision", ["float32", "float16"])
@pytest.mark.parametrize("case", ["llama_gqa_fp16", "llama_tied_rope3_bf16", "chatglm3_v128"])
def test_the_engine_gives_the_logits_of_the_source(case: str, precision: str, tmp_path: Path) -> None:
    spec = small_spec(precision=precision)
    engine = build_small(
        ORACLE / case / "hf", tmp_path / "engine", spec=spec, dtype="auto", max_input_len=32, max_seq_len=64
    )
    assert np.abs(logits(engine.path, IDS) - np.load(ORACLE / case / "logits.npy")).max() < 1e-4
